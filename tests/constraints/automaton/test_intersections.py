"""Intersections, computed while compiling: what compiles is finished from everywhere, and what is too hard is refused by name."""

from __future__ import annotations

import json
import random
import re
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Compiler,
    Constraint,
    ConstraintError,
    ConstraintLimit,
    JsonSchema,
    Limits,
    Vocabulary,
)
from maskwright.constraints.automaton.assembling import intersections
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids

WORDS = [b"ab", b"Ab1", b"aabbaabb", b'","', b'"}', b"a@b", b".com", b"2024-", b"-0", b"\xc3\xa9", b"\xa9", b" the", b'x"', b"://"]
EOS = 256 + len(WORDS)
WALKS = 50
PATTERNS = [
    "[A-Z]", "(.*[a-z]){2}", r"\d", "^[^0]", "[^x]$", "^(?!.*--)", r"^[\x20-\x7e]*$", "é|a", "^.{3,12}$", r"^\S+( \S+){1,4}$",
    "a.?b", "([0-9].*){3}", "^(?=.*[a-z])(?=.*[0-9])", "^[a-zA-Z0-9@.:/ -]*$", r"(\w\W){2}",
]  # fmt: skip
FORMATS = ["email", "date", "uri", "hostname", "ipv4", "uuid", "time"]


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), *WORDS, None], eos_token_ids=[EOS]))


def finished(constraint: Constraint, rng: random.Random, free: int) -> str:
    """The text of a random walk that is brought home by a budget after `free` tokens, or ends before."""
    state, text, budget = constraint.start(), b"", 10**6
    for spent in range(10**6):
        if spent == free:
            budget = spent + constraint.min_tokens(state)
        allowed = as_token_ids(constraint.mask(state, None if spent < free else budget - spent))
        assert len(allowed), f"a dead end behind {text!r}"
        token = int(rng.choice(allowed))
        after = constraint.advance(state, token)
        assert after is not None, f"token {token} is allowed behind {text!r}, and refused"
        if after == FINISHED:
            return text.decode()
        state, text = after, text + (constraint.vocabulary.tokens[token] or b"")
        assert spent < free or constraint.min_tokens(state) < budget - spent, f"a budget overrun behind {text!r}"
    raise AssertionError("no end")


@st.composite
def conjunctions(draw: st.DrawFn) -> dict[str, Any]:
    patterns = draw(st.lists(st.sampled_from(PATTERNS), max_size=3, unique=True))
    refused = draw(st.lists(st.sampled_from(PATTERNS), max_size=2, unique=True))
    schema: dict[str, Any] = {"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns]}
    schema["allOf"] += [{"not": {"pattern": pattern}} for pattern in refused]
    schema |= {"format": draw(st.sampled_from(FORMATS))} if draw(st.integers(0, 3)) == 0 else {}
    low = draw(st.integers(0, 20))
    schema |= {"minLength": low} if low % 2 else {}
    schema |= {"maxLength": low + draw(st.integers(0, 50))} if draw(st.booleans()) else {}
    assume(len(patterns) + len(refused) + len(schema) >= 4)
    return schema


@settings(max_examples=40)
@given(conjunctions(), st.integers(0, 2**32 - 1))
def test_every_conjunction_that_compiles_is_finished(compiler: Compiler, schema: dict[str, Any], seed: int) -> None:
    try:
        constraint = compiler.compile(JsonSchema(schema))
    except ConstraintError as error:
        assert "satisf" in str(error) or isinstance(error, ConstraintLimit)
        return
    rng = random.Random(seed)
    for _ in range(WALKS):
        text = json.loads(finished(constraint, rng, rng.choice((0, 3, 10, 30))))
        for part in schema["allOf"]:
            if "not" in part:
                assert not re.search(part["not"]["pattern"].replace("$", r"\Z"), text), (part, text)
            else:
                assert re.search(part["pattern"].replace("$", r"\Z"), text), (part, text)
        assert schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text))


@given(st.lists(st.sampled_from(["a.*b", "^(ab?)*$", "é", "^[^b]", "..", "(é|a){2}"]), min_size=1, max_size=3, unique=True),
       st.integers(0, 4), st.integers(0, 3), st.booleans())  # fmt: skip
