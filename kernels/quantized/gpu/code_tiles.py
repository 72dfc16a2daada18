"""Codes with scales as numbers inside of a Triton kernel: what `scaled_reference.py` computes, a tile at a time."""

from __future__ import annotations

import triton
import triton.language as tl

from .block_tiles import e2m1


@triton.jit
def float8_numbers(codes):
    """e4m3: sign, exponent and fraction where float32 has them, times what is between the exponents. 127 is no number."""
    code = codes.to(tl.int32)
    rest = code & 127
    bits = (code & 128) << 24 | tl.where(rest < 127, rest << 20, 0x7FC00000)
    return bits.to(tl.float32, bitcast=True) * 1.329227995784916e36  # 2 ** 120


@triton.jit
def codes_at(row, first, row_bytes, num_columns, BITS: tl.constexpr, BLOCK_K: tl.constexpr):
    """The BLOCK_K codes from column `first`, a multiple of BLOCK_K, on: int32 [rows, BLOCK_K]; 0 or any behind the last column.

    row: pointers to the first bytes of rows [rows, 1].
    """
    if BITS == 8:
        k = first + tl.arange(0, BLOCK_K)[None, :]
        return tl.load(row + k, mask=k < num_columns, other=0).to(tl.int32)
    elif BITS == 4:
        k = first // 2 + tl.arange(0, BLOCK_K // 2)[None, :]
        pairs = tl.load(row + k, mask=k < row_bytes, other=0).to(tl.int32)
        return tl.join(pairs & 15, pairs >> 4).reshape(row.shape[0], BLOCK_K)
    elif BITS == 2:
        k = first // 4 + tl.arange(0, BLOCK_K // 4)[None, :]
        fours = tl.load(row + k, mask=k < row_bytes, other=0).to(tl.int32)
        even, odd = tl.join(fours & 3, (fours >> 4) & 3), tl.join((fours >> 2) & 3, fours >> 6)
        return tl.join(even, odd).reshape(row.shape[0], BLOCK_K)
    else:  # a code may reach into the next byte
        bit = (first + tl.arange(0, BLOCK_K)[None, :]) * BITS
        byte = bit // 8
        low = tl.load(row + byte, mask=byte < row_bytes, other=0).to(tl.int32)
        high = tl.load(row + byte + 1, mask=byte + 1 < row_bytes, other=0).to(tl.int32)
        return ((low | high << 8) >> bit % 8) & ((1 << BITS) - 1)


@triton.jit
def code_numbers(codes, table, VALUES: tl.constexpr):
    """What codes are before zero point and scale, float32. `table`: float32 [16], of codes that are none of the others."""
    if VALUES == "unsigned":
        return codes.to(tl.float32)
    elif VALUES == "signed":
        return (codes - ((codes >> 7) << 8)).to(tl.float32)
    elif VALUES == "float8":
        return codes.to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32)
    elif VALUES == "float8 bits":  # where there are no instructions for it
        return float8_numbers(codes)
    elif VALUES == "float4":
        return e2m1(codes)
    else:
        tl.static_assert(VALUES == "table")
        return tl.load(table + codes)
