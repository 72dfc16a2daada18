"""The parts of a decoder layer: each maps hidden states [num_tokens, ...] to hidden states.

A part holds its norms' weights itself; what it multiplies by matrices goes through the objects of `linear.py`. `uses_triton` in
each says whether the kernels of `kernels/fused` and `kernels/moe` compute it, or PyTorch; `is_compiled` that the compiled code of
`kernels/cpu` does, where it can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, rms_norm

from ...kernels import fused
from ...kernels.cpu import between
from ...kernels.moe import ACTIVATIONS
from .architecture import ExpertSpec, NormSpec
from .linear import GroupedMlp, Linear

MeanSquares = Callable[[Tensor], Tensor]
"""[num_tokens, 2] to the same: sums of squares of the queries and keys that a rank holds, and means over those of all ranks."""


@dataclass(frozen=True, slots=True)
class Norm:
    """RMSNorm (arXiv:1910.07467) or LayerNorm (arXiv:1607.06450) over the last axis, computed in the weight's precision."""

    spec: NormSpec
    weight: Tensor | None  # over the last axes, or None
    bias: Tensor | None = None
    uses_triton: bool = False
    is_compiled: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        if self._fits_compiled(hidden):
            assert self.weight is not None
            return between.rms_norm(hidden, None, self.weight, self.spec.eps)[0]
        if self._is_fused:
            return fused.rms_norm(hidden, self.weight, self.spec.eps, backend="triton")
        if self.weight is None or self.weight.ndim == 1:
            return self._over(hidden, self.weight)
        return (self._over(hidden, None) * self.weight).to(hidden.dtype)  # a weight per head

    def after(self, hidden: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor]:
        """(normed sum, sum) of the residual stream `hidden` and of `delta`, the output that is still to be added to it."""
        if delta is None:
            return self(hidden), hidden
        if self._fits_compiled(hidden):
            assert self.weight is not None
            return between.rms_norm(hidden, delta, self.weight, self.spec.eps)
        if self._is_fused:
            return fused.add_rms_norm(delta, hidden, self.weight, self.spec.eps, backend="triton")
        total = hidden + delta
        return self(total), total

    @property
    def _is_fused(self) -> bool:
        return self.uses_triton and self.spec.kind == "rms" and (self.weight is None or self.weight.ndim == 1)

    def _fits_compiled(self, hidden: Tensor) -> bool:
        if not self.is_compiled or self.spec.kind != "rms" or self.weight is None or self.weight.ndim != 1 or hidden.ndim != 2:
            return False
        return hidden.dtype == self.weight.dtype == torch.float32 and between.fits(hidden.shape[1])

    def _over(self, hidden: Tensor, weight: Tensor | None) -> Tensor:
        exact = hidden if self.weight is None else hidden.to(self.weight.dtype)
        shape = (hidden.shape[-1],)
        if self.spec.kind == "layer":
            return layer_norm(exact, shape, weight, self.bias, self.spec.eps).to(hidden.dtype)
        return rms_norm(exact, shape, weight, self.spec.eps).to(hidden.dtype)


@dataclass(frozen=True, slots=True)
class JointNorm:
    """Norms of the queries and of the keys of all heads (OLMo 2): each as one vector, with a weight for every number in it."""

    spec: NormSpec
    weight: Tensor  # [num_heads + num_kv_heads, head_dim]
    num_heads: int  # of queries, which come first
    mean_squares: MeanSquares | None = None  # where other ranks hold other heads

    def __call__(self, heads: Tensor) -> Tensor:
        """heads [num_tokens, num_heads + num_kv_heads, head_dim]"""
        parts = heads.split((self.num_heads, heads.shape[1] - self.num_heads), dim=1)
        if self.mean_squares is None:
            means = [part.float().square().mean(dim=(1, 2)) for part in parts]
        else:
            sums = torch.stack([part.float().square().sum(dim=(1, 2)) for part in parts], dim=1)
            means = list(self.mean_squares(sums).unbind(1))
        scales = [(mean + self.spec.eps).rsqrt()[:, None, None] for mean in means]
        return (torch.cat([part * scale for part, scale in zip(parts, scales, strict=True)], dim=1) * self.weight).to(heads.dtype)


