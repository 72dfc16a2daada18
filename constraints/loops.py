"""Loops: characters that lead from a state back to itself, found on its transitions.

A repetition of characters is known as a body from the grammar. Where intersections and complements are at work it is not, but what
remains of them mostly loops: behind a key that has become different from all excluded names, any character leads back.
"""

from __future__ import annotations

import numpy as np

from .atlas import FIRST_LEAD, SET_WORDS
from .compiled import inner
from .derive import step, wide
from .tables import FAULT, FULL_POOL, NO_FAULT, POOL, STATE_BITS, UNKNOWN


@inner
def loop_of(m, t, s):
    """The offset in `m` of the set of first bytes (see atlas.py) of the characters that lead back to a state; 0 on a fault."""
    if m[t.state_loop + s] == 0:
        words = np.zeros(SET_WORDS, np.int32)
        for byte in range(0x80):
            if transition(m, t, s, byte) == s:
                words[byte >> 5] |= np.int32(np.int64(1) << (byte & 31))
        for lead in range(0xC2, 0xF5):
            if returns(m, t, s, lead):
                position = lead - FIRST_LEAD + 0x80
                words[position >> 5] |= np.int32(np.int64(1) << (position & 31))
        start = wide(m[t.n + POOL])
        if m[t.n + FAULT] == NO_FAULT and start + SET_WORDS > t.pool_size:
            m[t.n + FAULT] = FULL_POOL
        if m[t.n + FAULT] != NO_FAULT:
            return wide(0)
        m[t.pool + start : t.pool + start + SET_WORDS] = words
        m[t.n + POOL], m[t.state_loop + s] = start + SET_WORDS, start
    return t.pool + wide(m[t.state_loop + s])


@inner
def returns(m, t, s, lead):
    """Whether all characters that begin with a byte lead back to a state. (RFC 3629, section 4)"""
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
        after = transition(m, t, at, low)
        for byte in range(low + 1, high + 1):
            if transition(m, t, at, byte) != after:
                return False
        at, low, high = after, wide(0x80), wide(0xBF)
    return at == s


@inner
def transition(m, t, s, byte):
    """Event and state after a byte; an event never belongs to a loop, so both are compared as one."""
    if m[t.n + FAULT] != NO_FAULT or s >> STATE_BITS != 0:
        return wide(0)
    answer = wide(m[t.next + s * 256 + byte])
    return step(m, t, wide(s), wide(byte)) if answer == UNKNOWN else answer
