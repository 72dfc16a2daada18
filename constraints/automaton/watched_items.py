"""Watched items: items of a COVER that are read beside what they may turn out to be.

Which of many independent conditions an item fulfils is known when it ends. A WATCH leaf is the item and, for each condition that
still wants one, the state of what would fulfil it: a list of WATCHED nodes, of which those drop out that cannot be any more. All
read the same bytes. Behind the item those count that may end there. So the conditions cost their sum, where one state for each set
of them would be their product, and nothing is searched for: the item can be ended in the price of its own state and of all that is
wanted, or in that of any condition and what is wanted besides it. The least of these is the price of the leaf, and some byte
lowers it.

    contains "ab", contains "b$"    behind "a    item, "ab" seen to its "a", "b$";   behind "a" item and none: nothing is counted

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np

from ..base.ids import NodeId, StateId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from .nodes import FAIL, intern_node, plus
from .tables import DEAD, STATE_MASK, UNKNOWN, Tables


@inner
def watch_of(m: Tables, kind: int, state: StateId, others: NodeId, taken: NodeId) -> NodeId:
    """The WATCH or WATCHED node of a state and those beside it, with its size and cost. taken: what is left behind, at the most."""
    node = intern_node(m, kind, state, others, taken)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        size, cost = plus(1, m.nodes[taken].size), plus(m.states[state].cost, m.nodes[taken].cost)
        m.nodes[node].size = min(size, m.nodes[others].size)
        m.nodes[node].cost = min(cost, m.nodes[others].cost)
    return node


@inner
def mark_watch(m: Tables, node: NodeId, row: Words) -> None:
    """Mark the bytes that a WATCH may read as UNKNOWN in the transitions at `row`."""
    of_item = m.next + 256 * m.nodes[node].a
    for byte in range(256):
        if of_item[byte] != DEAD:
            row[byte] = UNKNOWN


@inner
def watch_after(m: Tables, node: NodeId, byte: int) -> NodeId:
    """The WATCH behind a byte, FAIL where the item does not read it. All transitions on the byte are known."""
    state = m.next[256 * m.nodes[node].a + byte] & STATE_MASK
    if state == DEAD:
        return FAIL
    count, watched = 0, m.nodes[node].b
    while watched != FAIL:
        count, watched = count + 1, m.nodes[watched].b
    found, watched = np.empty(count, np.int64), m.nodes[node].b
    for k in range(count):
        found[k], watched = watched, m.nodes[watched].b
    others = FAIL
    for k in range(count - 1, -1, -1):
        after = m.next[256 * m.nodes[found[k]].a + byte] & STATE_MASK
        if after != DEAD:
            others = watch_of(m, Kind.WATCHED, after, others, m.nodes[found[k]].c)
    return watch_of(m, Kind.WATCH, state, others, m.nodes[node].c)


@inner
def alike_in_watch(m: Tables, node: NodeId, byte: int, low: int, high: int) -> tuple[int, int]:
    """(low, high) narrowed to the bytes around `byte` on which all states of a WATCH go where they go on `byte`."""
    while node != FAIL:
        row = m.next + 256 * m.nodes[node].a
        a = b = byte
        while a > low and row[a - 1] == row[byte]:
            a -= 1
        while b < high and row[b + 1] == row[byte]:
            b += 1
        low, high, node = a, b, m.nodes[node].b
    return low, high