@dataclass(frozen=True, slots=True)
class Unnormed:
    """In place of a norm, where what a layer reads is not normed."""

    weight: None = None

    def after(self, hidden: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor]:
        """As `Norm.after`."""
        total = hidden if delta is None else hidden + delta
        return total, total


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosine and sine of each token's angles, [num_tokens, 1, dim / 2]. Dimension i of a head turns with dimension i + dim / 2."""

    cosine: Tensor
    sine: Tensor

    def apply(self, heads: Tensor) -> Tensor:
        """Rotate the first `dim` dimensions of heads [num_tokens, num_heads, head_dim]; the others stay as they are."""
        half = self.cosine.shape[-1]
        first, second = heads[..., :half], heads[..., half : 2 * half]
        turned = [first * self.cosine - second * self.sine, second * self.cosine + first * self.sine]
        if 2 * half < heads.shape[-1]:
            turned.append(heads[..., 2 * half :])
        return torch.cat(turned, dim=-1).to(heads.dtype)


@dataclass(frozen=True, slots=True)
class Mlp:
    """A feed-forward layer: down(act(gate(x)) * up(x)), or down(act(up(x))) without a gate."""

    activation: str
    is_gated: bool
    up: Linear  # hidden -> 2 * intermediate: gate, then up; hidden -> intermediate without a gate
    down: Linear  # intermediate -> hidden
    uses_triton: bool = False
    is_compiled: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        return self.down(self._activated(self.up(hidden)))

    def _activated(self, inner: Tensor) -> Tensor:
        act = ACTIVATIONS[self.activation]
        if not self.is_gated:
            return act(inner)
        if self.uses_triton:
            return fused.gated_activation(inner, cast(fused.Activation, self.activation), backend="triton")
        is_float = inner.dtype == torch.float32 and between.fits(inner.shape[1] // 2)
        if self.is_compiled and self.activation in between.ACTIVATIONS and is_float:
            return between.gated(inner, self.activation)
        gate, up = inner.chunk(2, dim=-1)
        return act(gate) * up


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: each token goes through the experts that the router chooses for it, and through the shared one."""

    spec: ExpertSpec
    router: Linear  # hidden -> count, in float32 where there is a correction
    correction: Tensor | None  # float32 [count]
    experts: GroupedMlp
    shared: Mlp | None
    shared_gate: Linear | None = None  # hidden -> 1

    def __call__(self, hidden: Tensor) -> Tensor:
        weights, chosen = self.route(hidden)
        output = self.experts(hidden, chosen, weights)
        if self.shared is None:
            return output
        shared = self.shared(hidden)
        return output + (shared if self.shared_gate is None else shared * self.shared_gate(hidden).sigmoid())

    def route(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (float32) and numbers (int64) of the experts chosen for each token, both [num_tokens, per_token]."""
        spec = self.spec
        logits = self.router(hidden.float() if spec.has_correction else hidden).float()
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
    """`preference` [num_tokens, count], with -inf for experts outside the best groups.

    A group is as good as its best expert (DeepSeek-V2), or its two best together (DeepSeek-V3, arXiv:2412.19437).
    """
    grouped = preference.unflatten(-1, (spec.num_groups, -1))
    quality = grouped.topk(spec.best_of_group, dim=-1).values.sum(dim=-1)
    best = quality.topk(spec.groups_per_token, dim=-1).indices
    is_out = torch.ones_like(quality, dtype=torch.bool).scatter_(-1, best, False)
    return grouped.masked_fill(is_out[..., None], float("-inf")).flatten(-2)
