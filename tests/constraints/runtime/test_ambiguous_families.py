"""Grammars as people write them, made at random: the texts stay the same, and what compiles stays below a limit on texts that
compiling did not try; what does not is refused with the rule and a text that it reads in two ways."""

from __future__ import annotations

import re

import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, Limits, UnsupportedKeyword
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.normal_form.readings import ambiguity

from ..grammar.ambiguous_families import FAMILIES, source_of
from ..grammar.bounded_languages import all_strings, strings_of
from ..grammar.growing import BYTES, OTHER_TEXTS, most_of, unchecked, work_of

COMPILER = Compiler(BYTES)
LONG = 1_000  # bytes
ALPHABET = b"ab(,1 "
SEEDS = range(203, 208)


def compiled(family: str, seed: int) -> Constraint | None:
    """None where the grammar is refused, by name and with two readings."""
    try:
        return COMPILER.compile(source_of(family, seed))
    except UnsupportedKeyword as error:
        assert error.keyword == "ambiguity" and error.instead is not None
        assert re.search(r"rule '\w+' reads '.+' as .* and as .*", str(error)) and error.path is not None
    except ConstraintError as error:
        assert "nothing satisfies" in str(error)
    return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_compiles_stays_below_the_limit_on_other_texts(family: str, seed: int) -> None:
    constraint = compiled(family, seed)
    if constraint is not None:
        most = most_of(constraint)
        assert all(work_of(constraint, *text, LONG, most) < most for text in OTHER_TEXTS)


@pytest.mark.slow
def test_what_rises_until_places_for_facts_run_out_is_refused() -> None:
    """As a graph it takes 5 pairs more for each byte, and behind 985 bytes ten times as many at once."""
    assert compiled("nested repetitions", 2000) is None


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_texts_are_those_of_the_grammar(family: str, seed: int) -> None:
    grammar, source = Grammar(), source_of(family, seed)
    expected = strings_of(grammar, source.lower(grammar, Limits()), 4, ALPHABET)
    constraint = compiled(family, seed) or unchecked(source, Limits())
    assert {text for text in all_strings(ALPHABET, 4) if constraint.accepts(text)} == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_grammars_with_one_reading_of_each_text_compile(family: str) -> None:
    for seed in SEEDS:
        grammar, source = Grammar(), source_of(family, seed)
        if ambiguity(grammar, source.lower(grammar, Limits()), b"") is None:
            assert COMPILER.compile(source) is not None
