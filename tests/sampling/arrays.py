"""Building the sampler's arrays from rows written down by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from maskwright.kernels.sampler.interface import SamplerRows, TokenValues

from .naive import Row


def sampler_rows(rows: Sequence[Row]) -> SamplerRows:
    def column(name: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.tensor([getattr(row, name) for row in rows], dtype=dtype)

    return SamplerRows(
        temperature=column("temperature"),
        top_k=column("top_k", torch.int32),
        top_p=column("top_p"),
        min_p=column("min_p"),
        repetition_penalty=column("repetition_penalty"),
        presence_penalty=column("presence_penalty"),
        frequency_penalty=column("frequency_penalty"),
        seed=torch.from_numpy(np.array([row.seed for row in rows], np.uint64).view(np.int64)),
        position=column("position", torch.int64),
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
