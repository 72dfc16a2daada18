"""Watched items: items of a COVER that are read beside what they may turn out to be.

Which of many independent conditions an item fulfils is known when it ends. A WATCH leaf is the item and, for each condition that
still wants one, the state of what would fulfil it: a list of WATCHED nodes, of which those drop out that cannot be any more. All
read the same bytes. Behind the item those count that may end there. So the conditions cost their sum, where one state for each set
of them would be their product, and nothing is searched for: the item can be ended in the price of its own state and of all that is
wanted, or in that of any condition and what is wanted besides it. The least of these is the price of the leaf, and some byte
lowers it.

    contains "ab", contains "b$"    behind "a    item, "ab" seen to its "a", "b$";   behind "a" item and none: nothing is counted

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import Kind
from ..numba_support.jit import inner
from .nodes import FAIL, intern_node, plus, wide
from .tables import DEAD, REC, STATE_MASK, UNKNOWN


@inner
def watch_of(arena, tables, kind, state, others, taken):
    """The WATCH or WATCHED node of a state and those beside it, with its size and cost. taken: what is left behind, at the most."""
    node = intern_node(arena, tables, wide(kind), state, others, taken)
    if arena[tables.size + REC * node] == UNKNOWN and node != FAIL:
        size = plus(wide(1), wide(arena[tables.size + REC * taken]))
        cost = plus(wide(arena[tables.state_cost + REC * state]), wide(arena[tables.cost + REC * taken]))
        arena[tables.size + REC * node] = min(size, wide(arena[tables.size + REC * others]))
        arena[tables.cost + REC * node] = min(cost, wide(arena[tables.cost + REC * others]))
    return node


@inner
def mark_watch(arena, tables, node, row):
    """Mark the bytes that a WATCH may read as UNKNOWN in the transitions at `row`."""
    of_item = tables.next + 256 * wide(arena[tables.a + REC * node])
    for byte in range(256):
        if arena[of_item + byte] != DEAD:
            arena[row + byte] = UNKNOWN


@inner
def watch_after(arena, tables, node, byte):
    """The WATCH behind a byte, FAIL where the item does not read it. All transitions on the byte are known."""
    state = wide(arena[tables.next + 256 * wide(arena[tables.a + REC * node]) + byte]) & STATE_MASK
    if state == DEAD:
        return wide(FAIL)
    count, watched = wide(0), wide(arena[tables.b + REC * node])
    while watched != FAIL:
        count, watched = count + 1, wide(arena[tables.b + REC * watched])
    found, watched = np.empty(count, np.int64), wide(arena[tables.b + REC * node])
    for k in range(count):
        found[k], watched = watched, wide(arena[tables.b + REC * watched])
    others = wide(FAIL)
    for k in range(count - 1, -1, -1):
        after = wide(arena[tables.next + 256 * wide(arena[tables.a + REC * found[k]]) + byte]) & STATE_MASK
        if after != DEAD:
            taken = wide(arena[tables.c + REC * found[k]])
            others = watch_of(arena, tables, wide(Kind.WATCHED), after, others, taken)
    return watch_of(arena, tables, wide(Kind.WATCH), state, others, wide(arena[tables.c + REC * node]))


@inner
def alike_in_watch(arena, tables, node, byte, low, high):
    """(low, high) narrowed to the bytes around `byte` on which all states of a WATCH go where they go on `byte`."""
    while node != FAIL:
        row = tables.next + 256 * wide(arena[tables.a + REC * node])
        a = b = byte
        while a > low and arena[row + a - 1] == arena[row + byte]:
            a -= 1
        while b < high and arena[row + b + 1] == arena[row + byte]:
            b += 1
        low, high, node = a, b, wide(arena[tables.b + REC * node])
    return low, high
