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

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import BodyId, NodeId, RowId, StateId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..numba_support.sets import is_equal, sort_unique
from .closures import append_closure, closure_items, closure_of
from .containment import without_contained
from .counted_tables import is_table, mark_table
from .graph_state import items_of_stacks
from .nodes import (
    EMPTY,
    FAIL,
    NO_BODY,
    NO_UNLISTED,
    head_of,
    join,
    literal,
    mix,
    plus,
    push_work,
    sequence,
    wide,
)
from .tables import DEAD, FRAME_WORDS, UNKNOWN, Fault, Frame, Tables, frame_at
from .unions import append_parts, merge
from .watched_items import mark_watch

# -- states -------------------------------------------------------------------------------------------------------------


@inner
def items_hash(items: Words, count: int) -> int:
    """A hash of the items items[:count] of a state."""
    h = count
    for j in range(count):
        h = mix(h, items[j], 0, 0)
    return h


@inner
def intern_state(m: Tables, count: int, body: BodyId, max_chars: int, unlisted: NodeId) -> StateId:
    """The state whose items are items[:count], in any order and with repetitions; it is made if there is none. DEAD
    without items, and on a fault. body, max_chars, unlisted: as its fields have them."""
    if count == 0:
        return DEAD
    unique = sort_unique(m.items, count)
    mask = m.state_hash_size - 1
    key = items_hash(m.items, unique)
    slot = key & mask
    while m.state_hash[slot] != 0:
        s = m.state_hash[slot]
        if m.states[s].items_hash == key and m.states[s].length == unique:
            if is_equal(m.pool + m.states[s].start, m.items, unique):
                return s
        slot = (slot + 1) & mask
    s = new_state(m, slot, key, unique)
    if m.n.fault == Fault.NONE:
        state = m.states[s]
        state.start, state.length, state.frame = m.n.pool - unique, unique, 0
        for j in range(unique):
            m.pool[state.start + j] = m.items[j]
        describe(m, s)
        state.body_class, state.max_chars, state.unlisted = body, max_chars, unlisted
    return s


@inner
def new_state(m: Tables, slot: int, key: int, words: int) -> StateId:
    """A new state with room for `words` words at the end of `pool`, entered at a free slot of `state_hash`. DEAD on a fault."""
    s, start = StateId(m.n.states), m.n.pool
    if s >= m.states_size or 2 * s >= m.state_hash_size:
        m.n.fault = Fault.FULL_STATES
    elif start + words > m.pool_size:
        m.n.fault = Fault.FULL_POOL
    if m.n.fault != Fault.NONE:
        return DEAD
    m.n.states, m.n.pool = s + 1, start + words
    m.state_hash[slot] = s
    state = m.states[s]
    state.items_hash, state.after_literal, state.body_is_exclusive = key, StateId(UNKNOWN), UNKNOWN
    state.row = RowId(0)
    state.events = state.ends = state.has_too_many_ends = state.uniform = 0
    return s


@inner
def describe(m: Tables, s: StateId) -> None:
    """Write what follows from the items of a new state. Its transitions are DEAD for bytes that no item reads, UNKNOWN
    for the others."""
    state = m.states[s]
    accept, cost, flat = 0, INFINITE, 1
    row = m.next + s * 256
    for byte in range(256):
        row[byte] = DEAD
    state.literal_left = 0
    for j in range(state.start, state.start + state.length):
        item = m.pool[j]
        if item == EMPTY:
            accept, cost = 1, 0
            continue
        cost = min(cost, m.nodes[item].cost)
        head = head_of(m, item)
        node = m.nodes[head]
        mark_live(m, head, row)
        if node.kind == Kind.UNLISTED:
            mark_body(m, node.b, row)
        if node.kind == Kind.PRODUCT or is_table(node.kind) or node.kind == Kind.WATCH:
            flat = 0
        elif node.kind == Kind.LITERAL and state.length == 1:
            state.literal, state.literal_left = node.a, node.b
    state.accept, state.cost, state.has_no_product = accept, cost, flat


