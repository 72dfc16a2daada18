"""Lowering takes short ways: they mean the same as the long ones, and stay short."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, ConstraintError, JsonSchema, Regex, Vocabulary
from maskwright.constraints.front_ends.json_schema.lowering.plain import PlainSchemas
from maskwright.constraints.front_ends.json_schema.strings import strings
from maskwright.constraints.front_ends.json_schema.strings.text import JsonText
from maskwright.constraints.grammar.expression import Event, Grammar, Kind, Node
from maskwright.constraints.grammar.recursion import children, reachable
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits

from ..json_texts import matcher, spellings

WORDS = ["".join(word) for length in range(4) for word in itertools.product('ab"', repeat=length)]
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=[256])
ITEMS = [0, 1, 12, "x", "1", None]
FLAT = [[], [1], [1, 12], [12, "x"], [1, 1], {}, {"a": 1}, {"a": 12}, {"a": 1, "b": 1}, {"b": "x", "c": None}]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=3))
def test_other_names_are_all_but_those_given(groups: list[list[str]]) -> None:
    grammar = Grammar()
    text = JsonText(grammar, "compact", Limits())
    for names in groups:  # one after the other, because they share what their names end in
        opening, closing = grammar.mark(b"{", Event.OBJECT_OPEN), grammar.mark(b"}", Event.OBJECT_CLOSE)
        reference = Reference(grammar, grammar.seq(opening, text.other_name(names), closing))
        accepted = {word for word in WORDS if reference.accepts(f"{{{json.dumps(word)}}}".encode())}
        assert accepted == set(WORDS) - set(names)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(FLAT), min_size=1, max_size=5), st.sampled_from(["declared", "any"]))
def test_listed_arrays_and_objects_of_scalars(listed: list[Any], order: str) -> None:
    reference = matcher({"enum": listed}, property_order=order)
    names = [(), ("a",), ("a", "b"), ("b", "c")]
    objects = [dict(zip(keys, items, strict=True)) for keys in names for items in itertools.product(ITEMS, repeat=len(keys))]
    arrays = [list(items) for length in range(3) for items in itertools.product(ITEMS, repeat=length)]
    for value in arrays + objects:
        for text in spellings(value):
            assert reference.accepts(text.encode()) == (value in listed), text


NAMES = ["a", "b", "ab", "c"]
LEAVES: list[Any] = [
    True, {}, {"type": "string"}, {"type": "string", "description": "x"}, {"const": 1}, {"enum": ["a", None]}, {"type": "integer"},
    {"type": "integer", "format": "int32"}, {"$ref": "#/$defs/n"}, {"$ref": "#/$defs/m", "title": "m"}, {"type": "string", "x": 1},
    {"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 2}, {"type": "string", "minLength": 2, "maxLength": 1},
    {"type": ["null", "integer"], "maximum": 2}, {"type": "array", "items": {"type": "string"}, "minItems": 2},
    {"type": ["array", "null"], "items": {"type": "string"}}, {"properties": {"a": {"const": 1}}}, {"title": "anything"},
    {"anyOf": [{"type": "array", "items": {"const": 1}}, {"type": "integer", "minimum": 3}]}, {"type": "string", "pattern": "^a"},
    {"type": "string", "format": "none"}, {"oneOf": [{"type": "null"}, {"type": "string", "format": "date", "maxLength": 12}]},
    {"enum": ["b"], "type": "string"}, {"enum": ["b"], "type": "null"},
    False, {"type": "array", "items": False}, {"$ref": "#/$defs/none"},
]  # fmt: skip


def schemas_of_containers() -> st.SearchStrategy[Any]:
    def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        rest = st.none() | inner
        objects = st.builds(
            lambda properties, required, rest: {
                "type": "object", "properties": properties, "required": [name for name in required if name in properties],
                **({} if rest is None else {"additionalProperties": rest}),
            },
            st.dictionaries(st.sampled_from(NAMES), inner, max_size=3), st.lists(st.sampled_from(NAMES), max_size=2), rest,
        )  # fmt: skip
        return objects | st.builds(lambda items: {"type": "array", "items": items}, inner)

    return st.recursive(st.sampled_from(LEAVES), around, max_leaves=6)


@settings(max_examples=120, deadline=None)
@given(schemas_of_containers(), schemas_of_containers(), st.sampled_from(["compact", "flexible"]))
def test_the_short_way_for_plain_arrays_and_objects_leads_to_the_same_place(schema: Any, other: Any, whitespace: str) -> None:
    root = {"properties": {"x": schema}, "$defs": {"n": schema, "m": {"items": other}, "none": False}}
    source = JsonSchema(root, whitespace=whitespace)
    short = _meaning(source)
    with nothing_plain():
        assert _meaning(source) == short


@contextmanager
def nothing_plain() -> Iterator[None]:
    """Whatever schemas say, they are lowered the long way."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("array", "object", "scalar", "of_types"):
            patch.setattr(PlainSchemas, name, lambda self, *arguments: None)
        yield


