"""Walks: members of an object under conditions on which of them are there.

Conditions are decision diagrams over members. A DECISION is one node of such a diagram: a member, what each case of its value
leads to, and the diagram without the member. What is left behind a member is a list of parts, of which each has to be met and no
two have a member in common. Most conditions are independent of one another in this way, so a WALK holds the parts that are still
open as a list (of TALLY nodes), and how many members may come: it costs the sum of its parts where one diagram for all would be
their product. Parts are DECISIONs, and REPEATs of members that are only counted.

Members have positions, in which they must come; a member drops from all parts those before it. Members in any order are all at
the last position, as the members of REPEATs are. A row of the list pool describes a DECISION:

    most, position, then for each case: member, first TALLY of what is left (or FAIL); then, if most >= 0:
    bytes for 0, 1, ... `most` members; tokens for 0, 1, ... `most` members

The last two tables are kept where members are counted, and filled when the grammar is measured. A member is the separator and
what stands behind it.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults. Lists of
parts are made on the work list `work`, above what a closure has there.
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import INFINITE, UNBOUNDED, Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, FAIL, intern_node, join, plus, push_work, repetition, times, wide
from .tables import REC, UNKNOWN, Counter, Fault

MOST_COUNT, POSITION, FIRST_CASE = 0, 1, 2  # of the row of a DECISION
LAST = 1 << 28  # the position of members in any order


@inner
def row_of(arena, tables, node):
    """Where in the arena the row of a DECISION begins."""
    return tables.lists + wide(arena[tables.a + REC * node])


@inner
def table_of(arena, tables, node, measures):
    """Where in the arena the bytes or tokens are that a DECISION takes for each number of members."""
    row = row_of(arena, tables, node)
    start = row + FIRST_CASE + 2 * wide(arena[tables.b + REC * node])
    return start if measures == tables.size else start + wide(arena[row + MOST_COUNT]) + 1


@inner
def list_parts(arena, tables, tally, depth):
    """Put the parts of a list on the work list; returns the new depth."""
    while tally != FAIL and arena[tables.n + Counter.FAULT] == Fault.NONE:
        depth = push_work(arena, tables, wide(arena[tables.a + REC * tally]), depth)
        tally = wide(arena[tables.b + REC * tally])
    return depth


@inner
def sum_of_list(arena, tables, tally, measures):
    """The least that all parts of a list take, whatever the number of their members."""
    total = wide(0)
    while tally != FAIL:
        total = plus(total, wide(arena[measures + REC * arena[tables.a + REC * tally]]))
        tally = wide(arena[tables.b + REC * tally])
    return total


@inner
def least_of_some(arena, tables, part, measures):
    """The least that a part takes with at least one member."""
    if arena[tables.kind + REC * part] == Kind.REPEAT:
        times_needed = max(wide(arena[tables.b + REC * part]), wide(1))
        return times(times_needed, wide(arena[measures + REC * arena[tables.a + REC * part]]))
    best = wide(INFINITE)
    while arena[tables.kind + REC * part] == Kind.DECISION:
        first = row_of(arena, tables, part) + FIRST_CASE
        for case in range(first, first + 2 * wide(arena[tables.b + REC * part]), 2):
            rest = sum_of_list(arena, tables, wide(arena[case + 1]), measures)
            best = min(best, plus(wide(arena[measures + REC * arena[case]]), rest))
        part = wide(arena[tables.c + REC * part])
    return best


@inner
def most_members(arena, tables, part):
    """How many members a part may have at the most, UNBOUNDED for any number."""
    if arena[tables.kind + REC * part] == Kind.REPEAT:
        return wide(arena[tables.c + REC * part])
    return wide(arena[row_of(arena, tables, part) + MOST_COUNT])


@inner
def add_part(arena, tables, part, measures, least, end, is_open):
    """Add a part to `least`, which has the least that the parts before it take for 0, 1, ... `end` members (`end` or more, if
    `is_open`)."""
    before = least.copy()
    least[:] = INFINITE
    if arena[tables.kind + REC * part] == Kind.REPEAT:
        each, low = wide(arena[measures + REC * arena[tables.a + REC * part]]), wide(arena[tables.b + REC * part])
        high = wide(arena[tables.c + REC * part])
        high = low + end if high < 0 else min(high, low + end)
        for count in range(low, high + 1):
            add_members(before, least, end, is_open, count, times(count, each))
    else:
        table = table_of(arena, tables, part, measures)
        for count in range(most_members(arena, tables, part) + 1):
            add_members(before, least, end, is_open, count, wide(arena[table + count]))


@inner
def add_members(before, least, end, is_open, count, price):
    """Lower `least` to what `count` more members for a price make possible."""
    if price >= INFINITE:
        return
    for i in range(end + 1):
        if is_open or i + count <= end:
            total = min(i + count, end)
            least[total] = min(least[total], plus(wide(before[i]), price))


@inner
def least_counted(arena, tables, depth, top, low, high, measures):
    """The least that the parts on the work list from `depth` to `top` take with `low` to `high` (UNBOUNDED: any) members."""
    finite = low
    for k in range(depth, top):
        part = wide(arena[tables.work + k])
        if arena[tables.kind + REC * part] == Kind.REPEAT:
            finite += wide(arena[tables.b + REC * part])
        else:
            finite += most_members(arena, tables, part)
    is_open = high < 0 or high >= finite  # beyond that nothing is cheaper
    end = low if is_open else high
    least = np.full(end + 1, INFINITE, np.int64)
    least[0] = 0
    for k in range(depth, top):
        add_part(arena, tables, wide(arena[tables.work + k]), measures, least, end, is_open)
    best = wide(INFINITE)
    for count in range(low, end + 1):
        best = min(best, least[count])
    return best


@inner
def least_of_walk(arena, tables, depth, top, low, high, must_follow, measures):
    """The least that a walk of the parts on the work list from `depth` to `top` takes; with at least one member, if one
    `must_follow`. The separator of the first member is counted."""
    if low > 0 or high >= 0:
        return least_counted(arena, tables, depth, top, max(low, must_follow), high, measures)
    total, bytes_needed = wide(0), wide(0)
    for k in range(depth, top):
        part = wide(arena[tables.work + k])
        total = plus(total, wide(arena[measures + REC * part]))
        bytes_needed = plus(bytes_needed, wide(arena[tables.size + REC * part]))
    if bytes_needed > 0 or must_follow == 0:
        return total
    best = wide(INFINITE)
    for k in range(depth, top):
        best = min(best, least_of_some(arena, tables, wide(arena[tables.work + k]), measures))
    return best


@inner
def measure_walk(arena, tables, walk, depth):
    """(size, cost) of a WALK, its parts being put on the work list from `depth` on."""
    top = list_parts(arena, tables, wide(arena[tables.a + REC * walk]), depth)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(INFINITE), wide(INFINITE)
    members, must_follow = wide(arena[tables.b + REC * walk]), wide(arena[tables.c + REC * walk])
    separator = wide(arena[tables.a + REC * members])
    low, high = wide(arena[tables.b + REC * members]), wide(arena[tables.c + REC * members])
    size = least_of_walk(arena, tables, depth, top, low, high, must_follow, tables.size)
    cost = least_of_walk(arena, tables, depth, top, low, high, must_follow, tables.cost)
    if must_follow == 1 and size < INFINITE:
        size -= wide(arena[tables.size + REC * separator])
    if must_follow == 1 and cost < INFINITE:
        cost -= wide(arena[tables.cost + REC * separator])
    return size, cost


@inner
def fill_counts(arena, tables, node, measures):
    """Fill the table of a DECISION for each number of members; returns whether anything changed. All below are known."""
    row, table = row_of(arena, tables, node), table_of(arena, tables, node, measures)
    most = wide(arena[row + MOST_COUNT])
    found = np.full(most + 1, INFINITE, np.int64)
    lower = wide(arena[tables.c + REC * node])
    if lower == EMPTY:
        found[0] = 0
    elif lower != FAIL:
        below = table_of(arena, tables, lower, measures)
        for count in range(most_members(arena, tables, lower) + 1):
            found[count] = arena[below + count]
    for case in range(row + FIRST_CASE, row + FIRST_CASE + 2 * wide(arena[tables.b + REC * node]), 2):
        least = np.full(most, INFINITE, np.int64)
        if most > 0:
            least[0] = 0
            tally = wide(arena[case + 1])
            while tally != FAIL:
                add_part(arena, tables, wide(arena[tables.a + REC * tally]), measures, least, most - 1, False)
                tally = wide(arena[tables.b + REC * tally])
        for count in range(most):
            found[count + 1] = min(found[count + 1], plus(wide(arena[measures + REC * arena[case]]), wide(least[count])))
    changed = False
    for count in range(most + 1):
        changed = changed or found[count] != arena[table + count]
        arena[table + count] = found[count]
    return changed


@inner
def measure_decision(arena, tables, node, measures):
    """The least that a DECISION takes."""
    best = least_of_some(arena, tables, node, measures)
    while arena[tables.kind + REC * node] == Kind.DECISION:
        node = wide(arena[tables.c + REC * node])
    return wide(0) if node == EMPTY else best


@inner
def at_position(arena, tables, part, position):
    """What is left of a part where no member before a position may come any more: FAIL where one would have to."""
    while arena[tables.kind + REC * part] == Kind.DECISION and arena[row_of(arena, tables, part) + POSITION] < position:
        part = wide(arena[tables.c + REC * part])
    return part


@inner
def parts_behind(arena, tables, walk, taken, case, depth):
    """Put on the work list the parts of a WALK that are left behind a member of the part `taken`, by the offset of its case.
    Returns the new depth, or -1 where something that is needed cannot come any more."""
    position = wide(LAST)
    if case != 0:
        part = taken
        while True:
            row = wide(arena[tables.a + REC * part])
            if row < case < row + FIRST_CASE + 2 * wide(arena[tables.b + REC * part]):
                break
            part = wide(arena[tables.c + REC * part])
        position = wide(arena[tables.lists + row + POSITION])
    tally = wide(arena[tables.a + REC * walk])
    while tally != FAIL and arena[tables.n + Counter.FAULT] == Fault.NONE:
        part = wide(arena[tables.a + REC * tally])
        tally = wide(arena[tables.b + REC * tally])
        if part != taken:
            left = at_position(arena, tables, part, position)
            if left == FAIL:
                return wide(-1)
            if left != EMPTY:
                depth = push_work(arena, tables, left, depth)
        elif case != 0:
            depth = list_parts(arena, tables, wide(arena[tables.lists + case + 1]), depth)
        elif arena[tables.c + REC * part] != 1:
            low, high = wide(arena[tables.b + REC * part]), wide(arena[tables.c + REC * part])
            left = repetition(
                arena, tables, wide(arena[tables.a + REC * part]), max(low - 1, wide(0)), high if high < 0 else high - 1
            )
            depth = push_work(arena, tables, left, depth)
    return depth


@inner
def bounds_behind(arena, tables, walk):
    """(low, high) of a WALK behind one more member."""
    members = wide(arena[tables.b + REC * walk])
    low, high = wide(arena[tables.b + REC * members]), wide(arena[tables.c + REC * members])
    return max(low - 1, wide(0)), high if high < 0 else high - 1


@inner
def taken_member(arena, tables, walk, part, case, depth):
    """The TAKEN node of a member, with its size and cost; FAIL where the object could not be finished behind it."""
    node = intern_node(arena, tables, wide(Kind.TAKEN), walk, part, case)
    if arena[tables.size + REC * node] == UNKNOWN and node != FAIL:
        top = parts_behind(arena, tables, walk, part, case, depth)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(FAIL)
        size = cost = wide(INFINITE)
        low, high = bounds_behind(arena, tables, walk)
        if top >= 0:
            size = least_of_walk(arena, tables, depth, top, low, high, wide(0), tables.size)
            cost = least_of_walk(arena, tables, depth, top, low, high, wide(0), tables.cost)
        arena[tables.size + REC * node], arena[tables.cost + REC * node] = size, cost
    return wide(FAIL) if arena[tables.size + REC * node] >= INFINITE else node


@inner
def open_walk(arena, tables, walk, tail, depth):
    """Put on the work list what a WALK may begin with, each followed by what is then left and `tail`. Returns the new depth."""
    if arena[tables.c + REC * walk] == 0:
        if arena[tables.size + REC * walk] == 0:
            depth = push_work(arena, tables, tail, depth)
        members = wide(arena[tables.b + REC * walk])
        following = walk_of(arena, tables, wide(arena[tables.a + REC * walk]), members, wide(1), depth)
        if arena[tables.size + REC * following] < INFINITE:
            separator = wide(arena[tables.a + REC * members])
            depth = push_work(arena, tables, join(arena, tables, separator, join(arena, tables, following, tail)), depth)
        return depth
    tally = wide(arena[tables.a + REC * walk])
    while tally != FAIL and arena[tables.n + Counter.FAULT] == Fault.NONE:
        part = wide(arena[tables.a + REC * tally])
        tally = wide(arena[tables.b + REC * tally])
        if arena[tables.kind + REC * part] == Kind.REPEAT:
            depth = open_member(arena, tables, walk, part, wide(0), wide(arena[tables.a + REC * part]), tail, depth)
        node = part
        while arena[tables.kind + REC * node] == Kind.DECISION:
            row = wide(arena[tables.a + REC * node])
            for case in range(row + FIRST_CASE, row + FIRST_CASE + 2 * wide(arena[tables.b + REC * node]), 2):
                depth = open_member(arena, tables, walk, part, case, wide(arena[tables.lists + case]), tail, depth)
            node = wide(arena[tables.c + REC * node])
    return depth


@inner
def open_member(arena, tables, walk, part, case, member, tail, depth):
    """Put a member on the work list, without the separator before it, and what is left behind it. Returns the new depth."""
    if arena[tables.size + REC * member] >= INFINITE:
        return depth
    taken = taken_member(arena, tables, walk, part, case, depth)
    if taken == FAIL:
        return depth
    text = wide(arena[tables.b + REC * member])
    return push_work(arena, tables, join(arena, tables, text, join(arena, tables, taken, tail)), depth)


@inner
def walk_of(arena, tables, tally, members, must_follow, depth):
    """The WALK of a list of parts, with its size and cost."""
    node = intern_node(arena, tables, wide(Kind.WALK), tally, members, must_follow)
    if arena[tables.size + REC * node] == UNKNOWN and node != FAIL:
        size, cost = measure_walk(arena, tables, node, depth)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(FAIL)
        arena[tables.size + REC * node], arena[tables.cost + REC * node] = size, cost
    return node


@inner
def left_behind(arena, tables, taken, depth):
    """The WALK that a TAKEN node stands for; EMPTY where nothing may come any more."""
    walk, part, case = wide(arena[tables.a + REC * taken]), wide(arena[tables.b + REC * taken]), wide(arena[tables.c + REC * taken])
    top = parts_behind(arena, tables, walk, part, case, depth)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(FAIL)
    for k in range(depth + 1, top):  # what was there is in order
        moved, j = wide(arena[tables.work + k]), k
        while j > depth and arena[tables.work + j - 1] < moved:
            arena[tables.work + j] = arena[tables.work + j - 1]
            j -= 1
        arena[tables.work + j] = moved
    low, high = bounds_behind(arena, tables, walk)
    most = wide(0)
    if high >= 0:
        for k in range(depth, top):
            members = most_members(arena, tables, wide(arena[tables.work + k]))
            most = wide(LAST) if members < 0 else min(most + members, wide(LAST))
        if high >= most:
            high = wide(UNBOUNDED)
    tally = wide(FAIL)
    for k in range(top - 1, depth - 1, -1):
        tally = intern_node(arena, tables, wide(Kind.TALLY), wide(arena[tables.work + k]), tally, wide(0))
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(FAIL)
    if tally == FAIL or high == 0:
        return wide(EMPTY)
    members = repetition(arena, tables, wide(arena[tables.a + REC * arena[tables.b + REC * walk]]), low, high)
    return walk_of(arena, tables, tally, members, wide(0), depth) if members != FAIL else wide(FAIL)
