"""A strategy: the row of the state without the tail behind all its items, and what survives from the tail behind its ends.

Condition: all items end with one tail, and the state without it was met before (`without_tail`); it cannot be complete inside of
its body, where there would be an end at each of the many prefixes of tokens; and not too many tokens lie behind the ends.
Why it is right: a token survives before the tail is reached, or completes what stands before it and goes on in the tail
(shared_continuations.py).
What it saves: over 100 real schemas (131,072 tokens, masks met first) 1,549,514 trie nodes are visited without it and 427,336 with
it, 83,872 and 61,299 states are made, 4.3 and 3.4 us a mask.
"""

from __future__ import annotations

from ..automaton.nodes import EMPTY
from ..automaton.states import state_of
from ..automaton.tables import DEAD, Fault, Tables
from ..base.ids import StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.byte_classes import LOWER, UPPER
from ..vocabulary.packed_records import Vocab, below, trie_of
from .apart import reads_alike
from .by_endless_body import by_endless_body
from .by_own_walk import row_and_ends
from .class_masks import MANY_TOKENS, body_of
from .mask_rows import begin, clear_tokens, has_too_many_edits
from .shared_continuations import are_ends_known, common_tail, completes_inside, end_of, ends_of, without_tail
from .strategy_contract import Strategy, Told, keep_row
from .trie_walk import walk, walk_rest


@inner
def by_shared_tail(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
    tail = common_tail(m, state) if completable == 0 else EMPTY
    before = without_tail(m, state, tail) if tail != EMPTY else DEAD
    if before == DEAD or m.states[before].accept == 1:
        return Told.DECLINED
    if completes_inside(m, before, body_of(m, before)) or completes_inside(m, before, body_of(m, state)):
        return Told.DECLINED
    if not are_ends_known(m, before) or m.states[before].row == 0:
        find_ends(m, vocab, rows, before)
    if m.states[before].has_too_many_ends == 1 or m.n.fault != Fault.NONE:
        return Told.DECLINED
    ends = ends_of(m, before)
    following = state_of(m, tail) if ends.count > 0 else DEAD
    if m.n.fault != Fault.NONE:
        return Told.DECLINED
    if following != DEAD and has_to_look_at_many(m, vocab, before, following):
        return Told.DECLINED
    begin(rows, m.states[before].row, 0)
    for k in range(ends.count):
        end = end_of(m, before, k)
        if end.trie == 0:
            walk_rest(m, vocab, rows, end.token, end.offset, following)
        else:
            walk(m, vocab, rows, trie_of(vocab, end.trie), end.node, following)
    clear_tokens(rows, ends.cleared, ends.kept)
    clear_tokens(rows, ends.kept_end, ends.cleared_end)
    if has_too_many_edits(rows):
        return Told.DECLINED
    m.states[state].events = m.states[before].events
    if following != DEAD:
        m.states[state].events |= m.states[following].events
    return Told.DESCRIBED


@inner
def has_to_look_at_many(m: Tables, vocab: Vocab, before: StateId, state: StateId) -> bool:
    """Whether a state tells letters apart, and many tokens lie behind the ends of the state `before` in the trie by groups."""
    if reads_alike(m, state, LOWER, LOWER + 26) and reads_alike(m, state, UPPER, UPPER + 26):
        return False
    tokens = 0
    for k in range(ends_of(m, before).count):
        end = end_of(m, before, k)
        if end.trie == vocab.grouped.place:
            first, last = below(vocab.grouped, end.node)
            tokens += last - first
    return tokens > MANY_TOKENS


@inner
def find_ends(m: Tables, vocab: Vocab, rows: Words, state: StateId) -> None:
    """Make the row of a state, and find its ends. The ends outlive the row, see `TokenAutomaton.drop_rows`."""
    if m.n.strategies_off & Strategy.ENDLESS_BODY == 0 and by_endless_body(m, vocab, rows, state, 0) == Told.DESCRIBED:
        keep_row(m, vocab, rows, state, 0)
    else:
        row_and_ends(m, vocab, rows, state)
