"""A strategy: the row of the state in which repetitions have no end that end out of reach of all but the longest tokens; these are
looked at by themselves, in two tiers.

Condition: the state holds an intersection, and some repetition of it ends farther away than `Vocab.common_depth` bytes, which few
tokens exceed: 500 of 131,072 have more than 19, some of them 76, such as lines of dashes, and one of those is enough for no length
of a host's label to be out of reach (`saturate_state`, counter_saturation.py).
Why it is right: within a token of so many bytes both states go the same ways. Longer ones are walked from the state without the
ends that are out of reach at twice that depth, and those that are longer still from the state itself. That ends are out of reach is
looked at once more behind each walk, because it may find completions that reach farther.
What it saves: a host name with two lookaheads over 131,072 tokens (MaskBench's aerleon) has 22,000 to 31,000 states behind its
first texts, and had 51,000 to 56,000; its longest mask takes 1.5 ms, 4.8 with one tier and 9,400 transitions without this.
"""

from __future__ import annotations

from typing import Any

from ..automaton.tables import Fault, Tables
from ..base.ids import StateId
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import ROOT, Vocab, token_bytes
from .counter_saturation import saturate_state
from .mask_rows import begin, clear_tokens, has_too_many_edits
from .strategy_contract import Told
from .trie_walk import walk, walk_rest

TIMES_COMMON = 2  # the depth that few tokens exceed, which few of these few exceed


@inner
def walk_longest(m: Tables, vocab: Vocab, rows: Words, place: int, end: int, reach: int, state: StateId) -> None:
    """Look at those of the tokens at some places that have more than `reach` bytes, each by itself from `state`."""
    for at in range(place, end):
        first, last = token_bytes(vocab, vocab.array[at])
        if last - first > reach:
            clear_tokens(rows, at, at + 1)
            walk_rest(m, vocab, rows, at, 0, state)


def by_common_lengths(row_by_later: Any) -> Any:
    @inner
    def describe(m: Tables, vocab: Vocab, rows: Words, state: StateId, completable: int) -> int:
        if m.states[state].has_no_product == 1 or vocab.common_depth == vocab.depth or completable != 0:
            return Told.DECLINED
        saturated = saturate_state(m, state, vocab.common_depth)
        if saturated == state or m.n.fault != Fault.NONE:
            return Told.DECLINED
        number = row_by_later(m, vocab, rows, saturated, completable)
        if m.n.fault != Fault.NONE or saturate_state(m, state, vocab.common_depth) != saturated:
            return Told.DECLINED
        begin(rows, number, 0)
        longer = vocab.longer
        end = longer.order + longer.nodes[longer.num_nodes].first
        clear_tokens(rows, longer.order, end)
        reach = TIMES_COMMON * vocab.common_depth
        saturated_less = saturate_state(m, state, reach)
        if m.n.fault != Fault.NONE:
            return Told.DECLINED
        walk(m, vocab, rows, longer, ROOT, saturated_less)
        if saturated_less != state:
            if m.n.fault != Fault.NONE or saturate_state(m, state, reach) != saturated_less:
                return Told.DECLINED
            walk_longest(m, vocab, rows, longer.order, end, reach, state)
        m.states[state].events |= m.states[saturated].events | m.states[saturated_less].events
        return Told.DECLINED if has_too_many_edits(rows) or m.n.fault != Fault.NONE else Told.DESCRIBED

    return describe
