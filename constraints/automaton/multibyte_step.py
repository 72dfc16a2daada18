"""Several bytes of a name at once, without states for the bytes before the last.

Between two tokens nobody asks for the states inside a token. Where a name is read, the items of a state are literals
(the names that an object lists) and perhaps an UNLISTED node (any other name; see word_complement.py). What is left of each
behind some plain characters follows from comparing texts, so the state behind all of them is made in one step.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .determinize import after_byte
from .nodes import EMPTY, FAIL, head_of, intern_node, join, literal, wide
from .states import Frame, framed, state_of_all
from .tables import DEAD, FRAMED, REC, Counter, Fault
from .unions import append_parts
from .word_complement import narrowed, without_words

_SHORTEST = 2  # a single byte is a transition
_MAX_ITEMS = 64
_IMPOSSIBLE = -1


@inner
def leap(arena, tables, s, data, start, end):
    """(state, n): the state behind the first n of the bytes data[start:end]. (DEAD, 0) where this is not possible, and
    on a fault."""
    count = wide(0)
    while start + count < end and is_plain(data[start + count]):
        count += 1
    if count < _SHORTEST:
        return wide(DEAD), wide(0)
    if arena[tables.state_length + REC * s] == FRAMED:
        frame = tables.pool + wide(arena[tables.state_start + REC * s])
        after = after_characters(arena, tables, wide(arena[frame + Frame.INNER]), data, start, count)
        after = framed(arena, tables, after, wide(arena[frame + Frame.TAIL]))
    else:
        after = after_characters(arena, tables, s, data, start, count)
    return (after, count) if after != DEAD and arena[tables.n + Counter.FAULT] == Fault.NONE else (wide(DEAD), wide(0))


@inner
def is_plain(byte):
    """Whether a byte stands for itself in a JSON string."""
    return 0x20 <= byte < 0x7F and byte != 0x22 and byte != 0x5C


@inner
def after_characters(arena, tables, s, data, start, n):
    """The state behind `n` bytes of `data`: the one to which transitions would lead. DEAD where this is not possible,
    and on a fault."""
    length = wide(arena[tables.state_length + REC * s])
    if length <= 0 or length > _MAX_ITEMS:
        return wide(DEAD)
    count = wide(0)
    for j in range(length):
        item = wide(arena[tables.pool + arena[tables.state_start + REC * s] + j])
        head, tail = (
            head_of(arena, tables, item),
            wide(arena[tables.b + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else wide(EMPTY),
        )
        follow = wide(_IMPOSSIBLE)
        if arena[tables.kind + REC * head] == Kind.LITERAL:
            follow = literal_after(arena, tables, head, data, start, n)
        elif arena[tables.kind + REC * head] == Kind.UNLISTED:
            follow = unlisted_after(arena, tables, head, data, start, n, count)
        if follow == _IMPOSSIBLE or arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(DEAD)
        target = join(arena, tables, follow, tail)
        if arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.size + REC * target] < INFINITE:
            count = append_parts(arena, tables, target, count)
    return state_of_all(arena, tables, count)


@inner
def literal_after(arena, tables, node, data, start, n):
    """What is left of a literal behind `n` bytes: FAIL where it differs from them, _IMPOSSIBLE where it is shorter."""
    text, length = tables.text + wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node])
    for k in range(min(n, length)):
        if arena[text + k] != data[start + k]:
            return wide(FAIL)
    if length < n:
        return wide(_IMPOSSIBLE)
    return wide(EMPTY) if length == n else literal(arena, tables, wide(arena[tables.a + REC * node]) + n, length - n)


@inner
def unlisted_after(arena, tables, node, data, start, n, num_items):
    """What is left of an UNLISTED node behind `n` bytes, if each of them leads from its body to the same body; else
    _IMPOSSIBLE.

    Uses `items` behind the first `num_items` as scratch.
    """
    words, body = wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node])
    first, count, read = (
        wide(arena[tables.a + REC * words]),
        wide(arena[tables.b + REC * words]),
        wide(arena[tables.c + REC * words]),
    )
    low, high = wide(1), wide(0)
    for k in range(n):
        byte = wide(data[start + k])
        if byte < low or byte > high:
            rest, low, high, event = after_byte(arena, tables, body, byte, num_items)
            if rest != body or event != 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
                return wide(_IMPOSSIBLE)
        first, count = narrowed(arena, tables, first, count, read + k, byte)
    if count == 0:
        return body
    return without_words(arena, tables, intern_node(arena, tables, wide(Kind.WORDS), first, count, read + n), body)
