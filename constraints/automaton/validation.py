"""Invariants of the arena's records, looked at after every compiled call with MASKWRIGHT_VALIDATE=1: that costs as much as all
that was made so far. A record that breaks one is told as text, with those that it names.

In: an arena. Out: nothing, or a `BrokenRecord`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.kinds import INFINITE, Kind
from ..numba_support.records import Record, Records, Words
from .closures import ENDLESS
from .fronts import Front, Way
from .nodes import EMPTY, FAIL, NO_BODY
from .tables import (
    DEAD,
    FRAME_WORDS,
    STATE_MASK,
    UNKNOWN,
    Arena,
    BodyClass,
    Closure,
    Ends,
    Frame,
    NodeRecord,
    StateRecord,
)

VALIDATES = os.environ.get("MASKWRIGHT_VALIDATE", "0") not in ("", "0")
_MOST_TOLD = 12  # items of a state, parts of a continuation
_Numbers = NDArray[np.int64]


class BrokenRecord(AssertionError):
    """A record of an arena breaks an invariant: a defect of this package, never of a grammar."""


def validate(arena: Arena) -> None:
    """Raises `BrokenRecord` for the first record that breaks an invariant. What an unfinished call has written is right too."""
    checks = _Checks(arena)
    for check in (
        checks.counters, checks.nodes, checks.closures, checks.fronts, checks.states, checks.frames, checks.transitions, checks.ends
    ):  # fmt: skip
        check()


class _Checks:
    def __init__(self, arena: Arena) -> None:
        self._arena, self._n = arena, arena.n
        self._pool = arena.table("pool")
        self._num_classes = arena.table("classes").size // BodyClass.SIZE

    def _nodes(self, field: str) -> _Numbers:
        return self._arena.column("nodes", field)[: self._n.nodes].astype(np.int64)

    def _states(self, field: str) -> _Numbers:
        return self._arena.column("states", field)[: self._n.states].astype(np.int64)

    def _need(self, holds: Any, what: str, of: _Numbers, kind: str = "state") -> None:
        """holds: bool [records `of`]."""
        broken = of[~np.broadcast_to(np.asarray(holds, bool), of.shape)]
        if broken.size:
            told = node_text(self._arena, int(broken[0])) if kind == "node" else state_text(self._arena, int(broken[0]))
            raise BrokenRecord(f"{what} of {kind} {broken[0]}, and {broken.size - 1} more: {told}")

    def counters(self) -> None:
        n, sizes = self._n, {name: self._arena.table(name).size for name in ("nodes", "states", "pool")}
        room = n.nodes * NodeRecord.SIZE <= sizes["nodes"] and n.states * StateRecord.SIZE <= sizes["states"]
        if not (room and 0 < n.pool <= sizes["pool"] and 2 <= n.num_static <= n.nodes and n.num_sequences <= n.nodes):
            raise BrokenRecord(f"more is in use than there is room for: {n}")
        if not (n.notes_ends in (0, 1) and n.in_string == 0 or n.fault != 0):
            raise BrokenRecord(f"a walk is under way: {n}")

    def nodes(self) -> None:
        kind, a, b, c = map(self._nodes, ("kind", "a", "b", "c"))
        size, cost, static = self._nodes("size"), self._nodes("cost"), self._n.num_static
        everything = np.arange(kind.size)
        known = set(map(int, Kind))
        self._need(np.isin(kind, list(known)), "the kind", everything, "node")
        for measure in (size, cost):
            self._need((measure >= UNKNOWN) & (measure <= INFINITE), "the size or cost", everything, "node")
        body_class = self._nodes("body_class")
        self._need((body_class >= NO_BODY) & (body_class < self._num_classes), "the body class", everything, "node")
        made = everything[static:]  # what compilation has copied is checked when it is read
        for one in (Kind.SEQ, Kind.EITHER, Kind.REPEAT):
            nodes = made[kind[made] == one]
            self._need((a[nodes] > FAIL) & (a[nodes] < kind.size), "the first part", nodes, "node")
            if one != Kind.REPEAT:
                self._need((b[nodes] > FAIL) & (b[nodes] < kind.size), "the second part", nodes, "node")
        sequences = made[(kind[made] == Kind.SEQ) & (size[made] != UNKNOWN)]
        parts = np.minimum(size[a[sequences]] + size[b[sequences]], INFINITE)
        self._need((size[sequences] == parts) | (parts >= INFINITE - 1), "the size", sequences, "node")
        self._need(cost[sequences] <= np.minimum(cost[a[sequences]] + cost[b[sequences]], INFINITE), "the cost", sequences, "node")
        repeated = made[kind[made] == Kind.REPEAT]
        self._need((b[repeated] >= 0) & ((c[repeated] < 0) | (c[repeated] >= b[repeated])), "the bounds", repeated, "node")
        literals = made[kind[made] == Kind.LITERAL]
        ends = a[literals] + b[literals]
        self._need((b[literals] > 0) & (ends <= self._arena.table("text").size), "the text", literals, "node")

    def closures(self) -> None:
        places, kinds = self._nodes("closure"), self._nodes("kind")
        nodes = np.flatnonzero(places)
        length, body_class, max_chars, unlisted = self._fields(Closure, places[nodes])
        holds = (length >= 0) & (places[nodes] + Closure.SIZE + length <= self._n.pool)
        holds &= (body_class >= NO_BODY) & (body_class < self._num_classes) & (max_chars >= 0) & (max_chars <= ENDLESS)
        holds &= (body_class != NO_BODY) | (max_chars == 0)
        holds &= (unlisted == 0) | (kinds[np.clip(unlisted, 0, kinds.size - 1)] == Kind.UNLISTED)
        self._need(holds, "the closure", nodes, "node")
        items, of = self._rows(places[nodes] + Closure.SIZE, length)
        self._need((items >= EMPTY) & (items < self._n.nodes), "the items of the closure", nodes[of], "node")

    def _fields(self, record: type[Record], places: _Numbers) -> _Numbers:
        """The words of records in the pool, [words, records]. Raises `BrokenRecord` for a place that is none."""
        if not ((places > 0) & (places + record.SIZE <= self._n.pool)).all():
            raise BrokenRecord(f"the place of a {record.__name__}: {places.tolist()}")
        return self._pool[places + np.arange(record.SIZE)[:, None]].astype(np.int64)

    def _rows(self, starts: _Numbers, lengths: _Numbers) -> tuple[_Numbers, _Numbers]:
        """(words, the number of its row for each): of rows in the pool, one behind the other."""
        of = np.repeat(np.arange(starts.size), lengths)
        behind = np.cumsum(lengths) - lengths
        return self._pool[starts[of] + np.arange(of.size) - behind[of]].astype(np.int64), of

    def fronts(self) -> None:
        places = self._nodes("front")
        for node in np.flatnonzero(places).tolist():
            place = int(places[node])
            front = Front(Words(self._pool, place))
            ways = self._pool[place + Front.SIZE : place + Front.SIZE + Way.SIZE * front.length].reshape(-1, Way.SIZE)
            holds = 0 < place <= self._n.pool and front.accept in (0, 1) and 0 <= front.longest <= ENDLESS
            holds = holds and len(ways) == front.length and bool(((ways[:, :2] >= EMPTY) & (ways[:, :2] < self._n.nodes)).all())
            if not (holds and np.isin(ways[:, 2], (0, 1)).all()):
                raise BrokenRecord(f"the front of {node_text(self._arena, node)}: {front} {ways.tolist()}")

    def states(self) -> None:
        made = np.arange(1, self._n.states)
        body_class, max_chars, unlisted = (self._states(name)[1:] for name in ("body_class", "max_chars", "unlisted"))
        kinds, sizes = self._nodes("kind"), self._nodes("size")
        self._need((body_class >= NO_BODY) & (body_class < self._num_classes), "the body class", made)
        self._need((max_chars >= 0) & (max_chars <= ENDLESS), "max_chars", made)
        self._need((unlisted == 0) | (kinds[np.clip(unlisted, 0, kinds.size - 1)] == Kind.UNLISTED), "the UNLISTED node", made)
        cost, accept = self._states("cost")[1:], self._states("accept")[1:]
        self._need((cost >= 0) & ((cost == 0) == (accept == 1)) & ((accept == 0) | (accept == 1)), "cost and accept", made)
        literal, left = self._states("literal")[1:], self._states("literal_left")[1:]
        fits = (literal >= 0) & (literal + left <= self._arena.table("text").size)
        self._need((left == 0) | ((left > 0) & fits), "the literal", made)
        behind = self._states("after_literal")[1:]
        self._need((behind == UNKNOWN) | ((behind >= 0) & (behind < self._n.states)), "the state behind its literal", made)
        self._need((self._states("row")[1:] >= 0) & (self._states("events")[1:] >= 0), "row and events", made)
        start, length, frame = (self._states(name)[1:] for name in ("start", "length", "frame"))
        plain = frame == 0
        self._need((start >= 0) & (length >= 0) & (start + length <= self._n.pool), "the place of the items", made)
        self._need((length > 0) == plain, "the number of items", made)
        items, of = self._rows(start[plain], length[plain])
        states = made[plain][of]
        self._need((items >= EMPTY) & (items < kinds.size), "the items", states)
        self._need(sizes[items] < INFINITE, "the items", states)
        self._need((np.diff(items) > 0) | (np.diff(of) != 0), "the items", states[1:])
        ends = np.zeros(self._n.states, np.int64)
        ends[states[items == EMPTY]] = 1
        self._need(ends[made[plain]] == accept[plain], "accept", made[plain])
        entered = self._arena.table("state_hash")
        if self._n.fault == 0 and np.count_nonzero(entered) != made.size:
            raise BrokenRecord(f"{np.count_nonzero(entered)} of {made.size} states are in the hash table")

    def frames(self) -> None:
        places = self._states("frame")
        for state in np.flatnonzero(places).tolist():
            frame = Frame(Words(self._pool, int(places[state])))
            holds = places[state] + FRAME_WORDS <= self._n.pool and 0 < frame.inner < self._n.states
            holds = holds and places[frame.inner] == 0 and EMPTY < frame.tail < self._n.nodes
            holds = holds and 0 <= frame.start and frame.start + frame.length <= self._n.pool
            self._need(holds, "the frame", np.array([state]))

    def transitions(self) -> None:
        rows = self._arena.table("next")[: 256 * self._n.states].reshape(-1, 256)
        targets = np.where(rows == UNKNOWN, 0, rows & STATE_MASK)
        self._need(((rows >= UNKNOWN) & (targets < self._n.states)).all(axis=1), "a transition", np.arange(self._n.states))
        if self._n.states and bool((rows[DEAD] != DEAD).any()):
            raise BrokenRecord("DEAD reads a byte")

    def ends(self) -> None:
        places, too_many = self._states("ends"), self._states("has_too_many_ends")
        self._need((too_many == 0) | ((too_many == 1) & (places == 0)), "the ends", np.arange(places.size))
        for state in np.flatnonzero(places).tolist():
            ends = Ends(Words(self._pool, int(places[state])))
            holds = 0 <= ends.count and places[state] <= self._n.pool
            self._need(holds and ends.cleared <= ends.kept and ends.kept_end <= ends.cleared_end, "the ends", np.array([state]))


# -- as text ------------------------------------------------------------------------------------------------------------


def state_text(arena: Arena, state: int) -> str:
    """A state in words: its record, its frame, and its items."""
    record = StateRecord(Words(arena.table("states"), StateRecord.SIZE * state))
    lines = [str(record)]
    if record.frame != 0:
        frame = Frame(Words(arena.table("pool"), record.frame))
        lines += [str(frame), "inner " + state_text(arena, frame.inner), "tail " + continuation_text(arena, frame.tail)]
    items = arena.table("pool")[record.start : record.start + record.length].tolist()
    lines += ["item " + continuation_text(arena, item) for item in items[:_MOST_TOLD]]
    return "\n    ".join(lines + (["..."] if len(items) > _MOST_TOLD else []))


def continuation_text(arena: Arena, item: int) -> str:
    """The parts of a continuation, one behind another."""
    return " then ".join(node_text(arena, part) for part in _parts(arena, item))


def node_text(arena: Arena, node: int) -> str:
    """A node as its kind and operands: a literal as its text."""
    record = NodeRecord(Words(arena.table("nodes"), NodeRecord.SIZE * node))
    name = Kind(record.kind).name if record.kind in set(map(int, Kind)) else f"kind {record.kind}"
    if record.kind == Kind.LITERAL:
        return f"{node} {bytes(arena.table('text')[record.a : record.a + record.b].astype(np.uint8))!r}"
    return f"{node} {name}({record.a}, {record.b}, {record.c}) of {record.size} bytes, {record.cost} tokens"


def _parts(arena: Arena, item: int) -> Iterator[int]:
    nodes: Records[int, NodeRecord] = Records(Words(arena.table("nodes")), NodeRecord)
    for _ in range(_MOST_TOLD):
        if not 0 <= item < arena.n.nodes or nodes[item].kind != Kind.SEQ:
            break
        yield nodes[item].a
        item = nodes[item].b
    yield item
