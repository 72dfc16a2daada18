"""The experts of gpt-oss as they are stored: floats of 4 bits (e2m1), two a byte, with a power of two for each 32 (MXFP4)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...kernels.quantized import scaled
from ...kernels.quantized.codes import CODE_TYPES, Scaled

GROUP = 32  # codes with one scale


class PackedExperts(nn.Module):
    """In place of transformers' `GptOssExperts`: parameters by the names of the checkpoint, decoded inside of the product."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        count, hidden, size = config.num_local_experts, config.hidden_size, config.intermediate_size
        self.alpha, self.limit = float(config.swiglu_alpha), float(config.swiglu_limit)
        for name, rows, columns in (("gate_up_proj", 2 * size, hidden), ("down_proj", hidden, size)):
            self._hold(f"{name}_blocks", torch.empty(count, rows, columns // GROUP, GROUP // 2, dtype=torch.uint8))
            self._hold(f"{name}_scales", torch.empty(count, rows, columns // GROUP, dtype=torch.uint8))
            self._hold(f"{name}_bias", torch.empty(count, rows))

    def _hold(self, name: str, tensor: Tensor) -> None:
        self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    def forward(self, hidden_states: Tensor, router_indices: Tensor, routing_weights: Tensor) -> Tensor:
        """Each token's weighted sum over its experts, [num_tokens, hidden_size]; the others are [num_tokens, per_token]."""
        output = torch.zeros_like(hidden_states)
        for expert in router_indices.unique().tolist():
            tokens, choice = torch.nonzero(router_indices == expert, as_tuple=True)
            result = self._expert(expert, hidden_states[tokens]) * routing_weights[tokens, choice, None]
            output.index_add_(0, tokens, result.to(output.dtype))
        return output

    def _expert(self, expert: int, hidden: Tensor) -> Tensor:
        gate_up = self._product("gate_up_proj", expert, hidden)
        gate = gate_up[:, ::2].clamp(max=self.limit)
        up = gate_up[:, 1::2].clamp(-self.limit, self.limit)
        return self._product("down_proj", expert, (up + 1) * gate * torch.sigmoid(gate * self.alpha))

    def _product(self, name: str, expert: int, x: Tensor) -> Tensor:
        blocks, scales, bias = (getattr(self, f"{name}_{part}")[expert] for part in ("blocks", "scales", "bias"))
        columns = blocks.shape[1] * GROUP
        matrix = Scaled(CODE_TYPES["float4"], blocks.flatten(1), scales.view(torch.float8_e8m0fnu), columns, (1, GROUP))
        return scaled.multiply(x, matrix) + bias
