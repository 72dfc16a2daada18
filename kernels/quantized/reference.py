"""Blocks as numbers, in plain PyTorch on any device: bit by bit those of `gguf.quants`, from which the layouts are.

Every function takes blocks uint8 [num_blocks, num_bytes] and gives their weights, float32 [num_blocks, num_weights].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import torch
from torch import Tensor

from .block_values import IQ4_NL_VALUES, MXFP4_VALUES
from .blocks import Packed


def dequantize(packed: Packed) -> Tensor:
    """The matrix, float32 [rows, columns]."""
    blocks = packed.data.reshape(-1, packed.type.num_bytes)
    return DECODERS[packed.type.name](blocks).view(packed.num_rows, packed.num_columns)


def _half(blocks: Tensor, begin: int) -> Tensor:
    """The float16 that begins at a byte of each block, as float32 [num_blocks, 1]."""
    return blocks[:, begin : begin + 2].contiguous().view(torch.float16).float()


def _fields(data: Tensor, bits: int, per_group: int) -> Tensor:
    """The fields of `bits` bits of data [num_blocks, n], lowest first.

    Of every `per_group` bytes the lowest fields of all come first, then the second ones: [num_blocks, n * 8 / bits].
    """
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=data.device)[:, None]
    grouped = data.unflatten(1, (-1, 1, per_group))
    return ((grouped >> shifts) & ((1 << bits) - 1)).flatten(1)


def _bits(word: Tensor) -> Tensor:
    """The bits of four bytes [num_blocks, 4], lowest first: [num_blocks, 32]."""
    return ((word[:, :, None] >> torch.arange(8, dtype=torch.uint8, device=word.device)) & 1).flatten(1)


@cache
def table_of(values: tuple[int, ...], device: torch.device) -> Tensor:
    """The numbers on a device, put there once: a CUDA graph cannot capture it."""
    return torch.tensor(values, dtype=torch.float32, device=device)


def _looked_up(values: tuple[int, ...], indices: Tensor) -> Tensor:
    return table_of(values, indices.device)[indices.long()]


def _times(scales: Tensor, weights: Tensor) -> Tensor:
    """weights [num_blocks, n] times scales [num_blocks, m], each of which holds for n / m weights in a row."""
    return (weights.unflatten(1, (scales.shape[1], -1)) * scales[:, :, None]).flatten(1)


def _f32(blocks: Tensor) -> Tensor:
    return blocks.contiguous().view(torch.float32)


def _f16(blocks: Tensor) -> Tensor:
    return blocks.contiguous().view(torch.float16).float()


def _bf16(blocks: Tensor) -> Tensor:
    return blocks.contiguous().view(torch.bfloat16).float()


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * (_fields(blocks[:, 2:], 4, 16).float() - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _fields(blocks[:, 4:], 4, 16).float() + _half(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    high, low = _bits(blocks[:, 2:6]), _fields(blocks[:, 6:], 4, 16)
    return _half(blocks, 0) * ((low | high << 4).float() - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    high, low = _bits(blocks[:, 4:8]), _fields(blocks[:, 8:], 4, 16)
    return _half(blocks, 0) * (low | high << 4).float() + _half(blocks, 2)


def _q8_0(blocks: Tensor) -> Tensor:
    return blocks[:, 2:].contiguous().view(torch.int8).float() * _half(blocks, 0)


def _q2_k(blocks: Tensor) -> Tensor:
    scales = blocks[:, :16]
    weights = _times(_half(blocks, 80) * (scales & 15).float(), _fields(blocks[:, 16:80], 2, 32).float())
    minima = _half(blocks, 82) * (scales >> 4).float()
    return weights - minima.repeat_interleave(16, dim=1)


def _q3_k(blocks: Tensor) -> Tensor:
    low, high = _fields(blocks[:, 96:104], 4, 8), _fields(blocks[:, 104:108], 2, 4)
    scales = (low | high << 4).float() - 32
    is_high = _fields(blocks[:, :32], 1, 32)  # 4 is subtracted where the bit is 0
    weights = _fields(blocks[:, 32:96], 2, 32).float() - ((is_high ^ 1) << 2).float()
    return _times(_half(blocks, 108) * scales, weights)


def _scales_and_minima(data: Tensor) -> tuple[Tensor, Tensor]:
    """The eight scales and eight minima of six bits each that Q4_K and Q5_K pack into twelve bytes."""
    first, second, rest = data.split(4, dim=1)
    scales = torch.cat((first & 63, (rest & 15) | ((first >> 2) & 48)), dim=1)
    minima = torch.cat((second & 63, (rest >> 4) | ((second >> 2) & 48)), dim=1)
    return scales.float(), minima.float()


def _with_minima(blocks: Tensor, weights: Tensor) -> Tensor:
    scales, minima = _scales_and_minima(blocks[:, 4:16])
    least = (_half(blocks, 2) * minima).repeat_interleave(32, dim=1)
    return _times(_half(blocks, 0) * scales, weights) - least


def _q4_k(blocks: Tensor) -> Tensor:
    return _with_minima(blocks, _fields(blocks[:, 16:], 4, 32).float())


def _q5_k(blocks: Tensor) -> Tensor:
    low, high = _fields(blocks[:, 48:], 4, 32), _fields(blocks[:, 16:48], 1, 32)
    return _with_minima(blocks, (low | high << 4).float())


def _q6_k(blocks: Tensor) -> Tensor:
    low, high = _fields(blocks[:, :128], 4, 64), _fields(blocks[:, 128:192], 2, 32)
    scales = _half(blocks, 208) * blocks[:, 192:208].contiguous().view(torch.int8).float()
    return _times(scales, (low | high << 4).float() - 32)


def _iq4_nl(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _looked_up(IQ4_NL_VALUES, _fields(blocks[:, 2:], 4, 16))


def _mxfp4(blocks: Tensor) -> Tensor:
    """The first byte is a power of two, half of it: e8m0, of which 0 and 1 are too small to be normal numbers."""
    exponent = blocks[:, :1].int()
    bits = torch.where(exponent < 2, 0x00200000 << exponent.clamp(max=1), (exponent - 1) << 23)
    return bits.view(torch.float32) * _looked_up(MXFP4_VALUES, _fields(blocks[:, 1:], 4, 16))


DECODERS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
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
