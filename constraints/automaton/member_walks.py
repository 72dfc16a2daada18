"""Walks: members of an object under conditions on which of them are there.

Conditions are decision diagrams over members. A DECISION is one node of such a diagram: a member, what each case of its value
leads to, and the diagram without the member. What is left behind a member is a list of parts, of which each has to be met and no
two have a member in common. Most conditions are independent of one another in this way, so a WALK holds the parts that are still
open as a list (of TALLY nodes), and how many members may come: it costs the sum of its parts where one diagram for all would be
their product. Parts are DECISIONs, FAMILYs, and REPEATs of members that are only counted.

A FAMILY (families.py) is a part of members in any order, or of members that are PLACED; it may also be what is left of DECISIONs
when members in order are over. A FAMILY of ASKED members has none of its own, and has to be met by those of the other parts
(asked_members.py).

Members have positions, in which they must come; a member drops from all parts those before it. Members in any order are all at
the last position, as the members of REPEATs are. How a DECISION is written, and what walks take: walk_measures.py.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults. Lists of
parts are made on the work list `work`, above what a closure has there.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import INFINITE, LAST, UNBOUNDED, Kind
from ..numba_support.jit import inner
from .asked_members import asked_behind, measure_asked
from .candidate_measures import measure_cases, measure_counted, measure_family, measure_repeated
from .families import asks, family_behind, members_of_family, position_of
from .nodes import EMPTY, FAIL, Measure, intern_node, join, push_work, repetition
from .tables import UNKNOWN, Fault, Tables
from .walk_measures import (
    FIRST_CASE,
    POSITION,
    at_position,
    least_beside,
    least_of_walk,
    list_parts,
    measure_walk,
    most_members,
)


@inner
def parts_behind(m: Tables, walk: NodeId, taken: NodeId, case: int, depth: int) -> int:
    """Put on the work list the parts of a WALK that are left behind a member of the part `taken`, by the offset of its case in a
    DECISION, the member itself in a FAMILY. Returns the new depth, or -1 where something that is needed cannot come any more."""
    position, decision = LAST, taken
    if m.nodes[taken].kind == Kind.FAMILY:
        position = position_of(m, NodeId(case))
    elif m.nodes[taken].kind == Kind.DECISION:
        while True:
            row = m.nodes[decision].a
            if row < case < row + FIRST_CASE + 2 * m.nodes[decision].b:
                break
            decision = m.nodes[decision].c
        position = m.lists[row + POSITION]
    tally = m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if part != taken or m.nodes[part].kind == Kind.FAMILY:
            left = at_position(m, part, position) if part != taken else taken
            if left == taken:
                left = at_position(m, family_behind(m, taken, NodeId(case)), position)
            elif m.nodes[taken].kind == Kind.DECISION and asks(m, left):
                left = asked_behind(m, left, decision, m.lists[case])
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
    if m.nodes[walk].first_taken == FAIL:
        find_next_members(m, walk, depth)
    taken = m.nodes[walk].first_taken
    while taken != FAIL and m.n.fault == Fault.NONE:
        text = m.nodes[member_taken(m, taken)].b
        depth = push_work(m, join(m, text, join(m, taken, tail)), depth)
        taken = m.nodes[taken].next_taken
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
    measure_candidates(m, walk, depth)
    first, tally = FAIL, m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if m.nodes[part].kind == Kind.REPEAT:
            first = with_candidate(m, first, walk, part, 0, m.nodes[part].a, depth)
        node = part
        while m.nodes[node].kind == Kind.DECISION:
            row = m.nodes[node].a
            for case in range(row + FIRST_CASE, row + FIRST_CASE + 2 * m.nodes[node].b, 2):
                first = with_candidate(m, first, walk, part, case, m.lists[case], depth)
            node = m.nodes[node].c
        if m.nodes[node].kind == Kind.FAMILY and not asks(m, node):
            first = with_members(m, first, walk, node, depth)
    if m.n.fault == Fault.NONE:
        m.nodes[walk].first_taken = first


@inner
def measure_candidates(m: Tables, walk: NodeId, depth: int) -> None:
    """Find the sizes and costs of the candidates of whole parts of a WALK at a time; of others they are found one by one."""
    low, high = bounds_behind(m, walk)
    if low > 0 or high >= 0:
        measure_counted(m, walk, low, high, depth)
        return
    least = least_beside(m, walk, EMPTY, LAST, Measure.SIZE), least_beside(m, walk, EMPTY, LAST, Measure.COST)
    tally = m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        tally = m.nodes[tally].b
        if m.nodes[part].kind == Kind.REPEAT:
            measure_repeated(m, walk, part, least)
        elif m.nodes[part].kind == Kind.DECISION:
            measure_cases(m, walk, part, least)
        while m.nodes[part].kind == Kind.DECISION:
            part = m.nodes[part].c
        if m.nodes[part].kind == Kind.FAMILY and not asks(m, part):
            measure_family(m, walk, part)
    tally = m.nodes[walk].a
    while tally != FAIL and m.n.fault == Fault.NONE:  # over what was found as if nothing were asked
        if asks(m, m.nodes[tally].a):
            measure_asked(m, walk, m.nodes[tally].a, least)
        tally = m.nodes[tally].b


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
    m.nodes[taken].next_taken = first
    return taken


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