def test_what_is_counted_is_the_length(compiler: Compiler, patterns: list[str], low: int, more: int, negated: bool) -> None:
    parts: list[Any] = [{"pattern": pattern} for pattern in patterns]
    parts[0] = {"not": parts[0]} if negated else parts[0]
    schema = {"type": "string", "minLength": low, "maxLength": low + more, "allOf": parts}
    expected = {
        text for length in range(6) for text in map("".join, product("abé", repeat=length))
        if low <= length <= low + more and all(bool(re.search(pattern.replace("$", r"\Z"), text)) != (negated and k == 0)
                                               for k, pattern in enumerate(patterns))
    }  # fmt: skip
    try:
        constraint = compiler.compile(JsonSchema(schema))
    except ConstraintError:
        assert not expected
        return
    for text in map("".join, (letters for length in range(6) for letters in product("abé", repeat=length))):
        assert constraint.accepts(json.dumps(text, ensure_ascii=False).encode()) == (text in expected), text


@pytest.mark.parametrize(
    "schema",
    [
        {"minLength": 8, "maxLength": 64, "allOf": [{"pattern": f"(.*{one}){{2}}"} for one in ("[A-Z]", "[a-z]", r"\d")]},
        {"pattern": r"^(\S+\s+){49,99}\S+$", "maxLength": 800},
        {"format": "email", "pattern": r"@example\.com$", "maxLength": 40},
        {"pattern": r"^(?=.*[A-Z])(?=.*\d)", "not": {"pattern": "^admin|root"}, "minLength": 3, "maxLength": 70_000},
    ],
)
def test_what_forms_ask_for_is_finished(compiler: Compiler, schema: dict[str, Any]) -> None:
    inner = {"type": "string", **schema}
    whole = {"type": "object", "properties": {"id": {"type": "integer"}, "x": inner}, "required": ["id", "x"]}
    constraint = compiler.compile(JsonSchema(whole))
    for seed in range(5):
        value = json.loads(finished(constraint, random.Random(seed), 60))
        assert schema.get("minLength", 0) <= len(value["x"]) <= schema["maxLength"]


def test_a_length_is_no_factor_of_the_states(compiler: Compiler) -> None:
    """What a length adds to an automaton are counts that are alike: a long one takes no more than a short one."""
    sizes = [
        compiler.compile(JsonSchema({"type": "string", "pattern": "a.*b", "maxLength": length})).nbytes for length in (100, 100_000)
    ]
    assert sizes[1] < 1.1 * sizes[0]


def test_far_from_its_bounds_a_count_has_the_mask_of_the_others(compiler: Compiler) -> None:
    constraint = compiler.compile(JsonSchema({"type": "string", "pattern": "a.*b", "maxLength": 5000}))
    state = constraint.advance_bytes(constraint.start(), b'"ab')
    assert state is not None
    for _ in range(50):
        constraint.mask(state)
        state = constraint.advance_bytes(state, b"xyz")
        assert state is not None
    assert constraint.statistics["rows"] <= 3
    assert constraint.distant(state).room < 5000 and constraint.distant(state).state != state


def test_what_is_too_hard_is_refused_by_name(compiler: Compiler) -> None:
    schema = {"properties": {"x": {"type": "string", "allOf": [{"pattern": "a.{12}b"}, {"pattern": "c"}], "maxLength": 99}}}
    strict = Compiler(compiler.vocabulary, Limits(search_states=1000))
    with pytest.raises(ConstraintLimit, match="search_states") as caught:
        strict.compile(JsonSchema(schema))
    assert caught.value.path == "#/properties/x/allOf" and caught.value.keyword == "pattern, pattern, maxLength"
    assert "counted repetitions" in str(caught.value)


def test_what_one_pattern_says_meets_no_limit_inside_of_a_text() -> None:
    """A pattern with too many states of its own stays a product, whose searches have a limit: what they do not find is left out."""
    pattern = r"(?!.*://)(?=.{1,60}$)(?:[a-z]{1,20}\.){1,9}[a-z]{2,20}"
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), *WORDS, None], eos_token_ids=[EOS])
    constraint = Compiler(vocabulary, Limits(search_states=200)).compile(Regex(pattern, dialect="ecma"))
    assert any("left out" in note for note in constraint.notes)
    for seed in range(20):
        assert re.fullmatch(pattern, finished(constraint, random.Random(seed), 25))


