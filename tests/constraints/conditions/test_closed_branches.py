"""`oneOf` of closed objects that differ in which members they have: against brute force over all subsets, in both orders."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import ConstraintError, JsonSchema
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, ORDERS, Schema, closed, walk

order = pytest.mark.parametrize("order", ORDERS)


def texts_of(members: dict[str, Any] | list[tuple[str, Any]]) -> str:
    return json.dumps(dict(members), separators=(",", ":"))


def branches(rng: Random, names: list[str]) -> list[Schema]:
    """Branches with some of the names, in the order of all, each with the same value in all branches."""
    out = []
    for _ in range(rng.randint(5, 8)):
        own = [name for name in names if rng.random() < 0.6]
        branch: Schema = {"properties": {name: {"enum": [1, 2]} if name == "a" else {"type": "integer"} for name in own}}
        branch |= {"additionalProperties": False} | ({"type": "object"} if rng.random() < 0.8 else {})
        if rng.random() < 0.6:
            branch["required"] = [name for name in names if rng.random() < 0.3]
        if rng.random() < 0.2:
            branch["dependentRequired"] = {rng.choice(names): [rng.choice(names)]}
        if rng.random() < 0.2:
            branch["anyOf"] = [{"required": [rng.choice(names)]}, {"properties": {rng.choice(names): {"const": 1}}}]
        out.append(branch)
    return out


@order
@pytest.mark.parametrize("seed", range(16))
def test_all_subsets(seed: int, order: str) -> None:
    rng = Random(seed)
    names = rng.sample("abcdef"[: rng.randint(3, 5)], k=3)
    schema: Schema = {"oneOf": branches(rng, names)}
    schema |= rng.choice([{}, {"properties": {names[0]: {"minimum": 1}}}, {"minProperties": 2}, {"not": {"required": names[:2]}}])
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = COMPILER.compile(JsonSchema(schema, property_order=order))
    except ConstraintError as error:
        assert "no value" in str(error), error
        constraint = None
    for values in itertools.product((None, 1, 3, "x"), repeat=len(names)):
        members = [(name, value) for name, value in zip(names, values, strict=True) if value is not None]
        is_right = validator.is_valid(dict(members))
        if order == "any":
            rng.shuffle(members)
        assert (constraint is not None and constraint.accepts(texts_of(members))) == is_right, (schema, members)
    assert (constraint is not None and constraint.accepts("3")) == validator.is_valid(3)


MANY = [f"m{i}" for i in range(14)]
FAMILIES: dict[str, list[Schema]] = {
    "each lacks another one": [closed([name for name in MANY if name != missing]) for missing in MANY],
    "each has another one": [closed(["z", name]) for name in MANY],
    "all but one are required": [closed(own, required=own) for missing in MANY if (own := [name for name in MANY if name != missing])],
    "some in common": [closed([*MANY[:8], name], required=MANY[:2]) for name in MANY[8:]],
    "two of a row": [closed([a, b], required=[a]) for a, b in itertools.pairwise(MANY)],
    "ever more": [closed(MANY[:i], required=MANY[: i // 2]) for i in range(1, len(MANY))],
}


@order
@pytest.mark.parametrize("family", FAMILIES)
def test_many_members(family: str, order: str) -> None:
    schema, rng = {"oneOf": FAMILIES[family]}, Random(1)
    constraint, validator = COMPILER.compile(JsonSchema(schema, property_order=order)), jsonschema.Draft202012Validator(schema)
    found = 0
    for _ in range(150):
        names = list(rng.choice(FAMILIES[family])["properties"])
        changed = {name for name in [*MANY, "z"] if rng.random() < rng.choice([0, 0.1, 0.3])}
        members = [(name, 1) for name in ["z", *MANY] if (name in names) is not (name in changed)]
        if order == "any":
            rng.shuffle(members)
        found += validator.is_valid(dict(members))
        assert constraint.accepts(texts_of(members)) == validator.is_valid(dict(members)), members
    assert found > 5
    for seed in range(5):
        text = walk(constraint, Random(seed))
        assert validator.is_valid(json.loads(text)), text


@order
@pytest.mark.parametrize("family", ["lacks", "has"])
def test_a_hundred_branches_make_a_small_grammar(family: str, order: str) -> None:
    names = [f"m{i}" for i in range(100)]
    others = {"lacks": [closed([name for name in names if name != each]) for each in names], "has": [closed(["z", each]) for each in names]}
    source, limits = JsonSchema({"oneOf": others[family]}, property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 1_500


def test_members_come_in_the_order_of_the_branches() -> None:
    names = ["b", "a", "d", "c"]
    schema = {"oneOf": [closed([name for name in names if name != each], required=names[-1:]) for each in [*names, "e"]]}
    constraint = COMPILER.compile(JsonSchema(schema))
    assert constraint.accepts(texts_of([("b", 1), ("a", 1), ("d", 1), ("c", 1)]))
    assert not constraint.accepts(texts_of([("a", 1), ("b", 1), ("d", 1), ("c", 1)]))


@order
def test_branches_in_different_orders_are_told_apart(order: str) -> None:
    schema = {"oneOf": [closed(list(names), required=list(names)) for names in ("ab", "bc", "ca", "abd", "dc")]}
    constraint, validator = COMPILER.compile(JsonSchema(schema, property_order=order)), jsonschema.Draft202012Validator(schema)
    for names in ("ab", "bc", "ca", "abd", "dc", "abc", "a", "d"):
        assert constraint.accepts(texts_of(dict.fromkeys(names, 1))) == validator.is_valid(dict.fromkeys(names, 1)), names
