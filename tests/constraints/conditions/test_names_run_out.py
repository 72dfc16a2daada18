"""Names that run out beside conditions: no separator where no member is left that may come, whatever has come before."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Constraint, ConstraintError, JsonSchema
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, ORDERS, Schema, closed

NAMES = "abcx"
order = pytest.mark.parametrize("order", ORDERS)
NEVER_TWICE: list[Schema] = [
    {"propertyNames": {"enum": ["a", "b"]}, "dependentRequired": {"b": ["c"]}},
    {"propertyNames": {"enum": ["a", "b", "c"]}, "not": {"required": ["b", "c"]}},
    {"patternProperties": {"^[abc]$": True}, "additionalProperties": False, "not": {"required": ["b", "c"]}},
    {"patternProperties": {"^[abc]$": True}, "additionalProperties": False, "not": {"required": ["b"], "properties": {"c": {"const": 1}}}},
    {"propertyNames": {"pattern": "^[ab]$"}, "minProperties": 2},
    {"propertyNames": {"pattern": "^[ab]$"}, "minProperties": 3},
    {"allOf": [{"propertyNames": {"pattern": "[abc]"}}, {"propertyNames": {"maxLength": 1}}], "minProperties": 1},
    {"properties": {"a": True, "b": True}, "patternProperties": {"^x$": True}, "additionalProperties": False, "maxProperties": 2},
    {"properties": {"a": True}, "patternProperties": {"^[bx]$": True}, "additionalProperties": False, "minProperties": 2},
    {"propertyNames": {"pattern": "^[ab]?$"}, "patternProperties": {"^[ab]$": {"const": 1}, "^a": False}, "dependentRequired": {"a": ["b"]}},
    {"propertyNames": {"pattern": "^[abx]$"}, "patternProperties": {"^[ab]$": True, "^a": False}, "dependentRequired": {"a": ["b"]}},
]


def compiled(schema: Schema, order: str) -> Constraint | None:
    try:
        return COMPILER.compile(JsonSchema(schema, property_order=order, whitespace="compact"))
    except ConstraintError as error:
        assert "satisfies" in str(error), error
        return None


def beginning(constraint: Constraint, text: str) -> Any:
    """The state behind a text; None where it cannot come."""
    state: Any = constraint.start()
    for byte in text.encode():
        state = constraint.advance(state, byte)
        if state is None:
            return None
    return state


def agree(schema: Schema, order: str) -> None:
    """Objects of all names with two values, in all orders: what is valid is accepted, and what goes on can be ended."""
    schema, constraint = {"type": "object", **schema}, compiled({"type": "object", **schema}, order)
    validator = jsonschema.Draft202012Validator(schema)
    for count in range(len(NAMES) + 1):
        for names in itertools.combinations(NAMES, count):
            for values in itertools.product((1, 2), repeat=count):
                members = list(zip(names, values, strict=True))
                written = [json.dumps(dict(each), separators=(",", ":")) for each in itertools.permutations(members)]
                accepted = [constraint is not None and constraint.accepts(text) for text in written]
                is_right = validator.is_valid(dict(members))
                assert any(accepted) == is_right and (order == "declared" or all(accepted) == is_right), (schema, written[0])
                for text in written if constraint is not None else ():
                    assert constraint is not None
                    state = beginning(constraint, text.removesuffix("}") + ("," if members else ""))
                    assert state is None or constraint.min_tokens(state) < 100, (schema, text)


@order
@pytest.mark.parametrize("number", range(len(NEVER_TWICE)))
def test_a_separator_leads_to_a_member(number: int, order: str) -> None:
    agree(NEVER_TWICE[number], order)


def some_names(rng: Random) -> Schema:
    """What admits a few names only."""
    return rng.choice([
        {"propertyNames": {"enum": rng.sample(NAMES, 3)}}, {"propertyNames": {"pattern": "^[abc]$"}},
        {"patternProperties": {"^[abx]$": {"enum": [1, 2]}}, "additionalProperties": False},
        {"properties": {"a": {"const": 1}, "b": True}, "patternProperties": {"^[cx]$": True}, "additionalProperties": False},
    ])  # fmt: skip


def a_condition(rng: Random) -> Schema:
    first, second, third = rng.sample(NAMES, 3)
    is_one = {"required": [first], "properties": {first: {"const": 1}}}
    return rng.choice([
        {"dependentRequired": {first: [second]}}, {"not": {"required": [first, second]}}, {"minProperties": rng.randint(1, 3)},
        {"maxProperties": rng.randint(1, 3)}, {"if": is_one, "then": {"required": [second]}, "else": {"properties": {third: False}}},
        {"oneOf": [{"required": [first]}, {"required": [second]}]}, {"dependentSchemas": {first: {"maxProperties": 2}}},
        {"not": is_one}, {"anyOf": [{"maxProperties": 1}, {"required": [third]}]},
    ])  # fmt: skip


@order
@pytest.mark.parametrize("seed", range(30))
def test_random_conditions(seed: int, order: str) -> None:
    rng = Random(seed)
    agree({"allOf": [some_names(rng), *(a_condition(rng) for _ in range(rng.randint(1, 3)))]}, order)


@order
def test_not_all_of_a_hundred(order: str) -> None:
    """One clause with many options is a diagram, not an alternative for each."""
    names = [f"m{i}" for i in range(100)]
    schema = closed(names, **{"not": {"required": names}})
    source, limits = JsonSchema(schema, property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 1_500
    constraint = compiled(schema, order)
    assert constraint is not None
    members = dict.fromkeys(names, 1)
    assert not constraint.accepts(json.dumps(members, separators=(",", ":")))
    for missing in ("m0", "m50", "m99"):
        some = {name: value for name, value in members.items() if name != missing}
        assert constraint.accepts(json.dumps(some, separators=(",", ":")))


@order
def test_if_and_else_inside_of_each_other(order: str) -> None:
    """Each condition decides whether the next one is asked: members stand as conditions are nested, whatever their names."""
    count = 60
    schema: Schema = {}
    for i in reversed(range(count)):
        schema = {"if": {"required": [f"a{i}"]}, "then": {"required": [f"b{i}"]}, **({"else": schema} if schema else {})}
    names = [f"{side}{i}" for side in "ab" for i in range(count)]
    source, limits = JsonSchema(closed(names, **schema), property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < (1_500 if order == "any" else 10_000)


@order
def test_patterns_of_which_no_name_matches_two(order: str) -> None:
    schema = {"type": "object", "patternProperties": {f"^a{i}_": {"enum": [i]} for i in range(40)}, "additionalProperties": False}
    source, limits = JsonSchema(schema, property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 1_500
    constraint = compiled(schema, order)
    assert constraint is not None and constraint.accepts('{"a7_x":7,"a39_":39,"a7_":7}')
    assert not any(map(constraint.accepts, ('{"a7_x":8}', '{"a7":7}', '{"b":1}', '{"a7_":7,"a7_":7}')))
