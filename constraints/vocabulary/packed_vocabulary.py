"""The packed vocabulary: all that compiled code reads of a vocabulary (tries, tokens, body classes), in one int32 array `vocab`.

One array, because a compiled call costs about 0.1 us for each array argument, and the mask walk does not know beforehand
which tables it needs. A table is named by the offset of its record: the word TRIE of the header is the offset of the
trie of all tokens, and the word NUM_NODES of that record is its number of nodes. The array is
append-only: what is in it never changes. The records:

    header      (`Header`) [WORDS] uint32 words of a mask  [DEPTH] bytes of the longest token  [TRIE] the trie of all tokens
                [EOS] offset and [NUM_EOS] number of the EOS ids  [OFFSETS], [BYTES] token t begins at
                vocab[bytes + vocab[offsets + t]]
                [SPELLS] 1 when every byte is a token  [QUOTED_ONCE], [QUOTED_TWICE], [QUOTED_THRICE] tries of the tokens with
                that many quotation marks or more: those that can open a key, end another one before, and so on  [QUOTED_APART] of
                those in which a key can end and, behind a value, another one begin  [SEPARATED] of those with a quotation mark or
                a comma, in which a key or another item can begin  [LISTED] of those with a bracket and a comma, in which an array
                can begin and have two items  [STRING], [LINE] the body classes of the characters of JSON strings, and of those
                without line separators, which `.` does not match
                [GROUPED] the trie of all tokens by groups of bytes, see byte_classes.py  [CONTROLS], [NUM_CONTROLS] tokens with a
                control character and no quotation mark before it, which no JSON string has
    trie        (`TrieRecord`) [NUM_NODES] n  [NODES] 4 words a node  [CHILDREN] 256 words a table  [ORDER] token ids
                [SHAPES] 8 words a node, or 0  [GROUPS] where the groups of bytes end (see byte_classes.py), 0 when nodes are
                of bytes
    node        byte | table of children << 8, depth, skip, first: see TokenTrie; one more node at the end
    children    1 + node by byte, 0 = none; table 0 is no table, table 1 the root's
    shape       of what lies below a node (of the first byte of several: from before it on): most characters begun, NO_HEIGHT when
                something is not UTF-8; the set of first bytes of these characters, a bit for each of 0x00-0x7F and 0xC0-0xFF;
                [IS_QUOTED] whether a quotation mark has been read
    body class  (`ClassRecord`) [LONGEST] characters in the longest token  [LAST_SLICE]  [SLICES] see BodyClass
                [RESIDUAL] a trie  [EXITS] and [REST] tries, or 0; [BY_PREFIX] and [PREFIX] with [NUM_EXITS] words: see Exits;
                [LONGEST_OUTSIDE], [LONG_TOKENS] and [LONG_TOKEN_LENGTHS] with [NUM_LONG_TOKENS] words: see BodyClass;
                [FIRST_BYTES] a set
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..base.utf8 import ALL, Ranges, byte_tree, invert, transitions
from ..numba_support.jit import entry, inner
from ..numba_support.pages import reserved
from .byte_classes import GROUP_ENDS, GROUP_RANGES, grouped
from .char_class_tables import BodyClass, Exits, SubTrie, occurrences
from .trie import TokenTrie


class Header(IntEnum):
    """The words at the beginning of the array."""

    WORDS = 0
    DEPTH = 1
    TRIE = 2
    EOS = 3
    NUM_EOS = 4
    OFFSETS = 5
    BYTES = 6
    SPELLS = 7
    QUOTED_ONCE = 8
    QUOTED_TWICE = 9
    QUOTED_THRICE = 10
    QUOTED_APART = 11
    SEPARATED = 12
    STRING = 13
    LINE = 14
    GROUPED = 15
    CONTROLS = 16
    NUM_CONTROLS = 17
    LISTED = 18


class TrieRecord(IntEnum):
    """The words of the record of a trie."""

    NUM_NODES = 0
    NODES = 1
    CHILDREN = 2
    ORDER = 3
    SHAPES = 4
    GROUPS = 5


class ClassRecord(IntEnum):
    """The words of the record of a body class."""

    LONGEST = 0
    LAST_SLICE = 1
    SLICES = 2
    RESIDUAL = 3
    EXITS = 4
    REST = 5
    BY_PREFIX = 6
    PREFIX = 7
    NUM_EXITS = 8
    LONGEST_OUTSIDE = 9
    LONG_TOKENS = 10
    LONG_TOKEN_LENGTHS = 11
    NUM_LONG_TOKENS = 12
    FIRST_BYTES = 13  # SET_WORDS of them


HEADER_WORDS = len(Header)
NODE_WIDTH, SHAPE_WIDTH, SET_WORDS, ASCII_WORDS, IS_QUOTED = 4, 8, 6, 4, 7
NO_HEIGHT = 1 << 20  # more characters than any token has
WIDE = 12  # children from which a node gets a table of them
_SPARE_WORDS = 1 << 24  # for body classes; reserved, not taken
FIRST_LEAD, FIRST_PRINTABLE, QUOTE = 0xC0, 0x20, 0x22


class PackedVocabulary:
    """The owner of the array, who appends records to it. Not thread-safe. What is in the array never changes."""

    def __init__(self, trie: TokenTrie, words: int, eos_token_ids: tuple[int, ...], spells_every_byte: bool) -> None:
        size = HEADER_WORDS + 64 * (trie.num_nodes + trie.token_offsets.size) + trie.token_bytes.size
        self.array = reserved(size + _SPARE_WORDS, _never_again, "packed vocabulary", in_huge_pages=True)
        self.address = int(self.array.ctypes.data)
        self._used = HEADER_WORDS
        vocab = self.array
        vocab[Header.WORDS], vocab[Header.DEPTH], vocab[Header.SPELLS] = words, trie.max_depth, spells_every_byte
        vocab[Header.EOS], vocab[Header.NUM_EOS] = self._add(np.array(eos_token_ids, np.int32)), len(eos_token_ids)
        vocab[Header.OFFSETS], vocab[Header.BYTES] = self._add(trie.token_offsets), self._add(trie.token_bytes)
        vocab[Header.TRIE], vocab[Header.SEPARATED] = self.trie(trie), self.trie(SubTrie.with_bytes(b'",', 1, trie))
        for at_least, field in enumerate((Header.QUOTED_ONCE, Header.QUOTED_TWICE, Header.QUOTED_THRICE), 1):
            vocab[field] = self.trie(SubTrie.with_bytes(b'"', at_least, trie))
        vocab[Header.QUOTED_APART], vocab[Header.LISTED] = (
            self.trie(SubTrie.quoted_apart(trie)),
            self.trie(SubTrie.with_each(b"[,", trie)),
        )
        controls = _controls(trie)
        vocab[Header.CONTROLS], vocab[Header.NUM_CONTROLS] = self._add(controls), controls.size
        self._add_shapes(int(vocab[Header.TRIE]))
        vocab[Header.GROUPED] = self._grouped(grouped(trie))

    @classmethod
    def of_array(cls, array: NDArray[np.int32], used: int) -> PackedVocabulary:
        """Of an array that has `used` words of another one already, and room behind them."""
        packed = cls.__new__(cls)
        packed.array, packed.address, packed._used = array, int(array.ctypes.data), used
        return packed

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

    def trie(self, trie: TokenTrie | SubTrie) -> int:
        """Append a trie record, without shapes; returns its offset."""
        nodes, children = _tabulated(trie)
        parts = (trie.byte.size, self._add(nodes), self._add(children), self._add(trie.order), 0, 0)
        return self._add(np.array(parts, np.int32))

    def _grouped(self, trie: TokenTrie) -> int:
        """Append a trie record by groups; returns its offset. It has no tables of children, because a dead byte says
        nothing about its group."""
        record = self.trie(trie)
        vocab, n = self.array, trie.num_nodes
        vocab[int(vocab[record + TrieRecord.NODES]) :][: NODE_WIDTH * n : NODE_WIDTH] &= 255
        vocab[record + TrieRecord.GROUPS] = self._add(GROUP_ENDS)
        self._add_shapes(record)
        shapes = vocab[int(vocab[record + TrieRecord.SHAPES]) :][: SHAPE_WIDTH * n].reshape(n, SHAPE_WIDTH)
        for first, end in GROUP_RANGES:
            if first < 0x80 or first >= FIRST_LEAD:
                begun, whole = _as_set(_span(first, first)), _as_set(_span(first, end - 1))
                has_group = np.any(shapes[:, 1 : 1 + SET_WORDS] & begun, axis=1, keepdims=True)
                shapes[:, 1 : 1 + SET_WORDS] |= np.where(has_group, whole, 0)
        return record

    def body_class(self, ranges: Ranges, body: BodyClass, exits: Exits | None = None) -> int:
        """Append the record of a body class; returns its offset."""
        record = np.zeros(ClassRecord.FIRST_BYTES + SET_WORDS, np.int32)
        record[ClassRecord.FIRST_BYTES:] = first_bytes(ranges)
        record[ClassRecord.LONGEST], record[ClassRecord.LAST_SLICE] = body.longest, len(body.slices) - 1
        record[ClassRecord.SLICES], record[ClassRecord.RESIDUAL] = self._add(body.slices.view(np.int32)), self.trie(body.residual)
        self._add_shapes(int(record[ClassRecord.RESIDUAL]))
        record[ClassRecord.LONGEST_OUTSIDE], record[ClassRecord.NUM_LONG_TOKENS] = body.longest_outside, body.long_tokens.size
        record[ClassRecord.LONG_TOKENS], record[ClassRecord.LONG_TOKEN_LENGTHS] = (
            self._add(body.long_tokens),
            self._add(body.long_token_lengths),
        )
        if exits is not None:
            record[ClassRecord.EXITS], record[ClassRecord.REST] = self.trie(exits.trie), self.trie(exits.rest)
            record[ClassRecord.NUM_EXITS] = exits.prefix.size
            record[ClassRecord.BY_PREFIX], record[ClassRecord.PREFIX] = self._add(exits.by_prefix), self._add(exits.prefix)
            self._add_shapes(int(record[ClassRecord.EXITS]))
            self._add_shapes(int(record[ClassRecord.REST]))
        return self._add(record)

    def _add_shapes(self, trie: int) -> None:
        """Append the shapes of the nodes of a trie record."""
        vocab, n = self.array, int(self.array[trie + TrieRecord.NUM_NODES])
        vocab[trie + TrieRecord.SHAPES] = self._used
        self._used += SHAPE_WIDTH * n
        _fill_shapes(vocab, trie, int(vocab[Header.DEPTH]), transitions(byte_tree(ALL)))

    def _add(self, table: NDArray[np.integer]) -> int:
        """Append a table; returns its offset."""
        start = self._used
        self._used += table.size
        assert self._used <= self.array.size
        self.array[start : self._used] = table.ravel()
        return start


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


def _tabulated(trie: TokenTrie | SubTrie) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(nodes, children) of a trie as the packed vocabulary has them: int32 [n + 1, NODE_WIDTH] and int32 [tables, 256]."""
    table = np.zeros(trie.depth.size + 1, np.int32)
    num_tables = _number_tables(trie.depth, table)
    nodes, children = np.zeros((table.size, NODE_WIDTH), np.int32), np.zeros((num_tables, 256), np.int32)
    _fill_nodes(trie.byte, trie.depth, trie.skip, trie.first, table, nodes, children)
    return nodes, children


