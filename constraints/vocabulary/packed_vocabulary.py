"""The packed vocabulary: all that compiled code reads of a vocabulary (tries, tokens, body classes), in one int32 array.

One array, because a compiled call costs about 0.1 us for each array argument, and the mask walk does not know beforehand
which tables it needs. What is in it is declared in packed_records.py. The array is append-only: what is in it never changes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..base.ids import Place
from ..base.utf8 import ALL, Ranges, byte_tree, invert, transitions
from ..numba_support.jit import entry
from ..numba_support.pages import reserved
from ..numba_support.records import View, Words, view_words
from .byte_classes import GROUP_ENDS, GROUP_RANGES, grouped
from .char_class_tables import BodyClass, Exits, SubTrie, occurrences
from .packed_records import (
    FIRST_LEAD,
    FIRST_PRINTABLE,
    NO_HEIGHT,
    QUOTE,
    ROOT_TABLE,
    SET_WORDS,
    ClassTables,
    Shape,
    Trie,
    TrieNode,
    Vocab,
    trie_of,
    vocab_at,
)
from .trie import TokenTrie

WIDE = 12  # children from which a node gets a table of them
_TOKENS_A_LONG_ONE = 256  # see `Vocab.common_depth`
_SPARE_WORDS = 1 << 24  # for body classes; reserved, not taken
_HEADER_WORDS = len(Vocab.WORDS)


class PackedVocabulary:
    """The owner of the array, who appends records to it. Not thread-safe. What is in the array never changes."""

    def __init__(self, trie: TokenTrie, words: int, eos_token_ids: tuple[int, ...], spells_every_byte: bool) -> None:
        size = _HEADER_WORDS + 64 * (trie.num_nodes + trie.token_offsets.size) + trie.token_bytes.size
        self.array = reserved(size + _SPARE_WORDS, _never_again, "packed vocabulary", in_huge_pages=True)
        self.address = int(self.array.ctypes.data)
        self._used = _HEADER_WORDS
        self.array[Vocab.WORDS["depth"].index] = trie.max_depth  # what shapes are made with
        controls, common_depth = _controls(trie), _common_depth(trie)
        self.array[:_HEADER_WORDS] = view_words(
            Vocab,
            {
                "array": 0, "words": words, "depth": trie.max_depth, "common_depth": common_depth, "spells": spells_every_byte,
                "eos": self._add(np.array(eos_token_ids, np.int32)), "num_eos": len(eos_token_ids),
                "text_offsets": self._add(trie.token_offsets), "text": self._add(trie.token_bytes),
                "trie": self.trie(trie, has_shapes=True), "grouped": self._grouped(grouped(trie)),
                **{name: self.trie(of) for name, of in _quoted(trie).items()},
                "longer": self.trie(SubTrie.without(trie.depth <= common_depth, trie), has_shapes=True),
                "controls": self._add(controls), "num_controls": controls.size,
                "string": 0, "line": 0,
            },
        )  # fmt: skip

    def tell_strings(self, string: Place, line: Place) -> None:
        """Write down where the tables of the characters of JSON strings are, and those of characters that `.` matches."""
        self.array[Vocab.WORDS["string"].index], self.array[Vocab.WORDS["line"].index] = string, line

    @classmethod
    def of_array(cls, array: NDArray[np.int32], used: int) -> PackedVocabulary:
        """Of an array that has `used` words of another one already, and room behind them."""
        packed = cls.__new__(cls)
        packed.array, packed.address, packed._used = array, int(array.ctypes.data), used
        return packed

    @property
    def vocab(self) -> Vocab:
        """What is in the array, as loops see it."""
        return Vocab(Words(self.array))

    @property
    def used(self) -> NDArray[np.int32]:
        """The words that are in use."""
        return self.array[: self._used]

    @property
    def nbytes(self) -> int:
        return 4 * self._used

    def has_room(self) -> bool:
        """Whether there is room for another body class."""
        return self._used + _SPARE_WORDS // 4 < self.array.size

    def trie(self, trie: TokenTrie | SubTrie, has_shapes: bool = False) -> Place:
        """Append a trie; returns its place."""
        return self._trie(trie, WIDE, has_shapes, is_grouped=False)

    def _grouped(self, trie: TokenTrie) -> Place:
        """Append a trie by groups; returns its place. Only its root has a table of children, because a dead byte says nothing about
        its group."""
        place = self._trie(trie, 257, has_shapes=True, is_grouped=True)
        start = int(place + self.array[place + Trie.WORDS["shapes"].index])
        shapes = self.array[start:][: Shape.SIZE * trie.num_nodes].reshape(trie.num_nodes, Shape.SIZE)
        first = Shape.PLACES["first_bytes"].at // 4
        sets = shapes[:, first : first + SET_WORDS]
        for byte, end in GROUP_RANGES:
            if byte < 0x80 or byte >= FIRST_LEAD:
                begun, whole = _as_set(_span(byte, byte)), _as_set(_span(byte, end - 1))
                has_group = np.any(sets & begun, axis=1, keepdims=True)
                sets |= np.where(has_group, whole, 0)
        return place

    def _trie(self, trie: TokenTrie | SubTrie, wide: int, has_shapes: bool, is_grouped: bool) -> Place:
        """wide: children from which a node gets a table of them."""
        n, table = trie.depth.size, np.zeros(trie.depth.size + 1, np.int32)
        num_tables = _number_tables(trie.depth, table, wide)
        parts = {
            "nodes": self._room(TrieNode.SIZE * (n + 1)), "children": self._room(256 * num_tables), "order": self._add(trie.order),
            "shapes": self._room(Shape.SIZE * n if has_shapes else 0), "group_ends": self._add(GROUP_ENDS) if is_grouped else 0,
        }  # fmt: skip
        numbers = {"num_nodes": n, "has_shapes": has_shapes, "is_grouped": is_grouped}
        place = self._add_view(Trie, parts | numbers, ("nodes", "children", "shapes", "group_ends"))
        _fill_nodes(self.address, place, trie.byte, trie.depth, trie.skip, trie.first, table)
        if has_shapes:
            _fill_shapes(self.address, place, transitions(byte_tree(ALL)))
        return place

    def body_class(self, ranges: Ranges, body: BodyClass, exits: Exits | None = None) -> Place:
        """Append the tables of a body class; returns their place."""
        parts = {
            "longest": body.longest, "last_slice": len(body.slices) - 1, "slices": self._add(body.slices.view(np.int32)),
            "residual": self.trie(body.residual, has_shapes=True), "longest_outside": body.longest_outside,
            "num_long_tokens": body.long_tokens.size, "long_tokens": self._add(body.long_tokens),
            "long_token_lengths": self._add(body.long_token_lengths), "first_bytes": self._add(first_bytes(ranges)),
            "has_exits": 0, "exits": 0, "rest": 0, "num_exits": 0, "by_prefix": 0, "prefix": 0,
        }  # fmt: skip
        if exits is not None:
            parts |= {
                "has_exits": 1, "exits": self.trie(exits.trie, has_shapes=True), "rest": self.trie(exits.rest, has_shapes=True),
                "num_exits": exits.prefix.size, "by_prefix": self._add(exits.by_prefix), "prefix": self._add(exits.prefix),
            }  # fmt: skip
        relative = ("residual", "exits", "rest", "prefix", "long_token_lengths", "first_bytes")
        return self._add_view(ClassTables, parts, relative)

    def _add_view(self, cls: type[View], numbers: dict[str, int], relative: tuple[str, ...]) -> Place:
        """Append what an array begins with that has this view; returns its place. numbers: by attribute, parts by their places.
        relative: the attributes that count from the view's own place."""
        place = self._used
        own = {"place": place} if "place" in cls.WORDS else {}
        self._add(np.array(view_words(cls, numbers | own | {name: numbers[name] - place for name in relative}), np.int32))
        return Place(place)

    def _add(self, table: NDArray[np.integer]) -> int:
        """Append a table; returns its place."""
        start = self._room(table.size)
        self.array[start : self._used] = table.ravel()
        return start

    def _room(self, num_words: int) -> int:
        """The place of so many words that are zero."""
        start = self._used
        self._used += num_words
        assert self._used <= self.array.size
        return start


