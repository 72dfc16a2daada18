"""Grammars whose masks would take seconds are refused while compiling, by what is written for their first masks."""

from __future__ import annotations

import pytest

from maskwright.constraints import Compiler, ConstraintLimit, Lark, Limits, Regex, Vocabulary
from maskwright.constraints.runtime.growth import steadied
from maskwright.constraints.runtime.mask_trials import WORDS, try_masks

WORDS_OF_LETTERS = [bytes([a, b, c]) for a in range(97, 117, 2) for b in range(97, 117, 2) for c in range(97, 117)]
TOKENS = [*(bytes([byte]) for byte in range(256)), *WORDS_OF_LETTERS]
VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)])


def overlapping(count: int) -> Lark:
    """Terminals with counts of their own, of which most begin with any letter."""
    terminals = [f"T{k}: /[a-{chr(99 + k % 20)}]{{{k % 9 + 1},{k % 30 + 12}}}/" for k in range(count)]
    return Lark("\n".join([f"start: ({' | '.join(f'T{k}' for k in range(count))})+", *terminals]))


def test_what_a_mask_writes_is_limited() -> None:
    automaton = Compiler(VOCABULARY).compile(overlapping(8))._automaton
    fresh = automaton.__class__(automaton.grammar, automaton.root, automaton.shared_vocabulary, automaton.limits)
    before = fresh._machine.num_words
    with pytest.raises(ConstraintLimit) as refused, fresh.writing(1_000):
        fresh.row(fresh.start)
    assert refused.value.limit == "byte_words"
    assert fresh._machine.num_words - before < 200_000  # tables have doubled a few times
    fresh.row(fresh.start)  # no limit any more


def test_terminals_that_overlap_are_refused_by_name() -> None:
    automaton = Compiler(VOCABULARY, Limits(byte_words=30_000)).compile(overlapping(8))._automaton
    strict = Limits(byte_words=1)
    fresh = automaton.__class__(automaton.grammar, automaton.root, automaton.shared_vocabulary, strict)
    with pytest.raises(ConstraintLimit, match=f"writes more than {WORDS} words") as refused:
        try_masks(fresh)
    assert refused.value.limit == "byte_words" and "overlap" in str(refused.value)


def test_what_takes_little_is_not_tried() -> None:
    constraint = Compiler(VOCABULARY).compile(Lark("start: item*\nitem: /[a-k]{3,17}/ \";\" | \"(\" start \")\""))
    assert steadied(constraint._automaton) is constraint._automaton and constraint.statistics["rows"] == 0


def test_ways_whose_end_is_not_found_are_refused() -> None:
    with pytest.raises(ConstraintLimit):
        Compiler(VOCABULARY, Limits(search_states=300)).compile(Regex(r"(?=.*\d.{9}[a-f])(?:[^.]{1,20}\.){1,20}"))