def _never_again(array: NDArray[np.int32]) -> int:
    """Say that all words were touched: the array is too large to keep for another vocabulary."""
    return int(array.size)  # too much to keep for another vocabulary


# -- compiled -----------------------------------------------------------------------------------------------------------


@entry(depth="const int32[:]", table="int32[:]")
def _number_tables(depth, table):
    """Write the number of the table of children of every node, 0 where there is none; of node i - 1, of the root at 0. Returns how
    many there are, with the one that nobody has."""
    n = depth.size
    fan = np.zeros(n + 1, np.int32)  # children of node i - 1; of the root at 0
    at = np.zeros(n + 2, np.int32)  # [depth] 1 + the node there
    for i in range(n):
        fan[at[depth[i] - 1]] += 1
        at[depth[i]] = i + 1
    num_tables = np.int64(1)
    for i in range(n + 1):
        if i == 0 or fan[i] >= WIDE:
            table[i] = num_tables
            num_tables += 1
    return num_tables


@entry(
    byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]", table="const int32[:]",
    nodes="int32[:,:]", children="int32[:,:]",
)  # fmt: skip
def _fill_nodes(byte, depth, skip, first, table, nodes, children):
    """See `_tabulated`; both are zero before."""
    n = byte.size
    at = np.zeros(n + 2, np.int32)  # [depth] 1 + the node there
    for i in range(n):
        children[table[at[depth[i] - 1]], byte[i]] = i + 1
        at[depth[i]] = i + 1
        nodes[i, 0], nodes[i, 1], nodes[i, 2], nodes[i, 3] = byte[i] | table[i + 1] << 8, depth[i], skip[i], first[i]
    nodes[n, 2], nodes[n, 3] = n, first[n]