def _texts(source: JsonSchema) -> object:
    """`_meaning` without the schemas that are named."""
    meaning = _meaning(source)
    return meaning if isinstance(meaning, str) else (meaning[0], meaning[2])


def _meaning(source: JsonSchema) -> str | tuple[object, list[str], list[str]]:
    """What a source becomes, but for the numbers of nodes, how often a node was made, and which of two equal schemas is named."""
    grammar = Grammar()
    try:
        root = source.lower(grammar, Limits())
    except ConstraintError as error:
        return str(error).partition(":")[0]
    seen: dict[Node, int] = {}
    for node in sorted(reachable(grammar, root)):  # children before parents, but for calls
        kind, operands = grammar.kind(node), grammar.operands(node)
        if kind is Kind.CALL:
            seen[node] = hash((kind, grammar.rule_names[operands[0]]))
        elif kind is Kind.BAG:
            seen[node] = hash((kind, *sorted((seen[part], *bounds) for part, *bounds in grammar.bag_parts(node)), operands[1:]))
        else:
            rest = grammar.literal_bytes(node) if kind is Kind.LITERAL else operands[1:] if kind is Kind.REPEAT else ()
            rest = tuple(grammar.unlisted_words(node)) if kind is Kind.UNLISTED else rest
            edges = [edge[:2] for edge in grammar.class_edges(node)] if kind is Kind.CLASS else []
            seen[node] = hash((kind, rest, tuple(edges), *(seen.get(part) for part in children(grammar, node))))
    named = sorted({_said_at(source, grammar.labels[node]) for node in seen if node in grammar.labels})
    return seen[root], named, sorted(grammar.notes)


def _said_at(source: JsonSchema, path: str) -> str:
    """What the schema at a path says: any of those that say the same may be named."""
    schema = json.loads(source.schema)
    for token in path.split("/")[1:]:
        schema = schema[int(token) if isinstance(schema, list) else token]
    return json.dumps(_without_remarks(schema), sort_keys=True)


def _without_remarks(schema: Any) -> Any:
    if isinstance(schema, list):
        return list(map(_without_remarks, schema))
    if not isinstance(schema, dict):
        return schema
    return {name: _without_remarks(part) for name, part in schema.items() if name not in ("title", "description", "format", "x")}


def test_patterns_lowered_before_are_the_same_in_another_grammar() -> None:
    patterns = ["^a+b?$", "x|[0-9]{2,}", "^(?=.*b)[a-c\u00e9]*$", "(?!a)\\w", "\\bé"]
    schema = {"anyOf": [{"type": "string", "pattern": each} for each in patterns] + [{"type": "string", "format": "date"}]}
    source = JsonSchema(schema)
    first = _meaning(source)
    assert _meaning(source) == first  # its parts are kept from now on
    assert _meaning(source) == first
    strings.LOWERING_CACHE.clear()
    assert _meaning(source) == first


def test_a_pattern_of_one_name_is_that_name() -> None:
    schema = {"patternProperties": {"^a$": {"const": 1}, "^(?:b|cd)$": {"const": 2}}, "additionalProperties": {"const": 3}}
    reference = matcher(schema)
    for text in ['{"a":1}', '{"b":2,"a":1,"cd":2}', '{"x":3,"cd":2}', '{"aa":3}', "{}"]:
        assert reference.accepts(text.encode()), text
    for text in ['{"a":3}', '{"b":1}', '{"cd":3}', '{"x":2}', '{"a":1,"a":1}']:
        assert not reference.accepts(text.encode()), text


