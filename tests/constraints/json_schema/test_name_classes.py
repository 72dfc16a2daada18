"""Patterns of names that overlap: what each name's value must be, masks inside of names, and what is refused."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, ConstraintLimit, JsonSchema, Vocabulary
from maskwright.constraints.front_ends.json_schema.strings.text_classes import (
    UNCLASSED,
    TextClasses,
    automaton_of,
    class_of,
    classified,
    minimal,
    number_of_texts,
    renamed,
    without,
)  # fmt: skip
from maskwright.constraints.front_ends.regex.regex import lower_pattern
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.matcher import Steps
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.runtime.constraint import as_token_ids

from ..some_each_time import some_each_time
from .test_conditions import walk

Schema = dict[str, Any]
END = 256
BYTES = Compiler(Vocabulary([*(bytes([byte]) for byte in range(END)), None], eos_token_ids=[END]))
LONGER = [
    b"ab", b"abc", b"bca", b"xa", b'a"', b'":', b'b":', b'c":"', b'a":1', b'":1}', b'{"', b'{"a', b',"', b'"a', b"\xc3\xa9b", b"a\\", b"\\n",
    b'ab":"x', b"cab", b'x":null', b"\\u001", b"aaaaaaaa", b'a\xc3', b'"ab":', b'1,"b', b'"}',
]  # fmt: skip
TOKENS = [*(bytes([byte]) for byte in range(END)), *LONGER]
TOKENWISE = Compiler(Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)]))
PATTERNS = ["a", "b", "c", "^a", "^b", "c$", "ab", "^[ab]+$", "^.{2,3}$", "a.*b", "^(ab|ba)", "b.?$", "[bc]{2}", "é", "^[^a]*$", "^a?b?c?$", "x|y"]
VALUES: list[Schema | bool] = [
    {"minimum": 1}, {"maximum": 2}, {"type": "integer"}, {"enum": [1, "x", None]}, {"not": {"const": 1}}, {"type": ["string", "null"]}, True, False,
    {"multipleOf": 2}, {"type": "string", "maxLength": 1}, {"anyOf": [{"const": 2}, {"type": "string"}]},
]  # fmt: skip
GIVEN = [0, 1, 2, 3, "x", "xyz", None, []]
ORDERS = ["declared", "any"]


def overlapping(rng: Random, most: int = 6) -> Schema:
    """An object with several patterns, and now and then other conditions on names beside them."""
    schema: Schema = {"type": "object", "patternProperties": {each: rng.choice(VALUES) for each in rng.sample(PATTERNS, rng.randint(3, most))}}
    if rng.random() < 0.5:
        schema["properties"] = {name: rng.choice(VALUES) for name in rng.sample(["a", "abc", "bc", "x"], rng.randint(1, 3))}
    if rng.random() < 0.6:
        schema["additionalProperties"] = rng.choice([False, {"type": "string"}, {"enum": [1, 2]}, True])
    if rng.random() < 0.4:
        schema["propertyNames"] = rng.choice([{"pattern": "^[a-c]*$"}, {"maxLength": 3}, {"not": {"pattern": "aa"}}, {"enum": ["a", "ab", "cab"]}])
    if rng.random() < 0.3:
        schema["required"] = rng.sample(["a", "b", "cab"], 1)
    if rng.random() < 0.3:
        schema |= {"minProperties": rng.randint(0, 3), "maxProperties": 3}
    if rng.random() < 0.2:
        schema["not"] = {"patternProperties": {rng.choice(PATTERNS): rng.choice(VALUES[:6])}}
    if rng.random() < 0.2:
        schema["dependentRequired"] = {"a": ["b"], "b": ["c"]}
    return schema


def compiled(schema: Schema, order: str, compiler: Compiler = BYTES) -> Constraint | None:
    """The constraint, None where there is no such object."""
    try:
        return compiler.compile(JsonSchema(schema, property_order=order))
    except ConstraintLimit:
        raise
    except ValueError as error:
        assert "no value" in str(error) or "satisf" in str(error), error
        return None


def names_up_to(length: int) -> Iterator[str]:
    for size in range(length + 1):
        yield from map("".join, itertools.product("abcx", repeat=size))
    yield from ("é", "aé", "éb", "a\nb", 'c"', "\\", "y")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(20))
def test_accepts_what_is_valid(order: str, seed: int) -> None:
    rng = Random(seed)
    schema = overlapping(rng)
    constraint, validator = compiled(schema, order), jsonschema.Draft202012Validator(schema)
    names = list(names_up_to(3))
    for name, value in itertools.product(names, rng.sample(GIVEN, 3)):
        check(constraint, validator, {name: value})
    for _ in range(200):
        members = {name: rng.choice(GIVEN) for name in rng.sample(names, rng.randint(0, 4))}
        declared = list(schema.get("properties", {})) if order == "declared" else []
        check(constraint, validator, dict(sorted(members.items(), key=lambda item: (*declared, item[0]).index(item[0]))))


def check(constraint: Constraint | None, validator: Any, value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert (constraint is not None and constraint.accepts(text)) == validator.is_valid(value), (validator.schema, text)


@pytest.mark.parametrize("seed", some_each_time(range(16), 6))
def test_masks_are_those_of_single_bytes(seed: int) -> None:
    rng = Random(seed)
    schema, order = overlapping(rng), rng.choice(ORDERS)
    tokenwise, bytewise = compiled(schema, order, TOKENWISE), compiled(schema, order)
    if tokenwise is None or bytewise is None:
        return
    for _ in range(4):
        state, at = tokenwise.start(), bytewise.start()
        for _ in range(25):
            allowed = {token for token in as_token_ids(tokenwise.mask(state)) if token < len(TOKENS)}
            assert allowed == {token for token, text in enumerate(TOKENS) if after(bytewise, at, text) is not None}, (schema, seed)
            if not allowed:
                break
            token = rng.choice([*allowed] + [each for each in allowed if TOKENS[each][:1] in b'abcx"{,:1'] * 4)
            state, at = tokenwise.advance(state, token), after(bytewise, at, TOKENS[token])


def after(constraint: Constraint, state: Any, text: bytes) -> Any:
    """The state behind some bytes, None where one of them is not in the mask of what is before it."""
    for byte in text:
        if state is None or not np.isin(byte, as_token_ids(constraint.mask(state))):
            return None
        state = constraint.advance(state, byte)
    return state


@pytest.mark.parametrize("seed", range(12))
def test_every_walk_ends_in_a_valid_object(seed: int) -> None:
    rng = Random(100 + seed)
    schema = overlapping(rng)
    constraint, validator = compiled(schema, "any"), jsonschema.Draft202012Validator(schema)
    for each in range(5 if constraint is not None else 0):
        text = walk(constraint, Random(each))  # type: ignore[arg-type]
        assert validator.is_valid(json.loads(text)), (schema, text)


def test_a_saved_constraint_is_the_same(tmp_path: Path) -> None:
    constraint = TOKENWISE.compile(JsonSchema({"type": "object", "patternProperties": {each: {"type": "integer"} for each in "abc"}}))
    constraint.save(tmp_path / "names")
    loaded = Compiler(TOKENWISE.vocabulary).load(tmp_path / "names")
    state, same = constraint.start(), loaded.start()
    for byte in b'{"ab\\nc":12,"x":null,"bab":-3}':
        assert list(as_token_ids(constraint.mask(state))) == list(as_token_ids(loaded.mask(same)))
        state, same = constraint.advance(state, byte), loaded.advance(same, byte)


def test_eight_patterns_that_overlap_make_a_small_grammar() -> None:
    values = [{"minimum": each} for each in range(8)]
    source = JsonSchema({"type": "object", "patternProperties": dict(zip("abcdefgh", values, strict=True))})
    grammar = source.new_grammar(Limits())
    source.lower(grammar, Limits())
    assert len(grammar) < 1_000


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(8))
def test_classes_of_the_same_values_are_one(seed: int, order: str) -> None:
    """Twelve patterns that all overlap make 4,096 classes of names, of which few have values of their own."""
    rng = Random(seed)
    values = [{"minimum": bound} for bound in rng.sample(range(9), 4)] + [{"type": "string"}, True, {"maximum": 6}]
    patterns = rng.sample([*"abcdefghij", "^[a-c]", "^[b-d]", "[e-g]$", "^[f-j]", "a.*b"], 12)
    schema: Schema = {"type": "object", "patternProperties": {each: rng.choice(values) for each in patterns}}
    schema |= rng.choice([{}, {"additionalProperties": {"type": "string"}}, {"properties": {"ab": {"maximum": 3}}}, {"minProperties": 2}])
    if rng.random() < 0.3:
        schema["not"] = {"patternProperties": {patterns[0]: {"minimum": 2}}}
    validator = jsonschema.Draft202012Validator(schema)
    try:
        constraint = BYTES.compile(JsonSchema(schema, property_order=order))
    except ConstraintLimit:
        raise
    except ConstraintError as error:
        assert "no value" in str(error) and "not" in schema, error
        return
    for _ in range(200):
        names = {"".join(rng.choice("abcdefghijz") for _ in range(rng.randint(0, 4))) for _ in range(rng.randint(0, 3))}
        value = {name: rng.choice([-1, 1, 3, 5, 7, "x"]) for name in sorted(names, key=lambda name: name != "ab")}
        assert constraint.accepts(json.dumps(value, separators=(",", ":"))) == validator.is_valid(value), (schema, value)
    for each in range(3):
        text = walk(constraint, Random(each))
        assert validator.is_valid(json.loads(text)), (schema, text)


def test_too_many_combinations_are_refused_by_name() -> None:
    letters = "abcdefghijklmnop"
    with pytest.raises(ConstraintLimit) as caught:
        BYTES.compile(JsonSchema({"properties": {"m": {"patternProperties": {each: {"not": {"const": each}} for each in letters}}}}))
    assert (caught.value.limit, caught.value.path, caught.value.keyword) == ("name_classes", "#/properties/m", "patternProperties")


LONG = [Random(seed).choice("abcdefgh") * 60 + str(seed) for seed in range(6)]
FEW_NAMES: list[tuple[Schema, list[str]]] = [
    ({"propertyNames": {"x-maskwright-number": {"minimum": 9, "exclusiveMaximum": 12, "multipleOf": 1}}}, ["9", "10", "11"]),
    ({"propertyNames": {"not": {"pattern": "[^ab]|.."}}}, ["", "a", "b"]),
    ({"propertyNames": {"pattern": "^[ab]*$", "not": {"pattern": ".."}}}, ["", "a", "b"]),
    ({"propertyNames": {"not": {"pattern": "^(?!(a|b|c)$)"}}}, ["a", "b", "c"]),
    ({"propertyNames": {"pattern": f"^({'|'.join(LONG)})$"}}, LONG),
    ({"patternProperties": {f"^({'|'.join(LONG)})$": {}}, "additionalProperties": False}, LONG),
    ({"patternProperties": {"[^ab]|..": False}}, ["", "a", "b"]),
    ({"propertyNames": {"pattern": "^[ab]x{450}$"}}, ["a" + "x" * 450, "b" + "x" * 450]),
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("schema", "names"), FEW_NAMES, ids=[str(number) for number in range(len(FEW_NAMES))])
def test_names_run_out_however_they_are_told(schema: Schema, names: list[str], order: str) -> None:
    constraint = BYTES.compile(JsonSchema({"type": "object", **schema}, property_order=order))  # type: ignore[arg-type]
    for count in (len(names) - 1, len(names)):
        written = json.dumps(dict.fromkeys(names[:count], 1), separators=(",", ":"))[:-1].encode()
        state = after(constraint, constraint.start(), written)
        assert (ord(",") in as_token_ids(constraint.mask(state))) == (count < len(names)), count


# -- the automata ---------------------------------------------------------------------------------------------------------


def sorted_texts(patterns: list[str], excluded: list[str]) -> tuple[TextClasses, list[int]]:
    grammar = Grammar()
    steps = Steps(grammar)
    nodes = [lower_pattern(grammar, each, dialect="ecma", full=False, unit=grammar.chars, limits=Limits()) for each in patterns]
    whole = automaton_of(steps, grammar.repeat(grammar.chars([(0, 0x10FFFF)])), 1_000)
    words = automaton_of(steps, grammar.words(map(str.encode, excluded)), 1_000)
    languages = [automaton_of(steps, node, 1_000) for node in nodes]
    found, sets = classified(without(whole, words, 1_000), languages, 10_000, lambda sets: {each: each for each in sets})
    assert sets == sorted(sets) and minimal(found).num_states == found.num_states
    return found, sets


def text_classes(patterns: list[str], excluded: list[str]) -> TextClasses:
    """Classes by the bits of the patterns."""
    found, sets = sorted_texts(patterns, excluded)
    return found._replace(classes=np.append(sets, UNCLASSED)[found.classes])


def text_sets(patterns: list[str]) -> Callable[[str], set[int]]:
    """For a text, the patterns that match it."""
    found, sets = sorted_texts(patterns, [])
    return lambda text: {number for number in range(len(patterns)) if sets[class_of(found, text.encode())] >> number & 1}


@pytest.mark.parametrize("seed", range(10))
def test_every_text_is_in_its_class(seed: int) -> None:
    rng = Random(seed)
    patterns, excluded = rng.sample(PATTERNS, rng.randint(1, 5)), ["ab", "x", "cabx"]
    found = text_classes(patterns, excluded)
    numbers = {each: rng.randint(0, 2) for each in found.numbers if rng.random() < 0.8}
    again = renamed(found, numbers)
    for text in names_up_to(4):
        number = sum(1 << bit for bit, pattern in enumerate(patterns) if re.search(pattern, text))
        assert class_of(found, text.encode()) == class_of(minimal(found), text.encode()) == (UNCLASSED if text in excluded else number)
        assert class_of(again, text.encode()) == (UNCLASSED if text in excluded else numbers.get(number, UNCLASSED))


def test_there_may_be_more_languages_than_a_number_of_the_machine_has_bits() -> None:
    patterns = [f"^{first}{second}" for first in "abcdefghi" for second in "abcdefghi"] + ["i$"]
    found, texts = text_sets(patterns), ["aa", "ia", "ii", "iix", "iixi", "i", "xi", "", "hi"]
    for text in texts:
        assert found(text) == {number for number, pattern in enumerate(patterns) if re.search(pattern, text)}


@pytest.mark.parametrize("order", ORDERS)
def test_each_of_a_hundred_patterns_is_heard(order: str) -> None:
    count = 100
    patterns = {f"^x{number}_": {"type": "integer", "minimum": number} for number in range(count)}
    constraint = compiled({"type": "object", "patternProperties": patterns, "additionalProperties": False}, order)
    assert constraint is not None
    for number in range(count):
        assert constraint.accepts(f'{{"x{number}_":{number}}}') and not constraint.accepts(f'{{"x{number}_":{number - 1}}}')


def test_texts_of_finite_classes_are_counted() -> None:
    found = text_classes(["^[ab]{1,2}$", "^a", "^.$"], ["ab"])
    counts = number_of_texts(found, 1_000)
    assert {number: count for number, count in counts.items() if count is not None} == {1: 2, 3: 1, 5: 1, 7: 1}
    assert number_of_texts(found, 2)[1] is None


@pytest.mark.parametrize("order", ORDERS)
def test_no_name_is_left_for_several_patterns(order: str) -> None:
    short = {"propertyNames": {"maxLength": 1}, "patternProperties": {".": True}}
    names = {"if": {"propertyNames": {"pattern": "[cd]"}}, "then": {"properties": {"c": True}}}
    constraint = compiled({"type": "object", "properties": {"d": True}, "dependentSchemas": {"d": short}, **names}, order)
    assert constraint is not None
    assert constraint.accepts('{"d":1,"c":2}' if order == "any" else '{"d":1}')
    assert not constraint.accepts('{"d":1,"cc":2}')
