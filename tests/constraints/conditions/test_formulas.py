"""Formulas over members: what is left of them where something is known, against their truth in all cases."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from maskwright.constraints.front_ends.json_schema.algebra.formulas import (
    AtLeast,
    Fact,
    Formula,
    Has,
    all_of,
    any_of,
    counts,
    facts,
    given,
    is_true,
    names_of,
    negation,
    one_of,
)
from maskwright.constraints.front_ends.json_schema.lowering.restrictions import Restrictions

FACTS = [Has(name, ()) for name in "abcd"]
Cases = dict[Fact, bool]


def formula(rng: Random, depth: int) -> Formula:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*FACTS, *map(negation, FACTS), AtLeast(2)])
    parts = [formula(rng, depth - 1) for _ in range(rng.randint(1, 4))]
    return rng.choice([all_of, any_of, one_of, lambda each: negation(all_of(each)), lambda each: negation(one_of(each))])(parts)


def all_cases() -> list[Cases]:
    told: list[Fact] = [*FACTS, AtLeast(2)]
    return [dict(zip(told, truths, strict=True)) for truths in itertools.product((False, True), repeat=len(told))]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_is_true_where_the_whole_is(seed: int) -> None:
    whole = formula(Random(seed), 3)
    restrictions = Restrictions("a", lambda fact, case: bool(case))
    for case in all_cases():
        known = {fact: truth for fact, truth in case.items() if fact in (FACTS[0], FACTS[2])}
        assert is_true(given(whole, known.get), case.__getitem__) == is_true(whole, case.__getitem__)
        left = restrictions.of(whole, int(case[FACTS[0]]))
        assert "a" not in names_of(left)
        assert is_true(left, case.__getitem__) == is_true(whole, case.__getitem__)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_formula_does_not_speak_of_leaves_it_as_it_is(seed: int) -> None:
    """The same object, so that what it was asked before is known."""
    whole = formula(Random(seed), 3)
    assert given(whole, lambda fact: None) is whole
    assert Restrictions("z", lambda fact, case: True).of(whole, 0) is whole


@pytest.mark.parametrize("seed", range(20))
def test_what_a_formula_speaks_of(seed: int) -> None:
    whole = formula(Random(seed), 3)
    names = {fact.name for fact, _ in facts(whole)}
    assert names_of(whole) == names
    assert {(fact, not wanted) for fact, wanted in facts(whole)} == set(facts(negation(whole)))
    assert counts(whole) <= {2}
    for case in all_cases():
        for fact in FACTS:
            if fact.name not in names:
                assert is_true(whole, (case | {fact: True}).__getitem__) == is_true(whole, (case | {fact: False}).__getitem__)
