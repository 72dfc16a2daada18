"""Families of ASKED members: what is asked of the members of other parts.

Where many things are asked about the same members in any order, most members are free in most cases: they may come, and nothing
depends on them. As members of a FAMILY, or in lists of parts for each case, each of them would be told in each case. So each member
is a part of its own, a DECISION in any order, and a FAMILY of ASKED members beside them says what has to be true of what comes: an
ordinary decision diagram, in which members that are not told do not matter.

    kind "k1" needs a1, kind "k2" needs a2, ...      asked: kind "k1" ? (a1 ? met : not met) : kind "k2" ? (a2 ? ...
    members: one part for kind, one for a1, one for a2, ...

A node asks whether the case `a` of a member comes; `b` is what is asked then, `c` what is asked otherwise, EMPTY that it is met,
FAIL that it cannot be met any more. Members come on each way in the order of their levels. Cases of one member follow each other;
one that is not told leads to what its absence does.
Source: R. E. Bryant, "Graph-based algorithms for Boolean function manipulation" (1986).

All functions here are compiled; `m` is the arena.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import ASKED, INFINITE, Kind
from ..numba_support.jit import inner
from .families import BELOW, asks, measured_family, nodes_of_family
from .nodes import EMPTY, FAIL, Measure, intern_node, measured, plus, wide
from .tables import Fault, Tables
from .walk_measures import FIRST_CASE, row_of, sum_of_list

NOT_TOLD = -1  # of a member, or of a case of one


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
    return without if with_it == without else measured_family(m, member, with_it, without)


@inner
def measure_asked(m: Tables, walk: NodeId, family: NodeId, least: tuple[int, int]) -> None:
    """Find the sizes and costs of the TAKEN nodes of all members that a FAMILY asks about; the WALK has no bounds. least: what all
    parts take."""
    size, cost = least
    if max(size, cost) >= INFINITE - 1:  # what is left cannot be told by a difference
        return
    size, cost = size - m.nodes[family].size, cost - m.nodes[family].cost
    tally = m.nodes[walk].a
    sizes, costs = least_behind(m, tally, family, Measure.SIZE), least_behind(m, tally, family, Measure.COST)
    number = 0
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if m.nodes[part].kind == Kind.DECISION:
            if m.nodes[part].c <= EMPTY and sizes[number] != NOT_TOLD:
                beside = size - m.nodes[part].size, cost - m.nodes[part].cost
                measure_asked_cases(m, walk, part, (sizes[number:], costs[number:]), beside)
            number += m.nodes[part].b


@inner
def measure_asked_cases(
    m: Tables, walk: NodeId, decision: NodeId, behind: tuple[NDArray[np.int64], NDArray[np.int64]], beside: tuple[int, int]
) -> None:
    """Find the sizes and costs of the TAKEN nodes of the cases of a DECISION. behind: what is asked then; beside: what all other
    parts take that do not ask."""
    sizes, costs = behind
    size, cost = beside
    cases = m.nodes[decision].a + FIRST_CASE
    for case in range(m.nodes[decision].b):
        taken = intern_node(m, Kind.TAKEN, walk, decision, cases + 2 * case)
        if m.n.fault != Fault.NONE:
            return
        left = m.lists[cases + 2 * case + 1]
        m.nodes[taken].size = plus(plus(size, sum_of_list(m, left, Measure.SIZE)), wide(sizes[case]))
        m.nodes[taken].cost = plus(plus(cost, sum_of_list(m, left, Measure.COST)), wide(costs[case]))


@inner
def most_asked(m: Tables, tally: NodeId) -> NDArray[np.int64]:
    """How many more tokens are asked for at the most behind any text of each part of a list than at the least: int64, INFINITE
    where some text must not come; empty where nothing is asked."""
    count, asking = 0, FAIL
    rest = tally
    while rest != FAIL:
        count += 1
        asking = rest if asks(m, m.nodes[rest].a) else asking
        rest = m.nodes[rest].b
    more = np.zeros(count if asking != FAIL else 0, np.int64)
    rest = tally if asking != FAIL else FAIL
    while rest != FAIL:
        if asks(m, m.nodes[rest].a):
            add_most(m, tally, m.nodes[rest].a, more)
        rest = m.nodes[rest].b
    return more


@inner
def add_most(m: Tables, tally: NodeId, family: NodeId, more: NDArray[np.int64]) -> None:
    """Add what one FAMILY of a list asks."""
    behind, least = least_behind(m, tally, family, Measure.COST), m.nodes[family].cost
    number, place = 0, 0
    while tally != FAIL:
        part = m.nodes[tally].a
        if m.nodes[part].kind == Kind.DECISION:
            most = least
            if behind[number] != NOT_TOLD:
                most = INFINITE if m.nodes[part].c > EMPTY else 0  # more cases, of which nothing is told here
                for case in range(number, number + m.nodes[part].b):
                    most = max(most, behind[case])
            more[place] = plus(wide(more[place]), INFINITE if most >= INFINITE else most - least)
            number += m.nodes[part].b
        tally, place = m.nodes[tally].b, place + 1


# -- what is asked behind each case -------------------------------------------------------------------------------------


@inner
def least_behind(m: Tables, tally: NodeId, family: NodeId, measures: int) -> NDArray[np.int64]:
    """The least that a FAMILY asks behind each case of the DECISIONs of a list, in its order: int64; NOT_TOLD of members that it
    does not ask about.

    One pass over the diagram from above. entered: the least that members take on a way to a node from a member above its own;
    reached: on any way; passing: all that a way takes which has no node of the member at a level.
    """
    found = nodes_of_family(m, family)
    first = number_cases(m, tally)
    behind, level_of = np.full(first.size, INFINITE, np.int64), np.full(first.size, NOT_TOLD, np.int32)
    told = np.full(first.size, NOT_TOLD, np.int32)  # by which node a chain of cases was entered that tells a case
    entered, reached = np.full(found.size, INFINITE, np.int64), np.full(found.size, INFINITE, np.int64)
    entered[found.size - 1] = 0
    passing = np.full(levels_of(m, found), INFINITE, np.int64)
    lower(passing, 0, level_at(m, family), measured(m, family, measures))
    for k in range(found.size - 1, BELOW - 1, -1):
        node, level = NodeId(int(found[k])), level_at(m, NodeId(int(found[k])))
        member, with_it, without = m.nodes[m.nodes[node].a].a, m.nodes[node].b, m.nodes[node].c
        reached[k] = min(reached[k], entered[k])
        if is_numbered(m, member):
            number = m.nodes[member].place
            level_of[first[number]] = level
            if entered[k] < INFINITE:
                enter_chain(m, node, first, told, behind, (wide(entered[k]), measures))
            behind[number] = min(behind[number], plus(wide(reached[k]), measured(m, with_it, measures)))
        price = plus(wide(reached[k]), measured(m, member, measures))
        below = m.nodes[with_it].place
        entered[below] = min(entered[below], price)
        lower(passing, level + 1, level_at(m, with_it), plus(price, measured(m, with_it, measures)))
        below = m.nodes[without].place
        if level_at(m, without) == level:
            reached[below] = min(reached[below], reached[k])
        else:
            entered[below] = min(entered[below], reached[k])
            lower(passing, level + 1, level_at(m, without), plus(wide(reached[k]), measured(m, without, measures)))
    for number in range(first.size):
        level = wide(level_of[first[number]])
        behind[number] = NOT_TOLD if level == NOT_TOLD else min(behind[number], passing[level])
    return behind


@inner
def number_cases(m: Tables, tally: NodeId) -> NDArray[np.int32]:
    """Number the first cases of the DECISIONs of a list: each member knows its number as its place, in a new epoch. Returns of each
    the number of the first case of its member: int32."""
    count, rest = 0, tally
    while rest != FAIL:
        count += m.nodes[m.nodes[rest].a].b if m.nodes[m.nodes[rest].a].kind == Kind.DECISION else 0
        rest = m.nodes[rest].b
    m.n.epoch += 1
    first, start = np.empty(count, np.int32), 0
    while tally != FAIL:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if m.nodes[part].kind == Kind.DECISION:
            cases = row_of(m, part) + FIRST_CASE
            for case in range(m.nodes[part].b):
                member = wide(cases[2 * case])
                first[start + case], m.nodes[member].place, m.nodes[member].marked_in = start, start + case, m.n.epoch
            start += m.nodes[part].b
    return first


@inner
def enter_chain(
    m: Tables, node: NodeId, first: NDArray[np.int32], told: NDArray[np.int32], behind: NDArray[np.int64], way: tuple[int, int]
) -> None:
    """Lower what is asked behind the cases of a member that the nodes from one on do not tell. way: the least that members take to
    get there, and the measure."""
    entered, measures = way
    start, level, end = first[m.nodes[m.nodes[m.nodes[node].a].a].place], level_at(m, node), node
    while level_at(m, end) == level:
        member = m.nodes[m.nodes[end].a].a
        if is_numbered(m, member):
            told[m.nodes[member].place] = node
        end = m.nodes[end].c
    least = plus(entered, measured(m, end, measures))
    number = wide(start)
    while number < first.size and first[number] == start:
        if told[number] != node:
            behind[number] = min(behind[number], least)
        number += 1


@inner
def is_numbered(m: Tables, member: NodeId) -> bool:
    return m.nodes[member].marked_in == m.n.epoch


@inner
def level_at(m: Tables, node: NodeId) -> int:
    """The level of the member that a node asks about; those of all members are above the ends of a diagram."""
    return INFINITE if node <= EMPTY else m.nodes[m.nodes[node].a].b - ASKED


@inner
def levels_of(m: Tables, found: NDArray[np.int32]) -> int:
    """The number of levels of some nodes."""
    most = 0
    for k in range(BELOW, found.size):
        most = max(most, level_at(m, NodeId(int(found[k]))) + 1)
    return most


@inner
def lower(least: NDArray[np.int64], start: int, end: int, value: int) -> None:
    """Lower what is there from `start` to `end` to a value."""
    for at in range(start, min(end, least.size)):
        least[at] = min(least[at], value)