@entry(vocab="int32[:]", utf8="const int16[:,:]")
def _fill_shapes(vocab, trie, max_depth, utf8):
    """Fill in the shapes of a trie record, from the last node to the first, so that what is below a child is known
    already. utf8: the automaton of all characters (utf8.py)."""
    n, nodes, shapes = (
        vocab[trie + TrieRecord.NUM_NODES],
        np.int64(vocab[trie + TrieRecord.NODES]),
        np.int64(vocab[trie + TrieRecord.SHAPES]),
    )
    state = np.zeros(8, np.int64)  # [depth below node i]
    quoted = np.zeros(max_depth + 1, np.int32)  # [depth]
    for i in range(n):
        node = nodes + NODE_WIDTH * i
        quoted[vocab[node + 1]] = 1 if vocab[node] & 255 == QUOTE else quoted[vocab[node + 1] - 1]
        vocab[shapes + SHAPE_WIDTH * i + IS_QUOTED] = quoted[vocab[node + 1]]
    for i in range(n - 1, -1, -1):
        shape = shapes + SHAPE_WIDTH * i
        vocab[shape : shape + IS_QUOTED] = 0
        begins = 1 if vocab[nodes + NODE_WIDTH * i] & 255 >= FIRST_LEAD else 0
        base, j = vocab[nodes + NODE_WIDTH * i + 1] - begins, i + 1 - begins
        while j < vocab[nodes + NODE_WIDTH * i + 2]:
            node = nodes + NODE_WIDTH * j
            d, byte = vocab[node + 1] - base, vocab[node] & 255
            state[d] = utf8[state[d - 1], byte]
            if d == 1:  # the first byte of a character
                position = byte if byte < 0x80 else byte - FIRST_LEAD + 0x80
                if state[d] >= 0:
                    vocab[shape + 1 + (position >> 5)] |= np.int32(np.int64(1) << (position & 31))
                    vocab[shape] = max(vocab[shape], 1)
            if state[d] < 0:
                vocab[shape] = NO_HEIGHT
                break
            if state[d] > 0:
                j += 1
                continue
            below = shapes + SHAPE_WIDTH * j
            vocab[shape] = NO_HEIGHT if vocab[below] == NO_HEIGHT else max(vocab[shape], 1 + vocab[below])
            for k in range(1, 1 + SET_WORDS):
                vocab[shape + k] |= vocab[below + k]
            j = vocab[node + 2]


