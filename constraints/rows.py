"""Mask rows: each distinct mask is stored once. Thousands of states need a few hundred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import walk
from .pages import reserved

_FIRST_ROWS = 1024  # reserved, not taken


class MaskRows:
    """A pool of equal-length masks, found by content. Rows are numbered from 1, so that 0 can mean "not computed"."""

    def __init__(self, words: int) -> None:
        self.pool = _pool(_FIRST_ROWS, words)  # [rows with room to grow, words]
        self._views: list[NDArray[np.uint32]] = []  # read-only
        self._by_hash: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._views)

    @property
    def nbytes(self) -> int:
        return len(self) * self.pool.shape[1] * self.pool.itemsize

    def get(self, number: int) -> NDArray[np.uint32]:
        """A read-only view, which stays as it is."""
        return self._views[number - 1]

    def keep(self, mask: NDArray[np.uint32]) -> int:
        """The number of a row equal to `mask`, stored if new."""
        numbers = self._by_hash.setdefault(walk.hash_words(mask), [])
        for number in numbers:
            if walk.is_row(self.pool, number, mask):
                return number
        if len(self) == len(self.pool):
            grown = _pool(2 * len(self), self.pool.shape[1])
            grown[: len(self)] = self.pool
            self.pool = grown
        row = self.pool[len(self)]
        row[:] = mask
        row.setflags(write=False)
        self._views.append(row)
        numbers.append(len(self))
        return len(self)

    def take(self, numbers: NDArray[np.int32], out: NDArray[np.uint32]) -> None:
        """out[k] = row numbers[k]."""
        walk.take_rows(self.pool, numbers, out)


def _pool(rows: int, words: int) -> NDArray[np.uint32]:
    return reserved(rows * words).view(np.uint32).reshape(rows, words)
