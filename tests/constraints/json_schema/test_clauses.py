"""Clauses about the members of objects: what is accepted, what may never be begun, and that every text can be ended."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary
from maskwright.constraints.front_ends.json_schema.documents.values import dump_json

from .adversarial_schemas import FAMILIES, Maker

END = 256
COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(END)), None], eos_token_ids=[END]))
STRING = {"type": "string"}
WALKED = 20  # schemas of each family

SCHEMAS: dict[str, dict[str, Any]] = {
    "missing, wrong or too many": {"not": {"properties": {"a": STRING, "b": {}}, "required": ["b"], "additionalProperties": False}},
    "dependent": {"dependentRequired": {"a": ["b", "c"], "b": ["a"], "d": ["d"]}},
    "not dependent": {"not": {"dependentRequired": {"a": ["b", "c"], "b": ["d"]}}},
    "dependent on what is missing": {
        "properties": {key: {} for key in "abc"},
        "dependentSchemas": {"a": {"not": {"required": ["b"]}}, "b": {"not": {"required": ["a"]}}, "d": {"not": {"required": ["c"]}}},
    },
    "dependent on clauses and more": {
        "dependentSchemas": {
            "a": {"anyOf": [{"not": {"required": ["b"]}}, {"not": {"required": ["c"]}}, {"properties": {"b": STRING}}]},
            "b": {"dependentSchemas": {"c": {"not": {"properties": {"a": STRING}}}}}, "c": False, "d": {"type": "string"},
        },
    },
    "in order": {"properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"c": ["a"], "a": ["b"]}},
    "one of three": {"oneOf": [{"properties": {key: STRING}, "required": [key]} for key in "abc"]},
    "none of three": {"not": {"anyOf": [{"properties": {key: STRING}, "required": [key]} for key in "abc"]}},
    "not equal": {"not": {"const": {"a": "x", "b": 1}}},
    "closed": {
        "properties": {key: {} for key in "abcd"}, "additionalProperties": False,
        "not": {"properties": {"a": STRING, "b": STRING}}, "dependentRequired": {"c": ["d"]},
    },
    "many absent": {"not": {"required": list("abcd")}, "minProperties": 1},
    "patterns": {"not": {"patternProperties": {"^[ab]$": STRING, "^c": {"type": "integer"}}}},
    "all required, some wrong": {
        "required": list("abc"), "properties": dict.fromkeys("abc", STRING),
        "not": {"properties": {"a": {"const": "x"}, "b": {"type": "integer"}}, "required": ["a", "d"]},
    },
    "conditions on one member": {"allOf": [{"not": {"properties": {"a": {"const": value}}}} for value in ("x", 1, True, None, [])]},
}  # fmt: skip


def objects() -> Iterator[dict[str, Any]]:
    """Objects of up to three members."""
    for length in range(4):
        for names in itertools.combinations("abcd", length):
            for values in itertools.product(("x", 1), repeat=length):
                yield dict(zip(names, values, strict=True))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_accepts_what_is_valid_in_any_order(schema: dict[str, Any]) -> None:
    constraint = COMPILER.compile(JsonSchema(json.dumps(schema), property_order="any"))
    validator = jsonschema.Draft202012Validator(schema)
    for value in objects():
        for members in itertools.permutations(value.items()):
            assert constraint.accepts(_text(dict(members))) == validator.is_valid(value), members


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_accepts_what_is_valid_in_some_order(schema: dict[str, Any]) -> None:
    constraint = COMPILER.compile(JsonSchema(json.dumps(schema)))
    validator = jsonschema.Draft202012Validator(schema)
    for value in objects():
        found = [constraint.accepts(_text(dict(members))) for members in itertools.permutations(value.items())]
        assert any(found) == validator.is_valid(value), value


@pytest.mark.parametrize("order", ["declared", "any"])
def test_names_do_not_run_out(order: str) -> None:
    """Where only the values of two names can violate a schema, the second one has to if the first does not."""
    schema = {"type": "object", "not": {"patternProperties": {"^[ab]$": STRING}}}
    constraint = COMPILER.compile(JsonSchema(json.dumps(schema), property_order=order))
    assert _read(constraint, b'{"a":"s","c":"s","b":') is not None
    assert _read(constraint, b'{"a":"s","c":"s","b":"') is None
    assert constraint.accepts(b'{"a":1,"c":"s","b":"s"}')


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("required", ["ab", "abc"])
def test_what_must_satisfy_a_schema_cannot_violate_it(required: str, order: str) -> None:
    """Each member could come without having satisfied anything, as long as another one is still to come."""
    integers, numbers = ({key: {"type": kind} for key in required} for kind in ("integer", "number"))
    one, other = ({"properties": properties, "required": list(required)} for properties in (integers, numbers))
    with pytest.raises(ConstraintError, match="no value satisfies"):
        COMPILER.compile(JsonSchema(json.dumps({**one, "type": "object", "not": other}), property_order=order))


@pytest.mark.parametrize("order", ["declared", "any"])
def test_what_is_nested_deeply_may_have_no_value(order: str) -> None:
    """Other members than the one that may be there, at a depth where schemas are lowered later."""
    depth = 30
    witness: dict[str, Any] = {}
    for _ in range(depth):
        witness = {"a": witness}
    chain = {f"x{i}": {"additionalProperties": {"$ref": f"#/$defs/x{(i + 1) % depth}"}, "minProperties": min(i, 1)} for i in range(depth)}
    word = {"type": "object", "properties": {"a": {"$ref": "#/$defs/word"}}, "additionalProperties": False}
    schema = {"allOf": [{"$ref": "#/$defs/word"}, {"$ref": "#/$defs/x0"}, {"not": {"const": witness}}, {"minProperties": 1}]}
    constraint = COMPILER.compile(JsonSchema(json.dumps({**schema, "$defs": {**chain, "word": word}}), property_order=order))
    for seed in range(4):
        assert constraint.accepts(_walk(constraint, Random(seed), free=1000))


def test_a_wide_object_takes_alternatives() -> None:
    """More names than are followed one by one, in any order and no others, with clauses."""
    names = [f"n{i}" for i in range(60)]
    schema = {
        "type": "object", "properties": {name: {"type": "integer"} for name in names}, "additionalProperties": False,
        "required": names[:20], "dependentRequired": {"n30": ["n31"], "n32": ["n33"]},
    }  # fmt: skip
    constraint = COMPILER.compile(JsonSchema(json.dumps(schema), property_order="any"))
    required = dict.fromkeys(reversed(names[:20]), 1)
    assert constraint.accepts(_text(required))
    assert constraint.accepts(_text({"n31": 1, **required, "n30": 1}))
    assert not constraint.accepts(_text({**required, "n30": 1}))
    assert not constraint.accepts(_text({**required, "n30": 1, "n32": 2, "n31": 3}))


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("family", ["objects", "overlapping", "twins", "endless", "unevaluated"])
def test_every_text_can_be_ended(family: str, order: str) -> None:
    walked = 0
    for number in range(WALKED):
        rng = Random(f"clauses {family} {number}")
        build, drafts = FAMILIES[family]
        maker = Maker(rng, rng.choice(drafts))
        schema, _ = build(maker)
        schema = {"$defs": {"x": maker.schema(1), "y": maker.schema(1)}, **schema}
        try:
            source = JsonSchema(dump_json(schema), draft=maker.draft, property_order=order, formats="annotate")
            constraint = COMPILER.compile(source)
        except ConstraintError:
            continue  # refused, or without a value; test_json_schema_adversarial.py tells which may be
        for _ in range(3):
            text = _walk(constraint, rng, free=rng.randrange(4, 40))
            json.loads(text, parse_float=Decimal)
            assert constraint.accepts(text), (number, schema, text)
            walked += 1
    assert walked > WALKED


def _walk(constraint: Constraint, rng: Random, free: int) -> bytes:
    """A text of `free` tokens drawn from the masks, and then of tokens within as many as suffice."""
    state, out = constraint.start(), b""
    for spent in itertools.count():
        mask = constraint.mask(state) if spent < free else constraint.mask(state, constraint.min_tokens(state))
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
        assert allowed, (spent, out)
        token = rng.choice(allowed)
        if token == END:
            return out
        after = constraint.advance(state, token)
        assert after is not None, (out, token)
        state, out = after, out + bytes([token])
    raise AssertionError


def _read(constraint: Constraint, text: bytes) -> Any:
    state: Any = constraint.start()
    for byte in text:
        state = None if state is None else constraint.advance(state, byte)
    return state


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
