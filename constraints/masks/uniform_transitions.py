"""Runs: characters that all lead from a state to the same next one, found on its transitions.

A repetition of characters is known as a body from the grammar. Where intersections and complements are at work it is not, but what
remains of them mostly still reads one character like another: behind a key that has become different from all excluded names any
character leads back to the same state, and in a bounded pattern all characters of a class lead to a state with one fewer to come.
So whether all strings of some characters survive is a question of a few states, not of all strings.

An intersection of two texts without end in which something has to stand somewhere, as a pattern without anchors says, goes to ever
other states. But each still has what it had before its first character: if both texts can be completed together, then behind any
string.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.determinize import SEARCH, answer_all, ask, step
from ..automaton.nodes import BOTH, CLASS, NO_BODY, PRODUCT, REPEAT, SEQ, intern_node, leaf, wide
from ..automaton.states import items_of, state_of
from ..automaton.tables import CLASS_WIDTH, DEAD, FAULT, FULL_POOL, INFINITE, NO_FAULT, POOL, REC, STATE_BITS, UNKNOWN
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import FIRST_LEAD, SET_WORDS, is_inside

FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E


@inner
def survives(m, t, v, shape, height, s, first):
    """Whether all strings of at most `height` characters that begin with bytes of a shape's set survive from state `s`.

    first: see `is_inside`. False when that is not known: characters may survive that lead to different states. False on a fault.
    """
    for _ in range(height):
        run = run_of(m, t, s)
        if run == 0 or not is_inside(v, shape, run + 1, m, first):
            return False
        if m[run] == s:
            return True
        s = wide(m[run])
    return True


@inner
def run_of(m, t, s):
    """The offset in `m` of a state's run: the next state, and the set of first bytes (see packed_vocabulary.py) of the characters that lead
    to it; 0 on a fault. If that is the state itself, all strings of such characters survive from it."""
    if m[t.state_run + REC * s] == 0:
        words, body = np.zeros(SET_WORDS, np.int32), endless_body(m, t, s)
        following = majority(m, t, s) if body == NO_BODY else wide(s)
        if body != NO_BODY:
            for k in range(SET_WORDS):
                words[k] = m[t.classes + CLASS_WIDTH * body + k]
        elif following != DEAD:
            for byte in range(0x80):
                if transition(m, t, s, byte) == following:
                    words[byte >> 5] |= np.int32(np.int64(1) << (byte & 31))
            for lead in range(0xC2, 0xF5):
                if leads_to(m, t, s, lead, following):
                    position = lead - FIRST_LEAD + 0x80
                    words[position >> 5] |= np.int32(np.int64(1) << (position & 31))
        start = wide(m[t.n + POOL])
        if m[t.n + FAULT] == NO_FAULT and start + 1 + SET_WORDS > t.pool_size:
            m[t.n + FAULT] = FULL_POOL
        if m[t.n + FAULT] != NO_FAULT:
            return wide(0)
        m[t.pool + start] = following
        for k in range(SET_WORDS):
            m[t.pool + start + 1 + k] = words[k]
        m[t.n + POOL], m[t.state_run + REC * s] = start + 1 + SET_WORDS, start
    return t.pool + wide(m[t.state_run + REC * s])


@inner
def endless_body(m, t, s):
    """The body class of which all strings survive from a state because of an intersection of which both operands repeat it
    endlessly; NO_BODY when there is none, or on a fault."""
    if m[t.state_flat + REC * s] == 1:
        return wide(NO_BODY)
    start, length = items_of(m, t, s)
    for j in range(length):
        item = wide(m[t.pool + start + j])
        product = leaf(m, t, item)
        if m[t.kind + REC * product] != PRODUCT or m[t.c + REC * product] != BOTH:
            continue
        x, y = wide(m[t.a + REC * product]), wide(m[t.b + REC * product])
        body = wide(m[t.state_body + REC * x])
        if body == NO_BODY or m[t.state_body + REC * y] != body:
            continue
        loop_x, loop_y = endless_part(m, t, x, body), endless_part(m, t, y, body)
        if loop_x != DEAD and loop_y != DEAD and can_be_completed(m, t, loop_x, loop_y):
            return body
        if m[t.n + FAULT] != NO_FAULT:
            return wide(NO_BODY)
    return wide(NO_BODY)


@inner
def endless_part(m, t, s, body):
    """The state of what is left, behind any character of a body class, of an item that repeats it endlessly; DEAD without one."""
    if m[t.state_radius + REC * s] < ENDLESS:
        return wide(DEAD)
    start, length = items_of(m, t, s)
    for j in range(length):
        item = wide(m[t.pool + start + j])
        own = leaf(m, t, item)
        if m[t.kind + REC * own] == CLASS and m[t.unit + REC * own] == body and m[t.kind + REC * item] == SEQ:
            rest = wide(m[t.b + REC * item])
            loop = leaf(m, t, rest)
            if m[t.kind + REC * loop] == REPEAT and m[t.unit + REC * m[t.a + REC * loop]] == body and m[t.c + REC * loop] < 0:
                return state_of(m, t, rest)
    return wide(DEAD)


@inner
def can_be_completed(m, t, x, y):
    """Whether two states have a text in common. False on a fault."""
    product = intern_node(m, t, wide(PRODUCT), x, y, wide(BOTH))
    if m[t.n + FAULT] == NO_FAULT and m[t.size + REC * product] == UNKNOWN:
        ask(m, t, product, wide(SEARCH))
        answer_all(m, t)
    return m[t.n + FAULT] == NO_FAULT and m[t.size + REC * product] < INFINITE


@inner
def majority(m, t, s):
    """The state where most printable characters lead to, if that is more than half; else any. (Boyer and Moore 1981)"""
    found, votes = wide(DEAD), 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        after = transition(m, t, s, byte)
        if after == DEAD:
            continue
        if votes == 0:
            found = after
        votes += 1 if after == found else -1
    return found


@inner
def leads_to(m, t, s, lead, following):
    """Whether all characters that begin with a byte lead to a state. (RFC 3629, section 4)"""
    low, high = wide(0x80), wide(0xBF)
    if lead == 0xE0:
        low = wide(0xA0)
    elif lead == 0xED:
        high = wide(0x9F)
    elif lead == 0xF0:
        low = wide(0x90)
    elif lead == 0xF4:
        high = wide(0x8F)
    at = transition(m, t, s, lead)
    for _ in range(1 if lead < 0xE0 else 2 if lead < 0xF0 else 3):
        if at == DEAD:
            return False
        after = transition(m, t, at, low)
        for byte in range(low + 1, high + 1):
            if transition(m, t, at, byte) != after:
                return False
        at, low, high = after, wide(0x80), wide(0xBF)
    return at == following


@inner
def transition(m, t, s, byte):
    """The state after a byte; DEAD where an event is passed, and on a fault."""
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    answer = wide(m[t.next + s * 256 + byte])
    if answer == UNKNOWN:
        answer = step(m, t, wide(s), wide(byte))
    return answer if answer >> STATE_BITS == 0 else wide(DEAD)
