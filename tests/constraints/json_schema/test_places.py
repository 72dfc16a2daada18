"""Places: to which schema each byte of a text belongs, against the place of that byte in the parsed value."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Regex, Vocabulary
from maskwright.constraints.runtime.constraint import as_token_ids
from maskwright.constraints.runtime.front_end import places_of

EOS = 256
COMPILER = Compiler(Vocabulary([bytes([i]) for i in range(256)] + [None], eos_token_ids=[EOS]))
Step = str | int
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}, "age": {"type": "integer"}}, "additionalProperties": False}
SCHEMAS: dict[str, Any] = {
    "members": PERSON | {"required": ["name", "age"]},
    "members that are alike": {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": 2} for name in "abc"},
        "additionalProperties": False,
        "required": ["a", "b"],
    },
    "nested": {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "maxItems": 3, "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
            "inner": {"type": "object", "properties": {"x": {"type": "null"}, "y/z": {"enum": [1, "1"]}}, "additionalProperties": False},
            "pair": {"type": "array", "prefixItems": [{"type": "null"}, PERSON], "items": False},
        },
        "additionalProperties": False,
    },
    "references": {
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}},
        "additionalProperties": False,
        "required": ["left"],
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"value": {"const": 1}, "next": {"$ref": "#/$defs/node"}},
                "additionalProperties": False,
            }
        },
    },
    "a number": {"type": "integer", "maximum": 99},
}


def walk(constraint: Constraint, seed: int, length: int = 60) -> bytes:
    """A random text: bytes at random, and the shortest way to an end behind `length` of them."""
    rng, state, text = random.Random(seed), constraint.start(), bytearray()
    while True:
        budget = None if len(text) < length else constraint.min_tokens(state) + 1
        token = rng.choice(list(as_token_ids(constraint.mask(state, budget))))
        if token == EOS:
            return bytes(text)
        text.append(token)
        after = constraint.advance(state, token)
        assert after is not None
        state = after


def steps_of(text: bytes) -> list[tuple[Step, ...]]:
    """For each byte of a JSON text the way to the value that it belongs to."""
    found: list[tuple[Step, ...]] = []
    decoder = json.JSONDecoder()
    chars = text.decode("latin-1")  # one character a byte; all that matters is ASCII

    def take(count: int, way: tuple[Step, ...]) -> None:
        found.extend([way] * count)

    def value(way: tuple[Step, ...]) -> None:
        first = chars[len(found)]
        if first not in "{[":
            take(decoder.raw_decode(chars, len(found))[1] - len(found), way)
            return
        take(1, way)
        count = 0
        while chars[len(found)] not in "}]":
            if chars[len(found)] in ", \n\r\t":
                take(1, way)
                continue
            step: Step = count
            if first == "{":
                step, end = decoder.raw_decode(chars, len(found))
                take(end - len(found), way)
                while chars[len(found)] in ": \n\r\t":
                    take(1, way)
            value((*way, step))
            count += 1
        take(1, way)

    value(())
    return found + [()] * (len(text) - len(found))


def place_of(schema: Any, way: tuple[Step, ...]) -> str:
    """The place of the schema to which names and indexes lead."""
    path, at = "#", schema
    for step in way:
        if "$ref" in at:
            path, at = at["$ref"], schema["$defs"]["node"]
        keys: tuple[Step, ...] = ("properties", step)
        if isinstance(step, int):
            keys = ("prefixItems", step) if step < len(at.get("prefixItems", ())) else ("items",)
        for key in keys:
            at = at[key]
            path += "/" + str(key).replace("~", "~0").replace("/", "~1")
    return path


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_each_byte_of_a_walk_is_where_the_parsed_value_has_it(name: str, order: str) -> None:
    constraint = COMPILER.compile(JsonSchema(SCHEMAS[name], property_order=order))
    for seed in range(12):
        text = walk(constraint, seed)
        places = places_of(constraint)
        assert places is not None
        told = [places.read(bytes([byte])) for byte in text]
        assert told == [(place_of(SCHEMAS[name], way),) for way in steps_of(text)], text


def read(schema: Any, *pieces: str, **options: Any) -> Iterator[list[str]]:
    places = places_of(COMPILER.compile(JsonSchema(schema, **options)))
    assert places is not None
    return (list(places.read(piece.encode())) for piece in pieces)


def test_a_piece_has_all_places_of_its_bytes() -> None:
    whole, rest = read(SCHEMAS["members"], '{"name":"A', '","age":3')
    assert whole == ["#", "#/properties/name"] and rest == ["#/properties/name", "#", "#/properties/age"]


def test_alternatives_are_followed_until_they_are_refuted() -> None:
    def tagged(tag: str, **more: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": tag}, "v": {"type": "integer"}, **more}}

    schema = {"oneOf": [tagged("a"), tagged("b", w={"type": "null"}), {"type": "array", "items": {"type": "null"}}]}
    kind, v = list(read(schema, '{"kind":', '"b"', ',"v":', "1"))[1::2]
    assert kind == ["#/oneOf/0/properties/kind", "#/oneOf/1/properties/kind"] and v == ["#/oneOf/1/properties/v"]
    assert list(read(schema, "[", "null", "]")) == [["#"], ["#/oneOf/2/items"], ["#"]]


def test_conditions_and_dependents() -> None:
    schema = {
        "type": "object",
        "if": {"properties": {"a": {"const": 1}}},
        "then": {"properties": {"b": {"type": "string"}}},
        "dependentSchemas": {"a": {"properties": {"c": {"type": "null"}}}},
        "additionalProperties": {"type": ["integer", "string", "null"]},
    }
    assert list(read(schema, '{"a":', "1", ',"b":', '"x"', ',"c":', "null"))[3::2] == [
        ["#/additionalProperties", "#/then/properties/b"], ["#/additionalProperties", "#/dependentSchemas/a/properties/c"],
    ]  # fmt: skip
    assert list(read(schema, '{"a":', "2", ',"b":', '"x"'))[3] == ["#/additionalProperties"]


def test_patterns_names_in_escapes_and_what_no_schema_describes() -> None:
    schema = {"type": "object", "properties": {"é\n": {"type": "integer"}}, "patternProperties": {"^x": {"type": "object"}}}
    told = list(read(schema, r'{"é\n":', "1", ',"x\\"}":', '{"deep":[1,{}', "]}", ',"y":', "[]"))
    assert told[1::2] == [["#/properties/é\n"], ["#/patternProperties/^x"], ["#"]] and told[4] == ["#/patternProperties/^x"]


def test_unevaluated_members() -> None:
    schema = {"type": "object", "allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": {"type": "integer"}}
    assert list(read(schema, '{"a":', "1", ',"b":', "2"))[1::2] == [["#/allOf/0/properties/a"], ["#/unevaluatedProperties"]]


def test_what_is_evaluated_by_a_schema_that_is_only_known_later_to_hold() -> None:
    closed: dict[str, Any] = {"type": "object", "properties": {"q": {}}, "unevaluatedProperties": False}
    for more, place in (
        ({"dependentSchemas": {"q": {"properties": {"d": {"type": "integer"}}}}}, "#/dependentSchemas/q/properties/d"),
        ({"if": {"properties": {"d": {"const": 1}}, "required": ["d"]}}, "#/if/properties/d"),
    ):
        assert list(read(closed | more, '{"d":', "1", ',"q":', "2", property_order="any"))[1::2] == [[place], ["#/properties/q"]]
    items = {"type": "array", "contains": {"type": "boolean"}, "unevaluatedItems": {"type": "integer"}}
    assert list(read(items, "[", "true", ",", "1,"))[1::2] == [["#/contains"], ["#/unevaluatedItems", "#"]]


def test_white_space_belongs_to_what_is_around_it() -> None:
    told = list(read(SCHEMAS["members"], " ", "{ ", '"age" : ', "1", " ", "}", " ", whitespace="flexible"))
    assert told == [["#"], ["#"], ["#"], ["#/properties/age"], ["#"], ["#"], ["#"]]


def test_only_json_has_places() -> None:
    assert places_of(COMPILER.compile(Regex("a+"))) is None
    assert places_of(COMPILER.compile(JsonSchema({"type": "array"}, whitespace="-*"))) is None
