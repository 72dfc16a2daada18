"""Arrays whose items must differ beside alternatives whose items need not: refused by name where they meet, never wrong."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, JsonSchema, UnsupportedKeyword, Vocabulary

BYTES = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
C = {"properties": {"c": {"uniqueItems": True}}}


def kind(name: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": name}, **members}, "required": ["kind"]}


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [C, {"type": "object"}]},
        {"anyOf": [C, {"required": ["c"]}]},
        {"anyOf": [C, {"properties": {"d": {"type": "string"}}}]},
        {"anyOf": [{"items": {"uniqueItems": True}}, {"minItems": 1}]},
        {"anyOf": [{"patternProperties": {"^x": {"uniqueItems": True}}}, {"minProperties": 1}]},
        {"anyOf": [{"properties": {"a": C}}, {"properties": {"a": {"type": "object"}}}]},
        {"anyOf": [{"properties": {"a": {"items": C}}}, {"additionalProperties": {"items": {"minProperties": 1}}}]},
    ],
)
def test_arrays_of_both_kinds_in_one_place_are_refused(schema: dict[str, Any], order: Any) -> None:
    with pytest.raises(UnsupportedKeyword, match="another alternative allows arrays with equal items in the same place"):
        BYTES.compile(JsonSchema(schema, property_order=order))


@pytest.mark.parametrize(
    ("schema", "order"),
    [
        ({"anyOf": [C, {}]}, "any"),
        ({"anyOf": [C, {"type": "array"}]}, "any"),
        ({"anyOf": [{"type": "array", "items": C}, {"type": "object"}]}, "any"),
        ({"anyOf": [{**C, "minProperties": 1}, {**C, "maxProperties": 2}]}, "any"),
        ({"anyOf": [kind("a", c={"uniqueItems": True}), kind("b", c={"type": "array"})]}, "declared"),
        ({"properties": {"c": {"uniqueItems": True}, "d": {"type": "array"}}}, "any"),
    ],
)
def test_arrays_that_do_not_meet(schema: dict[str, Any], order: Any) -> None:
    constraint = BYTES.compile(JsonSchema(schema, property_order=order))
    arrays: list[Any] = [[], [1], [1, 1], [1, 2], [[1, 1]], [{"c": [1, 1]}]]
    objects = [{**head, name: array} for head in ({}, {"kind": "a"}, {"kind": "b"}) for name in "cd" for array in arrays]
    for value in [*arrays, *objects, {"c": [1, 1], "d": 2}, 1]:
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert constraint.accepts(json.dumps(value, separators=(",", ":"))) == valid, value