@inner
def mark_live(m: Tables, node: NodeId, row: Words) -> None:
    """Mark the bytes that a leaf may read as UNKNOWN in the transitions at `row`."""
    if m.nodes[node].kind == Kind.LITERAL:
        row[m.text[m.nodes[node].a]] = UNKNOWN
    elif m.nodes[node].kind == Kind.CLASS:
        for e in range(m.nodes[node].a, m.nodes[node].a + m.nodes[node].b):
            for byte in range(m.edge_low[e], m.edge_high[e] + 1):
                row[byte] = UNKNOWN
    elif m.nodes[node].kind == Kind.PRODUCT:
        x, y = m.nodes[node].a * 256, m.nodes[node].b * 256
        for byte in range(256):
            if m.nodes[node].c == Kind.NEGATE or m.next[x + byte] != DEAD and m.next[y + byte] != DEAD:
                row[byte] = UNKNOWN
    elif is_table(m.nodes[node].kind):
        mark_table(m, node, row)
    elif m.nodes[node].kind == Kind.WATCH:
        mark_watch(m, node, row)


@inner
def mark_body(m: Tables, body: NodeId, row: Words) -> None:
    """Mark the bytes with which the body of an UNLISTED node may begin as UNKNOWN in the transitions at `row`."""
    if m.nodes[body].closure == 0:  # of a literal
        mark_live(m, head_of(m, body), row)
        return
    items = closure_items(m, body)
    for j in range(closure_of(m, body).length):
        mark_live(m, head_of(m, items[j]), row)


@inner
def rehash_states(m: Tables) -> None:
    """Enter all states into `state_hash`, which has to be all zero."""
    mask = m.state_hash_size - 1
    for number in range(1, m.n.states):
        s = StateId(number)
        slot = m.states[s].items_hash & mask
        while m.state_hash[slot] != 0:
            slot = (slot + 1) & mask
        m.state_hash[slot] = s


@inner
def state_of(m: Tables, continuation: NodeId) -> StateId:
    """The state before any byte of a continuation has been read. DEAD on a fault."""
    if m.nodes[continuation].kind == Kind.EITHER or m.n.graph == 1:
        return state_of_all(m, append_parts(m, continuation, 0))
    return state_of_one(m, continuation)


@inner
def state_of_all(m: Tables, count: int) -> StateId:
    """The state in which any of the continuations items[:count] may come (`append_parts` has put them there). DEAD on a
    fault."""
    if m.n.graph == 1 and count > 0 and m.n.fault == Fault.NONE:
        count, body, max_chars = items_of_stacks(m, count)
        return DEAD if m.n.fault != Fault.NONE else intern_state(m, count, body, max_chars, NO_UNLISTED)
    if count > 1 and m.n.fault == Fault.NONE:
        count = merge(m, 0, without_contained(m, m.items, count, 0))
    if count == 0 or m.n.fault != Fault.NONE:
        return DEAD
    if count == 1:
        return state_of_one(m, m.items[0])
    end, body, max_chars, unlisted, others = count, NO_BODY, 0, NO_UNLISTED, 0
    for k in range(count):
        continuation = m.items[k]
        end = append_closure(m, continuation, end)
        if m.n.fault != Fault.NONE:
            return DEAD
        if m.nodes[continuation].closure == 0:  # of a literal
            continue
        others += 1
        closure = closure_of(m, continuation)
        if closure.body_class == NO_BODY:
            unlisted = closure.unlisted
        elif closure.max_chars > max_chars:
            body, max_chars = closure.body_class, closure.max_chars
    for k in range(end - count):
        m.items[k] = m.items[count + k]
    end = without_contained(m, m.items, end - count, 0)
    if end > 1 and m.n.calls != 0:
        end = merge(m, 0, end)
    if m.n.fault != Fault.NONE:
        return DEAD
    return intern_state(m, end, body, max_chars, unlisted if body == NO_BODY and others == 1 else NO_UNLISTED)


@inner
def state_of_one(m: Tables, continuation: NodeId) -> StateId:
    """`state_of` for a continuation that is no union: a frame if it begins with a shared part, else the state of its
    closure."""
    head = shared_head(m, continuation)
    if head == FAIL or m.n.fault != Fault.NONE:
        return unframed_state_of(m, continuation)
    tail, inner_state = m.nodes[m.nodes[continuation].b].b, unframed_state_of(m, head)
    return DEAD if m.n.fault != Fault.NONE else intern_frame(m, inner_state, tail)


@inner
def unframed_state_of(m: Tables, continuation: NodeId) -> StateId:
    """The state of the closure of a continuation, which is no frame. DEAD on a fault."""
    count = append_closure(m, continuation, 0)
    if m.n.fault != Fault.NONE:
        return DEAD
    if m.nodes[continuation].closure == 0:
        return intern_state(m, count, NO_BODY, 0, NO_UNLISTED)
    closure = closure_of(m, continuation)
    return intern_state(m, count, closure.body_class, closure.max_chars, closure.unlisted)


