"""Products with packed matrices: a tile of weights becomes numbers in registers, and is multiplied at once.

A program computes [BLOCK_N, BLOCK_M] of the product's transpose, W x^T, since only the first factor of Hopper's matrix product may
come from registers. With few rows of x it is bound by reading W, which is read once; where W has few rows, the columns are divided
among SPLITS programs, whose sums are kept apart and added in one order. With many rows each weight is decoded once for BLOCK_M of
them. Nothing is asked of the device, and what is launched depends on shapes alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...moe.gpu.experts import Blocks
from ...triton_support import dot, has_float8
from ..blocks import Packed
from ..codes import CodeType, Scaled
from ..scaled_reference import values_of
from .block_tiles import RUNS, block_tile
from .code_tiles import code_numbers, codes_at

BLOCK_N = 64
PROGRAMS = 264  # two for each multiprocessor of an H100 or H200: fewer leave memory idle
LEAST_STEPS = 4  # tiles of columns in a split
MOST_SPLITS = 16
FAR = 1 << 30  # a block that is as wide as a row
ALIGNMENT = {"F32": 4, "MXFP4": 1}  # bytes; of others 2
SCALES = (torch.float32, torch.float16, torch.bfloat16)  # that a kernel reads


class Tile(NamedTuple):
    block_m: int  # rows of x
    block_k: int  # columns
    num_warps: int


def tile_of(num_rows: int, few: int, many: int) -> Tile:
    """By the rows of x; `few` columns where these are at most 16, else `many`."""
    if num_rows <= 16:
        return Tile(16, few, 4)
    return Tile(64, many, 4) if num_rows <= 64 else Tile(128, many, 8)


def blocks_tile(kind: str, num_rows: int) -> Tile:
    return tile_of(num_rows, 128, max(64, RUNS[kind]))


def codes_tile(kind: CodeType, num_rows: int) -> Tile:
    is_dear = kind.bits not in (2, 4, 8) or values_kind(kind.name) == "table"  # decoding takes many registers
    return tile_of(num_rows, 64 if is_dear else 128, 64)


def splits_of(num_rows: int, matrix_rows: int, columns: int, tile: Tile) -> int:
    """Programs that share the columns, a power of two. More than one only where few rows of x make a product wait for memory."""
    programs = triton.cdiv(matrix_rows, BLOCK_N) * triton.cdiv(num_rows, tile.block_m)
    steps, splits = triton.cdiv(columns, tile.block_k), 1
    while splits < MOST_SPLITS and programs * splits * 2 <= PROGRAMS and steps >= 2 * splits * LEAST_STEPS:
        splits *= 2
    return splits


@triton.jit
def _inputs(x_row, first, is_row, num_columns, BLOCK_K: tl.constexpr):
    """x^T of some columns, [BLOCK_K, BLOCK_M]; 0 behind the last row and column."""
    k = first + tl.arange(0, BLOCK_K)
    return tl.load(x_row[None, :] + k[:, None], mask=(k < num_columns)[:, None] & is_row[None, :], other=0.0)


@triton.jit
def store_tile(total, out, row, is_row, column, num_rows, matrix_rows):
    """total [BLOCK_N, BLOCK_M] into out [splits, num_rows, matrix_rows]."""
    split = tl.program_id(2).to(tl.int64)
    target = out + (split * num_rows + row)[None, :] * matrix_rows + column[:, None]
    tl.store(target, total.to(out.dtype.element_ty), mask=is_row[None, :] & (column < matrix_rows)[:, None])


@triton.jit
def _rows(blocks, num_rows, BLOCK_M: tl.constexpr):
    """(rows of the product, rows of x, whether they are there, number of the matrix) of this program."""
    if blocks is None:
        row = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        return row, row, row < num_rows, tl.program_id(1).to(tl.int64) * 0
    else:
        block = tl.program_id(1)
        row = tl.load(blocks.first + block) + tl.arange(0, BLOCK_M)
        is_row = row < tl.load(blocks.stop + block)
        return row, tl.load(blocks.pairs + row, mask=is_row, other=0), is_row, tl.load(blocks.expert + block)


@triton.jit(do_not_specialize=["num_rows"])
def blocks_kernel(
    x,  # [num_rows, num_columns], rows x_stride apart
    data,  # uint8 [matrix_rows, row_bytes], of several matrices one under another
    blocks: Blocks,  # which rows of x are multiplied by which matrix, or None: all, by one
    out,  # [SPLITS, num_rows, matrix_rows], with blocks as many rows as there are pairs
    x_stride,
    row_bytes,
    num_rows,
    matrix_rows,
    num_columns,
    chunk,  # columns of a split, a multiple of BLOCK_K
    KIND: tl.constexpr,
    RUN: tl.constexpr,  # divides BLOCK_K: see `block_tile`
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out[split, m, n] = the part of <x_m, w_n> that falls to the split, of a matrix in blocks of GGUF.

    Launched by `multiply_blocks` with the grid (matrix_rows / BLOCK_N, num_rows / BLOCK_M, SPLITS).
    """
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    row, given, is_row, matrix = _rows(blocks, num_rows, BLOCK_M)
    packed_row = data + (matrix * matrix_rows + tl.minimum(column, matrix_rows - 1))[:, None, None] * row_bytes
    x_row = x + given * x_stride
    begin = tl.program_id(2) * chunk
    end = tl.minimum(begin + chunk, num_columns)
    if blocks is not None:
        end = tl.where(tl.sum(is_row.to(tl.int32), 0) > 0, end, begin)
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for first in range(begin, end, BLOCK_K):
        weights = block_tile(packed_row, first, num_columns, KIND, RUN, BLOCK_K).to(x.dtype.element_ty)
        total = dot(weights, _inputs(x_row, first, is_row, num_columns, BLOCK_K), total, "ieee")
    store_tile(total, out, row, is_row, column, num_rows, matrix_rows)