@inner
def is_inside(vocab, shape, classes, first):
    """Whether everything below a trie node is made of characters of a class whose first bytes begin no others. classes:
    offset in `arena` of that set. first: the word of the set to begin at, 0; or 1 to leave out control characters, which
    are 32."""
    for k in range(first, SET_WORDS):
        if vocab[shape + 1 + k] & ~classes[k] != 0:
            return False
    return True


@inner
def is_ascii(vocab, shape):
    """Whether everything below a trie node that is made of characters is ASCII. (The bits of ASCII fill the first words
    of the set.)"""
    for k in range(ASCII_WORDS, SET_WORDS):
        if vocab[shape + 1 + k] != 0:
            return False
    return True


@inner
def first_ascii(vocab, tables):
    """The first ASCII character of a body class with tables, 0x80 when it has none."""
    first = np.int64(0)
    while first < 0x80 and vocab[tables + ClassRecord.FIRST_BYTES + (first >> 5)] == 0:
        first += 32
    while first < 0x80 and vocab[tables + ClassRecord.FIRST_BYTES + (first >> 5)] >> (first & 31) & 1 == 0:
        first += 1
    return first


@inner
def child_of(vocab, trie, node, byte):
    """The child of a node (-1: of the root) by a byte, -1 when there is none."""
    nodes = vocab[trie + TrieRecord.NODES]
    table = np.int64(1) if node < 0 else vocab[nodes + NODE_WIDTH * node] >> 8
    if table != 0:
        return vocab[vocab[trie + TrieRecord.CHILDREN] + 256 * table + byte] - 1
    child, end = node + 1, vocab[nodes + NODE_WIDTH * node + 2]
    while child < end:
        if vocab[nodes + NODE_WIDTH * child] & 255 >= byte:
            return child if vocab[nodes + NODE_WIDTH * child] & 255 == byte else np.int64(-1)
        child = vocab[nodes + NODE_WIDTH * child + 2]
    return np.int64(-1)
