"""The keys of open JSON objects, so that none is written twice.

The memory is a function of the text alone: which objects are open, which keys they have, whether a string is being read. It
advances beside the automaton, one hash-consed value for all texts that agree in this, and the automaton's events tell it which
keys to keep: those not known beforehand. Keys of canonical JSON text have one spelling each, so equal text is equal keys.

    MEMORY(frames, mode, key)   FRAME(parent, keys, -)   KEYS(other keys, key, -)   KEY(prefix, byte, -)

Nothing but the closing quote of a repeated key is refused. Hence a token's bit differs from the automaton's mask only if the
token has a quote (three, while no open object has a key), and those are few: `TokenAutomaton.refused` walks their trie. A key
can always be made new by one more character, which is why measure.py counts one token more for the opening quote of such a key
and one is added inside a key that is taken (`is_repeated`, TAKEN); the shortest completion never needs more. (With a hundred
keys that differ from a prefix by one character each, it could.)
"""

from __future__ import annotations

import numpy as np

from .compiled import entry, inner
from .derive import intern_node, step, wide
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


@entry
def empty_memory(arena):
    """Before any text."""
    m, t = arena, layout(arena)
    return memory(m, t, wide(NOTHING), OUTSIDE, wide(NOTHING))


@entry
def has_keys(arena, here):
    """Whether some open object has keys that must not come again."""
    m, t = arena, layout(arena)
    frames = m[t.a + here]
    while frames != NOTHING:
        if m[t.b + frames] != NOTHING:
            return True
        frames = m[t.a + frames]
    return False


@entry
def is_repeated(arena, here):
    """Whether a key is being read that the object has already."""
    m, t = arena, layout(arena)
    frames = m[t.a + here]
    return m[t.b + here] == IN_KEY and has_key(m, t, wide(m[t.b + frames]), wide(m[t.c + here]))


@entry
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


FINE, REPEATS, TAKEN = 0, 1, 2  # verdicts on a token: nothing wrong; ends a repeated key; stops inside a key that is taken


@entry
def judge_keys(arena, byte, depth, skip, first, max_depth, state, here, ends, verdicts):
    """For token order[k] of a trie: ends[k] = the state it leads to, DEAD when it does not survive; verdicts[k] on its keys.

    The walk interns next to nothing, although every token writes keys of its own: the key under way is a key node and a piece
    of the path, and a key that was ended is kept as such until another one begins in the same token.
    """
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.uint8)  # [depth] the byte read there
    states = np.empty(max_depth + 1, np.int64)
    # The memory after each byte: frames, mode, key under way = base then path[start : depth + 1], key ended and not interned yet
    # = ended_base then path[ended_start : ended_stop], none when ended_base < 0.
    frames = np.empty(max_depth + 1, np.int64)
    mode = np.empty(max_depth + 1, np.int64)
    base = np.empty(max_depth + 1, np.int64)
    start = np.empty(max_depth + 1, np.int64)
    ended_base = np.full(max_depth + 1, -1, np.int64)
    ended_start = np.zeros(max_depth + 1, np.int64)
    ended_stop = np.zeros(max_depth + 1, np.int64)
    states[0], frames[0], mode[0], base[0], start[0] = state, m[t.a + here], m[t.b + here], m[t.c + here], 1
    ends[:] = DEAD
    verdicts[:] = FINE
    n, i = byte.size, 0
    while i < n:
        d = depth[i]
        value = wide(byte[i])
        answer = wide(m[t.next + states[d - 1] * 256 + value])
        if answer == UNKNOWN:
            answer = step(m, t, states[d - 1], value)
        if answer & STATE_MASK == DEAD:
            if m[t.n + FAULT] != NO_FAULT:
                return
            i = skip[i]
            continue
        states[d], path[d] = answer & STATE_MASK, value
        event = answer >> STATE_BITS
        frames[d], mode[d], base[d], start[d] = frames[d - 1], mode[d - 1], base[d - 1], start[d - 1]
        ended_base[d], ended_start[d], ended_stop[d] = ended_base[d - 1], ended_start[d - 1], ended_stop[d - 1]
        verdict = FINE
        if mode[d] == OUTSIDE:
            if value == QUOTE:
                mode[d] = IN_KEY if event == KEY_OPEN else IN_STRING
                base[d], start[d] = NOTHING, d + 1
            if value == OPEN_BRACE or (value == QUOTE and event == KEY_OPEN):
                if ended_base[d] >= 0:
                    frames[d] = with_key(m, t, frames[d], ended_base[d], path, ended_start[d], ended_stop[d])
                    ended_base[d] = -1
            if value == OPEN_BRACE:
                frames[d] = intern_node(m, t, wide(FRAME), frames[d], wide(NOTHING), wide(0))
            elif value == CLOSE_BRACE:
                frames[d], ended_base[d] = m[t.a + frames[d]], -1
        elif mode[d] == IN_STRING:
            mode[d] = STRING_ESCAPE if value == BACKSLASH else OUTSIDE if value == QUOTE else IN_STRING
        elif mode[d] == STRING_ESCAPE:
            mode[d] = IN_STRING
        elif mode[d] == IN_KEY and value == QUOTE:
            mode[d] = OUTSIDE
            if event == KEY_CLOSE:
                if is_taken(m, t, frames[d], base[d], path, start[d], d):
                    verdict = REPEATS
                ended_base[d], ended_start[d], ended_stop[d] = base[d], start[d], d
        else:
            mode[d] = KEY_ESCAPE if mode[d] == IN_KEY and value == BACKSLASH else IN_KEY
            if first[i] != first[i + 1] and is_taken(m, t, frames[d], base[d], path, start[d], d + 1):
                verdict = TAKEN
        if m[t.n + FAULT] != NO_FAULT:
            return
        if verdict == REPEATS:
            mark_subtree(i, skip[i], first, verdicts, ends)
            i = skip[i]
            continue
        ends[first[i] : first[i + 1]] = states[d]
        verdicts[first[i] : first[i + 1]] = verdict
        i += 1


@inner
def mark_subtree(i, after, first, verdicts, ends):
    """All tokens that go on from a repeated key are refused, whatever they do then."""
    for k in range(first[i], first[after]):
        verdicts[k], ends[k] = REPEATS, DEAD


@inner
def is_taken(m, t, frames, base, path, start, stop):
    """Whether the innermost open object has the key that is the text of `base`, then path[start:stop]."""
    keys = wide(m[t.b + frames])
    while keys != NOTHING:
        key, i = wide(m[t.b + keys]), stop - 1
        while i >= start and key != NOTHING and m[t.b + key] == path[i]:
            key, i = wide(m[t.a + key]), i - 1
        if i < start and key == base:
            return True
        keys = wide(m[t.a + keys])
    return False


@inner
def with_key(m, t, frames, base, path, start, stop):
    """The frames after a key was ended in the innermost object."""
    key = base
    for i in range(start, stop):
        key = intern_node(m, t, wide(KEY), key, wide(path[i]), wide(0))
    keys = intern_node(m, t, wide(KEYS), wide(m[t.b + frames]), key, wide(0))
    return intern_node(m, t, wide(FRAME), wide(m[t.a + frames]), keys, wide(0))
