"""Fronts: stacks as a graph, for grammars in which one text leads to many of them.

A *front* says how a continuation may begin, as far as its stack goes: the parts that may be entered next, and for each of them
one tail, the union of all that may come behind it. Parts that may be empty are passed over, and none is entered:

    x? y? A, where A begins with x or y or ends      x, behind it y? A       y, behind it A       may end

A tail that was reached by passing over a part that may be empty says no more than the tail before it and is left out, so the
front of a deep stack is as short as the grammar. Fronts are to a set of stacks what the transitions of a deterministic
automaton are to a set of words (Büchi 1964: the stacks behind a text are a regular set), so one continuation contains
another one if all that the fronts of the other allow is allowed by its own, step by step (`contains`, a simulation as
Hopcroft and Karp 1971 have it). What is found out in a comparison is noted, and a state keeps only what nothing else contains.

A grammar is read in this way if the plain way was seen to grow with the text (runtime/growth.py), and if it has no parts but
characters, literals, sequences, alternatives, repetitions and calls (`GRAPH_KINDS`).

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.record_access import part
from ..numba_support.records import Record
from .nodes import FAIL
from .tables import Tables

GRAPH_KINDS = (Kind.FAIL, Kind.EMPTY, Kind.CLASS, Kind.LITERAL, Kind.SEQ, Kind.ALT, Kind.REPEAT, Kind.CALL)


class Front(Record):
    """How a continuation may begin. Its ways follow in `pool`."""

    accept: int  # 1 when it may be empty
    longest: int  # parts of its longest stack, ENDLESS without a bound
    length: int  # ways


class Way(Record):
    """A part that may be entered."""

    part: NodeId
    tail: NodeId  # all that may come behind it
    may_miss: int  # 1 when all of `tail` is also reached without the part


FRONT_WORDS, WAY_WORDS = Front.SIZE, Way.SIZE
front_at = part(Front)
way_at = part(Way)


@inner
def front_of(m: Tables, continuation: NodeId) -> Front:
    return front_at(m.pool + m.nodes[continuation].front)


@inner
def way_of(m: Tables, continuation: NodeId, number: int) -> Way:
    return way_at(m.pool + m.nodes[continuation].front + FRONT_WORDS + WAY_WORDS * number)


@inner
def tail_behind(m: Tables, continuation: NodeId, part: NodeId) -> NodeId:
    """What may come behind a part of the front of a continuation, FAIL where it does not begin with the part."""
    for k in range(front_of(m, continuation).length):
        way = way_of(m, continuation, k)
        if way.part == part:
            return way.tail
    return FAIL
