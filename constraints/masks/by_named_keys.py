"""A strategy: in a state with several literals, such as the names that a key may have, the row of the state without them.

Condition: the state has a key that excludes names by an intersection (`without_exclusion`), or several literals
(`without_literals`); and its row does not follow from a frame's inner state already.
Why it is right: each literal is walked by itself, and the tokens that spell an excluded name are cleared
(pattern_complement_masks.py). The other state is often the same behind each of the names.
What it saves: where it applies, in "patterned" of test_strategies.py, 1,382 trie nodes are visited without it and 813 with it. Few
schemas have such keys: over 300 real ones 156,268 states are made without it and 154,495 with it, and masks take as long.
"""

from __future__ import annotations

from typing import Any

from ..automaton.tables import DEAD, Fault, Tables
from ..base.ids import StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .mask_rows import begin, has_too_many_edits
from .pattern_complement_masks import clear_excluded, without_exclusion
from .shared_continuations import has_known_inner
from .strategy_contract import Told
from .trie_walk import walk_literals, without_literals


def by_named_keys(row_by_later: Any) -> Any:
    @inner
    def describe(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
        if completable != 0 or has_known_inner(m, state):
            return Told.DECLINED
        base_state, words, tail = without_exclusion(m, state)
        if base_state == DEAD and m.n.fault == Fault.NONE and m.states[state].frame == 0:
            base_state, words = without_literals(m, state), DEAD
        if base_state == DEAD or base_state == state or m.n.fault != Fault.NONE:
            return Told.DECLINED
        begin(rows, row_by_later(m, vocab, rows, base_state, 0), 0)
        if m.n.fault != Fault.NONE:
            return Told.DECLINED
        if words != DEAD:
            clear_excluded(m, vocab, rows, words, tail)
        m.states[state].events |= m.states[base_state].events
        walk_literals(m, vocab, rows, state, False)
        return Told.DECLINED if has_too_many_edits(rows) else Told.DESCRIBED

    return describe
