"""Walks: members of an object under conditions on which of them are there.

Conditions are decision diagrams over members. A DECISION is one node of such a diagram: a member, what each case of its value
leads to, and the diagram without the member. What is left behind a member is a list of parts, of which each has to be met and no
two have a member in common. Most conditions are independent of one another in this way, so a WALK holds the parts that are still
open as a list (of TALLY nodes), and how many members may come: it costs the sum of its parts where one diagram for all would be
their product. Parts are DECISIONs, FAMILYs, and REPEATs of members that are only counted.

A FAMILY (families.py) is a part of members in any order, or of members that are PLACED; it may also be what is left of DECISIONs
when members in order are over.

Members have positions, in which they must come; a member drops from all parts those before it. Members in any order are all at
the last position, as the members of REPEATs are. A row of the list pool describes a DECISION:

    most, position, then for each case: member, first TALLY of what is left (or FAIL); then, if most >= 0:
    bytes for 0, 1, ... `most` members; tokens for 0, 1, ... `most` members

The last two tables are kept where members are counted, and filled when the grammar is measured. A member is the separator and
what stands behind it.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults. Lists of
parts are made on the work list `work`, above what a closure has there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, UNBOUNDED, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from .families import (
    LAST,
    family_behind,
    family_from,
    is_placed,
    least_by_count,
    least_with,
    members_of_family,
    most_of_family,
    nodes_of_family,
    place_of,
    position_of,
)
from .nodes import EMPTY, FAIL, Measure, intern_node, join, measured, plus, push_work, repetition, times, wide
from .tables import UNKNOWN, Fault, Tables

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
def least_of_some(m: Tables, part: NodeId, measures: int) -> int:
    """The least that a part takes with at least one member."""
    if m.nodes[part].kind == Kind.REPEAT:
        times_needed = max(m.nodes[part].b, 1)
        return times(times_needed, measured(m, m.nodes[part].a, measures))
    best = INFINITE
    while m.nodes[part].kind == Kind.DECISION:
        cases = row_of(m, part) + FIRST_CASE
        for k in range(m.nodes[part].b):
            rest = sum_of_list(m, cases[2 * k + 1], measures)
            best = min(best, plus(measured(m, cases[2 * k], measures), rest))
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
    best = INFINITE
    for k in range(depth, top):
        best = min(best, least_of_some(m, m.work[k], measures))
    return best


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
    """The least that a DECISION takes."""
    best = least_of_some(m, node, measures)
    while m.nodes[node].kind == Kind.DECISION:
        node = m.nodes[node].c
    return min(best, measured(m, node, measures))


@inner
def least_behind_family(m: Tables, walk: NodeId, family: NodeId, member: NodeId, measures: int) -> int:
    """The least that a WALK without bounds takes behind a member of one of its FAMILYs."""
    return plus(least_with(m, family, member, measures), least_beside(m, walk, family, position_of(m, member), measures))


@inner
def least_beside(m: Tables, walk: NodeId, family: NodeId, position: int, measures: int) -> int:
    """The least that the parts of a WALK take beside one of its FAMILYs, without members before a position."""
    total, tally = 0, m.nodes[walk].a
    while tally != FAIL:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if part != family and (is_placed(m, part) or at_position(m, part, position) != family):
            total = plus(total, least_from(m, part, position, measures))
    return total


@inner
def at_position(m: Tables, part: NodeId, position: int) -> NodeId:
    """What is left of a part where no member before a position may come any more: FAIL where one would have to."""
    while m.nodes[part].kind == Kind.DECISION and row_of(m, part)[POSITION] < position:
        part = m.nodes[part].c
    return family_from(m, part, position) if is_placed(m, part) else part


@inner
def least_from(m: Tables, part: NodeId, position: int, measures: int) -> int:
    """The least that is left of a part where no member before a position may come any more."""
    if not is_placed(m, part):
        return measured(m, at_position(m, part, position), measures)
    found = nodes_of_family(m, part)
    least = np.full(found.size, INFINITE, np.int64)
    for k in range(found.size):
        node = m.nodes[found[k]]
        least[k] = measured(m, node.c, measures) if node.c <= EMPTY else least[place_of(m, node.c)]
        if position_of(m, node.a) >= position:
            rest = measured(m, node.b, measures) if node.b <= EMPTY else wide(least[place_of(m, node.b)])
            least[k] = min(least[k], plus(measured(m, node.a, measures), rest))
    return wide(least[found.size - 1])


@inner
def parts_behind(m: Tables, walk: NodeId, taken: NodeId, case: int, depth: int) -> int:
    """Put on the work list the parts of a WALK that are left behind a member of the part `taken`, by the offset of its case in a
    DECISION, the member itself in a FAMILY. Returns the new depth, or -1 where something that is needed cannot come any more."""
    position = LAST
    if m.nodes[taken].kind == Kind.FAMILY:
        position = position_of(m, NodeId(case))
    elif m.nodes[taken].kind == Kind.DECISION:
        part = taken
        while True:
            row = m.nodes[part].a
            if row < case < row + FIRST_CASE + 2 * m.nodes[part].b:
                break
            part = m.nodes[part].c
        position = m.lists[row + POSITION]
    tally = m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if part != taken or m.nodes[part].kind == Kind.FAMILY:
            left = at_position(m, part, position) if part != taken else taken
            if left == taken:
                left = at_position(m, family_behind(m, taken, NodeId(case)), position)
            if left == FAIL:
                return -1
            if left != EMPTY:
                depth = push_work(m, left, depth)
        elif m.nodes[part].kind == Kind.DECISION:
            depth = list_parts(m, m.lists[case + 1], depth)
        elif m.nodes[part].c != 1:
            low, high = m.nodes[part].b, m.nodes[part].c
            left = repetition(m, m.nodes[part].a, max(low - 1, 0), high if high < 0 else high - 1)
            depth = push_work(m, left, depth)
    return depth


@inner
def bounds_behind(m: Tables, walk: NodeId) -> tuple[int, int]:
    """(low, high) of a WALK behind one more member."""
    members = m.nodes[walk].b
    low, high = m.nodes[members].b, m.nodes[members].c
    return max(low - 1, 0), (high if high < 0 else high - 1)


@inner
def taken_member(m: Tables, walk: NodeId, part: NodeId, case: int, depth: int) -> NodeId:
    """The TAKEN node of a member, with its size and cost; FAIL where the object could not be finished behind it."""
    node = intern_node(m, Kind.TAKEN, walk, part, case)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        size = cost = INFINITE
        low, high = bounds_behind(m, walk)
        top = parts_behind(m, walk, part, case, depth)
        if m.n.fault != Fault.NONE:
            return FAIL
        if top >= 0:
            size = least_of_walk(m, depth, top, low, high, 0, Measure.SIZE)
            cost = least_of_walk(m, depth, top, low, high, 0, Measure.COST)
        m.nodes[node].size, m.nodes[node].cost = size, cost
    return FAIL if m.nodes[node].size >= INFINITE else node


@inner
def open_walk(m: Tables, walk: NodeId, tail: NodeId, depth: int) -> int:
    """Put on the work list what a WALK may begin with, each followed by what is then left and `tail`. Returns the new depth."""
    if m.nodes[walk].c == 0:
        if m.nodes[walk].size == 0:
            depth = push_work(m, tail, depth)
        members = m.nodes[walk].b
        following = walk_of(m, m.nodes[walk].a, members, 1, depth)
        if m.nodes[following].size < INFINITE:
            separator = m.nodes[members].a
            depth = push_work(m, join(m, separator, join(m, following, tail)), depth)
        return depth
    if m.nodes[walk].first_candidate == FAIL:
        find_next_members(m, walk, depth)
    taken = m.nodes[walk].first_candidate
    while taken != FAIL and m.n.fault == Fault.NONE:
        text = m.nodes[member_taken(m, taken)].b
        depth = push_work(m, join(m, text, join(m, taken, tail)), depth)
        taken = m.nodes[taken].next_candidate
    return depth


@inner
def member_taken(m: Tables, taken: NodeId) -> NodeId:
    """The member of a TAKEN node."""
    part, case = m.nodes[taken].b, m.nodes[taken].c
    if m.nodes[part].kind == Kind.REPEAT:
        return m.nodes[part].a
    if m.nodes[part].kind == Kind.DECISION:
        return m.lists[case]
    return m.nodes[NodeId(case)].a if m.nodes[NodeId(case)].kind == Kind.PLACED else NodeId(case)


@inner
def find_next_members(m: Tables, walk: NodeId, depth: int) -> None:
    """Find what a WALK may begin with: its candidates, TAKEN nodes. They are found once, however many places it stands at."""
    low, high = bounds_behind(m, walk)
    is_open = low == 0 and high < 0
    least = least_beside(m, walk, EMPTY, LAST, Measure.SIZE), least_beside(m, walk, EMPTY, LAST, Measure.COST)
    first, tally = FAIL, m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if m.nodes[part].kind == Kind.REPEAT:
            if is_open:
                measure_repeated(m, walk, part, least)
            first = with_candidate(m, first, walk, part, 0, m.nodes[part].a, depth)
        node = part
        while m.nodes[node].kind == Kind.DECISION:
            row = m.nodes[node].a
            for case in range(row + FIRST_CASE, row + FIRST_CASE + 2 * m.nodes[node].b, 2):
                first = with_candidate(m, first, walk, part, case, m.lists[case], depth)
            node = m.nodes[node].c
        if m.nodes[node].kind == Kind.FAMILY:
            if is_open:
                measure_family(m, walk, node)
            first = with_members(m, first, walk, node, depth)
    if m.n.fault == Fault.NONE:
        m.nodes[walk].first_candidate = first


@inner
def with_members(m: Tables, first: NodeId, walk: NodeId, family: NodeId, depth: int) -> NodeId:
    """A list of candidates with the members of a FAMILY before them."""
    members = members_of_family(m, family)
    for k in range(members.size):
        member = NodeId(int(members[k]))
        first = with_candidate(m, first, walk, family, member, member, depth)
    return first


@inner
def with_candidate(m: Tables, first: NodeId, walk: NodeId, part: NodeId, case: int, member: NodeId, depth: int) -> NodeId:
    """A list of candidates with one more before them, if it may come."""
    if m.nodes[member].size >= INFINITE or m.n.fault != Fault.NONE:
        return first
    taken = taken_member(m, walk, part, case, depth)
    if taken == FAIL:
        return first
    m.nodes[taken].next_candidate = first
    return taken


@inner
def measure_repeated(m: Tables, walk: NodeId, part: NodeId, least: tuple[int, int]) -> None:
    """Find the size and cost of the TAKEN node of a REPEAT; the WALK has no bounds. least: what all parts take, without members
    before the last position."""
    size, cost = least
    if max(size, cost) >= INFINITE - 1:  # what is left cannot be told by a difference
        return
    low, high = m.nodes[part].b, m.nodes[part].c
    left = EMPTY if high == 1 else repetition(m, m.nodes[part].a, max(low - 1, 0), high if high < 0 else high - 1)
    taken = intern_node(m, Kind.TAKEN, walk, part, 0)
    if m.n.fault == Fault.NONE:
        m.nodes[taken].size = size - m.nodes[part].size + m.nodes[left].size
        m.nodes[taken].cost = cost - m.nodes[part].cost + m.nodes[left].cost


@inner
def measure_family(m: Tables, walk: NodeId, family: NodeId) -> None:
    """Find the sizes and costs of the TAKEN nodes of all members of a FAMILY; the WALK has no bounds."""
    if is_placed(m, family):
        measure_placed(m, walk, family, Measure.SIZE)
        measure_placed(m, walk, family, Measure.COST)
    else:
        measure_taken(m, walk, family, Measure.SIZE)
        measure_taken(m, walk, family, Measure.COST)


@inner
def set_measure(m: Tables, node: NodeId, measures: int, least: int) -> None:
    if measures == Measure.SIZE:
        m.nodes[node].size = least
    else:
        m.nodes[node].cost = least


@inner
def measure_placed(m: Tables, walk: NodeId, family: NodeId, measures: int) -> None:
    """Find the sizes, or costs, of the TAKEN nodes of all members of a FAMILY that are PLACED."""
    members = members_of_family(m, family)
    for k in range(members.size):
        member = NodeId(int(members[k]))
        taken = intern_node(m, Kind.TAKEN, walk, family, member)
        if m.n.fault != Fault.NONE:
            return
        set_measure(m, taken, measures, least_behind_family(m, walk, family, member, measures))


@inner
def measure_taken(m: Tables, walk: NodeId, family: NodeId, measures: int) -> None:
    """Find the sizes, or costs, of the TAKEN nodes of all members of a FAMILY in any order at a time.

    `above`: the least that members take on a way through the diagram down to a node.
    """
    beside = least_beside(m, walk, family, LAST, measures)
    found = nodes_of_family(m, family)
    above = np.full(found.size, INFINITE, np.int64)
    above[found.size - 1] = beside
    for k in range(found.size - 1, -1, -1):
        node, so_far = NodeId(int(found[k])), wide(above[k])
        member, with_it, without = m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
        taken = intern_node(m, Kind.TAKEN, walk, family, member)
        if m.n.fault != Fault.NONE:
            return
        least, known = plus(so_far, measured(m, with_it, measures)), measured(m, taken, measures)
        set_measure(m, taken, measures, least if known == UNKNOWN else min(known, least))
        if with_it > EMPTY:
            below = place_of(m, with_it)
            above[below] = min(above[below], plus(so_far, measured(m, member, measures)))
        if without > EMPTY:
            below = place_of(m, without)
            above[below] = min(above[below], so_far)


@inner
def walk_of(m: Tables, tally: NodeId, members: int, must_follow: int, depth: int) -> NodeId:
    """The WALK of a list of parts, with its size and cost."""
    node = intern_node(m, Kind.WALK, tally, members, must_follow)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        size, cost = measure_walk(m, node, depth)
        if m.n.fault != Fault.NONE:
            return FAIL
        m.nodes[node].size, m.nodes[node].cost = size, cost
    return node


@inner
def left_behind(m: Tables, taken: NodeId, depth: int) -> NodeId:
    """The WALK that a TAKEN node stands for; EMPTY where nothing may come any more."""
    walk, part, case = m.nodes[taken].a, m.nodes[taken].b, m.nodes[taken].c
    top = parts_behind(m, walk, part, case, depth)
    if m.n.fault != Fault.NONE:
        return FAIL
    for k in range(depth + 1, top):  # what was there is in order
        moved, j = m.work[k], k
        while j > depth and m.work[j - 1] < moved:
            m.work[j] = m.work[j - 1]
            j -= 1
        m.work[j] = moved
    low, high = bounds_behind(m, walk)
    most = 0
    if high >= 0:
        for k in range(depth, top):
            members = most_members(m, m.work[k])
            most = LAST if members < 0 else min(most + members, LAST)
        if high >= most:
            high = UNBOUNDED
    tally = FAIL
    for k in range(top - 1, depth - 1, -1):
        tally = intern_node(m, Kind.TALLY, m.work[k], tally, 0)
        if m.n.fault != Fault.NONE:
            return FAIL
    if tally == FAIL or high == 0:
        return EMPTY
    members = repetition(m, m.nodes[m.nodes[walk].b].a, low, high)
    return walk_of(m, tally, members, 0, depth) if members != FAIL else FAIL
