"""The *arena*: one growable int32 array that holds all tables of one constraint's automaton.

Compiled functions take `arena` and `tables = layout(arena)`: the array, and a view that says where each table begins. Entry i of
the table `lists` is `arena[tables.lists + i]`. Nodes and states are records of `REC` words, so the field `kind` of node i is
`arena[tables.kind + REC * i]`. There is one array because a compiled call costs about 0.2 us for each array argument, and because
arrays cost reference counts.

    where each table begins | n | node_hash | ... | nodes | pool | states | next | ... | text | rules
    arena[tables.next + 256 * 5 + 0x61]    the transition of state 5 on the byte "a"

Compiled code never grows a table. Where one is full, it writes a *fault* to `n[FAULT]`, which names that table, and
returns; `Machine.call` (machine.py) grows the table and repeats the call. The invariant that makes this safe: all
writes are hash-consing or memoisation, so what an unfinished call has written is right, and a repeated call finds it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..numba_support.pages import reserved
from ..numba_support.views import Word, view

DEAD = 0  # the automaton state from which nothing is accepted; also the node FAIL
STATE_BITS = 28  # a transition is (event << STATE_BITS) | state, or UNKNOWN
STATE_MASK = (1 << STATE_BITS) - 1
UNKNOWN = -1
FRAMED = -1  # instead of the number of a state's items
TOO_MANY = -1  # instead of the ends of a state

NUM_COUNTERS = 48  # words of the table `n`, whole records


class Counter(IntEnum):
    """Indices into the table `n`, whose numbers concern the whole arena: how much is in use, what is asked for, what is
    known."""

    NODES = 0
    POOL = 1
    STATES = 2
    EPOCH = 3
    FAULT = 4  # a `Fault`
    STEPS = 5
    VISITED = 6
    SEARCH_LIMIT = 7
    REQUESTS = 8
    ITEM_GAP = 9
    SEARCHED = 10
    WANTED = 11  # 1 + the body class that a mask was made in without tables, or NO_CLASS
    NUM_ENDS = 12
    CLEARED = 13  # of the exits of a class all are cleared, from here to CLEARED_END, that are not kept, see masking.py
    CLEARED_END = 14
    FARTHEST = 15  # bytes of the longest completion of a product that a search has come across
    KEPT = 16
    KEPT_END = 17
    PLAIN = 18  # printable characters of one byte that are tokens, and stand for themselves in JSON strings
    ONLY_JSON = 19  # 1 when all texts are JSON, with white space as JSON has it
    IN_STRING = 20  # 1 while a walk begins inside a string
    FREE_NAMES = 21  # 1 when every key that is remembered may be any but finitely many
    NUM_STATIC = 22  # nodes of the grammar
    NUM_SEQUENCES = 23  # nodes that are in `sequence_hash`
    MARKED = 24  # what was found when candidates were last marked, from here to MARKED_INNER, see duplicate_candidates.py
    MARKED_EPOCH = 25
    MARKED_CANDIDATES = 26
    MARKED_INNER = 27
    FREE_ITEMS = 28  # 1 when every further item of a unique array may be any string but finitely many
    MIXED = 29  # 1 when arrays whose items must differ may stand in the same place as other arrays
    CALLS = 30  # 1 when rules are called, so that stacks may grow
    PARTS = 31  # of unions that were looked at
    GIVES_UP = 32  # 1 when a search that is exhausted says that there is no completion, see `determinize.search`


class Fault(IntEnum):
    """Why a compiled call stopped, in n[Counter.FAULT]. The FULL_ ones say which table to grow."""

    NONE = 0
    FULL_NODES = 1
    FULL_POOL = 2
    FULL_STATES = 3
    FULL_WORK = 4
    FULL_ITEMS = 5
    FULL_REQUESTS = 6
    FULL_SEQUENCES = 7
    SEARCH_EXHAUSTED = 100


_TABLES = [
        "n",  # [NUM_COUNTERS] see `Counter`; whole records, so that those below are lines of the cache
        # Big tables of fixed size first, so that they begin at the same places whatever the grammar: see pages.py.
        "node_hash",  # open addressing, 0 = free; the first 2^k entries are in use
        "sequence_hash",  # the same, of sequences that hold nodes made while the automaton runs: few, and looked up most
        "state_hash",  # as node_hash
        "nodes",  # [nodes] records of expression nodes, static ones first; see NODE_FIELDS
        "pool",  # closures [length, body class, radius, items...] and the items of states
        "states",  # [states] records of automaton states, see STATE_FIELDS; 0 is DEAD
        "next",  # [states * 256] transitions
        "work", "items",  # scratch: nodes to expand, items of the state being made
        "path",  # [PATH_WIDTH * (depth of the vocabulary's trie + 1)] scratch: a frame for every byte of a token, see trie_walk.py
        "ends",  # [2 * MAX_ENDS] scratch: ends of the state that is being walked, see shared_continuations.py
        "requests",  # [2 * depth] what has to be known first: (state, byte) transitions, (product, SEARCH) searches
        "contained",  # [2 * pairs] (continuation, one that it contains), 0 where free, see containment.py
        # static parts of the grammar
        "edge_low", "edge_high", "edge_next",  # [class edges]
        "lists",  # alternatives
        # [8 * body classes] set of first bytes, see packed_vocabulary.py; offset of its tables there, 0 when it has none
        "classes",
        "worst", "ample",  # [static nodes] tokens for any string; for some string, whichever are used up; filled where needed
        "text", "text_cost",  # [literal bytes] the byte; tokens that suffice for the rest of its literal
        "rules",  # [rules] body node
]  # fmt: skip

# A record is REC words (a power of two), a line of the cache: nodes and states are made far apart from each other, and all of one
# is read at once.
REC = 16
PATH_WIDTH = 8  # words of a frame of `path`
MAX_ENDS = 2048
NODE_FIELDS = (
    "kind", "a", "b", "c",  # see expression.Kind
    "size",  # bytes of the shortest string, INFINITE when there is none, -1 for a product not searched yet
    "cost",  # tokens that suffice to spell some string, INFINITE when the vocabulary cannot
    "closure",  # offset of the closure in `pool`, 0 when not made yet, or when it is the node itself
    "marked_in",  # epoch of the last visit
    "body_class",  # body class of a repeated node, -1 when it has none; of static nodes only
    "copies_per_token",  # copies of a repeated node that one token can spell, for any number of copies up to this; static
    "shared",  # 1 of a static node that is a part of several sequences, see `shared_head`
    "entry_product",  # the PRODUCT that a BOTH or NEGATE begins with; of a PRODUCT the last search that visited it
    # of a repeated node, the most copies that have been begun of a repetition that ends far away, see counter_saturation.py
    "copies_begun",
    "may_saturate",  # 1 of a repetition, or a sequence, where one may end far away
    # of a word: the first of those one symbol longer that are marked; the next one beside it; see duplicate_candidates.py
    "first_candidate", "next_candidate",
)  # fmt: skip
STATE_FIELDS = (
    "state_start", "state_length",  # items in `pool`, sorted; a frame there when the length is FRAMED, see states.py
    "state_accept",  # 1 when the text so far is complete
    "state_cost",  # tokens that suffice to finish
    # body class the state loops on, -1; characters left in it; without a body, see `unlisted_of`
    "state_body_class", "state_max_chars",
    "state_body_is_exclusive",  # 1 when only repetitions of the body class read its characters; UNKNOWN when not found out yet
    "state_has_no_product",  # 1 when no item is a product
    "state_literal", "state_literal_left",  # where in `text` the bytes are that must come next, and how many
    "state_after_literal",  # the state after those, UNKNOWN when not found yet
    "state_uniform",  # offset of its run in `pool`, see uniform_transitions.py; 0 when not made
    "state_events",  # bit 1 << event of every event that a token can pass; known when the row is
    "state_row",  # number of the mask row, 0 when not computed
    "state_items_hash",  # hash of the items
    "state_ends",  # offset of its ends in `pool`, see shared_continuations.py; 0 when not found yet
)  # fmt: skip

FIELDS = tuple(_TABLES)
RECORDS = {"nodes": NODE_FIELDS, "states": STATE_FIELDS}
_FIELDS_OF = {name: (records, k) for records, fields in RECORDS.items() for k, name in enumerate(fields)}
# Sizes that compiled code reads.
SIZED = ("nodes", "node_hash", "sequence_hash", "pool", "states", "state_hash", "work", "items", "requests")
_HEADER = 64  # words: FIELDS offsets, then the end; the last ones are the sizes of the hash tables in use
_CLEARED = FIELDS.index("next") + 1  # from this table on all are cleared whole: they may begin anywhere
_HASH_SIZES = {"node_hash": _HEADER - 3, "sequence_hash": _HEADER - 2, "state_hash": _HEADER - 1}
HASHES = tuple(_HASH_SIZES)
_COUNTERS = {"node_hash": Counter.NODES, "sequence_hash": Counter.NODES, "state_hash": Counter.STATES}
FAULT_WORD = _HEADER + Counter.FAULT  # of the array: `n` is the first table
NO_CLASS = 0  # in n[Counter.WANTED]
CLASS_WIDTH, CLASS_TABLES = 8, 6  # words of an entry of `classes`; which of them is the offset

_FULL: dict[int, tuple[str, ...]] = {
    Fault.FULL_NODES: ("nodes",),
    Fault.FULL_POOL: ("pool",),
    Fault.FULL_STATES: ("states", "next"),
    Fault.FULL_WORK: ("work",),
    Fault.FULL_ITEMS: ("items",),
    Fault.FULL_REQUESTS: ("requests",),
    Fault.FULL_SEQUENCES: ("nodes",),
}
_GROWS_HASH: dict[int, str] = {
    Fault.FULL_NODES: "node_hash",
    Fault.FULL_SEQUENCES: "sequence_hash",
    Fault.FULL_STATES: "state_hash",
}


def _size(name: str) -> Word:
    if name in _HASH_SIZES:
        return Word(_HASH_SIZES[name])
    i = FIELDS.index(name)
    return Word(i + 1, since=i, shift=REC.bit_length() - 1 if name in RECORDS else 0)


layout = view(
    "Layout",
    {
        **{name: Word(i) for i, name in enumerate(FIELDS)},
        **{name: Word(FIELDS.index(records), plus=k) for name, (records, k) in _FIELDS_OF.items()},
        **{f"{name}_size": _size(name) for name in SIZED},
    },
)


class Arena:
    """The owner of the array: it gives each table its place, and grows tables by doubling them.

    hash_sizes: how many entries of each hash table are in use at first; the rest of the table is room to grow.
    """

    def __init__(self, sizes: dict[str, int], hash_sizes: dict[str, int]) -> None:
        assert tuple(sizes) == FIELDS
        self._lay_out(sizes, hash_sizes)

    def table(self, name: str) -> NDArray[np.int32]:
        """One table, or one field of all records: a view that is valid until the arena grows."""
        if name in _FIELDS_OF:
            records, k = _FIELDS_OF[name]
            return self._table(records)[k::REC]
        return self._table(name)

    def _table(self, name: str) -> NDArray[np.int32]:
        start, end = self._spans[name]
        view: NDArray[np.int32] = self.array[start:end]
        return view

    def grow(self, fault: int) -> Collection[str]:
        """Double the table that a fault says is full, and clear the fault. Returns the names of the hash tables that
        are empty now, which `determinize.rehash` has to fill."""
        names, hashed = _FULL[fault], _GROWS_HASH.get(fault)
        hash_sizes = {name: int(self.array[word]) for name, word in _HASH_SIZES.items()}
        sizes = {name: end - start for name, (start, end) in self._spans.items()}
        larger: dict[str, int] = {}  # tables for which there is no room where they are
        if hashed is None or REC * int(self.table("n")[_COUNTERS[hashed]]) >= sizes[names[0]]:
            larger = {name: 2 * sizes[name] for name in names}
        if hashed is not None:
            hash_sizes[hashed] *= 2
            if hash_sizes[hashed] > sizes[hashed]:
                larger[hashed] = hash_sizes[hashed]
        if larger:
            self._move(sizes | larger, hash_sizes)
        emptied = HASHES if larger or hashed is None else [hashed]
        for name in emptied:
            self.table(name)[: hash_sizes[name]] = 0
            self.array[_HASH_SIZES[name]] = hash_sizes[name]
        self.table("n")[Counter.FAULT] = Fault.NONE
        return emptied

    def _move(self, sizes: dict[str, int], hash_sizes: dict[str, int]) -> None:
        """Copy everything in use, except the hash tables, into a new array."""
        used = _used(self.array)
        old = {name: self._table(name)[: used[name]] for name in FIELDS if name not in _HASH_SIZES}
        self._lay_out(sizes, hash_sizes)
        for name, table in old.items():
            self._table(name)[: table.size] = table

    def _lay_out(self, sizes: dict[str, int], hash_sizes: dict[str, int]) -> None:
        offsets = np.cumsum([_HEADER, *sizes.values()])
        assert offsets[-1] < 2**31, "an arena is addressed with 32 bits"
        self.array = reserved(int(offsets[-1]), _clean, tuple(offsets[: _CLEARED + 1].tolist()))
        self.address = int(self.array.ctypes.data)
        self.array[: len(offsets)] = offsets
        for name, word in _HASH_SIZES.items():
            self.array[word] = hash_sizes[name]
        self._spans = dict(zip(FIELDS, pairwise(offsets.tolist()), strict=True))


def _used(array: NDArray[np.int32]) -> dict[str, int]:
    """How many words of each table are in use."""
    offsets = array[: len(FIELDS) + 1].tolist()
    sizes = {name: end - start for name, (start, end) in zip(FIELDS, pairwise(offsets), strict=True)}
    counters = array[offsets[0] : offsets[1]]
    num_nodes, num_states, pool = int(counters[Counter.NODES]), int(counters[Counter.STATES]), int(counters[Counter.POOL])
    used = sizes | {"nodes": REC * num_nodes, "states": REC * num_states, "next": 256 * num_states, "pool": pool}
    used |= {name: int(array[word]) for name, word in _HASH_SIZES.items()}
    return {name: min(size, sizes[name]) for name, size in used.items()}


def _clean(array: NDArray[np.int32]) -> int:
    """Make the array of an arena that nobody uses any more zero again; returns how many words it has touched."""
    offsets = array[: len(FIELDS)].tolist()
    if offsets[0] == 0:
        return 0
    used = _used(array)
    for name, start in zip(FIELDS, offsets, strict=True):
        if name not in ("nodes", "states", "next", "pool"):  # written before they are read, and always in the same place
            array[start : start + used[name]] = 0
    array[:_HEADER] = 0
    return sum(used.values())
