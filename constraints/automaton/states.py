"""States of the automaton: interned sets of continuations.

What may still come after some text is a *continuation*: a leaf followed by a tail. Tails are hash-consed, so a tail is
both the stack of a pushdown automaton and the values of its counters. A *state* is the sorted set of all *items*, the
continuations in the closures (closures.py) of what may come; continuations that begin alike are made one first
(unions.py). Equal sets are one state. In `"` (any character, 0 to 3 times) `"`, the state behind `"a` has two items:

    character then (character{0,1} then '"')         '"'

`intern_state` makes a state, and `describe` writes what follows from its items: whether the text may end, the tokens
that suffice to finish, which bytes may come (UNKNOWN) and which may not (DEAD); `determinize.py` finds the transitions
later. Nodes from which nothing can be completed have infinite size and are never entered. So the invariant: every state
except DEAD can be completed.

A *frame* is a state written as another one, its *inner state*, and a tail. When the same part of a grammar stands at
many places, the states inside of it differ only in the tail that all their items end with. Their frames go where the
inner state goes until that is complete, so the part is derived once; the items of a frame are written out only when
somebody asks (`items_of`).

A tail call pushes nothing (an empty tail is dropped), so right recursion stays finite.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from enum import IntEnum

from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .closures import CLOSURE_HEADER, append_closure
from .containment import without_contained
from .counted_tables import mark_table
from .nodes import (
    EMPTY,
    FAIL,
    NO_BODY,
    head_of,
    join,
    literal,
    mix,
    plus,
    push_work,
    sequence,
    wide,
)
from .sets import is_equal, sort_unique
from .tables import (
    DEAD,
    FRAMED,
    REC,
    UNKNOWN,
    Counter,
    Fault,
)
from .unions import append_parts, merge
from .watched_items import mark_watch


class Frame(IntEnum):
    """The words of a frame in `pool`."""

    INNER = 0  # the state before the tail
    TAIL = 1
    START = 2  # its items in `pool`, LENGTH of them; 0 when they are not written out
    LENGTH = 3


FRAME_WORDS = len(Frame)


# -- states -------------------------------------------------------------------------------------------------------------


@inner
def items_hash(arena, start, count):
    """A hash of the items arena[start : start + count] of a state."""
    h = wide(count)
    for j in range(start, start + count):
        h = mix(h, wide(arena[j]), wide(0), wide(0))
    return h


@inner
def intern_state(arena, tables, count, body, max_chars):
    """The state whose items are items[:count], in any order and with repetitions; it is made if there is none. DEAD
    without items, and on a fault. `body`, `max_chars`: the body class that the state loops on and the most characters of
    it that may still come, see `close`."""
    if count == 0:
        return wide(DEAD)
    unique = sort_unique(arena, tables.items, count)
    mask = tables.state_hash_size - 1
    key = items_hash(arena, tables.items, unique)
    slot = key & mask
    while arena[tables.state_hash + slot] != 0:
        s = wide(arena[tables.state_hash + slot])
        if arena[tables.state_items_hash + REC * s] == key and arena[tables.state_length + REC * s] == unique:
            if is_equal(arena, tables.pool + arena[tables.state_start + REC * s], tables.items, unique):
                return s
        slot = (slot + 1) & mask
    s = new_state(arena, tables, slot, key, unique, unique)
    if arena[tables.n + Counter.FAULT] == Fault.NONE:
        for j in range(unique):
            arena[tables.pool + arena[tables.state_start + REC * s] + j] = arena[tables.items + j]
        describe(arena, tables, s, body, max_chars)
    return s


@inner
def new_state(arena, tables, slot, key, length, words):
    """A new state with room for `words` words in `pool`, entered at a free slot of `state_hash`. DEAD on a fault."""
    s, start = wide(arena[tables.n + Counter.STATES]), wide(arena[tables.n + Counter.POOL])
    if s >= tables.states_size or 2 * s >= tables.state_hash_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_STATES
    elif start + words > tables.pool_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_POOL
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    arena[tables.n + Counter.STATES], arena[tables.n + Counter.POOL] = s + 1, start + words
    arena[tables.state_hash + slot] = s
    (
        arena[tables.state_start + REC * s],
        arena[tables.state_length + REC * s],
        arena[tables.state_items_hash + REC * s],
    ) = start, length, key
    arena[tables.state_after_literal + REC * s] = arena[tables.state_body_is_exclusive + REC * s] = UNKNOWN
    arena[tables.state_row + REC * s] = arena[tables.state_events + REC * s] = arena[
        tables.state_ends + REC * s
    ] = arena[tables.state_uniform + REC * s] = 0
    return s


@inner
def describe(arena, tables, s, body, max_chars):
    """Write what follows from the items of a new state. Its transitions are DEAD for bytes that no item reads, UNKNOWN
    for the others."""
    start, length = wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    accept, cost, flat = wide(0), wide(INFINITE), wide(1)
    row = tables.next + s * 256
    for byte in range(256):
        arena[row + byte] = DEAD
    arena[tables.state_literal_left + REC * s] = 0
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if item == EMPTY:
            accept, cost = wide(1), wide(0)
            continue
        cost = min(cost, wide(arena[tables.cost + REC * item]))
        node = head_of(arena, tables, item)
        mark_live(arena, tables, node, row)
        if arena[tables.kind + REC * node] == Kind.UNLISTED:
            mark_body(arena, tables, wide(arena[tables.b + REC * node]), row)
        kind = wide(arena[tables.kind + REC * node])
        if kind == Kind.PRODUCT or kind == Kind.TABLE or kind == Kind.WATCH:
            flat = wide(0)
        elif arena[tables.kind + REC * node] == Kind.LITERAL and length == 1:
            arena[tables.state_literal + REC * s], arena[tables.state_literal_left + REC * s] = (
                arena[tables.a + REC * node],
                arena[tables.b + REC * node],
            )
    (
        arena[tables.state_accept + REC * s],
        arena[tables.state_cost + REC * s],
        arena[tables.state_has_no_product + REC * s],
    ) = accept, cost, flat
    arena[tables.state_body_class + REC * s], arena[tables.state_max_chars + REC * s] = body, max_chars


@inner
def mark_live(arena, tables, node, row):
    """Mark the bytes that a leaf may read as UNKNOWN in the transitions at `row`."""
    if arena[tables.kind + REC * node] == Kind.LITERAL:
        arena[row + arena[tables.text + arena[tables.a + REC * node]]] = UNKNOWN
    elif arena[tables.kind + REC * node] == Kind.CLASS:
        for e in range(arena[tables.a + REC * node], arena[tables.a + REC * node] + arena[tables.b + REC * node]):
            for byte in range(arena[tables.edge_low + e], arena[tables.edge_high + e] + 1):
                arena[row + byte] = UNKNOWN
    elif arena[tables.kind + REC * node] == Kind.PRODUCT:
        x, y = wide(arena[tables.a + REC * node]) * 256, wide(arena[tables.b + REC * node]) * 256
        for byte in range(256):
            if arena[tables.c + REC * node] == Kind.NEGATE or (
                arena[tables.next + x + byte] != DEAD and arena[tables.next + y + byte] != DEAD
            ):
                arena[row + byte] = UNKNOWN
    elif arena[tables.kind + REC * node] == Kind.TABLE:
        mark_table(arena, tables, node, row)
    elif arena[tables.kind + REC * node] == Kind.WATCH:
        mark_watch(arena, tables, node, row)


@inner
def mark_body(arena, tables, body, row):
    """Mark the bytes with which the body of an UNLISTED node may begin as UNKNOWN in the transitions at `row`."""
    start = wide(arena[tables.closure + REC * body])
    if start == 0:  # of a literal
        mark_live(arena, tables, head_of(arena, tables, body), row)
        return
    for j in range(start + CLOSURE_HEADER, start + CLOSURE_HEADER + wide(arena[tables.pool + start])):
        mark_live(arena, tables, head_of(arena, tables, wide(arena[tables.pool + j])), row)


@inner
def rehash_states(arena, tables):
    """Enter all states into `state_hash`, which has to be all zero."""
    mask = tables.state_hash_size - 1
    for s in range(1, arena[tables.n + Counter.STATES]):
        slot = arena[tables.state_items_hash + REC * s] & mask
        while arena[tables.state_hash + slot] != 0:
            slot = (slot + 1) & mask
        arena[tables.state_hash + slot] = s


@inner
def state_of(arena, tables, continuation):
    """The state before any byte of a continuation has been read. DEAD on a fault."""
    if arena[tables.kind + REC * continuation] == Kind.EITHER:
        return state_of_all(arena, tables, append_parts(arena, tables, continuation, wide(0)))
    return state_of_one(arena, tables, continuation)


@inner
def state_of_all(arena, tables, count):
    """The state in which any of the continuations items[:count] may come (`append_parts` has put them there). DEAD on a
    fault."""
    if count > 1 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        count = merge(arena, tables, wide(0), without_contained(arena, tables, tables.items, count, wide(0)))
    if count == 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    if count == 1:
        return state_of_one(arena, tables, wide(arena[tables.items]))
    end, body, max_chars, unlisted, others = count, wide(NO_BODY), wide(0), wide(0), wide(0)
    for k in range(count):
        continuation = wide(arena[tables.items + k])
        end = append_closure(arena, tables, continuation, end)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(DEAD)
        closure = wide(arena[tables.closure + REC * continuation])
        if closure == 0:  # of a literal
            continue
        others += 1
        if arena[tables.pool + closure + 1] == NO_BODY:
            unlisted = wide(arena[tables.pool + closure + 2])
        elif arena[tables.pool + closure + 2] > max_chars:
            body, max_chars = wide(arena[tables.pool + closure + 1]), wide(arena[tables.pool + closure + 2])
    for k in range(end - count):
        arena[tables.items + k] = arena[tables.items + count + k]
    end = without_contained(arena, tables, tables.items, end - count, wide(0))
    if end > 1 and arena[tables.n + Counter.CALLS] != 0:
        end = merge(arena, tables, wide(0), end)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    return intern_state(arena, tables, end, body, unlisted if body == NO_BODY and others == 1 else max_chars)


@inner
def state_of_one(arena, tables, continuation):
    """`state_of` for a continuation that is no union: a frame if it begins with a shared part, else the state of its
    closure."""
    head = shared_head(arena, tables, continuation)
    if head == FAIL or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return unframed_state_of(arena, tables, continuation)
    tail, inner_state = wide(arena[tables.b + REC * arena[tables.b + REC * continuation]]), unframed_state_of(arena, tables, head)
    return wide(DEAD) if arena[tables.n + Counter.FAULT] != Fault.NONE else intern_frame(arena, tables, inner_state, tail)


@inner
def unframed_state_of(arena, tables, continuation):
    """The state of the closure of a continuation, which is no frame. DEAD on a fault."""
    count = append_closure(arena, tables, continuation, wide(0))
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    start = wide(arena[tables.closure + REC * continuation])
    if start == 0:
        return intern_state(arena, tables, count, wide(NO_BODY), wide(0))
    return intern_state(arena, tables, count, wide(arena[tables.pool + start + 1]), wide(arena[tables.pool + start + 2]))


@inner
def after_text(arena, tables, s, count):
    """The state behind the next `count` bytes of a literal that is all a state can read (see `state_literal`). No states
    are made for the bytes before. DEAD on a fault."""
    is_all = count == arena[tables.state_literal_left + REC * s]
    if is_all and arena[tables.state_after_literal + REC * s] != UNKNOWN:
        return wide(arena[tables.state_after_literal + REC * s])
    if arena[tables.state_length + REC * s] == FRAMED:
        frame = tables.pool + wide(arena[tables.state_start + REC * s])
        after = framed(
            arena,
            tables,
            unframed_after_text(arena, tables, wide(arena[frame + Frame.INNER]), count),
            wide(arena[frame + Frame.TAIL]),
        )
    else:
        after = unframed_after_text(arena, tables, s, count)
    if is_all and arena[tables.n + Counter.FAULT] == Fault.NONE:
        arena[tables.state_after_literal + REC * s] = after
    return after


@inner
def unframed_after_text(arena, tables, s, count):
    """`after_text` of a state that is no frame."""
    item, left = (
        wide(arena[tables.pool + arena[tables.state_start + REC * s]]),
        wide(arena[tables.state_literal_left + REC * s]) - count,
    )
    tail = wide(arena[tables.b + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else wide(EMPTY)
    if left > 0:
        tail = join(arena, tables, literal(arena, tables, arena[tables.state_literal + REC * s] + count, left), tail)
    return wide(DEAD) if arena[tables.n + Counter.FAULT] != Fault.NONE else state_of(arena, tables, tail)


# -- frames -------------------------------------------------------------------------------------------------------------


@inner
def shared_head(arena, tables, continuation):
    """The part of a continuation that is worth a frame: a lead-in (white space, or a colon and white space) with what
    follows it. That must stand at several places of the grammar and never be empty, and something must come behind it.
    FAIL when there is no such part.

    Other parts get no frames. States that are no frames may enter them half read, and states that mean the same would
    not be the same; and levels of precedence, which call one another, would be frames at each level.
    """
    if arena[tables.kind + REC * continuation] != Kind.SEQ:
        return wide(FAIL)
    first, rest = wide(arena[tables.a + REC * continuation]), wide(arena[tables.b + REC * continuation])
    if arena[tables.kind + REC * rest] != Kind.SEQ or not ends_with_characters(arena, tables, first):
        return wide(FAIL)
    second = wide(arena[tables.a + REC * rest])
    if arena[tables.shared + REC * second] == 0 or arena[tables.size + REC * second] == 0:
        return wide(FAIL)
    return sequence(arena, tables, first, second)


@inner
def ends_with_characters(arena, tables, node):
    """Whether a node is, or ends with, a repetition of the characters of a class that may be empty, such as white
    space."""
    while arena[tables.kind + REC * node] == Kind.SEQ:
        node = wide(arena[tables.b + REC * node])
    return (
        arena[tables.kind + REC * node] == Kind.REPEAT
        and arena[tables.b + REC * node] == 0
        and arena[tables.body_class + REC * arena[tables.a + REC * node]] != NO_BODY
    )


@inner
def intern_frame(arena, tables, inner_state, tail):
    """The frame of `inner_state`, which is not complete, and `tail` behind all its items; made if there is none. DEAD
    on a fault."""
    if arena[tables.state_length + REC * inner_state] == FRAMED:
        frame = tables.pool + wide(arena[tables.state_start + REC * inner_state])
        inner_state = wide(arena[frame + Frame.INNER])
        tail = append(arena, tables, wide(arena[frame + Frame.TAIL]), tail)
    if arena[tables.n + Counter.FAULT] != Fault.NONE or inner_state == DEAD or arena[tables.size + REC * tail] >= INFINITE:
        return wide(DEAD)
    mask = tables.state_hash_size - 1
    key = mix(inner_state, tail, wide(0), wide(FRAMED))
    slot = key & mask
    while arena[tables.state_hash + slot] != 0:
        s = wide(arena[tables.state_hash + slot])
        if arena[tables.state_items_hash + REC * s] == key and arena[tables.state_length + REC * s] == FRAMED:
            frame = tables.pool + wide(arena[tables.state_start + REC * s])
            if arena[frame + Frame.INNER] == inner_state and arena[frame + Frame.TAIL] == tail:
                return s
        slot = (slot + 1) & mask
    s = new_state(arena, tables, slot, key, wide(FRAMED), wide(FRAME_WORDS))
    if arena[tables.n + Counter.FAULT] == Fault.NONE:
        describe_frame(arena, tables, s, inner_state, tail)
    return s


@inner
def inner_of(arena, tables, s):
    """The inner state of a frame."""
    return wide(arena[tables.pool + arena[tables.state_start + REC * s] + Frame.INNER])


@inner
def have_one_tail(arena, tables, s, other):
    """Whether two states are frames with the same tail."""
    if arena[tables.state_length + REC * s] != FRAMED or arena[tables.state_length + REC * other] != FRAMED:
        return False
    return (
        arena[tables.pool + arena[tables.state_start + REC * s] + Frame.TAIL]
        == arena[tables.pool + arena[tables.state_start + REC * other] + Frame.TAIL]
    )


@inner
def describe_frame(arena, tables, s, inner_state, tail):
    """Write the words of a new frame, and what follows from its inner state: its transitions are UNKNOWN where that may
    go on."""
    frame, other = tables.pool + wide(arena[tables.state_start + REC * s]), REC * inner_state
    arena[frame + Frame.INNER], arena[frame + Frame.TAIL], arena[frame + Frame.START], arena[frame + Frame.LENGTH] = (
        inner_state,
        tail,
        0,
        0,
    )
    arena[tables.state_accept + REC * s], arena[tables.state_has_no_product + REC * s] = (
        0,
        arena[tables.state_has_no_product + other],
    )
    arena[tables.state_cost + REC * s] = plus(wide(arena[tables.state_cost + other]), wide(arena[tables.cost + REC * tail]))
    arena[tables.state_literal + REC * s], arena[tables.state_literal_left + REC * s] = (
        arena[tables.state_literal + other],
        arena[tables.state_literal_left + other],
    )
    arena[tables.state_body_class + REC * s], arena[tables.state_max_chars + REC * s] = (
        arena[tables.state_body_class + other],
        arena[tables.state_max_chars + other],
    )
    row, inner_row = tables.next + s * 256, tables.next + inner_state * 256
    for byte in range(256):
        arena[row + byte] = DEAD if arena[inner_row + byte] == DEAD else UNKNOWN


@inner
def framed(arena, tables, inner_state, tail):
    """The state of `tail` behind all items of `inner_state`: a frame, unless `inner_state` is complete, because the
    tail begins there. DEAD on a fault."""
    if inner_state == DEAD or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    if arena[tables.state_accept + REC * inner_state] == 0:
        return intern_frame(arena, tables, inner_state, tail)
    if arena[tables.state_length + REC * inner_state] == 1:
        return state_of(arena, tables, tail)
    count = append_to_items(arena, tables, inner_state, tail)
    if arena[tables.n + Counter.FAULT] == Fault.NONE:
        count = append_closure(arena, tables, tail, count)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    body, max_chars = (
        wide(arena[tables.state_body_class + REC * inner_state]),
        wide(arena[tables.state_max_chars + REC * inner_state]),
    )
    if body == NO_BODY:
        max_chars = wide(0)
    closure = wide(arena[tables.closure + REC * tail])
    if closure != 0 and arena[tables.pool + closure + 1] != NO_BODY and arena[tables.pool + closure + 2] > max_chars:
        body, max_chars = wide(arena[tables.pool + closure + 1]), wide(arena[tables.pool + closure + 2])
    return intern_state(arena, tables, count, body, max_chars)


@inner
def append_to_items(arena, tables, s, tail):
    """Write the items of the state `s`, which is no frame, with `tail` behind each of them, to `items`, without those
    that cannot be completed. Returns their number."""
    start, count = wide(arena[tables.state_start + REC * s]), wide(0)
    for j in range(start, start + wide(arena[tables.state_length + REC * s])):
        item = wide(arena[tables.pool + j])
        if item == EMPTY:
            continue
        longer = append(arena, tables, item, tail)
        if arena[tables.n + Counter.FAULT] == Fault.NONE and count >= tables.items_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_ITEMS
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return count
        if arena[tables.size + REC * longer] < INFINITE:
            arena[tables.items + count] = longer
            count += 1
    return count


@inner
def append(arena, tables, continuation, tail):
    """The continuation that has `tail` behind the last part of `continuation`."""
    depth = wide(0)
    while arena[tables.kind + REC * continuation] == Kind.SEQ:
        depth = push_work(arena, tables, wide(arena[tables.a + REC * continuation]), depth)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(FAIL)
        continuation = wide(arena[tables.b + REC * continuation])
    out = join(arena, tables, continuation, tail)
    while depth > 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        depth -= 1
        out = sequence(arena, tables, wide(arena[tables.work + depth]), out)
    return out


@inner
def items_of(arena, tables, s):
    """(start in `pool`, number) of the items of a state, sorted. Writes the items of a frame out when they are first
    asked for. (0, 0) on a fault."""
    if arena[tables.state_length + REC * s] != FRAMED:
        return wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    frame = tables.pool + wide(arena[tables.state_start + REC * s])
    if arena[frame + Frame.LENGTH] == 0:
        count = append_to_items(arena, tables, wide(arena[frame + Frame.INNER]), wide(arena[frame + Frame.TAIL]))
        start = wide(arena[tables.n + Counter.POOL])
        if arena[tables.n + Counter.FAULT] == Fault.NONE and start + count > tables.pool_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_POOL
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(0), wide(0)
        count = sort_unique(arena, tables.items, count)
        for j in range(count):
            arena[tables.pool + start + j] = arena[tables.items + j]
        arena[tables.n + Counter.POOL] = start + count
        arena[frame + Frame.START], arena[frame + Frame.LENGTH] = start, count
    return wide(arena[frame + Frame.START]), wide(arena[frame + Frame.LENGTH])


@inner
def plain_items(arena, tables, state):
    """(start in `pool`, number) of the items of a state, but for a frame those of its inner state, without the tail."""
    s = inner_of(arena, tables, state) if arena[tables.state_length + REC * state] == FRAMED else wide(state)
    return wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])


@inner
def tail_of(arena, tables, state):
    """The tail of a frame; EMPTY for a state that is no frame."""
    if arena[tables.state_length + REC * state] != FRAMED:
        return wide(EMPTY)
    return wide(arena[tables.pool + arena[tables.state_start + REC * state] + Frame.TAIL])
