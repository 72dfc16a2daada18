"""The last strategy, which never declines: a walk of the vocabulary from the state itself (class_masks.py)."""

from __future__ import annotations

from ..automaton.tables import Tables
from ..base.ids import RowId, StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import Vocab
from .class_masks import fill
from .mask_rows import Region, begin
from .shared_continuations import begin_ends, keep_ends
from .strategy_contract import Told, keep_row


@inner
def by_own_walk(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
    begin(rows, RowId(0), 0)
    rows[Region.BASE_SLICE] = fill(m, vocab, rows, state)
    return Told.DESCRIBED


@inner
def row_and_ends(m: Tables, vocab: Vocab, rows: Words, state: StateId) -> None:
    """Make the row of a state by a walk from this state, and note its ends on the way."""
    begin_ends(m)
    by_own_walk(m, vocab, rows, state, 0)
    keep_ends(m, state)
    keep_row(m, vocab, rows, state, 0)
