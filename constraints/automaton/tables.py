"""The *arena*: one growable int32 array that holds all tables of one constraint's automaton.

Compiled functions take `m = tables_at(address)`, which has a name for each table (records.py says what these are in compiled code):
entry i of the table `lists` is `m.lists[i]`, and the field `kind` of node i is `m.nodes[i].kind`. There is one array because a
compiled call costs about 0.2 us for each array argument, and because arrays cost reference counts.

    where each table begins | n | node_hash | ... | nodes | pool | states | next | ... | text | rules
    m.next[256 * 5 + 0x61]    the transition of state 5 on the byte "a"

Compiled code never grows a table. Where one is full, it writes a *fault* to `m.n.fault`, which names that table, and
returns; `Machine.call` (machine.py) grows the table and repeats the call. The invariant that makes this safe: all
writes are hash-consing or memoisation, so what an unfinished call has written is right, and a repeated call finds it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.ids import BodyId, NodeId, Place, RegisterId, RowId, StateId, TokenId
from ..numba_support.jit import entry
from ..numba_support.pages import reserved
from ..numba_support.record_access import part, view
from ..numba_support.records import Record, Records, View, Word, Words, bits, byte, instead_of, several
from ..vocabulary.packed_records import SET_WORDS

DEAD = StateId(0)  # from which nothing is accepted
STATE_BITS = 28  # a transition is (event << STATE_BITS) | state, or UNKNOWN
STATE_MASK = (1 << STATE_BITS) - 1
UNKNOWN = -1
NO_CLASS = 0  # in `Counters.wanted`
MAX_ENDS = 2048
MOST_APART = 1024


class Fault(IntEnum):
    """Why a compiled call stopped, in `Counters.fault`. The FULL_ ones say which table to grow."""

    NONE = 0
    FULL_NODES = 1
    FULL_POOL = 2
    FULL_STATES = 3
    FULL_WORK = 4
    FULL_ITEMS = 5
    FULL_REQUESTS = 6
    FULL_SEQUENCES = 7
    SEARCH_EXHAUSTED = 100
    PAUSED = 101  # to look at the clock
    TOO_MANY_PARTS = 102  # were looked at


# -- records ------------------------------------------------------------------------------------------------------------

# Nodes and states are a line of the cache each (16 words): they are made far apart from each other, and all of one is read at once.


class Counters(Record, size=48):
    """Numbers that concern the whole arena: how much is in use, what is asked for, what is known. Whole records, so that those
    behind it are lines of the cache."""

    nodes: int
    pool: int
    states: int
    epoch: int
    fault: int  # a `Fault`
    steps: int
    visited: int
    search_limit: int
    requests: int
    item_gap: int  # the greatest `gap` of any node, for items that are among the first `different`
    different: int  # keys or items for which surcharges suffice, see new_texts.py
    searched: int
    wanted: int  # 1 + the body class that a mask was made in without tables, or NO_CLASS
    num_ends: int  # that were noted
    num_apart: int  # parts of the walk that were put aside
    notes_ends: int  # 1 while a walk notes them
    cleared: int  # of the exits of a class all are cleared, from here to cleared_end, that are not kept, see tail_masks.py
    cleared_end: int
    farthest: int  # bytes of the longest completion of a product that a search has come across
    kept: int
    kept_end: int
    plain: int  # printable characters of one byte that are tokens, and stand for themselves in JSON strings
    only_json: int  # 1 when all texts are JSON, with white space as JSON has it
    in_string: int  # 1 while a walk begins inside a string
    free_names: int  # 1 when every key that is remembered may be any but finitely many
    num_static: int  # nodes of the grammar
    num_sequences: int  # nodes that are in `sequence_hash`
    marked: RegisterId  # what was found when candidates were last marked, from here to marked_inner, see duplicate_candidates.py
    marked_epoch: int
    marked_candidates: int
    marked_inner: int
    free_items: int  # 1 when every further item of a unique array may be any string but finitely many
    mixed: int  # 1 when arrays whose items must differ may stand in the same place as other arrays, or inside one another
    has_unique: int  # 1 when there are arrays whose items must differ
    calls: int  # 1 when rules are called, so that stacks may grow
    parts: int  # of unions that were looked at
    strategies_off: int  # bits of `Strategy` (strategy_contract.py) that are left out
    graph: int  # 1 when stacks are kept as a graph, see fronts.py
    gives_up: int  # 1 when a search that is exhausted says that there is no completion, see `determinize.search`
    inexact: int  # 1 when a product may be left out that has a completion, as searches come near to giving up
    pause: int  # `steps` at which a call is to stop for a look at the clock, 0 for never
    most_parts: int  # `parts` beyond which a byte of a trial is given up, 0 where nothing is tried
    most_nodes: int  # `nodes` beyond which it is


class NodeRecord(Record, size=16):
    """An expression."""

    kind: int  # what the operands mean: see expression.Kind
    a: Any  # what operands are, follows from the kind
    b: Any
    c: Any
    size: int  # bytes of the shortest string, INFINITE when there is none, UNKNOWN for a product not searched yet
    cost: int  # tokens that suffice to spell some string, INFINITE when the vocabulary cannot
    closure: int  # offset of the `Closure` in `pool`, 0 when not made yet, or when it is the node itself
    marked_in: int  # epoch of the last visit
    body_class: BodyId  # of a repeated node, NO_BODY when it has none; of static nodes only
    copies_per_token: int = bits(30)  # copies of a repeated node that one token can spell, for any number up to this; static
    shared: int = bits(1, above=30)  # 1 of a static node that is a part of several sequences, see `shared_head`
    may_saturate: int = bits(1, above=31)  # 1 of a repetition, or a sequence, where one may end far away
    front: int  # offset of the `Front` of a continuation in `pool`, 0 when not made, see fronts.py
    entry_product: NodeId  # the PRODUCT that a BOTH or NEGATE begins with
    searched_in: int  # of a PRODUCT: the epoch of the last search that visited it
    place: int = instead_of("searched_in")  # of a FAMILY: where it is in a diagram, see families.py; of an asked member: its number
    copies_begun: int  # of a repeated node, the most that were begun of a repetition that ends far away: counter_saturation.py
    first_candidate: NodeId  # of a WORD: the first of those one symbol longer that are marked, see duplicate_candidates.py
    next_candidate: NodeId  # the next one beside it
    gap: int = instead_of("first_candidate")  # of a CLASS behind an item that must be new: the surcharge of the next one
    first_taken: NodeId = instead_of("first_candidate")  # of a WALK: the first TAKEN node that it may begin with, FAIL if unknown
    next_taken: NodeId = instead_of("next_candidate")  # of a TAKEN node: the next one that its WALK may begin with


class StateRecord(Record, size=16):
    """A set of items, and what follows from it."""

    start: int  # of its items in `pool`, sorted; of a frame nothing, see `items_of`
    length: int  # items
    frame: int  # offset of its `Frame` in `pool`, 0 when it is none
    cost: int  # tokens that suffice to finish
    body_class: BodyId  # that the state loops on, NO_BODY when there is none
    max_chars: int  # characters left in it
    unlisted: NodeId  # the one UNLISTED node of which the text is a part, if all other items are literals; 0 when there is none
    accept: int = byte()  # 1 when the text so far is complete
    has_no_product: int = byte()  # 1 when no item is a product
    body_is_exclusive: int = byte()  # 1 when only repetitions of the body class read its characters; UNKNOWN when not found out yet
    has_too_many_ends: int = byte()  # 1 when its ends were looked for, and are not kept
    literal: int  # where in `text` the bytes are that must come next
    literal_left: int  # how many these are
    after_literal: StateId  # the state behind them, UNKNOWN when not found yet
    uniform: int  # offset of its run in `pool`, see uniform_transitions.py; 0 when not made
    events: int  # bit 1 << event of every event that a token can pass; known when the row is
    row: RowId  # of its mask, 0 when not computed
    items_hash: int  # hash of the items
    ends: int  # offset of its `Ends` in `pool`, see shared_continuations.py; 0 when not found yet, or too many


class Closure(Record):
    """What a continuation may begin with (closures.py). Its items follow in `pool`."""

    length: int  # items
    body_class: BodyId  # that it loops on, NO_BODY when there is none
    max_chars: int  # characters of it that may come
    unlisted: NodeId  # the UNLISTED node with which the continuation begins, 0 when it does not, or has a body class


class Frame(Record):
    """A state written as another one and a tail (states.py)."""

    inner: StateId  # before the tail
    tail: NodeId
    start: int  # its items in `pool`; 0 when they are not written out
    length: int  # items


class Ends(Record):
    """Where the part before a tail is complete (shared_continuations.py), each an `End` behind this in `pool`."""

    count: int
    cleared: int  # tokens of the packed vocabulary that survive behind none: from here
    kept: int  # to here,
    kept_end: int  # and from here
    cleared_end: int  # to here


class End(Record):
    """A node of a trie; or a place inside of a token."""

    trie: Place  # 0 inside of a token
    node: int
    token: int  # its place in the packed vocabulary
    offset: int  # bytes before the end


class Uniform(Record):
    """Characters that lead from a state to the same next state (uniform_transitions.py)."""

    following: StateId
    first_bytes: Words = several(SET_WORDS)


class BodyClass(Record, size=8):
    """A set of characters that a node repeats."""

    first_bytes: Words = several(SET_WORDS)  # see packed_records.py
    tables: Place  # 0 when it has none


class Path(Record, size=8):
    """Where a walk is, at one depth of the trie."""

    state: StateId  # after that many bytes, DEAD along a literal
    table: int  # of the children of the node there, 0 when it has none
    after: int  # the first node behind its subtree, or behind the literal's


class Apart(Record, size=4):
    """A part of a walk that is put aside, see masks/apart.py."""

    trie: Place
    node: int  # below which it lies, or ROOT
    state: StateId  # that is there


class Step(Record):
    """What a walk with a register knows at one depth of the trie (judging.py)."""

    node: int  # of the trie
    byte: int  # read there
    event: int  # of that byte
    state: StateId  # behind it
    known: RegisterId  # the register after the first `since` bytes
    since: int
    origin: RegisterId  # the register whose candidates are those here, 0 without candidates
    narrowed: int  # 1 when a repeated item has ended some alternatives
    extra: int  # what the register adds to the cost of the tokens that end here


class Judging(Record, size=16):
    """Where a walk with a register is, what it is for, and what it has found."""

    way: int  # a `WalkMode`
    clears: int  # 1 when tokens that the register refuses are to be cleared
    fills: int  # 1 when the states behind tokens are wanted
    lists: int  # 1 when unsettled tokens are wanted
    least: int  # cost behind a token that is not unsettled
    cleared: int  # tokens
    num_unsettled: int  # tokens
    marked: RegisterId  # whose candidates are marked
    epoch: int  # in which they are, 0 without any
    is_inner: int  # see `mark_candidates`
    tested: StateId  # that was last looked at,
    loops: int  # and whether it is inside of a string without an end


class Unsettled(Record):
    """A token for which a search has to find out how many tokens suffice to finish behind it."""

    position: int  # in the order of the trie that was walked
    token_id: TokenId
    state: StateId
    held: RegisterId
    extra: int  # `ExtraCost`


# How many words they take, for loops.
NODE_WORDS, CLOSURE_WORDS, FRAME_WORDS = NodeRecord.SIZE, Closure.SIZE, Frame.SIZE
ENDS_WORDS, END_WORDS, UNIFORM_WORDS, UNSETTLED_WORDS = Ends.SIZE, End.SIZE, Uniform.SIZE, Unsettled.SIZE

closure_at = part(Closure)
frame_at = part(Frame)
ends_at = part(Ends)
end_at = part(End)
uniform_at = part(Uniform)
unsettled_at = part(Unsettled)


# -- tables -------------------------------------------------------------------------------------------------------------


class Tables(View):
    """What compiled functions take as `m`."""

    n: Counters
    # Big tables of fixed size first, so that they begin at the same places whatever the grammar: see pages.py.
    node_hash: Words  # open addressing, 0 = free; the first 2^k entries are in use
    sequence_hash: Words  # the same, of sequences that hold nodes made while the automaton runs: few, and looked up most
    state_hash: Words  # as node_hash
    nodes: Records[NodeId, NodeRecord]  # static ones first
    pool: Words  # closures and the items of states
    states: Records[StateId, StateRecord]  # 0 is DEAD
    next: Words  # [states * 256] transitions
    path: Records[int, Path]  # [depth of the vocabulary's trie + 1] scratch
    ends: Records[int, End]  # [MAX_ENDS] scratch: ends of the state that is being walked, see shared_continuations.py
    apart: Records[int, Apart]  # [MOST_APART] scratch
    steps: Records[int, Step]  # [depth of the vocabulary's trie + 1] scratch
    requests: Words  # [2 * depth] what has to be known first: (state, byte) transitions, (product, SEARCH) searches
    judging: Judging  # scratch
    contained: Words  # [2 * pairs] (continuation, one that it contains), 0 where free, see containment.py; and front_comparison.py
    work: Words  # scratch: nodes to expand
    items: Words  # scratch: items of the state being made
    # static parts of the grammar, which are written whole
    edge_low: Words  # [class edges]
    edge_high: Words
    edge_next: Words
    lists: Words  # alternatives
    classes: Records[BodyId, BodyClass]
    worst: Words  # [static nodes] tokens for any string, filled where needed
    ample: Words  # [static nodes] for some string, whichever are used up
    text: Words  # [literal bytes] the byte
    text_cost: Words  # [literal bytes] tokens that suffice for the rest of its literal
    rules: Words  # [rules] body node
    # sizes
    node_hash_size: int  # words in use
    sequence_hash_size: int
    state_hash_size: int
    nodes_size: int  # records
    states_size: int
    pool_size: int  # words
    work_size: int
    items_size: int
    requests_size: int


FIELDS = tuple(name for name in Tables.__annotations__ if not name.endswith("_size"))
_NUMBERS = {name: i for i, name in enumerate(FIELDS)}
_SIZED = tuple(name.removesuffix("_size") for name in Tables.__annotations__ if name.endswith("_size"))
RECORDS: dict[str, type[Record]] = {"nodes": NodeRecord, "states": StateRecord}
_HEADER = 64  # words: FIELDS offsets, then the end; the last ones are the sizes of the hash tables in use
_CLEARED, _CLEARED_END = FIELDS.index("judging"), FIELDS.index("contained") + 1  # tables that are cleared whole
HASH_SIZES = {"node_hash": _HEADER - 3, "sequence_hash": _HEADER - 2, "state_hash": _HEADER - 1}
HASHES = tuple(HASH_SIZES)
# Where the first one begins, and its words in use; the others follow, in both places.
_FIRST_HASH, _FIRST_HASH_SIZE, _NUM_HASHES = FIELDS.index(HASHES[0]), HASH_SIZES[HASHES[0]], len(HASHES)
_COUNTERS_WORDS = Counters.SIZE
# Of the array: `n` is the first table. They are read at every call, and reading them as a record is slow.
FAULT_WORD, NODES_WORD, STATES_WORD, STEPS_WORD = (
    _HEADER + Counters.PLACES[name].at // 4 for name in ("fault", "nodes", "states", "steps")
)
_FOUND_BY = {  # by hash table: the records that it finds, and the word that counts these
    "node_hash": ("nodes", NODES_WORD),
    "sequence_hash": ("nodes", NODES_WORD),
    "state_hash": ("states", STATES_WORD),
}
_TIMES_LARGER = 4
_IN_USE = tuple(  # words of the array, and how many words each counts, as `in_use` says
    (_HEADER + Counters.PLACES[name].at // 4, words)
    for name, words in (("nodes", NodeRecord.SIZE), ("states", StateRecord.SIZE + 256), ("pool", 1))
)

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
    if name in HASH_SIZES:
        return Word(HASH_SIZES[name])
    i = FIELDS.index(name)
    return Word(i + 1, since=i, shift=RECORDS[name].SIZE.bit_length() - 1 if name in RECORDS else 0)


tables_at = view(
    Tables, {name: Word(i) for i, name in enumerate(FIELDS)} | {f"{name}_size": _size(name) for name in _SIZED}
)


class Arena:
    """The owner of the array: it gives each table its place, and grows tables by doubling them.

    hash_sizes: how many entries of each hash table are in use at first; the rest of the table is room to grow.
    """

    def __init__(self, sizes: dict[str, int], hash_sizes: dict[str, int]) -> None:
        assert tuple(sizes) == FIELDS
        self._lay_out(sizes, hash_sizes)

    def table(self, name: str) -> NDArray[np.int32]:
        """One table: a view that is valid until the arena grows."""
        i = _NUMBERS[name]
        found: NDArray[np.int32] = self.array[self._offsets[i] : self._offsets[i + 1]]
        return found

    def column(self, name: str, field: str) -> NDArray[Any]:
        """A field of all records of a table: a view that is valid until the arena grows."""
        return column(self.table(name), RECORDS[name], field)

    @property
    def words_in_use(self) -> int:
        """Of the tables that grow with what is made."""
        return _words_in_use(self.array)

    @property
    def n(self) -> Counters:
        return Counters(Words(self.table("n")))

    def grow(self, fault: int) -> Collection[str]:
        """Make the table larger that a fault says is full, and clear the fault. Returns the names of the hash tables that
        are empty now, which `determinize.rehash` has to fill."""
        hashed = _GROWS_HASH.get(fault)
        emptied: Collection[str] = (hashed,) if hashed is not None and self._grow_in_place(hashed) else self._grow_elsewhere(fault)
        for name in emptied:
            start = self._offsets[_NUMBERS[name]]
            self.array[start : start + self.array.item(HASH_SIZES[name])] = 0
        self.array[FAULT_WORD] = Fault.NONE
        return emptied

    def _grow_in_place(self, hashed: str) -> bool:
        """Let more of a hash table be in use, if there is room for that and for records that it finds; returns whether there was. A
        mask waits for this, so it happens seldom: `_TIMES_LARGER` at once."""
        records, count_word = _FOUND_BY[hashed]
        if RECORDS[records].SIZE * self.array.item(count_word) >= self._room_of(records):
            return False
        size = _TIMES_LARGER * self.array.item(HASH_SIZES[hashed])
        if size > self._room_of(hashed):
            return False
        self.array[HASH_SIZES[hashed]] = size
        return True

    def _room_of(self, name: str) -> int:
        """Words of a table."""
        i = _NUMBERS[name]
        return self._offsets[i + 1] - self._offsets[i]

    def _grow_elsewhere(self, fault: int) -> Collection[str]:
        """Double the table that a fault says is full, where there is more room if need be. Returns the hash tables that are not
        filled then."""
        names, hashed = _FULL[fault], _GROWS_HASH.get(fault)
        hash_sizes = {name: self.array.item(word) for name, word in HASH_SIZES.items()}
        sizes = {name: self._room_of(name) for name in FIELDS}
        larger: dict[str, int] = {}  # tables for which there is no room where they are
        if hashed is None or RECORDS[names[0]].SIZE * self.array.item(_FOUND_BY[hashed][1]) >= sizes[names[0]]:
            larger = {name: 2 * sizes[name] for name in names}
        if hashed is not None:
            hash_sizes[hashed] *= 2
            if hash_sizes[hashed] > sizes[hashed]:
                larger[hashed] = hash_sizes[hashed]
        if larger:
            self._move(sizes | larger, hash_sizes)
        elif hashed is not None:
            self.array[HASH_SIZES[hashed]] = hash_sizes[hashed]
        return HASHES if larger or hashed is None else (hashed,)

    def _move(self, sizes: dict[str, int], hash_sizes: dict[str, int]) -> None:
        """Copy everything in use, except the hash tables, into a new array."""
        used = _used(self.array)
        old = {name: self.table(name)[: used[name]] for name in FIELDS if name not in HASH_SIZES}
        self._lay_out(sizes, hash_sizes)
        for name, table in old.items():
            self.table(name)[: table.size] = table

    def _lay_out(self, sizes: dict[str, int], hash_sizes: dict[str, int]) -> None:
        offsets = list(accumulate(sizes.values(), initial=_HEADER))
        assert offsets[-1] < 2**31, "an arena is addressed with 32 bits"
        self.array = reserved(offsets[-1], clean, tuple(offsets[: _CLEARED_END + 1]))
        self.address = self.array.__array_interface__["data"][0]
        self.array[: len(offsets)] = offsets
        for name, word in HASH_SIZES.items():
            self.array[word] = hash_sizes[name]
        self._offsets = offsets  # where each table begins, and the last one ends


def column(words: NDArray[np.int32], of: type[Record], field: str) -> NDArray[Any]:
    """A field of all records of one kind that lie in an array; of a field of some bits a copy, which is read-only."""
    place = of.PLACES[field]
    if place.num_bits is not None:
        found = words[place.at // 4 :: of.SIZE] >> place.shift & (1 << place.num_bits) - 1
        found.setflags(write=False)
        return found
    return words.view(np.int8)[place.at :: 4 * of.SIZE] if place.is_byte else words[place.at // 4 :: of.SIZE]


def in_use(n: Counters) -> dict[str, int]:
    """How many words are in use of the tables that grow with what is made."""
    return {"nodes": NodeRecord.SIZE * n.nodes, "states": StateRecord.SIZE * n.states, "next": 256 * n.states, "pool": n.pool}


def _used(array: NDArray[np.int32]) -> dict[str, int]:
    """How many words of each table are in use."""
    offsets = array[: len(FIELDS) + 1].tolist()
    sizes = {name: end - start for name, (start, end) in zip(FIELDS, pairwise(offsets), strict=True)}
    used = sizes | in_use(Counters(Words(array, offsets[0])))
    used |= {name: int(array[word]) for name, word in HASH_SIZES.items()}
    return {name: min(size, sizes[name]) for name, size in used.items()}


def clean(array: NDArray[np.int32]) -> int:
    """Make the array of an arena that nobody uses any more zero again; returns how many words it has touched."""
    return 0 if array.item(0) == 0 else clear_arena(array, _words_in_use(array))


@entry(array="int32[:]")
def clear_arena(array: NDArray[np.int32], touched: int) -> int:
    """Make zero in the array of an arena what has to be: header, counters, the hash tables in use, what is noted in `judging` and
    `contained`. All others are written before they are read, and these are always in the same place. Returns how many words were
    touched, `touched` of them in tables that grow, without scratch."""
    for i in range(_NUM_HASHES):
        start = array[_FIRST_HASH + i]
        size = array[_FIRST_HASH_SIZE + i]
        touched += size
        for word in range(start, start + size):
            array[word] = 0
    start, end = array[_CLEARED], array[_CLEARED_END]
    touched += end - start
    for word in range(start, end):
        array[word] = 0
    for word in range(_HEADER + _COUNTERS_WORDS):
        array[word] = 0
    return touched


def _words_in_use(array: NDArray[np.int32]) -> int:
    """Of the tables that grow with what is made."""
    touched = 0
    for word, words in _IN_USE:
        touched += words * array.item(word)
    return touched
