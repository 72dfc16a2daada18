"""What all strategies for a mask are: each looks at a state and describes its mask, or declines.

    (m, vocab, rows, state, completable) -> Told

The description is a recipe, begun with `begin` (mask_rows.py). completable: the address of the tokens behind which the vocabulary
can finish, 0 when these are all tokens. A strategy may ask for rows of other states, and for how those come about it relies on the
strategies behind it in the list (strategies.py); so it begins its own recipe afterwards. It sets the events of the state. On a
fault what it says means nothing.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from ..automaton.tables import Fault, Tables
from ..base.ids import RowId, StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .mask_rows import Region, find_or_make


class Strategy(IntFlag):
    """The bits of `Counters.strategies_off`, in the order in which strategies are tried. OWN_WALK is never left out."""

    NONE = 0
    ENDLESS_COUNTS = 1
    COMMON_LENGTHS = 2
    UNLISTED_NAMES = 4
    SHARED_TAIL = 8
    ENDLESS_BODY = 16


class Told(IntEnum):
    DECLINED = 0
    DESCRIBED = 1
    IS_BASE = 2  # the mask is the row that the recipe begins with, with the same EOS


@inner
def keep_row(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> RowId:
    """Make the row that has been described, for a state that has none. Returns the number of the state's row, 0 on a
    fault."""
    if m.n.fault == Fault.NONE and m.states[state].row == 0:
        m.states[state].row = find_or_make(rows, vocab, m.states[state].accept, completable)
    return m.states[state].row


@inner
def keep_base(m: Tables, rows: Words, state: StateId) -> RowId:
    """Make the row with which the recipe begins that of the state. Returns its number, 0 on a fault."""
    if m.n.fault == Fault.NONE:
        m.states[state].row = rows[Region.BASE_ROW]
    return m.states[state].row
