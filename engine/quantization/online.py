"""Weights of 16 bits quantised while they are loaded, or written: rounded to the nearest, without any data to calibrate by."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from ...kernels.quantized.rounding import FLOAT8_MAX
from ...kernels.quantized.scaled import CODE_TYPES, Scaled
from ...kernels.quantized.scaled_reference import packed

OnlineKind = Literal["fp8", "int8", "int4"]
ONLINE_KINDS: tuple[OnlineKind, ...] = get_args(OnlineKind)
GROUP_SIZE = 32  # columns with one scale, of "int4"
_DIVISORS = (-7.0, -7.5, -8.0, -8.5, -9.0, 7.5)  # of a group's largest number: the scale with the least error is taken
_ROWS_AT_A_TIME = 1 << 20  # weights


def can_quantize(kind: OnlineKind, columns: int) -> bool:
    """Whether rows are whole groups."""
    return kind != "int4" or columns % GROUP_SIZE == 0


def quantized(kind: OnlineKind, weight: Tensor) -> Scaled:
    """A matrix [rows, columns] in codes, made a few rows at a time: "fp8" and "int8" with a scale a row, "int4" one a group."""
    step = max(1, _ROWS_AT_A_TIME // weight.shape[1])
    pieces = [_QUANTIZERS[kind](part.float(), scale_dtype(weight.dtype)) for part in weight.split(step)]
    data, scales = (torch.cat(list(parts)) for parts in zip(*pieces, strict=True))
    columns = weight.shape[1]
    name = {"fp8": "float8", "int8": "uint8", "int4": "uint4"}[kind]
    return Scaled(CODE_TYPES[name], data, scales, columns, (1, GROUP_SIZE if kind == "int4" else columns))


def scale_dtype(dtype: torch.dtype) -> torch.dtype:
    """Of the scales of integers, for weights of a dtype."""
    return torch.float16 if dtype == torch.float16 else torch.bfloat16


def _fp8(weight: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    scales = _nonzero(weight.abs().amax(dim=1, keepdim=True) / FLOAT8_MAX)
    codes = (weight / scales).clamp(-FLOAT8_MAX, FLOAT8_MAX).to(torch.float8_e4m3fn)
    return codes.view(torch.uint8), scales


def _int8(weight: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Codes count from the scale as it is kept."""
    scales = _nonzero((weight.abs().amax(dim=1, keepdim=True) / 127).to(dtype))
    codes = (weight / scales.float()).round().clamp(-127, 127) + 128
    return codes.to(torch.uint8), scales


def _int4(weight: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Codes count from the scale as it is kept, so that nothing is lost by its rounding but range.

    A scale may be negative: codes reach from -8 to 7, so that the largest number of a group is best the lowest code.
    """
    groups = weight.unflatten(1, (-1, GROUP_SIZE))
    largest = groups.gather(2, groups.abs().argmax(dim=2, keepdim=True))
    best = torch.full_like(largest, torch.inf)
    scales, codes = _nonzero(largest), torch.zeros_like(groups)
    for divisor in _DIVISORS:
        tried = _nonzero((largest / divisor).to(dtype).float())
        found = (groups / tried).round().clamp(-8, 7)
        error = (found * tried - groups).square().sum(dim=2, keepdim=True)
        better = error < best
        best, scales = torch.where(better, error, best), torch.where(better, tried, scales)
        codes = torch.where(better, found, codes)
    return packed((codes + 8).to(torch.uint8).flatten(1), CODE_TYPES["uint4"]), scales.squeeze(2).to(dtype)


def _nonzero(scales: Tensor) -> Tensor:
    """Where all weights are zero any scale will do."""
    return torch.where(scales == 0, torch.ones_like(scales), scales)


_QUANTIZERS = {"fp8": _fp8, "int8": _int8, "int4": _int4}
