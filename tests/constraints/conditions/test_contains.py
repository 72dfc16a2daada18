"""`contains` of several kinds beside one another: against brute force, however the kinds overlap."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Constraint, ConstraintError, ConstraintLimit, JsonSchema, UnsupportedKeyword
from maskwright.constraints.front_ends.json_schema.algebra.partitions import MAX_PIECES
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, Schema, walk

VALUES: list[Any] = [None, True, False, 0, 1, 2, 3, 4, 5, 2.5, 3.5, "", "a", "ab", "abc", "k1", "k2", [], [1], {}, {"a": 1}, {"a": 1, "b": 2}]


def kind(rng: Random) -> Schema:
    """Items of a simple kind, which overlaps with others."""
    low = rng.randint(0, 5)
    return rng.choice([
        {"const": rng.choice(VALUES)}, {"enum": rng.sample(VALUES, 3)}, {"enum": rng.sample(VALUES[:17], 2)},
        {"type": rng.choice(["null", "boolean", "integer", "number", "string", "array", "object"])},
        {"type": rng.sample(["integer", "string", "object", "null"], 2)},
        {"type": "number", "minimum": low}, {"type": "integer", "minimum": low, "maximum": low + 2}, {"exclusiveMaximum": low},
        {"minimum": low, "not": {"const": low + 1}}, {"type": "string", "minLength": rng.randint(0, 3)},
        {"type": "string", "maxLength": rng.randint(0, 2)}, {"not": {"enum": rng.sample(VALUES[:17], 2)}},
        {"type": "object", "required": [rng.choice("ab")]}, {"type": "array", "minItems": 1}, {"type": "integer", "multipleOf": 2},
    ])  # fmt: skip


def contained(rng: Random, count: int) -> Schema:
    wanted = []
    for _ in range(count):
        low = rng.choice([0, 1, 1, 1, 2])
        bounds = {"minContains": low} | ({"maxContains": low + rng.randint(1, 3)} if rng.random() < 0.3 else {})
        wanted.append({"contains": kind(rng), **bounds})
    schema: Schema = {"type": "array", "allOf": wanted}
    if rng.random() < 0.3:
        schema["items"] = rng.choice([{"type": ["integer", "string", "null"]}, {"type": "number"}, {"enum": VALUES[:17]}])
    if rng.random() < 0.2:
        schema["minItems"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        schema["prefixItems"] = [kind(rng)]
    return schema


def compiled(schema: Schema) -> Constraint | None:
    """The constraint; None where the schema has no value. `counts` and `alternatives` may be refused."""
    try:
        return COMPILER.compile(JsonSchema(schema))
    except ConstraintLimit as error:
        assert error.limit in ("counts", "alternatives"), error
        pytest.skip("more kinds at once than can be told apart, which is refused by name")
    except UnsupportedKeyword as error:
        assert error.keyword == "contains", error
        pytest.skip("an end that cannot be promised, which is refused by name")
    except ConstraintError as error:
        assert "no value" in str(error) or "nothing satisfies" in str(error), error
        return None


def lists_of_values(rng: Random, schema: Schema, count: int) -> list[list[Any]]:
    """Lists that are often nearly right: items of many of the kinds."""
    wanted = [each["contains"] for each in schema["allOf"]]
    of_kind = [[value for value in VALUES if jsonschema.Draft202012Validator(each).is_valid(value)] for each in wanted]
    lists = []
    for _ in range(count):
        items = [rng.choice(values) for values in of_kind if values and rng.random() < 0.8]
        items += [rng.choice(VALUES) for _ in range(rng.randint(0, 2))]
        rng.shuffle(items)
        lists.append(items)
    return lists


@pytest.mark.parametrize("seed", range(40))
def test_several_kinds(seed: int) -> None:
    rng = Random(seed)
    schema = contained(rng, rng.randint(4, 9))
    validator, constraint = jsonschema.Draft202012Validator(schema), compiled(schema)
    for items in lists_of_values(rng, schema, 100):
        text = json.dumps(items, separators=(",", ":"))
        assert (constraint is not None and constraint.accepts(text)) == validator.is_valid(items), (schema, items)
    for each in range(3 if constraint is not None else 0):
        assert constraint is not None
        text_walked = walk(constraint, Random(each))
        assert validator.is_valid(json.loads(text_walked)), (schema, text_walked)


def test_kinds_that_are_intersections_are_planned() -> None:
    """Their texts are known last of all."""
    wanted = [
        {"contains": {"enum": [1, "a", {}]}, "maxContains": 2}, {"contains": {"pattern": "a"}}, {"contains": {"type": "array", "minItems": 1}},
        {"contains": {"type": "integer", "not": {"multipleOf": 3}}}, {"contains": {"type": "array", "contains": {"pattern": "b"}}},
        {"contains": {"pattern": "a.*b"}},
    ]  # fmt: skip
    constraint = COMPILER.compile(JsonSchema({"type": "array", "allOf": wanted, "prefixItems": [{"type": "string"}]}))
    assert all(constraint.accepts(text) for text in ('["c",{},4,[1]]', '["c",[1],4,{}]', '["c",{},[1],4]'))


@pytest.mark.parametrize("seed", range(12))
def test_intervals_of_which_each_has_bounds(seed: int) -> None:
    rng = Random(seed)
    wanted = []
    for place in range(rng.randint(5, 9)):
        low = rng.choice([0, 1, 1, 2])
        bounds = {"minContains": low} | ({"maxContains": low + rng.randint(0, 2)} if rng.random() < 0.5 else {})
        wanted.append({"contains": {"minimum": 3 * place, "maximum": 3 * place + rng.randint(1, 5)}, **bounds})
    schema: Schema = {"type": "array", "items": {"type": "integer"}, "allOf": wanted}
    validator, constraint = jsonschema.Draft202012Validator(schema), compiled(schema)
    for _ in range(200):
        items = [3 * place + rng.randint(0, 4) for place in range(len(wanted)) for _ in range(rng.choice([0, 1, 1, 2]))]
        text = json.dumps(items, separators=(",", ":"))
        assert (constraint is not None and constraint.accepts(text)) == validator.is_valid(items), (schema, items)
    for each in range(3 if constraint is not None else 0):
        assert constraint is not None
        assert validator.is_valid(json.loads(walk(constraint, Random(each))))


HUNDRED: dict[str, list[Schema]] = {
    "constants": [{"const": i} for i in range(100)],
    "lists that overlap": [{"enum": [f"k{i}", f"k{i + 1}", i]} for i in range(100)],
    "ever more": [{"minimum": i} for i in range(100)],
    "ranges that overlap": [{"minimum": 10 * i, "maximum": 10 * i + 15} for i in range(100)],
    "longer strings": [{"type": "string", "minLength": i} for i in range(100)],
    "of several types": [[{"const": i}, {"type": "number", "minimum": i}, {"type": "string", "maxLength": i + 1}][i % 3] for i in range(100)],
    "told by a member": [{"type": "object", "properties": {"k": {"const": i}}, "required": ["k"]} for i in range(100)],
}


@pytest.mark.parametrize("name", HUNDRED)
@pytest.mark.parametrize("more", [{}, {"minContains": 2}, {"minContains": 1, "maxContains": 4}], ids=["one", "two", "bounded"])
def test_a_hundred_kinds_make_a_small_grammar(name: str, more: Schema) -> None:
    if name in ("ever more", "longer strings", "of several types") and "maxContains" in more:
        pytest.skip("each kind is part of others that may be full, so that no plan can be promised")
    source, limits = JsonSchema({"type": "array", "allOf": [{"contains": each, **more} for each in HUNDRED[name]]}), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 12_000


def test_the_least_that_suffices_is_small_where_one_item_is_enough() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "allOf": [{"contains": {"minimum": i}} for i in range(50)]}
    constraint = COMPILER.compile(JsonSchema(schema))
    assert constraint.min_tokens(constraint.start()) == len("[49]")
    assert constraint.accepts("[3,49]") and not constraint.accepts("[3,48]")


@pytest.mark.parametrize("seed", range(10))
def test_many_conditions_on_the_value_of_one_member(seed: int) -> None:
    """What is asked of the value of one member in many conditions on others: as many cases as there are bounds."""
    rng = Random(seed)
    conditions = [
        {"if": {"properties": {"n": {"minimum": rng.randint(0, 20)}}, "required": ["n"]}, "then": {"required": [f"m{i}"]}} for i in range(12)
    ]
    properties = {"n": {"type": "integer"}, **{f"m{i}": {"const": 1} for i in range(12)}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False, "allOf": conditions}
    constraint, validator = COMPILER.compile(JsonSchema(schema)), jsonschema.Draft202012Validator(schema)
    for _ in range(200):
        number, share = rng.randint(-2, 22), rng.choice([0.5, 0.8, 1])
        value = {"n": number, **{f"m{i}": 1 for i in range(12) if rng.random() < share}}
        assert constraint.accepts(json.dumps(value, separators=(",", ":"))) == validator.is_valid(value), (schema, value)


def test_more_cases_than_the_limit_are_refused_by_name() -> None:
    wanted = [{"contains": {"const": i}} for i in range(MAX_PIECES + 1)]
    with pytest.raises(ConstraintLimit) as caught:
        COMPILER.compile(JsonSchema({"type": "array", "items": {"type": "integer"}, "allOf": wanted}))
    assert caught.value.limit == "alternatives"
