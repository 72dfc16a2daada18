"""Mask rows: each distinct mask is stored once. Thousands of states need a few hundred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import walk

_FIRST_ROWS = 16


class MaskRows:
    """A pool of equal-length masks, found by content. Rows are numbered from 1, so that 0 can mean "not computed"."""

    def __init__(self, words: int) -> None:
        self.pool = np.zeros((_FIRST_ROWS, words), np.uint32)  # [rows with room to grow, words]
        self._count = 0
        self._by_hash: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return int(self.pool.nbytes)

    def get(self, number: int) -> NDArray[np.uint32]:
        row: NDArray[np.uint32] = self.pool[number - 1]
        return row

    def keep(self, mask: NDArray[np.uint32]) -> int:
        """The number of a row equal to `mask`, stored if new. Views of rows handed out before stay as they are."""
        numbers = self._by_hash.setdefault(int(walk.hash_words(mask)), [])
        for number in numbers:
            if np.array_equal(self.get(number), mask):
                return number
        if self._count == len(self.pool):
            self.pool = np.concatenate([self.pool, np.zeros_like(self.pool)])
        self.pool[self._count] = mask
        self._count += 1
        numbers.append(self._count)
        return self._count
