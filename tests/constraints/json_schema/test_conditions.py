"""Conditions on which members are there: followed side by side, however many, in declared order and in any."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, ConstraintLimit, JsonSchema, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.runtime.constraint import as_token_ids

END = 256
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(END)), None], eos_token_ids=[END])
COMPILER = Compiler(VOCABULARY)
Schema = dict[str, Any]
NUMBER = {"type": "integer"}


def closed(names: list[str], **more: Any) -> Schema:
    return {"type": "object", "properties": dict.fromkeys(names, NUMBER), "additionalProperties": False, **more}


def pairs(count: int) -> list[tuple[str, str]]:
    return [(f"a{i}", f"b{i}") for i in range(count)]


def names_of(count: int) -> list[str]:
    """All first members of pairs before all second ones: every condition is open in the middle."""
    return [name for side in zip(*pairs(count), strict=True) for name in side]


def mutual(count: int) -> Schema:
    return closed(names_of(count), dependentRequired={a: [b] for pair in pairs(count) for a, b in (pair, pair[::-1])})


def one_of_each(count: int) -> Schema:
    return closed(names_of(count), allOf=[{"oneOf": [{"required": [name]} for name in pair]} for pair in pairs(count)])


def some_of_each_counted(count: int) -> Schema:
    conditions = [{"anyOf": [{"required": [name]} for name in pair]} for pair in pairs(count)]
    return closed(names_of(count), allOf=conditions, minProperties=count + 1, maxProperties=count + 2)


def implied(count: int) -> Schema:
    conditions = [
        {"if": {"properties": {a: {"const": 1}}, "required": [a]}, "then": {"required": [b]}, "else": {"properties": {b: False}}}
        for a, b in pairs(count)
    ]
    return closed(names_of(count), allOf=conditions)


def dependent(count: int) -> Schema:
    schemas = {a: {"required": [b], "properties": {b: {"minimum": 1}}} for a, b in pairs(count)}
    return closed(names_of(count), dependentSchemas=schemas)


IMPLICATIONS: dict[str, Callable[[str, str], Schema]] = {  # ways to say that one member needs another one
    "dependentRequired": lambda a, b: {"dependentRequired": {a: [b]}},
    "dependentSchemas": lambda a, b: {"dependentSchemas": {a: {"required": [b]}}},
    "dependentSchemas, typed": lambda a, b: {"dependentSchemas": {a: {"type": "object", "required": [b]}}},
    "dependencies": lambda a, b: {"dependencies": {a: {"required": [b]}}},
    "any of": lambda a, b: {"anyOf": [{"not": {"required": [a]}}, {"properties": {a: False}}, {"required": [b]}]},
    "not both": lambda a, b: {"not": {"required": [a], "not": {"required": [b]}}},
    "not all": lambda a, b: {"not": {"allOf": [{"required": [a]}, {"not": {"required": [b]}}]}},
    "twice negated": lambda a, b: {"not": {"not": {"dependentSchemas": {a: {"required": [b]}}}}},
    "if": lambda a, b: {"if": {"required": [a]}, "then": {"required": [b]}},
}


@pytest.mark.parametrize("way", IMPLICATIONS)
def test_implications_cost_the_same_however_they_are_said(way: str) -> None:
    """Alternatives would be 2 ** 40 and refused."""
    say = IMPLICATIONS[way]
    constraint = COMPILER.compile(JsonSchema(closed(names_of(40), allOf=[say(a, b) for a, b in pairs(40)]), property_order="any"))
    assert constraint.accepts('{"a0":1,"b1":1,"a2":1,"b2":1,"b0":1}')
    assert not constraint.accepts('{"a0":1,"b1":1}')
    assert COMPILER.compile(JsonSchema(say("a", "b"))).accepts("[1]")


@pytest.mark.parametrize("way", [way for way, say in IMPLICATIONS.items() if "properties" not in json.dumps(say("a", "b"))])
def test_what_evaluates_nothing_does_not_multiply_beside_unevaluated_members(way: str) -> None:
    say = IMPLICATIONS[way]
    members = {"type": "object", "properties": dict.fromkeys(names_of(40), NUMBER), "unevaluatedProperties": False}
    constraint = COMPILER.compile(JsonSchema({**members, "allOf": [say(a, b) for a, b in pairs(40)]}, property_order="any"))
    assert constraint.accepts('{"a0":1,"b1":1,"a2":1,"b2":1,"b0":1}')
    assert not constraint.accepts('{"a0":1,"b1":1}')
    assert not constraint.accepts('{"c":1}')


@pytest.mark.parametrize("dependent", [{"not": {"required": ["b"]}}, {"properties": {"b": False}}, {"anyOf": [{"required": ["b"]}, {"required": ["c"]}]}, False])
def test_what_a_member_needs_may_be_a_clause(dependent: Any) -> None:
    schema = {"type": "object", "dependentSchemas": {"a": dependent}}
    constraint, validator = COMPILER.compile(JsonSchema(schema)), jsonschema.Draft202012Validator(schema)
    for names in itertools.chain.from_iterable(itertools.combinations("abcd", size) for size in range(5)):
        value = dict.fromkeys(names, 1)
        assert constraint.accepts(json.dumps(value)) == validator.is_valid(value), value


def not_both(count: int) -> Schema:
    return closed(names_of(count), allOf=[{"not": {"required": list(pair)}} for pair in pairs(count)])


def chain(count: int) -> Schema:
    """The kind says which other member must be there."""
    kinds = [f"k{i}" for i in range(count)]
    schema: Schema = {}
    for i in reversed(range(count)):
        when = {"properties": {"kind": {"const": kinds[i]}}, "required": ["kind"]}
        schema = {"if": when, "then": {"required": [f"a{i}"]}, **({"else": schema} if schema else {})}
    properties = {"kind": {"enum": kinds}, **{f"a{i}": NUMBER for i in range(count)}}
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": ["kind"], **schema}


def open_one_of_each(count: int) -> Schema:
    return {"type": "object", "allOf": one_of_each(count)["allOf"]}


FAMILIES: list[Callable[[int], Schema]] = [
    mutual, one_of_each, some_of_each_counted, implied, dependent, not_both, chain, open_one_of_each,
]  # fmt: skip
ORDERS = ["declared", "any"]
family = pytest.mark.parametrize("make", FAMILIES, ids=lambda make: make.__name__)
order = pytest.mark.parametrize("order", ORDERS)


def values_of(schema: Schema, rng: Random, count: int) -> Iterator[dict[str, Any]]:
    """Objects of random members, of which many are nearly right: the valid ones of a walk, with a member more or less."""
    names = list(schema.get("properties", {})) or names_of(3)
    for _ in range(count):
        chosen = [name for name in names if rng.random() < rng.choice([0.2, 0.5, 0.8])]
        yield {name: rng.choice([f"k{i}" for i in range(5)] if name == "kind" else [0, 1]) for name in chosen}


def walk(constraint: Constraint, rng: Random) -> bytes:
    """A text: every step leaves a way to finish, within the tokens promised."""
    state, text = constraint.start(), b""
    while not constraint.is_accepting(state) or (len(text) < 60 and rng.random() < 0.5):
        tokens = [token for token in as_token_ids(constraint.mask(state)) if token != END]
        if constraint.is_accepting(state) and not tokens:
            break
        assert tokens, text
        token = rng.choice(tokens)
        if not constraint.is_accepting(state) and len(text) > 40:
            token = min(tokens, key=lambda each: constraint.min_tokens(after(constraint, state, each)))
            assert constraint.min_tokens(after(constraint, state, token)) < constraint.min_tokens(state), text
        state, text = after(constraint, state, token), text + bytes([token])
    return text


def after(constraint: Constraint, state: Any, token: int) -> Any:
    following = constraint.advance(state, token)
    assert following is not None
    return following


@family
@order
def test_accepts_what_is_valid(make: Callable[[int], Schema], order: str) -> None:
    schema, rng = make(5), Random(1)
    constraint, validator = COMPILER.compile(JsonSchema(schema, property_order=order)), jsonschema.Draft202012Validator(schema)
    declared = list(schema.get("properties", {}))
    for value in values_of(schema, rng, 300):
        members = list(value.items())
        if order == "any" or not declared:
            rng.shuffle(members)
        text = json.dumps(dict(members), separators=(",", ":"))
        assert constraint.accepts(text) == validator.is_valid(value), text


@family
@order
def test_every_walk_ends_in_a_valid_object(make: Callable[[int], Schema], order: str) -> None:
    schema = make(5)
    constraint, validator = COMPILER.compile(JsonSchema(schema, property_order=order)), jsonschema.Draft202012Validator(schema)
    for seed in range(10):
        text = walk(constraint, Random(seed))
        assert validator.is_valid(json.loads(text)), text


@family
@order
def test_a_saved_constraint_is_the_same(make: Callable[[int], Schema], order: str, tmp_path: Path) -> None:
    constraint = COMPILER.compile(JsonSchema(make(5), property_order=order))
    texts = [walk(constraint, Random(seed)) for seed in range(3)]
    constraint.save(tmp_path / "conditions")
    loaded = Compiler(VOCABULARY).load(tmp_path / "conditions")
    assert all(loaded.accepts(text) for text in texts) and loaded.min_tokens(loaded.start()) == constraint.min_tokens(constraint.start())


@family
@order
def test_a_hundred_conditions_make_a_small_grammar(make: Callable[[int], Schema], order: str) -> None:
    source, limits = JsonSchema(make(100), property_order=order), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 100_000 if (make, order) == (chain, "any") else len(grammar) < 12_000


@order
def test_all_subsets_of_random_conditions(order: str) -> None:
    for seed in range(12):
        rng = Random(seed)
        schema = {
            "type": "object", "properties": {name: {"enum": [1, 2]} for name in "abcde"}, "additionalProperties": False,
            "allOf": [random_condition(rng, 2) for _ in range(5)],
        }  # fmt: skip
        validator = jsonschema.Draft202012Validator(schema)
        valid = {value for value in every_object() if validator.is_valid(dict(value))}
        if not valid:
            continue
        constraint = COMPILER.compile(JsonSchema(schema, property_order=order))
        for value in every_object():
            members = rng.sample(value, len(value)) if order == "any" else value
            assert constraint.accepts(json.dumps(dict(members), separators=(",", ":"))) == (value in valid), (seed, members)


@order
def test_conditions_that_are_met_before_members_in_any_order(order: str) -> None:
    """What is left behind `a` and `b` asks nothing of the names that are not declared."""
    either = [
        {"dependentRequired": {"b": ["b"], "d": ["b"]}},
        {"oneOf": [{"dependentSchemas": {"b": {"required": ["d"]}}}, {"required": ["a"]}]},
        {"properties": {"a": {"pattern": "a"}}},
    ]
    others = [{"anyOf": either}, {"anyOf": [{"dependencies": {"b": ["ab"]}}]}, {"properties": {"b": {}}}]
    constraint = COMPILER.compile(JsonSchema({"properties": {"a": {}}, "allOf": others}, property_order=order))
    for text in ("{}", '{"d":1}', '{"b":1,"ab":1}', '{"b":1,"ab":1,"d":1}', '{"a":1,"d":1}', '{"a":"xa","d":1}', "5"):
        assert constraint.accepts(text), text
    for text in ('{"b":1}', '{"a":"x","d":1}', '{"a":"x","b":1,"d":1}'):
        assert not constraint.accepts(text), text


def test_members_of_any_name_wait_for_those_that_there_must_be() -> None:
    """What a place asks of members and can no longer have leaves nothing of it, not what is asked beside it."""
    four = {"properties": {"a": {"not": {"const": 1}}, "b": {"type": ["string", "boolean"]}}}
    any_of = [{"maxProperties": 2}, four, {"not": {"required": ["c"]}}, {"required": ["d"]}]
    schema = {
        "type": "object", "properties": {"kind": {"enum": [1, 2, 3, 4, 5]}, "a": {}, "b": {"enum": [1, "x", True]}, "c": {}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": 4}}}, "then": {"anyOf": any_of}, "else": {"dependentRequired": {"c": ["a"]}}},
            {"if": {"properties": {"kind": {"const": 5}}}, "then": {"required": ["c"]}},
        ],
    }  # fmt: skip
    constraint = COMPILER.compile(JsonSchema(schema))
    validator = jsonschema.Draft202012Validator(schema)
    for seed in range(8):
        text = walk(constraint, Random(seed))
        assert validator.is_valid(json.loads(text)), text


def every_object() -> Iterator[tuple[tuple[str, int], ...]]:
    for present in itertools.product((None, 1, 2), repeat=5):
        yield tuple((name, value) for name, value in zip("abcde", present, strict=True) if value is not None)


NEEDS: list[Schema] = [
    {"patternProperties": {"^x": {"const": 1}}}, {"patternProperties": {"1$": {"enum": [1, 2]}}}, {"propertyNames": {"maxLength": 1}},
    {"additionalProperties": {"type": "integer"}}, {"patternProperties": {"y": {"maximum": 1}}, "additionalProperties": {"minimum": 2}},
]  # fmt: skip


@order
@pytest.mark.parametrize("seed", range(15))
def test_conditions_beside_members_that_there_must_be(seed: int, order: str) -> None:
    """Some member of any name that a pattern, a length or nothing describes, violates something: as many of these as there are."""
    rng = Random(seed)
    schema: Schema = {
        "type": "object", "properties": {name: {"enum": [1, 2]} for name in "abcd"},
        "allOf": [random_condition(rng, 1) for _ in range(3)] + [{"not": each} for each in rng.sample(NEEDS, rng.randint(1, 3))],
    }  # fmt: skip
    if rng.random() < 0.5:
        schema |= {"minProperties": rng.randint(0, 3), "maxProperties": rng.randint(3, 5)}
    if rng.random() < 0.4:
        schema["patternProperties"] = {"^x": {"type": "integer"}, "y": {"minimum": 1}}
    validator, names = jsonschema.Draft202012Validator(schema), ["a", "b", "c", "d", "x", "x1", "y1", "xy", "z", "yy"]
    try:
        constraint = COMPILER.compile(JsonSchema(schema, property_order=order))
    except ConstraintError as error:
        assert "no value" in str(error), error
        return
    for _ in range(400):
        chosen = [name for name in names if rng.random() < rng.choice([0.1, 0.3, 0.6])]
        value = {name: rng.choice([1, 2]) if name in "abcd" else rng.choice([0, 1, 2, "x"]) for name in chosen}
        members = rng.sample([*value.items()], len(value)) if order == "any" else value.items()
        text = json.dumps(dict(members), separators=(",", ":"))
        assert constraint.accepts(text) == validator.is_valid(value), (schema, text)
    for each in range(4):
        text = walk(constraint, Random(each))
        assert validator.is_valid(json.loads(text)), (schema, text)


def random_condition(rng: Random, depth: int) -> Schema:
    names = rng.sample("abcde", 2)
    if depth == 0:
        return rng.choice([
            {"required": names[:1]}, {"required": names}, {"properties": {names[0]: {"const": 1}}},
            {"properties": {names[0]: {"const": 2}}, "required": names[:1]}, {"dependentRequired": {names[0]: names[1:]}},
        ])  # fmt: skip
    parts = [random_condition(rng, depth - 1) for _ in range(3)]
    return rng.choice([
        {"anyOf": parts}, {"oneOf": parts}, {"not": {"allOf": parts}}, {"if": parts[0], "then": parts[1], "else": parts[2]},
        {"dependentSchemas": {names[0]: parts[0]}}, {"not": parts[0]},
    ])  # fmt: skip


@order
def test_contained_kinds_that_exclude_each_other_are_not_multiplied(order: str) -> None:
    kinds = [f"k{i}" for i in range(100)]
    wanted = [{"contains": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}} for kind in kinds]
    source = JsonSchema({"type": "array", "items": {"type": "object"}, "allOf": wanted}, property_order=order)
    grammar = source.new_grammar(Limits())
    source.lower(grammar, Limits())
    assert len(grammar) < 10_000
    few = COMPILER.compile(JsonSchema({"type": "array", "items": {"type": "object"}, "allOf": wanted[:5]}, property_order=order))
    items = [{"kind": kind} for kind in (*kinds[:5], "other", kinds[2])]
    assert few.accepts(json.dumps(items, separators=(",", ":")))
    assert not few.accepts(json.dumps(items[1:], separators=(",", ":")))


def test_closed_objects_that_differ_in_one_member() -> None:
    names = [f"m{i}" for i in range(20)]
    branches = [closed([name for name in names if name != missing]) for missing in names]
    constraint = COMPILER.compile(JsonSchema({"oneOf": branches}))
    assert constraint.accepts(json.dumps(dict.fromkeys(names[1:], 1), separators=(",", ":")))
    assert not constraint.accepts(json.dumps(dict.fromkeys(names[2:], 1), separators=(",", ":")))
    assert not constraint.accepts(json.dumps(dict.fromkeys(names, 1), separators=(",", ":")))


@order
def test_time_is_looked_at_while_conditions_multiply(order: str) -> None:
    few = "^x[a-z]?$"  # names that may run out, so that no member can be promised beside the conditions
    schema = {**mutual(14), "additionalProperties": True, "patternProperties": {few: NUMBER}, "not": {"patternProperties": {few: {"minimum": 3}}}}
    with pytest.raises(ConstraintLimit) as caught:
        JsonSchema(schema, property_order=order).lower(Grammar(), Limits(seconds=0.05))
    assert caught.value.limit == "seconds"


@order
def test_what_has_no_small_diagram_is_refused_by_name(order: str) -> None:
    """Whether more pigeons than holes have a hole each depends on all of them, in every order."""
    pigeons, holes = range(13), range(12)
    names = [f"p{i}h{j}" for i in pigeons for j in holes]
    somewhere = [{"anyOf": [{"required": [f"p{i}h{j}"]} for j in holes]} for i in pigeons]
    alone = [
        {"not": {"required": [f"p{i}h{j}", f"p{k}h{j}"]}} for j in holes for i, k in itertools.combinations(pigeons, 2)
    ]  # fmt: skip
    with pytest.raises(ConstraintLimit) as caught:
        COMPILER.compile(JsonSchema(closed(names, allOf=[*somewhere, *alone]), property_order=order))
    assert caught.value.limit == "conditions"


@pytest.mark.parametrize("seed", range(8))
def test_contained_values_that_overlap(seed: int) -> None:
    """Of many ranges, each item counts in all that it is in; ranges that enclose each other make as many cases as there are."""
    rng = Random(seed)
    ranges = [{"minimum": rng.randint(0, 6)} if rng.random() < 0.7 else {"maximum": rng.randint(0, 6)} for _ in range(rng.randint(4, 9))]
    wanted = [
        {"contains": each, "minContains": rng.randint(0, 2)} | ({"maxContains": rng.randint(2, 3)} if rng.random() < 0.3 else {}) for each in ranges
    ]  # fmt: skip
    schema = {"type": "array", "items": {"type": "integer"}, "allOf": [*wanted, {"not": {"contains": {"const": rng.randint(0, 9)}}}]}
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = COMPILER.compile(JsonSchema(schema))
    except ConstraintLimit:
        raise
    except ConstraintError as error:
        assert "no value" in str(error)
        constraint = None
    for _ in range(300):
        items = [rng.randint(-1, 8) for _ in range(rng.randint(0, 6))]
        assert (constraint is not None and constraint.accepts(json.dumps(items, separators=(",", ":")))) == validator.is_valid(items), (schema, items)
