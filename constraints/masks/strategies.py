"""From a state to its mask row: strategies are tried in order, each of which describes the mask or declines.

A strategy that needs the row of another state gets it from those behind it, so the order says what may build on what, and nothing
calls itself. Each can be left out (`TokenAutomaton.leave_out`): masks are the same, only later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..automaton.tables import Fault, Tables
from ..base.ids import RowId, StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .by_common_lengths import by_common_lengths
from .by_endless_body import by_endless_body
from .by_endless_counts import by_endless_counts
from .by_own_walk import by_own_walk
from .by_shared_tail import by_shared_tail
from .by_unlisted_names import by_unlisted_names
from .strategy_contract import Strategy, Told, keep_base, keep_row

STRATEGIES: tuple[tuple[Strategy, Callable[[Any], Any]], ...] = (
    (Strategy.ENDLESS_COUNTS, by_endless_counts),
    (Strategy.COMMON_LENGTHS, by_common_lengths),
    (Strategy.UNLISTED_NAMES, by_unlisted_names),
    (Strategy.SHARED_TAIL, lambda row: by_shared_tail),
    (Strategy.ENDLESS_BODY, lambda row: by_endless_body),
)


@inner
def row_by_walk(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> RowId:
    """The number of the mask row of a state, made by a walk from this state alone if it is not there; 0 on a fault."""
    if m.states[state].row != 0 or m.n.fault != Fault.NONE:
        return m.states[state].row
    by_own_walk(m, vocab, rows, state, completable)
    return keep_row(m, vocab, rows, state, completable)


def _tried_first(strategy: Strategy, describe: Any, row_by_later: Any) -> Any:
    """A function of loops: the number of the mask row of a state, made as `describe` says, or else by those behind it."""
    bit = int(strategy)

    @inner
    def row(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> RowId:
        if m.states[state].row != 0 or m.n.fault != Fault.NONE:
            return m.states[state].row
        if m.n.strategies_off & bit == 0:
            told = describe(m, vocab, rows, state, completable)
            if told == Told.DESCRIBED:
                return keep_row(m, vocab, rows, state, completable)
            if told == Told.IS_BASE:
                return keep_base(m, rows, state)
        return row_by_later(m, vocab, rows, state, completable)

    return row


def _row_by(strategies: tuple[tuple[Strategy, Callable[[Any], Any]], ...]) -> Any:
    if not strategies:
        return row_by_walk
    (bit, strategy), *others = strategies
    later = _row_by(tuple(others))
    return _tried_first(bit, strategy(later), later)


row_of = _row_by(STRATEGIES)
