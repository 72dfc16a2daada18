"""As many different items as there must be: counted by their texts where nobody can list them, and refused where there are fewer."""

from __future__ import annotations

import itertools
import random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, ConstraintError, JsonSchema, Vocabulary

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
IMPOSSIBLE: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "contains": {"const": 1}}
NAMES, VALUES = "abc", (1, 2, None)
Schema = dict[str, Any]


def _closed(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


NUMBERS: dict[str, tuple[Schema, int]] = {
    "arrays that cannot be": ({"type": "array", "items": IMPOSSIBLE, "maxItems": 1}, 1),
    "a member that cannot be": (_closed({"a": {"enum": [1, 2]}, "z": IMPOSSIBLE}), 3),
    "a member that wants another": (
        _closed({"a": {"enum": [1, 2]}, "b": {"type": "boolean"}, "d": {"type": "string"}}, dependentRequired={"d": ["e"]}), 9
    ),
    "one member": (_closed({"a": {"enum": [1, 2]}, "b": {"type": "boolean"}, "z": IMPOSSIBLE}, maxProperties=1), 5),
    "names of a pattern": (
        {"type": "object", "patternProperties": {"^x$": {"enum": [1, 2]}}, "additionalProperties": False, "not": {"required": ["z"]}}, 3
    ),
    "few names, whose orders are written out": (
        _closed({"xb": {"type": "boolean"}}, patternProperties={"^x[ab]?$": {"const": 2}}), 4
    ),
    "few names with values": (_closed({}, patternProperties={"^[ab]$": {"enum": [1, None]}}), 9),
}  # fmt: skip


def _compiles(item: Schema, least: int, order: str, whitespace: str) -> bool:
    schema = {"type": "array", "items": item, "uniqueItems": True, "minItems": least}
    try:
        COMPILER.compile(JsonSchema(schema, whitespace=whitespace, property_order=order))
    except ConstraintError as error:
        assert "satisf" in str(error)
        return False
    return True


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
@pytest.mark.parametrize("name", NUMBERS)
def test_more_than_there_are(name: str, whitespace: str, order: str) -> None:
    item, number = NUMBERS[name]
    assert _compiles(item, number, order, whitespace)
    assert not _compiles(item, number + 1, order, whitespace)


@pytest.mark.parametrize("seed", range(12))
def test_none_is_missed(seed: int) -> None:
    rng = random.Random(seed)
    item = _closed(
        {**{name: {"enum": rng.sample(VALUES, rng.randint(1, 3))} for name in NAMES}, "z": IMPOSSIBLE}, **_condition(rng)
    )  # fmt: skip
    number = sum(map(jsonschema.Draft202012Validator(item).is_valid, _objects()))
    assert number == 0 or _compiles(item, number, rng.choice(["declared", "any"]), "compact")


def _condition(rng: random.Random) -> Schema:
    names = lambda: rng.sample(NAMES, rng.randint(1, 2))  # noqa: E731
    return rng.choice(
        [
            {"dependentRequired": {rng.choice(NAMES): names()}},
            {"oneOf": [{"required": names()}, {"required": names()}]},
            {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": names()}},
            {"minProperties": rng.randint(1, 3)},
            {"maxProperties": rng.randint(1, 2)},
            {"not": {"required": names()}},
        ]
    )


def _objects() -> list[Schema]:
    members = [[None, *((name, value) for value in VALUES)] for name in NAMES]
    return [dict(filter(None, chosen)) for chosen in itertools.product(*members)]
