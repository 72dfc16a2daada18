"""Several bytes of a name at once, without states for the bytes before the last.

Between two tokens nobody asks for the states inside a token. Where a name is read, the items of a state are literals
(the names that an object lists) and perhaps an UNLISTED node (any other name; see word_complement.py). What is left of each
behind some plain characters follows from comparing texts, so the state behind all of them is made in one step.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..automaton.determinize import after_byte
from ..automaton.nodes import EMPTY, FAIL, head_of, intern_node, join, literal, wide
from ..automaton.states import framed, inner_of, state_of_all, tail_of
from ..automaton.tables import DEAD, Fault, Tables
from ..automaton.unions import append_parts
from ..automaton.word_complement import narrowed, without_words
from ..base.ids import NodeId, StateId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words

_SHORTEST = 2  # a single byte is a transition
_MAX_ITEMS = 64
_IMPOSSIBLE = NodeId(-1)


@inner
def leap(m: Tables, s: StateId, data: Words, start: int, end: int) -> tuple[StateId, int]:
    """(state, n): the state behind the first n of the bytes data[start:end]. (DEAD, 0) where this is not possible, and
    on a fault."""
    count = 0
    while start + count < end and is_plain(data[start + count]):
        count += 1
    if count < _SHORTEST:
        return DEAD, 0
    if m.states[s].frame != 0:
        after = framed(m, after_characters(m, inner_of(m, s), data, start, count), tail_of(m, s))
    else:
        after = after_characters(m, s, data, start, count)
    return (after, count) if after != DEAD and m.n.fault == Fault.NONE else (DEAD, 0)


@inner
def is_plain(byte: int) -> bool:
    """Whether a byte stands for itself in a JSON string."""
    return 0x20 <= byte < 0x7F and byte != 0x22 and byte != 0x5C


@inner
def after_characters(m: Tables, s: StateId, data: Words, start: int, n: int) -> StateId:
    """The state behind `n` bytes of `data`: the one to which transitions would lead. DEAD where this is not possible,
    and on a fault."""
    length = m.states[s].length
    if length == 0 or length > _MAX_ITEMS:
        return DEAD
    count = 0
    for j in range(length):
        item = m.pool[m.states[s].start + j]
        head, tail = head_of(m, item), (m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY)
        follow = _IMPOSSIBLE
        if m.nodes[head].kind == Kind.LITERAL:
            follow = literal_after(m, head, data, start, n)
        elif m.nodes[head].kind == Kind.UNLISTED:
            follow = unlisted_after(m, head, data, start, n, count)
        if follow == _IMPOSSIBLE or m.n.fault != Fault.NONE:
            return DEAD
        target = join(m, follow, tail)
        if m.n.fault == Fault.NONE and m.nodes[target].size < INFINITE:
            count = append_parts(m, target, count)
    return state_of_all(m, count)


@inner
def literal_after(m: Tables, node: NodeId, data: Words, start: int, n: int) -> NodeId:
    """What is left of a literal behind `n` bytes: FAIL where it differs from them, _IMPOSSIBLE where it is shorter."""
    text, length = m.text + m.nodes[node].a, m.nodes[node].b
    for k in range(min(n, length)):
        if text[k] != data[start + k]:
            return FAIL
    if length < n:
        return _IMPOSSIBLE
    return EMPTY if length == n else literal(m, m.nodes[node].a + n, length - n)


@inner
def unlisted_after(m: Tables, node: NodeId, data: Words, start: int, n: int, num_items: int) -> NodeId:
    """What is left of an UNLISTED node behind `n` bytes, if each of them leads from its body to the same body; else
    _IMPOSSIBLE.

    Uses `items` behind the first `num_items` as scratch.
    """
    words, body = m.nodes[node].a, m.nodes[node].b
    first, count, read = m.nodes[words].a, m.nodes[words].b, m.nodes[words].c
    low, high = 1, 0
    for k in range(n):
        byte = wide(data[start + k])
        if byte < low or byte > high:
            rest, low, high, event = after_byte(m, body, byte, num_items)
            if rest != body or event != 0 or m.n.fault != Fault.NONE:
                return _IMPOSSIBLE
        first, count = narrowed(m, first, count, read + k, byte)
    if count == 0:
        return body
    return without_words(m, intern_node(m, Kind.WORDS, first, count, read + n), body)
