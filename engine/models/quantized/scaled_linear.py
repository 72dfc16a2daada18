"""Linear layers whose matrices are codes with scales (`kernels/quantized/scaled.py`), and joints of several matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ....kernels.moe import ACTIVATIONS
from ....kernels.quantized import scaled
from ....kernels.quantized.rounding import Rounding
from ....kernels.quantized.scaled import Scaled
from ..linear import DenseLinears, DensePerHeadLinear, Embedding, GroupedMlp, Linear


@dataclass(frozen=True, slots=True)
class ScaledLinear:
    """A `Linear` whose matrix is codes with scales, and whose input may be rounded before."""

    matrix: Scaled
    rounding: Rounding | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return scaled.multiply(x if self.rounding is None else self.rounding(x), self.matrix)


@dataclass(frozen=True, slots=True)
class JoinedLinear:
    """A `Linear` whose rows are those of others, one under another, perhaps in another order."""

    parts: tuple[Linear, ...]
    order: Tensor | None = None  # int64 [rows]: which row of the parts each row is; None: as they are
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        products = [part(x) for part in self.parts]
        joined = products[0] if len(products) == 1 else torch.cat(products, dim=1)
        if self.order is not None:
            joined = joined.index_select(1, self.order)
        return joined if self.bias is None else joined + self.bias


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

    gate_up: tuple[Linear, ...]  # of each expert: gate, then up
    down: tuple[Linear, ...]
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
class MadeLinears:
    """The linear layers that were made while weights were loaded, and dense ones of all other matrices.

    `made` has them by the layer's name, and those of each expert in turn by "NAME.gate_up" and "NAME.down".
    """

    made: Mapping[str, tuple[Linear, ...]]
    embeddings: Mapping[str, Embedding]
    weights: Mapping[str, Tensor]

    @property
    def _dense(self) -> DenseLinears:
        return DenseLinears(self.weights)

    def embedding(self, name: str, *, uses_triton: bool) -> Embedding:
        return self.embeddings.get(name) or self._dense.embedding(name, uses_triton=uses_triton)

    def linear(self, name: str) -> Linear:
        if name not in self.made:
            return self._dense.linear(name)
        return self.made[name][0]

    def per_head(self, name: str) -> DensePerHeadLinear:
        return self._dense.per_head(name)

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> GroupedMlp:
        if f"{name}.down" not in self.made:
            return self._dense.grouped_mlp(name, activation, scales_input=scales_input, uses_triton=uses_triton)
        return ExpertwiseMlp(self.made[f"{name}.gate_up"], self.made[f"{name}.down"], activation, scales_input)
