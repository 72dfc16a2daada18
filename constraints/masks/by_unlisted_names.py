"""A strategy: inside a key that must be none of some names, the row of any key, without the tokens that spell a name.

Condition: all items of the state are one UNLISTED node with its tail, and literals (`StateRecord.unlisted`).
Why it is right: such a key reads what any key reads, but not the rest of a name with its quote (word_complement_masks.py).
What it saves: over 100 real schemas (131,072 tokens, masks met first) 1,083,886 trie nodes are visited without it and 427,336 with
it, 4.1 and 3.4 us a mask.
"""

from __future__ import annotations

from typing import Any

from ..automaton.tables import DEAD, Fault, Tables
from ..base.ids import StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .mask_rows import begin, has_too_many_edits
from .strategy_contract import Told
from .trie_walk import walk_literals
from .word_complement_masks import clear_words, state_of_any


def by_unlisted_names(row_by_later: Any) -> Any:
    @inner
    def describe(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
        unlisted = m.states[state].unlisted
        if completable != 0 or unlisted == 0:
            return Told.DECLINED
        base_state = state_of_any(m, state, unlisted)
        if base_state == DEAD or m.n.fault != Fault.NONE:
            return Told.DECLINED
        begin(rows, row_by_later(m, vocab, rows, base_state, 0), 0)
        if m.n.fault != Fault.NONE:
            return Told.DECLINED
        clear_words(m, vocab, rows, unlisted)
        m.states[state].events |= m.states[base_state].events
        walk_literals(m, vocab, rows, state, True)
        return Told.DECLINED if has_too_many_edits(rows) else Told.DESCRIBED

    return describe