@inner
def after_text(m: Tables, s: StateId, count: int) -> StateId:
    """The state behind the next `count` bytes of a literal that is all a state can read (see `State.literal`). No states
    are made for the bytes before. DEAD on a fault."""
    is_all = count == m.states[s].literal_left
    if is_all and m.states[s].after_literal != UNKNOWN:
        return m.states[s].after_literal
    if m.states[s].frame != 0:
        frame = frame_of(m, s)
        after = framed(m, unframed_after_text(m, wide(frame.inner), count), wide(frame.tail))
    else:
        after = unframed_after_text(m, s, count)
    if is_all and m.n.fault == Fault.NONE:
        m.states[s].after_literal = after
    return after


@inner
def unframed_after_text(m: Tables, s: StateId, count: int) -> StateId:
    """`after_text` of a state that is no frame."""
    item, left = m.pool[m.states[s].start], m.states[s].literal_left - count
    tail = m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY
    if left > 0:
        tail = join(m, literal(m, m.states[s].literal + count, left), tail)
    return DEAD if m.n.fault != Fault.NONE else state_of(m, tail)


# -- frames -------------------------------------------------------------------------------------------------------------


@inner
def shared_head(m: Tables, continuation: NodeId) -> NodeId:
    """The part of a continuation that is worth a frame: a lead-in (white space, or a colon and white space) with what
    follows it. That must stand at several places of the grammar and never be empty, and something must come behind it.
    FAIL when there is no such part.

    Other parts get no frames. States that are no frames may enter them half read, and states that mean the same would
    not be the same; and levels of precedence, which call one another, would be frames at each level.
    """
    if m.nodes[continuation].kind != Kind.SEQ:
        return FAIL
    first, rest = m.nodes[continuation].a, m.nodes[continuation].b
    if m.nodes[rest].kind != Kind.SEQ or not ends_with_characters(m, first):
        return FAIL
    second = m.nodes[rest].a
    if m.nodes[second].shared == 0 or m.nodes[second].size == 0:
        return FAIL
    return sequence(m, first, second)


@inner
def ends_with_characters(m: Tables, node: NodeId) -> bool:
    """Whether a node is, or ends with, a repetition of the characters of a class that may be empty, such as white
    space."""
    while m.nodes[node].kind == Kind.SEQ:
        node = m.nodes[node].b
    return m.nodes[node].kind == Kind.REPEAT and m.nodes[node].b == 0 and m.nodes[m.nodes[node].a].body_class != NO_BODY


@inner
def intern_frame(m: Tables, inner_state: StateId, tail: NodeId) -> StateId:
    """The frame of `inner_state`, which is not complete, and `tail` behind all its items; made if there is none. DEAD
    on a fault."""
    if m.states[inner_state].frame != 0:
        frame = frame_of(m, inner_state)
        inner_state = wide(frame.inner)
        tail = append(m, wide(frame.tail), tail)
    if m.n.fault != Fault.NONE or inner_state == DEAD or m.nodes[tail].size >= INFINITE:
        return DEAD
    mask = m.state_hash_size - 1
    key = mix(inner_state, tail, 0, -1)
    slot = key & mask
    while m.state_hash[slot] != 0:
        s = m.state_hash[slot]
        if m.states[s].items_hash == key and m.states[s].frame != 0:
            frame = frame_of(m, s)
            if frame.inner == inner_state and frame.tail == tail:
                return s
        slot = (slot + 1) & mask
    s = new_state(m, slot, key, FRAME_WORDS)
    if m.n.fault == Fault.NONE:
        m.states[s].start, m.states[s].length, m.states[s].frame = 0, 0, m.n.pool - FRAME_WORDS
        describe_frame(m, s, inner_state, tail)
    return s


@inner
def frame_of(m: Tables, s: StateId) -> Frame:
    return frame_at(m.pool + m.states[s].frame)


@inner
def inner_of(m: Tables, s: StateId) -> StateId:
    """The inner state of a frame."""
    return frame_of(m, s).inner


