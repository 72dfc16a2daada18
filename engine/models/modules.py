"""The parts of a decoder layer: each holds its weights and maps hidden states [num_tokens, ...] to hidden states.

`uses_triton` in each says whether the kernels of `kernels/fused` and `kernels/moe` compute it, or PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, rms_norm

from ...kernels import fused
from ...kernels.backend import Backend
from ...kernels.moe import ACTIVATIONS, grouped_mlp
from .architecture import ExpertSpec, NormSpec


@dataclass(frozen=True, slots=True)
class Norm:
    """RMSNorm (arXiv:1910.07467) or LayerNorm over the last axis, in the weight's precision."""

    spec: NormSpec
    weight: Tensor | None  # over the last axes, or None
    bias: Tensor | None = None
    uses_triton: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        if self._is_fused:
            return fused.rms_norm(hidden, self.weight, self.spec.eps, backend="triton")
        if self.weight is None or self.weight.ndim == 1:
            return self._over(hidden, self.weight)
        return (self._over(hidden, None) * self.weight).to(hidden.dtype)  # a weight per head

    def after(self, hidden: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor]:
        """(what the next part reads, the residual stream), when `delta` is still to be added to the stream."""
        if delta is None:
            return self(hidden), hidden
        if self._is_fused:
            return fused.add_rms_norm(delta, hidden, self.weight, self.spec.eps, backend="triton")
        total = hidden + delta
        return self(total), total

    @property
    def _is_fused(self) -> bool:
        return self.uses_triton and self.spec.kind == "rms" and (self.weight is None or self.weight.ndim == 1)

    def _over(self, hidden: Tensor, weight: Tensor | None) -> Tensor:
        exact = hidden if self.weight is None else hidden.to(self.weight.dtype)
        shape = (hidden.shape[-1],)
        if self.spec.kind == "layer":
            return layer_norm(exact, shape, weight, self.bias, self.spec.eps).to(hidden.dtype)
        return rms_norm(exact, shape, weight, self.spec.eps).to(hidden.dtype)


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosine and sine of each token's angles, [num_tokens, 1, dim / 2]: dimension i turns with i + dim / 2."""

    cosine: Tensor
    sine: Tensor

    def apply(self, heads: Tensor) -> Tensor:
        """Turn the first `dim` dimensions of [num_tokens, num_heads, head_dim]."""
        half = self.cosine.shape[-1]
        first, second = heads[..., :half], heads[..., half : 2 * half]
        turned = [first * self.cosine - second * self.sine, second * self.cosine + first * self.sine]
        if 2 * half < heads.shape[-1]:
            turned.append(heads[..., 2 * half :])
        return torch.cat(turned, dim=-1).to(heads.dtype)


@dataclass(frozen=True, slots=True)
class Mlp:
    """down(act(gate) * up), or down(act(up)) without a gate."""

    activation: str
    is_gated: bool
    up: Tensor  # [2 * intermediate, hidden]: gate, then up; [intermediate, hidden] without a gate
    up_bias: Tensor | None
    down: Tensor  # [hidden, intermediate]
    down_bias: Tensor | None
    uses_triton: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        return linear(self._activated(linear(hidden, self.up, self.up_bias)), self.down, self.down_bias)

    def _activated(self, inner: Tensor) -> Tensor:
        act = ACTIVATIONS[self.activation]
        if not self.is_gated:
            return act(inner)
        if self.uses_triton:
            return fused.gated_activation(inner, cast(fused.Activation, self.activation), backend="triton")
        gate, up = inner.chunk(2, dim=-1)
        return act(gate) * up


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: each token goes through those that its router chooses, and through the shared one."""

    spec: ExpertSpec
    activation: str
    router: Tensor  # [count, hidden]
    correction: Tensor | None  # float32 [count]
    gate_up: Tensor  # [count, 2 * size, hidden]
    down: Tensor  # [count, hidden, size]
    shared: Mlp | None
    uses_triton: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        weights, chosen = self.route(hidden)
        backend: Backend = "triton" if self.uses_triton else "reference"
        scales_input = self.spec.scales_input
        output = grouped_mlp(
            hidden, self.gate_up, self.down, chosen, weights, self.activation, scales_input, backend=backend
        )
        return output if self.shared is None else output + self.shared(hidden)

    def route(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Weights, float32, and numbers of the chosen experts, both [num_tokens, per_token]."""
        spec = self.spec
        logits = linear(hidden.to(self.router.dtype), self.router).float()
        scores = logits.softmax(dim=-1) if spec.scoring == "softmax" else logits.sigmoid()
        preference = scores if self.correction is None else scores + self.correction
        if spec.num_groups > 1:
            preference = _within_best_groups(preference, spec)
        chosen = preference.topk(spec.per_token, dim=-1).indices
        weights = scores.gather(-1, chosen)
        if spec.is_normalized:
            weights = weights / (weights.sum(dim=-1, keepdim=True) + (1e-20 if spec.scoring == "sigmoid" else 0.0))
        return weights * spec.scale, chosen


def _within_best_groups(preference: Tensor, spec: ExpertSpec) -> Tensor:
    """-inf outside the best groups; a group is as good as its two best experts together."""
    grouped = preference.unflatten(-1, (spec.num_groups, -1))
    quality = grouped.topk(2, dim=-1).values.sum(dim=-1)
    best = quality.topk(spec.groups_per_token, dim=-1).indices
    is_out = torch.ones_like(quality, dtype=torch.bool).scatter_(-1, best, False)
    return grouped.masked_fill(is_out[..., None], float("-inf")).flatten(-2)
