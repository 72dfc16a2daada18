"""States that differ only in what comes behind: their masks are made of one that all of them share.

When all items of a state end with the same tail, a token either survives before the tail is reached, which does not depend on the
tail, or it completes what stands before the tail and goes on in it. So the mask is that of the state without the tail, and what
survives from the state of the tail behind the *ends*: the nodes of the vocabulary's tries at which the rest is complete. Any
value, any string: the same part stands at many places of a schema, with another tail at each.
"""

from __future__ import annotations

from ..automaton.nodes import CLASS, EMPTY, NO_BODY, SEQ, leaf, pair, wide
from ..automaton.states import INNER, TAIL, intern_state, items_of, state_of
from ..automaton.tables import (
    CLEARED,
    CLEARED_END,
    DEAD,
    FAULT,
    FRAMED,
    FULL_POOL,
    KEPT,
    KEPT_END,
    MAX_ENDS,
    NO_FAULT,
    NUM_ENDS,
    POOL,
    REC,
    STATES,
)
from ..numba_support.jit import inner
from .loop_context import behind, copies

_MAX_HEADS = 12  # before a tail; also how deep one is looked for
_MAX_ITEMS = 64
TOO_MANY = -1  # instead of the ends of a state
ENDS = 5  # words before the pairs of `note_end`: their number; two ranges of tokens (of the atlas) that survive behind none


@inner
def common_tail(m, t, s):
    """The tail of a frame; else the longest one with which all items of a state end, EMPTY when there is none, or a single item."""
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    if length == FRAMED:
        return wide(m[t.pool + start + TAIL])
    if length < 2 or length > _MAX_ITEMS:
        return wide(EMPTY)
    first = wide(m[t.pool + start])
    tail = wide(m[t.b + REC * first]) if m[t.kind + REC * first] == SEQ else wide(EMPTY)
    for j in range(start + 1, start + length):
        while tail != EMPTY and not ends_with(m, t, wide(m[t.pool + j]), tail):
            tail = wide(m[t.b + REC * tail]) if m[t.kind + REC * tail] == SEQ else wide(EMPTY)
    return tail if ends_with(m, t, first, tail) else wide(EMPTY)


@inner
def ends_with(m, t, item, tail):
    for _ in range(_MAX_HEADS):
        if m[t.kind + REC * item] != SEQ:
            return False
        item = wide(m[t.b + REC * item])
        if item == tail:
            return True
    return False


@inner
def without_tail(m, t, s, tail):
    """The state without its common tail if it is there already, else DEAD: what stands at one place is not worth it.

    Its body is found from its own items: the tail may begin with the rest of the repetition that gave the state its body.
    """
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    if length == FRAMED:
        return wide(m[t.pool + start + INNER])
    body, radius = wide(NO_BODY), wide(0)
    for j in range(length):
        node, depth = wide(m[t.pool + start + j]), wide(0)
        while node != tail:
            m[t.work + depth] = m[t.a + REC * node]
            node, depth = wide(m[t.b + REC * node]), depth + 1
        depth -= 1
        item = wide(m[t.work + depth])
        while depth > 0:
            depth -= 1
            item = pair(m, t, wide(m[t.work + depth]), item)
        m[t.items + j] = item
        if m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        unit = wide(m[t.unit + REC * leaf(m, t, item)])
        if unit != NO_BODY and m[t.kind + REC * item] == SEQ:
            more = copies(m, t, wide(m[t.b + REC * item]), unit)
            if more >= radius and more > 0:
                body, radius = unit, 1 + more
    num_states = m[t.n + STATES]
    found = intern_state(m, t, length, body, radius)
    return found if m[t.n + STATES] == num_states and m[t.n + FAULT] == NO_FAULT else wide(DEAD)


@inner
def completes_inside(m, t, s, body):
    """Whether a state can be complete behind characters of a body class at once, its own or that of a longer state.

    If it is its own, its ends are then not all seen: tokens inside the body are not walked, those that leave it only from its
    beginning. In any case there are thousands.
    """
    if body < 0:
        return False
    start, length = items_of(m, t, s)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        own = leaf(m, t, item)
        if m[t.kind + REC * own] == CLASS and m[t.unit + REC * own] == body:
            rest = behind(m, t, wide(m[t.b + REC * item]), body) if m[t.kind + REC * item] == SEQ else wide(EMPTY)
            if rest == EMPTY or m[t.state_accept + REC * state_of(m, t, rest)] == 1:
                return True
    return False


@inner
def note_end(m, t, trie, node):
    """While ends are noted: what has been walked is complete at a node, behind which tokens go on.

    An end in the middle of a node of groups is noted as -(place of the token in the atlas) and the number of its bytes before it.
    """
    count = m[t.n + NUM_ENDS]
    if 0 <= count < MAX_ENDS:
        m[t.ends + 2 * count], m[t.ends + 2 * count + 1] = trie, node
    if 0 <= count <= MAX_ENDS:
        m[t.n + NUM_ENDS] = count + 1


@inner
def keep_ends(m, t, s):
    """Keep the ends that have been noted, unless they are known."""
    count, start = wide(m[t.n + NUM_ENDS]), wide(m[t.n + POOL])
    m[t.n + NUM_ENDS] = TOO_MANY
    if m[t.n + FAULT] != NO_FAULT or m[t.state_ends + REC * s] != 0:
        return
    if count > MAX_ENDS:
        m[t.state_ends + REC * s] = TOO_MANY
        return
    if start + ENDS + 2 * count > t.pool_size:
        m[t.n + FAULT] = FULL_POOL
        return
    m[t.n + POOL] = start + ENDS + 2 * count
    m[t.pool + start] = count
    m[t.pool + start + 1], m[t.pool + start + 2] = m[t.n + CLEARED], m[t.n + KEPT]
    m[t.pool + start + 3], m[t.pool + start + 4] = m[t.n + KEPT_END], m[t.n + CLEARED_END]
    for k in range(2 * count):
        m[t.pool + start + ENDS + k] = m[t.ends + k]
    m[t.state_ends + REC * s] = start
