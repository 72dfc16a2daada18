"""What the compiled products compute, bit by bit, in plain NumPy: slow, and obvious.

Integers are exact in any order. Sums of floating-point numbers are written down in the order that native/kernel.h promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..quantized.block_values import IQ4_NL_VALUES, MXFP4_VALUES

BLOCK = 32  # activations that share a scale
NO_SMALLER = np.float32(1e-30)  # a block whose largest number is smaller counts as zeros

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Rounded(NamedTuple):
    """Activations [rows, columns] as integers of 8 bits, about scale * quants."""

    quants: Integers  # [rows, columns / 32, 32], from -127 to 127
    scales: Floats  # [rows, columns / 32]


class Integral(NamedTuple):
    """A matrix of blocks as integers: weight = scale * quant + minimum."""

    quants: Integers  # [rows, columns]
    scales: Floats  # [rows, groups], each for columns / groups of a row
    minima: Floats | None


def rounded(x: Floats) -> Rounded:
    """The largest of 32 becomes 127, halves go to the even neighbour."""
    blocks = x.reshape(len(x), -1, BLOCK)
    largest = np.abs(blocks).max(axis=2)
    is_zero = largest < NO_SMALLER
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(is_zero, np.float32(0), np.float32(127) / largest)
    scales = np.where(is_zero, np.float32(0), largest / np.float32(127))
    return Rounded(np.rint(blocks * inverse[..., None]).astype(np.int64), scales)


def multiply(x: Floats, name: str, data: Bytes) -> Floats:
    """[rows of x, rows of the matrix]: x W^T for a matrix of blocks, raw uint8 [rows, row_bytes]."""
    if name in FLOATS:
        return _multiply_floats(x, FLOATS[name](data))
    return _multiply_integers(rounded(x), UNPACKERS[name](data))


def _multiply_integers(activations: Rounded, matrix: Integral) -> Floats:
    num_rows, num_groups = len(matrix.quants), matrix.scales.shape[1]
    in_groups = activations.quants.reshape(len(activations.quants), num_groups, -1)
    weights = matrix.quants.reshape(num_rows, num_groups, -1)
    exact = np.einsum("xgi,wgi->gxw", in_groups, weights).astype(np.float32)
    sums = in_groups.sum(axis=2).astype(np.float32)
    scales = activations.scales.repeat(num_groups // activations.scales.shape[1], axis=1)
    y = np.zeros((len(in_groups), num_rows), np.float32)
    for group in range(num_groups):
        scale = scales[:, group, None]
        y = fma(matrix.scales[:, group] * scale, exact[group], y)
        if matrix.minima is not None:
            y = fma(matrix.minima[:, group], scale * sums[:, group, None], y)
    return y


class Codes(NamedTuple):
    """A matrix of codes with scales of one row and `group` columns each: (code - zero point) * scale."""

    codes: Integers  # [rows, columns]; of small floats their numbers, float32
    scales: Floats  # [rows, groups]
    zeros: Integers  # [rows, groups]
    group: int


def multiply_codes(given: Floats | Rounded, matrix: Codes) -> Floats:
    """Integers times integers; small floats times activations as they are."""
    if not isinstance(given, Rounded):
        scales = np.float32(256) * matrix.scales.repeat(matrix.group, axis=1)[:, : matrix.codes.shape[1]]
        return _multiply_floats(given, (matrix.codes / np.float32(256)).astype(np.float32) * scales)
    num_columns = matrix.codes.shape[1]
    quants = matrix.codes - matrix.zeros.repeat(matrix.group, axis=1)[:, :num_columns]
    return _multiply_integers(given, Integral(quants, matrix.scales.repeat(matrix.group, axis=1)[:, :num_columns:BLOCK], None))


def of_table(name: str, numbers: Floats, scales: Floats) -> tuple[Integers, Floats]:
    """Codes that stand for numbers of a table, "float4" or "nf4", as integers, and the scales of these."""
    factor = {"float4": 2, "nf4": 32512}[name]  # halves are whole then; the second is 127 * 256: two tables of bytes
    return np.rint(numbers.astype(np.float64) * factor).astype(np.int64), scales * (np.float32(1) / np.float32(factor))


def on_int8_grid(x: Floats, group: int, scale: float | None = None) -> Rounded:
    """`kernels/quantized/rounding.py`, a scale for each BLOCK."""
    rounded, scales = np.zeros_like(x), np.zeros_like(x)
    for begin in range(0, x.shape[1], group):
        part = x[:, begin : begin + group]
        largest = np.abs(part).max(axis=1, keepdims=True)
        found = largest / np.float32(127.5) if scale is None else np.full_like(largest, scale)
        found = np.where(found == 0, np.finfo(np.float32).eps, found)
        rounded[:, begin : begin + group] = np.rint(np.clip(part / found, -128, 127))
        scales[:, begin : begin + group] = found
    return Rounded(rounded.astype(np.int64).reshape(len(x), -1, BLOCK), scales[:, ::BLOCK])


def _multiply_floats(x: Floats, weights: Floats) -> Floats:
    """Sixteen partial sums, of every sixteenth column each; then halves are added to halves."""
    columns = -(-x.shape[1] // 16) * 16
    x, weights = (np.pad(matrix, ((0, 0), (0, columns - matrix.shape[1]))) for matrix in (x, weights))
    y = np.zeros((len(x), len(weights), 16), np.float32)
    for begin in range(0, columns, 16):
        y = fma(x[:, None, begin : begin + 16], weights[None, :, begin : begin + 16], y)
    for width in (8, 4, 2, 1):
        y = y[..., :width] + y[..., width : 2 * width]
    return y[..., 0]


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c, rounded once.

    The product of two float32 is exact in float64. Their sum is rounded to odd there: where it is not exact the last bit is set, so
    that rounding it again to float32 (29 bits less) cannot take it for a tie.
    """
    product, addend = np.broadcast_arrays(a.astype(np.float64) * b, c.astype(np.float64))
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)  # Knuth's exact error of a sum
    is_even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    odd = np.where((error != 0) & is_even & np.isfinite(total), np.nextafter(total, towards), total)
    return odd.astype(np.float32)


