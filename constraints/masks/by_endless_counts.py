"""A strategy: the row of the state in which repetitions that end out of reach have no end.

Condition: some repetition of the state ends farther away than any token reaches (`saturate_state`, counter_saturation.py).
Why it is right: within a token both states go the same ways; that is looked at once more when the row is there, because the walk
may find completions that reach farther.
What it saves: over the sources of test_strategies.py, whose vocabulary is small, 10,772 trie nodes are visited without it and 5,972
with it; over 100 real schemas 441,241 and 427,336.
"""

from __future__ import annotations

from typing import Any

from ..automaton.tables import Fault, Tables
from ..base.ids import StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .counter_saturation import saturate_state
from .mask_rows import begin
from .strategy_contract import Told


def by_endless_counts(row_by_later: Any) -> Any:
    @inner
    def describe(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
        saturated = saturate_state(m, state, vocab.depth)
        if saturated == state or m.n.fault != Fault.NONE:
            return Told.DECLINED
        number = row_by_later(m, vocab, rows, saturated, completable)
        if saturate_state(m, state, vocab.depth) != saturated or m.n.fault != Fault.NONE:
            return Told.DECLINED
        m.states[state].events = m.states[saturated].events
        begin(rows, number, 0)
        return Told.IS_BASE

    return describe
