"""Linear layers whose matrices stay packed in blocks: see `kernels/quantized`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...kernels import quantized
from ...kernels.backend import Backend
from ...kernels.cpu import Product
from ...kernels.quantized import Packed
from ..quantization.linears import ExpertwiseMlp, Stack, stacked_mlp
from .linear import DenseLinears, DensePerHeadLinear, Embedding, GroupedMlp, Linear


@dataclass(frozen=True, slots=True)
class PackedRows:
    """A matrix whose rows lie in several packed matrices, one under another, perhaps in another order."""

    parts: tuple[Packed, ...]
    order: Tensor | None = None  # int64 [rows]: which row of the parts each row is; None: as they are
    product: Product | None = None  # that of compiled code, which rounds activations to 8 bits; None: float32
    backend: Backend = "auto"  # of the other products

    def multiply(self, x: Tensor) -> Tensor:
        """x W^T."""
        if self.product is not None and self.product.is_good_for(x.shape[0]):
            return self.product(x).to(x.dtype)
        products = [quantized.multiply(x, part, backend=self.backend) for part in self.parts]
        joined = products[0] if len(products) == 1 else torch.cat(products, dim=1)
        return joined if self.order is None else joined.index_select(1, self.order)


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A `Linear` whose matrix is packed."""

    rows: PackedRows
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        product = self.rows.multiply(x)
        return product if self.bias is None else product + self.bias


@dataclass(frozen=True, slots=True)
class PackedEmbedding:
    """An `Embedding` whose matrix is packed."""

    matrix: Packed
    dtype: torch.dtype

    @property
    def device(self) -> torch.device:
        return self.matrix.data.device

    def __call__(self, token_ids: Tensor, scale: float) -> Tensor:
        return (quantized.rows(self.matrix, token_ids.clamp_min(0)) * scale).to(self.dtype)


@dataclass(frozen=True, slots=True)
class PackedLinears:
    """Makes linear layers of packed matrices where there are such, else dense ones.

    `packed` has the matrix of each linear layer by the layer's name, and those of each expert in turn by "NAME.gate_up" and
    "NAME.down".
    """

    packed: Mapping[str, tuple[PackedRows, ...]]
    weights: Mapping[str, Tensor]
    dtype: torch.dtype
    stacks: Mapping[str, Stack] = field(default_factory=dict)  # of experts whose matrices kernels multiply, by the same names
    num_experts: int = 0

    @property
    def _dense(self) -> DenseLinears:
        return DenseLinears(self.weights)

    def embedding(self, name: str, *, uses_triton: bool) -> Embedding:
        if name not in self.packed:
            return self._dense.embedding(name, uses_triton=uses_triton)
        return PackedEmbedding(self.packed[name][0].parts[0], self.dtype)

    def linear(self, name: str) -> Linear:
        if name not in self.packed:
            return self._dense.linear(name)
        return PackedLinear(self.packed[name][0], self.weights.get(f"{name}.bias"))

    def per_head(self, name: str) -> DensePerHeadLinear:
        return self._dense.per_head(name)

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> GroupedMlp:
        if f"{name}.down" in self.stacks:
            return stacked_mlp(self.stacks, name, self.num_experts, activation, scales_input)
        if f"{name}.down" not in self.packed:
            return self._dense.grouped_mlp(name, activation, scales_input=scales_input, uses_triton=uses_triton)
        gate_up, down = (tuple(rows.multiply for rows in self.packed[f"{name}.{part}"]) for part in ("gate_up", "down"))
        return ExpertwiseMlp(gate_up, down, activation, scales_input)
