"""What walks take at the least (member_walks.py): bytes or tokens of their parts, for any number of members or for some.

A row of the list pool describes a DECISION:

    most, position, then for each case: member, first TALLY of what is left (or FAIL); then, if most >= 0:
    bytes for 0, 1, ... `most` members; tokens for 0, 1, ... `most` members

The last two tables are kept where members are counted, and filled when the grammar is measured. A member is the separator and
what stands behind it.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from .families import asks, family_from, is_placed, least_by_count, least_from, most_of_family
from .nodes import EMPTY, FAIL, Measure, measured, plus, push_work, times, wide
from .tables import Fault, Tables

MOST_COUNT, POSITION, FIRST_CASE = 0, 1, 2  # of the row of a DECISION


@inner
def row_of(m: Tables, node: NodeId) -> Words:
    """Where in the arena the row of a DECISION begins."""
    return m.lists + m.nodes[node].a


@inner
def table_of(m: Tables, node: NodeId, measures: int) -> Words:
    """Where in the arena the bytes or tokens are that a DECISION takes for each number of members."""
    row = row_of(m, node)
    start = row + FIRST_CASE + 2 * m.nodes[node].b
    return start if measures == Measure.SIZE else start + row[MOST_COUNT] + 1


@inner
def list_parts(m: Tables, tally: NodeId, depth: int) -> int:
    """Put the parts of a list on the work list; returns the new depth."""
    while tally != FAIL and m.n.fault == Fault.NONE:
        depth = push_work(m, m.nodes[tally].a, depth)
        tally = m.nodes[tally].b
    return depth


@inner
def sum_of_list(m: Tables, tally: NodeId, measures: int) -> int:
    """The least that all parts of a list take, whatever the number of their members."""
    total = 0
    while tally != FAIL:
        total = plus(total, measured(m, m.nodes[tally].a, measures))
        tally = m.nodes[tally].b
    return total


@inner
def least_of_cases(m: Tables, decision: NodeId, measures: int) -> int:
    """The least that a DECISION takes with its member."""
    best, cases = INFINITE, row_of(m, decision) + FIRST_CASE
    for k in range(m.nodes[decision].b):
        best = min(best, plus(measured(m, cases[2 * k], measures), sum_of_list(m, cases[2 * k + 1], measures)))
    return best


@inner
def least_of_some(m: Tables, part: NodeId, measures: int, asked_in: int) -> int:
    """The least that a part takes with at least one member that is not marked in an epoch."""
    if m.nodes[part].kind == Kind.REPEAT:
        times_needed = max(m.nodes[part].b, 1)
        return times(times_needed, measured(m, m.nodes[part].a, measures))
    best = INFINITE
    while m.nodes[part].kind == Kind.DECISION:
        cases = row_of(m, part) + FIRST_CASE
        for k in range(m.nodes[part].b):
            if m.nodes[wide(cases[2 * k])].marked_in != asked_in:
                best = min(best, plus(measured(m, cases[2 * k], measures), sum_of_list(m, cases[2 * k + 1], measures)))
        part = m.nodes[part].c
    while m.nodes[part].kind == Kind.FAMILY:
        best = min(best, plus(measured(m, m.nodes[part].a, measures), measured(m, m.nodes[part].b, measures)))
        part = m.nodes[part].c
    return best


@inner
def most_members(m: Tables, part: NodeId) -> int:
    """How many members a part may have at the most, UNBOUNDED for any number."""
    if m.nodes[part].kind == Kind.REPEAT:
        return m.nodes[part].c
    return most_of_family(m, part) if m.nodes[part].kind == Kind.FAMILY else row_of(m, part)[MOST_COUNT]


@inner
def add_part(m: Tables, part: NodeId, measures: int, least: NDArray[np.int64], end: int, is_open: bool) -> None:
    """Add a part to `least`, which has the least that the parts before it take for 0, 1, ... `end` members (`end` or more, if
    `is_open`)."""
    before = least.copy()
    least[:] = INFINITE
    if m.nodes[part].kind == Kind.REPEAT:
        each, low = measured(m, m.nodes[part].a, measures), m.nodes[part].b
        high = m.nodes[part].c
        high = low + end if high < 0 else min(high, low + end)
        for count in range(low, high + 1):
            add_members(before, least, end, is_open, count, times(count, each))
    elif m.nodes[part].kind == Kind.FAMILY:
        of_family = least_by_count(m, part, measures)
        for count in range(of_family.size):
            add_members(before, least, end, is_open, count, of_family[count])
    else:
        table = table_of(m, part, measures)
        for count in range(most_members(m, part) + 1):
            add_members(before, least, end, is_open, count, table[count])


@inner
def add_members(before: NDArray[np.int64], least: NDArray[np.int64], end: int, is_open: bool, count: int, price: int) -> None:
    """Lower `least` to what `count` more members for a price make possible."""
    if price >= INFINITE:
        return
    for i in range(end + 1):
        if is_open or i + count <= end:
            total = min(i + count, end)
            least[total] = min(least[total], plus(wide(before[i]), price))


@inner
def least_counted(m: Tables, depth: int, top: int, low: int, high: int, measures: int) -> int:
    """The least that the parts on the work list from `depth` to `top` take with `low` to `high` (UNBOUNDED: any) members."""
    finite = low
    for k in range(depth, top):
        part = m.work[k]
        if m.nodes[part].kind == Kind.REPEAT:
            finite += m.nodes[part].b
        else:
            finite += most_members(m, part)
    is_open = high < 0 or high >= finite  # beyond that nothing is cheaper
    end = low if is_open else high
    least = np.full(end + 1, INFINITE, np.int64)
    least[0] = 0
    for k in range(depth, top):
        add_part(m, m.work[k], measures, least, end, is_open)
    best = INFINITE
    for count in range(low, end + 1):
        best = min(best, least[count])
    return best


@inner
def least_of_walk(m: Tables, depth: int, top: int, low: int, high: int, must_follow: int, measures: int) -> int:
    """The least that a walk of the parts on the work list from `depth` to `top` takes; with at least one member, if one
    `must_follow`. The separator of the first member is counted."""
    if low > 0 or high >= 0:
        return least_counted(m, depth, top, max(low, must_follow), high, measures)
    total, bytes_needed = 0, 0
    for k in range(depth, top):
        part = m.work[k]
        total = plus(total, measured(m, part, measures))
        bytes_needed = plus(bytes_needed, m.nodes[part].size)
    if bytes_needed > 0 or must_follow == 0:
        return total
    best, asked_in = INFINITE, mark_asked_first(m, depth, top)
    for k in range(depth, top):
        best = min(best, least_of_some(m, m.work[k], measures, asked_in))
    return best


@inner
def mark_asked_first(m: Tables, depth: int, top: int) -> int:
    """Mark the members that the parts on the work list from `depth` to `top` ask about as long as none has come: what these take
    by themselves is not all. Returns the epoch in which they are marked."""
    m.n.epoch += 1
    for k in range(depth, top):
        node = m.work[k]
        if asks(m, node):
            while node > EMPTY:
                m.nodes[m.nodes[m.nodes[node].a].a].marked_in = m.n.epoch
                node = m.nodes[node].c
    return m.n.epoch


@inner
def measure_walk(m: Tables, walk: NodeId, depth: int) -> tuple[int, int]:
    """(size, cost) of a WALK, its parts being put on the work list from `depth` on."""
    top = list_parts(m, m.nodes[walk].a, depth)
    if m.n.fault != Fault.NONE:
        return INFINITE, INFINITE
    members, must_follow = m.nodes[walk].b, m.nodes[walk].c
    separator = m.nodes[members].a
    low, high = m.nodes[members].b, m.nodes[members].c
    size = least_of_walk(m, depth, top, low, high, must_follow, Measure.SIZE)
    cost = least_of_walk(m, depth, top, low, high, must_follow, Measure.COST)
    if must_follow == 1 and size < INFINITE:
        size -= m.nodes[separator].size
    if must_follow == 1 and cost < INFINITE:
        cost -= m.nodes[separator].cost
    return size, cost


@inner
def fill_counts(m: Tables, node: NodeId, measures: int) -> bool:
    """Fill the table of a DECISION for each number of members; returns whether anything changed. All below are known."""
    row, table = row_of(m, node), table_of(m, node, measures)
    most = row[MOST_COUNT]
    found = np.full(most + 1, INFINITE, np.int64)
    lower = m.nodes[node].c
    if lower == EMPTY:
        found[0] = 0
    elif m.nodes[lower].kind == Kind.FAMILY:
        of_family = least_by_count(m, lower, measures)
        for count in range(of_family.size):
            found[count] = of_family[count]
    elif lower != FAIL:
        below = table_of(m, lower, measures)
        for count in range(most_members(m, lower) + 1):
            found[count] = below[count]
    cases = row + FIRST_CASE
    for k in range(m.nodes[node].b):
        least = np.full(most, INFINITE, np.int64)
        if most > 0:
            least[0] = 0
            tally = cases[2 * k + 1]
            while tally != FAIL:
                add_part(m, m.nodes[tally].a, measures, least, most - 1, False)
                tally = m.nodes[tally].b
        for count in range(most):
            found[count + 1] = min(found[count + 1], plus(measured(m, cases[2 * k], measures), wide(least[count])))
    changed = False
    for count in range(most + 1):
        changed = changed or found[count] != table[count]
        table[count] = found[count]
    return changed


@inner
def measure_decision(m: Tables, node: NodeId, measures: int) -> int:
    """The least that a DECISION takes; all below is known."""
    return min(least_of_cases(m, node, measures), measured(m, m.nodes[node].c, measures))


@inner
def least_beside(m: Tables, walk: NodeId, family: NodeId, position: int, measures: int) -> int:
    """The least that the parts of a WALK take beside one of its FAMILYs, without members before a position."""
    total, tally = 0, m.nodes[walk].a
    while tally != FAIL:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if part != family and (is_placed(m, part) or at_position(m, part, position) != family):
            total = plus(total, least_of_part(m, part, position, measures))
    return total


@inner
def at_position(m: Tables, part: NodeId, position: int) -> NodeId:
    """What is left of a part where no member before a position may come any more: FAIL where one would have to."""
    while m.nodes[part].kind == Kind.DECISION and row_of(m, part)[POSITION] < position:
        part = m.nodes[part].c
    return family_from(m, part, position) if is_placed(m, part) else part


@inner
def least_of_part(m: Tables, part: NodeId, position: int, measures: int) -> int:
    """The least that is left of a part where no member before a position may come any more."""
    if is_placed(m, part):
        return least_from(m, part, position, measures)
    return measured(m, at_position(m, part, position), measures)
