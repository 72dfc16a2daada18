"""Families: the sets of members that may come, as zero-suppressed decision diagrams.

A set of a FAMILY has the member `a`, and then is one of the family `b` besides, or it is one of the family `c`; EMPTY stands for
no more members, FAIL for no set. What is left behind a member are the sets that have it, without it: no more nodes than before,
whichever members came. So conditions that have a small diagram in some order of the members need no more than that where members
come in another one. Any member in the diagram may come next; members that are PLACED come in the order of their positions, so
behind one the sets are left that have none before it. A FAMILY of ASKED members is something else: see asked_members.py.
Source: S. Minato, "Zero-suppressed BDDs for set manipulation in combinatorial problems" (1993).

All functions here are compiled; `m` is the arena.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import ASKED, INFINITE, LAST, Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, FAIL, Measure, intern_node, measured, plus, wide
from .tables import UNKNOWN, Tables

BELOW = 2  # FAIL and EMPTY are below all nodes of a diagram


@inner
def is_placed(m: Tables, part: NodeId) -> bool:
    """Whether a part is a FAMILY of members that have positions."""
    return m.nodes[part].kind == Kind.FAMILY and m.nodes[m.nodes[part].a].kind == Kind.PLACED and not asks(m, part)


@inner
def asks(m: Tables, part: NodeId) -> bool:
    """Whether a part is a FAMILY of ASKED members."""
    if m.nodes[part].kind != Kind.FAMILY:
        return False
    member = m.nodes[part].a
    return m.nodes[member].kind == Kind.PLACED and m.nodes[member].b >= ASKED


@inner
def position_of(m: Tables, member: NodeId) -> int:
    """The position of a member of a FAMILY."""
    return m.nodes[member].b if m.nodes[member].kind == Kind.PLACED else LAST


@inner
def nodes_of_family(m: Tables, family: NodeId) -> NDArray[np.int32]:
    """The nodes of the diagram of a FAMILY: int32, FAIL and EMPTY first, each behind those below it; each knows its place among
    them until the nodes of another family are looked for."""
    m.n.epoch += 1
    found, waiting, count, depth = np.empty(32, np.int32), np.empty(32, np.int32), BELOW, 1
    found[0], found[1], m.nodes[FAIL].place, m.nodes[EMPTY].place = FAIL, EMPTY, 0, 1
    waiting[0] = family
    while depth > 0:
        depth -= 1
        node = NodeId(int(waiting[depth]))
        if node < 0:  # all below it are found
            node = NodeId(-node)
            if count == found.size:
                found = twice_as_long(found)
            found[count], m.nodes[node].place = node, count
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
def members_of_family(m: Tables, family: NodeId) -> NDArray[np.int32]:
    """The members that some set of a FAMILY has, each once: int32."""
    found = nodes_of_family(m, family)
    members, count = np.empty(found.size, np.int32), 0
    m.n.epoch += 1
    for k in range(BELOW, found.size):
        member = m.nodes[found[k]].a
        if m.nodes[member].marked_in != m.n.epoch:
            m.nodes[member].marked_in = m.n.epoch
            members[count] = member
            count += 1
    return members[:count]


@inner
def family_of(m: Tables, member: NodeId, with_it: NodeId, without: NodeId) -> NodeId:
    """The FAMILY of the sets with a member and those without it, with its size and cost."""
    return without if with_it == FAIL else measured_family(m, member, with_it, without)


@inner
def measured_family(m: Tables, member: NodeId, with_it: NodeId, without: NodeId) -> NodeId:
    """A node of the diagram of a FAMILY, with its size and cost."""
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
    left = np.zeros(found.size, np.int32)  # FAIL of EMPTY, too, which lacks the member
    for k in range(BELOW, found.size):
        node = m.nodes[found[k]]
        if node.a == member:
            left[k] = node.b
        else:
            left[k] = family_of(m, node.a, left[m.nodes[node.b].place], left[m.nodes[node.c].place])
    return NodeId(int(left[found.size - 1]))


@inner
def family_from(m: Tables, family: NodeId, position: int) -> NodeId:
    """The sets of a FAMILY that have no member before a position."""
    found = nodes_of_family(m, family)
    left = np.empty(found.size, np.int32)
    left[0], left[1] = FAIL, EMPTY
    for k in range(BELOW, found.size):
        node = m.nodes[found[k]]
        with_it, without = left[m.nodes[node.b].place], left[m.nodes[node.c].place]
        left[k] = without if position_of(m, node.a) < position else family_of(m, node.a, with_it, without)
    return NodeId(int(left[found.size - 1]))


@inner
def least_from(m: Tables, family: NodeId, position: int, measures: int) -> int:
    """The least that a set of a FAMILY takes that has no member before a position."""
    found = nodes_of_family(m, family)
    least = np.empty(found.size, np.int64)
    least[0], least[1] = INFINITE, 0
    for k in range(BELOW, found.size):
        node = m.nodes[found[k]]
        least[k] = least[m.nodes[node.c].place]
        if position_of(m, node.a) >= position:
            with_it = wide(least[m.nodes[node.b].place])
            least[k] = min(least[k], plus(measured(m, node.a, measures), with_it))
    return wide(least[found.size - 1])


@inner
def most_of_family(m: Tables, family: NodeId) -> int:
    """How many members a set of a FAMILY may have at the most."""
    found = nodes_of_family(m, family)
    most = np.zeros(found.size, np.int64)
    for k in range(BELOW, found.size):
        node = m.nodes[found[k]]
        most[k] = max(1 + most[m.nodes[node.b].place], most[m.nodes[node.c].place])
    return wide(most[found.size - 1])


@inner
def least_by_count(m: Tables, family: NodeId, measures: int) -> NDArray[np.int64]:
    """The least that a FAMILY takes with 0, 1, ... members, up to the most that it may have: int64."""
    width = most_of_family(m, family) + 1
    found = nodes_of_family(m, family)
    least = np.full(found.size * width, INFINITE, np.int64)
    least[width] = 0  # EMPTY
    for k in range(BELOW, found.size):
        node, own = m.nodes[found[k]], k * width
        with_it, without = m.nodes[node.b].place * width, m.nodes[node.c].place * width
        member = measured(m, node.a, measures)
        for count in range(width):
            least[own + count] = least[without + count]
        for count in range(1, width):
            least[own + count] = min(least[own + count], plus(member, wide(least[with_it + count - 1])))
    return least[(found.size - 1) * width :]
