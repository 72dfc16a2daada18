"""Words apart: where a walk comes to a state that reads any letters, and some words beside them, each word goes a way of its own.

Behind white space a programming language has names, and keywords. In the state there, few letters are read as the others are, so
thousands of tokens would be looked at that differ in nothing but letters, and a state would be made for every prefix of a keyword.
But a token survives from a state if it survives from one of its items. So what lies below a node of the trie is walked twice: from
the *rest*, the state without the words, which reads all letters alike, in the trie by groups of bytes; and along each word in the
trie of bytes, where a prefix of a word needs no state. Items that begin with few letters, such as the prefix of a string in Python,
are a state of their own, in the trie of bytes too.

    behind " ":  { letters then name-rest,  "return" then ...,  "while" then ... }
    the rest     { letters then name-rest }          from the node " " of the trie by groups
    the words    return, while                       from the node " " of the trie of bytes, then from what is behind them

JSON has no names beside words, so there nothing is looked at. The parts are put aside (`Apart` in tables.py), and `walk`
(trie_walk.py) walks one after the other.
"""

from __future__ import annotations

from enum import IntEnum

from ..automaton.determinize import step
from ..automaton.nodes import EMPTY, NO_BODY, NO_UNLISTED, head_of
from ..automaton.states import framed, intern_state, plain_items, state_of, tail_of
from ..automaton.tables import DEAD, MOST_APART, STATE_MASK, UNKNOWN, Fault, Tables
from ..base.ids import NodeId, Place, StateId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.byte_classes import LOWER, UPPER
from ..vocabulary.packed_records import ROOT, Trie, Vocab, child_of, ending_at
from .loop_context import leading_copies
from .mask_rows import set_tokens
from .shared_continuations import note_end

WORTH_APART = 256  # tokens below a node
_NO_NODE = -2
_MOST_WORDS = 64
_NUM_LETTERS = 26  # of a kind, small or capital


class Letters(IntEnum):
    """Which letters an item may begin with."""

    NONE = 0
    WORD = 1  # that of a literal
    FEW = 2  # of a class that has a part of the small ones, or of the capitals
    MANY = 3  # all small ones, or all capitals, or both; or that is not known


@inner
def put_aside(m: Tables, trie: Place, node: int, state: StateId) -> None:
    """Note that what lies below a node is to be walked from a state. There has to be room."""
    part = m.apart[m.n.num_apart]
    part.trie, part.node, part.state = trie, node, state
    m.n.num_apart += 1


@inner
def put_apart(m: Tables, vocab: Vocab, rows: Words, trie: Trie, node: int, state: StateId) -> bool:
    """Put aside what lies below a node of the trie of all tokens, of bytes or by groups, if `state` reads letters there, and all of
    them alike but for words and what begins with few letters; or nothing but words. Notes the tokens that are prefixes of words.
    False where this is not so, and on a fault."""
    is_whole = trie.place == vocab.trie.place or trie.place == vocab.grouped.place
    has_room = m.n.num_apart + _MOST_WORDS + 2 <= MOST_APART
    is_plain = m.states[state].unlisted == NO_UNLISTED and m.states[state].has_no_product == 1 and m.n.only_json == 0
    if not is_whole or not has_room or not is_plain or not are_apart(m, state):
        return False
    rest = without_words(m, state)
    if m.n.fault != Fault.NONE or rest == state and trie.is_grouped or rest != DEAD and not reads_letters_alike(m, rest):
        return False
    in_bytes = node if not trie.is_grouped else same_path(vocab, trie, node, vocab.trie)
    in_groups = node if trie.is_grouped else same_path(vocab, trie, node, vocab.grouped)
    if in_bytes == _NO_NODE or in_groups == _NO_NODE:
        return False
    if rest != DEAD:
        put_aside(m, vocab.grouped.place, in_groups, rest)
    if rest != state:
        few = of_kind(m, state, Letters.FEW, Letters.FEW)
        if few != DEAD:
            put_aside(m, vocab.trie.place, in_bytes, few)
        start, length = plain_items(m, state)
        for j in range(start, start + length):
            if letters_of(m, m.pool[j]) == Letters.WORD and m.n.fault == Fault.NONE:
                put_word(m, vocab, rows, in_bytes, m.pool[j], tail_of(m, state))
    return m.n.fault == Fault.NONE


@inner
def letters_of(m: Tables, item: NodeId) -> int:
    """Which letters an item may begin with, as one of `Letters`."""
    if item == EMPTY:
        return Letters.NONE
    head = m.nodes[head_of(m, item)]
    if head.kind == Kind.LITERAL:
        first = m.text[head.a]
        is_letter = LOWER <= first < LOWER + _NUM_LETTERS or UPPER <= first < UPPER + _NUM_LETTERS
        return Letters.WORD if is_letter else Letters.NONE
    if head.kind != Kind.CLASS:
        return Letters.MANY
    lower = upper = 0
    for e in range(head.a, head.a + head.b):
        low, high = m.edge_low[e], m.edge_high[e]
        lower += max(min(high, LOWER + _NUM_LETTERS - 1) - max(low, LOWER) + 1, 0)
        upper += max(min(high, UPPER + _NUM_LETTERS - 1) - max(low, UPPER) + 1, 0)
    if lower == 0 and upper == 0:
        return Letters.NONE
    return Letters.MANY if lower % _NUM_LETTERS == 0 and upper % _NUM_LETTERS == 0 else Letters.FEW


