"""Slots of running sequences: places on the device where the token drawn last waits for the next forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from ..requests.sequence import Sequence


class SlotTable:
    """Slots 0 .. num_slots - 1, the lowest free one first. One more, `idle`, is nobody's: rows that pad a batch use it."""

    def __init__(self, num_slots: int, device: torch.device) -> None:
        self.device, self.num_slots, self.idle = device, num_slots + 1, num_slots
        self.last_token = torch.zeros(num_slots + 1, dtype=torch.int64, device=device)  # [slots + 1]
        self._slot_of: dict[int, int] = {}  # request id -> slot
        self._free = list(range(num_slots - 1, -1, -1))

    def of(self, sequence: Sequence) -> int:
        slot = self._slot_of.get(sequence.request_id)
        if slot is None:
            slot = self._slot_of[sequence.request_id] = self._free.pop()
        return slot

    def free_all_but(self, running: Iterable[Sequence]) -> Iterator[int]:
        """The slots of all that do not run any more, which are free from now on."""
        stay = {sequence.request_id for sequence in running}
        for request_id in [request_id for request_id in self._slot_of if request_id not in stay]:
            slot = self._slot_of.pop(request_id)
            self._free.append(slot)
            yield slot
        self._free.sort(reverse=True)

    # ---- on the device

    def keep(self, slots: Tensor, token: Tensor) -> None:
        """last_token[slots] = token, where one was drawn. [rows] each."""
        self.last_token.index_copy_(0, slots, torch.where(token >= 0, token, self.last_token[slots]))

    def feed(self, token_ids: Tensor, places: Tensor, slots: Tensor) -> None:
        """token_ids[places] = last_token[slots]"""
        token_ids.index_copy_(0, places, self.last_token[slots])
