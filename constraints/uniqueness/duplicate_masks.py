"""What the register says about tokens: which of them it refuses, and what it adds to the cost behind them.

Comes in: a state and a register. Goes out: the tokens that the register refuses, as edits of the state's mask row; or, for
budgets, the state behind each token and what the register adds to its cost. *Unsettled* tokens are those for which that has
to be found out by a search.

Only a text that goes along candidates can be refused. So a mask needs only the few paths along candidates (ALONG), and the
tries of those tokens in which another word begins. How a trie is walked says judging.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..automaton.nodes import wide
from ..automaton.tables import DEAD, Tables, tables_at
from ..base.ids import RegisterId, StateId
from ..base.kinds import Event
from ..masks.mask_rows import begin
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import pointer, words_at
from ..numba_support.records import Words
from ..vocabulary.packed_records import Trie, Vocab, vocab_at
from .judging import Outputs, Walk, WalkMode, begin_judging, judge_trie
from .register_product import SeenFlag, seen_flags

REMEMBERED = sum(1 << event for event in Event if event not in (Event.NONE, Event.OBJECT_OPEN, Event.OBJECT_CLOSE))


@entry(ends="int32[:]", extra="int32[:]", unsettled="int32[:,:]")
def judge(
    arena_address: int, vocab_address: int, state: StateId, seen: RegisterId, way: int, ends: NDArray[np.int32],
    extra: NDArray[np.int32], unsettled: NDArray[np.int32],
) -> tuple[int, int]:
    """Walk the trie of all tokens from a state and a register. Returns the number of unsettled tokens, and the least cost
    behind a token that is not unsettled, INFINITE without any. Every output array may be empty when it is not wanted.

    way: WHOLE; or IN_BRIEF to leave out the tokens that change nothing because they stay inside of a string without
    candidates; or IN_KEY to leave out also those that begin so and have a quotation mark then. All count for the least
    cost.

    ends, extra: int32 [tokens]. ends[k] = the state that the k-th token in order leads to, DEAD when it does not
    survive; extra[k] = what the register adds to the cost there, SEARCH or EXPECTS_KEY when that has to be found out.

    unsettled: int32 [tokens, 5]: an `Unsettled` for each of the unsettled tokens; in brief also for those with ONE_MORE.
    """
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    ends[:] = DEAD
    extra[:] = 0
    begin_judging(m, False, ends.size > 0, unsettled.size > 0)
    rows, out = words_at(0), Outputs(pointer(ends), pointer(extra), pointer(unsettled))
    judge_trie(Walk(m, vocab, vocab.trie, rows, out), wide(state), wide(seen), wide(way))
    count = m.judging.num_unsettled
    if way == WalkMode.IN_KEY:
        m.judging.fills = 0
        judge_trie(Walk(m, vocab, vocab.quoted_once, rows, out), wide(state), wide(seen), WalkMode.WHOLE)
    return count, m.judging.least


@entry(unsettled="int32[:,:]")
def unsettled_tokens(
    arena_address: int, vocab_address: int, state: StateId, seen: RegisterId, unsettled: NDArray[np.int32]
) -> int:
    """Write the unsettled tokens of `judge`, and those behind which some alternatives are gone, to `unsettled`; returns their
    number. They are looked for only where they can be, so that their positions mean nothing. The row of the state has to be
    known."""
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    if not may_refuse(m, state, seen):
        return 0
    flags = seen_flags(m, seen)
    begin_judging(m, False, False, True)
    rows, none = words_at(0), words_at(0)
    out = Outputs(none, none, pointer(unsettled))
    if flags & SeenFlag.HAS_CANDIDATES:
        judge_trie(Walk(m, vocab, vocab.trie, rows, out), state, seen, WalkMode.ALONG)
    trie = where_words_begin(vocab, flags, m.n.has_unique == 1)
    judge_trie(Walk(m, vocab, trie, rows, out), state, seen, WalkMode.WHOLE)
    return m.judging.num_unsettled


@inner
def may_refuse(m: Tables, state: StateId, seen: RegisterId) -> bool:
    """Whether a register matters to tokens in a state, whose row has to be known."""
    return m.states[state].events & REMEMBERED != 0 or seen_flags(m, seen) & SeenFlag.HAS_CANDIDATES != 0


@inner
def clear_refused(m: Tables, vocab: Vocab, rows: Words, state: StateId, seen: RegisterId) -> int:
    """Note that the tokens which the register refuses do not survive, as edits of the state's mask row. Returns how many these
    are, of a register that `may_refuse` some."""
    flags = seen_flags(m, seen)
    begin(rows, m.states[state].row, 0)
    begin_judging(m, True, False, False)
    none = words_at(0)
    out = Outputs(none, none, none)
    if flags & SeenFlag.HAS_CANDIDATES:
        judge_trie(Walk(m, vocab, vocab.trie, rows, out), state, seen, WalkMode.ALONG)
    judge_trie(Walk(m, vocab, where_refusals_begin(m, vocab, flags), rows, out), state, seen, WalkMode.WHOLE)
    if m.n.has_unique and not flags & SeenFlag.IN_UNIQUE:
        judge_trie(Walk(m, vocab, vocab.listed, rows, out), state, seen, WalkMode.WHOLE)
    return m.judging.cleared


@inner
def where_words_begin(vocab: Vocab, flags: int, has_unique: bool) -> Trie:
    """The trie of the tokens in which another key or item with candidates can begin."""
    in_text = flags & SeenFlag.IN_TEXT
    if has_unique:
        return vocab.quoted_once if in_text else vocab.separated
    if in_text:
        return vocab.quoted_twice
    return vocab.quoted_once if flags & SeenFlag.HAS_WORDS else vocab.quoted_thrice


@inner
def where_refusals_begin(m: Tables, vocab: Vocab, flags: int) -> Trie:
    """The trie of the tokens that may be refused for another key or item which begins in them; items of unique arrays
    that begin there too are not among these.

    Behind a key comes a value first. A key or a string that may be any but some is refused at its closing quotation
    mark only: until then it may become another.
    """
    in_text, has_words = flags & SeenFlag.IN_TEXT, flags & SeenFlag.HAS_WORDS
    has_free_names = m.n.free_names * vocab.spells
    if flags & SeenFlag.IN_UNIQUE:
        if m.n.free_items * vocab.spells == 0:
            return where_words_begin(vocab, flags, True)
        return vocab.quoted_once if has_words and not in_text and not has_free_names else vocab.quoted_twice
    if in_text and (flags & SeenFlag.IN_NAME or not has_words):
        return vocab.quoted_apart
    if has_free_names:
        return vocab.quoted_thrice if in_text or not has_words else vocab.quoted_twice
    return where_words_begin(vocab, flags, False)
