"""compressed-tensors, as llm-compressor writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ...kernels.quantized.rounding import Rounding
from ...kernels.quantized.scaled import CODE_TYPES, Scaled
from .scheme import (
    FLOATS,
    BadTensor,
    Shape,
    Stored,
    bytes_of,
    order_of,
    reordered,
    shaped_scales,
    unsigned,
    words,
    zeros_of,
)

Strategy = Literal["tensor", "channel", "group", "block"]


@dataclass(frozen=True, slots=True)
class Granularity:
    """What has a scale of its own."""

    strategy: Strategy
    block: tuple[int, int] = (1, 1)  # rows and columns, of "group" and "block"

    def shapes(self, rows: int, columns: int) -> tuple[Shape, ...]:
        """Of the scales."""
        if self.strategy == "tensor":
            return ((), (1,), (1, 1))
        if self.strategy == "channel":
            return ((rows, 1), (rows,))
        return ((-(-rows // self.block[0]), -(-columns // self.block[1])),)

    def shaped(self, scales: Tensor, rows: int, columns: int) -> tuple[Tensor, tuple[int, int]]:
        return shaped_scales(scales, rows, columns, self.block if self.strategy in ("group", "block") else None)


@dataclass(frozen=True, slots=True)
class PackedIntegers:
    """"pack-quantized": integers of a row in turn without gaps, used as they lie. Columns may be in groups of another order."""

    is_in_place: ClassVar[bool] = True
    bits: int
    granularity: Granularity
    is_symmetric: bool
    inputs: Rounding | None = None

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        groups = self.granularity.shapes(rows, columns)[0]
        zeros = (words(rows, self.bits), groups[1] if len(groups) == 2 else 1)
        found = (
            Stored(("weight_packed",), ((rows, words(columns, self.bits)),), ("I32",)),
            Stored(("weight_scale",), self.granularity.shapes(rows, columns), FLOATS),
            Stored(("weight_shape",), ((2,),), ("I64", "I32"), is_optional=True),
            Stored(("weight_g_idx",), ((columns,),), ("I32",), is_optional=True),
        )
        return found if self.is_symmetric else (*found, Stored(("weight_zero_point",), (zeros,), ("I32",)))

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        shape = tensors.get("weight_shape")
        if shape is not None and shape.tolist() != [rows, columns]:
            raise BadTensor("weight_shape", f"holds {shape.tolist()}; [{rows}, {columns}] is called for")
        scales, block = self.granularity.shaped(tensors["weight_scale"], rows, columns)
        data, order, zeros = bytes_of(tensors["weight_packed"]), None, None
        if "weight_g_idx" in tensors and bool((tensors["weight_g_idx"] >= 0).any()):  # -1 stands for none
            order = order_of(tensors["weight_g_idx"], block[1], scales.shape[1], "weight_g_idx")
        if order is not None:
            data = reordered(data, unsigned(self.bits), order)
        if not self.is_symmetric:
            zeros = zeros_of(tensors["weight_zero_point"].T, self.bits, rows)
        return Scaled(unsigned(self.bits), data, scales, columns, block, zeros, order)

    def rounding(self, tensors: Mapping[str, Tensor]) -> Rounding | None:
        return self.inputs


@dataclass(frozen=True, slots=True)
class PlainCodes:
    """"int-quantized", "float-quantized" and "naive-quantized": a byte each, used as they lie."""

    is_in_place: ClassVar[bool] = True
    kind: Literal["int8", "float8"]
    granularity: Granularity
    is_symmetric: bool = True
    inputs: Rounding | None = None
    has_input_scale: bool = False

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        shapes = self.granularity.shapes(rows, columns)
        zero = Stored(("weight_zero_point",), shapes, ("I8", "F8_E4M3"), is_optional=self.is_symmetric)
        one: tuple[Shape, ...] = ((), (1,), (1, 1))
        found = [
            Stored(("weight",), ((rows, columns),), ("I8" if self.kind == "int8" else "F8_E4M3",)),
            Stored(("weight_scale",), shapes, FLOATS),
            zero,
        ]
        if self.has_input_scale:
            is_symmetric = self.inputs is None or self.inputs.is_symmetric
            found += [
                Stored(("input_scale",), one, FLOATS),
                Stored(("input_zero_point",), one, ("I8", "F8_E4M3"), is_optional=is_symmetric),
            ]
        return tuple(found)

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        scales, block = self.granularity.shaped(tensors["weight_scale"], rows, columns)
        zeros = None
        if "weight_zero_point" in tensors and bool((tensors["weight_zero_point"].float() != 0).any()):
            zeros = tensors["weight_zero_point"].reshape(scales.shape)
            if self.kind == "float8":
                raise BadTensor("weight_zero_point", "is not zero; small floats have no zero points here")
        return Scaled(CODE_TYPES[self.kind], tensors["weight"].view(torch.uint8), scales, columns, block, zeros)

    def rounding(self, tensors: Mapping[str, Tensor]) -> Rounding | None:
        if self.inputs is None or not self.has_input_scale:
            return self.inputs
        scale = positive(tensors["input_scale"], "input_scale")
        zero = None if self.inputs.is_symmetric else tensors["input_zero_point"].float().reshape(1)
        return replace(self.inputs, scale=scale, zero=zero)


@dataclass(frozen=True, slots=True)
class MxFloats:
    """"mxfp4-pack-quantized": floats of 4 bits (e2m1), two a byte, with a power of two for each 32 (OCP Microscaling 1.0)."""

    is_in_place: ClassVar[bool] = True

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        if columns % 32:
            raise BadTensor("weight_packed", f"cannot hold rows of {columns} columns: 32 of them have a scale")
        return (
            Stored(("weight_packed",), ((rows, columns // 2),), ("U8",)),
            Stored(("weight_scale",), ((rows, columns // 32),), ("U8",)),
        )

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        scales = tensors["weight_scale"].view(torch.float8_e8m0fnu)
        return Scaled(CODE_TYPES["float4"], tensors["weight_packed"], scales, columns, (1, 32))

    def rounding(self, tensors: Mapping[str, Tensor]) -> None:
        return None


def positive(scale: Tensor, name: str) -> Tensor:
    """A scale of inputs, float32 [1]. Raises BadTensor where nothing can be divided by it."""
    found = scale.float().reshape(1)
    if not (found.isfinite() & (found > 0)).all():
        raise BadTensor(name, f"is {found.item()}; it must be positive")
    return found
