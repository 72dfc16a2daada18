"""`contains` of kinds each of which may hold or not, whatever the others do: watched while an item is read, against brute force."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    JsonSchema,
    UnsupportedKeyword,
    Vocabulary,
)
from maskwright.constraints.grammar.expression import Grammar, Kind, Node
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.runtime.constraint import as_token_ids

from ..json_schema.test_conditions import COMPILER, Schema, walk
from .test_contains import compiled

STRINGS = ["", "a", "ab", "abc", "b", "bca", "caab", "aabbcc", "\u00e9", 'a"b']
NUMBERS = [0, 1, 2, 3, 4, 6, 12, 30, 60, -6, 2.5, 7.5]
OBJECTS: list[Any] = [{}, {"a": 1}, {"a": 1, "b": "x"}, {"b": 2, "c": 3}, {"a": 2, "b": 2, "c": 3, "d": 4}, {"d": {"a": 1}}]
VALUES: list[Any] = [None, True, *STRINGS, *NUMBERS, *OBJECTS, [], [1], [[1], "a"], [1, 2, "ab"]]


def of_string(rng: Random) -> Schema:
    letter, other = rng.sample("abc", 2)
    pattern = rng.choice([letter, f"^{letter}", f"{letter}$", f"{letter}.*{other}", f"{letter}{other}", f"^[^{letter}]*$", "^.{2,3}$"])
    return rng.choice([{"type": "string", "pattern": pattern}, {"pattern": pattern}, {"type": "string", "not": {"pattern": pattern}}])


def of_number(rng: Random) -> Schema:
    step = rng.choice([2, 3, 5, 2.5, 4, 6])
    return rng.choice([{"type": "number", "multipleOf": step}, {"multipleOf": step}, {"type": "integer", "not": {"multipleOf": step}}])


def of_object(rng: Random) -> Schema:
    name, other = rng.sample("abcd", 2)
    return rng.choice([
        {"type": "object", "required": [name]}, {"required": [name, other]}, {"properties": {name: {"const": 1}}, "required": [name]},
        {"type": "object", "not": {"required": [name]}}, {"type": "object", "minProperties": rng.randint(1, 3)},
        {"type": "object", "anyOf": [{"required": [name]}, {"required": [other]}]}, {"dependentRequired": {name: [other]}},
        {"type": "object", "properties": {"d": {"type": "object", "required": [name]}}, "required": ["d"]},
    ])  # fmt: skip


def of_array(rng: Random) -> Schema:
    return {"type": "array", **rng.choice([{"contains": {"const": 1}}, {"minItems": 2}, {"items": {"type": "integer"}}, {"contains": of_string(rng)}])}


def kind(rng: Random) -> Schema:
    simple: list[Schema] = [{"const": rng.choice(STRINGS)}, {"minimum": rng.randint(0, 9)}, {"type": ["string", "null"]}, {"enum": [1, "a", {}]}]
    makes = (of_string, of_string, of_number, of_object, of_object, of_array)
    return rng.choice(simple) if rng.random() < 0.15 else rng.choice(makes)(rng)


def contained(rng: Random, count: int) -> Schema:
    """Many kinds, of one type or of several; a few of them have upper bounds."""
    of_one = rng.choice([None, None, of_string, of_number, of_object])
    wanted = []
    for _ in range(count):
        bounds: Schema = {"minContains": rng.choice([1, 1, 1, 2])}
        if rng.random() < 0.1:
            bounds["maxContains"] = bounds["minContains"] + rng.randint(0, 2)
        wanted.append({"contains": of_one(rng) if of_one else kind(rng), **bounds})
    schema: Schema = {"type": "array", "allOf": wanted}
    if rng.random() < 0.2:
        schema["minItems"] = rng.randint(1, 5)
    if rng.random() < 0.2:
        schema["prefixItems"] = [rng.choice([{}, {"type": "string"}, {"type": "object"}])]
    return schema


def lists_of_values(rng: Random, schema: Schema, count: int) -> list[list[Any]]:
    """Lists that are nearly right: items of nearly all kinds."""
    validators = [jsonschema.Draft202012Validator(each["contains"]) for each in schema["allOf"]]
    of_kind = [values for each in validators if (values := [value for value in VALUES if each.is_valid(value)])]
    lists = []
    for _ in range(count):
        items = [rng.choice(values) for values in of_kind if rng.random() < rng.choice([0.5, 0.9, 1])]
        items += [rng.choice(VALUES) for _ in range(rng.randint(0, 6))]
        lists.append(rng.sample(items, len(items)))
    return lists


@pytest.mark.parametrize("seed", range(60))
def test_kinds_that_may_hold_together(seed: int) -> None:
    rng = Random(seed)
    schema = contained(rng, rng.randint(5, 10))
    validator, constraint = jsonschema.Draft202012Validator(schema), compiled(schema)
    for items in lists_of_values(rng, schema, 60):
        text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
        assert (constraint is not None and constraint.accepts(text)) == validator.is_valid(items), (schema, items)
    for each in range(3 if constraint is not None else 0):
        assert constraint is not None
        text_walked = walk(constraint, Random(each))
        assert validator.is_valid(json.loads(text_walked)), (schema, text_walked)


@pytest.mark.parametrize("seed", range(12))
def test_as_the_slow_twin_reads_them(seed: int) -> None:
    rng = Random(seed)
    schema: Schema = {"type": "array", "items": {"type": ["string", "object"]}, "allOf": [{"contains": of_string(rng)} for _ in range(7)]}
    source, limits = JsonSchema(schema), Limits()
    grammar = source.new_grammar(limits)
    twin, validator = Reference(grammar, source.lower(grammar, limits)), jsonschema.Draft202012Validator(schema)
    for items in lists_of_values(rng, schema, 12):
        text = json.dumps(items, separators=(",", ":"), ensure_ascii=False).encode()
        assert twin.accepts(text) == validator.is_valid(items), (schema, items)


HUNDRED: dict[str, list[Schema]] = {
    "members": [{"type": "object", "required": [f"a{i}"]} for i in range(100)],
    "two members each": [{"type": "object", "required": [f"a{i}", f"b{i % 7}"]} for i in range(100)],
    "patterns anywhere": [{"type": "string", "pattern": f"p{i}x"} for i in range(100)],
    "beginnings": [{"type": "string", "pattern": f"^p{i}"} for i in range(100)],
    "steps": [{"type": "integer", "multipleOf": i + 2} for i in range(100)],
    "mixed": [[{"multipleOf": i + 1}, {"type": "string", "pattern": f"q{i}"}, {"type": "object", "required": [f"a{i}"]}][i % 3] for i in range(100)],
}


@pytest.mark.parametrize("name", HUNDRED)
def test_a_hundred_kinds_make_a_small_grammar(name: str) -> None:
    source, limits = JsonSchema({"type": "array", "allOf": [{"contains": each} for each in HUNDRED[name]]}), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 12_000


def tokens_walked(constraint: Any, most: int) -> int:
    """How many tokens a text has that goes freely for some, and then to its end."""
    state, count, rng = constraint.start(), 0, Random(5)
    while not constraint.is_accepting(state):
        tokens = as_token_ids(constraint.mask(state))
        token = rng.choice(tokens) if count < most else min(tokens, key=lambda each: constraint.min_tokens(constraint.advance(state, each)))
        state, count = constraint.advance(state, token), count + 1
    return count


def test_states_grow_with_the_sum_of_kinds() -> None:
    """What a text of ever more kinds needs: nodes of the automaton, not its time."""
    sizes = []
    for count in (10, 20, 40):
        vocabulary = Vocabulary([*(bytes([byte]) for byte in range(32, 127)), None], eos_token_ids=[95])
        constraint = Compiler(vocabulary).compile(
            JsonSchema({"type": "array", "items": {"type": "string"}, "allOf": [{"contains": {"pattern": f"p{i}x"}} for i in range(count)]})
        )
        tokens_walked(constraint, 40)
        sizes.append(constraint.statistics["bytes"])
    assert sizes[2] < 8 * sizes[0]  # four times the kinds, four times the text, and no set of kinds twice


def test_what_cannot_be_promised_is_refused_by_name() -> None:
    """The last of few items has to be of any set of kinds that may be missing."""
    wanted = [{"contains": each} for each in HUNDRED["patterns anywhere"][:30]]
    schema = {"type": "array", "items": {"type": "string"}, "allOf": wanted, "maxItems": 30}
    with pytest.raises(ConstraintLimit) as caught:
        COMPILER.compile(JsonSchema(schema))
    assert caught.value.limit == "alternatives" and "contains" in str(caught.value)


def test_a_kind_without_items_has_no_arrays() -> None:
    wanted = [{"contains": each} for each in [*HUNDRED["patterns anywhere"][:9], {"type": "string", "pattern": "^a", "maxLength": 0}]]
    with pytest.raises(ConstraintError, match="no value"):
        COMPILER.compile(JsonSchema({"type": "array", "items": {"type": "string"}, "allOf": wanted}))


def test_arrays_of_such_arrays() -> None:
    """What is watched may be watched itself."""
    inner = {"type": "array", "allOf": [{"contains": {"type": "string", "pattern": each}} for each in "abcdef"]}
    outer = [{"contains": {"type": "array", "contains": {"pattern": each, "type": "string"}}} for each in "uvwxyz"]
    schema: Schema = {"type": "array", "items": inner, "allOf": outer}
    constraint, validator, rng = COMPILER.compile(JsonSchema(schema)), jsonschema.Draft202012Validator(schema), Random(3)
    for _ in range(100):
        items = [["".join(each for each in part if rng.random() < 0.95) for part in ("abc", "def", "uvwxyz")] for _ in range(2)]
        assert constraint.accepts(json.dumps(items, separators=(",", ":"), ensure_ascii=False)) == validator.is_valid(items), items


def test_arrays_of_different_items_are_not_watched() -> None:
    """What is remembered of a text is what the item says, not what it may turn out to be."""
    wanted = [*HUNDRED["patterns anywhere"][:9], *({"type": "array", "uniqueItems": True, "minItems": count} for count in range(1, 9))]
    with pytest.raises(UnsupportedKeyword) as caught:
        COMPILER.compile(JsonSchema({"type": "array", "allOf": [{"contains": each} for each in wanted]}))
    assert caught.value.keyword == "uniqueItems"


def covers(grammar: Grammar) -> list[Node]:
    return [node for node in map(Node, range(len(grammar))) if grammar.kind(node) is Kind.COVER]


def test_many_are_watched_and_few_are_told_apart() -> None:
    """So that few keep the exact number of tokens that suffices."""
    for count, is_watched in ((4, False), (5, True)):
        source, limits = JsonSchema({"type": "array", "allOf": [{"contains": {"type": "string", "pattern": each}} for each in "abcdefg"[:count]]}), Limits()
        grammar = source.new_grammar(limits)
        source.lower(grammar, limits)
        assert any(any(grammar.watchers_of(cover)) for cover in covers(grammar)) == is_watched
