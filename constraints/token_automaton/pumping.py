"""Pumping: texts that repeat themselves, followed through the automaton, with the work that each of their bytes takes.

What an ambiguous grammar keeps of a text may grow with it, and then it grows where the text repeats itself. `pump` follows a text
that it makes up as it goes: at first every other byte begins any of the state's items, later all are those of a period before. The
work of a byte is the number of words that are written for it, nodes, closures and items of states, and of the parts of unions that
are looked at. A single byte may take much without harm, as a bracket that closes a thousand does, so what counts is the work of
WINDOW bytes one after another.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..automaton.determinize import step
from ..automaton.nodes import EMPTY, head_of, mix, wide
from ..automaton.states import items_of
from ..automaton.tables import DEAD, NODE_WORDS, STATE_MASK, Fault, Tables, tables_at
from ..base.ids import NodeId, StateId
from ..base.kinds import Kind
from ..numba_support.jit import entry, inner

NO_BYTE = -1
WINDOW = 64  # bytes whose work is looked at together
AHEAD = 8  # bytes that count as read before a text begins, of the first WINDOW: these may take so much less than later ones
_TRIED = 4  # items of a state
SHARE_OF_PARTS = 16  # parts that a byte of a trial may look at, of the most work of WINDOW bytes: of pairs of stacks, else a fault
LARGEST_COUNTER = (1 << 31) - 1


@entry(states="int32[:]", text="int32[:]", work="int32[:]")
def pump(
    arena_address: int, period: int, seed: int, at: int, end: int, most_work: int, free: int,
    states: NDArray[np.int32], text: NDArray[np.int32], work: NDArray[np.int32], given: int,
) -> int:
    """How many bytes the text has by now: `end`, or fewer where it cannot go on, where the last WINDOW bytes took more than
    `most_work`, and on a fault. Goes on with a text of `at` bytes.

    free: from this byte on the text repeats itself wherever it can. states: int32 [end + 1] the state before each byte; text,
    work: int32 [end] the bytes, and the work of each, negative where it is not known yet. given: so many bytes are in `text`
    already. `most_parts` is not 0 for a trial, in which first bytes may take less, see AHEAD, and which is given up where one byte
    takes very much.
    """
    m = tables_at(arena_address)
    while at < end and work[at] >= 0:
        at += 1
    is_trial, recent = m.n.most_parts != 0, 0
    for k in range(max(at - WINDOW, 0), at):
        recent += work[k]
    while at < end:
        s = wide(states[at])
        before = work_so_far(m)
        allowed = most_work
        if is_trial:
            allowed = most_work // WINDOW * min(at + AHEAD, WINDOW)
            m.n.most_parts = min(m.n.parts + allowed // SHARE_OF_PARTS, LARGEST_COUNTER)
            m.n.most_nodes = min(m.n.nodes + max(allowed - recent, 0) // NODE_WORDS, LARGEST_COUNTER)
        random = mix(wide(seed), wide(at), wide(period), 0)
        byte = NO_BYTE
        if at < given:
            byte = wide(text[at]) if goes_on(m, s, wide(text[at])) else NO_BYTE
        elif at >= period and (at >= free or random & 1 != 0) and goes_on(m, s, wide(text[at - period])):
            byte = wide(text[at - period])
        if byte == NO_BYTE and at >= given:
            byte = any_byte(m, s, random >> 3)
        if byte == NO_BYTE or m.n.fault != Fault.NONE:
            return at
        states[at + 1] = step(m, s, byte) & STATE_MASK
        if m.n.fault != Fault.NONE:
            return at
        text[at], work[at] = byte, work_so_far(m) - before
        recent += work[at] - (work[at - WINDOW] if at >= WINDOW else 0)
        at += 1
        if recent > allowed:
            return at
    return at


@inner
def work_so_far(m: Tables) -> int:
    """Words written and parts looked at."""
    return NODE_WORDS * m.n.nodes + m.n.pool + m.n.parts


@inner
def goes_on(m: Tables, s: StateId, byte: int) -> bool:
    """Whether a state can read a byte with more to come behind it."""
    if m.next[256 * s + byte] == DEAD:
        return False
    after = StateId(step(m, s, byte) & STATE_MASK)
    return after != DEAD and (m.states[after].accept == 0 or m.states[after].length != 1)


@inner
def any_byte(m: Tables, s: StateId, random: int) -> int:
    """A byte that one of the items of a state reads with more to come behind it, NO_BYTE where there is none: of a few the one
    behind which most is to come. random: less than 2^28."""
    best, most = NO_BYTE, -1
    start, length = items_of(m, s)
    for k in range(length):
        first = byte_of(m, m.pool[start + (random + k) % length], random >> 4)
        for other in range(256 if first != NO_BYTE else 0):
            byte = (first + other) & 255
            if goes_on(m, s, byte):
                after = m.states[m.next[256 * s + byte] & STATE_MASK]
                to_come = after.cost + after.length
                if to_come > most:
                    best, most = byte, to_come
                break
            if m.n.fault != Fault.NONE:
                return NO_BYTE
        if k == _TRIED and best != NO_BYTE:
            break
    return best


@inner
def byte_of(m: Tables, item: NodeId, random: int) -> int:
    """A byte with which an item may begin, NO_BYTE of the end."""
    head = head_of(m, item)
    kind = m.nodes[head].kind
    if item == EMPTY:
        return NO_BYTE
    if kind == Kind.LITERAL:
        return m.text[m.nodes[head].a]
    if kind != Kind.CLASS:
        return random & 255
    edge = m.nodes[head].a + random % m.nodes[head].b
    low, high = m.edge_low[edge], m.edge_high[edge]
    return low + (random >> 4) % (high - low + 1)
