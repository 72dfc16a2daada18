"""States: closures of continuations, interned sets of their items, and frames.

What may still come after some text is a *continuation*: an expression node, a leaf followed by a tail. Tails are hash-consed, so
they are the stack of a pushdown automaton and the values of its counters in one. The *closure* of a continuation is the set of
continuations that begin with a leaf (or are finished) reachable without reading a byte, see closures.py. A *state* is an interned
sorted set of such items. Continuations that begin alike are made one before their closures are taken, see unions.py.

When many states differ only in a tail that all their items end with, because the same part of a grammar stands at many places, it
is derived once. A *frame* is a state that is written as another one, `inner`, that knows nothing of the tail, and the tail. It
goes where `inner` goes, until that is complete; its items are written out only when somebody asks.

A tail call pushes nothing (the empty tail is dropped), so right recursion stays finite. Nodes from which nothing can be
completed have infinite size and are never entered, so every state except DEAD can be completed.

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

from ..numba_support.jit import inner
from .closures import HEADER, gather
from .nodes import (
    CLASS,
    EITHER,
    EMPTY,
    FAIL,
    LITERAL,
    NEGATE,
    NO_BODY,
    PRODUCT,
    REPEAT,
    SEQ,
    UNLISTED,
    join,
    later,
    leaf,
    literal,
    mix,
    pair,
    plus,
    wide,
)
from .sets import is_equal, sort_unique
from .tables import (
    DEAD,
    FAULT,
    FRAMED,
    FULL_ITEMS,
    FULL_POOL,
    FULL_STATES,
    INFINITE,
    NO_FAULT,
    POOL,
    REC,
    STATES,
    UNKNOWN,
)
from .unions import merge, spread

INNER, TAIL, FRAME_START, FRAME_LENGTH, FRAME_WORDS = range(5)  # of a frame in `pool`: its items, 0 of them when not written out


# -- states -------------------------------------------------------------------------------------------------------------


@inner
def state_key(m, start, count):
    """A hash of the items of a state."""
    h = wide(count)
    for j in range(start, start + count):
        h = mix(h, wide(m[j]), wide(0), wide(0))
    return h


@inner
def intern_state(m, t, count, body, radius):
    """The state whose items stand in items[:count], in any order and with repetitions."""
    if count == 0:
        return wide(DEAD)
    unique = sort_unique(m, t.items, count)
    mask = t.state_hash_size - 1
    key = state_key(m, t.items, unique)
    slot = key & mask
    while m[t.state_hash + slot] != 0:
        s = wide(m[t.state_hash + slot])
        if m[t.state_key + REC * s] == key and m[t.state_length + REC * s] == unique:
            if is_equal(m, t.pool + m[t.state_start + REC * s], t.items, unique):
                return s
        slot = (slot + 1) & mask
    s = new_state(m, t, slot, key, unique, unique)
    if m[t.n + FAULT] == NO_FAULT:
        for j in range(unique):
            m[t.pool + m[t.state_start + REC * s] + j] = m[t.items + j]
        describe(m, t, s, body, radius)
    return s


@inner
def new_state(m, t, slot, key, length, words):
    """A state with room for so many words in `pool`, entered at a slot of the hash table. DEAD on a fault."""
    s, start = wide(m[t.n + STATES]), wide(m[t.n + POOL])
    if s >= t.states_size or 2 * s >= t.state_hash_size:
        m[t.n + FAULT] = FULL_STATES
    elif start + words > t.pool_size:
        m[t.n + FAULT] = FULL_POOL
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    m[t.n + STATES], m[t.n + POOL] = s + 1, start + words
    m[t.state_hash + slot] = s
    m[t.state_start + REC * s], m[t.state_length + REC * s], m[t.state_key + REC * s] = start, length, key
    m[t.state_after + REC * s] = m[t.state_alone + REC * s] = UNKNOWN
    m[t.state_row + REC * s] = m[t.state_events + REC * s] = m[t.state_ends + REC * s] = m[t.state_run + REC * s] = 0
    return s


@inner
def describe(m, t, s, body, radius):
    """Fill in what follows from the items of a new state; its transitions are unknown, or DEAD for bytes no item takes."""
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    accept, cost, flat = wide(0), wide(INFINITE), wide(1)
    row = t.next + s * 256
    for byte in range(256):
        m[row + byte] = DEAD
    m[t.state_left + REC * s] = 0
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if item == EMPTY:
            accept, cost = wide(1), wide(0)
            continue
        cost = min(cost, wide(m[t.cost + REC * item]))
        node = leaf(m, t, item)
        mark_live(m, t, node, row)
        if m[t.kind + REC * node] == UNLISTED:
            mark_body(m, t, wide(m[t.b + REC * node]), row)
        if m[t.kind + REC * node] == PRODUCT:
            flat = wide(0)
        elif m[t.kind + REC * node] == LITERAL and length == 1:
            m[t.state_text + REC * s], m[t.state_left + REC * s] = m[t.a + REC * node], m[t.b + REC * node]
    m[t.state_accept + REC * s], m[t.state_cost + REC * s], m[t.state_flat + REC * s] = accept, cost, flat
    m[t.state_body + REC * s], m[t.state_radius + REC * s] = body, radius


@inner
def mark_live(m, t, node, row):
    """Mark the bytes that a leaf may take as UNKNOWN. row: where the transitions are."""
    if m[t.kind + REC * node] == LITERAL:
        m[row + m[t.text + m[t.a + REC * node]]] = UNKNOWN
    elif m[t.kind + REC * node] == CLASS:
        for e in range(m[t.a + REC * node], m[t.a + REC * node] + m[t.b + REC * node]):
            for byte in range(m[t.edge_low + e], m[t.edge_high + e] + 1):
                m[row + byte] = UNKNOWN
    elif m[t.kind + REC * node] == PRODUCT:
        x, y = wide(m[t.a + REC * node]) * 256, wide(m[t.b + REC * node]) * 256
        for byte in range(256):
            if m[t.c + REC * node] == NEGATE or (m[t.next + x + byte] != DEAD and m[t.next + y + byte] != DEAD):
                m[row + byte] = UNKNOWN


@inner
def mark_body(m, t, body, row):
    """The same of the body of an UNLISTED node."""
    start = wide(m[t.closure + REC * body])
    if start == 0:  # of a literal
        mark_live(m, t, leaf(m, t, body), row)
        return
    for j in range(start + HEADER, start + HEADER + wide(m[t.pool + start])):
        mark_live(m, t, leaf(m, t, wide(m[t.pool + j])), row)


@inner
def rehash_states(m, t):
    """Fill `state_hash`, all zero."""
    mask = t.state_hash_size - 1
    for s in range(1, m[t.n + STATES]):
        slot = m[t.state_key + REC * s] & mask
        while m[t.state_hash + slot] != 0:
            slot = (slot + 1) & mask
        m[t.state_hash + slot] = s


@inner
def state_of(m, t, continuation):
    """The state before any byte of a continuation."""
    if m[t.kind + REC * continuation] == EITHER:
        return state_of_all(m, t, spread(m, t, continuation, wide(0)))
    return state_of_one(m, t, continuation)


@inner
def state_of_all(m, t, count):
    """The state before any byte of the continuations items[:count], see `spread`."""
    if count > 1 and m[t.n + FAULT] == NO_FAULT:
        count = merge(m, t, count)
    if count == 0 or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    if count == 1:
        return state_of_one(m, t, wide(m[t.items]))
    end, body, radius, unlisted, others = count, wide(NO_BODY), wide(0), wide(0), wide(0)
    for k in range(count):
        continuation = wide(m[t.items + k])
        end = gather(m, t, continuation, end)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        closure = wide(m[t.closure + REC * continuation])
        if closure == 0:  # of a literal
            continue
        others += 1
        if m[t.pool + closure + 1] == NO_BODY:
            unlisted = wide(m[t.pool + closure + 2])
        elif m[t.pool + closure + 2] > radius:
            body, radius = wide(m[t.pool + closure + 1]), wide(m[t.pool + closure + 2])
    for k in range(end - count):
        m[t.items + k] = m[t.items + count + k]
    return intern_state(m, t, end - count, body, unlisted if body == NO_BODY and others == 1 else radius)


@inner
def state_of_one(m, t, continuation):
    """The same of a continuation that is no union."""
    head = shared_head(m, t, continuation)
    if head == FAIL or m[t.n + FAULT] != NO_FAULT:
        return unframed_state_of(m, t, continuation)
    tail, inner_state = wide(m[t.b + REC * m[t.b + REC * continuation]]), unframed_state_of(m, t, head)
    return wide(DEAD) if m[t.n + FAULT] != NO_FAULT else intern_frame(m, t, inner_state, tail)


@inner
def unframed_state_of(m, t, continuation):
    count = gather(m, t, continuation, wide(0))
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    start = wide(m[t.closure + REC * continuation])
    if start == 0:
        return intern_state(m, t, count, wide(NO_BODY), wide(0))
    return intern_state(m, t, count, wide(m[t.pool + start + 1]), wide(m[t.pool + start + 2]))


@inner
def after_text(m, t, s, count):
    """The state after so many bytes of the only literal of a state (see `state_text`), without states for those before.

    DEAD on a fault.
    """
    is_all = count == m[t.state_left + REC * s]
    if is_all and m[t.state_after + REC * s] != UNKNOWN:
        return wide(m[t.state_after + REC * s])
    if m[t.state_length + REC * s] == FRAMED:
        frame = t.pool + wide(m[t.state_start + REC * s])
        after = framed(m, t, unframed_after_text(m, t, wide(m[frame + INNER]), count), wide(m[frame + TAIL]))
    else:
        after = unframed_after_text(m, t, s, count)
    if is_all and m[t.n + FAULT] == NO_FAULT:
        m[t.state_after + REC * s] = after
    return after


@inner
def unframed_after_text(m, t, s, count):
    item, left = wide(m[t.pool + m[t.state_start + REC * s]]), wide(m[t.state_left + REC * s]) - count
    tail = wide(m[t.b + REC * item]) if m[t.kind + REC * item] == SEQ else wide(EMPTY)
    if left > 0:
        tail = join(m, t, literal(m, t, m[t.state_text + REC * s] + count, left), tail)
    return wide(DEAD) if m[t.n + FAULT] != NO_FAULT else state_of(m, t, tail)


# -- frames -------------------------------------------------------------------------------------------------------------


@inner
def shared_head(m, t, continuation):
    """A lead-in (white space, or a colon and white space) with what follows, which a continuation begins with, if that stands at
    several places, is never empty, and something comes behind it; FAIL when there is no such part.

    Other parts may be entered half read by states that are no frames, and states that mean the same would not be the same. Levels
    of precedence, which call one another, would be frames at each level.
    """
    if m[t.kind + REC * continuation] != SEQ:
        return wide(FAIL)
    first, rest = wide(m[t.a + REC * continuation]), wide(m[t.b + REC * continuation])
    if m[t.kind + REC * rest] != SEQ or not ends_with_characters(m, t, first):
        return wide(FAIL)
    second = wide(m[t.a + REC * rest])
    if m[t.shared + REC * second] == 0 or m[t.size + REC * second] == 0:
        return wide(FAIL)
    return pair(m, t, first, second)


@inner
def ends_with_characters(m, t, node):
    """Whether a node is, or ends with, a repetition of characters of a class that may be empty, such as white space."""
    while m[t.kind + REC * node] == SEQ:
        node = wide(m[t.b + REC * node])
    return m[t.kind + REC * node] == REPEAT and m[t.b + REC * node] == 0 and m[t.unit + REC * m[t.a + REC * node]] != NO_BODY


@inner
def intern_frame(m, t, inner_state, tail):
    """The state `inner_state`, which is not complete, with `tail` behind all its items. DEAD on a fault."""
    if m[t.state_length + REC * inner_state] == FRAMED:
        frame = t.pool + wide(m[t.state_start + REC * inner_state])
        inner_state = wide(m[frame + INNER])
        tail = append(m, t, wide(m[frame + TAIL]), tail)
    if m[t.n + FAULT] != NO_FAULT or inner_state == DEAD or m[t.size + REC * tail] >= INFINITE:
        return wide(DEAD)
    mask = t.state_hash_size - 1
    key = mix(inner_state, tail, wide(0), wide(FRAMED))
    slot = key & mask
    while m[t.state_hash + slot] != 0:
        s = wide(m[t.state_hash + slot])
        if m[t.state_key + REC * s] == key and m[t.state_length + REC * s] == FRAMED:
            frame = t.pool + wide(m[t.state_start + REC * s])
            if m[frame + INNER] == inner_state and m[frame + TAIL] == tail:
                return s
        slot = (slot + 1) & mask
    s = new_state(m, t, slot, key, wide(FRAMED), wide(FRAME_WORDS))
    if m[t.n + FAULT] == NO_FAULT:
        describe_frame(m, t, s, inner_state, tail)
    return s


@inner
def inner_of(m, t, s):
    """The inner state of a frame."""
    return wide(m[t.pool + m[t.state_start + REC * s] + INNER])


@inner
def have_one_tail(m, t, s, other):
    """Whether two states are frames with the same tail."""
    if m[t.state_length + REC * s] != FRAMED or m[t.state_length + REC * other] != FRAMED:
        return False
    return m[t.pool + m[t.state_start + REC * s] + TAIL] == m[t.pool + m[t.state_start + REC * other] + TAIL]


@inner
def describe_frame(m, t, s, inner_state, tail):
    """Fill in a frame, and what follows from its inner state: transitions are unknown where that may go on."""
    frame, other = t.pool + wide(m[t.state_start + REC * s]), REC * inner_state
    m[frame + INNER], m[frame + TAIL], m[frame + FRAME_START], m[frame + FRAME_LENGTH] = inner_state, tail, 0, 0
    m[t.state_accept + REC * s], m[t.state_flat + REC * s] = 0, m[t.state_flat + other]
    m[t.state_cost + REC * s] = plus(wide(m[t.state_cost + other]), wide(m[t.cost + REC * tail]))
    m[t.state_text + REC * s], m[t.state_left + REC * s] = m[t.state_text + other], m[t.state_left + other]
    m[t.state_body + REC * s], m[t.state_radius + REC * s] = m[t.state_body + other], m[t.state_radius + other]
    row, inner_row = t.next + s * 256, t.next + inner_state * 256
    for byte in range(256):
        m[row + byte] = DEAD if m[inner_row + byte] == DEAD else UNKNOWN


@inner
def framed(m, t, inner_state, tail):
    """A state with a tail behind all its items; where it is complete the tail begins. DEAD on a fault."""
    if inner_state == DEAD or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    if m[t.state_accept + REC * inner_state] == 0:
        return intern_frame(m, t, inner_state, tail)
    if m[t.state_length + REC * inner_state] == 1:
        return state_of(m, t, tail)
    count = append_to_items(m, t, inner_state, tail)
    if m[t.n + FAULT] == NO_FAULT:
        count = gather(m, t, tail, count)
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    body, radius = wide(m[t.state_body + REC * inner_state]), wide(m[t.state_radius + REC * inner_state])
    if body == NO_BODY:
        radius = wide(0)
    closure = wide(m[t.closure + REC * tail])
    if closure != 0 and m[t.pool + closure + 1] != NO_BODY and m[t.pool + closure + 2] > radius:
        body, radius = wide(m[t.pool + closure + 1]), wide(m[t.pool + closure + 2])
    return intern_state(m, t, count, body, radius)


@inner
def append_to_items(m, t, s, tail):
    """Write the items of a state that is no frame, each with a tail behind it, to `items`; returns how many can be completed."""
    start, count = wide(m[t.state_start + REC * s]), wide(0)
    for j in range(start, start + wide(m[t.state_length + REC * s])):
        item = wide(m[t.pool + j])
        if item == EMPTY:
            continue
        longer = append(m, t, item, tail)
        if m[t.n + FAULT] == NO_FAULT and count >= t.items_size:
            m[t.n + FAULT] = FULL_ITEMS
        if m[t.n + FAULT] != NO_FAULT:
            return count
        if m[t.size + REC * longer] < INFINITE:
            m[t.items + count] = longer
            count += 1
    return count


@inner
def append(m, t, continuation, tail):
    """A continuation, then a tail: the last of the former is joined with it."""
    depth = wide(0)
    while m[t.kind + REC * continuation] == SEQ:
        depth = later(m, t, wide(m[t.a + REC * continuation]), depth)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(FAIL)
        continuation = wide(m[t.b + REC * continuation])
    out = join(m, t, continuation, tail)
    while depth > 0 and m[t.n + FAULT] == NO_FAULT:
        depth -= 1
        out = pair(m, t, wide(m[t.work + depth]), out)
    return out


@inner
def items_of(m, t, s):
    """(start in `pool`, number) of the items of a state, sorted; those of a frame are written out. (0, 0) on a fault."""
    if m[t.state_length + REC * s] != FRAMED:
        return wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    frame = t.pool + wide(m[t.state_start + REC * s])
    if m[frame + FRAME_LENGTH] == 0:
        count = append_to_items(m, t, wide(m[frame + INNER]), wide(m[frame + TAIL]))
        start = wide(m[t.n + POOL])
        if m[t.n + FAULT] == NO_FAULT and start + count > t.pool_size:
            m[t.n + FAULT] = FULL_POOL
        if m[t.n + FAULT] != NO_FAULT:
            return wide(0), wide(0)
        count = sort_unique(m, t.items, count)
        for j in range(count):
            m[t.pool + start + j] = m[t.items + j]
        m[t.n + POOL] = start + count
        m[frame + FRAME_START], m[frame + FRAME_LENGTH] = start, count
    return wide(m[frame + FRAME_START]), wide(m[frame + FRAME_LENGTH])


@inner
def plain_items(m, t, state):
    """(start in `pool`, number) of the items of a state; of a frame, those of its inner state."""
    s = inner_of(m, t, state) if m[t.state_length + REC * state] == FRAMED else wide(state)
    return wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])


@inner
def tail_of(m, t, state):
    """What comes behind all items of a frame; EMPTY for another state."""
    return wide(m[t.pool + m[t.state_start + REC * state] + TAIL]) if m[t.state_length + REC * state] == FRAMED else wide(EMPTY)
