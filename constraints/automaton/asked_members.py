"""Families of ASKED members: what is asked of the members of other parts.

Where many things are asked about the same members in any order, most members are free in most cases: they may come, and nothing
depends on them. As members of a FAMILY, or in lists of parts for each case, each of them would be told in each case. So each member
is a part of its own, a DECISION in any order, and a FAMILY of ASKED members beside them says what has to be true of what comes: an
ordinary decision diagram, in which members that are not told do not matter.

    kind "k1" needs a1, kind "k2" needs a2, ...      asked: kind "k1" ? (a1 ? met : not met) : kind "k2" ? (a2 ? ...
    members: one part for kind, one for a1, one for a2, ...

A node asks whether the case `a` of a member comes; `b` is what is asked then, `c` what is asked otherwise, EMPTY that it is met,
FAIL that it cannot be met any more. Cases of one member follow each other; one that is not told leads to what its absence does.
Source: R. E. Bryant, "Graph-based algorithms for Boolean function manipulation" (1986).

All functions here are compiled; `m` is the arena.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .families import BELOW, least_of_family, nodes_of_family
from .nodes import EMPTY, FAIL, Measure, intern_node, plus, wide
from .tables import UNKNOWN, Fault, Tables
from .walk_measures import FIRST_CASE, row_of, sum_of_list

ASKED_WORDS = 5  # of a node: its member, bytes and tokens of this, places of what is asked with it and without it
NOT_TOLD = -1  # a node that does not ask about some member


@inner
def asked_behind(m: Tables, family: NodeId, decision: NodeId, taken: NodeId) -> NodeId:
    """What a FAMILY goes on to ask behind the case `taken` of the member of a DECISION."""
    found = nodes_of_family(m, family)
    left = np.empty(found.size, np.int32)
    left[0], left[1] = FAIL, EMPTY
    for k in range(BELOW, found.size):
        node = m.nodes[found[k]]
        member = m.nodes[node.a].a
        with_it, without = left[m.nodes[node.b].place], left[m.nodes[node.c].place]
        if member == taken:
            left[k] = with_it
        elif case_of(m, decision, member) != NOT_TOLD:
            left[k] = without
        else:
            left[k] = asked_of(m, node.a, with_it, without)
    return NodeId(int(left[found.size - 1]))


@inner
def case_of(m: Tables, decision: NodeId, member: int) -> int:
    """Which case of the member of a DECISION a text is, NOT_TOLD for others."""
    cases = row_of(m, decision) + FIRST_CASE
    for case in range(m.nodes[decision].b):
        if cases[2 * case] == member:
            return case
    return NOT_TOLD


@inner
def asked_of(m: Tables, member: NodeId, with_it: NodeId, without: NodeId) -> NodeId:
    """What is asked with a member and without it, with its size and cost."""
    if with_it == without:
        return without
    node = intern_node(m, Kind.FAMILY, member, with_it, without)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        m.nodes[node].size = least_of_family(m, node, Measure.SIZE)
        m.nodes[node].cost = least_of_family(m, node, Measure.COST)
    return node


@inner
def measure_asked(m: Tables, walk: NodeId, family: NodeId, least: tuple[int, int]) -> None:
    """Find the sizes and costs of the TAKEN nodes of all members that a FAMILY asks about; the WALK has no bounds. least: what all
    parts take."""
    size, cost = least
    if max(size, cost) >= INFINITE - 1:  # what is left cannot be told by a difference
        return
    rows = rows_of_asked(m, family)
    size, cost = size - m.nodes[family].size, cost - m.nodes[family].cost
    tally = m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if m.nodes[part].kind == Kind.DECISION and m.nodes[part].c <= EMPTY:
            told = cases_told(m, rows, part)
            if told.size > 0:
                measure_cases(m, walk, part, rows, told, (size - m.nodes[part].size, cost - m.nodes[part].cost))


@inner
def rows_of_asked(m: Tables, family: NodeId) -> NDArray[np.int32]:
    """The diagram in little room: int32, ASKED_WORDS for each node in the order of `nodes_of_family`."""
    found = nodes_of_family(m, family)
    rows = np.zeros(ASKED_WORDS * found.size, np.int32)
    for k in range(BELOW, found.size):
        node, row = m.nodes[found[k]], ASKED_WORDS * k
        rows[row], rows[row + 1], rows[row + 2] = m.nodes[node.a].a, m.nodes[node.a].size, m.nodes[node.a].cost
        rows[row + 3], rows[row + 4] = m.nodes[node.b].place, m.nodes[node.c].place
    return rows


@inner
def cases_told(m: Tables, rows: NDArray[np.int32], decision: NodeId) -> NDArray[np.int32]:
    """Of each node, which case of the member of a DECISION it asks about, NOT_TOLD for another member; empty where none does."""
    count, is_told = rows.size // ASKED_WORDS, False
    told = np.empty(count, np.int32)
    for k in range(BELOW, count):
        told[k] = case_of(m, decision, rows[ASKED_WORDS * k])
        is_told = is_told or told[k] != NOT_TOLD
    return told if is_told else told[:0]


@inner
def measure_cases(
    m: Tables, walk: NodeId, decision: NodeId, rows: NDArray[np.int32], told: NDArray[np.int32], beside: tuple[int, int]
) -> None:
    """Find the sizes and costs of the TAKEN nodes of the cases of a DECISION. beside: what all other parts take that do not ask."""
    size, cost = beside
    cases = m.nodes[decision].a + FIRST_CASE
    for case in range(m.nodes[decision].b):
        taken = intern_node(m, Kind.TAKEN, walk, decision, cases + 2 * case)
        if m.n.fault != Fault.NONE:
            return
        behind = m.lists[cases + 2 * case + 1]
        own_size, own_cost = sum_of_list(m, behind, Measure.SIZE), sum_of_list(m, behind, Measure.COST)
        m.nodes[taken].size = plus(plus(size, own_size), least_behind(rows, told, case, 1))
        m.nodes[taken].cost = plus(plus(cost, own_cost), least_behind(rows, told, case, 2))


@inner
def least_behind(rows: NDArray[np.int32], told: NDArray[np.int32], case: int, word: int) -> int:
    """The least that is asked for behind a case of a member, in bytes or tokens, by the word of the rows."""
    rest = np.empty(told.size, np.int64)
    rest[0], rest[1] = INFINITE, 0
    for k in range(BELOW, told.size):
        row = ASKED_WORDS * k
        with_it, without = rest[rows[row + 3]], rest[rows[row + 4]]
        if told[k] == NOT_TOLD:
            rest[k] = min(rows[row + word] + with_it, without, INFINITE)
        else:
            rest[k] = with_it if told[k] == case else without
    return wide(rest[told.size - 1])


@inner
def most_behind(m: Tables, family: NodeId, part: NodeId) -> int:
    """The tokens that suffice for what a FAMILY asks, whichever text of another part comes; INFINITE where some must not."""
    if m.nodes[part].kind != Kind.DECISION:
        return m.nodes[family].cost
    rows, most = rows_of_asked(m, family), 0
    told = cases_told(m, rows, part)
    if told.size == 0:
        return m.nodes[family].cost
    if m.nodes[part].c > EMPTY:  # more cases, of which nothing is told here
        return INFINITE
    for case in range(m.nodes[part].b):
        most = max(most, least_behind(rows, told, case, 2))
    return most
