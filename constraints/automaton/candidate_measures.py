"""What walks take behind each member that may come next (member_walks.py): of all members of a part at a time.

Where members are counted, what all other parts take, by how many members they have, is what the parts before one and those behind
it do, put together; so each part is added twice, and not once for each member that may come.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, LAST, Kind
from ..numba_support.jit import inner
from .families import BELOW, asks, is_placed, members_of_family, nodes_of_family, position_of
from .nodes import EMPTY, FAIL, Measure, intern_node, measured, plus, push_work, repetition, wide
from .tables import UNKNOWN, Fault, Tables
from .walk_measures import FIRST_CASE, POSITION, add_part, at_position, least_beside, most_members, row_of, sum_of_list

ROW_WORDS = 5  # of a node of a diagram
_MOST_STEPS = 2_000_000  # to put together what is before a part and behind it; beyond that members are measured one by one


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
def measure_cases(m: Tables, walk: NodeId, decision: NodeId, least: tuple[int, int]) -> None:
    """Find the sizes and costs of the TAKEN nodes of the cases of a DECISION in any order, if nothing is asked about it; else see
    asked_members.py. The WALK has no bounds. least: what all parts take, without members before the last position."""
    size, cost = least
    if max(size, cost) >= INFINITE - 1 or m.nodes[decision].c > EMPTY or row_of(m, decision)[POSITION] != LAST:
        return
    size, cost = size - m.nodes[decision].size, cost - m.nodes[decision].cost
    first = m.nodes[decision].a + FIRST_CASE
    for case in range(first, first + 2 * m.nodes[decision].b, 2):
        left = m.lists[case + 1]
        taken = intern_node(m, Kind.TAKEN, walk, decision, case)
        if m.n.fault != Fault.NONE:
            return
        m.nodes[taken].size = plus(size, sum_of_list(m, left, Measure.SIZE))
        m.nodes[taken].cost = plus(cost, sum_of_list(m, left, Measure.COST))


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
    beside = np.empty(members.size, np.int64)
    for k in range(members.size):
        beside[k] = least_beside(m, walk, family, position_of(m, NodeId(int(members[k]))), measures)
    rows = rows_of_family(m, family, measures)
    for k in range(members.size):
        member = NodeId(int(members[k]))
        taken = intern_node(m, Kind.TAKEN, walk, family, member)
        if m.n.fault != Fault.NONE:
            return
        set_measure(m, taken, measures, plus(wide(beside[k]), least_with_first(rows, member, position_of(m, member))))


@inner
def rows_of_family(m: Tables, family: NodeId, measures: int) -> NDArray[np.int32]:
    """The diagram of a FAMILY in little room: int32, in the order of `nodes_of_family`, of each node its member, the position of
    this, what it takes, and the places of the nodes with it and without it."""
    found = nodes_of_family(m, family)
    rows = np.zeros(ROW_WORDS * found.size, np.int32)
    for k in range(BELOW, found.size):
        node, row = m.nodes[found[k]], ROW_WORDS * k
        rows[row], rows[row + 1], rows[row + 2] = node.a, position_of(m, node.a), measured(m, node.a, measures)
        rows[row + 3], rows[row + 4] = m.nodes[node.b].place, m.nodes[node.c].place
    return rows


@inner
def least_with_first(rows: NDArray[np.int32], first: int, position: int) -> int:
    """The least that the other members take of a set that has a member at a position, and none before it."""
    count = rows.size // ROW_WORDS
    rest, behind = np.full(count, INFINITE, np.int64), np.full(count, INFINITE, np.int64)  # behind: of sets that have the member
    rest[1] = 0
    for k in range(BELOW, count):
        row = ROW_WORDS * k
        with_it, without = rows[row + 3], rows[row + 4]
        rest[k], behind[k] = rest[without], behind[without]
        if rows[row] == first:
            behind[k] = rest[with_it]
        if rows[row + 1] >= position:
            rest[k] = min(rest[k], rows[row + 2] + rest[with_it], INFINITE)
            behind[k] = min(behind[k], rows[row + 2] + behind[with_it], INFINITE)
    return wide(behind[count - 1])


@inner
def measure_taken(m: Tables, walk: NodeId, family: NodeId, measures: int) -> None:
    """Find the sizes, or costs, of the TAKEN nodes of all members of a FAMILY in any order at a time.

    `above`: the least that members take on a way through the diagram down to a node.
    """
    beside = least_beside(m, walk, family, LAST, measures)
    found = nodes_of_family(m, family)
    above = np.full(found.size, INFINITE, np.int64)
    above[found.size - 1] = beside
    for k in range(found.size - 1, BELOW - 1, -1):
        node, so_far = NodeId(int(found[k])), wide(above[k])
        member, with_it, without = m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
        taken = intern_node(m, Kind.TAKEN, walk, family, member)
        if m.n.fault != Fault.NONE:
            return
        least, known = plus(so_far, measured(m, with_it, measures)), measured(m, taken, measures)
        set_measure(m, taken, measures, least if known == UNKNOWN else min(known, least))
        below = m.nodes[with_it].place
        above[below] = min(above[below], plus(so_far, measured(m, member, measures)))
        below = m.nodes[without].place
        above[below] = min(above[below], so_far)


# -- members that are counted -------------------------------------------------------------------------------------------


@inner
def measure_counted(m: Tables, walk: NodeId, low: int, high: int, depth: int) -> None:
    """Find the sizes and costs of the TAKEN nodes of members in any order of a WALK, behind which `low` to `high` (UNBOUNDED: any)
    members come. Puts its parts on the work list from `depth` on."""
    top, tally, most = depth, m.nodes[walk].a, low
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = at_position(m, m.nodes[tally].a, LAST)
        tally = m.nodes[tally].b
        if part == FAIL or asks(m, part):
            return
        if part != EMPTY:
            most += m.nodes[part].b if m.nodes[part].kind == Kind.REPEAT else most_members(m, part)
            top = push_work(m, part, top)
    is_open = high < 0 or high >= most
    end = low if is_open else high
    if m.n.fault == Fault.NONE and (end + 1) * (end + 1) * (top - depth) <= _MOST_STEPS:
        measure_all(m, walk, (depth, top), (low, end, is_open), Measure.SIZE)
        measure_all(m, walk, (depth, top), (low, end, is_open), Measure.COST)


@inner
def measure_all(m: Tables, walk: NodeId, where: tuple[int, int], bounds: tuple[int, int, bool], measures: int) -> None:
    """Find the sizes, or costs; the parts are on the work list. bounds: the fewest members behind one, the most that are told
    apart, and whether that is any number from there on."""
    depth, top = where
    _, end, is_open = bounds
    width = end + 1
    before = np.full((top - depth + 1) * width, INFINITE, np.int64)
    before[0] = 0
    for k in range(depth, top):
        least = before[(k - depth) * width : (k - depth + 1) * width].copy()
        add_part(m, m.work[k], measures, least, end, is_open)
        for count in range(width):
            before[(k - depth + 1) * width + count] = least[count]
    behind = np.full(width, INFINITE, np.int64)
    behind[0] = 0
    for k in range(top - 1, depth - 1, -1):
        beside = both(before[(k - depth) * width : (k - depth + 1) * width], behind, is_open)
        measure_members(m, walk, m.work[k], beside, bounds, measures)
        if m.n.fault != Fault.NONE:
            return
        add_part(m, m.work[k], measures, behind, end, is_open)


@inner
def both(some: NDArray[np.int64], others: NDArray[np.int64], is_open: bool) -> NDArray[np.int64]:
    """The least that both take for each number of members together."""
    end = some.size - 1
    least = np.full(some.size, INFINITE, np.int64)
    for i in range(end + 1):
        if some[i] < INFINITE:
            for j in range(end + 1 if is_open else end + 1 - i):
                count = min(i + j, end)
                least[count] = min(least[count], plus(wide(some[i]), wide(others[j])))
    return least


@inner
def measure_members(
    m: Tables, walk: NodeId, part: NodeId, beside: NDArray[np.int64], bounds: tuple[int, int, bool], measures: int
) -> None:
    """Find the sizes, or costs, of the TAKEN nodes of the members of one part that come in any order. beside: int64, what the other
    parts take."""
    if m.nodes[part].kind == Kind.REPEAT:
        low, high = m.nodes[part].b, m.nodes[part].c
        left = EMPTY if high == 1 else repetition(m, m.nodes[part].a, max(low - 1, 0), high if high < 0 else high - 1)
        measure_one(m, walk, part, 0, left, beside, bounds, measures)
    elif m.nodes[part].kind == Kind.DECISION:
        if m.nodes[part].c <= EMPTY and row_of(m, part)[POSITION] == LAST:
            first = m.nodes[part].a + FIRST_CASE
            for case in range(first, first + 2 * m.nodes[part].b, 2):
                if m.lists[case + 1] == FAIL:
                    measure_one(m, walk, part, case, EMPTY, beside, bounds, measures)
    elif not is_placed(m, part):
        measure_counted_family(m, walk, part, beside, bounds, measures)


@inner
def measure_counted_family(
    m: Tables, walk: NodeId, family: NodeId, beside: NDArray[np.int64], bounds: tuple[int, int, bool], measures: int
) -> None:
    """Find the sizes, or costs, of the TAKEN nodes of the members of a FAMILY in any order at a time. beside: int64, what the other
    parts take.

    above: the least that all members take on a way through the diagram down to a node, by how many they are; rest: what it takes
    from there to an end, with so many members before it. The member that is taken is in neither.
    """
    low, end, is_open = bounds
    width = end + 1
    found = nodes_of_family(m, family)
    above, rest = np.full(found.size * width, INFINITE, np.int64), np.full(found.size * width, INFINITE, np.int64)
    for count in range(width):
        above[(found.size - 1) * width + count] = beside[count]
        rest[width + count] = 0 if count >= low else INFINITE  # EMPTY
    for k in range(BELOW, found.size):
        member = measured(m, m.nodes[found[k]].a, measures)
        with_it, without = m.nodes[m.nodes[found[k]].b].place * width, m.nodes[m.nodes[found[k]].c].place * width
        for count in range(width):
            least, more = rest[without + count], min(count + 1, end)
            if more > count or is_open:
                least = min(least, plus(member, wide(rest[with_it + more])))
            rest[k * width + count] = least
    for k in range(found.size - 1, BELOW - 1, -1):
        member, best = measured(m, m.nodes[found[k]].a, measures), INFINITE
        with_it, without = m.nodes[m.nodes[found[k]].b].place * width, m.nodes[m.nodes[found[k]].c].place * width
        for count in range(width):
            so_far, more = wide(above[k * width + count]), min(count + 1, end)
            best = min(best, plus(so_far, wide(rest[with_it + count])))
            above[without + count] = min(above[without + count], so_far)
            if more > count or is_open:
                above[with_it + more] = min(above[with_it + more], plus(so_far, member))
        taken = intern_node(m, Kind.TAKEN, walk, family, m.nodes[found[k]].a)
        if m.n.fault != Fault.NONE:
            return
        known = measured(m, taken, measures)
        set_measure(m, taken, measures, best if known == UNKNOWN else min(known, best))


@inner
def measure_one(
    m: Tables, walk: NodeId, part: NodeId, case: int, left: NodeId, beside: NDArray[np.int64], bounds: tuple[int, int, bool],
    measures: int,
) -> None:  # fmt: skip
    """Find the size, or cost, of the TAKEN node of a member, by what is left of its part."""
    low, end, is_open = bounds
    taken = intern_node(m, Kind.TAKEN, walk, part, case)
    if m.n.fault != Fault.NONE:
        return
    least = beside.copy()
    if left == FAIL:
        least[:] = INFINITE
    elif left != EMPTY:
        add_part(m, left, measures, least, end, is_open)
    best = INFINITE
    for count in range(low, end + 1):
        best = min(best, wide(least[count]))
    set_measure(m, taken, measures, best)
