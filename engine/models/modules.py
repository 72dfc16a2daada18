"""The parts of a decoder layer: each holds its weights and maps hidden states [num_tokens, ...] to hidden states."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, rms_norm

from ...kernels.moe import ACTIVATIONS, grouped_mlp
from .architecture import ExpertSpec, NormSpec


@dataclass(frozen=True, slots=True)
class Norm:
    """RMSNorm (arXiv:1910.07467) or LayerNorm over the last axis, in the weight's precision."""

    spec: NormSpec
    weight: Tensor | None  # over the last axes, or None
    bias: Tensor | None = None

    def __call__(self, hidden: Tensor) -> Tensor:
        if self.weight is None or self.weight.ndim == 1:
            return self._over(hidden, self.weight)
        return (self._over(hidden, None) * self.weight).to(hidden.dtype)  # a weight per head

    def _over(self, hidden: Tensor, weight: Tensor | None) -> Tensor:
        exact = hidden if self.weight is None else hidden.to(self.weight.dtype)
        shape = (hidden.shape[-1],)
        if self.spec.kind == "layer":
            return layer_norm(exact, shape, weight, self.bias, self.spec.eps).to(hidden.dtype)
        return rms_norm(exact, shape, weight, self.spec.eps).to(hidden.dtype)


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosine and sine of each token's angles, [num_tokens, 1, dim]; halves repeat (Hugging Face's layout)."""

    cosine: Tensor
    sine: Tensor

    def apply(self, heads: Tensor) -> Tensor:
        """Turn the first `dim` dimensions of [num_tokens, num_heads, head_dim]: i pairs with i + dim / 2."""
        dim = self.cosine.shape[-1]
        if dim == heads.shape[-1]:
            return self._turn(heads)
        return torch.cat((self._turn(heads[..., :dim]), heads[..., dim:]), dim=-1)

    def _turn(self, heads: Tensor) -> Tensor:
        first, second = heads.chunk(2, dim=-1)
        return heads * self.cosine + torch.cat((-second, first), dim=-1) * self.sine


@dataclass(frozen=True, slots=True)
class Mlp:
    """down(act(gate) * up), or down(act(up)) without a gate."""

    activation: str
    is_gated: bool
    up: Tensor  # [2 * intermediate, hidden]: gate, then up; [intermediate, hidden] without a gate
    up_bias: Tensor | None
    down: Tensor  # [hidden, intermediate]
    down_bias: Tensor | None

    def __call__(self, hidden: Tensor) -> Tensor:
        inner = linear(hidden, self.up, self.up_bias)
        act = ACTIVATIONS[self.activation]
        if self.is_gated:
            gate, up = inner.chunk(2, dim=-1)
            return linear(act(gate) * up, self.down, self.down_bias)
        return linear(act(inner), self.down, self.down_bias)


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

    def __call__(self, hidden: Tensor) -> Tensor:
        weights, chosen = self.route(hidden)
        output = grouped_mlp(
            hidden, self.gate_up, self.down, chosen, weights, self.activation, self.spec.scales_input
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
