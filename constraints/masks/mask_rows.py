"""Mask rows: a pool of packed masks in which each distinct mask is stored once. Thousands of states need a few hundred.

A walk does not write a mask, it describes one by a *recipe*: a *base*, a mask that is there already (a slice of a body
class, another row, or none), and *edits*, ranges of tokens to set or clear. A recipe that was met before has its row
already, and the row is found without touching the 16 KB of a mask over 131,072 tokens; so it is for four masks of five.
The others are made behind the last row, and stay there if they are new.

    base: the slice "any characters";  edits: set tokens 7200..7213, clear 88..89   row 17
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..automaton.nodes import wide
from ..base.ids import RowId
from ..numba_support.jit import entry, inner
from ..numba_support.pages import reserved
from ..numba_support.record_access import part, words_at
from ..numba_support.records import Record, Words, bits
from ..vocabulary.packed_records import Vocab

_FIRST_WORDS = 1 << 22  # of rows; reserved, not taken
_MOST_FIRST = 1 << 14  # rows, however small they are: their hash tables are cleared with each constraint, 24 bytes a row
COMPARED_WORDS = 256  # words compared at a time
_RECIPE_WORDS = 64  # room for recipes, a row
_MAX_RECIPE = 1024  # words of edits; longer recipes are not kept


class Region(IntEnum):
    """The words of the header of the region of mask rows.

    Behind the header: a hash table of row numbers, one of offsets of recipes (0 = free), the recipes, the edits of the
    mask being made, the rows.
    """

    COUNT = 0
    CAPACITY = 1
    WORDS = 2  # of a row
    INDEX = 3
    INDEX_SIZE = 4
    KNOWN = 5  # the hash table of recipes
    KNOWN_SIZE = 6
    NUM_KNOWN = 7
    RECIPES = 8
    RECIPES_END = 9
    BASE_ROW = 10  # of the mask being made: the number of a row, 0 when its base is none
    BASE_SLICE = 11  # an offset in the packed vocabulary, 0 when its base is none
    NUM_EDITS = 12  # words of edits
    EDITS = 13
    ROWS = 14


_HEADER = len(Region)


class Recipe(Record):
    """A recipe that is kept; its edits follow."""

    row_number: RowId
    num_words: int  # of edits
    base_row: RowId
    base_slice: int
    accepts: int  # whether EOS is allowed


class Edit(Record):
    """A range of tokens, by their places in the packed vocabulary."""

    start: int = bits(31)
    survive: int = bits(1, above=31)  # 0 where they do not
    end: int


RECIPE_HEADER, EDIT_WORDS = Recipe.SIZE, Edit.SIZE
recipe_at, edit_at = part(Recipe), part(Edit)


class MaskRows:
    """A pool of masks of equal length, found by their content. Rows are numbered from 1, so that 0 can mean "not
    computed".

    Compiled code appends to the pool. words: 32-bit words of a mask. num_tokens: tokens of the vocabulary's trie, which
    bounds the edits of a mask.
    """

    def __init__(self, words: int, num_tokens: int) -> None:
        self._words, self._num_tokens = words, num_tokens
        rows = 1 << max(6, (_FIRST_WORDS // max(words, 64)).bit_length() - 1)
        self._use(*self._new_region(min(rows, _MOST_FIRST)))

    def __len__(self) -> int:
        return self._region.item(Region.COUNT)

    @property
    def nbytes(self) -> int:
        return 4 * len(self) * self._words

    def get(self, number: int) -> NDArray[np.uint32]:
        """The mask with this number, uint32 [words]: a read-only view, which never changes."""
        row: NDArray[np.uint32] = self._rows[number - 1]
        return row

    def grow(self) -> None:
        """Make room for twice as many rows. Other threads may read rows meanwhile."""
        region, pool = self._new_region(2 * len(self._pool))
        pool[: len(self)] = self._pool[: len(self)]
        fill_index(int(region.ctypes.data), len(self))
        self._use(region, pool)

    def keep(self, mask: NDArray[np.uint32]) -> int:
        """The number of a row equal to `mask`, stored if new."""
        if len(self) == len(self._pool):
            self.grow()
        self._pool[len(self)] = mask
        return int(keep_row(self.address))

    def copies(self) -> NDArray[np.uint32]:
        """All rows, in the order of their numbers."""
        return self._pool[: len(self)].copy()

    def fill(self, masks: NDArray[np.uint32]) -> None:
        """Put masks, which all differ, into an empty pool."""
        while len(self._pool) < len(masks):
            self.grow()
        self._pool[: len(masks)] = masks
        fill_index(self.address, len(masks))

    def take(self, numbers: NDArray[np.int32], out: NDArray[np.uint32]) -> None:
        """Fill out[k] with row numbers[k]."""
        take_rows(self._pool, numbers, out)

    def _new_region(self, rows: int) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """An empty region with room for so many rows, and that room. uint32 [rows, words]"""
        header, size = _layout(rows, self._words, self._num_tokens)
        region = reserved(size, _clean, ("rows", rows, self._words, self._num_tokens))
        region[:_HEADER] = header
        return region, region[header[Region.ROWS] :][: rows * self._words].view(np.uint32).reshape(rows, self._words)

    def _use(self, region: NDArray[np.int32], pool: NDArray[np.uint32]) -> None:
        self.address: int = region.__array_interface__["data"][0]
        self._region, self._pool, self._rows = region, pool, pool.view()
        self._rows.setflags(write=False)


@lru_cache(maxsize=64)
def _layout(rows: int, words: int, num_tokens: int) -> tuple[list[int], int]:
    """(header of an empty region with room for so many rows, words of the region)."""
    parts = {
        Region.INDEX: 2 * rows,
        Region.KNOWN: 4 * rows,
        Region.RECIPES: _RECIPE_WORDS * rows,
        Region.EDITS: 4 * num_tokens + 64,  # registers look at all tokens twice, what makes more edits gives up
        Region.ROWS: rows * words,
    }
    *starts, end = accumulate(parts.values(), initial=_HEADER)
    header = dict.fromkeys(Region, 0) | dict(zip(parts, starts, strict=True))
    header |= {Region.CAPACITY: rows, Region.WORDS: words, Region.RECIPES_END: header[Region.RECIPES]}
    header |= {Region.INDEX_SIZE: parts[Region.INDEX], Region.KNOWN_SIZE: parts[Region.KNOWN]}
    return list(header.values()), end


def _clean(region: NDArray[np.int32]) -> int:
    """Make zero what has to be zero in a region before it is used again, the hash tables. Returns how many words were
    touched, rows aside that are few."""
    return int(clear_rows(region))


@entry(region="int32[:]")
def clear_rows(region: NDArray[np.int32]) -> int:
    """`_clean`."""
    if region[Region.WORDS] == 0:
        return 0
    end = wide(region[Region.RECIPES])
    touched = end + wide(region[Region.COUNT]) * wide(region[Region.WORDS])
    for word in range(wide(region[Region.INDEX]), end):
        region[word] = 0
    for word in range(_HEADER):
        region[word] = 0
    return touched


@inner
def begin(rows: Words, base_row: RowId, base_slice: int) -> None:
    """Begin a recipe without edits. base_row: the number of a row, or 0; base_slice: an offset in the packed vocabulary, or 0. With
    neither no token survives yet."""
    rows[Region.BASE_ROW], rows[Region.BASE_SLICE], rows[Region.NUM_EDITS] = base_row, base_slice, 0


@inner
def set_tokens(rows: Words, start: int, end: int) -> None:
    """Note an edit: the tokens start..end of the packed vocabulary survive."""
    if start < end:
        edit(rows, start, end, 1)


@inner
def clear_tokens(rows: Words, start: int, end: int) -> None:
    """Note an edit: the tokens start..end of the packed vocabulary do not survive."""
    if start < end:
        edit(rows, start, end, 0)


@inner
def edit(rows: Words, start: int, end: int, survive: int) -> None:
    """Append an edit to the recipe, if there is room."""
    if not has_too_many_edits(rows):
        made = edit_at(rows + rows[Region.EDITS] + rows[Region.NUM_EDITS])
        made.start, made.survive, made.end = start, survive, end
        rows[Region.NUM_EDITS] += EDIT_WORDS


@inner
def has_too_many_edits(rows: Words) -> bool:
    """Whether there is no room for another edit, so that some may be missing."""
    return rows[Region.EDITS] + rows[Region.NUM_EDITS] + EDIT_WORDS > rows[Region.ROWS]


@inner
def find_or_make(rows: Words, vocab: Vocab, accepts: int, completable: int) -> RowId:
    """The number of the row that the recipe describes; it is made if there is none. There has to be room for a row.

    accepts: whether EOS is allowed. completable: the address of the tokens to which the row is confined (int32 [words]), 0 for all.
    """
    key, mask = recipe_key(rows, accepts), rows[Region.KNOWN_SIZE] - 1
    slot, length = key & mask, rows[Region.NUM_EDITS]
    is_kept = completable == 0 and length <= _MAX_RECIPE
    while is_kept and rows[rows[Region.KNOWN] + slot] != 0:
        recipe = recipe_at(rows + rows[rows[Region.KNOWN] + slot])
        if is_recipe(rows, recipe, rows[rows[Region.KNOWN] + slot] + RECIPE_HEADER, accepts):
            return recipe.row_number
        slot = (slot + 1) & mask
    number = make(rows, vocab, accepts, completable)
    end = rows[Region.RECIPES_END]
    is_kept = is_kept and 2 * rows[Region.NUM_KNOWN] < rows[Region.KNOWN_SIZE]
    if is_kept and end + RECIPE_HEADER + length <= rows[Region.EDITS]:
        rows[rows[Region.KNOWN] + slot], rows[Region.RECIPES_END] = end, end + RECIPE_HEADER + length
        rows[Region.NUM_KNOWN] += 1
        recipe = recipe_at(rows + end)
        recipe.row_number, recipe.num_words, recipe.accepts = number, length, accepts
        recipe.base_row, recipe.base_slice = rows[Region.BASE_ROW], rows[Region.BASE_SLICE]
        for k in range(length):
            rows[end + RECIPE_HEADER + k] = rows[rows[Region.EDITS] + k]
    return number


@inner
def recipe_key(rows: Words, accepts: int) -> int:
    """A hash of the recipe that is being written."""
    h = (np.uint64(wide(rows[Region.BASE_SLICE])) * np.uint64(2) + np.uint64(wide(accepts))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ np.uint64(wide(rows[Region.BASE_ROW]))) * np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(29)
    for k in range(rows[Region.EDITS], rows[Region.EDITS] + rows[Region.NUM_EDITS]):
        h = (h ^ np.uint64(wide(rows[k]))) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return np.int64(h >> np.uint64(33))  # type: ignore[return-value]


@inner
def is_recipe(rows: Words, recipe: Recipe, edits: int, accepts: int) -> bool:
    """Whether a kept recipe, whose edits begin at an offset, equals the one that is being written."""
    if recipe.base_row != rows[Region.BASE_ROW] or recipe.base_slice != rows[Region.BASE_SLICE] or recipe.accepts != accepts:
        return False
    if recipe.num_words != rows[Region.NUM_EDITS]:
        return False
    for k in range(rows[Region.NUM_EDITS]):
        if rows[edits + k] != rows[rows[Region.EDITS] + k]:
            return False
    return True


@inner
def make(rows: Words, vocab: Vocab, accepts: int, completable: int) -> RowId:
    """Write the row of the recipe behind the last row. Returns the number under which it is kept, or that of an equal
    row."""
    words = rows[Region.WORDS]
    mask = rows[Region.ROWS] + words * rows[Region.COUNT]
    if rows[Region.BASE_ROW] != 0:
        base = rows[Region.ROWS] + words * (rows[Region.BASE_ROW] - 1)
        for k in range(words):
            rows[mask + k] = rows[base + k]
    elif rows[Region.BASE_SLICE] != 0:
        base = rows[Region.BASE_SLICE]
        for k in range(words):
            rows[mask + k] = vocab.array[base + k]
    else:
        for k in range(words):
            rows[mask + k] = 0
    for k in range(rows[Region.EDITS], rows[Region.EDITS] + rows[Region.NUM_EDITS], EDIT_WORDS):
        made = edit_at(rows + k)
        if made.survive:
            for place in range(made.start, made.end):
                token = vocab.array[place]
                rows[mask + (token >> 5)] |= bit(token)
        else:
            for place in range(made.start, made.end):
                token = vocab.array[place]
                rows[mask + (token >> 5)] &= ~bit(token)
    if completable != 0:
        confined = words_at(completable)
        for k in range(words):
            rows[mask + k] &= confined[k]
    for place in range(vocab.eos, vocab.eos + vocab.num_eos):
        token = vocab.array[place]
        rows[mask + (token >> 5)] &= ~bit(token)
        if accepts:
            rows[mask + (token >> 5)] |= bit(token)
    return keep(rows)


@inner
def bit(token: int) -> int:
    return np.int32(np.int64(1) << (token & 31))  # type: ignore[return-value]


@inner
def hash_words(rows: Words, start: int, count: int) -> int:
    """A hash of 32-bit words, multilinear (Carter and Wegman 1979): a sum that the compiler turns into wide
    instructions."""
    total = np.uint64(0)
    for i in range(count):
        total += np.uint64(wide(rows[start + i] & 0xFFFFFFFF)) * (np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1))
    return np.int64((total ^ (total >> np.uint64(29))) >> np.uint64(1))  # type: ignore[return-value]


@inner
def is_equal(rows: Words, row: int, other: int, count: int) -> bool:
    """Whether two rows are equal, compared in strides that the compiler turns into wide instructions."""
    for start in range(0, count, COMPARED_WORDS):
        difference = np.int32(0)
        for i in range(start, min(start + COMPARED_WORDS, count)):
            difference |= np.int32(rows[row + i] ^ rows[other + i])
        if difference != 0:
            return False
    return True


@inner
def find_or_add(rows: Words, number: RowId) -> RowId:
    """The number of a row equal to row `number`. If there is none, row `number` is entered in the index."""
    words, index, mask = rows[Region.WORDS], rows[Region.INDEX], rows[Region.INDEX_SIZE] - 1
    row = rows[Region.ROWS] + words * (number - 1)
    slot = hash_words(rows, row, words) & mask
    while rows[index + slot] != 0:
        other = rows[index + slot]
        if is_equal(rows, row, rows[Region.ROWS] + words * (other - 1), words):
            return other
        slot = (slot + 1) & mask
    rows[index + slot] = number
    return number


@inner
def keep(rows: Words) -> RowId:
    """Keep the row that has been written behind the last one, if it is new. Returns its number, or that of an equal
    row."""
    number = RowId(rows[Region.COUNT] + 1)
    found = find_or_add(rows, number)
    if found == number:
        rows[Region.COUNT] = number
    return found


@entry
def keep_row(rows: int) -> RowId:
    """`keep`, for Python."""
    return keep(words_at(rows))


@entry
def fill_index(rows_address: int, count: int) -> None:
    """Enter the rows 1..count into an empty index."""
    rows = words_at(rows_address)
    rows[Region.COUNT] = count
    for number in range(1, count + 1):
        find_or_add(rows, RowId(number))


@entry(pool="const uint32[:,:]", numbers="const int32[:]", out="uint32[:,:]")
def take_rows(pool: NDArray[np.uint32], numbers: NDArray[np.int32], out: NDArray[np.uint32]) -> None:
    """Fill out[k] with row numbers[k] of the pool."""
    for k in range(numbers.size):
        out[k] = pool[numbers[k] - 1]
