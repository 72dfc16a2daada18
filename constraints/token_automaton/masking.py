"""From a state, and a register where keys or items are remembered, to the number of its mask row.

The row of the state alone is made by the first strategy that does not decline (masks/strategies.py), and kept in `row`.
`row_with_seen` then takes away the tokens that the register refuses (duplicate_masks.py).
"""

from __future__ import annotations

import numpy as np

from ..automaton.tables import NO_CLASS, Fault, tables_at
from ..masks.mask_rows import Region, begin, find_or_make
from ..masks.strategies import STRATEGIES, row_of
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import words_at
from ..uniqueness.duplicate_masks import REMEMBERED, WalkMode, judge_trie, where_refusals_begin
from ..uniqueness.register_product import SeenFlag, seen_flags
from ..vocabulary.packed_vocabulary import Header

NO_ROOM = -1  # instead of the number of a row
ROOM = len(STRATEGIES) + 2  # rows that one call may add: each strategy may ask for that of another state, one of them for two


@entry
def mask_row(arena_address, vocab_address, rows_address, state, seen, has_items, completable):
    """(number of the mask row of a state and a register, body class for which tables are wanted).

    The number is NO_ROOM when ROOM rows do not fit into the pool; it means nothing on a fault. here: the register, 0 for
    an automaton without. completable: the address of the tokens behind which the vocabulary can finish (int32 [words]),
    0 when these are all tokens.
    """
    m, vocab, rows = tables_at(arena_address), words_at(vocab_address), words_at(rows_address)
    wanted, number = NO_CLASS, m.states[state].row
    if number == 0:
        if rows[Region.COUNT] + ROOM > rows[Region.CAPACITY]:
            return NO_ROOM, wanted
        number = row_of(m, vocab, rows, state, completable)
        wanted = m.n.wanted
        m.n.wanted = NO_CLASS
    if seen != 0 and m.n.fault == Fault.NONE:
        number = row_with_seen(m, vocab, rows_address, number, state, seen, has_items)
    return number, wanted


@inner
def row_with_seen(m, vocab, rows_address, number, state, seen, has_items):
    """The number of the mask row of a state and a register; number: that of the state alone."""
    flags, rows = seen_flags(m, seen), words_at(rows_address)
    if not flags & SeenFlag.HAS_CANDIDATES and not m.states[state].events & REMEMBERED:
        return number
    if rows[Region.COUNT] + 1 > rows[Region.CAPACITY]:
        return NO_ROOM
    none, unsettled, cleared = np.empty(0, np.int32), np.empty((5, 0), np.int32), 0
    begin(rows, number, 0)
    if flags & SeenFlag.HAS_CANDIDATES:
        cleared += judge_trie(
            m, vocab, rows_address, vocab[Header.TRIE], state, seen, WalkMode.ALONG, none, none, unsettled, 0
        )[2]
    trie = where_refusals_begin(m, vocab, flags)
    cleared += judge_trie(m, vocab, rows_address, trie, state, seen, WalkMode.WHOLE, none, none, unsettled, 0)[2]
    if has_items and not flags & SeenFlag.IN_UNIQUE:
        trie = vocab[Header.LISTED]
        cleared += judge_trie(m, vocab, rows_address, trie, state, seen, WalkMode.WHOLE, none, none, unsettled, 0)[2]
    if cleared == 0 or m.n.fault != Fault.NONE:
        return number
    return find_or_make(rows, vocab, m.states[state].accept, 0)
