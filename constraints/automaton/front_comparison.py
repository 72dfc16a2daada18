"""Comparisons: whether one continuation contains another one, pair by pair along their fronts.

What is found out is noted. Functions that need a front which is not made return it, negative, and are called again: nothing here
calls itself.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.record_access import part
from ..numba_support.records import Record, Words
from .fronts import front_of, tail_behind, way_of
from .nodes import FAIL, mix, takes_too_much, wide
from .tables import Tables

YES, NO, UNSURE = 1, 0, 2  # of an answer; a negative one is a continuation whose front has to be made first
_MOST_PAIRS = 1 << 14  # of a comparison
_FACTS = 1 << 18  # pairs of continuations of which is noted whether one contains the other; what is lost is looked for again
_NOBODY = -1


class Pair(Record):
    """What is compared: whether `larger` contains `smaller`."""

    larger: NodeId
    smaller: NodeId
    cause: int  # number of the pair that asked for it


class Slot(Record):
    """Of a hash table of pairs."""

    epoch: int  # of the comparison
    number: int


_FACT_WORDS = 2 * _FACTS
_PAIR, _SLOT = Pair.SIZE, Slot.SIZE
_SLOTS = 2 * _MOST_PAIRS
_PAIR_WORDS = _PAIR * _MOST_PAIRS
FRONT_FACTS = _FACT_WORDS + _PAIR_WORDS + _SLOT * _SLOTS  # words of the table `contained`
pair_at = part(Pair)
slot_at = part(Slot)


@inner
def pair_of(m: Tables, number: int) -> Pair:
    return pair_at(m.contained + _FACT_WORDS + _PAIR * number)


@inner
def fact_at(m: Tables, larger: NodeId, smaller: NodeId) -> Words:
    return m.contained + 2 * (mix(larger, smaller, 0, 0) & (_FACTS - 1))


@inner
def note_fact(m: Tables, larger: NodeId, smaller: NodeId, answer: int) -> None:
    fact = fact_at(m, larger, smaller)
    fact[0], fact[1] = larger, (smaller if answer == YES else -smaller)


@inner
def glance(m: Tables, larger: NodeId, smaller: NodeId) -> int:
    """Whether a continuation contains another one, as far as it shows at first sight."""
    if larger == smaller:
        return YES
    if m.nodes[larger].size > m.nodes[smaller].size:
        return NO
    fact = fact_at(m, larger, smaller)
    if fact[0] == larger and abs(fact[1]) == smaller:
        return YES if fact[1] > 0 else NO
    if m.nodes[larger].front == 0:
        return -larger
    if m.nodes[smaller].front == 0:
        return -smaller
    ours, theirs = front_of(m, larger), front_of(m, smaller)
    if ours.longest < theirs.longest or ours.accept < theirs.accept or ours.length < theirs.length:
        return NO
    part = larger
    while m.nodes[part].kind == Kind.EITHER:
        if m.nodes[part].a == smaller or m.nodes[part].b == smaller:
            return YES
        part = m.nodes[part].b
    return UNSURE


@inner
def contains_stacks(m: Tables, larger: NodeId, smaller: NodeId) -> int:
    """Whether all stacks of `smaller` are stacks of `larger`; NO as well after too many pairs, and on a fault."""
    answer = glance(m, larger, smaller)
    if answer != UNSURE:
        return answer
    m.n.epoch += 1
    end = put(m, larger, smaller, _NOBODY, 0)
    at = 0
    while at < end:
        pair = pair_of(m, at)
        ours, theirs = wide(pair.larger), wide(pair.smaller)
        m.n.parts += 1
        if takes_too_much(m):
            return NO
        is_union = m.nodes[theirs].kind == Kind.EITHER
        count = 2 if is_union else front_of(m, theirs).length
        for k in range(count):
            first, second = ours, theirs
            if is_union:
                second = wide(m.nodes[theirs].a if k == 0 else m.nodes[theirs].b)
            else:
                way = way_of(m, theirs, k)
                first, second = wide(tail_behind(m, ours, way.part)), wide(way.tail)
            answer = NO if first == FAIL else glance(m, first, second)
            if answer < 0:
                return answer
            if answer == NO:
                while at >= 0:
                    pair = pair_of(m, at)
                    note_fact(m, pair.larger, pair.smaller, NO)
                    at = wide(pair.cause)
                return NO
            if answer == UNSURE:
                if end == _MOST_PAIRS:
                    note_fact(m, larger, smaller, NO)
                    return NO
                end = put(m, first, second, at, end)
        at += 1
    for k in range(end):
        pair = pair_of(m, k)
        note_fact(m, pair.larger, pair.smaller, YES)
    return YES


@inner
def put(m: Tables, larger: NodeId, smaller: NodeId, cause: int, end: int) -> int:
    """Put a pair at the end of those of a comparison, unless it is among them; returns the new end."""
    slots = m.contained + _FACT_WORDS + _PAIR_WORDS
    slot = mix(larger, smaller, 0, 0) & (_SLOTS - 1)
    while True:
        place = slot_at(slots + _SLOT * slot)
        if place.epoch != m.n.epoch:
            break
        pair = pair_of(m, place.number)
        if pair.larger == larger and pair.smaller == smaller:
            return end
        slot = (slot + 1) & (_SLOTS - 1)
    place.epoch, place.number = m.n.epoch, end
    pair = pair_of(m, end)
    pair.larger, pair.smaller, pair.cause = larger, smaller, cause
    return end + 1
