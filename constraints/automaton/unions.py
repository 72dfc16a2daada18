"""Continuations that begin alike as one, with a union of what follows.

Alternatives that read the same part before they differ would each carry that part along, and where it has such alternatives inside
of it, as often as there are ways to get there: 2^n of them in objects n deep. So what they have in common stands once, before an
EITHER of the rests: the stack of the automaton is a graph, as in parsers for all context-free grammars (Tomita 1985; Scott and
Johnstone 2010).

A part that repetitions are made of is no such beginning, because what repeats it is looked for directly behind it (loop_context.py).

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

from ..numba_support.jit import inner
from .nodes import EITHER, EMPTY, FAIL, NO_BODY, SEQ, intern_node, later, leaf, pair, wide
from .sets import sort_unique
from .tables import EPOCH, FAULT, FULL_ITEMS, NO_FAULT, REC, UNKNOWN


@inner
def spread(m, t, continuation, count):
    """Append a continuation, or the parts of a union, to the items; returns how many there are."""
    while m[t.n + FAULT] == NO_FAULT:
        if count >= t.items_size:
            m[t.n + FAULT] = FULL_ITEMS
            return count
        is_union = m[t.kind + REC * continuation] == EITHER
        m[t.items + count] = m[t.a + REC * continuation] if is_union else continuation
        count += 1
        if not is_union:
            break
        continuation = wide(m[t.b + REC * continuation])
    return count


@inner
def merge(m, t, count):
    """Replace those of the continuations items[:count] that begin alike by one; returns how many are left."""
    shared = mark_shared(m, t, count)
    if shared == 0:
        return count
    count, left = sort_unique(m, t.items, count), wide(0)
    for i in range(count):
        item = wide(m[t.items + i])
        head = leaf(m, t, item)
        if m[t.stamp + REC * head] == shared:
            m[t.stamp + REC * head] = shared + 1
            item = union_of_those(m, t, head, i, count)
            if m[t.n + FAULT] != NO_FAULT:
                return count
        elif m[t.stamp + REC * head] == shared + 1:  # is in a union already
            continue
        m[t.items + left] = item
        left += 1
    return left


@inner
def mark_shared(m, t, count):
    """Stamp the parts with which several of the continuations items[:count] begin; returns the stamp, 0 if there are none."""
    m[t.n + EPOCH] += 3
    shared, found = wide(m[t.n + EPOCH]) - 1, wide(0)
    for i in range(count):
        head = leaf(m, t, wide(m[t.items + i]))
        if m[t.unit + REC * head] != NO_BODY or head == EMPTY:
            continue
        if m[t.stamp + REC * head] >= shared - 1:
            m[t.stamp + REC * head] = found = shared
        else:
            m[t.stamp + REC * head] = shared - 1
    return found


@inner
def union_of_those(m, t, head, start, end):
    """Those of the continuations items[start:end] that begin with a part, as one."""
    count = wide(0)
    for i in range(start, end):
        item = wide(m[t.items + i])
        if leaf(m, t, item) == head:
            if end + count >= t.items_size:
                m[t.n + FAULT] = FULL_ITEMS
                return wide(FAIL)
            m[t.items + end + count] = item
            count += 1
    return union_of(m, t, t.items + end, count)


@inner
def union_of(m, t, start, count):
    """The union of the distinct continuations m[start : start + count], in scratch: what all begin with, then an EITHER."""
    depth = wide(0)
    while begins_all(m, t, leaf(m, t, wide(m[start])), start, count):
        depth = later(m, t, leaf(m, t, wide(m[start])), depth)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(FAIL)
        for k in range(start, start + count):
            m[k] = m[t.b + REC * m[k]] if m[t.kind + REC * m[k]] == SEQ else EMPTY
    out = either_of(m, t, start, count)
    while depth > 0 and m[t.n + FAULT] == NO_FAULT:
        depth -= 1
        out = pair(m, t, wide(m[t.work + depth]), out)
    return out


@inner
def begins_all(m, t, head, start, count):
    """Whether several continuations begin with a part that may stand before a union."""
    if head == EMPTY or m[t.unit + REC * head] != NO_BODY:
        return False
    for k in range(start + 1, start + count):
        if leaf(m, t, wide(m[k])) != head:
            return False
    return count > 1


@inner
def either_of(m, t, start, count):
    """The EITHER of some continuations, in scratch; the parts of unions count by themselves."""
    k = wide(0)
    while k < count:
        node = wide(m[start + k])
        if m[t.kind + REC * node] != EITHER:
            k += 1
        elif start + count >= t.items + t.items_size:
            m[t.n + FAULT] = FULL_ITEMS
            return wide(FAIL)
        else:
            m[start + k], m[start + count] = m[t.a + REC * node], m[t.b + REC * node]
            count += 1
    count = sort_unique(m, start, count) - 1
    out = wide(m[start + count])
    while count > 0 and m[t.n + FAULT] == NO_FAULT:
        count -= 1
        out = either(m, t, wide(m[start + count]), out)
    return out


@inner
def either(m, t, left, right):
    """An EITHER node."""
    node = intern_node(m, t, wide(EITHER), left, right, wide(0))
    if m[t.size + REC * node] == UNKNOWN:
        m[t.size + REC * node] = min(m[t.size + REC * left], m[t.size + REC * right])
        m[t.cost + REC * node] = min(m[t.cost + REC * left], m[t.cost + REC * right])
    return node
