"""A strategy: the row of the endless body where most characters lead, and the tokens on which the two states differ.

Condition: most printable characters lead from the state to one other state, which is an endless body (`similar_state`). Inside a
key that may still become one of several names, any other character leads into the body of all other keys.
Why it is right: the two are walked in step, and only where they are apart (`walk_difference`, trie_walk.py).
What it saves: where it applies, in "other" of test_strategies.py, 1,630 trie nodes are visited without it and 1,299 with it. It
rarely does: over 300 real schemas 156,061 states are made without it and 154,495 with it, and masks take as long.
"""

from __future__ import annotations

from typing import Any

from ..automaton.closures import ENDLESS
from ..automaton.tables import DEAD, Fault, Tables
from ..base.ids import StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .class_masks import string_class
from .mask_rows import begin
from .shared_continuations import has_known_inner
from .strategy_contract import Told
from .trie_walk import walk_difference
from .uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE, majority


def by_similar_state(row_by_later: Any) -> Any:
    @inner
    def describe(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
        if completable != 0 or has_known_inner(m, state):
            return Told.DECLINED
        base_state = similar_state(m, vocab, state)
        if base_state == DEAD:
            return Told.DECLINED
        begin(rows, row_by_later(m, vocab, rows, base_state, 0), 0)
        if m.n.fault != Fault.NONE:
            return Told.DECLINED
        return Told.DESCRIBED if walk_difference(m, vocab, rows, state, base_state) else Told.DECLINED

    return describe


@inner
def similar_state(m: Tables, vocab: Vocab, state: StateId) -> StateId:
    """The state where most characters lead to from `state`, if it is an endless body; DEAD when there is none, and on a
    fault."""
    if m.states[state].body_class >= 0 or m.states[state].literal_left > 0 or not reads_most(m, state):
        return DEAD
    base_state, votes = majority(m, state), 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        votes += 1 if m.next[state * 256 + byte] == base_state else -1
    if votes < 0 or m.n.fault != Fault.NONE:
        return DEAD
    is_endless = m.states[base_state].body_class >= 0 and m.states[base_state].max_chars >= ENDLESS
    return base_state if base_state != state and (is_endless or string_class(m, vocab, base_state) != 0) else DEAD


@inner
def reads_most(m: Tables, state: StateId) -> bool:
    """Whether a state may read more than half of the printable characters."""
    live = 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        live += 1 if m.next[state * 256 + byte] != DEAD else 0
    return 2 * live > LAST_PRINTABLE + 1 - FIRST_PRINTABLE
