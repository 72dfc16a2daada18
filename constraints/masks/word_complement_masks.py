"""Masks inside a key that is none of some names, from the mask of any key.

A token survives in such a key as in any key, but for those that spell the rest of a name, with its closing quote: these are
cleared, a subtree of the trie for each name, and set again if the name is one that may be written here, with what comes behind it.

So no states are made for what the names spell. This is done in a state whose items are one UNLISTED with its tail, and literals.
"""

from __future__ import annotations

from ..automaton.nodes import EMPTY, NO_BODY, SEQ, join, leaf, wide
from ..automaton.states import framed, plain_items, state_of, tail_of
from ..automaton.tables import DEAD, FAULT, NO_FAULT, REC
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import NODE_WIDTH, NODES, ORDER, TRIE, child_of
from .mask_rows import clear_tokens


@inner
def unlisted_of(m, t, state):
    """The UNLISTED node of a state beside which it has literals only; 0 when there is none."""
    return wide(m[t.state_radius + REC * state]) if m[t.state_body + REC * state] == NO_BODY else wide(0)


@inner
def state_of_any(m, t, state, unlisted):
    """The state that has the body of the UNLISTED node, with its tail, as its only item. DEAD on a fault."""
    start, length = plain_items(m, t, state)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if leaf(m, t, item) == unlisted:
            tail = wide(m[t.b + REC * item]) if m[t.kind + REC * item] == SEQ else wide(EMPTY)
            like = state_of(m, t, join(m, t, wide(m[t.b + REC * unlisted]), tail))
            outer = tail_of(m, t, state)
            return like if outer == EMPTY or m[t.n + FAULT] != NO_FAULT else framed(m, t, like, outer)
    return wide(DEAD)


@inner
def clear_words(m, t, v, r, unlisted):
    """Note that tokens which spell the rest of a word do not survive."""
    words = wide(m[t.a + REC * unlisted])
    read = wide(m[t.c + REC * words])
    for k in range(m[t.b + REC * words]):
        row = t.lists + wide(m[t.a + REC * words]) + 2 * k
        clear_spelled(m, v, r, t.text + wide(m[row]) + read, wide(m[row + 1]) - read, wide(-1))


@inner
def clear_spelled(m, v, r, at, size, last):
    """Note that tokens which begin with m[at : at + size], and then the byte `last` unless that is -1, do not survive."""
    trie, node = wide(v[TRIE]), wide(-1)
    nodes, order = wide(v[trie + NODES]), wide(v[trie + ORDER])
    for k in range(size if last < 0 else size + 1):
        node = child_of(v, trie, node, wide(m[at + k]) if k < size else wide(last))
        if node < 0:
            return
    if node >= 0:
        skip = wide(v[nodes + NODE_WIDTH * node + 2])
        clear_tokens(r, order + v[nodes + NODE_WIDTH * node + 3], order + v[nodes + NODE_WIDTH * skip + 3])
