"""From a state, and a register where keys or items are remembered, to the number of its mask row.

The row of the state alone is made by the first strategy that does not decline (masks/strategies.py), and kept in `row`.
`row_with_seen` then takes away the tokens that the register refuses (duplicate_masks.py).
"""

from __future__ import annotations

from ..automaton.tables import NO_CLASS, Fault, Tables, tables_at
from ..base.ids import RegisterId, RowId, StateId
from ..masks.mask_rows import Region, find_or_make
from ..masks.strategies import STRATEGIES, row_of
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import words_at
from ..numba_support.records import Words
from ..uniqueness.duplicate_masks import clear_refused, may_refuse
from ..vocabulary.packed_records import Vocab, vocab_at

NO_ROOM = RowId(-1)  # instead of the number of a row
ROOM = len(STRATEGIES) + 2  # rows that one call may add: each strategy may ask for that of another state, one of them for two


@entry
def mask_row(
    arena_address: int, vocab_address: int, rows_address: int, state: StateId, seen: RegisterId, completable: int
) -> tuple[RowId, int]:
    """(number of the mask row of a state and a register, body class for which tables are wanted).

    The number is NO_ROOM when ROOM rows do not fit into the pool; it means nothing on a fault. seen: the register, 0 for
    an automaton without. completable: the address of the tokens behind which the vocabulary can finish (int32 [words]),
    0 when these are all tokens.
    """
    m, vocab, rows = tables_at(arena_address), vocab_at(vocab_address), words_at(rows_address)
    wanted, number = NO_CLASS, m.states[state].row
    if number == 0:
        if rows[Region.COUNT] + ROOM > rows[Region.CAPACITY]:
            return NO_ROOM, wanted
        number = row_of(m, vocab, rows, state, completable)
        wanted = m.n.wanted
        m.n.wanted = NO_CLASS
    if seen != 0 and m.n.fault == Fault.NONE:
        number = row_with_seen(m, vocab, rows, state, seen)
    return number, wanted


@inner
def row_with_seen(m: Tables, vocab: Vocab, rows: Words, state: StateId, seen: RegisterId) -> RowId:
    """The number of the mask row of a state and a register; that of the state alone has to be known."""
    if not may_refuse(m, state, seen):
        return m.states[state].row
    if rows[Region.COUNT] + 1 > rows[Region.CAPACITY]:
        return NO_ROOM
    if clear_refused(m, vocab, rows, state, seen) == 0 or m.n.fault != Fault.NONE:
        return m.states[state].row
    return find_or_make(rows, vocab, m.states[state].accept, 0)
