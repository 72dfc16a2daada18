"""Members that are dear, and wanted where cheap ones have come already: what suffices to finish does not count on names twice."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
DEAR = "a text that is rather long"
NAMES = "abcd"
Schema = dict[str, Any]
WANTED: dict[str, Schema] = {
    "a wants b": {"dependentRequired": {"a": ["b"]}},
    "b wants a": {"dependentRequired": {"b": ["a"]}},
    "a and d want b": {"dependentRequired": {"a": ["b"], "d": ["b", "c"]}},
    "one of two": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "if a is dear": {"if": {"properties": {"a": {"const": DEAR}}, "required": ["a"]}, "then": {"required": ["b"]}},
    "not both": {"not": {"required": ["c", "d"]}},
}


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("least", [2, 3])
@pytest.mark.parametrize("name", WANTED)
def test_the_least_is_enough(name: str, least: int, order: str) -> None:
    values: dict[str, list[Any]] = {"a": [1, DEAR], "b": [DEAR], "c": [1, 2], "d": [True]}
    properties = {each: {"enum": values[each]} for each in NAMES}
    schema = {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": least, **WANTED[name]}
    constraint = COMPILER.compile(JsonSchema(schema, whitespace="compact", property_order=order))
    assert constraint.min_tokens(constraint.start()) >= _shortest(schema, values)
    for seed in range(4):
        rng, state, text = random.Random(seed), constraint.start(), b""
        for left in range(constraint.min_tokens(state), -1, -1):
            token = rng.choice(list(as_token_ids(constraint.mask(state, left))))
            after = constraint.advance(state, token)
            assert after is not None
            if after == FINISHED:
                break
            state, text = after, text + bytes([token])
        assert constraint.accepts(text)


def _shortest(schema: Schema, values: dict[str, list[Any]]) -> int:
    """Bytes of the shortest object, of all that there are."""
    is_valid = jsonschema.Draft202012Validator(schema).is_valid
    members = [[None, *((name, value) for value in values[name])] for name in NAMES]
    objects = (dict(filter(None, chosen)) for chosen in itertools.product(*members))
    return min(len(json.dumps(value, separators=(",", ":"))) for value in objects if is_valid(value))
