"""Choices: the language is the list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.base.errors import ConstraintError, ConstraintLimit
from maskwright.constraints.front_ends.regex.choice import Choice
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits, Source


def choice_reference(choice: Choice) -> Reference:
    grammar = Grammar()
    return Reference(grammar, choice.lower(grammar, Limits()))


@given(st.lists(st.text("abé\U0001f600", max_size=4), min_size=1, max_size=8), st.text("abé\U0001f600", max_size=4))
def test_accepts_the_options_and_nothing_else(options, other):
    reference = choice_reference(Choice(options))
    assert all(reference.accepts(option.encode()) for option in options)
    assert reference.accepts(other.encode()) == (other in options)
    for option in options:
        assert reference.accepts(option[:-1].encode()) == (option[:-1] in options)


def test_is_a_hashable_value_in_which_repetitions_count_once():
    assert Choice(["a", "b", "a"]) == Choice(("a", "b"))
    assert hash(Choice(["a", "b", "a"])) == hash(Choice(iter("ab")))
    assert isinstance(Choice(["a"]), Source)


@pytest.mark.parametrize(
    "options, complaint", [([], "nothing"), ("yes", "single"), (["a", 1], "option 1 is 1"), (["\ud800"], "surrogate"), (5, "not int"), ([["a"]], "option 0")]
)
def test_anything_else_is_refused(options, complaint):
    with pytest.raises(ConstraintError, match=complaint):
        Choice(options)


def test_the_number_of_options_is_limited():
    with pytest.raises(ConstraintLimit, match="enum_values=2"):
        Choice("abc"[index] for index in range(3)).lower(Grammar(), Limits(enum_values=2))


def test_options_that_share_prefixes_share_nodes():
    grammar = Grammar()
    Choice(f"{'shared' * 50}{index:04d}" for index in range(1000)).lower(grammar, Limits())
    assert len(grammar.pool) < 6000


def test_options_that_are_prefixes_of_each_other():
    reference = choice_reference(Choice("a" * count for count in range(1500)))
    assert reference.accepts(b"a" * 1499) and not reference.accepts(b"a" * 1500)
