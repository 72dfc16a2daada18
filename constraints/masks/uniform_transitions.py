"""Uniform transitions: characters that all lead from a state to the same next state, found on its transitions.

A repetition of characters is known from the grammar as a body. Where intersections and complements are at work it is
not, but what remains of them mostly still reads one character like another: behind a key that has become different from
all excluded names any character leads back to the same state, and in a bounded pattern all characters of a class lead
to a state with one fewer to come. So whether all strings of some characters survive is a question of a few states, and
the walk may take their subtrees whole.

    `Uniform` of a state = (the state where most characters lead to, the set of first bytes of the characters that do)

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
from ..automaton.tables import DEAD, STATE_BITS, UNIFORM_WORDS, UNKNOWN, Fault, Tables, Uniform, uniform_at
from ..base.ids import BodyId, StateId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_records import FIRST_LEAD, SET_WORDS, Shape, is_inside

FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E


@inner
def survives(m: Tables, shape: Shape, s: StateId, first: int) -> bool:
    """Whether all strings of the characters of a shape, as many as it says, survive from the state `s`.

    first: see `is_inside`. False also where that is not known, because characters may survive that lead to different
    states; and on a fault.
    """
    for _ in range(shape.height):
        if not knows_uniform(m, s):
            return False
        uniform = uniform_of(m, s)
        if not is_inside(shape.first_bytes, uniform.first_bytes, first):
            return False
        if uniform.following == s:
            return True
        s = uniform.following
    return True


@inner
def uniform_of(m: Tables, s: StateId) -> Uniform:
    return uniform_at(m.pool + m.states[s].uniform)


@inner
def knows_uniform(m: Tables, s: StateId) -> bool:
    """Make what is uniform in a state, when first asked for. False on a fault. If it leads back to the state, all strings of such
    characters survive from it."""
    if m.states[s].uniform == 0:
        words, body = np.zeros(SET_WORDS, np.int32), endless_body(m, s)
        following = majority(m, s) if body == NO_BODY else wide(s)
        if body != NO_BODY:
            for k in range(SET_WORDS):
                words[k] = m.classes[body].first_bytes[k]
        elif following != DEAD:
            for byte in range(0x80):
                if transition(m, s, byte) == following:
                    words[byte >> 5] |= np.int32(np.int64(1) << (byte & 31))
            for lead in range(0xC2, 0xF5):
                if leads_to(m, s, lead, following):
                    position = lead - FIRST_LEAD + 0x80
                    words[position >> 5] |= np.int32(np.int64(1) << (position & 31))
        start = m.n.pool
        if m.n.fault == Fault.NONE and start + UNIFORM_WORDS > m.pool_size:
            m.n.fault = Fault.FULL_POOL
        if m.n.fault != Fault.NONE:
            return False
        m.n.pool, m.states[s].uniform = start + UNIFORM_WORDS, start
        uniform = uniform_of(m, s)
        uniform.following = following
        for k in range(SET_WORDS):
            uniform.first_bytes[k] = words[k]
    return True


@inner
def endless_body(m: Tables, s: StateId) -> BodyId:
    """The body class of which all strings survive from a state because both operands of an intersection repeat it
    endlessly; NO_BODY when there is none, where completions may be left out, and on a fault."""
    if m.states[s].has_no_product == 1 or m.n.inexact == 1:
        return NO_BODY
    start, length = items_of(m, s)
    for j in range(length):
        item = m.pool[start + j]
        product = head_of(m, item)
        if m.nodes[product].kind != Kind.PRODUCT or m.nodes[product].c != Kind.BOTH:
            continue
        x, y = m.nodes[product].a, m.nodes[product].b
        body = m.states[x].body_class
        if body == NO_BODY or m.states[y].body_class != body:
            continue
        loop_x, loop_y = endless_part(m, x, body), endless_part(m, y, body)
        if loop_x != DEAD and loop_y != DEAD and can_be_completed(m, loop_x, loop_y):
            return body
        if m.n.fault != Fault.NONE:
            return NO_BODY
    return NO_BODY


@inner
def endless_part(m: Tables, s: StateId, body: BodyId) -> StateId:
    """The state behind any character of a body class, of an item of `s` that repeats the class endlessly; DEAD without
    such an item."""
    if m.states[s].max_chars < ENDLESS:
        return DEAD
    start, length = items_of(m, s)
    for j in range(length):
        item = m.pool[start + j]
        own = head_of(m, item)
        if m.nodes[own].kind == Kind.CLASS and m.nodes[own].body_class == body and m.nodes[item].kind == Kind.SEQ:
            rest = m.nodes[item].b
            loop = head_of(m, rest)
            if (
                m.nodes[loop].kind == Kind.REPEAT
                and m.nodes[m.nodes[loop].a].body_class == body
                and m.nodes[loop].c < 0
            ):
                return state_of(m, rest)
    return DEAD


@inner
def can_be_completed(m: Tables, x: StateId, y: StateId) -> bool:
    """Whether two states have a text in common. False on a fault."""
    product = intern_node(m, Kind.PRODUCT, x, y, Kind.BOTH)
    if m.n.fault == Fault.NONE and m.nodes[product].size == UNKNOWN:
        push_request(m, product, SEARCH)
        serve_requests(m)
    return m.n.fault == Fault.NONE and m.nodes[product].size < INFINITE


@inner
def majority(m: Tables, s: StateId) -> StateId:
    """The state to which most printable characters lead, if that is more than half of them; else any state (Boyer and
    Moore 1981)."""
    found, votes = DEAD, 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        after = transition(m, s, byte)
        if after == DEAD:
            continue
        if votes == 0:
            found = after
        votes += 1 if after == found else -1
    return found


@inner
def leads_to(m: Tables, s: StateId, lead: int, following: StateId) -> bool:
    """Whether all characters of several bytes that begin with `lead` lead to the state `following` (RFC 3629, section
    4)."""
    low, high = 0x80, 0xBF
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    at = transition(m, s, lead)
    for _ in range(1 if lead < 0xE0 else 2 if lead < 0xF0 else 3):
        if at == DEAD:
            return False
        after = transition(m, at, low)
        for byte in range(low + 1, high + 1):
            if transition(m, at, byte) != after:
                return False
        at, low, high = after, 0x80, 0xBF
    return at == following


@inner
def transition(m: Tables, s: StateId, byte: int) -> StateId:
    """The state behind a byte; DEAD where an event is passed, and on a fault."""
    if m.n.fault != Fault.NONE:
        return DEAD
    answer = m.next[s * 256 + byte]
    if answer == UNKNOWN:
        answer = step(m, s, byte)
    return answer if answer >> STATE_BITS == 0 else DEAD
