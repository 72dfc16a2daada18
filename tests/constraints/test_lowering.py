"""Lowering takes short ways: they mean the same as the long ones, and stay short."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, JsonSchema, Regex, Vocabulary
from maskwright.constraints.expression import Event, Grammar
from maskwright.constraints.reference import Reference
from maskwright.constraints.schema.text import JsonText
from maskwright.constraints.source import Limits

from .json_texts import matcher, spellings

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


def test_a_pattern_of_one_name_is_that_name() -> None:
    schema = {"patternProperties": {"^a$": {"const": 1}, "^(?:b|cd)$": {"const": 2}}, "additionalProperties": {"const": 3}}
    reference = matcher(schema)
    for text in ['{"a":1}', '{"b":2,"a":1,"cd":2}', '{"x":3,"cd":2}', '{"aa":3}', "{}"]:
        assert reference.accepts(text.encode()), text
    for text in ['{"a":3}', '{"b":1}', '{"cd":3}', '{"x":2}', '{"a":1,"a":1}']:
        assert not reference.accepts(text.encode()), text


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
