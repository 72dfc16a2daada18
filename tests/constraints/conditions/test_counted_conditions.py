"""`minProperties` and `maxProperties` inside of conditions: against brute force over all subsets, in both orders."""

from __future__ import annotations

import itertools
import json
from random import Random

import jsonschema
import pytest

from maskwright.constraints import ConstraintError, JsonSchema
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, ORDERS, Schema, closed, walk

NAMES = "abcde"
order = pytest.mark.parametrize("order", ORDERS)


def condition(rng: Random, depth: int) -> Schema:
    names = rng.sample(NAMES, 2)
    if depth == 0:
        return rng.choice([
            {"required": names[:1]}, {"minProperties": rng.randint(1, 4)}, {"maxProperties": rng.randint(1, 4)},
            {"properties": {names[0]: {"const": 1}}}, {"required": names[1:], "minProperties": rng.randint(2, 3)},
        ])  # fmt: skip
    parts = [condition(rng, depth - 1) for _ in range(3)]
    return rng.choice([
        {"anyOf": parts}, {"oneOf": parts}, {"not": {"allOf": parts}}, {"if": parts[0], "then": parts[1], "else": parts[2]},
        {"dependentSchemas": {names[0]: parts[0]}}, {"not": parts[0]},
    ])  # fmt: skip


@order
@pytest.mark.parametrize("seed", range(25))
def test_all_subsets(seed: int, order: str) -> None:
    rng = Random(seed)
    others = rng.choice([False, {"type": "null"}])
    schema: Schema = {
        "type": "object", "properties": {name: {"enum": [1, 2]} for name in NAMES}, "additionalProperties": others,
        "allOf": [condition(rng, rng.randint(1, 2)) for _ in range(5)], **rng.choice([{}, {"minProperties": 2}, {"maxProperties": 4}]),
    }  # fmt: skip
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = COMPILER.compile(JsonSchema(schema, property_order=order))
    except ConstraintError as error:
        assert "satisfies" in str(error), error
        constraint = None
    for values in itertools.product((None, 1, 2), repeat=len(NAMES)):
        for extra in range(3 if others else 1):
            members = [*zip(NAMES, values, strict=True), *((f"z{i}", "null") for i in range(extra))]
            present = [(name, None if value == "null" else value) for name, value in members if value is not None]
            is_right = validator.is_valid(dict(present))
            if order == "any":
                rng.shuffle(present)
            text = json.dumps(dict(present), separators=(",", ":"))
            assert (constraint is not None and constraint.accepts(text)) == is_right, (schema, text)
    for each in range(3 if constraint is not None else 0):
        assert constraint is not None
        text_walked = walk(constraint, Random(each))
        assert validator.is_valid(json.loads(text_walked)), (schema, text_walked)


@order
def test_a_hundred_conditions_make_a_small_grammar(order: str) -> None:
    names = [f"m{i}" for i in range(100)]
    conditions = [{"if": {"required": [name]}, "then": {"minProperties": 2 + i % 3}} for i, name in enumerate(names)]
    source, limits = JsonSchema(closed(names, allOf=conditions), property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 2_000
