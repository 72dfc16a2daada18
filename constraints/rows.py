"""Mask rows: each distinct mask is stored once. Thousands of states need a few hundred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import entry, inner
from .pages import reserved

_FIRST_WORDS = 1 << 22  # reserved, not taken
STRIDE = 256  # words compared at a time
COUNT, INDEX = 0, 1  # of `index`: the number of rows; behind it a hash table of row numbers, 0 = free


class MaskRows:
    """A pool of equal-length masks, found by content. Rows are numbered from 1, so that 0 can mean "not computed".

    Compiled code appends to it.
    """

    def __init__(self, words: int) -> None:
        self._make_pool(1 << max(6, (_FIRST_WORDS // max(words, 64)).bit_length() - 1), words)

    def __len__(self) -> int:
        return int(self.index[COUNT])

    @property
    def nbytes(self) -> int:
        return len(self) * self.pool.shape[1] * self.pool.itemsize

    def get(self, number: int) -> NDArray[np.uint32]:
        """A read-only view, which stays as it is."""
        row = self.pool[number - 1]
        row.setflags(write=False)
        return row

    def grow(self) -> None:
        """Make room for twice as many rows."""
        old, count = self.pool, len(self)
        self._make_pool(2 * len(old), old.shape[1])
        self.pool[:count] = old[:count]
        fill_index(self.pool, self.index, count)

    def keep(self, mask: NDArray[np.uint32]) -> int:
        """The number of a row equal to `mask`, stored if new."""
        if len(self) == len(self.pool):
            self.grow()
        self.pool[len(self)] = mask
        return int(keep_row(self.pool, self.index))

    def take(self, numbers: NDArray[np.int32], out: NDArray[np.uint32]) -> None:
        """out[k] = row numbers[k]."""
        take_rows(self.pool, numbers, out)

    def _make_pool(self, rows: int, words: int) -> None:
        self.pool = reserved(rows * words, _all_touched, "rows").view(np.uint32).reshape(rows, words)  # with room for more
        self.index = np.zeros(INDEX + 2 * rows, np.int32)  # 2 * rows is a power of two


def _all_touched(array: NDArray[np.int32]) -> int:
    """Rows are written before they are read. How many were is not known here; a region of the first size may be kept."""
    return int(array.size) if array.size > _FIRST_WORDS else 0


@inner
def hash_words(words):
    """A hash of 32-bit words, multilinear (Carter and Wegman 1979): sums that the compiler turns into wide instructions."""
    total = np.uint64(0)
    for i in range(words.size):
        total += np.uint64(words[i]) * (np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1))
    return np.int64((total ^ (total >> np.uint64(29))) >> np.uint64(1))


@inner
def is_equal(row, other):
    """Whether two rows are equal, in strides that the compiler turns into wide instructions."""
    for start in range(0, row.size, STRIDE):
        left, right, difference = row[start : start + STRIDE], other[start : start + STRIDE], np.uint32(0)
        for i in range(left.size):
            difference |= left[i] ^ right[i]
        if difference != 0:
            return False
    return True


@inner
def find_or_add(pool, index, number):
    """The number of a row equal to row `number`, which is entered if there is none."""
    row = pool[number - 1]
    mask = index.size - INDEX - 1
    slot = hash_words(row) & mask
    while index[INDEX + slot] != 0:
        other = pool[index[INDEX + slot] - 1]
        if is_equal(row, other):
            return np.int64(index[INDEX + slot])
        slot = (slot + 1) & mask
    index[INDEX + slot] = number
    return np.int64(number)


@inner
def keep(pool, index):
    """The number of the row that has been written behind the last one; that of an equal one if there is one."""
    number = index[COUNT] + 1
    found = find_or_add(pool, index, number)
    if found == number:
        index[COUNT] = number
    return found


@entry
def keep_row(pool, index):
    return keep(pool, index)


@entry
def fill_index(pool, index, count):
    """Enter rows 1..count into an empty index."""
    index[COUNT] = count
    for number in range(1, count + 1):
        find_or_add(pool, index, number)


@entry
def take_rows(pool, numbers, out):
    """out[k] = row numbers[k]."""
    for k in range(numbers.size):
        out[k] = pool[numbers[k] - 1]