@inner
def are_apart(m: Tables, state: StateId) -> bool:
    """Whether a state has items that begin with any letter, and not too many words; or nothing but words, several of them."""
    start, length = plain_items(m, state)
    num_words = num_many = 0
    for j in range(start, start + length):
        letters = letters_of(m, m.pool[j])
        num_words += 1 if letters == Letters.WORD else 0
        num_many += 1 if letters == Letters.MANY else 0
    return num_words <= _MOST_WORDS and (num_many > 0 or num_words == length and length > 1)


@inner
def without_words(m: Tables, state: StateId) -> StateId:
    """The state of the items that begin with any letter, or with none; `state` itself where all do, DEAD where none does."""
    return of_kind(m, state, Letters.NONE, Letters.MANY)


@inner
def of_kind(m: Tables, state: StateId, kind: int, other: int) -> StateId:
    """The state of those items of which `letters_of` says one of two things; `state` itself where these are all, or are too many to
    look at, DEAD where there are none, and on a fault. It loops on what its items repeat: where words alone are left out, on what
    `state` does."""
    start, length = plain_items(m, state)
    count, is_body_kept = 0, True
    body, max_chars = NO_BODY, 0
    if length > m.items_size:
        return state
    for j in range(start, start + length):
        item = m.pool[j]
        letters = letters_of(m, item)
        if letters == kind or letters == other:
            m.items[count] = item
            count += 1
            unit = m.nodes[head_of(m, item)].body_class
            more = leading_copies(m, m.nodes[item].b, unit) if unit != NO_BODY and m.nodes[item].kind == Kind.SEQ else 0
            if more > 0 and more >= max_chars:
                body, max_chars = unit, 1 + more
        elif letters != Letters.WORD:
            is_body_kept = False
    if count == length:
        return state
    if is_body_kept:
        body, max_chars = m.states[state].body_class, m.states[state].max_chars
    found = intern_state(m, count, body, max_chars, NO_UNLISTED)
    return found if m.states[state].frame == 0 else framed(m, found, tail_of(m, state))


@inner
def put_word(m: Tables, vocab: Vocab, rows: Words, node: int, item: NodeId, tail: NodeId) -> None:
    """Note the tokens below a node that are prefixes of the literal with which an item begins, and put aside what lies behind it.
    tail: behind the item, EMPTY for none."""
    trie, literal = vocab.trie, m.nodes[head_of(m, item)]
    text = m.text + literal.a
    for k in range(literal.b):
        node = child_of(trie, node, text[k])
        if node < 0:
            return
        start, end = ending_at(trie, node)
        set_tokens(rows, start, end)
    if trie.nodes[node].skip == node + 1:
        return
    after = state_of(m, m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY)
    if tail != EMPTY:
        after = framed(m, after, tail)
    if m.n.fault != Fault.NONE:
        return
    if m.states[after].accept == 1:
        note_end(m, trie, node)
    put_aside(m, trie.place, node, after)


@inner
def same_path(vocab: Vocab, trie: Trie, node: int, other: Trie) -> int:
    """The node of another trie to which the same bytes lead; _NO_NODE where one of them has others in its group."""
    if node == ROOT:
        return ROOT
    start, at = text_above(vocab, trie, node), ROOT
    for k in range(start, start + trie.nodes[node].depth):
        byte = vocab.text[k]
        if vocab.grouped.group_ends[byte] != byte + 1 or byte > 0 and vocab.grouped.group_ends[byte - 1] > byte:
            return _NO_NODE
        at = child_of(other, at, byte)
        if at < 0:
            return _NO_NODE
    return at


@inner
def text_above(vocab: Vocab, trie: Trie, node: int) -> int:
    """Where in `vocab.text` the bytes of a token are that begins with those above a node."""
    return vocab.text_offsets[vocab.array[trie.order + trie.nodes[node].first]]


@inner
def reads_letters_alike(m: Tables, state: StateId) -> bool:
    """Whether a state reads letters, and reads them all alike, and so do the states to which they lead."""
    if m.next[state * 256 + LOWER] == DEAD and m.next[state * 256 + UPPER] == DEAD:
        return False
    s = state
    for _ in range(3):
        for first in (LOWER, UPPER):
            if not reads_alike(m, s, first, first + _NUM_LETTERS):
                return False
        first = LOWER if m.next[s * 256 + LOWER] != DEAD else UPPER
        s = m.next[s * 256 + first] & STATE_MASK
    return True


@inner
def reads_alike(m: Tables, state: StateId, first: int, end: int) -> bool:
    """Whether a state has the same transition on all bytes of first..end. False on a fault."""
    row = m.next + state * 256
    for byte in range(first, end):
        if row[byte] == UNKNOWN:
            step(m, state, byte)
            if m.n.fault != Fault.NONE:
                return False
        if row[byte] != row[first]:
            return False
    return True