def _quoted(trie: TokenTrie) -> dict[str, SubTrie]:
    """The tries of the tokens in which a key or an item can begin, by their names in `Vocab`."""
    return {
        "separated": SubTrie.with_bytes(b'",', 1, trie),
        "quoted_once": SubTrie.with_bytes(b'"', 1, trie),
        "quoted_twice": SubTrie.with_bytes(b'"', 2, trie),
        "quoted_thrice": SubTrie.with_bytes(b'"', 3, trie),
        "quoted_apart": SubTrie.quoted_apart(trie),
        "listed": SubTrie.with_each(b"[,", trie),
    }


def _common_depth(trie: TokenTrie) -> int:
    """The least number of bytes that at most one token of _TOKENS_A_LONG_ONE exceeds."""
    lengths = np.sort(np.repeat(trie.depth, np.diff(trie.first)))
    return int(lengths[-1 - lengths.size // _TOKENS_A_LONG_ONE]) if lengths.size else 0


def _controls(trie: TokenTrie) -> NDArray[np.int32]:
    """The ids of the tokens with a control character and no quotation mark before it, sorted. int32"""
    quotes = occurrences(np.arange(256) == QUOTE, trie)
    controls = np.flatnonzero((trie.byte < FIRST_PRINTABLE) & (quotes == 0))
    ranges = [trie.order[trie.first[node] : trie.first[trie.skip[node]]] for node in controls]
    return np.unique(np.concatenate([*ranges, np.empty(0, np.int32)])).astype(np.int32)


@lru_cache(maxsize=1024)
def first_bytes(ranges: Ranges) -> NDArray[np.int32]:
    """The bytes that begin characters of a class and no others, as the set of a shape. int32 [SET_WORDS]"""
    whole = _span(0, 0x7F) | _span(0xC2, 0xF4)
    for low, high in invert(ranges):
        whole &= ~_span(chr(low).encode()[0], chr(high).encode()[0])
    found = _as_set(whole)
    found.setflags(write=False)
    return found


def _span(first: int, last: int) -> int:
    """The first bytes from `first` to `last` as bits, at their places in the set of a shape."""
    start, end = (byte if byte < 0x80 else byte - FIRST_LEAD + 0x80 for byte in (first, last))
    return (2 << end) - (1 << start)


def _as_set(places: int) -> NDArray[np.int32]:
    """Bits as the set of a shape. int32 [SET_WORDS]"""
    return np.frombuffer(places.to_bytes(4 * SET_WORDS, "little"), "<i4").astype(np.int32)


def _never_again(array: NDArray[np.int32]) -> int:
    """Say that all words were touched: the array is too large to keep for another vocabulary."""
    return int(array.size)


# -- compiled -----------------------------------------------------------------------------------------------------------


@entry(depth="const int32[:]", table="int32[:]")
def _number_tables(depth, table, wide):
    """Write the number of the table of children of every node, 0 where there is none; of node i - 1, of the root at 0. Returns how
    many there are, with the one that nobody has. wide: children from which a node has a table; the root always has one."""
    n = depth.size
    fan = np.zeros(n + 1, np.int32)  # children of node i - 1; of the root at 0
    at = np.zeros(n + 2, np.int32)  # [depth] 1 + the node there
    for i in range(n):
        fan[at[depth[i] - 1]] += 1
        at[depth[i]] = i + 1
    table[0], num_tables = ROOT_TABLE, ROOT_TABLE + 1
    for i in range(1, n + 1):
        if fan[i] >= wide:
            table[i] = num_tables
            num_tables += 1
    return num_tables


@entry(
    byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]", table="const int32[:]",
)  # fmt: skip
def _fill_nodes(vocab_address, place, byte, depth, skip, first, table):
    """Fill in the nodes and the children of a trie, which are zero before. table: see `_number_tables`."""
    trie = trie_of(vocab_at(vocab_address), place)
    n = byte.size
    at = np.zeros(n + 2, np.int32)  # [depth] 1 + the node there
    for i in range(n):
        trie.children[256 * table[at[depth[i] - 1]] + byte[i]] = i + 1
        at[depth[i]] = i + 1
        node = trie.nodes[i]
        node.byte, node.table = byte[i], table[i + 1]
        node.depth, node.skip, node.first = depth[i], skip[i], first[i]
    trie.nodes[n].skip, trie.nodes[n].first = n, first[n]


@entry(utf8="const int16[:,:]")
def _fill_shapes(vocab_address, place, utf8):
    """Fill in the shapes of a trie, which are zero before, from the last node to the first, so that what is below a child is known
    already. utf8: the automaton of all characters (utf8.py)."""
    vocab = vocab_at(vocab_address)
    trie = trie_of(vocab, place)
    state = np.zeros(8, np.int64)  # [depth below node i]
    quoted = np.zeros(vocab.depth + 1, np.int64)  # [depth]
    for i in range(trie.num_nodes):
        node = trie.nodes[i]
        quoted[node.depth] = 1 if node.byte == QUOTE else quoted[node.depth - 1]
        trie.shapes[i].is_quoted = quoted[node.depth]
    for i in range(trie.num_nodes - 1, -1, -1):
        shape = trie.shapes[i]
        begins = 1 if trie.nodes[i].byte >= FIRST_LEAD else 0
        base, j = trie.nodes[i].depth - begins, i + 1 - begins
        while j < trie.nodes[i].skip:
            d, byte = trie.nodes[j].depth - base, trie.nodes[j].byte
            state[d] = utf8[state[d - 1], byte]
            if d == 1:  # the first byte of a character
                position = byte if byte < 0x80 else byte - FIRST_LEAD + 0x80
                if state[d] >= 0:
                    shape.first_bytes[position >> 5] |= 1 << (position & 31)
                    shape.height = max(shape.height, 1)
            if state[d] < 0:
                shape.height = NO_HEIGHT
                break
            if state[d] > 0:
                j += 1
                continue
            inside = trie.shapes[j]
            shape.height = NO_HEIGHT if inside.height == NO_HEIGHT else max(shape.height, 1 + inside.height)
            for k in range(SET_WORDS):
                shape.first_bytes[k] |= inside.first_bytes[k]
            j = trie.nodes[j].skip
