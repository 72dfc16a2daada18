"""Alternatives that one member tells apart, and branches that declare members of their own: against brute force."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import ConstraintError, JsonSchema
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, NUMBER, ORDERS, Schema, walk

order = pytest.mark.parametrize("order", ORDERS)
MISSING = object()
OTHERS = "abcdef"


def kinds(count: int, *, required: bool = True) -> Schema:
    """`then` declares members of its own, so that conditions become alternatives."""
    rules = [
        {"if": {"properties": {"kind": {"const": f"k{i}"}}}, "then": {"properties": {f"a{i}": NUMBER}, "required": [f"a{i}"]}}
        for i in range(count)
    ]
    kind = {"enum": [f"k{i}" for i in range(count)]}
    return {"type": "object", "properties": {"kind": kind}, "required": ["kind"] if required else [], "allOf": rules}


def independent(count: int) -> Schema:
    rules = [
        {"if": {"properties": {f"k{i}": {"const": True}}, "required": [f"k{i}"]}, "then": {"properties": {f"d{i}": NUMBER}}}
        for i in range(count)
    ]
    return {"type": "object", "properties": {f"k{i}": {"type": "boolean"} for i in range(count)}, "allOf": rules}


def unevaluated(count: int) -> Schema:
    branches = [[{"properties": {f"{side}{i}": NUMBER}, "required": [f"{side}{i}"]} for side in "ab"] for i in range(count)]
    return {"type": "object", "allOf": [{"anyOf": each} for each in branches], "unevaluatedProperties": False}


def by_kind(count: int, then: Callable[[int], Schema], **more: Any) -> Schema:
    rules = [{"if": {"properties": {"kind": {"const": f"k{i}"}}}, "then": then(i)} for i in range(count)]
    kind = {"enum": [f"k{i}" for i in range(count)]}
    return {"type": "object", "properties": {"kind": kind}, "required": ["kind"], "allOf": rules, **more}


def shapes_of_one_member(count: int) -> Schema:
    """What a kind decides is the value of a member that is declared for all."""
    schema = by_kind(count, lambda i: {"properties": {"data": {"properties": {f"x{i}": NUMBER}, "required": [f"x{i}"]}}})
    schema["properties"]["data"] = {"type": "object"}
    return schema


def unevaluated_by_kind(count: int) -> Schema:
    return by_kind(count, lambda i: {"properties": {f"a{i}": NUMBER}}, unevaluatedProperties=False)


def names_by_kind(count: int) -> Schema:
    return by_kind(count, lambda i: {"patternProperties": {f"^a{i}_": NUMBER}})


def closed_by_kind(count: int) -> Schema:
    return by_kind(count, lambda i: {"properties": {"kind": True, f"a{i}": NUMBER}, "additionalProperties": False})


def two_kinds(count: int) -> Schema:
    """Two members decide together."""
    both = [({"const": f"k{i // 10}"}, {"const": f"s{i % 10}"}) for i in range(count)]
    rules = [
        {"if": {"properties": {"kind": kind, "sub": sub}}, "then": {"properties": {f"a{i}": NUMBER}, "required": [f"a{i}"]}}
        for i, (kind, sub) in enumerate(both)
    ]
    listed = {name: {"enum": [f"{name[0]}{i}" for i in range(10)]} for name in ("kind", "sub")}
    return {"type": "object", "properties": listed, "required": ["kind", "sub"], "allOf": rules}


MANY = [
    kinds, lambda n: kinds(n, required=False), independent, unevaluated, shapes_of_one_member, unevaluated_by_kind, names_by_kind,
    closed_by_kind, two_kinds,
]  # fmt: skip


@order
@pytest.mark.parametrize("make", MANY)
def test_a_hundred_cost_their_sum(make: Callable[[int], Schema], order: str) -> None:
    source, limits = JsonSchema(make(100), property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 7_000


def a_test(rng: Random) -> Schema:
    listed: Schema = rng.choice([{"const": rng.choice([1, "x", True])}, {"enum": rng.sample([1, 2, "x", "y", None], 2)}, {"const": 2, "type": "integer"}])
    found: Schema = {"properties": {"kind": listed}}
    if rng.random() < 0.5:
        found["required"] = ["kind"]
    return {"not": found} if rng.random() < 0.2 else found


def a_rule(rng: Random) -> Schema:
    first, second = rng.sample(OTHERS, 2)
    then: Schema = rng.choice([
        {"properties": {first: {"const": 1}}, "required": [first]}, {"properties": {first: False}}, {"required": [first, second]},
        {"properties": {first: {"enum": [1, 2]}, second: {"const": 2}}}, {"patternProperties": {"^a": {"const": 1}}},
    ])  # fmt: skip
    rule = rng.random()
    if rule < 0.6:
        return {"if": a_test(rng), "then": then, **({"else": {"required": [second]}} if rng.random() < 0.2 else {})}
    return {"anyOf": [a_test(rng), {**a_test(rng), **then}]} if rule < 0.8 else {"anyOf": [a_test(rng), then]}


def agree(schema: Schema, values: Any, order: str, rng: Random) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = COMPILER.compile(JsonSchema(schema, property_order=order))
    except ConstraintError as error:
        assert "satisfies" in str(error), error
        constraint = None
    for value in values:
        shown = value
        if isinstance(value, dict) and order == "any":
            shown = dict(rng.sample(list(value.items()), len(value)))
        text = json.dumps(shown, separators=(",", ":"))
        is_right = validator.is_valid(value)
        if order == "any" or not is_right or not isinstance(value, dict):
            assert (constraint is not None and constraint.accepts(text)) == is_right, (schema, text)
        else:
            orders = (dict(each) for each in itertools.permutations(value.items()))
            texts = (json.dumps(each, separators=(",", ":")) for each in orders)
            assert constraint is not None and any(map(constraint.accepts, texts)), (schema, value)
    for each in range(2 if constraint is not None else 0):
        assert constraint is not None
        text = walk(constraint, Random(each))
        assert validator.is_valid(json.loads(text)), (schema, text)


def objects(rng: Random, names: str, count: int) -> list[Any]:
    """Some objects, and other values."""
    found: list[Any] = [1, "x", [], {}]
    for _ in range(count):
        kind = rng.choice([MISSING, 1, 2, "x", "y", None, True, 7])
        members: dict[str, Any] = {} if kind is MISSING else {"kind": kind}
        members |= {name: rng.choice([1, 2]) for name in rng.sample(names, rng.randint(0, 3))}
        found.append(members)
    return found


@order
@pytest.mark.parametrize("seed", range(40))
def test_rules_about_a_kind(seed: int, order: str) -> None:
    rng = Random(seed)
    schema: Schema = {"allOf": [a_rule(rng) for _ in range(rng.randint(4, 7))]}
    if rng.random() < 0.5:
        schema |= {"type": "object", "properties": {"kind": {"enum": [1, 2, "x", "y", None]}}}
    agree(schema, objects(rng, OTHERS, 40), order, rng)


def a_branch(rng: Random) -> Schema:
    first, second = rng.sample(OTHERS, 2)
    return rng.choice([
        {"properties": {first: {"const": 1}}, "required": [first]}, {"properties": {first: {"const": 2}, second: True}},
        {"required": [first], "properties": {second: {"enum": [1, 2]}}}, {"allOf": [{"properties": {first: {"const": 1}}}]},
    ])  # fmt: skip


@order
@pytest.mark.parametrize("seed", range(30))
def test_members_that_only_some_branches_evaluate(seed: int, order: str) -> None:
    rng = Random(seed)
    groups = [
        rng.choice([
            {"anyOf": [a_branch(rng) for _ in range(rng.randint(2, 3))]}, {"oneOf": [a_branch(rng), a_branch(rng)]},
            {"if": a_branch(rng), "then": a_branch(rng)}, {"dependentSchemas": {rng.choice(OTHERS): a_branch(rng)}},
        ]) for _ in range(rng.randint(4, 6))
    ]  # fmt: skip
    schema: Schema = {
        "type": "object", "properties": {"kind": True}, "allOf": groups,
        "unevaluatedProperties": rng.choice([False, False, {"const": 2}]),
    }  # fmt: skip
    agree(schema, objects(rng, OTHERS, 60), order, rng)
