"""Masks inside a key of a pattern that is none of some names, from the mask of any key of the pattern.

Where patterns tell keys apart, a key beside the names that an object lists is an intersection: what the patterns say, and no text
out of some literals. As in word_complement_masks.py, the mask is made of that of any key of the pattern, and the tokens that spell the
rest of a name and its closing quote are cleared. The former is often the same behind each name, and no states are made of names.

This is done where a text of the pattern is left behind any beginning of a name that has not yet been read, because there are
endlessly many, and where nothing else reads the names but the literals of the state.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import gather
from ..automaton.determinize import product_accepts, step
from ..automaton.nodes import BOTH, CLASS, EMPTY, LITERAL, NEGATE, NO_BODY, PRODUCT, leaf, wide
from ..automaton.states import append_to_items, framed, intern_state, items_of, plain_items, tail_of
from ..automaton.tables import DEAD, FAULT, FRAMED, NO_FAULT, REC, STATE_MASK
from ..numba_support.jit import inner
from .uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE
from .word_complement_masks import clear_spelled

_MAX_OTHERS = 16  # items beside the literals and the key
_FAR = 8  # characters before a byte that leads from a state back to itself


@inner
def excluded_of(m, t, operand):
    """The state of the rests of literals that an operand of an intersection excludes; DEAD when it is something else."""
    words = wide(DEAD)
    start, length = items_of(m, t, operand)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if item == EMPTY:
            continue
        if m[t.kind + REC * item] != PRODUCT or m[t.c + REC * item] != NEGATE:
            return wide(DEAD)
        words = wide(m[t.a + REC * item])
    start, length = items_of(m, t, words)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if item != EMPTY and m[t.kind + REC * item] != LITERAL:
            return wide(DEAD)
    return words


@inner
def without_exclusion(m, t, state):
    """(like, words, tail): the state whose key may be one of the names too, without the literals of `state`; the state of the rests
    of the names; what follows the key. `like` is DEAD where this is not done, and on a fault."""
    key, whole, words = named_key(m, t, state)
    tail = wide(m[t.b + REC * key])
    quote = single_byte(m, t, tail)
    if key == EMPTY or quote < 0 or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD), words, tail
    start, length = plain_items(m, t, state)
    others, count, is_complete = np.empty(_MAX_OTHERS, np.int64), wide(0), False
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        is_complete |= item == tail
        if item in (key, tail) or m[t.kind + REC * leaf(m, t, item)] == LITERAL:
            continue
        if count == _MAX_OTHERS:
            return wide(DEAD), words, tail
        others[count] = item
        count += 1
    if is_complete != product_accepts(m, t, leaf(m, t, key)) or m[t.state_length + REC * whole] == FRAMED:
        return wide(DEAD), words, tail
    if not may_exclude(m, t, whole, words, state_of_some(m, t, others, count), quote):
        return wide(DEAD), words, tail
    total = append_to_items(m, t, whole, tail)
    if m[t.state_accept + REC * whole] == 1:
        total = gather(m, t, tail, total)
    if m[t.n + FAULT] != NO_FAULT or total + count > t.items_size:
        return wide(DEAD), words, tail
    for k in range(count):
        m[t.items + total + k] = others[k]
    body, outer = wide(m[t.state_body + REC * whole]), tail_of(m, t, state)
    like = intern_state(m, t, total + count, body, wide(m[t.state_radius + REC * whole]) if body != NO_BODY else wide(0))
    return like if outer == EMPTY else framed(m, t, like, outer), words, tail


@inner
def named_key(m, t, state):
    """(item, whole, words): an item that begins with an intersection of the state `whole` and what the rests of literals, the state
    `words`, are excluded from. item: EMPTY when there is none. (The state has no body, so no other item has one.)"""
    if m[t.state_flat + REC * state] == 1 or m[t.state_body + REC * state] != NO_BODY:
        return wide(EMPTY), wide(DEAD), wide(DEAD)
    start, length = plain_items(m, t, state)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        key = leaf(m, t, item)
        if m[t.kind + REC * key] != PRODUCT or m[t.c + REC * key] != BOTH or item == key:
            continue
        for side in range(2):
            operand, other = wide(m[t.a + REC * key]), wide(m[t.b + REC * key])
            words = excluded_of(m, t, other if side == 0 else operand)
            if words != DEAD:
                return item, operand if side == 0 else other, words
    return wide(EMPTY), wide(DEAD), wide(DEAD)


@inner
def single_byte(m, t, tail):
    """The only byte that a continuation begins with, -1 when it is not a class of one byte."""
    head = leaf(m, t, tail)
    if m[t.kind + REC * head] != CLASS or m[t.b + REC * head] != 1:
        return wide(-1)
    edge = wide(m[t.a + REC * head])
    return wide(m[t.edge_low + edge]) if m[t.edge_low + edge] == m[t.edge_high + edge] else wide(-1)


@inner
def state_of_some(m, t, items, count):
    for k in range(count):
        m[t.items + k] = items[k]
    return intern_state(m, t, count, wide(NO_BODY), wide(0))


@inner
def may_exclude(m, t, whole, words, others, quote):
    """Whether a text of the state `whole` is left behind any beginning of a word, and the state `others` reads no word."""
    start, length = items_of(m, t, words)
    known = wide(DEAD)
    for j in range(start, start + length):
        item, s, other = wide(m[t.pool + j]), wide(whole), wide(others)
        at, size = spelling(m, t, item)
        for k in range(size + 1):
            if s != known and s != DEAD:
                if not is_endless(m, t, s):
                    return False
                known = wide(s)
            byte = wide(m[at + k]) if k < size else wide(quote)
            s, other = after(m, t, s, byte), after(m, t, other, byte)
            if s == DEAD and other == DEAD:
                break
        if s != DEAD or other != DEAD or m[t.n + FAULT] != NO_FAULT:
            return False
    return True


@inner
def after(m, t, s, byte):
    """The state after a byte, DEAD after DEAD."""
    return step(m, t, s, byte) & STATE_MASK if s != DEAD else wide(DEAD)


@inner
def is_endless(m, t, s):
    """Whether a state is found from which there are endlessly many texts: some character leads back to it."""
    for _ in range(_FAR):
        following = wide(DEAD)
        for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
            target = after(m, t, s, wide(byte))
            if target == s:
                return True
            following = target if following == DEAD else following
        if following == DEAD:
            return False
        s = following
    return False


@inner
def clear_excluded(m, t, v, r, words, tail):
    """Note that tokens which spell the rest of a word and what follows it do not survive. tail: what follows, see `single_byte`."""
    quote = single_byte(m, t, tail)
    start, length = items_of(m, t, words)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        at, size = spelling(m, t, item)
        clear_spelled(m, v, r, at, size, quote)


@inner
def spelling(m, t, item):
    """(address in `m`, number) of the bytes of a literal, or of EMPTY."""
    return t.text + wide(m[t.a + REC * item]), wide(m[t.b + REC * item]) if item != EMPTY else wide(0)