# ---- blocks as integers, from the layouts of `gguf.quants`


def _blocks(data: Bytes, num_bytes: int) -> Bytes:
    """[rows, blocks, num_bytes]"""
    return data.reshape(len(data), -1, num_bytes)


def _half(blocks: Bytes, at: int) -> Floats:
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16).astype(np.float32)[..., 0]


def _nibbles(packed: Bytes) -> Integers:
    """The low halves of all bytes of the last axis, then the high ones."""
    return np.concatenate((packed & 15, packed >> 4), axis=-1).astype(np.int64)


def _bits(packed: Bytes) -> Integers:
    return np.unpackbits(packed, axis=-1, bitorder="little").astype(np.int64)


def _of_32(quants: Integers, scales: Floats, minima: Floats | None = None) -> Integral:
    return Integral(quants.reshape(len(quants), -1), scales, minima)


def _q4_0(data: Bytes) -> Integral:
    blocks = _blocks(data, 18)
    return _of_32(_nibbles(blocks[..., 2:]) - 8, _half(blocks, 0))


def _q4_1(data: Bytes) -> Integral:
    blocks = _blocks(data, 20)
    return _of_32(_nibbles(blocks[..., 4:]), _half(blocks, 0), _half(blocks, 2))


def _q5_0(data: Bytes) -> Integral:
    blocks = _blocks(data, 22)
    return _of_32((_nibbles(blocks[..., 6:]) | _bits(blocks[..., 2:6]) << 4) - 16, _half(blocks, 0))


def _q5_1(data: Bytes) -> Integral:
    blocks = _blocks(data, 24)
    return _of_32(_nibbles(blocks[..., 8:]) | _bits(blocks[..., 4:8]) << 4, _half(blocks, 0), _half(blocks, 2))


def _q8_0(data: Bytes) -> Integral:
    blocks = _blocks(data, 34)
    return _of_32(blocks[..., 2:].view(np.int8).astype(np.int64), _half(blocks, 0))


def _iq4_nl(data: Bytes) -> Integral:
    blocks = _blocks(data, 18)
    return _of_32(np.array(IQ4_NL_VALUES)[_nibbles(blocks[..., 2:])], _half(blocks, 0))


def _mxfp4(data: Bytes) -> Integral:
    blocks = _blocks(data, 17)
    scales = np.ldexp(np.float32(1), blocks[..., 0].astype(np.int32) - 128).astype(np.float32)
    return _of_32(np.array(MXFP4_VALUES)[_nibbles(blocks[..., 1:])], scales)


