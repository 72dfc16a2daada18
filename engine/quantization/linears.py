"""Linear layers whose matrices are codes with scales (`kernels/quantized/scaled.py`), and joints of several matrices.

They keep to the protocols of `engine/models/linear.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from ...kernels.backend import Backend
from ...kernels.cpu import Product as CompiledProduct
from ...kernels.fused.gated_activation import Activation
from ...kernels.moe import ACTIVATIONS
from ...kernels.quantized import experts, scaled
from ...kernels.quantized.experts import Matrices
from ...kernels.quantized.rounding import Rounding
from ...kernels.quantized.scaled import Scaled

Product = Callable[[Tensor], Tensor]  # a `Linear` of `engine/models/linear.py`


@dataclass(frozen=True, slots=True)
class ScaledLinear:
    """A `Linear` whose matrix is codes with scales, and whose input may be rounded before."""

    matrix: Scaled
    rounding: Rounding | None = None
    backend: Backend = "auto"

    def __call__(self, x: Tensor) -> Tensor:
        return scaled.multiply(x, self.matrix, self.rounding, backend=self.backend)


@dataclass(frozen=True, slots=True)
class JoinedLinear:
    """A `Linear` whose rows are those of others, one under another, perhaps in another order."""

    parts: tuple[Product, ...]
    order: Tensor | None = None  # int64 [rows]: which row of the parts each row is; None: as they are
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        products = [part(x) for part in self.parts]
        joined = products[0] if len(products) == 1 else torch.cat(products, dim=1)
        if self.order is not None:
            joined = joined.index_select(1, self.order)
        return joined if self.bias is None else joined + self.bias


@dataclass(frozen=True, slots=True)
class CompiledLinear:
    """A `Linear` that compiled code computes, of matrices of any kind, and `otherwise` for as many rows as that is better at."""

    product: CompiledProduct
    otherwise: JoinedLinear
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        product = self.product(x).to(x.dtype) if self.product.is_good_for(x.shape[0]) else self.otherwise(x)
        return product if self.bias is None else product + self.bias


@dataclass(frozen=True, slots=True)
class ScaledEmbedding:
    """An `Embedding` whose matrix is codes with scales."""

    matrix: Scaled
    dtype: torch.dtype

    @property
    def device(self) -> torch.device:
        return self.matrix.data.device

    def __call__(self, token_ids: Tensor, scale: float) -> Tensor:
        return (scaled.rows(self.matrix, token_ids.clamp_min(0)) * scale).to(self.dtype)


@dataclass(frozen=True, slots=True)
class ExpertwiseMlp:
    """A `GroupedMlp` on a CPU whose matrices are linear layers: one expert after another, of those that some token has chosen."""

    gate_up: tuple[Product, ...]  # of each expert: gate, then up
    down: tuple[Product, ...]
    activation: str
    scales_input: bool = False

    def __call__(self, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        output = torch.zeros(hidden.shape, dtype=torch.float32)
        for expert in chosen.unique().tolist():
            tokens, choice = torch.nonzero(chosen == expert, as_tuple=True)
            weight = weights[tokens, choice, None]
            given = hidden[tokens]
            result = self._expert(expert, given * weight.to(given.dtype) if self.scales_input else given).float()
            output.index_add_(0, tokens, result if self.scales_input else result * weight)
        return output.to(hidden.dtype)

    def _expert(self, expert: int, hidden: Tensor) -> Tensor:
        gate, up = self.gate_up[expert](hidden).chunk(2, dim=-1)
        return self.down[expert](ACTIVATIONS[self.activation](gate) * up)


@dataclass(frozen=True, slots=True)
class Stack:
    """The matrices of all experts, one under another, and what is done to their inputs."""

    matrices: Matrices
    rounding: Rounding | None = None


@dataclass(frozen=True, slots=True)
class StackedMlp:
    """A `GroupedMlp` whose matrices stay packed, computed by Triton kernels."""

    gate_up: Stack
    down: Stack
    num_experts: int
    activation: Activation
    scales_input: bool = False

    def __call__(self, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        roundings = (self.gate_up.rounding, self.down.rounding)
        return experts.grouped_mlp(
            hidden, self.gate_up.matrices, self.down.matrices, chosen, weights, self.activation, self.scales_input, roundings,
            self.num_experts,
        )  # fmt: skip


def stacked_mlp(stacks: Mapping[str, Stack], name: str, num_experts: int, activation: str, scales_input: bool) -> StackedMlp:
    """Of the stacks "NAME.gate_up" and "NAME.down"."""
    gate_up, down = stacks[f"{name}.gate_up"], stacks[f"{name}.down"]
    return StackedMlp(gate_up, down, num_experts, cast(Activation, activation), scales_input)
