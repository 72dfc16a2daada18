"""Arrays whose items must differ beside other arrays: a repeated item ends some alternatives and not others."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, UnsupportedKeyword, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits

MERGED = [b"1,", b",1", b"1,1", b"],", b"[1", b'","', b'",', b"1]", b"2,1]", b",2,1", b'a","a', b'1,"a"]', b"[1,1", b'"]', b"1],["]
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *MERGED, None], eos_token_ids=[256 + len(MERGED)])
BYTES = Compiler(VOCABULARY)
C = {"properties": {"c": {"uniqueItems": True}}}
LONG = {"const": 123456789}
UNIQUE_PAIRS = {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}}
ARRAYS: list[Any] = [list(items) for length in range(4) for items in itertools.product([1, 2, "a", [1], [1, 1]], repeat=length)]


def kind(name: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": name}, **members}, "required": ["kind"]}


MIXED: list[dict[str, Any]] = [
    {"anyOf": [C, {"type": "object"}]},
    {"anyOf": [C, {"required": ["d"]}]},
    {"anyOf": [C, {"properties": {"d": {"type": "string"}}}]},
    {"anyOf": [{**C, "additionalProperties": False}, {"required": ["$ref"], "patternProperties": {"^\\$ref$": {"type": "string"}}}]},
    {"anyOf": [{"items": {"uniqueItems": True}}, {"minItems": 1, "maxItems": 2}]},
    {"anyOf": [{"patternProperties": {"^c": {"uniqueItems": True}}}, {"minProperties": 2}]},
    {"anyOf": [{"properties": {"c": {"items": {"uniqueItems": True}}}}, {"additionalProperties": {"items": {"minItems": 2}}}]},
    {"anyOf": [UNIQUE_PAIRS, {"type": "array", "contains": LONG}]},
    {"anyOf": [UNIQUE_PAIRS, {"type": "array", "minItems": 3, "items": {"type": "integer"}}]},
    {"type": "array", "uniqueItems": True, "items": {"anyOf": [{"type": "array", "uniqueItems": True}, {"type": "array", "minItems": 2}]}},
    {"anyOf": [UNIQUE_PAIRS, {"type": "array", "uniqueItems": True, "items": {"type": "integer"}, "contains": LONG}]},
]
APART: list[dict[str, Any]] = [
    {"anyOf": [C, {}]},
    {"anyOf": [C, {"type": "array"}]},
    {"anyOf": [{"type": "array", "items": C}, {"type": "object"}]},
    {"anyOf": [{**C, "minProperties": 1}, {**C, "maxProperties": 2}]},
    {"properties": {"c": {"uniqueItems": True}, "d": {"type": "array"}}},
    {"properties": {"c": {"uniqueItems": True}}, "anyOf": [{"properties": {"c": {"minItems": 1}}}, {"properties": {"c": {"maxItems": 1}}}]},
]


def compiled(schema: Any, order: Any) -> Constraint:
    return BYTES.compile(JsonSchema(schema, property_order=order))


def values() -> list[Any]:
    some = ARRAYS[::3]
    objects = [{**head, name: array} for head in ({}, {"$ref": "x"}, {"kind": "a"}, {"kind": "b"}) for name in "cd" for array in some]
    deep = [[a, b] for a, b in itertools.pairwise(some)] + [[a, a] for a in some] + [{"c": [a, a]} for a in some]
    return [*ARRAYS, *objects, *deep, {"c": [1, 1], "d": 2}, {"c": [1, 1], "d": "x"}, [1, 1, 123456789], [1, 2, 1, 123456789], 1]


@pytest.mark.parametrize("schema", [*MIXED, *APART])
def test_what_is_accepted_is_what_a_validator_admits(schema: dict[str, Any]) -> None:
    constraint, validator = compiled(schema, "any"), jsonschema.Draft202012Validator(schema)
    reference_grammar = Grammar()
    root = JsonSchema(schema, property_order="any").lower(reference_grammar, Limits())
    reference = Reference(reference_grammar, root)
    for number, value in enumerate(values()):
        text, valid = json.dumps(value, separators=(",", ":")), validator.is_valid(value)
        assert constraint.accepts(text) == valid, value
        if number % 7 == 0:
            assert reference.accepts(text.encode()) == valid, value


@pytest.mark.parametrize("schema", MIXED)
def test_they_are_seen_to_be_mixed(schema: dict[str, Any]) -> None:
    grammar = Grammar()
    JsonSchema(schema, property_order="any").lower(grammar, Limits())
    assert grammar.mixed_arrays


@pytest.mark.parametrize("schema", APART)
def test_arrays_that_do_not_meet_are_not(schema: dict[str, Any]) -> None:
    grammar = Grammar()
    JsonSchema(schema, property_order="any").lower(grammar, Limits())
    assert not grammar.mixed_arrays


def test_members_that_tell_alternatives_apart_first() -> None:
    schema = {"anyOf": [kind("a", c={"uniqueItems": True}), kind("b", c={"type": "array"})]}
    grammar = Grammar()
    JsonSchema(schema).lower(grammar, Limits())
    assert not grammar.mixed_arrays
    assert compiled(schema, "declared").accepts('{"kind":"b","c":[1,1]}') and not compiled(schema, "declared").accepts('{"kind":"a","c":[1,1]}')


@pytest.mark.parametrize("order", ["any", "declared"])
@pytest.mark.parametrize("schema", MIXED)
def test_masks_and_budgets_are_those_of_single_tokens(schema: dict[str, Any], order: str) -> None:
    """Random texts, many of them with repeated items, each to its end within the fewest tokens and a few more."""
    constraint, validator = compiled(schema, order), jsonschema.Draft202012Validator(schema)
    eos, rng = VOCABULARY.size - 1, Random(f"{schema} {order}")
    for slack in (0, 1, 6, 12):
        state, text, left = constraint.start(), b"", constraint.min_tokens(constraint.start()) + slack
        while True:
            after = {token: constraint.advance(state, token) for token in range(eos)}
            alive = [token for token, behind in after.items() if behind is not None]
            assert tokens_of(constraint.mask(state)) - {eos} == set(alive), text
            within = [token for token in alive if constraint.min_tokens(after[token]) < left]  # type: ignore[arg-type]
            assert tokens_of(constraint.mask(state, budget=left)) - {eos} == set(within), text
            if constraint.is_accepting(state) and (not within or rng.random() < 0.2):
                break
            favourites = [token for token in within if VOCABULARY.tokens[token] in (b"[", b"1", b",", b"]", b'"', b"c", b"a", *MERGED)]
            token = rng.choice(favourites or within)
            state, text, left = after[token], text + (VOCABULARY.tokens[token] or b""), left - 1  # type: ignore[assignment]
        assert validator.is_valid(json.loads(text)), text


def tokens_of(mask: np.ndarray[Any, Any]) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("schema", [{"not": {"uniqueItems": True}}, {"type": "array", "not": {"uniqueItems": True}}])
def test_negations_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedKeyword, match="its negation is not enforced"):
        compiled(schema, "any")


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"uniqueItems": True, "not": {"uniqueItems": True}}, {"type": "array", "minItems": 3}]},
        {"anyOf": [{"maxItems": 1, "not": {"uniqueItems": True}}, {"type": "null"}]},
        {"oneOf": [{"type": "array", "uniqueItems": True, "items": {"type": "string"}}, {"type": "array", "uniqueItems": True, "minItems": 1}]},
    ],
)
def test_negations_that_contradict_what_is_said_besides(schema: dict[str, Any]) -> None:
    constraint, validator = compiled(schema, "any"), jsonschema.Draft202012Validator(schema)
    for value in [None, *ARRAYS]:
        assert constraint.accepts(json.dumps(value, separators=(",", ":"))) == validator.is_valid(value), value
