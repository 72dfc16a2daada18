"""Masks inside a key that must be none of some names, made from the mask of any key.

A token survives in such a key as it does in any key, except the tokens that spell the rest of a name with its closing
quote: they are cleared, one subtree of the trie for each name. If a name may be written here, its tokens are set again,
with what comes behind it.

    names {age}:   mask of any key,  cleared: all tokens that begin with  age"

So no states are made for what the names spell. This is done in states whose items are one UNLISTED node with its tail,
and literals.
"""

from __future__ import annotations

from ..automaton.nodes import EMPTY, head_of, join
from ..automaton.states import framed, plain_items, state_of, tail_of
from ..automaton.tables import DEAD, Fault, Tables
from ..base.ids import NodeId, StateId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import ROOT, Vocab, below, child_of
from .mask_rows import clear_tokens


@inner
def state_of_any(m: Tables, state: StateId, unlisted: NodeId) -> StateId:
    """The state whose only item is the body of an UNLISTED node (any key), with the tail that the node has in `state`.
    DEAD on a fault."""
    start, length = plain_items(m, state)
    for j in range(start, start + length):
        item = m.pool[j]
        if head_of(m, item) == unlisted:
            tail = m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY
            base_state = state_of(m, join(m, m.nodes[unlisted].b, tail))
            outer = tail_of(m, state)
            return base_state if outer == EMPTY or m.n.fault != Fault.NONE else framed(m, base_state, outer)
    return DEAD


@inner
def clear_words(m: Tables, vocab: Vocab, rows: Words, unlisted: NodeId) -> None:
    """Note that tokens which spell the rest of a word do not survive. unlisted: the node that holds the words."""
    words = m.nodes[unlisted].a
    read = m.nodes[words].c
    for k in range(m.nodes[words].b):
        row = m.lists + m.nodes[words].a + 2 * k
        clear_spelled(vocab, rows, m.text + row[0] + read, row[1] - read)


@inner
def clear_spelled(vocab: Vocab, rows: Words, text: Words, size: int) -> None:
    """Note that tokens which begin with the bytes text[:size] do not survive."""
    trie, node = vocab.trie, ROOT
    for k in range(size):
        node = child_of(trie, node, text[k])
        if node < 0:
            return
    start, end = below(trie, node)
    clear_tokens(rows, start, end)
