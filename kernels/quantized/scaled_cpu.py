"""Codes with scales as numbers on a CPU, compiled by Numba, bit by bit what `scaled_reference.py` gives.

Loops over the codes of one block have a length that is known only when they run, so that they become vector instructions.
All compiled code is in this file: Numba looks at no other to see whether what it kept on disk is stale.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as nb
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...foundation import compile_cache as compile_cache  # before the first function that is kept on disk
from .codes import CODE_TYPES, Scaled

_EXPONENTS = np.float32(2.0**120)  # between those of e4m3 and float32

_kept = nb.njit(cache=True, nogil=True)  # on disk


@_kept
def _integers4(data, scales, zeros, values, bits, width, out):
    """Two codes a byte. Blocks of an odd number of codes go to `_any`."""
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


@_kept
def _values4(data, scales, zeros, values, bits, width, out):
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


@_kept
def _integers8(data, scales, zeros, values, bits, width, out):
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


@_kept
def _floats8(data, scales, zeros, values, bits, width, out):
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


@_kept
def _eights(data, scales, zeros, values, bits, width, out):
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


@_kept
def _any(data, scales, zeros, values, bits, width, out):
    """Codes of any number of bits, which may reach from one byte into the next."""
    mask, last = (1 << bits) - 1, data.shape[1] - 1
    for r in range(out.shape[0]):
        for j in range(out.shape[1]):
            at = j * bits
            byte = at >> 3
            word = np.int64(data[r, byte]) | np.int64(data[r, min(byte + 1, last)]) << 8
            block = j // width
            out[r, j] = (values[word >> (at & 7) & mask] - zeros[r, block]) * scales[r, block]


def decode(piece: Scaled, out: Tensor) -> None:
    """Write the numbers of rows whose blocks have one row each into out, float32 [rows, columns], in the order of the codes."""
    kind, width = piece.type, piece.block[1]
    scales = _floats(piece.scales)
    zeros = np.full(scales.shape, np.float32(kind.middle)) if piece.zeros is None else _floats(piece.zeros)
    is_even = width % 2 == 0 and piece.num_columns % 2 == 0
    if kind.bits == 4 and is_even:
        function = _integers4 if kind.name == "uint4" else _values4
    elif kind.bits == 8:
        function = _floats8 if kind.name == "float8" else _integers8
    elif kind.name.startswith("uint") and width % 8 == 0 and piece.num_columns % 8 == 0:
        function = _eights
    else:
        function = _any
    function(piece.data.numpy(), scales, zeros, _values(kind.name), kind.bits, width, out.numpy())


def _floats(tensor: Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(tensor.to(torch.float32).numpy())


@cache
def _values(name: str) -> NDArray[Any]:
    return np.array(CODE_TYPES[name].values, np.float32)
