"""Several characters of a name at once, without states for those before the last.

Between two tokens nobody asks for the states inside a token. Where a name is read, its items are literals, the names that an object
lists, and perhaps any other name (see unlisted.py): what is left of each behind some plain characters follows from comparing texts.

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

import numpy as np

from .compiled import inner
from .derive import after_byte
from .nodes import EMPTY, FAIL, LITERAL, NO_BODY, SEQ, UNLISTED, WORDS, intern_node, join, literal, wide
from .states import INNER, TAIL, framed, gather, intern_state, state_of
from .tables import DEAD, FAULT, FRAMED, INFINITE, NO_FAULT, REC
from .unlisted import narrowed, without_words

_SHORTEST = 2  # a single byte is a transition
_MAX_ITEMS = 64
_IMPOSSIBLE = -1


@inner
def leap(m, t, s, data, start, end):
    """(state after n of the bytes data[start:end], n); (DEAD, 0) where this does not apply, and on a fault."""
    count = wide(0)
    while start + count < end and is_plain(data[start + count]):
        count += 1
    if count < _SHORTEST:
        return wide(DEAD), wide(0)
    if m[t.state_length + REC * s] == FRAMED:
        frame = t.pool + wide(m[t.state_start + REC * s])
        after = after_characters(m, t, wide(m[frame + INNER]), data, start, count)
        after = framed(m, t, after, wide(m[frame + TAIL]))
    else:
        after = after_characters(m, t, s, data, start, count)
    return (after, count) if after != DEAD and m[t.n + FAULT] == NO_FAULT else (wide(DEAD), wide(0))


@inner
def is_plain(byte):
    """Whether a byte stands for itself in a JSON string."""
    return 0x20 <= byte < 0x7F and byte != 0x22 and byte != 0x5C


@inner
def after_characters(m, t, s, data, start, n):
    """The state after n bytes, the same as by transitions one after the other; DEAD as in `leap`."""
    length = wide(m[t.state_length + REC * s])
    if length <= 0 or length > _MAX_ITEMS:
        return wide(DEAD)
    targets, count = np.empty(_MAX_ITEMS, np.int64), wide(0)
    for j in range(length):
        item = wide(m[t.pool + m[t.state_start + REC * s] + j])
        head, tail = item, wide(EMPTY)
        if m[t.kind + REC * item] == SEQ:
            head, tail = wide(m[t.a + REC * item]), wide(m[t.b + REC * item])
        follow = wide(_IMPOSSIBLE)
        if m[t.kind + REC * head] == LITERAL:
            follow = literal_after(m, t, head, data, start, n)
        elif m[t.kind + REC * head] == UNLISTED:
            follow = unlisted_after(m, t, head, data, start, n)
        if follow == _IMPOSSIBLE or m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        target = join(m, t, follow, tail) if follow != FAIL else wide(FAIL)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        if m[t.size + REC * target] < INFINITE and (count == 0 or targets[count - 1] != target):
            targets[count] = target
            count += 1
    if count == 0:
        return wide(DEAD)
    return state_of(m, t, wide(targets[0])) if count == 1 else state_of_all(m, t, targets, count)


@inner
def state_of_all(m, t, targets, count):
    """The state before any byte of some continuations."""
    total, body, radius, unlisted, others = wide(0), wide(NO_BODY), wide(0), wide(0), wide(0)
    for k in range(count):
        total = gather(m, t, wide(targets[k]), total)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        closure = wide(m[t.closure + REC * targets[k]])
        if closure == 0:
            continue
        others += 1
        if m[t.pool + closure + 1] == NO_BODY:
            unlisted = wide(m[t.pool + closure + 2])
        elif m[t.pool + closure + 2] > radius:
            body, radius = wide(m[t.pool + closure + 1]), wide(m[t.pool + closure + 2])
    if body == NO_BODY and others == 1:
        radius = unlisted
    return intern_state(m, t, total, body, radius)


@inner
def literal_after(m, t, node, data, start, n):
    """What is left of a literal, FAIL where it goes on otherwise, _IMPOSSIBLE where it is shorter."""
    text, length = t.text + wide(m[t.a + REC * node]), wide(m[t.b + REC * node])
    for k in range(min(n, length)):
        if m[text + k] != data[start + k]:
            return wide(FAIL)
    if length < n:
        return wide(_IMPOSSIBLE)
    return wide(EMPTY) if length == n else literal(m, t, wide(m[t.a + REC * node]) + n, length - n)


@inner
def unlisted_after(m, t, node, data, start, n):
    """What is left of an UNLISTED node whose body is the same behind each of the characters; _IMPOSSIBLE where it is not."""
    words, body = wide(m[t.a + REC * node]), wide(m[t.b + REC * node])
    first, count, read = wide(m[t.a + REC * words]), wide(m[t.b + REC * words]), wide(m[t.c + REC * words])
    low, high = wide(1), wide(0)
    for k in range(n):
        byte = wide(data[start + k])
        if byte < low or byte > high:
            rest, low, high, event = after_byte(m, t, body, byte, wide(0))
            if rest != body or event != 0 or m[t.n + FAULT] != NO_FAULT:
                return wide(_IMPOSSIBLE)
        first, count = narrowed(m, t, first, count, read + k, byte)
    if count == 0:
        return body
    return without_words(m, t, intern_node(m, t, wide(WORDS), first, count, read + n), body)
