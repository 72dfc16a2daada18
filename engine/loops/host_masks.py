"""Masks that the host makes: those of the rows that draw are stacked and sent with every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from ...kernels.sampler.interface import Sampled
from ...kernels.to_device import to_device
from ..requests.sequence import Sequence
from ..steps.step_sampler import Drawn, SamplingInputs, StepSampler, records
from .pipeline import Row
from .slots import SlotTable


class HostMasks:
    """The masks of guides, sent to the device with every draw. look_ahead: a `LookAhead`, which fills these masks."""

    may_be_late = False

    def __init__(self, sampler: StepSampler, slots: SlotTable, look_ahead: Callable[[list[Sequence]], None]) -> None:
        self._sampler, self._slots, self.look_ahead = sampler, slots, look_ahead

    def sampling(self, rows: list[Row], drawing: list[int], sampling_inputs: SamplingInputs) -> Callable[[Tensor], Sampled]:
        masks = self._sampler.masks([rows[place].sequence for place in drawing])
        picked = None if len(drawing) == len(rows) else self._to_device(drawing)
        of_slots = self._to_device([rows[place].slot for place in drawing])

        def work(logits: Tensor) -> Sampled:
            sampled = self._sampler.sample(logits if picked is None else logits.index_select(0, picked), sampling_inputs, *masks)
            self._slots.keep(of_slots, sampled.token)
            return sampled

        return work

    def records(self, rows: list[Row], read: Any) -> list[Drawn]:
        return records([row.sequence for row in rows], read)

    def hurry(self, slot: int) -> None:
        return

    def release(self, slot: int) -> None:
        return

    def _to_device(self, numbers: list[int]) -> Tensor:
        return to_device(np.array(numbers, np.int64), self._slots.device)
