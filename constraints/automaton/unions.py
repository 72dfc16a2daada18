"""Unions: several continuations that begin with the same part, made one continuation.

Alternatives that read the same part before they differ would each carry that part along, and where it has such
alternatives inside of it, as often as there are ways to get there: 2^n of them in objects n deep. So the common part
stands once, before an EITHER of the rests:

    value then "," then A   and   value then "," then B     become     value then "," then EITHER(A, B)

This makes the stack of the automaton a graph, as in parsers for all context-free grammars (Tomita 1985; Scott and
Johnstone 2010). The characters of a body class are not taken out: loop_context.py looks for the repetition directly
behind them.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from ..base.kinds import Kind
from ..numba_support.jit import inner
from .containment import mark_shared, without_contained
from .nodes import EMPTY, FAIL, NO_BODY, head_of, intern_node, push_work, sequence, wide
from .sets import sort_unique
from .tables import REC, UNKNOWN, Counter, Fault


@inner
def append_parts(arena, tables, continuation, count):
    """Append a continuation, or each part of a union, to items[:count]; returns the new number of items."""
    while arena[tables.n + Counter.FAULT] == Fault.NONE:
        if count >= tables.items_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
            return count
        is_union = arena[tables.kind + REC * continuation] == Kind.EITHER
        arena[tables.items + count] = arena[tables.a + REC * continuation] if is_union else continuation
        arena[tables.n + Counter.PARTS] += 1
        count += 1
        if not is_union:
            break
        continuation = wide(arena[tables.b + REC * continuation])
    return count


@inner
def merge(arena, tables, first, count):
    """Make one continuation of those in items[first : first + count] that begin with the same part; returns how many are
    left."""
    start = tables.items + first
    shared = mark_shared(arena, tables, start, count, False)
    if shared == 0:
        return count
    count, left = sort_unique(arena, start, count), wide(0)
    for i in range(count):
        item = wide(arena[start + i])
        head = head_of(arena, tables, item)
        if arena[tables.marked_in + REC * head] == shared:
            arena[tables.marked_in + REC * head] = shared + 1
            item = union_of_those(arena, tables, head, first + i, first + count)
            if arena[tables.n + Counter.FAULT] != Fault.NONE:
                return count
        elif arena[tables.marked_in + REC * head] == shared + 1:  # is in a union already
            continue
        arena[start + left] = item
        left += 1
    return left


@inner
def union_of_those(arena, tables, head, start, end):
    """The union of those continuations in items[start:end] that begin with the part `head`. Uses `items` from `end` on
    as scratch."""
    count = wide(0)
    for i in range(start, end):
        item = wide(arena[tables.items + i])
        if head_of(arena, tables, item) == head:
            if end + count >= tables.items_size:
                arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
                return wide(FAIL)
            arena[tables.items + end + count] = item
            count += 1
    return union_of(arena, tables, tables.items + end, count)


@inner
def union_of(arena, tables, start, count):
    """The union of the distinct continuations arena[start : start + count]: all that they begin with, then an EITHER.
    Overwrites them."""
    depth = wide(0)
    while begins_all(arena, tables, head_of(arena, tables, wide(arena[start])), start, count):
        depth = push_work(arena, tables, head_of(arena, tables, wide(arena[start])), depth)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(FAIL)
        for k in range(start, start + count):
            arena[k] = arena[tables.b + REC * arena[k]] if arena[tables.kind + REC * arena[k]] == Kind.SEQ else EMPTY
    out = either_of(arena, tables, start, count, depth)
    while depth > 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        depth -= 1
        out = sequence(arena, tables, wide(arena[tables.work + depth]), out)
    return out


@inner
def begins_all(arena, tables, head, start, count):
    """Whether all of several continuations begin with `head`, and that part may stand before a union."""
    if head == EMPTY or arena[tables.body_class + REC * head] != NO_BODY:
        return False
    for k in range(start + 1, start + count):
        if head_of(arena, tables, wide(arena[k])) != head:
            return False
    return count > 1


@inner
def either_of(arena, tables, start, count, scratch):
    """The EITHER of the continuations arena[start : start + count], each union among them by its parts. Overwrites them and
    what is behind, and uses `work` from `scratch` on."""
    k = wide(0)
    while k < count:
        node = wide(arena[start + k])
        if arena[tables.kind + REC * node] != Kind.EITHER:
            k += 1
        elif start + count >= tables.items + tables.items_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
            return wide(FAIL)
        else:
            arena[start + k], arena[start + count] = arena[tables.a + REC * node], arena[tables.b + REC * node]
            count += 1
    arena[tables.n + Counter.PARTS] += count
    count = without_contained(arena, tables, start, sort_unique(arena, start, count), scratch)
    out = wide(arena[start])  # the oldest is the last: unions that differ in newer ones share it
    for k in range(start + 1, start + count):
        if arena[tables.n + Counter.FAULT] == Fault.NONE:
            out = either(arena, tables, wide(arena[k]), out)
    return out


@inner
def either(arena, tables, left, right):
    """The EITHER node of two continuations, with its size and cost."""
    node = intern_node(arena, tables, wide(Kind.EITHER), left, right, wide(0))
    if arena[tables.size + REC * node] == UNKNOWN:
        arena[tables.size + REC * node] = min(arena[tables.size + REC * left], arena[tables.size + REC * right])
        arena[tables.cost + REC * node] = min(arena[tables.cost + REC * left], arena[tables.cost + REC * right])
    return node