def _two_bits(packed: Bytes, shifts: int) -> Integers:
    """Fields of 2 bits of [..., runs, 32] bytes: of each run all lowest fields, then the second ones: [..., runs * shifts * 32]."""
    fields = (packed[..., :, None, :] >> (np.arange(shifts, dtype=np.uint8) * 2)[:, None]) & 3
    return fields.reshape(*packed.shape[:-2], -1).astype(np.int64)


def _k(quants: Integers, factor: Floats, scales: Integers, least: Floats | None = None, minima: Integers | None = None) -> Integral:
    """Blocks of 256: quants [rows, blocks, 256], scales and minima [rows, blocks, groups] times one factor a block."""
    rows = len(quants)
    scaled = (factor[..., None] * scales.astype(np.float32)).reshape(rows, -1)
    if least is None or minima is None:
        return Integral(quants.reshape(rows, -1), scaled, None)
    return Integral(quants.reshape(rows, -1), scaled, (-least[..., None] * minima.astype(np.float32)).reshape(rows, -1))


def _q2_k(data: Bytes) -> Integral:
    blocks = _blocks(data, 84)
    quants = _two_bits(blocks[..., 16:80].reshape(*blocks.shape[:2], 2, 32), 4)
    scales = blocks[..., :16].astype(np.int64)
    return _k(quants, _half(blocks, 80), scales & 15, _half(blocks, 82), scales >> 4)


def _q3_k(data: Bytes) -> Integral:
    blocks = _blocks(data, 110)
    low = _two_bits(blocks[..., 32:96].reshape(*blocks.shape[:2], 2, 32), 4)
    high = (blocks[..., None, :32] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    quants = low | high.reshape(low.shape).astype(np.int64) << 2
    first = _nibbles(blocks[..., 96:104])
    rest = (blocks[..., None, 104:108] >> (np.arange(4, dtype=np.uint8) * 2)[:, None]) & 3
    return _k(quants - 4, _half(blocks, 108), (first | rest.reshape(first.shape).astype(np.int64) << 4) - 32)


def _six_bits(packed: Bytes) -> tuple[Integers, Integers]:
    """Eight scales and eight minima out of twelve bytes."""
    first, second, rest = (packed[..., begin : begin + 4].astype(np.int64) for begin in (0, 4, 8))
    scales = np.concatenate((first & 63, (rest & 15) | (first >> 6) << 4), axis=-1)
    return scales, np.concatenate((second & 63, (rest >> 4) | (second >> 6) << 4), axis=-1)


def _q4_k(data: Bytes) -> Integral:
    blocks = _blocks(data, 144)
    scales, minima = _six_bits(blocks[..., 4:16])
    quants = _nibbles(blocks[..., 16:].reshape(*blocks.shape[:2], 4, 32))
    return _k(quants.reshape(*blocks.shape[:2], 256), _half(blocks, 0), scales, _half(blocks, 2), minima)


def _q5_k(data: Bytes) -> Integral:
    blocks = _blocks(data, 176)
    scales, minima = _six_bits(blocks[..., 4:16])
    low = _nibbles(blocks[..., 48:].reshape(*blocks.shape[:2], 4, 32)).reshape(*blocks.shape[:2], 8, 32)
    high = (blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    quants = (low | high.astype(np.int64) << 4).reshape(*blocks.shape[:2], 256)
    return _k(quants, _half(blocks, 0), scales, _half(blocks, 2), minima)


def _q6_k(data: Bytes) -> Integral:
    blocks = _blocks(data, 210)
    low = _nibbles(blocks[..., :128].reshape(*blocks.shape[:2], 2, 64)).reshape(*blocks.shape[:2], 256)
    high = _two_bits(blocks[..., 128:192].reshape(*blocks.shape[:2], 2, 32), 4)
    scales = blocks[..., 192:208].view(np.int8).astype(np.int64)
    return _k((low | high << 4) - 32, _half(blocks, 208), scales)


UNPACKERS: Mapping[str, Callable[[Bytes], Integral]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "IQ4_NL": _iq4_nl,
    "MXFP4": _mxfp4,
}
FLOATS: Mapping[str, Callable[[Bytes], Floats]] = {
    "F32": lambda data: data.view(np.float32),
    "F16": lambda data: data.view(np.float16).astype(np.float32),
    "BF16": lambda data: (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32),
}
