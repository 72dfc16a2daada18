"""What is refused while compiling because its masks would take seconds, or would allow what leads nowhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maskwright.constraints import ConstraintLimit, Lark, Limits, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.runtime.mask_trials import LIMITS_OF_A_MASK, try_masks
from maskwright.constraints.runtime.settling import settle
from maskwright.constraints.token_automaton.token_automaton import TokenAutomaton
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

TOKENS = [*(bytes([byte]) for byte in range(256)), *(bytes([a, b]) for a in b"abcdefghijkl" for b in b"abcdefghijkl")]
VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)])


def overlapping(count: int) -> Lark:
    """Terminals with counts of their own, all of which begin with any of some letters."""
    terminals = [f"T{k}: /[a-{chr(99 + k)}]{{{k % 3 + 1},{k + 12}}}/" for k in range(count)]
    return Lark("\n".join([f"start: ({' | '.join(f'T{k}' for k in range(count))})+", *terminals]))


def automaton_of(source: Lark, limits: Limits) -> TokenAutomaton:
    """That of a source of which nothing was tried."""
    grammar = Grammar()
    return TokenAutomaton(grammar, source.lower(grammar, limits), SharedVocabulary(VOCABULARY), limits)


def test_terminals_that_overlap_are_refused_by_name() -> None:
    with pytest.raises(ConstraintLimit, match=f"write more than {LIMITS_OF_A_MASK * 200} words") as refused:
        try_masks(automaton_of(overlapping(9), Limits(byte_words=200)))
    assert refused.value.limit == "byte_words" and "overlap" in str(refused.value)


@pytest.mark.parametrize("count", [1, 3])
def test_what_takes_little_is_not_refused(count: int) -> None:
    automaton = automaton_of(overlapping(count), Limits())
    before = automaton.num_words
    try_masks(automaton)
    assert 0 < automaton.num_words - before < LIMITS_OF_A_MASK * automaton.limits.byte_words


@pytest.mark.parametrize("eos_ids", [set(), {3}])
def test_a_text_that_is_allowed_to_go_on_where_no_end_was_found_is_refused(eos_ids: set[int]) -> None:
    """A mask allows token 3, which leads nowhere; EOS may."""
    automaton: Any = SimpleNamespace(
        limits=Limits(), num_states=1, kept_lazily={7: ("#/p", ("pattern",))}, is_shorter=lambda limit: True,
        shared_vocabulary=SimpleNamespace(eos_ids=eos_ids), start_of=lambda node: 1,
        row=lambda state: np.array([1 << 3], np.uint32), advance_one=lambda state, token: 0,
    )  # fmt: skip
    if eos_ids:
        settle(automaton)
        return
    with pytest.raises(ConstraintLimit, match="too far away") as refused:
        settle(automaton)
    assert (refused.value.limit, refused.value.path, refused.value.keyword) == ("search_states", "#/p", "pattern")
