"""Closures: what a continuation may begin with.

The closure of a continuation (states.py) is the set of continuations that begin with a leaf, or are finished, which are reachable
from it without reading a byte. It is computed once and stands in `pool`.

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

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
    fewer,
    join,
    later,
    leaf,
    open_bag,
    open_multiple,
    wide,
)
from .tables import EPOCH, FAULT, FULL_ITEMS, FULL_POOL, INFINITE, NO_FAULT, POOL, REC

ENDLESS = 1 << 30  # the radius of a body without bound
MANY_EXPANDED = 256
HEADER = 3  # words of a closure before its items


@inner
def close(m, t, continuation):
    """Make the closure of a continuation: pool[closure] = length, body class, radius, then the items.

    Where there is no body, the UNLISTED node with which it begins stands instead of the radius, see word_complement_masks.py.
    """
    m[t.n + EPOCH] += 1
    epoch = wide(m[t.n + EPOCH])
    start = wide(m[t.n + POOL])
    count, body, radius, unlisted = wide(0), wide(NO_BODY), wide(0), wide(0)
    m[t.work + 0] = continuation
    depth, expanded = wide(1), wide(0)
    while depth > 0:
        depth, expanded = depth - 1, expanded + 1
        w = wide(m[t.work + depth])
        if w < 0:  # a head, above its tail
            depth -= 1
            head, tail = -w, wide(m[t.work + depth])
            if m[t.size + REC * head] >= INFINITE or m[t.size + REC * tail] >= INFINITE:
                continue
        else:
            if m[t.stamp + REC * w] == epoch or m[t.size + REC * w] >= INFINITE:
                continue
            m[t.stamp + REC * w] = epoch
            head, tail = w, wide(EMPTY)
            if m[t.kind + REC * w] == SEQ:
                head, tail = wide(m[t.a + REC * w]), wide(m[t.b + REC * w])
        kind = wide(m[t.kind + REC * head])
        if expanded == 1 and kind == UNLISTED:
            unlisted = head
        if start + HEADER + count >= t.pool_size:
            m[t.n + FAULT] = FULL_POOL
        elif kind == CLASS or kind == LITERAL or kind == PRODUCT or kind == UNLISTED or (head == EMPTY and tail == EMPTY):
            m[t.pool + start + HEADER + count] = join(m, t, head, tail)
            count += 1
            if kind == PRODUCT and m[t.size + REC * head] == 0:
                depth = later(m, t, tail, depth)
        elif kind == SEQ:
            depth = expand(m, t, wide(m[t.a + REC * head]), join(m, t, wide(m[t.b + REC * head]), tail), depth, expanded)
        elif kind == ALT:
            for j in range(wide(m[t.a + REC * head]), wide(m[t.a + REC * head]) + wide(m[t.b + REC * head])):
                depth = expand(m, t, wide(m[t.lists + j]), tail, depth, expanded)
        elif kind == EITHER:
            depth = expand(m, t, wide(m[t.b + REC * head]), tail, depth, expanded)
            depth = expand(m, t, wide(m[t.a + REC * head]), tail, depth, expanded)
        elif kind == CALL:
            depth = expand(m, t, wide(m[t.rules + m[t.a + REC * head]]), tail, depth, expanded)
        elif kind == REPEAT:
            high = wide(ENDLESS) if m[t.c + REC * head] < 0 else wide(m[t.c + REC * head])
            if m[t.unit + REC * m[t.a + REC * head]] != NO_BODY and high > radius:
                body, radius = wide(m[t.unit + REC * m[t.a + REC * head]]), high
            if m[t.b + REC * head] == 0:
                depth = later(m, t, tail, depth)
            depth = expand(m, t, wide(m[t.a + REC * head]), join(m, t, fewer(m, t, head), tail), depth, expanded)
        elif kind == BAG:
            depth = open_bag(m, t, head, tail, depth)
        elif kind == MULTIPLE:
            depth = open_multiple(m, t, head, tail, depth)
        elif kind == BOTH or kind == NEGATE:
            depth = expand(m, t, wide(m[t.enter + REC * head]), tail, depth, expanded)
        elif head == EMPTY:
            depth = later(m, t, tail, depth)
        if m[t.n + FAULT] != NO_FAULT:
            return
    m[t.pool + start], m[t.pool + start + 1] = count, body
    m[t.pool + start + 2] = radius if body != NO_BODY else unlisted
    m[t.n + POOL] = start + HEADER + count
    m[t.closure + REC * continuation] = start


@inner
def expand(m, t, head, tail, depth, expanded):
    """Put `head` followed by `tail` on the work list.

    As a pair, because most heads are never needed as nodes with this tail. After MANY_EXPANDED steps of a closure nodes are made:
    they are stamped, so that parts shared by many alternatives are looked at once. (What reads nothing always passes through a
    tail, which is a node, so no pair comes back for ever.)
    """
    if expanded > MANY_EXPANDED or head == FAIL:
        return later(m, t, join(m, t, head, tail), depth)
    return later(m, t, -head, later(m, t, tail, depth))


@inner
def gather(m, t, continuation, count):
    """Append the closure of a continuation to the items of the state being made; returns their number."""
    if m[t.kind + REC * leaf(m, t, continuation)] == LITERAL:  # its own closure
        if count >= t.items_size:
            m[t.n + FAULT] = FULL_ITEMS
            return count
        m[t.items + count] = continuation
        return count + 1
    if m[t.closure + REC * continuation] == 0:
        close(m, t, continuation)
        if m[t.n + FAULT] == NO_FAULT:
            close_bodies(m, t, continuation)
        if m[t.n + FAULT] != NO_FAULT:
            m[t.closure + REC * continuation] = 0
            return count
    start = wide(m[t.closure + REC * continuation])
    length = wide(m[t.pool + start])
    if count + length > t.items_size:
        m[t.n + FAULT] = FULL_ITEMS
        return count
    for j in range(length):
        m[t.items + count + j] = m[t.pool + start + HEADER + j]
    return count + length


@inner
def close_bodies(m, t, continuation):
    """Make the closures of the bodies of UNLISTED nodes in a closure, which tell what a state may read."""
    start = wide(m[t.closure + REC * continuation])
    for j in range(start + HEADER, start + HEADER + wide(m[t.pool + start])):
        node = leaf(m, t, wide(m[t.pool + j]))
        if m[t.kind + REC * node] == UNLISTED:
            body = wide(m[t.b + REC * node])
            if m[t.closure + REC * body] == 0 and m[t.kind + REC * leaf(m, t, body)] != LITERAL:
                close(m, t, body)
