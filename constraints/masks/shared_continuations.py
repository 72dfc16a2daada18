"""Shared continuations: states that differ only in the tail behind all their items, whose masks are made from one
shared mask.

A token in such a state either survives before the tail is reached, which does not depend on the tail; or it completes
what stands before the tail and goes on in the tail. So the mask is that of the state without the tail, plus what
survives from the state of the tail behind the *ends*: the nodes of the vocabulary's tries at which the part before the
tail is complete. The same part, any JSON value or any string, stands at many places of a schema, with another tail at
each.

    number then "}"   =   mask of number,  and below the nodes "0", "1", "12", ... what survives from "}"

Comes in: a state. Goes out: its tail (`common_tail`), the state without it (`without_tail`), and the ends that a walk
has noted (`note_end`, `keep_ends`), kept in `pool`; masking.py puts the mask together from them.
"""

from __future__ import annotations

from ..automaton.nodes import EMPTY, NO_BODY, head_of, sequence, wide
from ..automaton.states import Frame, intern_state, items_of, state_of
from ..automaton.tables import (
    DEAD,
    FRAMED,
    MAX_ENDS,
    REC,
    TOO_MANY,
    Counter,
    Fault,
)
from ..base.kinds import Kind
from ..numba_support.jit import inner
from .loop_context import after_leading_copies, leading_copies

_MAX_HEADS = 12  # before a tail; also how deep one is looked for
_MAX_ITEMS = 64
# Words before the pairs of `note_end`: their number; two ranges of tokens of the packed vocabulary that survive behind none.
ENDS = 5


@inner
def common_tail(arena, tables, s):
    """The tail of a frame. Of another state the longest tail with which all its items end; EMPTY when there is none, or
    only one item."""
    start, length = wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    if length == FRAMED:
        return wide(arena[tables.pool + start + Frame.TAIL])
    if length < 2 or length > _MAX_ITEMS:
        return wide(EMPTY)
    first = wide(arena[tables.pool + start])
    tail = wide(arena[tables.b + REC * first]) if arena[tables.kind + REC * first] == Kind.SEQ else wide(EMPTY)
    for j in range(start + 1, start + length):
        while tail != EMPTY and not ends_with(arena, tables, wide(arena[tables.pool + j]), tail):
            tail = wide(arena[tables.b + REC * tail]) if arena[tables.kind + REC * tail] == Kind.SEQ else wide(EMPTY)
    return tail if ends_with(arena, tables, first, tail) else wide(EMPTY)


@inner
def ends_with(arena, tables, item, tail):
    """Whether a continuation ends with a tail, with at least one and at most _MAX_HEADS parts before it."""
    for _ in range(_MAX_HEADS):
        if arena[tables.kind + REC * item] != Kind.SEQ:
            return False
        item = wide(arena[tables.b + REC * item])
        if item == tail:
            return True
    return False


@inner
def without_tail(arena, tables, s, tail):
    """The state without its common tail, if that state has been made before; else DEAD: for what stands at one place it
    is not worth it.

    Its body is found from its own items: the tail may begin with the rest of the repetition that gave the state its
    body.
    """
    start, length = wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    if length == FRAMED:
        return wide(arena[tables.pool + start + Frame.INNER])
    body, max_chars = wide(NO_BODY), wide(0)
    for j in range(length):
        node, depth = wide(arena[tables.pool + start + j]), wide(0)
        while node != tail:
            arena[tables.work + depth] = arena[tables.a + REC * node]
            node, depth = wide(arena[tables.b + REC * node]), depth + 1
        depth -= 1
        item = wide(arena[tables.work + depth])
        while depth > 0:
            depth -= 1
            item = sequence(arena, tables, wide(arena[tables.work + depth]), item)
        arena[tables.items + j] = item
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(DEAD)
        unit = wide(arena[tables.body_class + REC * head_of(arena, tables, item)])
        if unit != NO_BODY and arena[tables.kind + REC * item] == Kind.SEQ:
            more = leading_copies(arena, tables, wide(arena[tables.b + REC * item]), unit)
            if more >= max_chars and more > 0:
                body, max_chars = unit, 1 + more
    num_states = arena[tables.n + Counter.STATES]
    found = intern_state(arena, tables, length, body, max_chars)
    return found if arena[tables.n + Counter.STATES] == num_states and arena[tables.n + Counter.FAULT] == Fault.NONE else wide(DEAD)


@inner
def completes_inside(arena, tables, s, body):
    """Whether a state can be complete directly behind characters of a body class: its own, or that of the longer state.

    Then its ends are of no use. Tokens inside of its own body are not walked, and those that leave the body only from
    its beginning, so that not all ends are seen; and in any case there are thousands of them.
    """
    if body < 0:
        return False
    start, length = items_of(arena, tables, s)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        own = head_of(arena, tables, item)
        if arena[tables.kind + REC * own] == Kind.CLASS and arena[tables.body_class + REC * own] == body:
            rest = (
                after_leading_copies(arena, tables, wide(arena[tables.b + REC * item]), body)
                if arena[tables.kind + REC * item] == Kind.SEQ
                else wide(EMPTY)
            )
            if rest == EMPTY or arena[tables.state_accept + REC * state_of(arena, tables, rest)] == 1:
                return True
    return False


@inner
def note_end(arena, tables, trie, node):
    """Note an end, while ends are noted: at this trie node what has been walked is complete, and tokens go on behind
    it.

    An end in the middle of a node of groups is noted as -(place of the token in the packed vocabulary) and the number of its bytes
    before the end.
    """
    count = arena[tables.n + Counter.NUM_ENDS]
    if 0 <= count < MAX_ENDS:
        arena[tables.ends + 2 * count], arena[tables.ends + 2 * count + 1] = trie, node
    if 0 <= count <= MAX_ENDS:
        arena[tables.n + Counter.NUM_ENDS] = count + 1


@inner
def keep_ends(arena, tables, s):
    """Write the ends that have been noted to `pool`, as the ends of the state `s`, unless its ends are known already."""
    count, start = wide(arena[tables.n + Counter.NUM_ENDS]), wide(arena[tables.n + Counter.POOL])
    arena[tables.n + Counter.NUM_ENDS] = TOO_MANY
    if arena[tables.n + Counter.FAULT] != Fault.NONE or arena[tables.state_ends + REC * s] != 0:
        return
    if count > MAX_ENDS:
        arena[tables.state_ends + REC * s] = TOO_MANY
        return
    if start + ENDS + 2 * count > tables.pool_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_POOL
        return
    arena[tables.n + Counter.POOL] = start + ENDS + 2 * count
    arena[tables.pool + start] = count
    arena[tables.pool + start + 1], arena[tables.pool + start + 2] = (
        arena[tables.n + Counter.CLEARED],
        arena[tables.n + Counter.KEPT],
    )
    arena[tables.pool + start + 3], arena[tables.pool + start + 4] = (
        arena[tables.n + Counter.KEPT_END],
        arena[tables.n + Counter.CLEARED_END],
    )
    for k in range(2 * count):
        arena[tables.pool + start + ENDS + k] = arena[tables.ends + k]
    arena[tables.state_ends + REC * s] = start
