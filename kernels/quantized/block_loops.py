"""Blocks as numbers on a CPU, as loops: 0.1 to 0.3 ns a weight, and bit by bit what `reference.py` gives.

For each block type a function writes one row of a matrix, raw uint8 [row_bytes], to out float32 [columns]; `run` is the length of
its inner loops. A loop of a length that is known only when it runs becomes vector instructions; one of a known length is unrolled
instead, and takes three times as long.
"""

from __future__ import annotations

import numpy as np

from .block_values import IQ4_NL_VALUES, MXFP4_VALUES
from .loops import entry, inner

_IQ4_NL, _MXFP4 = (np.array(values, np.float32) for values in (IQ4_NL_VALUES, MXFP4_VALUES))
_SCALE = np.float32(2.0**112)  # between the exponents of float16 and float32


@inner
def _float(bits):
    """The float32 of 32 bits."""
    return np.uint32(bits).view(np.float32)


@inner
def _half(raw, i):
    """The float16 at byte i, as float32."""
    bits = np.uint32(raw[i]) | np.uint32(raw[i + 1]) << 8
    sign, rest = (bits & 0x8000) << 16, (bits & 0x7FFF) << 13
    if rest >= 0x0F800000:  # infinite, or not a number
        return _float(sign | rest | 0x7F800000)
    magnitude = _float(rest) * _SCALE
    return -magnitude if sign else magnitude


