"""Uniform transitions: characters that all lead from a state to the same next state, found on its transitions.

A repetition of characters is known from the grammar as a body. Where intersections and complements are at work it is
not, but what remains of them mostly still reads one character like another: behind a key that has become different from
all excluded names any character leads back to the same state, and in a bounded pattern all characters of a class lead
to a state with one fewer to come. So whether all strings of some characters survive is a question of a few states, and
the walk may take their subtrees whole.

    `uniform_of` a state = (the state where most characters lead to, the set of first bytes of the characters that do)

An intersection of two endless texts, in one of which something has to stand somewhere (a pattern without anchors), goes
to ever other states. But each of them still has what it had before its first character: if both texts can be completed
together now, they can be behind any string.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.determinize import SEARCH, push_request, serve_requests, step
from ..automaton.nodes import NO_BODY, head_of, intern_node, wide
from ..automaton.states import items_of, state_of
from ..automaton.tables import (
    CLASS_WIDTH,
    DEAD,
    REC,
    STATE_BITS,
    UNKNOWN,
    Counter,
    Fault,
)
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import FIRST_LEAD, SET_WORDS, is_inside

FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E


@inner
def survives(arena, tables, vocab, shape, height, s, first):
    """Whether all strings of at most `height` characters that begin with the bytes in a shape's set survive from the
    state `s`.

    first: see `is_inside`. False also where that is not known, because characters may survive that lead to different
    states; and on a fault.
    """
    for _ in range(height):
        uniform = uniform_of(arena, tables, s)
        if uniform == 0 or not is_inside(vocab, shape, uniform + 1, arena, first):
            return False
        if arena[uniform] == s:
            return True
        s = wide(arena[uniform])
    return True


@inner
def uniform_of(arena, tables, s):
    """The offset in `arena` of what is uniform in a state, made when first asked for: the next state, then the set of first
    bytes (see packed_vocabulary.py) of the characters that lead to it. 0 on a fault. If the next state is `s` itself, all strings
    of such characters survive from it."""
    if arena[tables.state_uniform + REC * s] == 0:
        words, body = np.zeros(SET_WORDS, np.int32), endless_body(arena, tables, s)
        following = majority(arena, tables, s) if body == NO_BODY else wide(s)
        if body != NO_BODY:
            for k in range(SET_WORDS):
                words[k] = arena[tables.classes + CLASS_WIDTH * body + k]
        elif following != DEAD:
            for byte in range(0x80):
                if transition(arena, tables, s, byte) == following:
                    words[byte >> 5] |= np.int32(np.int64(1) << (byte & 31))
            for lead in range(0xC2, 0xF5):
                if leads_to(arena, tables, s, lead, following):
                    position = lead - FIRST_LEAD + 0x80
                    words[position >> 5] |= np.int32(np.int64(1) << (position & 31))
        start = wide(arena[tables.n + Counter.POOL])
        if arena[tables.n + Counter.FAULT] == Fault.NONE and start + 1 + SET_WORDS > tables.pool_size:
            arena[tables.n + Counter.FAULT] = Fault.FULL_POOL
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(0)
        arena[tables.pool + start] = following
        for k in range(SET_WORDS):
            arena[tables.pool + start + 1 + k] = words[k]
        arena[tables.n + Counter.POOL], arena[tables.state_uniform + REC * s] = start + 1 + SET_WORDS, start
    return tables.pool + wide(arena[tables.state_uniform + REC * s])


@inner
def endless_body(arena, tables, s):
    """The body class of which all strings survive from a state because both operands of an intersection repeat it
    endlessly; NO_BODY when there is none, and on a fault."""
    if arena[tables.state_has_no_product + REC * s] == 1:
        return wide(NO_BODY)
    start, length = items_of(arena, tables, s)
    for j in range(length):
        item = wide(arena[tables.pool + start + j])
        product = head_of(arena, tables, item)
        if arena[tables.kind + REC * product] != Kind.PRODUCT or arena[tables.c + REC * product] != Kind.BOTH:
            continue
        x, y = wide(arena[tables.a + REC * product]), wide(arena[tables.b + REC * product])
        body = wide(arena[tables.state_body_class + REC * x])
        if body == NO_BODY or arena[tables.state_body_class + REC * y] != body:
            continue
        loop_x, loop_y = endless_part(arena, tables, x, body), endless_part(arena, tables, y, body)
        if loop_x != DEAD and loop_y != DEAD and can_be_completed(arena, tables, loop_x, loop_y):
            return body
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(NO_BODY)
    return wide(NO_BODY)


@inner
def endless_part(arena, tables, s, body):
    """The state behind any character of a body class, of an item of `s` that repeats the class endlessly; DEAD without
    such an item."""
    if arena[tables.state_max_chars + REC * s] < ENDLESS:
        return wide(DEAD)
    start, length = items_of(arena, tables, s)
    for j in range(length):
        item = wide(arena[tables.pool + start + j])
        own = head_of(arena, tables, item)
        if (
            arena[tables.kind + REC * own] == Kind.CLASS
            and arena[tables.body_class + REC * own] == body
            and arena[tables.kind + REC * item] == Kind.SEQ
        ):
            rest = wide(arena[tables.b + REC * item])
            loop = head_of(arena, tables, rest)
            if (
                arena[tables.kind + REC * loop] == Kind.REPEAT
                and arena[tables.body_class + REC * arena[tables.a + REC * loop]] == body
                and arena[tables.c + REC * loop] < 0
            ):
                return state_of(arena, tables, rest)
    return wide(DEAD)


@inner
def can_be_completed(arena, tables, x, y):
    """Whether two states have a text in common. False on a fault."""
    product = intern_node(arena, tables, wide(Kind.PRODUCT), x, y, wide(Kind.BOTH))
    if arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.size + REC * product] == UNKNOWN:
        push_request(arena, tables, product, wide(SEARCH))
        serve_requests(arena, tables)
    return arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.size + REC * product] < INFINITE


@inner
def majority(arena, tables, s):
    """The state to which most printable characters lead, if that is more than half of them; else any state (Boyer and
    Moore 1981)."""
    found, votes = wide(DEAD), 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        after = transition(arena, tables, s, byte)
        if after == DEAD:
            continue
        if votes == 0:
            found = after
        votes += 1 if after == found else -1
    return found


@inner
def leads_to(arena, tables, s, lead, following):
    """Whether all characters of several bytes that begin with `lead` lead to the state `following` (RFC 3629, section
    4)."""
    low, high = wide(0x80), wide(0xBF)
    if lead == 0xE0:
        low = wide(0xA0)
    elif lead == 0xED:
        high = wide(0x9F)
    elif lead == 0xF0:
        low = wide(0x90)
    elif lead == 0xF4:
        high = wide(0x8F)
    at = transition(arena, tables, s, lead)
    for _ in range(1 if lead < 0xE0 else 2 if lead < 0xF0 else 3):
        if at == DEAD:
            return False
        after = transition(arena, tables, at, low)
        for byte in range(low + 1, high + 1):
            if transition(arena, tables, at, byte) != after:
                return False
        at, low, high = after, wide(0x80), wide(0xBF)
    return at == following


@inner
def transition(arena, tables, s, byte):
    """The state behind a byte; DEAD where an event is passed, and on a fault."""
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    answer = wide(arena[tables.next + s * 256 + byte])
    if answer == UNKNOWN:
        answer = step(arena, tables, wide(s), wide(byte))
    return answer if answer >> STATE_BITS == 0 else wide(DEAD)
