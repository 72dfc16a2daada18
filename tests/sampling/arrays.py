"""Building the sampler's arrays from rows written down by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from maskwright.kernels.sampler.interface import SamplerRows, TokenValues
from maskwright.kernels.sampler.parameters import DTYPES, ParameterArrays, filled

from .naive import Row


def sampler_rows(rows: Sequence[Row]) -> SamplerRows:
    """The numbers that `Row` does not know are off."""
    off = filled(len(rows))._asdict()
    known = {name: torch.tensor([getattr(row, name) for row in rows], dtype=DTYPES[name]) for name in off if hasattr(Row, name)}
    return SamplerRows(
        parameters=ParameterArrays(*(off | known).values()),
        seed=torch.from_numpy(np.array([row.seed for row in rows], np.uint64).view(np.int64)),
        position=torch.tensor([row.position for row in rows], dtype=torch.int64),
        bias=token_lists([row.bias for row in rows]),
        history=token_lists([row.history for row in rows]),
    )


def token_lists(rows: Sequence[dict[int, float]]) -> TokenValues:
    return TokenValues(
        offsets=torch.tensor([0, *np.cumsum([len(row) for row in rows])], dtype=torch.int64),
        token_ids=torch.tensor([t for row in rows for t in row], dtype=torch.int64),
        values=torch.tensor([value for row in rows for value in row.values()], dtype=torch.float32),
    )


def pack_masks(masks: Iterable[Iterable[int]], vocab_size: int) -> torch.Tensor:
    """[masks, ceil(V / 32)] int32; padding bits are set, since they must not matter."""
    words = []
    for mask in masks:
        bits = np.ones(-(-vocab_size // 32) * 32, dtype=bool)
        bits[:vocab_size] = False
        bits[list(mask)] = True
        words.append(np.packbits(bits, bitorder="little").view(np.int32))
    return torch.from_numpy(np.array(words))


def as_float32(value: float) -> float:
    return float(np.float32(value))
