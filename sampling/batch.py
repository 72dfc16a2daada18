"""From the sequences of one step to the arrays that the sampler reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..kernels.sampler.interface import SamplerRows, Stages, TokenValues
from ..kernels.sampler.parameters import DTYPES, FILTERS, ParameterArrays
from ..kernels.to_device import to_device
from .params import SamplingParams
from .sequence import SequenceSampling, TokenArrays


class BatchPacker:
    """Packs the sequences of a step. What their parameters say is packed anew only when the batch changes."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._packed: list[SequenceSampling] = []
        self._fixed = pack_fixed([], self.device)

    def pack(self, sequences: Sequence[SequenceSampling]) -> SamplerRows:
        """Row r says how the next token of sequences[r] is drawn."""
        if not same_objects(self._packed, sequences):
            self._fixed = pack_fixed(sequences, self.device)
            self._packed = list(sequences)
        position = np.fromiter((sequence.draw_index for sequence in sequences), np.int64, len(sequences))
        return self._fixed._replace(
            position=to_device(position, self.device),
            bias=pack_bias(sequences, self.device),
            history=pack_history(sequences, self.device),
        )


def same_objects(left: Sequence[object], right: Sequence[object]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def pack_fixed(sequences: Sequence[SequenceSampling], device: torch.device) -> SamplerRows:
    """What does not change while a sequence runs; position is left at 0."""
    params = [sequence.params for sequence in sequences]
    seeds = np.array([sequence.seed for sequence in sequences], dtype=np.uint64).view(np.int64)
    return SamplerRows(
        parameters=ParameterArrays(*(to_device(column(params, name), device) for name in DTYPES)),
        seed=to_device(seeds, device),
        position=torch.zeros(len(params), dtype=torch.int64, device=device),
        stages=stages(params),
    )


def column(params: Sequence[SamplingParams], name: str) -> NDArray[Any]:
    """[rows] a number of each."""
    return np.array([getattr(each, name) for each in params], np.int32 if DTYPES[name] == torch.int32 else np.float32)


def stages(params: Sequence[SamplingParams]) -> Stages:
    """The stages that some row needs; greedy rows need none, for the most probable token survives every filter."""
    drawing = [each for each in params if not each.is_greedy]
    return Stages(
        any_draw=bool(drawing),
        filters=frozenset(name for name, off in FILTERS.items() if any(getattr(each, name) != off for each in drawing)),
        max_top_k=max((each.top_k for each in drawing), default=0),
    )


def pack_bias(sequences: Sequence[SequenceSampling], device: torch.device) -> TokenValues | None:
    rows = [sequence.bias for sequence in sequences]
    return token_values(rows, device) if any(len(token_ids) for token_ids, _ in rows) else None


def pack_history(sequences: Sequence[SequenceSampling], device: torch.device) -> TokenValues | None:
    if not any(sequence.has_penalties for sequence in sequences):
        return None
    return token_values([sequence.history for sequence in sequences], device)


def token_values(rows: Sequence[TokenArrays], device: torch.device) -> TokenValues:
    token_ids, values = zip(*rows, strict=True)
    offsets = np.cumsum([0, *map(len, token_ids)], dtype=np.int64)
    arrays = offsets, np.concatenate(token_ids), np.concatenate(values)
    return TokenValues(*(to_device(array, device) for array in arrays))
