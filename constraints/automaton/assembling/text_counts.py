"""How much longer than the shortest text so many different texts of a node are: texts are counted by their length, along the states
of the automaton.

    any letters a and b, of which one is b      b, ab, ba, bb, aab, ...     nine of them: 3 bytes, 2 more than the shortest one

A layer is the states behind all texts of one length, with the number of texts that lead there; a state from which no end is near
enough is left out, and where a layer has too many states so are the others. What is counted are different texts, whatever is left
out: states tell what may follow, and each text leads to one. Of a layer with as many texts as are asked for the rest need not be
followed, so the length with enough texts is looked for by halving.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ConstraintLimit
from ...base.ids import NodeId, StateId
from ...base.kinds import INFINITE
from ...grammar.expression import Node
from ...numba_support.jit import entry, inner
from ..determinize import step
from ..machine import Machine
from ..nodes import wide
from ..states import state_of
from ..tables import DEAD, STATE_MASK, UNKNOWN, Fault, Tables, tables_at

MOST_IN_LAYER = 1 << 10  # states
MOST_FOLLOWED = 1 << 16  # states, of all layers together; behind them it is not known
_MOST_LENGTH = 1 << 16  # bytes beyond the shortest text that are looked at


class TextCount(NamedTuple):
    """Of a node, in bytes beyond its shortest text."""

    ample: int  # where there are as many texts as were asked for, INFINITE where there are fewer, or where that is not known
    worst: int  # of the longest text, INFINITE where there is none
    alike: int  # texts that are as short as the shortest one


class _Texts(NamedTuple):
    """Of a node, those that are at most so many bytes longer than its shortest one."""

    number: int  # no more than were asked for
    longest: int  # bytes beyond the shortest one
    is_all: bool  # whether there are no others
    followed: int  # states


def count_texts(machine: Machine, node: Node, different: int) -> TextCount | None:
    """How much longer so many different texts of a node are than its shortest one; None where that is not found out. The node is
    an intersection or a complement that was entered."""
    too_short, longer, followed, alike = -1, 0, 0, 0
    while (texts := _texts(machine, node, different, longer)) is not None:
        followed += texts.followed
        alike = texts.number if longer == 0 else alike
        if texts.number == different:
            return TextCount(_least_length(machine, node, different, too_short, longer), INFINITE, alike)
        if texts.is_all:
            return TextCount(INFINITE, texts.longest, alike)
        if followed >= MOST_FOLLOWED or longer >= _MOST_LENGTH:
            break
        too_short, longer = longer, max(2 * longer, 1)
    return None


def _least_length(machine: Machine, node: Node, different: int, too_short: int, longer: int) -> int:
    """The least number of bytes beyond the shortest text with so many texts, between one with fewer and one with enough."""
    while longer - too_short > 1:
        middle = (too_short + longer) // 2
        texts = _texts(machine, node, different, middle)
        if texts is not None and texts.number == different:
            longer = middle
        else:
            too_short = middle
    return longer


def _texts(machine: Machine, node: Node, different: int, longer: int) -> _Texts | None:
    """The texts of a node up to a length, None where a search for the way to an end takes too much."""
    found = np.zeros(len(_Texts._fields), np.int64)
    try:
        machine.call_pausing(count_by_length, node, different, longer, found)
    except ConstraintLimit as error:
        if error.limit != "search_states":
            raise
        return None
    number, longest, is_all, followed = found.tolist()
    return _Texts(number, longest, bool(is_all), followed)


@entry(found="int64[:]")
def count_by_length(arena_address: int, node: NodeId, different: int, longer: int, found: NDArray[np.int64]) -> None:
    """Count the texts of a node that are up to `longer` bytes longer than its shortest one, until there are `different` of them.
    They need not be finished: whatever is followed leads to an end that is near enough. So no more texts are followed than are
    asked for.

    Written to `found`: what `_Texts` has.
    """
    m = tables_at(arena_address)
    start = state_of(m, node)
    if m.n.fault != Fault.NONE:
        return
    shortest = m.states[start].cost
    states, behind = np.empty(MOST_IN_LAYER, np.int32), np.empty(MOST_IN_LAYER, np.int32)
    counts, counts_behind = np.empty(MOST_IN_LAYER, np.int64), np.empty(MOST_IN_LAYER, np.int64)
    place = np.full(m.states_size, -1, np.int32)  # of a state in `behind`
    states[0], counts[0], size = start, 1, 1
    texts = last = followed = length = 0
    is_all = True
    while size > 0:
        for i in range(size):
            if m.states[states[i]].accept == 1:
                texts, last = texts + counts[i], length - shortest
        followed += size
        if followed >= MOST_FOLLOWED:
            is_all = False
            break
        length, size_behind = length + 1, 0
        for i in range(size):
            at_most, state = shortest + longer - length, wide(states[i])
            size_behind, is_whole = follow_all(m, state, at_most, behind, place, counts_behind, size_behind, counts[i])
            if m.n.fault != Fault.NONE:
                return
            is_all = is_all and is_whole
        for i in range(size_behind):
            place[behind[i]] = -1
            states[i], counts[i] = behind[i], min(counts_behind[i], different)
        size, begun = size_behind, texts
        for i in range(size):
            begun += counts[i]
        if begun >= different:
            texts, is_all = different, False
            break
    found[0], found[1], found[2], found[3] = min(texts, different), last, 1 if is_all else 0, followed


@inner
def follow_all(
    m: Tables, state: StateId, at_most: int, behind: NDArray[np.int32], place: NDArray[np.int32], counts: NDArray[np.int64],
    size: int, texts: int,
) -> tuple[int, bool]:
    """(states in `behind`, whether none was left out): add those behind all bytes that are at most so far from an end, each with
    the texts that lead there."""
    row, is_whole = m.next + 256 * state, True
    for byte in range(256):
        answer = row[byte]
        if answer == UNKNOWN:
            answer = step(m, state, wide(byte))
            if m.n.fault != Fault.NONE:
                return size, False
        target = answer & STATE_MASK
        if target == DEAD:
            continue
        if m.states[target].cost > at_most or place[target] < 0 and size == MOST_IN_LAYER:
            is_whole = False
            continue
        if place[target] < 0:
            place[target], behind[size], counts[size] = size, target, 0
            size += 1
        counts[place[target]] += texts
    return size, is_whole
