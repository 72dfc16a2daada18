"""The keys of open JSON objects, so that none is written twice.

The memory is a function of the text alone: which objects are open, which keys they have, whether a string is being read. It
advances beside the automaton, one hash-consed value for all texts that agree in this, and the automaton's events tell it which
keys to keep: those not known beforehand. Keys of canonical JSON text have one spelling each, so equal text is equal keys.

    MEMORY(frames, mode, key)   FRAME(parent, keys, -)   KEYS(other keys, key, -)   KEY(prefix, byte, -)

Nothing but the closing quote of a repeated key is refused. Hence a token's bit differs from the automaton's mask only if the
token has a quote, and those are few: `TokenAutomaton.refused` walks the trie of the tokens with quotes. A key can always be made
new by one more character, which is why measure.py counts one token more for the opening quote of such a key and `is_repeated`
adds one inside a key that is taken; the shortest completion never needs more. (With a hundred keys that differ from a prefix by
one character each, it could.)
"""

from __future__ import annotations

import numba as nb
import numpy as np

from .derive import inner, intern_node, step, wide
from .expression import Event, Kind
from .tables import DEAD, FAULT, NO_FAULT, STATE_BITS, STATE_MASK, UNKNOWN, layout

MEMORY, FRAME, KEYS, KEY = int(Kind.MEMORY), int(Kind.FRAME), int(Kind.KEYS), int(Kind.KEY)
OBJECT_OPEN, KEY_OPEN, KEY_CLOSE = int(Event.OBJECT_OPEN), int(Event.KEY_OPEN), int(Event.KEY_CLOSE)
OUTSIDE, IN_STRING, STRING_ESCAPE, IN_KEY, KEY_ESCAPE = range(5)  # modes: where in the text we are
NOTHING = 0  # no frame, no keys, the empty prefix
REFUSED = 0  # instead of a memory
QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE = 0x22, 0x5C, 0x7B, 0x7D


@inner
def memory(m, t, frames, mode, key):
    return intern_node(m, t, wide(MEMORY), frames, wide(mode), key)


@inner
def remember(m, t, here, byte, event):
    """The memory after a byte; REFUSED when the byte closes a key that the object has already, or on a fault."""
    frames, mode, key = wide(m[t.a + here]), wide(m[t.b + here]), wide(m[t.c + here])
    if mode == OUTSIDE:
        if byte == OPEN_BRACE:
            return memory(m, t, intern_node(m, t, wide(FRAME), frames, wide(NOTHING), wide(0)), OUTSIDE, wide(NOTHING))
        if byte == CLOSE_BRACE:
            return memory(m, t, wide(m[t.a + frames]), OUTSIDE, wide(NOTHING))
        if byte == QUOTE:
            return memory(m, t, frames, IN_KEY if event == KEY_OPEN else IN_STRING, wide(NOTHING))
        return here
    if mode == IN_STRING:
        if byte == BACKSLASH:
            return memory(m, t, frames, STRING_ESCAPE, wide(NOTHING))
        return memory(m, t, frames, OUTSIDE, wide(NOTHING)) if byte == QUOTE else here
    if mode == STRING_ESCAPE:
        return memory(m, t, frames, IN_STRING, wide(NOTHING))
    if mode == IN_KEY and byte == QUOTE:
        if event == KEY_CLOSE:
            keys = wide(m[t.b + frames])
            if has_key(m, t, keys, key):
                return wide(REFUSED)
            more_keys = intern_node(m, t, wide(KEYS), keys, key, wide(0))
            frames = intern_node(m, t, wide(FRAME), wide(m[t.a + frames]), more_keys, wide(0))
        return memory(m, t, frames, OUTSIDE, wide(NOTHING))
    longer = intern_node(m, t, wide(KEY), key, byte, wide(0))
    return memory(m, t, frames, KEY_ESCAPE if mode == IN_KEY and byte == BACKSLASH else IN_KEY, longer)


@inner
def has_key(m, t, keys, key):
    while keys != NOTHING:
        if m[t.b + keys] == key:
            return True
        keys = wide(m[t.a + keys])
    return False


@nb.njit(cache=True)
def empty_memory(arena):
    """Before any text."""
    m, t = arena, layout(arena)
    return memory(m, t, wide(NOTHING), OUTSIDE, wide(NOTHING))


@nb.njit(cache=True)
def is_repeated(arena, here):
    """Whether a key is being read that the object has already."""
    m, t = arena, layout(arena)
    frames = m[t.a + here]
    return m[t.b + here] == IN_KEY and has_key(m, t, wide(m[t.b + frames]), wide(m[t.c + here]))


@nb.njit(cache=True, nogil=True)
def run_remembering(arena, state, here, data):
    """(state, memory, bytes read) after some bytes; state DEAD when they do not survive. The caller looks for faults."""
    m, t = arena, layout(arena)
    state, here = wide(state), wide(here)
    for i in range(data.size):
        byte = wide(data[i])
        answer = wide(m[t.next + state * 256 + byte])
        if answer == UNKNOWN:
            answer = step(m, t, state, byte)
        state = answer & STATE_MASK
        if state != DEAD:
            here = remember(m, t, here, byte, answer >> STATE_BITS)
        if state == DEAD or here == REFUSED:
            return wide(DEAD), wide(REFUSED), wide(i)
    return state, here, wide(data.size)


@nb.njit(cache=True, nogil=True)
def end_memories(arena, byte, depth, skip, first, max_depth, state, here, ends, memories):
    """For token order[k] of a trie: the state it leads to in ends[k], DEAD when it does not survive; the memory in memories[k],
    REFUSED when only the memory refuses it (ends[k] is then the state without memory)."""
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.int64)
    held = np.empty(max_depth + 1, np.int64)
    path[0], held[0] = state, here
    ends[:] = DEAD
    memories[:] = REFUSED
    n, i = byte.size, 0
    while i < n:
        d = depth[i]
        value = wide(byte[i])
        answer = wide(m[t.next + path[d - 1] * 256 + value])
        if answer == UNKNOWN:
            answer = step(m, t, path[d - 1], value)
        after = answer & STATE_MASK
        kept = wide(REFUSED)
        if after != DEAD and held[d - 1] != REFUSED:
            kept = remember(m, t, held[d - 1], value, answer >> STATE_BITS)
        if m[t.n + FAULT] != NO_FAULT:
            return
        if after == DEAD:
            i = skip[i]
            continue
        path[d], held[d] = after, kept
        for k in range(first[i], first[i + 1]):
            ends[k], memories[k] = after, kept
        i += 1
