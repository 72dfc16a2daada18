"""Items and names that must be new cost what those cost that are left, also where white space stands beside them: the least budget
that suffices somewhere is enough, whatever is taken first."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Vocabulary
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b'","', b"ar", b"ef", b'",\n', None], eos_token_ids=[260])
LISTED = {"enum": ["a", "be careful", "dx", "considerable"]}
SCHEMAS: dict[str, Any] = {
    "items": {"type": "array", "items": LISTED, "uniqueItems": True, "minItems": 4},
    "items and null": {"type": "array", "items": {"anyOf": [LISTED, {"type": "null"}]}, "uniqueItems": True, "minItems": 5},
    "objects": {
        "type": "array", "uniqueItems": True, "minItems": 3,
        "items": {"type": "object", "properties": {"k": LISTED}, "required": ["k"], "additionalProperties": False},
    },
    "names": {"type": "object", "propertyNames": LISTED, "additionalProperties": {"type": "null"}, "minProperties": 4},
}  # fmt: skip


def _items(item: Any, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": item, "uniqueItems": True, "minItems": least}


def _names(pattern: str, least: int) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False, "minProperties": least}


def _text(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


def _kind(number: int) -> dict[str, Any]:
    return {"properties": {"kind": {"const": number}}, "required": ["kind"]}


FEW_LETTERS = {
    **{f"{pattern} items": _items(_text(pattern), 9) for pattern in ("^[ab]*$", "^a*$", "^(a|x)(b{3})*$", "^[ab]{0,3}$", "^x?[ab]{1,9}$")},
    **{f"{pattern} names": _names(pattern, 9) for pattern in ("^[ab]*$", "^a*$", "^(a|x)(b{3})*$", "^[ab]{0,3}$")},
    "digits": _items(_text("^[0-9]*$"), 20),
    "integers": _items({"type": "integer", "minimum": 0}, 30),
    "lists of booleans": _items({"type": "array", "items": {"type": "boolean"}}, 9),
    "lists of null": _items({"type": "array", "items": {"type": "null"}}, 6),
    "both": _items({"allOf": [_text("^[ab]*$"), _text("b$")]}, 9),
}
KEYS_AND_VALUES = {  # many values are no many names
    "patternProperties": {".": {"type": "string"}, "^a": {"const": "1"}}, "properties": {"b": {"enum": [1, 2, "x"]}},
    "if": {"patternProperties": {"b$": {"enum": [1, 2]}}}, "then": {"maxProperties": 2}, "else": {"minProperties": 3}, "type": "object",
}  # fmt: skip
OBJECTS: dict[str, dict[str, Any]] = {
    "closed": {"properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}, "cc": {"type": "null"}}, "additionalProperties": False},
    "one letter": {"properties": {"k": {"const": "x"}, "v": _text("^a*$")}, "required": ["k", "v"]},
    "open": {},
    "patterns": {"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": False, "minProperties": 1},
}  # fmt: skip
CONDITIONS: dict[str, tuple[dict[str, Any], int]] = {  # members, and how many objects there are, or as many as are wanted
    "if": (
        {
            "properties": {"a": {"const": 1}, "b": {"const": 1}, "c": {"enum": [1, 2, None]}},
            "anyOf": [{"required": ["c", "a"]}, {"properties": {"b": {"const": 1}}}],
            "if": {"required": ["b"]}, "then": {"required": ["c"]}, "else": {"properties": {"c": {"enum": [1, 2]}}},
        },
        12,
    ),
    "one letter": (
        {"properties": {"a": {"const": 1}, "v": _text("^a*$"), "w": {"const": "long"}}, "dependentRequired": {"a": ["v", "w"], "w": ["a"]}},
        9,
    ),
    "one letter, bounded": (
        {
            "properties": {"a": {"const": "considerable"}, "v": _text("^a*$"), "w": {"const": 1}}, "dependentRequired": {"v": ["a"]},
            "minProperties": 2, "if": {"required": ["w"]}, "then": {"maxProperties": 2},
        },
        9,
    ),
    "kinds": (
        {
            "properties": {"kind": {"enum": [*range(9)]}, **{f"a{i}": {"const": 1} for i in range(9)}},
            "allOf": [{"if": _kind(i), "then": {"required": [f"a{i}"]} if i < 6 else {"properties": {"a1": False}}} for i in range(9)],
        },
        5,
    ),
    "kinds beside a name": (
        {
            "properties": {"kind": {"enum": [*range(9)]}, **{f"a{i}": {"const": 1} for i in range(9)}, "v": _text("^a*$")},
            "allOf": [{"if": _kind(i), "then": {"required": [f"a{i}"]}} for i in range(9)],
        },
        5,
    ),
    "either": ({"properties": {"a": {"enum": [1, 2]}, "b": {"enum": [1, "be careful"]}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, 4),
}  # fmt: skip
DEFINITIONS = {
    "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 1},
    "object": {"type": "object", "properties": {"k": LISTED, "t": {"$ref": "#/$defs/object"}}, "additionalProperties": False},
    "lists": {"type": "array", "items": {"anyOf": [{"const": "x"}, {"$ref": "#/$defs/lists"}]}, "uniqueItems": True, "maxItems": 2},
}  # fmt: skip
GROWING: dict[str, tuple[dict[str, Any], int]] = {  # items of which the short ones are few, and how many are wanted
    "multiples": ({"type": "integer", "multipleOf": 1_000_003}, 24),
    "counted items": ({"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 1}, "minContains": 1, "maxContains": 2}, 6),
    "lists in themselves": ({"$ref": "#/$defs/tree"}, 6),
    "objects in themselves": ({"$ref": "#/$defs/object"}, 7),
    "different lists in themselves": ({"$ref": "#/$defs/lists"}, 5),
    "few names": ({"type": "object", "patternProperties": {"^x{1,2}$": LISTED}, "additionalProperties": False}, 9),
    "tuples that contain much": (
        {
            "type": "array", "prefixItems": [{"enum": [0, 1]}], "items": {"enum": [*range(9)]},
            "allOf": [{"contains": {"const": k}} for k in range(9)],
        },
        6,
    ),
    "few members": ({"type": "array", "items": LISTED, "uniqueItems": True}, 9),
    "different lists that contain one": (
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "maxItems": 3, "contains": {"const": 1}}, 3,
    ),
    "different lists of digits": (
        {"anyOf": [{"const": {}}, {"const": None}, {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True, "minItems": 2}]},
        9,
    ),
    "different lists of different lists": (_items(_items(LISTED, 2), 2), 4),
}  # fmt: skip
FEW_OF_A_KIND: dict[str, list[dict[str, Any]]] = {  # kinds with few values, of which some may be used up
    "one of two is left": [
        {"contains": {"enum": [3, "a"]}}, {"contains": {"enum": [0, {"a": 1}]}, "minContains": 2},
        {"contains": {"enum": [None, True, 0]}, "maxContains": 2},
    ],
    "one is left that is longer": [
        {"contains": {"enum": [None, 2]}, "minContains": 2}, {"contains": {"enum": ["ab", "ba", 3, {"a": 1}]}, "minContains": 2},
        {"contains": {"enum": [3, True]}}, {"contains": {"enum": [{"a": 1}, 3]}},
    ],
}  # fmt: skip
BEGUN = {  # more than the least number is there already
    "two letters": (_items(_text("^[ab]*$")), ["", *"ab", "aa", "ab", "ba", "bb"]),
    "one letter": (_items(_text("^a*$"), 2), ["", "a", "aa", "aaa", "aaaa"]),
    "digits": (_items(_text("^[0-9]*$")), ["", *map(str, range(10))]),
    "lists of null": (_items({"type": "array", "items": {"type": "null"}}), [[], [None], [None, None]]),
}


def test_values_make_no_key_a_new_one() -> None:
    constraint = Compiler(VOCABULARY).compile(JsonSchema(KEYS_AND_VALUES, whitespace="compact"))
    for seed in range(6):
        for beginning in (b'{"xb":"","":0', b'{"xb":"","":0,"', b"{"):
            assert constraint.accepts(walked(constraint, random.Random(seed), beginning))


@pytest.mark.parametrize("whitespace", ["compact", "flexible", "spaced"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_what_suffices_at_the_start_is_enough(name: str, whitespace: str) -> None:
    constraint = Compiler(VOCABULARY).compile(JsonSchema(SCHEMAS[name], whitespace=whitespace))
    for seed in range(6):
        text = walked(constraint, random.Random(seed), b"")
        assert constraint.accepts(text) and len(json.loads(text)) >= 3


@pytest.mark.parametrize("name", FEW_LETTERS)
def test_what_has_few_letters_runs_out_of_short_texts(name: str) -> None:
    constraint = Compiler(VOCABULARY).compile(JsonSchema(FEW_LETTERS[name]))
    for seed in range(6):
        assert constraint.accepts(walked(constraint, random.Random(seed), b""))


@pytest.mark.parametrize("name", BEGUN)
def test_one_more_behind_many(name: str) -> None:
    schema, begun = BEGUN[name]
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema, whitespace="compact"))
    beginning = json.dumps(begun, separators=(",", ":")).encode()[:-1] + b","
    for seed in range(6):
        text = walked(constraint, random.Random(seed), beginning)
        assert constraint.accepts(text) and len(json.loads(text)) > len(begun)


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_that_must_differ(name: str, order: str) -> None:
    schema = _items({"type": "object", "required": ["a"] if name == "closed" else [], **OBJECTS[name]}, 6)
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema, whitespace="compact", property_order=order))
    for seed in range(6):
        assert constraint.accepts(walked(constraint, random.Random(seed), b""))


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_objects_under_conditions_run_out_of_cheap_ones(name: str, order: str) -> None:
    item, number = CONDITIONS[name]
    schema = _items({"type": "object", "additionalProperties": False, **item}, number)
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema, whitespace="compact", property_order=order))
    for seed in range(4):
        assert constraint.accepts(walked(constraint, random.Random(seed), b""))


@pytest.mark.parametrize("name", ["kinds", "kinds beside a name"])
def test_an_order_that_is_free_needs_no_larger_budget(name: str) -> None:
    item, number = CONDITIONS[name]
    schema = _items({"type": "object", "additionalProperties": False, **item}, number)
    sources = (JsonSchema(schema, whitespace="compact", property_order=order) for order in ("declared", "any"))
    declared, free = map(Compiler(VOCABULARY).compile, sources)
    assert free.min_tokens(free.start()) <= declared.min_tokens(declared.start())


@pytest.mark.parametrize("name", GROWING)
def test_short_items_run_out(name: str) -> None:
    item, number = GROWING[name]
    constraint = Compiler(VOCABULARY).compile(JsonSchema({**_items(item, number), "$defs": DEFINITIONS}, whitespace="compact"))
    for seed in range(4):
        assert constraint.accepts(walked(constraint, random.Random(seed), b""))


@pytest.mark.parametrize("first", [[], [{"type": ["integer", "string"]}, True]])
@pytest.mark.parametrize("name", FEW_OF_A_KIND)
def test_items_of_few_values_are_not_counted_on_twice(name: str, first: list[Any]) -> None:
    schema = {**_items(True), "allOf": FEW_OF_A_KIND[name], **({"prefixItems": first} if first else {})}
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema, whitespace="compact"))
    for seed in range(8):
        for beginning in (b"[", b"[7,", b'["a",', b"[3,"):
            assert constraint.accepts(walked(constraint, random.Random(seed), beginning))


@pytest.mark.parametrize("order", ["declared", "any"])
def test_tokens_that_go_on_behind_a_quote(order: str) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b'"a', b'":', b'",\n', b'","', b'b",', b"xb", None]
    item = {"type": "object", "properties": {"c": {"const": 2}}, "required": ["c"]}
    source = JsonSchema(_items(item, 9), whitespace="flexible", property_order=order)
    constraint = Compiler(Vocabulary(tokens, eos_token_ids=[len(tokens) - 1])).compile(source)
    for seed in range(4):
        assert constraint.accepts(walked(constraint, random.Random(seed), b""))


def walked(constraint: Constraint, rng: random.Random, text: bytes) -> bytes:
    """A text that goes on behind `text`, by tokens drawn within the least budget that suffices there."""
    state = constraint.advance_bytes(constraint.start(), text)
    assert state is not None
    for left in range(constraint.min_tokens(state), -1, -1):
        allowed = list(as_token_ids(constraint.mask(state, left)))
        assert allowed, f"a dead end behind {text!r}"
        token = rng.choice(allowed)
        after = constraint.advance(state, token)
        assert after is not None
        if after == FINISHED:
            break
        state, text = after, text + (constraint.vocabulary.tokens[token] or b"")
    return text
