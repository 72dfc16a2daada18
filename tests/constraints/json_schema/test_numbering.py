"""Schemas that say the same are lowered once; those that do not, though they look alike, are not taken for one."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.source import Limits

BYTES = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))

ALIKE: list[dict[str, Any]] = [  # pairs of which only what describes them differs, at any depth
    {"type": "object", "properties": {"x": {"oneOf": [{"type": "string", "minLength": 2}, {"type": "null"}]}}},
    {
        "description": "another one", "type": "object", "$comment": "kept apart",
        "properties": {"x": {"oneOf": [{"type": "string", "title": "X", "minLength": 2}, {"type": "null", "default": None}]}},
    },
]  # fmt: skip
DIFFERENT: list[Any] = [
    {"const": 1},
    {"const": True},
    {"const": "1"},
    {"const": {"title": "a"}},
    {"const": {"title": "b"}},
    {"const": [1]},
    {"const": [True]},
    {"const": {"0": 1}},
    {"enum": [{"description": "x"}]},
    {"enum": [{"description": "y"}]},
    {"properties": {"title": {"type": "string"}}},
    {"properties": {"title": {"type": "integer"}}},
    {"properties": {"description": True}},
    {"properties": {"default": False}},
    {"patternProperties": {"title": {"type": "null"}}},
    {"dependencies": {"title": ["default"]}},
    {"dependencies": {"title": ["description"]}},
    {"required": ["title"]},
    {"required": ["default"]},
    {"items": {"const": {"examples": 1}}},
    {"items": {"const": {"examples": 2}}},
]
VALUES: list[Any] = [
    None, 1, True, False, "1", "ab", [1], [True], ["a"], {}, {"0": 1}, [{"examples": 1}], [{"examples": 2}],
    *({name: value} for name in ("title", "description", "default", "x") for value in ("a", "b", "x", "y", 1, None)),
    {"title": "a", "default": 1}, {"title": "a", "description": "b"},
]  # fmt: skip


def lowered(schema: Any) -> int:
    grammar = Grammar()
    JsonSchema(schema).lower(grammar, Limits())
    return len(grammar)


def agrees(schema: dict[str, Any], value: Any) -> None:
    constraint = BYTES.compile(JsonSchema(schema, property_order="any"))
    text = json.dumps(value, separators=(",", ":"))
    assert constraint.accepts(text) == jsonschema.Draft7Validator(schema).is_valid(value), (schema, value)


def test_descriptions_make_no_difference() -> None:
    first, second = ALIKE
    draft = "http://json-schema.org/draft-07/schema#"
    lowered({"$schema": draft, "items": [first, second]})  # what is lowered once and copied later is there from now on
    same, alike, other = (
        lowered({"$schema": draft, "items": [first, behind]}) for behind in (first, second, {**second, "minProperties": 1})
    )
    assert same == alike < other


@pytest.mark.parametrize(("left", "right"), list(combinations(DIFFERENT, 2)))
def test_what_is_no_description_counts(left: Any, right: Any) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"l": left, "r": right}}
    constraint, check = BYTES.compile(JsonSchema(schema, property_order="any")), jsonschema.Draft7Validator(schema)
    for value in VALUES:
        for name in "lr":
            text = json.dumps({name: value}, separators=(",", ":"))
            assert constraint.accepts(text) == check.is_valid({name: value}), (schema, text)


def test_references_lead_elsewhere_from_elsewhere() -> None:
    part = {"$ref": "#/definitions/x"}
    inner = {"$id": "http://example.com/inner", "definitions": {"x": {"type": "integer"}}, "properties": {"p": {"items": part}}}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"x": {"type": "string"}},
        "properties": {"p": {"items": part}, "q": inner},
    }  # fmt: skip
    for value in ({"p": [1]}, {"p": ["a"]}, {"q": {"p": [1]}}, {"q": {"p": ["a"]}}):
        agrees(schema, value)


def test_every_place_is_told_of_what_is_not_enforced() -> None:
    part = {"type": "object", "properties": {"x": {"$ref": "http://example.com/elsewhere"}}}
    schema = {"properties": {"a": part, "b": part}}
    constraint = BYTES.compile(JsonSchema(schema, on_unsupported="relax"))
    assert sorted(entry.partition(" ")[0].split("/")[2] for entry in constraint.residue) == ["a", "b"]
