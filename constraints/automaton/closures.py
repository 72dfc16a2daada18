"""Closures: what a continuation may begin with.

The closure of a continuation (states.py) is the set of continuations that begin with a leaf, or are finished, which are reachable
from it without reading a byte. It is computed once and stands in `pool`.

All functions here are compiled. `arena` and `tables` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

from ..base.kinds import INFINITE
from ..numba_support.jit import inner
from .nodes import (
    ALT,
    BAG,
    BOTH,
    CALL,
    CLASS,
    EITHER,
    EMPTY,
    FAIL,
    LITERAL,
    MULTIPLE,
    NEGATE,
    NO_BODY,
    PRODUCT,
    REPEAT,
    SEQ,
    UNLISTED,
    after_one_copy,
    head_of,
    join,
    open_bag,
    open_multiple,
    push_work,
    wide,
)
from .tables import EPOCH, FAULT, FULL_ITEMS, FULL_POOL, NO_FAULT, POOL, REC

ENDLESS = 1 << 30  # the radius of a body without bound
MANY_EXPANDED = 256
HEADER = 3  # words of a closure before its items


@inner
def make_closure(arena, tables, continuation):
    """Make the closure of a continuation: pool[closure] = length, body class, radius, then the items.

    Where there is no body, the UNLISTED node with which it begins stands instead of the radius, see word_complement_masks.py.
    """
    arena[tables.n + EPOCH] += 1
    epoch = wide(arena[tables.n + EPOCH])
    start = wide(arena[tables.n + POOL])
    count, body, max_chars, unlisted = wide(0), wide(NO_BODY), wide(0), wide(0)
    arena[tables.work + 0] = continuation
    depth, expanded = wide(1), wide(0)
    while depth > 0:
        depth, expanded = depth - 1, expanded + 1
        w = wide(arena[tables.work + depth])
        if w < 0:  # a head, above its tail
            depth -= 1
            head, tail = -w, wide(arena[tables.work + depth])
            if arena[tables.size + REC * head] >= INFINITE or arena[tables.size + REC * tail] >= INFINITE:
                continue
        else:
            if arena[tables.marked_in + REC * w] == epoch or arena[tables.size + REC * w] >= INFINITE:
                continue
            arena[tables.marked_in + REC * w] = epoch
            head, tail = w, wide(EMPTY)
            if arena[tables.kind + REC * w] == SEQ:
                head, tail = wide(arena[tables.a + REC * w]), wide(arena[tables.b + REC * w])
        kind = wide(arena[tables.kind + REC * head])
        if expanded == 1 and kind == UNLISTED:
            unlisted = head
        if start + HEADER + count >= tables.pool_size:
            arena[tables.n + FAULT] = FULL_POOL
        elif kind == CLASS or kind == LITERAL or kind == PRODUCT or kind == UNLISTED or (head == EMPTY and tail == EMPTY):
            arena[tables.pool + start + HEADER + count] = join(arena, tables, head, tail)
            count += 1
            if kind == PRODUCT and arena[tables.size + REC * head] == 0:
                depth = push_work(arena, tables, tail, depth)
        elif kind == SEQ:
            depth = expand(
                arena,
                tables,
                wide(arena[tables.a + REC * head]),
                join(arena, tables, wide(arena[tables.b + REC * head]), tail),
                depth,
                expanded,
            )
        elif kind == ALT:
            for j in range(
                wide(arena[tables.a + REC * head]),
                wide(arena[tables.a + REC * head]) + wide(arena[tables.b + REC * head]),
            ):
                depth = expand(arena, tables, wide(arena[tables.lists + j]), tail, depth, expanded)
        elif kind == EITHER:
            depth = expand(arena, tables, wide(arena[tables.b + REC * head]), tail, depth, expanded)
            depth = expand(arena, tables, wide(arena[tables.a + REC * head]), tail, depth, expanded)
        elif kind == CALL:
            depth = expand(arena, tables, wide(arena[tables.rules + arena[tables.a + REC * head]]), tail, depth, expanded)
        elif kind == REPEAT:
            high = wide(ENDLESS) if arena[tables.c + REC * head] < 0 else wide(arena[tables.c + REC * head])
            if arena[tables.body_class + REC * arena[tables.a + REC * head]] != NO_BODY and high > max_chars:
                body, max_chars = wide(arena[tables.body_class + REC * arena[tables.a + REC * head]]), high
            if arena[tables.b + REC * head] == 0:
                depth = push_work(arena, tables, tail, depth)
            depth = expand(
                arena,
                tables,
                wide(arena[tables.a + REC * head]),
                join(arena, tables, after_one_copy(arena, tables, head), tail),
                depth,
                expanded,
            )
        elif kind == BAG:
            depth = open_bag(arena, tables, head, tail, depth)
        elif kind == MULTIPLE:
            depth = open_multiple(arena, tables, head, tail, depth)
        elif kind == BOTH or kind == NEGATE:
            depth = expand(arena, tables, wide(arena[tables.entry_product + REC * head]), tail, depth, expanded)
        elif head == EMPTY:
            depth = push_work(arena, tables, tail, depth)
        if arena[tables.n + FAULT] != NO_FAULT:
            return
    arena[tables.pool + start], arena[tables.pool + start + 1] = count, body
    arena[tables.pool + start + 2] = max_chars if body != NO_BODY else unlisted
    arena[tables.n + POOL] = start + HEADER + count
    arena[tables.closure + REC * continuation] = start


@inner
def expand(arena, tables, head, tail, depth, expanded):
    """Put `head` followed by `tail` on the work list.

    As a pair, because most heads are never needed as nodes with this tail. After MANY_EXPANDED steps of a closure nodes are made:
    they are stamped, so that parts shared by many alternatives are looked at once. (What reads nothing always passes through a
    tail, which is a node, so no pair comes back for ever.)
    """
    if expanded > MANY_EXPANDED or head == FAIL:
        return push_work(arena, tables, join(arena, tables, head, tail), depth)
    return push_work(arena, tables, -head, push_work(arena, tables, tail, depth))


@inner
def append_closure(arena, tables, continuation, count):
    """Append the closure of a continuation to the items of the state being made; returns their number."""
    if arena[tables.kind + REC * head_of(arena, tables, continuation)] == LITERAL:  # its own closure
        if count >= tables.items_size:
            arena[tables.n + FAULT] = FULL_ITEMS
            return count
        arena[tables.items + count] = continuation
        return count + 1
    if arena[tables.closure + REC * continuation] == 0:
        make_closure(arena, tables, continuation)
        if arena[tables.n + FAULT] == NO_FAULT:
            make_body_closures(arena, tables, continuation)
        if arena[tables.n + FAULT] != NO_FAULT:
            arena[tables.closure + REC * continuation] = 0
            return count
    start = wide(arena[tables.closure + REC * continuation])
    length = wide(arena[tables.pool + start])
    if count + length > tables.items_size:
        arena[tables.n + FAULT] = FULL_ITEMS
        return count
    for j in range(length):
        arena[tables.items + count + j] = arena[tables.pool + start + HEADER + j]
    return count + length


@inner
def make_body_closures(arena, tables, continuation):
    """Make the closures of the bodies of UNLISTED nodes in a closure, which tell what a state may read."""
    start = wide(arena[tables.closure + REC * continuation])
    for j in range(start + HEADER, start + HEADER + wide(arena[tables.pool + start])):
        node = head_of(arena, tables, wide(arena[tables.pool + j]))
        if arena[tables.kind + REC * node] == UNLISTED:
            body = wide(arena[tables.b + REC * node])
            if arena[tables.closure + REC * body] == 0 and arena[tables.kind + REC * head_of(arena, tables, body)] != LITERAL:
                make_closure(arena, tables, body)
