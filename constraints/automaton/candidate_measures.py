"""What walks take behind each member that may come next (member_walks.py): of all members of a part at a time.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .families import BELOW, LAST, is_placed, members_of_family, nodes_of_family, position_of
from .nodes import EMPTY, Measure, intern_node, measured, plus, repetition, wide
from .tables import UNKNOWN, Fault, Tables
from .walk_measures import least_beside

ROW_WORDS = 5  # of a node of a diagram


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