@inner
def _q4_0(raw, out, run):
    for block in range(out.size // 32):
        scale, at, to = _half(raw, 18 * block), 18 * block + 2, 32 * block
        for i in range(run):
            out[to + i] = scale * np.float32((np.int32(raw[at + i]) & 15) - 8)
            out[to + i + 16] = scale * np.float32((np.int32(raw[at + i]) >> 4) - 8)


@inner
def _q4_1(raw, out, run):
    for block in range(out.size // 32):
        scale, least = _half(raw, 20 * block), _half(raw, 20 * block + 2)
        at, to = 20 * block + 4, 32 * block
        for i in range(run):
            out[to + i] = scale * np.float32(np.int32(raw[at + i]) & 15) + least
            out[to + i + 16] = scale * np.float32(np.int32(raw[at + i]) >> 4) + least


@inner
def _word(raw, at):
    return np.int64(raw[at]) | np.int64(raw[at + 1]) << 8 | np.int64(raw[at + 2]) << 16 | np.int64(raw[at + 3]) << 24


@inner
def _q5_0(raw, out, run):
    for block in range(out.size // 32):
        scale, at, to = _half(raw, 22 * block), 22 * block + 6, 32 * block
        high = _word(raw, at - 4)
        for i in range(run):
            low = np.int32(raw[at + i])
            first = (low & 15) | ((high >> i) & 1) << 4
            second = (low >> 4) | ((high >> (i + 16)) & 1) << 4
            out[to + i] = scale * np.float32(np.int32(first) - 16)
            out[to + i + 16] = scale * np.float32(np.int32(second) - 16)


@inner
def _q5_1(raw, out, run):
    for block in range(out.size // 32):
        scale, least = _half(raw, 24 * block), _half(raw, 24 * block + 2)
        at, to = 24 * block + 8, 32 * block
        high = _word(raw, at - 4)
        for i in range(run):
            low = np.int32(raw[at + i])
            first = (low & 15) | ((high >> i) & 1) << 4
            second = (low >> 4) | ((high >> (i + 16)) & 1) << 4
            out[to + i] = scale * np.float32(np.int32(first)) + least
            out[to + i + 16] = scale * np.float32(np.int32(second)) + least


@inner
def _q8_0(raw, out, run):
    for block in range(out.size // 32):
        scale, at, to = _half(raw, 34 * block), 34 * block + 2, 32 * block
        for i in range(run):
            out[to + i] = np.float32(np.int8(raw[at + i])) * scale


@inner
def _q2_k(raw, out, run):
    for block in range(out.size // 256):
        at, to = 84 * block, 256 * block
        scale, least = _half(raw, at + 80), _half(raw, at + 82)
        for group in range(16):
            packed = raw[at + group]
            mine, minimum = scale * np.float32(packed & 15), least * np.float32(packed >> 4)
            start, shift = at + 16 + group // 8 * 32 + group % 2 * 16, group % 8 // 2 * 2
            for i in range(run):
                out[to + 16 * group + i] = mine * np.float32((np.int32(raw[start + i]) >> shift) & 3) - minimum


@inner
def _q3_k(raw, out, run):
    for block in range(out.size // 256):
        at, to = 110 * block, 256 * block
        scale = _half(raw, at + 108)
        for group in range(16):
            low = raw[at + 96 + group % 8] >> (group // 8 * 4)
            high = raw[at + 104 + group % 4] >> (group // 4 * 2)
            mine = scale * np.float32(np.int32((low & 15) | (high & 3) << 4) - 32)
            start, shift = at + 32 + group // 8 * 32 + group % 2 * 16, group % 8 // 2 * 2
            mask, bit = at + group % 2 * 16, group // 2
            for i in range(run):
                weight = ((np.int32(raw[start + i]) >> shift) & 3) - 4 + 4 * ((np.int32(raw[mask + i]) >> bit) & 1)
                out[to + 16 * group + i] = mine * np.float32(weight)


@inner
def _scale_and_minimum(raw, at, group):
    """Of a group of 32 weights: see `reference._scales_and_minima`."""
    if group < 4:
        return raw[at + group] & 63, raw[at + 4 + group] & 63
    rest, first, second = raw[at + 4 + group], raw[at + group - 4], raw[at + group]
    return (rest & 15) | ((first >> 2) & 48), (rest >> 4) | ((second >> 2) & 48)


@inner
def _q4_k(raw, out, run):
    for block in range(out.size // 256):
        at, to = 144 * block, 256 * block
        scale, least = _half(raw, at), _half(raw, at + 2)
        for group in range(8):
            factor, minimum = _scale_and_minimum(raw, at + 4, group)
            mine, lowest = scale * np.float32(factor), least * np.float32(minimum)
            start, shift = at + 16 + group // 2 * 32, group % 2 * 4
            for i in range(run):
                out[to + 32 * group + i] = mine * np.float32((np.int32(raw[start + i]) >> shift) & 15) - lowest


@inner
def _q5_k(raw, out, run):
    for block in range(out.size // 256):
        at, to = 176 * block, 256 * block
        scale, least = _half(raw, at), _half(raw, at + 2)
        for group in range(8):
            factor, minimum = _scale_and_minimum(raw, at + 4, group)
            mine, lowest = scale * np.float32(factor), least * np.float32(minimum)
            start, shift = at + 48 + group // 2 * 32, group % 2 * 4
            for i in range(run):
                weight = ((np.int32(raw[start + i]) >> shift) & 15) | ((np.int32(raw[at + 16 + i]) >> group) & 1) << 4
                out[to + 32 * group + i] = mine * np.float32(weight) - lowest


@inner
def _q6_k(raw, out, run):
    for block in range(out.size // 256):
        at, to = 210 * block, 256 * block
        for half in range(2):  # of the block: first all weights, then times their scales
            low, high, base = at + 64 * half, at + 128 + 32 * half, to + 128 * half
            for i in range(2 * run):
                first, second, top = np.int32(raw[low + i]), np.int32(raw[low + i + 32]), np.int32(raw[high + i])
                out[base + i] = np.float32(((first & 15) | (top & 3) << 4) - 32)
                out[base + i + 32] = np.float32(((second & 15) | (top >> 2 & 3) << 4) - 32)
                out[base + i + 64] = np.float32(((first >> 4) | (top >> 4 & 3) << 4) - 32)
                out[base + i + 96] = np.float32(((second >> 4) | (top >> 6) << 4) - 32)
        scale = _half(raw, at + 208)
        for group in range(16):
            mine = scale * np.float32(np.int8(raw[at + 192 + group]))
            for i in range(run):
                out[to + 16 * group + i] *= mine


@inner
def _iq4_nl(raw, out, run):
    for block in range(out.size // 32):
        scale, at, to = _half(raw, 18 * block), 18 * block + 2, 32 * block
        for i in range(run):
            out[to + i] = scale * _IQ4_NL[raw[at + i] & 15]
            out[to + i + 16] = scale * _IQ4_NL[raw[at + i] >> 4]


@inner
def _mxfp4(raw, out, run):
    for block in range(out.size // 32):
        at, to = 17 * block + 1, 32 * block
        exponent = np.int64(raw[at - 1])
        scale = _float(0x00200000 << exponent if exponent < 2 else (exponent - 1) << 23)
        for i in range(run):
            out[to + i] = scale * _MXFP4[raw[at + i] & 15]
            out[to + i + 16] = scale * _MXFP4[raw[at + i] >> 4]


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q4_0(data, out, run):
    for r in range(data.shape[0]):
        _q4_0(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q4_1(data, out, run):
    for r in range(data.shape[0]):
        _q4_1(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q5_0(data, out, run):
    for r in range(data.shape[0]):
        _q5_0(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q5_1(data, out, run):
    for r in range(data.shape[0]):
        _q5_1(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q8_0(data, out, run):
    for r in range(data.shape[0]):
        _q8_0(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q2_k(data, out, run):
    for r in range(data.shape[0]):
        _q2_k(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q3_k(data, out, run):
    for r in range(data.shape[0]):
        _q3_k(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q4_k(data, out, run):
    for r in range(data.shape[0]):
        _q4_k(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q5_k(data, out, run):
    for r in range(data.shape[0]):
        _q5_k(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_q6_k(data, out, run):
    for r in range(data.shape[0]):
        _q6_k(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_iq4_nl(data, out, run):
    for r in range(data.shape[0]):
        _iq4_nl(data[r], out[r], run)


@entry(data="const uint8[:,:]", out="float32[:,:]")
def decode_mxfp4(data, out, run):
    for r in range(data.shape[0]):
        _mxfp4(data[r], out[r], run)
