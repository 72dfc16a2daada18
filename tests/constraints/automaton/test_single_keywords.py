"""One keyword that takes many states: what compiles is finished from everywhere, and what would not be is refused by name."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, ConstraintError, ConstraintLimit, JsonSchema, Limits, Vocabulary
from maskwright.constraints.automaton import determinize, machine
from maskwright.constraints.automaton.assembling.intersections import SHARE_OF_ONE

from .test_intersections import WORDS, finished

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *WORDS, None], eos_token_ids=[256 + len(WORDS)])
STATES = 3_000  # what a table may have here, so that parts become too large early
ATOMS = ["[A-Z]", "[a-z]", r"\d", r"\w", "x", "ab", "[ab]", "."]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """Counted repetitions, lookaheads, and lengths, of which each takes hundreds of states or thousands."""
    a, b, c = (draw(st.sampled_from(ATOMS)) for _ in range(3))
    many, more = draw(st.sampled_from((3, 8, 20, 60))), draw(st.sampled_from((0, 2, 30)))
    return draw(st.sampled_from((
        f"{a}.{{{many}}}{b}", f"^({a}{{1,{many}}}{b}){{{more},{more + many}}}$", f"^(?!.*{a}.{{{many}}}{b}).*$",
        f"^(?=.*{a}.{{{many}}}{b}).*$", f"^(?=.*{a}.{{{many}}}{b})(?=.*{c}{b}).*$", f"^({a}{{{many}}}|{b}{{{many + 1}}})*{c}$",
        f"^(?=.{{{more},{more + many}}}$)(?:{a}{{1,9}}-){{1,{many}}}{b}+$", f"^(?!(?:{a}{{1,{many}}}{b}){{1,{more + 1}}}$).*$",
    )))  # fmt: skip


@st.composite
def schemas(draw: st.DrawFn) -> tuple[dict[str, Any], str, bool]:
    """A schema with one keyword that matters, its pattern, and whether texts must match it."""
    pattern, is_asked = draw(patterns()), draw(st.booleans())
    told = {"pattern": pattern} if is_asked else {"not": {"pattern": pattern}}
    if draw(st.integers(0, 3)) == 0:
        names = {"propertyNames": told, "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "boolean"}}
        return {"type": "object", **names}, pattern, is_asked
    return {"type": "string", **told}, pattern, is_asked


def in_python(pattern: str) -> str:
    """A pattern of ECMA-262 as Python's `re` has it."""
    return pattern.replace(".", "[^\n\r\u2028\u2029]").replace("$", r"\Z")


@settings(max_examples=40)
@given(schemas(), st.integers(0, 2**32 - 1))
def test_every_single_keyword_that_compiles_is_finished(case: tuple[dict[str, Any], str, bool], seed: int) -> None:
    schema, pattern, is_asked = case
    try:
        constraint = Compiler(VOCABULARY, Limits(search_states=STATES, states=200_000)).compile(JsonSchema(schema))
    except ConstraintLimit as error:
        assert error.limit in ("search_states", "states") and error.keyword is not None and "pattern" in error.keyword
        assert error.path is not None and error.path.startswith("#") and "repetitions" in str(error)
        return
    except ConstraintError as error:
        assert "satisf" in str(error)
        return
    rng = random.Random(seed)
    for _ in range(8):
        value = json.loads(finished(constraint, rng, rng.choice((0, 3, 10, 40))))
        for text in [value] if isinstance(value, str) else value:
            assert (re.search(in_python(pattern), text, re.ASCII) is not None) == is_asked, (pattern, text)


@pytest.mark.parametrize("schema", [
    {"type": "string", "pattern": "^(?=.*x.{200}x)(?=.*[ab]x).*$"},
    {"type": "object", "patternProperties": {"^(?=.*x.{200}x)(?=.*[ab]x).*$": True}, "additionalProperties": False, "minProperties": 1},
])  # fmt: skip
def test_what_would_end_in_the_middle_of_a_text_is_refused_while_compiling(schema: dict[str, Any]) -> None:
    with pytest.raises(ConstraintLimit) as caught:
        Compiler(VOCABULARY).compile(JsonSchema({"properties": {"a": schema}}))
    assert caught.value.path is not None and caught.value.path.startswith("#/properties/a")
    assert caught.value.keyword is not None and "instead" in str(caught.value)


def test_what_a_search_does_not_finish_is_refused_with_path_and_keyword() -> None:
    schema = JsonSchema({"properties": {"a": {"type": "string", "pattern": "^(?=.*[A-Z].{200}x).*$"}}})
    with pytest.raises(ConstraintLimit, match="search_states") as caught:
        Compiler(VOCABULARY).compile(schema)
    assert caught.value.path == "#/properties/a" and caught.value.keyword == "pattern"


def test_a_search_that_stops_to_look_at_the_clock_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, limits = JsonSchema({"type": "string", "pattern": "^(?!.*x.{9}x)(?=.*[ab].{4}x).*$"}), Limits(search_states=3_000)
    whole, calls, enter = Compiler(VOCABULARY, limits).compile(schema), 0, determinize.enter_product

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return enter(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(machine, "STEPS_AT_ONCE", 50)
        patched.setattr(determinize, "enter_product", counted)
        in_pieces = Compiler(VOCABULARY, limits).compile(schema)
    assert whole.notes and calls > 20, "it is a product that is searched"
    for seed in range(4):
        assert finished(whole, random.Random(seed), 30) == finished(in_pieces, random.Random(seed), 30)


@pytest.mark.parametrize("modulus", [997, 20_011])
def test_numbers_that_are_no_multiples_stay(modulus: int) -> None:
    schema = JsonSchema({"type": "integer", "not": {"multipleOf": modulus}})
    constraint = Compiler(VOCABULARY, Limits(search_states=int(modulus / SHARE_OF_ONE / 2))).compile(schema)
    for seed in range(8):
        assert int(finished(constraint, random.Random(seed), 6)) % modulus != 0
