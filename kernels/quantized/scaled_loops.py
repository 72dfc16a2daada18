"""Codes with scales as numbers on a CPU, as loops, bit by bit what `scaled_reference.py` gives.

Loops over the codes of one block have a length that is known only when they run, so that they become vector instructions.
"""

from __future__ import annotations

import numpy as np

from .loops import entry

_EXPONENTS = np.float32(2.0**120)  # between those of e4m3 and float32


@entry(
    data="const uint8[:,:]", scales="const float32[:,:]", zeros="const float32[:,:]", values="const float32[:]", out="float32[:,:]"
)
def integers4(data, scales, zeros, values, bits, width, out):
    """Two codes a byte. Blocks of an odd number of codes go to `any_bits`."""
    columns = out.shape[1]
    for r in range(out.shape[0]):
        for block in range(scales.shape[1]):
            begin = block * width
            scale, zero = scales[r, block], zeros[r, block]
            pairs = (min(width, columns - begin)) // 2
            raw, to = data[r, begin // 2 : begin // 2 + pairs], out[r, begin : begin + 2 * pairs]
            for i in range(pairs):
                to[2 * i] = (np.float32(np.int32(raw[i]) & 15) - zero) * scale
                to[2 * i + 1] = (np.float32(np.int32(raw[i]) >> 4) - zero) * scale


@entry(
    data="const uint8[:,:]", scales="const float32[:,:]", zeros="const float32[:,:]", values="const float32[:]", out="float32[:,:]"
)
def values4(data, scales, zeros, values, bits, width, out):
    columns = out.shape[1]
    for r in range(out.shape[0]):
        for block in range(scales.shape[1]):
            begin = block * width
            scale = scales[r, block]
            pairs = (min(width, columns - begin)) // 2
            raw, to = data[r, begin // 2 : begin // 2 + pairs], out[r, begin : begin + 2 * pairs]
            for i in range(pairs):
                to[2 * i] = values[raw[i] & 15] * scale
                to[2 * i + 1] = values[raw[i] >> 4] * scale


@entry(
    data="const uint8[:,:]", scales="const float32[:,:]", zeros="const float32[:,:]", values="const float32[:]", out="float32[:,:]"
)
def integers8(data, scales, zeros, values, bits, width, out):
    """Signed where codes from 128 on are negative; `values` has the last code's number."""
    wrap = np.int32(values[255] < 0)
    columns = out.shape[1]
    for r in range(out.shape[0]):
        for block in range(scales.shape[1]):
            begin = block * width
            scale, zero = scales[r, block], zeros[r, block]
            raw, to = data[r, begin : min(begin + width, columns)], out[r, begin : min(begin + width, columns)]
            for i in range(raw.size):
                code = np.int32(raw[i])
                to[i] = (np.float32(code - ((code >> 7) * wrap << 8)) - zero) * scale


@entry(
    data="const uint8[:,:]", scales="const float32[:,:]", zeros="const float32[:,:]", values="const float32[:]", out="float32[:,:]"
)
def floats8(data, scales, zeros, values, bits, width, out):
    """e4m3: sign, exponent and fraction where float32 has them, times what is between the exponents. 127 is no number.

    In two loops, of integers and of numbers, so that both become vector instructions.
    """
    columns = out.shape[1]
    as_bits = out.view(np.int32)
    for r in range(out.shape[0]):
        for i in range(columns):
            code = np.int32(data[r, i])
            rest = code & 127
            as_bits[r, i] = (code & 128) << 24 | (rest << 20 if rest < 127 else 0x7FC00000)
        for block in range(scales.shape[1]):
            begin = block * width
            scale, to = scales[r, block], out[r, begin : min(begin + width, columns)]
            for i in range(to.size):
                to[i] = to[i] * _EXPONENTS * scale


@entry(
    data="const uint8[:,:]", scales="const float32[:,:]", zeros="const float32[:,:]", values="const float32[:]", out="float32[:,:]"
)
def eights(data, scales, zeros, values, bits, width, out):
    """Integers of any number of bits, eight of which are as many bytes, in blocks of whole eights."""
    mask = np.uint64((1 << bits) - 1)
    columns = out.shape[1]
    for r in range(out.shape[0]):
        for block in range(scales.shape[1]):
            begin = block * width
            scale, zero = scales[r, block], zeros[r, block]
            for eight in range(begin // 8, min(begin + width, columns) // 8):
                word = np.uint64(0)
                for byte in range(bits):
                    word |= np.uint64(data[r, eight * bits + byte]) << np.uint64(8 * byte)
                to = out[r, 8 * eight : 8 * eight + 8]
                for i in range(8):
                    to[i] = (np.float32(np.int32(word >> np.uint64(i * bits) & mask)) - zero) * scale


@entry(
    data="const uint8[:,:]", scales="const float32[:,:]", zeros="const float32[:,:]", values="const float32[:]", out="float32[:,:]"
)
def any_bits(data, scales, zeros, values, bits, width, out):
    """Codes of any number of bits, which may reach from one byte into the next."""
    mask, last = (1 << bits) - 1, data.shape[1] - 1
    for r in range(out.shape[0]):
        for j in range(out.shape[1]):
            at = j * bits
            byte = at >> 3
            word = np.int64(data[r, byte]) | np.int64(data[r, min(byte + 1, last)]) << 8
            block = j // width
            out[r, j] = (values[word >> (at & 7) & mask] - zeros[r, block]) * scales[r, block]
