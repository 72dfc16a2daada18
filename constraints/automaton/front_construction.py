"""Fronts are made, and unions of continuations, of which none contains another one: each asks for the other.

Functions that need a front which is not made return it, negative, and are called again: nothing here calls itself.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .closures import ENDLESS
from .front_comparison import YES, contains_stacks
from .fronts import FRONT_WORDS, WAY_WORDS, front_at, front_of, way_at, way_of
from .nodes import EMPTY, FAIL, after_one_copy, head_of, join, takes_too_much, wide
from .tables import Fault, Tables
from .unions import chain_of, flatten

_MOST_COMPARED = 64  # continuations of a union with which each of them is compared: the newest
_DEEPEST = 256  # fronts that wait for each other


# -- unions -------------------------------------------------------------------------------------------------------------


@inner
def drop_contained(m: Tables, start: int, count: int, may_ask: int) -> int:
    """Drop those of items[start : start + count] that others of them contain; returns how many are left, or a front that has to be
    made first: then those dropped so far are FAIL. may_ask: 0 to take what is not known for NO."""
    items, left = m.items + start, 0
    for i in range(count):
        if items[i] == FAIL:
            continue
        m.n.parts += min(count, _MOST_COMPARED) >> 3
        for j in range(count - 1, max(count - _MOST_COMPARED, 0) - 1, -1):
            if j == i or items[j] == FAIL:
                continue
            answer = contains_stacks(m, items[j], items[i])
            if m.n.fault != Fault.NONE:
                return count
            if answer < 0 and may_ask == 1:
                return answer
            if answer == YES:
                items[i] = FAIL
                break
    for i in range(count):
        if items[i] != FAIL:
            items[left] = items[i]
            left += 1
    return left


@inner
def union_of_two(m: Tables, left: NodeId, right: NodeId, scratch: int, may_ask: int) -> NodeId:
    """The union of two continuations, or a front that has to be made first."""
    if left == right:
        return left
    if scratch + 2 > m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return FAIL
    m.items[scratch], m.items[scratch + 1] = left, right
    count = flatten(m, scratch, 2)
    if m.n.fault != Fault.NONE:
        return FAIL
    count = drop_contained(m, scratch, count, may_ask)
    return NodeId(count) if count < 0 else chain_of(m, scratch, count)


@inner
def union_of_stacks(m: Tables, start: int, count: int) -> NodeId:
    """The union of the continuations items[start : start + count], which are overwritten. Uses `items` from there on."""
    count = flatten(m, start, count)
    left = -1
    while left < 0 and m.n.fault == Fault.NONE:
        left = drop_contained(m, start, count, 1)
        if left < 0:
            know_front(m, NodeId(-left), start + count)
    return chain_of(m, start, left) if m.n.fault == Fault.NONE else FAIL


# -- fronts -------------------------------------------------------------------------------------------------------------


@inner
def know_front(m: Tables, continuation: NodeId, scratch: int) -> None:
    """Make the front of a continuation, and first those that it asks for. Uses `items` from `scratch` on."""
    if scratch + _DEEPEST > m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return
    waiting, top, may_ask = m.items + scratch, 0, 1
    while m.nodes[continuation].front == 0 and m.n.fault == Fault.NONE and not takes_too_much(m):
        if top == 0:
            waiting[0], top = continuation, 1
        node = wide(waiting[top - 1])
        below, wanted = FAIL, FAIL
        if m.nodes[node].front == 0:
            wanted = below = wide(first_below(m, node))
            if below == FAIL:
                wanted, may_ask = NodeId(-make_front(m, node, scratch + _DEEPEST, may_ask)), 1  # a front that may not ask is made
        if wanted == FAIL:
            top -= 1
            continue
        k = top - 1
        while k >= 0 and waiting[k] != wanted:
            k -= 1
        if k >= 0:  # it waits itself for what has asked for it
            top, may_ask = k + 1, 0
        elif top < _DEEPEST:
            waiting[top] = wanted
            top += 1
        elif below != FAIL:
            waiting[0], top = wanted, 1
        else:
            may_ask = 0


@inner
def first_below(m: Tables, node: NodeId) -> NodeId:
    """A continuation whose front the front of `node` is made of, and which has none yet; FAIL when there is none."""
    kind = m.nodes[node].kind
    if kind == Kind.EITHER:
        if m.nodes[m.nodes[node].a].front == 0:
            return m.nodes[node].a
        return m.nodes[node].b if m.nodes[m.nodes[node].b].front == 0 else FAIL
    if node == EMPTY:
        return FAIL
    head, tail = head_of(m, node), (m.nodes[node].b if kind == Kind.SEQ else EMPTY)
    below = join(m, m.nodes[head].a, join(m, m.nodes[head].b, tail)) if m.nodes[head].kind == Kind.SEQ else tail
    return below if m.nodes[below].front == 0 else FAIL


@inner
def make_front(m: Tables, node: NodeId, scratch: int, may_ask: int) -> int:
    """Make the front of a continuation; those that `first_below` tells are made. Returns 0, or a front to be made first."""
    start = m.n.pool
    kind = m.nodes[node].kind
    front = front_at(m.pool + start)
    if start + FRONT_WORDS > m.pool_size:
        m.n.fault = Fault.FULL_POOL
        return 0
    front.accept, front.longest, front.length = 0, 0, 0
    if node == EMPTY:
        front.accept = 1
    elif kind == Kind.EITHER:
        left, right = front_of(m, m.nodes[node].a), front_of(m, m.nodes[node].b)
        front.accept, front.longest = max(left.accept, right.accept), max(left.longest, right.longest)
        for k in range(left.length):
            way = way_of(m, m.nodes[node].a, k)
            add_way(m, start, way.part, way.tail, way.may_miss)
        wanted = add_ways(m, start, m.nodes[node].b, 0, scratch, may_ask)
        if wanted < 0:
            return wanted
    else:
        head, tail = head_of(m, node), (m.nodes[node].b if kind == Kind.SEQ else EMPTY)
        if m.nodes[head].kind == Kind.SEQ:
            below = join(m, m.nodes[head].a, join(m, m.nodes[head].b, tail))
            if m.n.fault == Fault.NONE:
                m.nodes[node].front = m.nodes[below].front
            return 0
        part, rest, copies, optional = head, tail, 1, (1 if m.nodes[head].size == 0 else 0)
        if m.nodes[head].kind == Kind.REPEAT:
            copies = ENDLESS if m.nodes[head].c < 0 else m.nodes[head].c
            part, rest = m.nodes[head].a, join(m, after_one_copy(m, head), tail)
            if m.n.fault != Fault.NONE:
                return 0
        front.longest = min(ENDLESS, copies + front_of(m, tail).longest)
        add_way(m, start, part, rest, optional)
        if optional == 1:
            front.accept = front_of(m, tail).accept
            wanted = add_ways(m, start, tail, 1, scratch, may_ask)
            if wanted < 0:
                return wanted
    if m.n.fault == Fault.NONE:
        m.n.pool = start + FRONT_WORDS + WAY_WORDS * front.length
        m.nodes[node].front = start
    return 0


@inner
def add_way(m: Tables, start: int, part: NodeId, tail: NodeId, may_miss: int) -> None:
    """Put a way at the end of the front that is being made at `start` of `pool`."""
    front = front_at(m.pool + start)
    at = start + FRONT_WORDS + WAY_WORDS * front.length
    if at + WAY_WORDS > m.pool_size:
        m.n.fault = Fault.FULL_POOL
    elif m.nodes[part].size < INFINITE and m.nodes[tail].size < INFINITE:
        way = way_at(m.pool + at)
        way.part, way.tail, way.may_miss = part, tail, may_miss
        front.length += 1


@inner
def add_ways(m: Tables, start: int, continuation: NodeId, is_behind: int, scratch: int, may_ask: int) -> int:
    """Add the ways of a continuation to the front that is being made at `start` of `pool`. is_behind: 1 where it stands behind the
    first part of that front, and not beside it. Returns 0, or a front that has to be made first."""
    front = front_at(m.pool + start)
    count = front.length
    for k in range(front_of(m, continuation).length):
        way, known = way_of(m, continuation, k), -1
        for j in range(count):
            if way_at(m.pool + start + FRONT_WORDS + WAY_WORDS * j).part == way.part:
                known = j
        if known < 0:
            add_way(m, start, way.part, way.tail, way.may_miss)
        elif is_behind == 0 or way.may_miss == 0:
            ours = way_at(m.pool + start + FRONT_WORDS + WAY_WORDS * known)
            tail = union_of_two(m, wide(ours.tail), wide(way.tail), scratch, may_ask)
            if tail < 0 or m.n.fault != Fault.NONE:
                return tail
            ours.tail, ours.may_miss = tail, min(ours.may_miss, way.may_miss)
    return 0
