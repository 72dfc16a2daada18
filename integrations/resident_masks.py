"""Masks that stay on the device: an engine passes on which row of a table is meant, 4 bytes instead of the mask."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..constraints import Constraint
from ..errors import UsageError
from ..kernels.automaton.backend import choose_operations
from ..kernels.backend import Backend
from ..kernels.sampler.interface import UNCONSTRAINED
from .walk import FINISHED, Walk

MOST_STATES = 1 << 14  # of a constraint whose masks' names are remembered; a state takes about 100 bytes

MaskWords: TypeAlias = NDArray[np.uint32]


class ResidentMasks:
    """Masks on a device, each in a row that is written once and given to another mask when it was not asked for longest.

    Rows are written on the current stream and must be read on the same one: so nothing that was launched before can see a row that
    has been given to another mask. What is asked for until as many other masks were is there together, so the masks of a step may
    come in several calls as long as they are no more than the rows.

    num_masks: rows. num_words: int32 words of a row; shorter masks forbid what lies beyond them.
    words: int32 [num_masks, num_words], where it is for good: CUDA graphs read it.
    """

    def __init__(self, num_masks: int, num_words: int, device: torch.device | str, backend: Backend = "auto") -> None:
        self.words = torch.zeros(num_masks, num_words, dtype=torch.int32, device=device)
        self._operations = choose_operations(self.words.device, backend)
        self._rows: OrderedDict[Hashable, int] = OrderedDict()  # what names a mask -> its row, least recently used first
        self._free = list(range(num_masks))

    def __len__(self) -> int:
        """Masks that are there."""
        return len(self._rows)

    def rows(self, wanted: Mapping[Hashable, Callable[[], MaskWords]]) -> dict[Hashable, int]:
        """The row of each mask, by what names it; those that are not there are asked for and written. Raises UsageError."""
        if len(wanted) > len(self.words):
            raise UsageError(f"a step needs {len(wanted)} masks, and the table on the device has {len(self.words)} mask rows")
        absent = [name for name in wanted if name not in self._rows]
        for name in wanted:
            if name in self._rows:
                self._rows.move_to_end(name)
        for name in absent:
            mask = torch.from_numpy(wanted[name]().view(np.int32).copy())
            row = self._rows[name] = self._free.pop() if self._free else self._rows.popitem(last=False)[1]
            self.words[row, len(mask) :] = 0
            self.words[row, : len(mask)].copy_(mask)
        return {name: self._rows[name] for name in wanted}

    def ban(self, logits: Tensor, row_numbers: Tensor) -> None:
        """Set the logits of forbidden tokens to -inf, in place. logits: [rows, head]; row_numbers: [rows] int32 on the same device,
        UNCONSTRAINED for rows that stay as they are."""
        self._operations.ban(logits, self.words, row_numbers)


class WalkMasks(ResidentMasks):
    """The resident masks of walks. A state met before costs no look at its mask; equal masks of any constraints share a row."""

    def __init__(self, num_masks: int, num_words: int, device: torch.device | str, backend: Backend = "auto") -> None:
        super().__init__(num_masks, num_words, device, backend)
        self._names: WeakKeyDictionary[Constraint, dict[Hashable, bytes]] = WeakKeyDictionary()  # while requests have it

    def rows_of(self, walks: Sequence[Walk]) -> list[int]:
        """The row of each walk's mask; UNCONSTRAINED behind the end of a text. Raises UsageError."""
        names = [None if walk.state == FINISHED else self._name(walk) for walk in walks]
        wanted: dict[Hashable, Callable[[], MaskWords]] = {}
        wanted.update((name, _mask_of(walk)) for name, walk in zip(names, walks, strict=True) if name is not None)
        rows = self.rows(wanted)
        return [UNCONSTRAINED if name is None else rows[name] for name in names]

    def _name(self, walk: Walk) -> bytes:
        known = self._names.setdefault(walk.constraint, {})
        name = known.get(walk.state)
        if name is None:
            if len(known) >= MOST_STATES:
                known.clear()
            name = known[walk.state] = blake2b(_mask_of(walk)().tobytes(), digest_size=16).digest()
        return name


def _mask_of(walk: Walk) -> Callable[[], MaskWords]:
    constraint, state = walk.constraint, walk.state
    return lambda: constraint.mask(state)


def ban_packed(logits: Tensor, masks: Tensor, backend: Backend = "auto") -> None:
    """Set the logits of forbidden tokens to -inf, in place. logits: [rows, head]; masks: [rows, words] int32 on the same device."""
    every = torch.arange(len(masks), dtype=torch.int32, device=masks.device)
    choose_operations(logits.device, backend).ban(logits, masks, every)
