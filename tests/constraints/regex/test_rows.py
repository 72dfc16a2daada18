"""Patterns that are rows of sets: their texts of some length, and all others, beside Python's `re`."""

from __future__ import annotations

import itertools
import re

import pytest

from maskwright.constraints import Limits
from maskwright.constraints.front_ends.regex.regex import lower_pattern, other_texts, texts_of_length
from maskwright.constraints.grammar.expression import FAIL, Grammar, Node
from maskwright.constraints.grammar.matcher import Matcher, Steps

ROWS = [
    "^a", "^a$", "^ab", "^[ab]*$", "^[ab]+$", "^[ab]*", "^a*b$", "^a+b+$", "^a{2}$", "^a{2,3}$", "^a{0,2}b{1,2}$", "^a?b?c$", "^(a(b))c$",
    "^[ab]{2}c*$", "^a{3}", "^a{2,}$", "^a{1,2}", "^", "^$", "^.$", "^.*$", "^.+$", "^.{2,3}$", "^[^a]*$", "^[^a]+a", "^a?$", "^a?", "^(?:)a{3}b?$",
]  # fmt: skip
NO_ROWS = ["a", "a$", "^a|b$", "^(a|b)$", "^(ab)*$", r"^a\b", "^(?=a)a$", "^a^$"]
AMBIGUOUS = ["^[^a]+b", "^a*a$", "^[ab]*b$", "^a?a$", "^a{1,2}[ab]$", "^.*a$", "^a*b?a$"]
TEXTS = ["".join(letters) for length in range(6) for letters in itertools.product("abc\n", repeat=length)]




def matches(grammar: Grammar, node: Node) -> set[str]:
    matcher = Matcher(Steps(grammar), node)
    return {text for text in TEXTS if matcher.accepts(text.encode())}


def found(pattern: str) -> set[str]:
    """Python's "$" matches before a newline at the end, too."""
    return {text for text in TEXTS if re.search(pattern.replace("$", r"\Z"), text)}


@pytest.mark.parametrize("pattern", ROWS)
def test_what_a_row_does_not_match_is_said_without_an_intersection(pattern: str) -> None:
    grammar = Grammar()
    others = other_texts(grammar, pattern, dialect="ecma", unit=grammar.chars, limits=Limits())
    assert others is not None
    assert matches(grammar, others) == set(TEXTS) - found(pattern)


@pytest.mark.parametrize("pattern", [*NO_ROWS, *AMBIGUOUS])
def test_other_patterns_are_left_to_complements(pattern: str) -> None:
    grammar = Grammar()
    assert other_texts(grammar, pattern, dialect="ecma", unit=grammar.chars, limits=Limits()) is None


@pytest.mark.parametrize("pattern", ROWS)
@pytest.mark.parametrize(("low", "high"), [(0, 2), (2, None), (3, 4), (0, 0), (4, 4), (9, 12)])
def test_a_length_bounds_the_one_repetition_of_a_row(pattern: str, low: int, high: int | None) -> None:
    grammar = Grammar()
    node = texts_of_length(grammar, pattern, low, high, dialect="ecma", unit=grammar.chars, limits=Limits())
    if node is not None:
        assert matches(grammar, node) == {text for text in found(pattern) if low <= len(text) <= (9 if high is None else high)}


def test_most_rows_of_one_repetition_take_a_length() -> None:
    grammar = Grammar()
    taken = [p for p in ROWS if texts_of_length(grammar, p, 1, 9, dialect="ecma", unit=grammar.chars, limits=Limits()) is not None]
    assert {"^[ab]*$", "^[ab]+$", "^a*b$", "^a{2,3}$", "^[ab]{2}c*$", "^a?$", "^.*$"} <= set(taken)
    assert {"^a", "^[ab]*", "^a+b+$", "^a{2}$"}.isdisjoint(taken)


def test_no_text_is_left_where_lengths_exclude_each_other() -> None:
    grammar = Grammar()
    assert texts_of_length(grammar, "^a{2,3}$", 4, 9, dialect="ecma", unit=grammar.chars, limits=Limits()) == FAIL


@pytest.mark.parametrize("pattern", ["", ".*", "a?", "(a|b)*", "(?:)"])
def test_a_pattern_that_matches_nothing_at_all_is_found_in_every_text(pattern: str) -> None:
    grammar = Grammar()
    node = lower_pattern(grammar, pattern, dialect="ecma", full=False, unit=grammar.chars, limits=Limits())
    assert matches(grammar, node) == set(TEXTS)
    assert node == grammar.repeat(grammar.chars([(0, 0xD7FF), (0xE000, 0x10FFFF)]))