@triton.jit(do_not_specialize=["num_rows"])
def codes_kernel(
    x,  # [num_rows, num_columns], rows x_stride apart
    data,  # uint8 [matrix_rows, row_bytes], of several matrices one under another
    scales,  # floating point [ceil(matrix_rows / height), scale_stride], likewise
    zeros,  # uint8, as scales, or None
    table,  # float32 [16], or None: see `code_numbers`
    blocks: Blocks,  # as in `blocks_kernel`, or None
    out,  # as there
    x_stride,
    row_bytes,
    scale_stride,
    height,  # of the blocks that have a scale
    width,
    num_rows,
    matrix_rows,
    num_columns,
    chunk,  # columns of a split, a multiple of BLOCK_K
    BITS: tl.constexpr,
    VALUES: tl.constexpr,
    MIDDLE: tl.constexpr,  # the zero point where there are no `zeros`
    GROUP: tl.constexpr,  # columns of a tile that surely have one scale: divides width and BLOCK_K
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out[split, m, n] = the part of <x_m, w_n> that falls to the split, of a matrix of codes with scales.

    Launched by `multiply_codes` with the grid (matrix_rows / BLOCK_N, num_rows / BLOCK_M, SPLITS).
    """
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    row, given, is_row, matrix = _rows(blocks, num_rows, BLOCK_M)
    matrix_row = tl.minimum(column, matrix_rows - 1)
    packed_row = data + (matrix * matrix_rows + matrix_row)[:, None] * row_bytes
    scale_row = (matrix * tl.cdiv(matrix_rows, height) + matrix_row // height)[:, None, None] * scale_stride
    x_row = x + given * x_stride
    begin = tl.program_id(2) * chunk
    end = tl.minimum(begin + chunk, num_columns)
    if blocks is not None:
        end = tl.where(tl.sum(is_row.to(tl.int32), 0) > 0, end, begin)
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for first in range(begin, end, BLOCK_K):
        codes = codes_at(packed_row, first, row_bytes, num_columns, BITS, BLOCK_K)
        numbers = code_numbers(codes.reshape(BLOCK_N, BLOCK_K // GROUP, GROUP), table, VALUES)
        group = first + tl.arange(0, BLOCK_K // GROUP)[None, :, None] * GROUP
        place, is_there = scale_row + group // width, group < num_columns
        if zeros is not None:
            numbers -= tl.load(zeros + place, mask=is_there, other=0).to(tl.float32)
        elif MIDDLE != 0:
            numbers -= MIDDLE
        numbers *= tl.load(scales + place, mask=is_there, other=0.0).to(tl.float32)
        weights = numbers.to(x.dtype.element_ty).reshape(BLOCK_N, BLOCK_K)
        total = dot(weights, _inputs(x_row, first, is_row, num_columns, BLOCK_K), total, "ieee")
    store_tile(total, out, row, is_row, column, num_rows, matrix_rows)


class Stacked(NamedTuple):
    """Which rows of x are multiplied by which of `num_matrices` one under another: the rows `blocks.pairs`, in its order."""

    blocks: Blocks
    num_matrices: int
    block_m: int  # rows of a block


def multiply_blocks(x: Tensor, matrix: Packed, stack: Stacked | None = None) -> Tensor:
    """x W^T, [num_rows of x, num_rows of W], in the dtype of x [num_rows, columns].

    With `stack` the rows of W that each pair asks for, float32 [num_pairs, num_rows of W / num_matrices].
    """
    kind, data = matrix.type.name, matrix.data.contiguous()
    if data.data_ptr() % ALIGNMENT.get(kind, 2):
        data = data.clone()
    tile = blocks_tile(kind, len(x) if stack is None else stack.block_m)
    launch = _Launch(x, matrix.num_rows, matrix.num_columns, tile, stack)
    blocks_kernel[launch.grid](
        launch.x, data, launch.blocks, launch.out, launch.x.stride(0), data.shape[1], *launch.sizes,
        KIND=kind, RUN=RUNS[kind], **launch.constants,
    )  # fmt: skip
    return launch.product


def multiply_codes(x: Tensor, matrix: Scaled, stack: Stacked | None = None) -> Tensor:
    """x W^T, as `multiply_blocks`, of columns in the order of the codes."""
    kind = matrix.type
    tile = codes_tile(kind, len(x) if stack is None else stack.block_m)
    launch = _Launch(x, matrix.num_rows, matrix.num_columns, tile, stack)
    width = FAR if matrix.block[1] >= matrix.num_columns else matrix.block[1]
    values, data, scales = values_kind(kind.name), matrix.data.contiguous(), readable_scales(matrix)
    if values == "float8" and not has_float8(x.device):
        values = "float8 bits"
    zeros = None if matrix.zeros is None else matrix.zeros.contiguous()
    codes_kernel[launch.grid](
        launch.x, data, scales, zeros, values_of(kind.name, x.device) if values == "table" else None, launch.blocks,
        launch.out, launch.x.stride(0), data.shape[1], scales.shape[1], matrix.block[0], width, *launch.sizes,
        BITS=kind.bits, VALUES=values, MIDDLE=kind.middle, GROUP=min(width & -width, launch.tile.block_k), **launch.constants,
    )  # fmt: skip
    return launch.product


def readable_scales(matrix: Scaled) -> Tensor:
    """Powers of two (e8m0) become float32."""
    scales = matrix.scales.contiguous()
    return scales if scales.dtype in SCALES else scales.float()


def values_kind(name: str) -> str:
    """How `code_numbers` reads the codes of a type."""
    if name.startswith("uint"):
        return "unsigned"
    return {"int8": "signed", "float8": "float8", "float4": "float4"}.get(name, "table")


class _Launch:
    """What both products share."""

    def __init__(self, x: Tensor, matrix_rows: int, columns: int, tile: Tile, stack: Stacked | None) -> None:
        self.x = x if x.stride(1) == 1 else x.contiguous()
        self.tile, self.blocks = tile, None if stack is None else stack.blocks
        if stack is None:
            num_rows, programs, splits = len(x), triton.cdiv(len(x), tile.block_m), splits_of(len(x), matrix_rows, columns, tile)
        else:
            matrix_rows //= stack.num_matrices
            num_rows, programs, splits = len(stack.blocks.pairs), len(stack.blocks.expert), 1
        self.dtype = x.dtype if stack is None else torch.float32
        chunk = triton.cdiv(triton.cdiv(columns, splits), self.tile.block_k) * self.tile.block_k
        self.out = x.new_empty((splits, num_rows, matrix_rows), dtype=self.dtype if splits == 1 else torch.float32)
        self.grid = (triton.cdiv(matrix_rows, BLOCK_N), programs, splits)
        self.sizes = (num_rows, matrix_rows, columns, chunk)
        block_m, block_k, num_warps = self.tile
        self.constants = {"BLOCK_M": block_m, "BLOCK_N": BLOCK_N, "BLOCK_K": block_k, "num_warps": num_warps}

    @property
    def product(self) -> Tensor:
        return self.out[0] if len(self.out) == 1 else self.out.sum(dim=0).to(self.dtype)
