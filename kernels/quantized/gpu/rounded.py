"""Products of codes with codes: inputs rounded to int8 or e4m3, row by row, times weights of 8 bits, as tensor cores multiply them.

`round_kernel` finds the scales of the inputs and writes their codes, `rounded_kernel` multiplies. Sums of integers are exact; those
of e4m3 leave the tensor core, which sums in few bits, after each BLOCK_K columns.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...triton_support import INTERPRETED, has_float8, rounded_to_fp8
from ..codes import Scaled
from ..rounding import EPSILON, Rounding
from .code_tiles import codes_at, float8_numbers
from .product import BLOCK_N, FAR, readable_scales, splits_of, store_tile, tile_of, values_kind

BLOCK_K = 128
ROUND_BLOCK = 1024  # columns that `round_kernel` reads at a time


class Rounded(NamedTuple):
    """Rows of inputs: (codes - zeros) * scales."""

    codes: Tensor  # int8 or e4m3 [num_rows, columns]
    scales: Tensor  # float32 [num_rows, groups]
    zeros: Tensor | None  # float32, as scales
    width: int  # columns of a group


@triton.jit
def _rounded(numbers):
    """To the nearest integer, of two the even one, of numbers below 2 ** 22."""
    return (numbers + 12582912.0) - 12582912.0


@triton.jit
def round_kernel(
    x,  # [num_rows, num_columns], rows x_stride apart
    codes,  # int8 or e4m3 [num_rows, num_columns]
    scales,  # float32 [num_rows, number of groups]; written
    zeros,  # float32 as scales, or None: all 0; written
    fixed_scale,  # float32 [1], or None: found for each group
    fixed_zero,  # float32 [1], or None
    x_stride,
    num_columns,
    width,  # of a group
    ceiling,  # no number counts as larger
    LEAST: tl.constexpr,  # of the grid
    MOST: tl.constexpr,
    EPS: tl.constexpr,  # the scale of zeros
    BLOCK: tl.constexpr,
):
    """The codes of one group of columns of one row, by the formulas of `rounding.Rounding`.

    Launched by `round_rows` with the grid (num_rows, number of groups).
    """
    row, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    place = row * tl.num_programs(1) + group
    begin = group * width
    stop = tl.minimum(begin + width, num_columns)
    source, target = x + row * x_stride, codes + row * num_columns
    zero = 0.0
    if fixed_scale is not None:
        scale = tl.load(fixed_scale)
        if fixed_zero is not None:
            zero = tl.load(fixed_zero)
    else:
        low, high = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        is_nan = tl.zeros((BLOCK,), tl.int32)
        for first in range(begin, stop, BLOCK):
            k = first + tl.arange(0, BLOCK)
            numbers = tl.load(source + k, mask=k < stop, other=0.0).to(tl.float32)
            low, high = tl.minimum(low, numbers), tl.maximum(high, numbers)
            is_nan |= (numbers != numbers).to(tl.int32)
        least, most = tl.min(low, 0), tl.max(high, 0)
        if zeros is None:
            scale = tl.div_rn(tl.minimum(tl.maximum(-least, most), ceiling), (MOST - LEAST) / 2)
        else:
            scale = tl.div_rn(most - least, MOST - LEAST)
        scale = tl.where(scale == 0.0, EPS, scale)
        scale = tl.where(tl.max(is_nan, 0) > 0, float("nan"), scale)
        if zeros is not None:
            zero = _rounded(tl.minimum(tl.maximum(LEAST - tl.div_rn(least, scale), LEAST), MOST))
    tl.store(scales + place, scale)
    if zeros is not None:
        tl.store(zeros + place, zero)
    for first in range(begin, stop, BLOCK):
        k = first + tl.arange(0, BLOCK)
        numbers = tl.load(source + k, mask=k < stop, other=0.0).to(tl.float32)
        found = tl.div_rn(numbers, tl.zeros((BLOCK,), tl.float32) + scale) + zero
        found = tl.clamp(found, LEAST, MOST, propagate_nan=tl.PropagateNan.ALL)
        if MOST == 127.0:
            found = _rounded(tl.where(found == found, found, 0.0))  # the scale says that it is none
        elif INTERPRETED:
            found = rounded_to_fp8(found)
        tl.store(target + k, found.to(codes.dtype.element_ty), mask=k < stop)


@triton.jit
def _dot(weights, inputs, total, BLOCK_K: tl.constexpr):
    """total + weights @ inputs, of int8 in int32, or of uint8 that are e4m3 in float32."""
    if total.dtype == tl.int32:
        return tl.dot(weights, inputs, total, out_dtype=tl.int32)
    elif INTERPRETED:
        return tl.dot(float8_numbers(weights), float8_numbers(inputs), total)
    else:
        codes = weights.to(tl.float8e4nv, bitcast=True), inputs.to(tl.float8e4nv, bitcast=True)
        return tl.dot(codes[0], codes[1], total, max_num_imprecise_acc=BLOCK_K)


@triton.jit(do_not_specialize=["num_rows"])
def rounded_kernel(
    codes,  # int8, or uint8 that are e4m3 [num_rows, num_columns]
    x_scales,  # float32 [num_rows, x_groups]
    x_zeros,  # float32, as x_scales, or None
    data,  # uint8 [matrix_rows, row_bytes]
    scales,  # floating point [ceil(matrix_rows / height), scale_stride]
    out,  # [SPLITS, num_rows, matrix_rows]
    x_groups,
    x_width,
    row_bytes,
    scale_stride,
    height,
    width,
    num_rows,
    matrix_rows,
    num_columns,
    chunk,  # columns of a split, a multiple of BLOCK_K
    VALUES: tl.constexpr,
    IS_GROUPED: tl.constexpr,  # whether scales differ along a row; widths are multiples of BLOCK_K then
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out[split, m, n] = the part of <x_m, w_n> that falls to the split, where both are codes.

    Launched by `multiply_rounded` with the grid (matrix_rows / BLOCK_N, num_rows / BLOCK_M, SPLITS).
    """
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    is_row = row < num_rows
    matrix_row = tl.minimum(column, matrix_rows - 1).to(tl.int64)
    packed_row = data + matrix_row[:, None] * row_bytes
    scale_row = scales + (matrix_row // height) * scale_stride
    given_row = tl.minimum(row, num_rows - 1)
    code_row, given = codes + given_row * num_columns, given_row * x_groups
    SUM: tl.constexpr = tl.float32 if VALUES == "float8" else tl.int32
    nothing = tl.zeros((BLOCK_N, BLOCK_M), SUM)
    sums, weight_sums, total = nothing, tl.zeros((BLOCK_N,), tl.int32), tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    begin = tl.program_id(2) * chunk
    for first in range(begin, tl.minimum(begin + chunk, num_columns), BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        inside = k < num_columns
        inputs = tl.load(code_row[None, :] + k[:, None], mask=inside[:, None] & is_row[None, :], other=0)
        weights = codes_at(packed_row, first, row_bytes, num_columns, 8, BLOCK_K).to(tl.uint8)
        if VALUES == "unsigned":  # counted from 128, which turns the highest bit
            weights = tl.where(inside[None, :], weights ^ 128, 0).to(tl.uint8)
        if VALUES != "float8":
            weights = weights.to(tl.int8, bitcast=True)
        if IS_GROUPED:
            found = _dot(weights, inputs, nothing, BLOCK_K).to(tl.float32)
            x_place = given + first // x_width
            if x_zeros is not None:
                zero = tl.load(x_zeros + x_place)
                found -= tl.sum(weights.to(tl.int32), 1).to(tl.float32)[:, None] * zero[None, :]
            scale = tl.load(scale_row + first // width).to(tl.float32)
            total += found * scale[:, None] * tl.load(x_scales + x_place)[None, :]
        else:
            sums = _dot(weights, inputs, sums, BLOCK_K)
            if x_zeros is not None:
                weight_sums += tl.sum(weights.to(tl.int32), 1)
    if not IS_GROUPED:
        if x_zeros is not None:
            zero = tl.load(x_zeros + given).to(tl.int32)
            sums -= weight_sums[:, None] * zero[None, :]
        scale = tl.load(scale_row).to(tl.float32)
        total = sums.to(tl.float32) * scale[:, None] * tl.load(x_scales + given)[None, :]
    store_tile(total, out, row, is_row, column, num_rows, matrix_rows)


def can_multiply(matrix: Scaled, rounding: Rounding) -> bool:
    """Whether codes of this matrix can be multiplied by such inputs. Scales may change with tiles of columns only."""
    columns = matrix.num_columns
    if matrix.order is not None:
        return False
    fits = all(width >= columns or width % BLOCK_K == 0 for width in (matrix.block[1], rounding.group or columns))
    if rounding.grid == "float8":
        is_float8 = matrix.type.name == "float8" and rounding.is_symmetric and rounding.zero is None
        return fits and is_float8 and (bool(INTERPRETED.value) or has_float8(matrix.data.device))
    return fits and matrix.type.name in ("int8", "uint8") and matrix.zeros is None


def round_rows(x: Tensor, rounding: Rounding) -> Rounded:
    """x [num_rows, columns] on a grid."""
    x = x if x.stride(1) == 1 else x.contiguous()
    num_rows, columns = x.shape
    width = columns if rounding.group is None or rounding.scale is not None else min(rounding.group, columns)
    groups = triton.cdiv(columns, width)
    codes = torch.empty(x.shape, dtype=torch.int8 if rounding.grid == "int8" else torch.float8_e4m3fn, device=x.device)
    scales = x.new_empty((num_rows, groups), dtype=torch.float32)
    has_zeros = rounding.zero is not None or (rounding.scale is None and not rounding.is_symmetric)
    zeros = torch.empty_like(scales) if has_zeros else None
    least, most = rounding.range
    round_kernel[(num_rows, groups)](
        x, codes, scales, zeros, rounding.scale, rounding.zero, x.stride(0), columns, width,
        float("inf") if rounding.ceiling is None else rounding.ceiling, LEAST=least, MOST=most, EPS=EPSILON,
        BLOCK=min(ROUND_BLOCK, triton.next_power_of_2(width)),
    )  # fmt: skip
    return Rounded(codes, scales, zeros, FAR if width >= columns else width)


def multiply_rounded(x: Tensor, matrix: Scaled, rounding: Rounding) -> Tensor:
    """(x on its grid) W^T in the dtype of x, of columns in the order of the codes; `can_multiply` says for what."""
    given, values = round_rows(x, rounding), values_kind(matrix.type.name)
    num_rows, columns = x.shape
    tile = tile_of(num_rows, BLOCK_K, BLOCK_K)
    splits = splits_of(num_rows, matrix.num_rows, columns, tile)
    chunk = triton.cdiv(triton.cdiv(columns, splits), BLOCK_K) * BLOCK_K
    out = x.new_empty((splits, num_rows, matrix.num_rows), dtype=x.dtype if splits == 1 else torch.float32)
    data, scales = matrix.data.contiguous(), readable_scales(matrix)
    width = FAR if matrix.block[1] >= columns else matrix.block[1]
    codes = given.codes if values != "float8" else given.codes.view(torch.uint8)
    rounded_kernel[(triton.cdiv(matrix.num_rows, BLOCK_N), triton.cdiv(num_rows, tile.block_m), splits)](
        codes, given.scales, given.zeros, data, scales, out, given.scales.shape[1], given.width, data.shape[1],
        scales.shape[1], matrix.block[0], width, num_rows, matrix.num_rows, columns, chunk,
        VALUES=values, IS_GROUPED=min(width, given.width) < FAR, BLOCK_M=tile.block_m, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        num_warps=tile.num_warps,
    )  # fmt: skip
    return out[0] if splits == 1 else out.sum(dim=0).to(x.dtype)