def test_what_a_dot_matches_in_some_dialects_only_is_on_neither_side() -> None:
    """ECMA-262 excludes U+000D, U+2028 and U+2029 from it, Python and Rust do not."""
    reference = matcher({"patternProperties": {"^.+$": {"const": 1}}})
    for text in ['{"a":1}', '{"\\n":2}', '{"":2}', '{"a\\r\\n":2}']:
        assert reference.accepts(text.encode()), text
    for text in ['{"a":2}', '{"\\r":2}', '{"\u2028a":2}']:
        assert not reference.accepts(text.encode()), text
    reference = matcher({"type": "string", "not": {"pattern": "^(?!a).$"}})
    for text, is_in in [('"b"', False), ('"a"', True), ('"\\n"', True), ('"\\r"', True)]:  # by ECMA-262 where something is looked at
        assert reference.accepts(text.encode()) == is_in, text


def test_conditions_on_one_member_do_not_multiply() -> None:
    kinds = {f"kind {i}": {"properties": {f"only {i}": {"type": "integer"}}, "required": [f"only {i}"]} for i in range(12)}
    chain = [{"if": {"properties": {"kind": {"const": kind}}}, "then": then} for kind, then in kinds.items()]
    schema = {"type": "object", "properties": {"kind": {"enum": list(kinds)}}, "required": ["kind"], "allOf": chain}
    grammar = Grammar()
    reference = Reference(grammar, JsonSchema(schema).lower(grammar, Limits()))
    assert len(grammar) < 20_000
    assert reference.accepts(b'{"kind":"kind 7","only 7":1}')
    assert not reference.accepts(b'{"kind":"kind 7","only 8":1}')


def test_a_violated_alternative_of_several_members() -> None:
    names = ["red", "green", "blue", "grey", "pink", "cyan"]
    options = [{"type": "object", "properties": {name: {"type": "string"}}, "required": [name]} for name in names]
    grammar = Grammar()
    root = JsonSchema({"type": "object", "not": {"anyOf": options}}).lower(grammar, Limits())
    assert len(grammar) < 5_000
    for text, accepted in [("{}", True), ('{"red":1}', True), ('{"red":""}', False), ('{"red":1,"pink":""}', False)]:
        assert Reference(grammar, root).accepts(text.encode()) == accepted, text


