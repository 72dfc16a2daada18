"""Matrices of codes with scales beside them (`kernels/quantized/codes.py`) as the compiled products read them: where they lie.

Integers of 2 to 8 bits are multiplied by activations of 8 bits, as blocks are; where a checkpoint rounds inputs to int8, on its
grid. Codes that stand for numbers of a table (e2m1, NF4) are looked up as integers: e2m1 doubled, NF4 rounded to 16 bits.
Small floats of 8 bits (e4m3) are multiplied by activations as they are, or on the grid of floats that a checkpoint calls for.
"""

from __future__ import annotations

import ctypes
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..quantized.codes import Scaled
from ..quantized.rounding import Rounding
from .library import TYPES, Matrix

CODES = {  # names in `TYPES`
    **{f"uint{bits}": f"CODES{bits}" for bits in range(2, 9)},
    "int8": "CODES8", "float4": "FLOAT4", "nf4": "NF4", "float8": "FLOAT8",
}  # fmt: skip
TABLES = ("float4", "nf4")  # codes that have neither zero points nor inputs on a grid
SCALES = {  # names in `TYPES`
    torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float8_e8m0fnu: "EXPONENT8",
}  # fmt: skip
GRIDS = {None: 0, "int8": 1, "float8": 2}  # as native/products.h numbers them
BLOCK, LANES = 32, 16  # columns that are rounded together; of a vector of numbers
VECTOR = 16  # bytes of a row that are read together


class Input(ctypes.Structure):
    """`Input` of native/products.h."""

    _fields_ = (
        ("order", ctypes.c_void_p), ("group", ctypes.c_int64), ("grid", ctypes.c_int32), ("scale", ctypes.c_float),
        ("ceiling", ctypes.c_float),
    )  # fmt: skip


class Run(ctypes.Structure):
    """`Run` of native/products.h."""

    _fields_ = (("parts", ctypes.c_void_p), ("input", ctypes.c_void_p), ("num_parts", ctypes.c_int64))


class Given(NamedTuple):
    """What is done to the activations that a matrix is multiplied by."""

    order: Tensor | None = None  # int64 [columns]: which of them each column of the matrix is
    rounding: Rounding | None = None

    def is_same(self, other: Given) -> bool:
        one, two = self.order, other.order
        has_order = one is two or (one is not None and two is not None and torch.equal(one, two))
        return has_order and self.rounding == other.rounding


class Codes(NamedTuple):
    """A matrix of codes, and what is pointed to besides."""

    matrix: Scaled
    scales: Tensor
    zeros: Tensor | None


def fits(matrix: Scaled, rounding: Rounding | None) -> bool:
    """Whether compiled code multiplies by the matrix, whose input is rounded so."""
    name, is_integer = matrix.type.name, matrix.type.name != "float8"
    if name not in CODES or matrix.scales.dtype not in SCALES:
        return False
    if is_integer and (matrix.num_rows < LANES or matrix.data.shape[1] < VECTOR):
        return False
    if name in TABLES and not (rounding is None and matrix.zeros is None):
        return False
    width = BLOCK if is_integer else LANES
    has_groups = matrix.num_columns % width == 0 and (matrix.block[1] >= matrix.num_columns or matrix.block[1] % width == 0)
    return has_groups and _takes(rounding, "int8" if is_integer else "float8", width)


def _takes(rounding: Rounding | None, grid: str, width: int) -> bool:
    """Zero points of inputs are not taken, and no other grid than that of the codes."""
    if rounding is None:
        return True
    is_whole = rounding.group is None or rounding.group % width == 0
    return rounding.grid == grid and is_whole and rounding.is_symmetric and rounding.zero is None


def input_of(given: Given, num_columns: int) -> Input | None:
    """None: activations as they are, or rounded as for blocks."""
    order, rounding = given
    if order is None and rounding is None:
        return None
    place = None if order is None else order.data_ptr()
    if rounding is None:
        return Input(place, BLOCK, GRIDS[None], 0.0, math.inf)
    group = num_columns if rounding.group is None or rounding.scale is not None else rounding.group
    scale = 0.0 if rounding.scale is None else rounding.scale.item()
    return Input(place, group, GRIDS[rounding.grid], scale, math.inf if rounding.ceiling is None else rounding.ceiling)


def codes_of(matrix: Scaled) -> Codes:
    """Scales and zero points with a row for each row of the matrix, or one for all."""
    return Codes(matrix, _by_row(matrix, matrix.scales), None if matrix.zeros is None else _by_row(matrix, matrix.zeros))


def _by_row(matrix: Scaled, of_blocks: Tensor) -> Tensor:
    height = matrix.block[0]
    if height == 1:
        return of_blocks
    rows = of_blocks.shape[0]
    return of_blocks.expand(matrix.num_rows, -1) if rows == 1 else of_blocks.repeat_interleave(height, dim=0)[: matrix.num_rows]


def table_entry(codes: Codes, first_column: int) -> Matrix:
    (matrix, scales, zeros), data = codes, codes.matrix.data
    number, group = TYPES.index(CODES[matrix.type.name]), min(matrix.block[1], matrix.num_columns)
    steps = [scales.element_size() * scales.stride(axis) for axis in (0, 1)]
    steps += [0, 0] if zeros is None else [zeros.stride(0), zeros.stride(1)]
    return Matrix(
        data.data_ptr(), matrix.num_rows, matrix.num_columns, data.stride(0), number, first_column, scales.data_ptr(),
        None if zeros is None else zeros.data_ptr(), *steps, group, TYPES.index(SCALES[scales.dtype]), matrix.type.name == "uint8",
    )  # fmt: skip