@inner
def describe_frame(m: Tables, s: StateId, inner_state: StateId, tail: NodeId) -> None:
    """Write the words of a new frame, and what follows from its inner state: its transitions are UNKNOWN where that may
    go on."""
    frame, state, of = frame_of(m, s), m.states[s], m.states[inner_state]
    frame.inner, frame.tail, frame.start, frame.length = inner_state, tail, 0, 0
    state.accept, state.has_no_product, state.cost = 0, of.has_no_product, plus(of.cost, m.nodes[tail].cost)
    state.literal, state.literal_left = of.literal, of.literal_left
    state.body_class, state.max_chars, state.unlisted = of.body_class, of.max_chars, of.unlisted
    row, inner_row = m.next + s * 256, m.next + inner_state * 256
    for byte in range(256):
        row[byte] = DEAD if inner_row[byte] == DEAD else UNKNOWN


@inner
def framed(m: Tables, inner_state: StateId, tail: NodeId) -> StateId:
    """The state of `tail` behind all items of `inner_state`: a frame, unless `inner_state` is complete, because the
    tail begins there. DEAD on a fault."""
    if inner_state == DEAD or m.n.fault != Fault.NONE:
        return DEAD
    if m.states[inner_state].accept == 0:
        return intern_frame(m, inner_state, tail)
    if m.states[inner_state].length == 1:
        return state_of(m, tail)
    count = append_to_items(m, inner_state, tail)
    if m.n.fault == Fault.NONE:
        count = append_closure(m, tail, count)
    if m.n.fault != Fault.NONE:
        return DEAD
    body, max_chars = m.states[inner_state].body_class, m.states[inner_state].max_chars
    if m.nodes[tail].closure != 0 and closure_of(m, tail).max_chars > max_chars:
        body, max_chars = closure_of(m, tail).body_class, closure_of(m, tail).max_chars
    return intern_state(m, count, body, max_chars, NO_UNLISTED)


@inner
def append_to_items(m: Tables, s: StateId, tail: NodeId) -> int:
    """Write the items of the state `s`, which is no frame, with `tail` behind each of them, to `items`, without those
    that cannot be completed. Returns their number."""
    start, count = m.states[s].start, 0
    for j in range(start, start + m.states[s].length):
        item = m.pool[j]
        if item == EMPTY:
            continue
        longer = append(m, item, tail)
        if m.n.fault == Fault.NONE and count >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
        if m.n.fault != Fault.NONE:
            return count
        if m.nodes[longer].size < INFINITE:
            m.items[count] = longer
            count += 1
    return count


@inner
def append(m: Tables, continuation: NodeId, tail: NodeId) -> NodeId:
    """The continuation that has `tail` behind the last part of `continuation`."""
    depth = 0
    while m.nodes[continuation].kind == Kind.SEQ:
        depth = push_work(m, m.nodes[continuation].a, depth)
        if m.n.fault != Fault.NONE:
            return FAIL
        continuation = m.nodes[continuation].b
    out = join(m, continuation, tail)
    while depth > 0 and m.n.fault == Fault.NONE:
        depth -= 1
        out = sequence(m, m.work[depth], out)
    return out


@inner
def items_of(m: Tables, s: StateId) -> tuple[int, int]:
    """(start in `pool`, number) of the items of a state, sorted. Writes the items of a frame out when they are first
    asked for. (0, 0) on a fault."""
    if m.states[s].frame == 0:
        return m.states[s].start, m.states[s].length
    frame = frame_of(m, s)
    if frame.length == 0:
        count = append_to_items(m, wide(frame.inner), wide(frame.tail))
        start = m.n.pool
        if m.n.fault == Fault.NONE and start + count > m.pool_size:
            m.n.fault = Fault.FULL_POOL
        if m.n.fault != Fault.NONE:
            return 0, 0
        count = sort_unique(m.items, count)
        for j in range(count):
            m.pool[start + j] = m.items[j]
        m.n.pool = start + count
        frame.start, frame.length = start, count
    return wide(frame.start), wide(frame.length)


@inner
def plain_items(m: Tables, state: StateId) -> tuple[int, int]:
    """(start in `pool`, number) of the items of a state, but for a frame those of its inner state, without the tail."""
    s = inner_of(m, state) if m.states[state].frame != 0 else state
    return m.states[s].start, m.states[s].length


@inner
def tail_of(m: Tables, state: StateId) -> NodeId:
    """The tail of a frame; EMPTY for a state that is no frame."""
    return EMPTY if m.states[state].frame == 0 else frame_of(m, state).tail