@pytest.mark.parametrize("pattern", ["^(?!.*a.{9}b)(?=.*c).*$", r"^(?!.*\bfoo\b.{8}x)(?!.*y.{7}z).*$"])
def test_a_complement_of_intersections_is_a_table_or_refused(compiler: Compiler, pattern: str) -> None:
    """A search in it must not give up, so that it would meet its limit inside of a text."""
    schema = JsonSchema({"properties": {"x": {"type": "string", "not": {"pattern": pattern}}}})
    with pytest.raises(ConstraintLimit, match="search_states") as caught:
        Compiler(compiler.vocabulary, Limits(search_states=300)).compile(schema)
    assert caught.value.path == "#/properties/x/not" and caught.value.keyword == "not pattern"
    constraint = compiler.compile(JsonSchema({"type": "string", "not": {"pattern": "^(?!.*ab)(?=.*c).*$"}}))
    for seed in range(10):
        text = json.loads(finished(constraint, random.Random(seed), 25))
        assert not re.search("^(?!.*ab)(?=.*c).*$", text)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (2, 2), (1, 200), (190, 200), (70, None)])
def test_distances_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch, low: int, high: int | None) -> None:
    """Whatever is counted in one call, the table is the same."""
    schema = {"type": "string", "pattern": "^(..)*x", "minLength": low} | ({} if high is None else {"maxLength": high})
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
    whole = Compiler(vocabulary).compile(JsonSchema(schema))
    monkeypatch.setattr(intersections, "TRANSITIONS_AT_ONCE", 1)
    pieces = Compiler(vocabulary).compile(JsonSchema(schema))
    for length in {0, 1, low, low + 1, (high or 90) - 1, high or 90, (high or 90) + 1}:
        for text in ("x" * length, "a" * (length - 1) + "x"):
            ways = [one.advance_bytes(one.start(), f'"{text}'.encode()) for one in (whole, pieces)]
            assert [way is None for way in ways] == [ways[0] is None] * 2
            if ways[0] is not None and ways[1] is not None:
                assert whole.min_tokens(ways[0]) == pieces.min_tokens(ways[1])


def test_words_are_excluded_one_after_another(compiler: Compiler) -> None:
    """Names that are taken stay a list, whatever patterns say of the others."""
    names = [f"a{k}" for k in range(40)]
    schema = {
        "type": "object", "properties": {name: {"type": "integer"} for name in names},
        "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"},
    }  # fmt: skip
    constraint = compiler.compile(JsonSchema(schema))
    assert constraint.accepts(b'{"a1":1,"abc":2,"b":true}') and not constraint.accepts(b'{"abc":true}')
    for seed in range(10):
        finished(constraint, random.Random(seed), 20)


def test_a_lookahead_beside_a_pattern() -> None:
    constraint = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])).compile(
        Regex(r"(?!.*://)(?=.{1,25}$)(?:.{1,10}\.){1,7}[a-z]+", dialect="ecma")
    )
    assert constraint.accepts(b"a.b") and not constraint.accepts(b"a://b.c") and not constraint.accepts(b"a." * 12 + b"bc")


@pytest.mark.parametrize("count", [3, 64, 65, 130])
def test_many_patterns_beside_one_another(compiler: Compiler, count: int) -> None:
    letters = [chr(0x100 + k) for k in range(count)]
    schema = {"type": "string", "allOf": [{"pattern": f"^[^{letter}]*$"} for letter in letters]}
    constraint = compiler.compile(JsonSchema(schema))
    assert constraint.accepts('"aÿ"') and not any(constraint.accepts(f'"a{letter}"') for letter in letters)


def test_of_what_is_empty_the_rest_is_not_multiplied(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": ["string", "null"], "allOf": [{"pattern": f"^a{k}"} for k in range(200)]}
    multiplied: list[int] = []
    product_of_two = intersections.product
    monkeypatch.setattr(intersections, "product", lambda *given: multiplied.append(1) or product_of_two(*given))
    constraint = compiler.compile(JsonSchema(schema))
    assert constraint.accepts("null") and not constraint.accepts('"a1"') and len(multiplied) < 100