@pytest.mark.parametrize("pattern", [r"(?!.*://)(?:[^.]{1,63}\.){1,127}[a-z]+", r"(?!.*:)(?=.{1,255}$)(?:.{1,63}\.){1,127}[a-z]+"])
def test_what_a_lookahead_has_refused_is_dead_at_once(pattern: str) -> None:
    constraint = Compiler(BYTES).compile(Regex(pattern, dialect="ecma"))
    state = constraint.advance_bytes(constraint.start(), b"a.b:/"[: 5 if "//" in pattern else 3])
    assert state is not None
    mask = constraint.mask(state)
    refused = ord("/") if "//" in pattern else ord(":")
    assert not mask[refused // 32] >> refused % 32 & 1
    assert mask[ord("c") // 32] >> ord("c") % 32 & 1
    assert constraint.accepts(b"a.b") and not constraint.accepts(b"a://b.c")


FEW_WORDS: list[dict[str, Any]] = [
    *({"type": kind} for kind in ("string", "integer", "number", "boolean", "null")), {"type": ["null", "string"]}, {"title": "a"},
    {"type": ["object", "number", "integer"]}, {"type": "integer", "format": "int32", "maxLength": 2}, {"type": "boolean", "minimum": 1},
    {"type": "string", "minLength": 2}, {"type": "string", "minLength": 1, "maxLength": 3}, {"type": "string", "maxLength": 0},
    {"type": "string", "pattern": "^a+$", "maxLength": 3}, {"type": "string", "format": "date", "minimum": 1},
    {"type": "integer", "minimum": 1, "exclusiveMaximum": 30}, {"type": "number", "minimum": 0.5, "exclusiveMinimum": 0.5},
    {"type": "number", "exclusiveMinimum": -2, "minimum": 1, "maximum": 9, "exclusiveMaximum": 10}, {"type": "number", "maximum": 1e3},
    {"enum": ["b", "a", "b"]}, {"enum": [None, True, 1, "a"]}, {"const": None}, {"const": "\u00e9"}, {"enum": [2, 1], "type": "integer"},
    {"type": "boolean", "const": False}, {"enum": [1, 1.0, 0.5]}, {"enum": ["a", 1], "type": "string"},
    {"enum": ["a", None], "type": ["string", "null"]}, {"type": ["integer", "null"], "minimum": 3, "maxLength": 1},
    {"type": ["string", "boolean"], "maxLength": 2}, {"type": ["string", "array"], "maxLength": 2}, {"type": ["integer"], "maximum": 2},
    {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "integer", "minimum": 3}]}, {"oneOf": [{"type": "null"}, {"const": "a"}]},
    {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}, {"type": "boolean"}]},
    {"anyOf": [{"type": "integer"}, {"type": "number"}]}, {"oneOf": [{"type": "boolean"}, {"type": "string", "enum": []}]},
    {"type": ["array", "null"], "items": {"type": "integer"}},
    {"type": ["object", "array"], "properties": {"a": {}}, "minItems": 1},
    {"properties": {"a": {"const": 1}}, "required": ["a"]}, {"items": {"type": "string"}},
    {"type": ["string", "null"], "format": "date"},
    {"pattern": "^a+$"}, {"minimum": 3}, {"type": "array", "items": {"const": 1}, "additionalItems": False},
    {"items": [{"const": 1}]},
    {"type": "object", "properties": {"a": {}}, "items": {"const": 1}, "multipleOf": 2},
    {"type": ["null", "number"], "multipleOf": 2},
    {"type": ["object", "null"], "required": ["b"]}, {"type": ["array", "null"], "uniqueItems": False, "items": {"const": 1}},
    {"type": ["array", "null"], "items": False}, {"type": "string", "patternProperties": {"a": {}}},
    {"additionalItems": {"const": 1}},
    {"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}}, {"type": "null"}, {"type": "array", "minItems": 1}]},
    {"anyOf": [{"type": "string", "pattern": "^a$"}, {"type": "integer"}]},
    {"anyOf": [{"type": "string"}, {"type": "string", "maxLength": 1}]},
    {"oneOf": [{"enum": ["a"], "type": "string"}, {"type": "number", "minimum": 0}]},
    {"anyOf": [{"type": ["null", "string"]}, {"type": "array"}]},
    {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "object"}], "description": "x"},
    {"anyOf": [{"type": "null"}]},
]  # fmt: skip


@pytest.mark.parametrize("escapes", ["json", "any"])
@pytest.mark.parametrize("schema", FEW_WORDS, ids=json.dumps)
def test_schemas_that_say_little_are_the_nodes_of_the_long_way(schema: dict[str, Any], escapes: str) -> None:
    for around in (schema, {"type": "array", "items": schema}):
        source = JsonSchema(around, escapes=escapes)
        short = _texts(source)
        with nothing_plain():
            assert _texts(source) == short


def test_what_is_made_in_a_complete_grammar_is_right() -> None:
    whole = JsonSchema({"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "required": ["a"]}, whitespace="compact")
    grammar = whole.new_grammar(Limits())
    root, size = whole.lower(grammar, Limits()), len(grammar)
    grammar.complete()
    assert Reference(grammar, root).accepts(b'{"a":"x"}') and not Reference(grammar, root).accepts(b'{"a":2}')
    again = whole.lower(grammar, Limits())
    assert len(grammar) > size, "nothing is found again"
    assert Reference(grammar, again).accepts(b'{"a":1}') and not Reference(grammar, again).accepts(b"{}")


@pytest.mark.parametrize("bounds", [(0, 1), (1, None), (2, None), (0, 2), (1, 1), (2, 4), (0, 0), (3, 2)], ids=str)
@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
def test_arrays_of_some_number_of_items_are_the_nodes_of_the_long_way(bounds: tuple[int, int | None], whitespace: str) -> None:
    low, high = bounds
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": low, **({} if high is None else {"maxItems": high})}
    found: list[object] = []
    for beside in ({}, {"uniqueItems": False}):  # which says nothing, and is not plain
        source = JsonSchema({**schema, **beside}, whitespace=whitespace)
        grammar = source.new_grammar(Limits())
        try:
            root = source.lower(grammar, Limits())
        except ConstraintError as error:
            found.append(str(error).partition(":")[0])
        else:
            found.append((root, grammar.rows.tolist(), bytes(grammar.pool), grammar.lists.tolist()))
    assert found[0] == found[1]
