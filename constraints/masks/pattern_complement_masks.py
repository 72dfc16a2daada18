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
from numpy.typing import NDArray

from ..automaton.closures import append_closure
from ..automaton.determinize import product_accepts, step
from ..automaton.nodes import EMPTY, NO_BODY, NO_UNLISTED, head_of
from ..automaton.states import append_to_items, framed, intern_state, items_of, plain_items, tail_of
from ..automaton.tables import DEAD, STATE_MASK, Fault, Tables
from ..base.ids import NodeId, StateId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE
from .word_complement_masks import clear_spelled

_MAX_OTHERS = 16  # items beside the literals and the key
_FAR = 8  # characters before a byte that leads from a state back to itself


@inner
def excluded_of(m: Tables, operand: StateId) -> StateId:
    """The state whose items are the rests of the literals that an operand of an intersection excludes; DEAD when the
    operand is of another kind."""
    words = DEAD
    start, length = items_of(m, operand)
    for j in range(start, start + length):
        item = m.pool[j]
        if item == EMPTY:
            continue
        if m.nodes[item].kind != Kind.PRODUCT or m.nodes[item].c != Kind.NEGATE:
            return DEAD
        words = m.nodes[item].a
    start, length = items_of(m, words)
    for j in range(start, start + length):
        item = m.pool[j]
        if item != EMPTY and m.nodes[item].kind != Kind.LITERAL:
            return DEAD
    return words


@inner
def without_exclusion(m: Tables, state: StateId) -> tuple[StateId, StateId, NodeId]:
    """(like, words, tail) of a state inside such a key. like: the state whose key may be one of the names too, without
    the literals of `state`; words: the state of the rests of the names; tail: what follows the key. `base_state` is DEAD
    where this is not done, and on a fault."""
    key, whole, words = named_key(m, state)
    tail = m.nodes[key].b
    quote = single_byte(m, tail)
    if key == EMPTY or quote < 0 or m.n.fault != Fault.NONE:
        return DEAD, words, tail
    start, length = plain_items(m, state)
    others, count, is_complete = np.empty(_MAX_OTHERS, np.int64), 0, False
    for j in range(start, start + length):
        item = m.pool[j]
        is_complete |= item == tail
        if item in (key, tail) or m.nodes[head_of(m, item)].kind == Kind.LITERAL:
            continue
        if count == _MAX_OTHERS:
            return DEAD, words, tail
        others[count] = item
        count += 1
    if is_complete != product_accepts(m, head_of(m, key)) or m.states[whole].frame != 0:
        return DEAD, words, tail
    if not may_exclude(m, whole, words, state_of_some(m, others, count), quote):
        return DEAD, words, tail
    total = append_to_items(m, whole, tail)
    if m.states[whole].accept == 1:
        total = append_closure(m, tail, total)
    if m.n.fault != Fault.NONE or total + count > m.items_size:
        return DEAD, words, tail
    for k in range(count):
        m.items[total + k] = others[k]
    body, outer = m.states[whole].body_class, tail_of(m, state)
    base_state = intern_state(m, total + count, body, m.states[whole].max_chars, NO_UNLISTED)
    return (base_state if outer == EMPTY else framed(m, base_state, outer)), words, tail


@inner
def named_key(m: Tables, state: StateId) -> tuple[NodeId, StateId, StateId]:
    """(item, whole, words): an item that begins with an intersection of the state `whole` and of any text but the rests
    of literals, the items of the state `words`. item: EMPTY when there is none. (The state has no body, so no other
    item has one.)"""
    if m.states[state].has_no_product == 1 or m.states[state].body_class != NO_BODY:
        return EMPTY, DEAD, DEAD
    start, length = plain_items(m, state)
    for j in range(start, start + length):
        item = m.pool[j]
        key = head_of(m, item)
        if m.nodes[key].kind != Kind.PRODUCT or m.nodes[key].c != Kind.BOTH or item == key:
            continue
        for side in range(2):
            operand, other = m.nodes[key].a, m.nodes[key].b
            words = excluded_of(m, other if side == 0 else operand)
            if words != DEAD:
                return item, operand if side == 0 else other, words
    return EMPTY, DEAD, DEAD


@inner
def single_byte(m: Tables, tail: NodeId) -> int:
    """The byte with which a continuation begins if it begins with a class of one byte; else -1."""
    head = head_of(m, tail)
    if m.nodes[head].kind != Kind.CLASS or m.nodes[head].b != 1:
        return -1
    edge = m.nodes[head].a
    return m.edge_low[edge] if m.edge_low[edge] == m.edge_high[edge] else -1


@inner
def state_of_some(m: Tables, items: NDArray[np.int64], count: int) -> StateId:
    """The state of some items, without a body."""
    for k in range(count):
        m.items[k] = items[k]
    return intern_state(m, count, NO_BODY, 0, NO_UNLISTED)


@inner
def may_exclude(m: Tables, whole: StateId, words: StateId, others: StateId, quote: int) -> bool:
    """Whether a text of the state `whole` is left behind any beginning of a word, and the state `others` reads no word."""
    start, length = items_of(m, words)
    known = DEAD
    for j in range(start, start + length):
        item, s, other = m.pool[j], whole, others
        at, size = spelling(m, item)
        for k in range(size + 1):
            if s != known and s != DEAD:
                if not is_endless(m, s):
                    return False
                known = s
            byte = at[k] if k < size else quote
            s, other = after(m, s, byte), after(m, other, byte)
            if s == DEAD and other == DEAD:
                break
        if s != DEAD or other != DEAD or m.n.fault != Fault.NONE:
            return False
    return True


@inner
def after(m: Tables, s: StateId, byte: int) -> StateId:
    """The state behind a byte. Behind DEAD, DEAD."""
    return StateId(step(m, s, byte) & STATE_MASK) if s != DEAD else DEAD


@inner
def is_endless(m: Tables, s: StateId) -> bool:
    """Whether endlessly many texts begin in a state, as far as is found: some character leads from it, or from a state
    near it, back to where it is read."""
    for _ in range(_FAR):
        following = DEAD
        for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
            target = after(m, s, byte)
            if target == s:
                return True
            following = target if following == DEAD else following
        if following == DEAD:
            return False
        s = following
    return False


@inner
def clear_excluded(m: Tables, vocab: Vocab, rows: Words, words: StateId, tail: NodeId) -> None:
    """Note that tokens which spell the rest of a word and what follows it do not survive. tail: what follows, see
    `single_byte`."""
    quote = single_byte(m, tail)
    start, length = items_of(m, words)
    for j in range(start, start + length):
        item = m.pool[j]
        at, size = spelling(m, item)
        clear_spelled(vocab, rows, at, size, quote)


@inner
def spelling(m: Tables, item: NodeId) -> tuple[Words, int]:
    """(first, number) of the bytes of a literal; no bytes for EMPTY."""
    return m.text + m.nodes[item].a, (m.nodes[item].b if item != EMPTY else 0)
