"""Masks inside a key that has a pattern and must be none of some names, made from the mask of any key of that pattern.

Where patterns tell keys apart, a key beside the names that an object lists is an intersection: of what the patterns
say, and of any text but some literals. As in word_complement_masks.py, the mask is that of any key of the pattern, without the
tokens that spell the rest of a name and its closing quote. The mask of any key is often the same behind every name, and
no states are made for names.

This is done only where a text of the pattern is left behind any beginning of a name, because endlessly many are; and
where nothing reads the names but the literals of the state.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import append_closure
from ..automaton.determinize import product_accepts, step
from ..automaton.nodes import EMPTY, NO_BODY, head_of, wide
from ..automaton.states import append_to_items, framed, intern_state, items_of, plain_items, tail_of
from ..automaton.tables import DEAD, FRAMED, REC, STATE_MASK, Counter, Fault
from ..base.kinds import Kind
from ..numba_support.jit import inner
from .uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE
from .word_complement_masks import clear_spelled

_MAX_OTHERS = 16  # items beside the literals and the key
_FAR = 8  # characters before a byte that leads from a state back to itself


@inner
def excluded_of(arena, tables, operand):
    """The state whose items are the rests of the literals that an operand of an intersection excludes; DEAD when the
    operand is of another kind."""
    words = wide(DEAD)
    start, length = items_of(arena, tables, operand)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if item == EMPTY:
            continue
        if arena[tables.kind + REC * item] != Kind.PRODUCT or arena[tables.c + REC * item] != Kind.NEGATE:
            return wide(DEAD)
        words = wide(arena[tables.a + REC * item])
    start, length = items_of(arena, tables, words)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if item != EMPTY and arena[tables.kind + REC * item] != Kind.LITERAL:
            return wide(DEAD)
    return words


@inner
def without_exclusion(arena, tables, state):
    """(like, words, tail) of a state inside such a key. like: the state whose key may be one of the names too, without
    the literals of `state`; words: the state of the rests of the names; tail: what follows the key. `base_state` is DEAD
    where this is not done, and on a fault."""
    key, whole, words = named_key(arena, tables, state)
    tail = wide(arena[tables.b + REC * key])
    quote = single_byte(arena, tables, tail)
    if key == EMPTY or quote < 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD), words, tail
    start, length = plain_items(arena, tables, state)
    others, count, is_complete = np.empty(_MAX_OTHERS, np.int64), wide(0), False
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        is_complete |= item == tail
        if item in (key, tail) or arena[tables.kind + REC * head_of(arena, tables, item)] == Kind.LITERAL:
            continue
        if count == _MAX_OTHERS:
            return wide(DEAD), words, tail
        others[count] = item
        count += 1
    if (
        is_complete != product_accepts(arena, tables, head_of(arena, tables, key))
        or arena[tables.state_length + REC * whole] == FRAMED
    ):
        return wide(DEAD), words, tail
    if not may_exclude(arena, tables, whole, words, state_of_some(arena, tables, others, count), quote):
        return wide(DEAD), words, tail
    total = append_to_items(arena, tables, whole, tail)
    if arena[tables.state_accept + REC * whole] == 1:
        total = append_closure(arena, tables, tail, total)
    if arena[tables.n + Counter.FAULT] != Fault.NONE or total + count > tables.items_size:
        return wide(DEAD), words, tail
    for k in range(count):
        arena[tables.items + total + k] = others[k]
    body, outer = wide(arena[tables.state_body_class + REC * whole]), tail_of(arena, tables, state)
    base_state = intern_state(
        arena,
        tables,
        total + count,
        body,
        wide(arena[tables.state_max_chars + REC * whole]) if body != NO_BODY else wide(0),
    )
    return base_state if outer == EMPTY else framed(arena, tables, base_state, outer), words, tail


@inner
def named_key(arena, tables, state):
    """(item, whole, words): an item that begins with an intersection of the state `whole` and of any text but the rests
    of literals, the items of the state `words`. item: EMPTY when there is none. (The state has no body, so no other
    item has one.)"""
    if arena[tables.state_has_no_product + REC * state] == 1 or arena[tables.state_body_class + REC * state] != NO_BODY:
        return wide(EMPTY), wide(DEAD), wide(DEAD)
    start, length = plain_items(arena, tables, state)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        key = head_of(arena, tables, item)
        if arena[tables.kind + REC * key] != Kind.PRODUCT or arena[tables.c + REC * key] != Kind.BOTH or item == key:
            continue
        for side in range(2):
            operand, other = wide(arena[tables.a + REC * key]), wide(arena[tables.b + REC * key])
            words = excluded_of(arena, tables, other if side == 0 else operand)
            if words != DEAD:
                return item, operand if side == 0 else other, words
    return wide(EMPTY), wide(DEAD), wide(DEAD)


@inner
def single_byte(arena, tables, tail):
    """The byte with which a continuation begins if it begins with a class of one byte; else -1."""
    head = head_of(arena, tables, tail)
    if arena[tables.kind + REC * head] != Kind.CLASS or arena[tables.b + REC * head] != 1:
        return wide(-1)
    edge = wide(arena[tables.a + REC * head])
    return wide(arena[tables.edge_low + edge]) if arena[tables.edge_low + edge] == arena[tables.edge_high + edge] else wide(-1)


@inner
def state_of_some(arena, tables, items, count):
    """The state of some items, without a body."""
    for k in range(count):
        arena[tables.items + k] = items[k]
    return intern_state(arena, tables, count, wide(NO_BODY), wide(0))


@inner
def may_exclude(arena, tables, whole, words, others, quote):
    """Whether a text of the state `whole` is left behind any beginning of a word, and the state `others` reads no word."""
    start, length = items_of(arena, tables, words)
    known = wide(DEAD)
    for j in range(start, start + length):
        item, s, other = wide(arena[tables.pool + j]), wide(whole), wide(others)
        at, size = spelling(arena, tables, item)
        for k in range(size + 1):
            if s != known and s != DEAD:
                if not is_endless(arena, tables, s):
                    return False
                known = wide(s)
            byte = wide(arena[at + k]) if k < size else wide(quote)
            s, other = after(arena, tables, s, byte), after(arena, tables, other, byte)
            if s == DEAD and other == DEAD:
                break
        if s != DEAD or other != DEAD or arena[tables.n + Counter.FAULT] != Fault.NONE:
            return False
    return True


@inner
def after(arena, tables, s, byte):
    """The state behind a byte. Behind DEAD, DEAD."""
    return step(arena, tables, s, byte) & STATE_MASK if s != DEAD else wide(DEAD)


@inner
def is_endless(arena, tables, s):
    """Whether endlessly many texts begin in a state, as far as is found: some character leads from it, or from a state
    near it, back to where it is read."""
    for _ in range(_FAR):
        following = wide(DEAD)
        for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
            target = after(arena, tables, s, wide(byte))
            if target == s:
                return True
            following = target if following == DEAD else following
        if following == DEAD:
            return False
        s = following
    return False


@inner
def clear_excluded(arena, tables, vocab, rows, words, tail):
    """Note that tokens which spell the rest of a word and what follows it do not survive. tail: what follows, see
    `single_byte`."""
    quote = single_byte(arena, tables, tail)
    start, length = items_of(arena, tables, words)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        at, size = spelling(arena, tables, item)
        clear_spelled(arena, vocab, rows, at, size, quote)


@inner
def spelling(arena, tables, item):
    """(address in `arena`, number) of the bytes of a literal; no bytes for EMPTY."""
    return tables.text + wide(arena[tables.a + REC * item]), wide(arena[tables.b + REC * item]) if item != EMPTY else wide(0)
