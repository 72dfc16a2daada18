"""From the sequences of one step to the arrays that the sampler reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.sampler.interface import SamplerRows, Stages, TokenValues
from ..kernels.sampler.parameters import DTYPES, FILTERS, ParameterArrays
from ..kernels.sampler.programs import NUM_VALUES, Code, Programs, plain_values
from ..kernels.to_device import to_device
from .edits import TokenArrays
from .params import SamplingParams
from .sequence import SequenceSampling


class BatchPacker:
    """Packs the sequences of a step. What their parameters say is packed anew only when the batch changes."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._packed: list[SequenceSampling] = []
        self._fixed = pack_fixed([], self.device)
        self._is_followed = False  # some numbers of programs change with every token
        self._is_fixed = False  # nothing changes but the position
        self._biases: list[TokenArrays] = []
        self._bias: TokenValues | None = None

    def pack(self, sequences: Sequence[SequenceSampling]) -> SamplerRows:
        """Row r says how the next token of sequences[r] is drawn."""
        if same_objects(self._packed, sequences):
            if self._is_fixed:
                return self._fixed._replace(position=self._positions(sequences), bias=self._bias)
        else:
            self._fixed = pack_fixed(sequences, self.device)
            self._packed = list(sequences)
            self._is_followed = any(sequence.mirostat is not None for sequence in sequences)
            self._is_fixed = not any(sequence.follows_text for sequence in sequences)  # who has not begun to never will
        biases = [sequence.bias for sequence in sequences]  # the same arrays as long as nothing changes
        if not same_objects(self._biases, biases):
            self._biases, self._bias = biases, pack_biases(biases, self.device)
        return self._fixed._replace(
            position=self._positions(sequences),
            bias=self._bias,
            programs=pack_programs(sequences, self.device) if self._is_followed else self._fixed.programs,
            history=pack_history(sequences, self.device),
        )

    def _positions(self, sequences: Sequence[SequenceSampling]) -> Tensor:
        return to_device(np.array([sequence.draw_index for sequence in sequences], np.int64), self.device)


def same_objects(left: Sequence[object], right: Sequence[object]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def pack_fixed(sequences: Sequence[SequenceSampling], device: torch.device) -> SamplerRows:
    """What does not change while a sequence runs; position is left at 0."""
    params = [row_values(sequence.params) for sequence in sequences]
    seeds = np.array([sequence.seed for sequence in sequences], dtype=np.uint64).view(np.int64)
    return SamplerRows(
        parameters=ParameterArrays(*(to_device(column(params, name), device) for name in DTYPES)),
        seed=to_device(seeds, device),
        position=torch.zeros(len(params), dtype=torch.int64, device=device),
        stages=stages(params)._replace(wants_share=any(sequence.mirostat is not None for sequence in sequences)),
        programs=pack_programs(sequences, device),
    )


def row_values(params: SamplingParams) -> Mapping[str, float]:
    """The numbers of a row. Filters of one with a program are there; one without may have stages that are left out."""
    values = {name: getattr(params, name) for name in DTYPES}
    if params.has_program:
        values |= FILTERS
    elif params.stages and not params.is_greedy:
        values |= plain_values(params.steps)
    return values


def column(params: Sequence[Mapping[str, float]], name: str) -> NDArray[Any]:
    """[rows] a number of each."""
    return np.array([each[name] for each in params], np.int32 if DTYPES[name] == torch.int32 else np.float32)


def stages(params: Sequence[Mapping[str, float]]) -> Stages:
    """The stages that some row needs; greedy rows need none, for the most probable token survives every filter."""
    drawing = [each for each in params if each["temperature"] > 0]
    return Stages(
        any_draw=bool(drawing),
        filters=frozenset(name for name, off in FILTERS.items() if any(each[name] != off for each in drawing)),
        max_top_k=int(max((each["top_k"] for each in drawing), default=0)),
    )


def pack_programs(sequences: Sequence[SequenceSampling], device: torch.device) -> Programs | None:
    """None where no sequence has one."""
    longest = max((len(sequence.steps) for sequence in sequences), default=0)
    if not longest:
        return None
    codes = np.full((len(sequences), longest), Code.END, np.int32)
    values = np.zeros((len(sequences), longest, NUM_VALUES), np.float32)
    for row, sequence in enumerate(sequences):
        for place, step in enumerate(sequence.steps):
            is_followed = sequence.mirostat is not None and step.code in (Code.MIROSTAT_1, Code.MIROSTAT_2)
            numbers = (sequence.mirostat.mu,) if is_followed and sequence.mirostat is not None else step.values
            codes[row, place], values[row, place, : len(numbers)] = step.code, numbers
    return Programs(to_device(codes, device), to_device(values, device))


def pack_bias(sequences: Sequence[SequenceSampling], device: torch.device) -> TokenValues | None:
    return pack_biases([sequence.bias for sequence in sequences], device)


def pack_biases(rows: Sequence[TokenArrays], device: torch.device) -> TokenValues | None:
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
