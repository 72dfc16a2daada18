"""Masks that stay on the device: an engine passes on which row of a table is meant, 4 bytes instead of the mask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..constraints import Constraint
from ..kernels.automaton.backend import choose_operations
from ..kernels.backend import Backend
from ..kernels.sampler.interface import UNCONSTRAINED
from .walk import FINISHED, Walk

MOST_STATES = 1 << 14  # of a constraint whose rows are remembered; a state takes about 100 bytes


class DeviceRows:
    """A table of distinct masks on the device, each written there when a walk first gets to a state that has it.

    Rows are written on the current stream and must be read on the same one: so nothing that was launched before can see a row that
    has been given to another mask. When the table is full all is forgotten, and what is needed is written anew.

    rows: masks that have room. words: int32 words of a mask.
    """

    def __init__(self, rows: int, words: int, device: torch.device, backend: Backend = "auto") -> None:
        self.table = torch.zeros(rows, words, dtype=torch.int32, device=device)
        self._operations = choose_operations(device, backend)
        self._row_of_state: WeakKeyDictionary[Constraint, dict[Hashable, int]] = WeakKeyDictionary()  # while requests have it
        self._row_of_mask: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Masks in the table."""
        return len(self._row_of_mask)

    def rows(self, walks: Sequence[Walk]) -> list[int]:
        """The row of each walk's state; UNCONSTRAINED behind the end of a text. Raises ValueError where the table is too small for
        these alone."""
        try:
            return [self._row(walk) for walk in walks]
        except _Full:
            self._row_of_state.clear()
            self._row_of_mask.clear()
        try:
            return [self._row(walk) for walk in walks]
        except _Full:
            raise ValueError(f"{len(walks)} sequences need more than the {len(self.table)} mask rows on the device") from None

    def ban(self, logits: Tensor, row_numbers: Tensor) -> None:
        """Set the logits of forbidden tokens to -inf. logits: [rows, head]; row_numbers: [rows] int32 on the same device."""
        self._operations.ban(logits, self.table, row_numbers)

    def _row(self, walk: Walk) -> int:
        state = walk.state
        if state == FINISHED:
            return UNCONSTRAINED
        known = self._row_of_state.setdefault(walk.constraint, {})
        row = known.get(state)
        if row is None:
            if len(known) >= MOST_STATES:
                known.clear()
            row = known[state] = self._keep(walk.constraint.mask(state))
        return row

    def _keep(self, mask: NDArray[np.uint32]) -> int:
        digest = blake2b(mask.tobytes(), digest_size=16).digest()
        row = self._row_of_mask.get(digest)
        if row is None:
            row = len(self._row_of_mask)
            if row == len(self.table):
                raise _Full
            self.table[row].copy_(torch.from_numpy(mask.view(np.int32).copy()))
            self._row_of_mask[digest] = row
        return row


def ban_packed(logits: Tensor, masks: Tensor, backend: Backend = "auto") -> None:
    """Set the logits of forbidden tokens to -inf. logits: [rows, head]; masks: [rows, words] int32 on the same device."""
    every = torch.arange(len(masks), dtype=torch.int32, device=masks.device)
    choose_operations(logits.device, backend).ban(logits, masks, every)


class _Full(Exception):
    """The table has no room for another mask."""
