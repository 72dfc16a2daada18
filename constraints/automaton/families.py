"""Families: the sets of members that may come, as zero-suppressed decision diagrams.

A set of a FAMILY has the member `a`, and then is one of the family `b` besides, or it is one of the family `c`; EMPTY stands for
no more members, FAIL for no set. What is left behind a member are the sets that have it, without it: no more nodes than before,
whichever members came. So conditions that have a small diagram in some order of the members need no more than that where members
come in another one. Any member in the diagram may come next; members that are PLACED come in the order of their positions, so
behind one the sets are left that have none before it. Source: S. Minato, "Zero-suppressed BDDs for set manipulation in
combinatorial problems" (1993).

All functions here are compiled; `m` is the arena.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, FAIL, Measure, intern_node, measured, plus, wide
from .tables import UNKNOWN, Tables

LAST = 1 << 28  # the position of members in any order


@inner
def is_placed(m: Tables, part: NodeId) -> bool:
    """Whether a part is a FAMILY of members that have positions."""
    return m.nodes[part].kind == Kind.FAMILY and m.nodes[m.nodes[part].a].kind == Kind.PLACED


@inner
def position_of(m: Tables, member: NodeId) -> int:
    """The position of a member of a FAMILY."""
    return m.nodes[member].b if m.nodes[member].kind == Kind.PLACED else LAST


@inner
def nodes_of_family(m: Tables, family: NodeId) -> NDArray[np.int32]:
    """The nodes of the diagram of a FAMILY: int32, each behind those below it; each knows its place among them (`place_of`) until
    the nodes of another family are looked for."""
    m.n.epoch += 1
    found, waiting, count, depth = np.empty(32, np.int32), np.empty(32, np.int32), 0, 1
    waiting[0] = family
    while depth > 0:
        depth -= 1
        node = NodeId(int(waiting[depth]))
        if node < 0:  # all below it are found
            node = NodeId(-node)
            if count == found.size:
                found = twice_as_long(found)
            found[count], m.nodes[node].searched_in = node, count
            count += 1
        elif m.nodes[node].marked_in != m.n.epoch:
            m.nodes[node].marked_in = m.n.epoch
            if depth + 3 > waiting.size:
                waiting = twice_as_long(waiting)
            waiting[depth] = -node
            depth = with_new(m, waiting, depth + 1, m.nodes[node].b)
            depth = with_new(m, waiting, depth, m.nodes[node].c)
    return found[:count]


@inner
def twice_as_long(short: NDArray[np.int32]) -> NDArray[np.int32]:
    """An array with room for as many more."""
    longer = np.empty(2 * short.size, np.int32)
    for k in range(short.size):
        longer[k] = short[k]
    return longer


@inner
def with_new(m: Tables, waiting: NDArray[np.int32], depth: int, node: NodeId) -> int:
    """Put a node on a stack, unless it was visited or ends a diagram. Returns the new depth."""
    if node <= EMPTY or m.nodes[node].marked_in == m.n.epoch:
        return depth
    waiting[depth] = node
    return depth + 1


@inner
def place_of(m: Tables, node: NodeId) -> int:
    """Where a node is among those of a diagram that were found last."""
    return m.nodes[node].searched_in


@inner
def members_of_family(m: Tables, family: NodeId) -> NDArray[np.int32]:
    """The members that some set of a FAMILY has, each once: int32."""
    found = nodes_of_family(m, family)
    members, count = np.empty(found.size, np.int32), 0
    m.n.epoch += 1
    for k in range(found.size):
        member = m.nodes[found[k]].a
        if m.nodes[member].marked_in != m.n.epoch:
            m.nodes[member].marked_in = m.n.epoch
            members[count] = member
            count += 1
    return members[:count]


@inner
def family_of(m: Tables, member: NodeId, with_it: NodeId, without: NodeId) -> NodeId:
    """The FAMILY of the sets with a member and those without it, with its size and cost."""
    if with_it == FAIL:
        return without
    node = intern_node(m, Kind.FAMILY, member, with_it, without)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        m.nodes[node].size = least_of_family(m, node, Measure.SIZE)
        m.nodes[node].cost = least_of_family(m, node, Measure.COST)
    return node


@inner
def least_of_family(m: Tables, family: NodeId, measures: int) -> int:
    """The least that a FAMILY takes; all below is known."""
    node = m.nodes[family]
    return min(plus(measured(m, node.a, measures), measured(m, node.b, measures)), measured(m, node.c, measures))


@inner
def family_behind(m: Tables, family: NodeId, member: NodeId) -> NodeId:
    """The sets of a FAMILY that have a member, without it."""
    found = nodes_of_family(m, family)
    left = np.empty(found.size, np.int32)
    for k in range(found.size):
        node = m.nodes[found[k]]
        if node.a == member:
            left[k] = node.b
        else:
            with_it, without = FAIL, FAIL
            if node.b > EMPTY:
                with_it = NodeId(int(left[place_of(m, node.b)]))
            if node.c > EMPTY:
                without = NodeId(int(left[place_of(m, node.c)]))
            left[k] = family_of(m, node.a, with_it, without)
    return NodeId(int(left[found.size - 1]))


@inner
def family_from(m: Tables, family: NodeId, position: int) -> NodeId:
    """The sets of a FAMILY that have no member before a position."""
    found = nodes_of_family(m, family)
    left = np.empty(found.size, np.int32)
    for k in range(found.size):
        node = m.nodes[found[k]]
        with_it, without = node.b, node.c
        if without > EMPTY:
            without = NodeId(int(left[place_of(m, without)]))
        if position_of(m, node.a) < position:
            with_it = FAIL
        elif with_it > EMPTY:
            with_it = NodeId(int(left[place_of(m, with_it)]))
        left[k] = family_of(m, node.a, with_it, without)
    return NodeId(int(left[found.size - 1]))


@inner
def least_with(m: Tables, family: NodeId, member: NodeId, measures: int) -> int:
    """The least that the other members take of a set of a FAMILY that has a member, and none before it."""
    found, position = nodes_of_family(m, family), position_of(m, member)
    least, after = np.full(found.size, INFINITE, np.int64), np.full(found.size, INFINITE, np.int64)  # after: in any set
    for k in range(found.size):
        node = m.nodes[found[k]]
        may_come = position_of(m, node.a) >= position
        after[k] = measured(m, node.c, measures) if node.c <= EMPTY else after[place_of(m, node.c)]
        rest = measured(m, node.b, measures) if node.b <= EMPTY else wide(after[place_of(m, node.b)])
        if may_come:
            after[k] = min(after[k], plus(measured(m, node.a, measures), rest))
        if node.a == member:
            least[k] = rest
            continue
        if may_come and node.b > EMPTY:
            least[k] = plus(measured(m, node.a, measures), wide(least[place_of(m, node.b)]))
        if node.c > EMPTY:
            least[k] = min(least[k], least[place_of(m, node.c)])
    return wide(least[found.size - 1])


@inner
def most_of_family(m: Tables, family: NodeId) -> int:
    """How many members a set of a FAMILY may have at the most."""
    found = nodes_of_family(m, family)
    most = np.zeros(found.size, np.int64)
    for k in range(found.size):
        node = m.nodes[found[k]]
        most[k] = 1
        if node.b > EMPTY:
            most[k] = 1 + most[place_of(m, node.b)]
        if node.c > EMPTY:
            most[k] = max(most[k], most[place_of(m, node.c)])
    return wide(most[found.size - 1])


@inner
def least_by_count(m: Tables, family: NodeId, measures: int) -> NDArray[np.int64]:
    """The least that a FAMILY takes with 0, 1, ... members, up to the most that it may have: int64."""
    width = most_of_family(m, family) + 1
    found = nodes_of_family(m, family)
    least = np.full(found.size * width, INFINITE, np.int64)
    for k in range(found.size):
        node, own = m.nodes[found[k]], k * width
        member = measured(m, node.a, measures)
        if node.b == EMPTY:
            least[own + 1] = member
        elif node.b != FAIL:
            below = place_of(m, node.b) * width
            for count in range(width - 1):
                least[own + count + 1] = plus(member, wide(least[below + count]))
        if node.c == EMPTY:
            least[own] = 0
        elif node.c != FAIL:
            below = place_of(m, node.c) * width
            for count in range(width):
                least[own + count] = min(least[own + count], least[below + count])
    return least[(found.size - 1) * width :]
