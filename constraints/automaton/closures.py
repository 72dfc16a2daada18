"""Closures: the ways in which a continuation may begin.

A *continuation* is an expression for all that may still come: a leaf, followed by a tail (states.py). Its *closure* is
the set of continuations that begin with a leaf, or are finished, and are reached from it without reading a byte: calls
are entered, alternatives are spread out, repetitions are begun or ended. A closure is made once and kept in `pool`.

    rule "x"* "y"    its closure: { "x" then ("x"* "y"),  "y" }

A closure also says what its state will loop on: the *body class*, the class of characters that a repetition at the
beginning reads, and `max_chars`, the most characters of the class that may still come. A call that says of its rule that any
characters of a class may come is such a repetition, though each of them may lead elsewhere.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .containment import without_contained
from .covers import cover_behind, cover_behind_watch, open_cover
from .member_walks import left_behind, open_walk
from .nodes import (
    EMPTY,
    FAIL,
    NO_BODY,
    after_one_copy,
    head_of,
    join,
    open_bag,
    open_multiple,
    push_work,
    wide,
)
from .sets import sort_unique
from .tables import REC, Counter, Fault
from .unions import merge

ENDLESS = 1 << 30  # the radius of a body without bound
MANY_EXPANDED = 256
CLOSURE_HEADER = 3  # words of a closure before its items


@inner
def make_closure(arena, tables, continuation, scratch):
    """Make the closure of a continuation: pool[closure] = number of items, body class, `max_chars`, then the items. Uses
    `items` from `scratch` on, and `work`.

    A closure without a body class has, instead of `max_chars`, the UNLISTED node with which the continuation begins, or 0
    (word_complement_masks.py uses it). On a fault nothing is kept.
    """
    arena[tables.n + Counter.EPOCH] += 1
    epoch = wide(arena[tables.n + Counter.EPOCH])
    start = wide(arena[tables.n + Counter.POOL])
    count, body, max_chars, unlisted, has_known = wide(0), wide(NO_BODY), wide(0), wide(0), False
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
            known = wide(arena[tables.closure + REC * w])
            if known != 0 and w >= arena[tables.n + Counter.NUM_STATIC]:  # a stack that began here before, which may be deep
                length = wide(arena[tables.pool + known])
                if start + CLOSURE_HEADER + count + length > tables.pool_size:
                    arena[tables.n + Counter.FAULT] = Fault.FULL_POOL
                    return
                for j in range(length):
                    arena[tables.pool + start + CLOSURE_HEADER + count + j] = arena[tables.pool + known + CLOSURE_HEADER + j]
                count, has_known = count + length, True
                if arena[tables.pool + known + 1] != NO_BODY and arena[tables.pool + known + 2] > max_chars:
                    body, max_chars = wide(arena[tables.pool + known + 1]), wide(arena[tables.pool + known + 2])
                continue
            head, tail = w, wide(EMPTY)
            if arena[tables.kind + REC * w] == Kind.SEQ:
                head, tail = wide(arena[tables.a + REC * w]), wide(arena[tables.b + REC * w])
        kind = wide(arena[tables.kind + REC * head])
        if expanded == 1 and kind == Kind.UNLISTED:
            unlisted = head
        if start + CLOSURE_HEADER + count >= tables.pool_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_POOL
        elif reads_bytes(kind) or (head == EMPTY and tail == EMPTY):
            arena[tables.pool + start + CLOSURE_HEADER + count] = join(arena, tables, head, tail)
            count += 1
            if (kind == Kind.PRODUCT or kind == Kind.TABLE) and arena[tables.size + REC * head] == 0:
                depth = push_work(arena, tables, tail, depth)
            elif kind == Kind.WATCH and arena[tables.state_accept + REC * arena[tables.a + REC * head]] == 1:
                depth = expand(arena, tables, cover_behind_watch(arena, tables, head), tail, depth, expanded)
        elif kind == Kind.SEQ:
            depth = expand(
                arena,
                tables,
                wide(arena[tables.a + REC * head]),
                join(arena, tables, wide(arena[tables.b + REC * head]), tail),
                depth,
                expanded,
            )
        elif kind == Kind.ALT:
            for j in range(
                wide(arena[tables.a + REC * head]),
                wide(arena[tables.a + REC * head]) + wide(arena[tables.b + REC * head]),
            ):
                depth = expand(arena, tables, wide(arena[tables.lists + j]), tail, depth, expanded)
        elif kind == Kind.EITHER:
            depth = push_work(arena, tables, join(arena, tables, wide(arena[tables.b + REC * head]), tail), depth)
            depth = push_work(arena, tables, join(arena, tables, wide(arena[tables.a + REC * head]), tail), depth)
        elif kind == Kind.CALL:
            unit = wide(arena[tables.b + REC * head])
            if unit != FAIL and arena[tables.body_class + REC * unit] != NO_BODY:
                body, max_chars = wide(arena[tables.body_class + REC * unit]), wide(ENDLESS)
            depth = expand(arena, tables, wide(arena[tables.rules + arena[tables.a + REC * head]]), tail, depth, expanded)
        elif kind == Kind.REPEAT:
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
        elif kind == Kind.BAG:
            depth = open_bag(arena, tables, head, tail, depth)
        elif kind == Kind.WALK:
            depth = open_walk(arena, tables, head, tail, depth)
        elif kind == Kind.COVER:
            depth = open_cover(arena, tables, head, tail, depth)
        elif kind == Kind.TAKEN:
            is_item = arena[tables.kind + REC * arena[tables.a + REC * head]] == Kind.COVER
            left = cover_behind(arena, tables, head) if is_item else left_behind(arena, tables, head, depth)
            depth = expand(arena, tables, left, tail, depth, expanded)
        elif kind == Kind.MULTIPLE:
            depth = open_multiple(arena, tables, head, tail, depth)
        elif kind == Kind.BOTH or kind == Kind.NEGATE:
            depth = expand(arena, tables, wide(arena[tables.entry_product + REC * head]), tail, depth, expanded)
        elif head == EMPTY:
            depth = push_work(arena, tables, tail, depth)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return
    if has_known:
        count = sort_unique(arena, tables.pool + start + CLOSURE_HEADER, count)
    count = without_contained(arena, tables, tables.pool + start + CLOSURE_HEADER, count, wide(0))
    if count > 1 and arena[tables.n + Counter.CALLS] != 0:
        count = merged(arena, tables, tables.pool + start + CLOSURE_HEADER, count, scratch)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return
    arena[tables.pool + start], arena[tables.pool + start + 1] = count, body
    arena[tables.pool + start + 2] = max_chars if body != NO_BODY else unlisted
    arena[tables.n + Counter.POOL] = start + CLOSURE_HEADER + count
    arena[tables.closure + REC * continuation] = start


@inner
def merged(arena, tables, start, count, scratch):
    """Make one item of those in arena[start : start + count] that begin with the same leaf; returns how many are left.
    Uses `items` from `scratch` on."""
    if scratch + count > tables.items_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
        return count
    for j in range(count):
        arena[tables.items + scratch + j] = arena[start + j]
    count = merge(arena, tables, scratch, count)
    for j in range(count):
        arena[start + j] = arena[tables.items + scratch + j]
    return count


@inner
def make_closures(arena, tables, continuation, scratch):
    """Make the closure of a continuation, and first those of all that it may come to without reading a byte and that the
    automaton has made itself: stacks that are deep, of which the next closures are made. Uses `items` from `scratch` on."""
    arena[tables.items + scratch] = continuation
    top = scratch + 1
    while top > scratch and arena[tables.n + Counter.FAULT] == Fault.NONE:
        node = wide(arena[tables.items + top - 1])
        below = top
        if arena[tables.n + Counter.CALLS] != 0 and node >= arena[tables.n + Counter.NUM_STATIC]:
            if arena[tables.kind + REC * node] == Kind.EITHER:
                part = node
                while arena[tables.kind + REC * part] == Kind.EITHER:
                    below = push_open(arena, tables, wide(arena[tables.a + REC * part]), below)
                    part = wide(arena[tables.b + REC * part])
                below = push_open(arena, tables, part, below)
            elif arena[tables.kind + REC * node] == Kind.SEQ and arena[tables.size + REC * arena[tables.a + REC * node]] == 0:
                below = push_open(arena, tables, wide(arena[tables.b + REC * node]), below)
        if below > top:
            top = below
            continue
        top -= 1
        if arena[tables.closure + REC * node] == 0:
            make_closure(arena, tables, node, top)


@inner
def push_open(arena, tables, node, top):
    """Put a node on the stack items[:top] if its closure is still to be made; returns the new top."""
    if (
        node < arena[tables.n + Counter.NUM_STATIC]
        or arena[tables.closure + REC * node] != 0
        or arena[tables.kind + REC * head_of(arena, tables, node)] == Kind.LITERAL
    ):
        return top
    if top + 1 >= tables.items_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
        return top
    arena[tables.items + top] = node
    return top + 1


@inner
def reads_bytes(kind):
    """Whether nodes of a kind are leaves, which read bytes themselves."""
    is_boolean = kind == Kind.PRODUCT or kind == Kind.TABLE
    return kind == Kind.CLASS or kind == Kind.LITERAL or kind == Kind.UNLISTED or is_boolean or kind == Kind.WATCH


@inner
def expand(arena, tables, head, tail, depth, expanded):
    """Put the continuation `head` then `tail` on the work list, as two entries; returns the new depth.

    Two entries, because most heads are never needed as a node with this tail. After MANY_EXPANDED steps of a closure
    nodes are made after all: nodes are stamped, so that parts shared by many alternatives are looked at once. (What
    reads nothing always passes through a tail, which is a node, so no pair of entries comes back for ever.)
    """
    if expanded > MANY_EXPANDED or head == FAIL:
        return push_work(arena, tables, join(arena, tables, head, tail), depth)
    return push_work(arena, tables, -head, push_work(arena, tables, tail, depth))


@inner
def append_closure(arena, tables, continuation, count):
    """Append the items of the closure of a continuation to items[:count], where a new state is put together. Returns
    their new number."""
    if arena[tables.kind + REC * head_of(arena, tables, continuation)] == Kind.LITERAL:  # its own closure
        if count >= tables.items_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
            return count
        arena[tables.items + count] = continuation
        return count + 1
    if arena[tables.closure + REC * continuation] == 0:
        if count >= tables.items_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
            return count
        make_closures(arena, tables, continuation, count)
        if arena[tables.n + Counter.FAULT] == Fault.NONE:
            make_body_closures(arena, tables, continuation, count)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            arena[tables.closure + REC * continuation] = 0
            return count
    start = wide(arena[tables.closure + REC * continuation])
    length = wide(arena[tables.pool + start])
    if count + length > tables.items_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
        return count
    for j in range(length):
        arena[tables.items + count + j] = arena[tables.pool + start + CLOSURE_HEADER + j]
    return count + length


@inner
def make_body_closures(arena, tables, continuation, scratch):
    """Make the closures of the bodies of all UNLISTED nodes in a closure: they tell which bytes a state may read."""
    start = wide(arena[tables.closure + REC * continuation])
    for j in range(start + CLOSURE_HEADER, start + CLOSURE_HEADER + wide(arena[tables.pool + start])):
        node = head_of(arena, tables, wide(arena[tables.pool + j]))
        if arena[tables.kind + REC * node] == Kind.UNLISTED:
            body = wide(arena[tables.b + REC * node])
            if arena[tables.closure + REC * body] == 0 and arena[tables.kind + REC * head_of(arena, tables, body)] != Kind.LITERAL:
                make_closure(arena, tables, body, scratch)
