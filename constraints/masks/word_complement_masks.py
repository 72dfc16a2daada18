"""Masks inside a key that must be none of some names, made from the mask of any key.

A token survives in such a key as it does in any key, except the tokens that spell the rest of a name with its closing
quote: they are cleared, one subtree of the trie for each name. If a name may be written here, its tokens are set again,
with what comes behind it.

    names {age}:   mask of any key,  cleared: all tokens that begin with  age"

So no states are made for what the names spell. This is done in states whose items are one UNLISTED node with its tail,
and literals.
"""

from __future__ import annotations

from ..automaton.nodes import EMPTY, NO_BODY, head_of, join, wide
from ..automaton.states import framed, plain_items, state_of, tail_of
from ..automaton.tables import DEAD, REC, Counter, Fault
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import NODE_WIDTH, Header, TrieRecord, child_of
from .mask_rows import clear_tokens


@inner
def unlisted_of(arena, tables, state):
    """The UNLISTED node of a state, if all its other items begin with literals; 0 when there is none."""
    return wide(arena[tables.state_max_chars + REC * state]) if arena[tables.state_body_class + REC * state] == NO_BODY else wide(0)


@inner
def state_of_any(arena, tables, state, unlisted):
    """The state whose only item is the body of an UNLISTED node (any key), with the tail that the node has in `state`.
    DEAD on a fault."""
    start, length = plain_items(arena, tables, state)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if head_of(arena, tables, item) == unlisted:
            tail = wide(arena[tables.b + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else wide(EMPTY)
            base_state = state_of(arena, tables, join(arena, tables, wide(arena[tables.b + REC * unlisted]), tail))
            outer = tail_of(arena, tables, state)
            return (
                base_state
                if outer == EMPTY or arena[tables.n + Counter.FAULT] != Fault.NONE
                else framed(arena, tables, base_state, outer)
            )
    return wide(DEAD)


@inner
def clear_words(arena, tables, vocab, rows, unlisted):
    """Note that tokens which spell the rest of a word do not survive. unlisted: the node that holds the words."""
    words = wide(arena[tables.a + REC * unlisted])
    read = wide(arena[tables.c + REC * words])
    for k in range(arena[tables.b + REC * words]):
        row = tables.lists + wide(arena[tables.a + REC * words]) + 2 * k
        clear_spelled(arena, vocab, rows, tables.text + wide(arena[row]) + read, wide(arena[row + 1]) - read, wide(-1))


@inner
def clear_spelled(arena, vocab, rows, at, size, last):
    """Note that tokens which begin with the bytes arena[at : at + size], and then the byte `last` unless that is -1, do not
    survive."""
    trie, node = wide(vocab[Header.TRIE]), wide(-1)
    nodes, order = wide(vocab[trie + TrieRecord.NODES]), wide(vocab[trie + TrieRecord.ORDER])
    for k in range(size if last < 0 else size + 1):
        node = child_of(vocab, trie, node, wide(arena[at + k]) if k < size else wide(last))
        if node < 0:
            return
    if node >= 0:
        skip = wide(vocab[nodes + NODE_WIDTH * node + 2])
        clear_tokens(rows, order + vocab[nodes + NODE_WIDTH * node + 3], order + vocab[nodes + NODE_WIDTH * skip + 3])
