"""The items of a state, of stacks that are kept as a graph.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import BodyId, NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .closures import ENDLESS, HEAD, expand, reads_bytes
from .front_construction import know_front, union_of_stacks
from .fronts import front_of, way_of
from .nodes import EMPTY, FAIL, NO_BODY, after_one_copy, head_of, join, push_work, wide
from .tables import Fault, Tables


@inner
def items_of_stacks(m: Tables, count: int) -> tuple[int, BodyId, int]:
    """Replace the continuations items[:count] by the items of the state in which any of them may come; returns (their number,
    the body class that it loops on, characters of it that may come)."""
    body, max_chars, end = NO_BODY, 0, 0
    stacks = union_of_stacks(m, 0, count)
    if m.n.fault == Fault.NONE:
        know_front(m, stacks, 0)
    if m.n.fault != Fault.NONE:
        return 0, body, max_chars
    for k in range(front_of(m, stacks).length):
        way = way_of(m, stacks, k)
        part, tail = wide(way.part), wide(way.tail)
        unit = m.nodes[part].body_class
        again = head_of(m, tail)
        if unit != NO_BODY and m.nodes[again].kind == Kind.REPEAT and m.nodes[again].a == part:
            copies = ENDLESS if m.nodes[again].c < 0 else 1 + m.nodes[again].c
            if copies > max_chars:
                body, max_chars = unit, copies
        end, unit, copies = enter(m, part, tail, end)
        if copies > max_chars:
            body, max_chars = unit, copies
        if m.n.fault != Fault.NONE:
            return 0, body, max_chars
    end = one_a_leaf(m, end)
    if front_of(m, stacks).accept == 1:
        if end >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return 0, body, max_chars
        m.items[end] = EMPTY
        end += 1
    return end, body, max_chars


@inner
def enter(m: Tables, part: NodeId, tail: NodeId, count: int) -> tuple[int, BodyId, int]:
    """Append what `part` then `tail` begins with to items[:count], as far as it is inside of the part; what begins behind it are
    other ways. Returns (their new number, body class that is repeated at the beginning, characters of it)."""
    m.n.epoch += 1
    epoch, body, max_chars = m.n.epoch, NO_BODY, 0
    m.nodes[tail].marked_in = epoch
    depth, expanded = expand(m, part, tail, 0, 0), 0
    while depth > 0 and m.n.fault == Fault.NONE:
        depth, expanded = depth - 1, expanded + 1
        w = m.work[depth]
        if w & HEAD:  # above its tail
            depth -= 1
            head, rest = w & ~HEAD, m.work[depth]
        else:
            if m.nodes[w].marked_in == epoch:
                continue
            m.nodes[w].marked_in = epoch
            head, rest = head_of(m, w), (m.nodes[w].b if m.nodes[w].kind == Kind.SEQ else EMPTY)
        if m.nodes[head].size >= INFINITE or m.nodes[rest].size >= INFINITE:
            continue
        m.n.parts += 1
        kind = m.nodes[head].kind
        if reads_bytes(kind):
            if count >= m.items_size:
                m.n.fault = Fault.FULL_ITEMS
                break
            m.items[count] = join(m, head, rest)
            count += 1
        elif kind == Kind.SEQ:
            depth = expand(m, m.nodes[head].a, join(m, m.nodes[head].b, rest), depth, expanded)
        elif kind == Kind.ALT:
            for j in range(m.nodes[head].a, m.nodes[head].a + m.nodes[head].b):
                depth = expand(m, m.lists[j], rest, depth, expanded)
        elif kind == Kind.CALL:
            unit = m.nodes[head].b
            if unit != FAIL and m.nodes[unit].body_class != NO_BODY:
                body, max_chars = m.nodes[unit].body_class, ENDLESS
            depth = expand(m, m.rules[m.nodes[head].a], rest, depth, expanded)
        elif kind == Kind.REPEAT:
            copies = ENDLESS if m.nodes[head].c < 0 else m.nodes[head].c
            if m.nodes[m.nodes[head].a].body_class != NO_BODY and copies > max_chars:
                body, max_chars = m.nodes[m.nodes[head].a].body_class, copies
            if m.nodes[head].b == 0:
                depth = push_work(m, rest, depth)
            depth = expand(m, m.nodes[head].a, join(m, after_one_copy(m, head), rest), depth, expanded)
        elif head == EMPTY:
            depth = push_work(m, rest, depth)
    return count, body, max_chars


@inner
def one_a_leaf(m: Tables, count: int) -> int:
    """Make one item of those in items[:count] that begin with the same leaf; returns how many are left. Characters of a body class
    have an item for each tail, since loop_context.py looks for the repetition directly behind them."""
    end = count  # of the items that are made
    for k in range(count):
        if m.items[k] == FAIL:
            continue
        leaf, found = wide(head_of(m, m.items[k])), 0
        for j in range(k, count):
            item = m.items[j]
            if item == FAIL or head_of(m, item) != leaf:
                continue
            if end + found >= m.items_size:
                m.n.fault = Fault.FULL_ITEMS
                return count
            m.items[end + found], m.items[j] = (m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY), FAIL
            found += 1
        tail = union_of_stacks(m, end, found)
        if m.n.fault != Fault.NONE:
            return count
        while m.nodes[leaf].body_class != NO_BODY and m.nodes[tail].kind == Kind.EITHER and end + 1 < m.items_size:
            m.items[end] = join(m, leaf, m.nodes[tail].a)
            end, tail = end + 1, wide(m.nodes[tail].b)
        if end >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        m.items[end] = join(m, leaf, tail)
        end += 1
    for k in range(count, end):
        m.items[k - count] = m.items[k]
    return end - count
