"""Blocks of GGUF as numbers inside of a Triton kernel: what `reference.py` computes, a tile at a time.

A tile of columns is cut in two ways: into groups, which have one scale, and into runs, whose codes share bytes. Every byte is read
once, and its fields are put one behind another in registers. Bytes may lie at any even address, of MXFP4 at any.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Columns in a run. Tiles have a multiple of that
RUNS = {
    "F32": 32, "F16": 32, "BF16": 32, "Q4_0": 32, "Q4_1": 32, "Q5_0": 32, "Q5_1": 32, "Q8_0": 32, "Q2_K": 128, "Q3_K": 128,
    "Q4_K": 64, "Q5_K": 64, "Q6_K": 128, "IQ4_NL": 32, "MXFP4": 32,
}  # fmt: skip


@triton.jit
def _byte(place):
    return tl.load(place).to(tl.int32)


@triton.jit
def _half(place):
    return tl.load(place.to(tl.pointer_type(tl.float16), bitcast=True)).to(tl.float32)


@triton.jit
def _word(place):
    """Four bytes at an even address."""
    halves = place.to(tl.pointer_type(tl.uint16), bitcast=True)
    return tl.load(halves).to(tl.int32) | (tl.load(halves + 1).to(tl.int32) << 16)


@triton.jit
def _along(COUNT: tl.constexpr):
    return tl.arange(0, COUNT)[None, None, :]


@triton.jit
def _two(first, second):
    """[rows, runs, n] one behind another: [rows, runs, 2 n]."""
    both = tl.join(first, second).permute(0, 1, 3, 2)
    return both.reshape(first.shape[0], first.shape[1], 2 * first.shape[2])


@triton.jit
def _four(a, b, c, d):
    both = tl.join(tl.join(a, c), tl.join(b, d)).permute(0, 1, 3, 4, 2)
    return both.reshape(a.shape[0], a.shape[1], 4 * a.shape[2])


@triton.jit
def _nibbles(place, COUNT: tl.constexpr):
    """Codes of 4 bits: of COUNT bytes the low halves, then the high ones."""
    pairs = _byte(place + _along(COUNT))
    return _two(pairs & 15, pairs >> 4)


@triton.jit
def _fields(place, STEP: tl.constexpr, MASK: tl.constexpr, shift):
    """Of 32 bytes four fields each, STEP bits apart: all first ones, then all second ones, ..."""
    bits = _byte(place + _along(32)) >> shift
    return _four(bits & MASK, (bits >> STEP) & MASK, (bits >> 2 * STEP) & MASK, (bits >> 3 * STEP) & MASK)


@triton.jit
def _fifth_bits(place):
    """The bits of a word, lowest first, each where the fifth bit of a code is."""
    return ((_word(place) >> _along(32)) & 1) << 4


@triton.jit
def _times(scales, codes):
    """scales [rows, groups, 1] times codes [rows, runs, n]: [rows, groups, size of a group]."""
    GROUP: tl.constexpr = codes.shape[1] * codes.shape[2] // scales.shape[1]
    return scales * codes.reshape(scales.shape[0], scales.shape[1], GROUP).to(tl.float32)


@triton.jit
def e2m1(codes):
    """Sign, exponent and fraction where float32 has them, times what is between the exponents."""
    bits = (codes & 7) << 22 | (codes & 8) << 28
    return bits.to(tl.float32, bitcast=True) * 8.507059173023462e37  # 2 ** 126


@triton.jit
def _iq4_nl(codes):
    """-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113: bytes of four words, lowest first."""
    low = tl.where((codes & 4) == 0, -1079142271, -152379953)
    high = tl.where((codes & 4) == 0, 639175937, 1901675829)
    word = tl.where(codes < 8, low, high)
    return ((word << 24 - (codes & 3) * 8) >> 24).to(tl.float32)


@triton.jit
def _scales_and_minima(block, part):
    """Of Q4_K and Q5_K: six bits each, of `part` 0 to 7 of a block."""
    scales = block + 4 + part % 4
    first, second, rest = _byte(scales), _byte(scales + 4), _byte(scales + 8)
    scale = tl.where(part < 4, first & 63, (rest & 15) | ((first >> 2) & 48))
    minimum = tl.where(part < 4, second & 63, (rest >> 4) | ((second >> 2) & 48))
    return _half(block) * scale.to(tl.float32), _half(block + 2) * minimum.to(tl.float32)


@triton.jit
def block_tile(row, first, num_columns, KIND: tl.constexpr, RUN: tl.constexpr, BLOCK_K: tl.constexpr):
    """The weights from column `first`, a multiple of BLOCK_K, on: float32 [rows, BLOCK_K], any finite ones behind the last column.

    row: pointers to the first bytes of rows [rows, 1, 1].
    """
    run = tl.minimum(first // RUN + tl.arange(0, BLOCK_K // RUN), num_columns // RUN - 1)[None, :, None]
    weights = _superblocks(row, run, first, num_columns, KIND, BLOCK_K) if RUN > 32 else _blocks(row, run, KIND)
    return weights.reshape(row.shape[0], BLOCK_K)


@triton.jit
def _blocks(row, number, KIND: tl.constexpr):
    """Blocks of 32 weights."""
    if KIND == "F32":
        return tl.load(row.to(tl.pointer_type(tl.float32), bitcast=True) + number * 32 + _along(32))
    elif KIND == "F16":
        return tl.load(row.to(tl.pointer_type(tl.float16), bitcast=True) + number * 32 + _along(32)).to(tl.float32)
    elif KIND == "BF16":
        return tl.load(row.to(tl.pointer_type(tl.bfloat16), bitcast=True) + number * 32 + _along(32)).to(tl.float32)
    elif KIND == "Q4_0":
        block = row + number * 18
        return _half(block) * (_nibbles(block + 2, 16) - 8).to(tl.float32)
    elif KIND == "Q4_1":
        block = row + number * 20
        return _half(block) * _nibbles(block + 4, 16).to(tl.float32) + _half(block + 2)
    elif KIND == "Q5_0":
        block = row + number * 22
        return _half(block) * ((_nibbles(block + 6, 16) | _fifth_bits(block + 2)) - 16).to(tl.float32)
    elif KIND == "Q5_1":
        block = row + number * 24
        return _half(block) * (_nibbles(block + 8, 16) | _fifth_bits(block + 4)).to(tl.float32) + _half(block + 2)
    elif KIND == "Q8_0":
        block = row + number * 34
        return _half(block) * tl.load(block + 2 + _along(32)).to(tl.int8, bitcast=True).to(tl.float32)
    elif KIND == "IQ4_NL":
        block = row + number * 18
        return _half(block) * _iq4_nl(_nibbles(block + 2, 16))
    else:
        tl.static_assert(KIND == "MXFP4")
        block = row + number * 17
        exponent = _byte(block)
        bits = tl.where(exponent < 2, 0x00200000 << tl.minimum(exponent, 1), (exponent - 1) << 23)
        return bits.to(tl.float32, bitcast=True) * (e2m1(_nibbles(block + 1, 16)) * 2)


@triton.jit
def _superblocks(row, run, first, num_columns, KIND: tl.constexpr, BLOCK_K: tl.constexpr):
    """Blocks of 256 weights, in runs of 64 or 128; groups have 16 or 32."""
    GROUP: tl.constexpr = 32 if KIND == "Q4_K" or KIND == "Q5_K" else 16
    group = tl.minimum(first // GROUP + tl.arange(0, BLOCK_K // GROUP), num_columns // GROUP - 1)[None, :, None]
    part, half = group % (256 // GROUP), run % 2
    if KIND == "Q4_K":
        block, of_group = row + (run // 4) * 144, row + (group // 8) * 144
        scales, minima = _scales_and_minima(of_group, part)
        return _times(scales, _nibbles(block + 16 + (run % 4) * 32, 32)) - minima
    elif KIND == "Q5_K":
        block, of_group = row + (run // 4) * 176, row + (group // 8) * 176
        high = _byte(block + 16 + _along(32)) >> (run % 4) * 2
        scales, minima = _scales_and_minima(of_group, part)
        codes = _nibbles(block + 48 + (run % 4) * 32, 32) | _two((high & 1) << 4, (high & 2) << 3)
        return _times(scales, codes) - minima
    elif KIND == "Q2_K":
        block, of_group = row + (run // 2) * 84, row + (group // 16) * 84
        both = _byte(of_group + part)
        minima = _half(of_group + 82) * (both >> 4).to(tl.float32)
        return _times(_half(of_group + 80) * (both & 15).to(tl.float32), _fields(block + 16 + half * 32, 2, 3, 0)) - minima
    elif KIND == "Q3_K":
        block, of_group = row + (run // 2) * 110, row + (group // 16) * 110
        low = (_byte(of_group + 96 + part % 8) >> (part // 8) * 4) & 15
        high = (_byte(of_group + 104 + part % 4) >> (part // 4) * 2) & 3
        scales = _half(of_group + 108) * ((low | high << 4) - 32).to(tl.float32)
        is_high = _fields(block, 1, 1, half * 4)  # 4 is subtracted where the bit is 0
        return _times(scales, (_fields(block + 32 + half * 32, 2, 3, 0) | is_high << 2) - 4)
    else:
        tl.static_assert(KIND == "Q6_K")
        block, of_group = row + (run // 2) * 210, row + (group // 16) * 210
        scales = _half(of_group + 208) * tl.load(of_group + 192 + part).to(tl.int8, bitcast=True).to(tl.float32)
        codes = _nibbles(block + half * 64, 64) | _fields(block + 128 + half * 32, 2, 3, 0) << 4
        return _times(scales, codes - 32)
