"""Unions: several continuations that begin with the same part, made one continuation.

Alternatives that read the same part before they differ would each carry that part along, and where it has such
alternatives inside of it, as often as there are ways to get there: 2^n of them in objects n deep. So the common part
stands once, before an EITHER of the rests:

    value then "," then A   and   value then "," then B     become     value then "," then EITHER(A, B)

This makes the stack of the automaton a graph, as in parsers for all context-free grammars (Tomita 1985; Scott and
Johnstone 2010). The characters of a body class are not taken out: loop_context.py looks for the repetition directly
behind them.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.sets import sort_unique
from .containment import mark_shared, without_contained
from .nodes import EMPTY, FAIL, NO_BODY, head_of, intern_node, push_work, sequence
from .tables import UNKNOWN, Fault, Tables


@inner
def append_parts(m: Tables, continuation: NodeId, count: int) -> int:
    """Append a continuation, or each part of a union, to items[:count]; returns the new number of items."""
    while m.n.fault == Fault.NONE:
        if count >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        is_union = m.nodes[continuation].kind == Kind.EITHER
        m.items[count] = m.nodes[continuation].a if is_union else continuation
        m.n.parts += 1
        count += 1
        if not is_union:
            break
        continuation = m.nodes[continuation].b
    return count


@inner
def merge(m: Tables, first: int, count: int) -> int:
    """Make one continuation of those in items[first : first + count] that begin with the same part; returns how many are
    left."""
    items = m.items + first
    shared = mark_shared(m, items, count, False)
    if shared == 0:
        return count
    count, left = sort_unique(items, count), 0
    for i in range(count):
        item = items[i]
        head = head_of(m, item)
        if m.nodes[head].marked_in == shared:
            m.nodes[head].marked_in = shared + 1
            item = union_of_those(m, head, first + i, first + count)
            if m.n.fault != Fault.NONE:
                return count
        elif m.nodes[head].marked_in == shared + 1:  # is in a union already
            continue
        items[left] = item
        left += 1
    return left


@inner
def union_of_those(m: Tables, head: NodeId, start: int, end: int) -> NodeId:
    """The union of those continuations in items[start:end] that begin with the part `head`. Uses `items` from `end` on
    as scratch."""
    count = 0
    for i in range(start, end):
        item = m.items[i]
        if head_of(m, item) == head:
            if end + count >= m.items_size:
                m.n.fault = Fault.FULL_ITEMS
                return FAIL
            m.items[end + count] = item
            count += 1
    return union_of(m, end, count)


@inner
def union_of(m: Tables, start: int, count: int) -> NodeId:
    """The union of the distinct continuations items[start : start + count]: all that they begin with, then an EITHER.
    Overwrites them."""
    depth = 0
    while begins_all(m, head_of(m, m.items[start]), start, count):
        depth = push_work(m, head_of(m, m.items[start]), depth)
        if m.n.fault != Fault.NONE:
            return FAIL
        for k in range(start, start + count):
            m.items[k] = m.nodes[m.items[k]].b if m.nodes[m.items[k]].kind == Kind.SEQ else EMPTY
    out = either_of(m, start, count, depth)
    while depth > 0 and m.n.fault == Fault.NONE:
        depth -= 1
        out = sequence(m, m.work[depth], out)
    return out


@inner
def begins_all(m: Tables, head: NodeId, start: int, count: int) -> bool:
    """Whether all of several continuations begin with `head`, and that part may stand before a union."""
    if head == EMPTY or m.nodes[head].body_class != NO_BODY:
        return False
    for k in range(start + 1, start + count):
        if head_of(m, m.items[k]) != head:
            return False
    return count > 1


@inner
def either_of(m: Tables, start: int, count: int, scratch: int) -> NodeId:
    """The EITHER of the continuations items[start : start + count], each union among them by its parts. Overwrites them and
    what is behind, and uses `work` from `scratch` on."""
    count = flatten(m, start, count)
    return chain_of(m, start, without_contained(m, m.items + start, count, scratch)) if m.n.fault == Fault.NONE else FAIL


@inner
def flatten(m: Tables, start: int, count: int) -> int:
    """Put the parts of unions among items[start : start + count] in their place, sorted and each once; returns their number."""
    items, k = m.items + start, 0
    while k < count:
        node = items[k]
        if m.nodes[node].kind != Kind.EITHER:
            k += 1
        elif start + count >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        else:
            items[k], items[count] = m.nodes[node].a, m.nodes[node].b
            count += 1
    m.n.parts += count
    return sort_unique(items, count) if count > 1 else count


@inner
def chain_of(m: Tables, start: int, count: int) -> NodeId:
    """The union of items[start : start + count], which are no unions. The oldest is the last, so that unions that differ in newer
    ones share it."""
    out = m.items[start]
    for k in range(1, count):
        if m.n.fault == Fault.NONE:
            out = either(m, m.items[start + k], out)
    return out


@inner
def either(m: Tables, left: NodeId, right: NodeId) -> NodeId:
    """The EITHER node of two continuations, with its size and cost."""
    node = intern_node(m, Kind.EITHER, left, right, 0)
    if m.nodes[node].size == UNKNOWN:
        m.nodes[node].size = min(m.nodes[left].size, m.nodes[right].size)
        m.nodes[node].cost = min(m.nodes[left].cost, m.nodes[right].cost)
    return node
