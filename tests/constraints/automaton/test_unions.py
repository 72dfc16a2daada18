"""Alternatives that begin alike: the same masks as brute force, and as many states as one of them needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Gbnf, JsonSchema, Limits, Vocabulary
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.runtime.constraint import Constraint, State, as_token_ids

from ..grammars import VOCABULARY, Recipe, Twin
from ..runtime.test_constraint import allowed, compiled, random_walk

DEPTH = 40

_letters = st.sampled_from([("literal", "a"), ("literal", "ab"), ("chars", "ab"), ("any",)])
_parts = st.one_of(
    _letters,
    st.just(("nested",)),
    st.tuples(st.just("repeat"), _letters, st.integers(0, 2), st.one_of(st.none(), st.integers(0, 3))),
    st.tuples(st.just("alt"), _letters, _letters),
    st.tuples(st.just("repeat"), st.tuples(st.just("seq"), _letters, _letters), st.integers(0, 1), st.none()),
)


def _row(parts: list[Any]) -> Any:
    """Parts in a row, as pairs."""
    first, *rest = parts
    return ("seq", first, _row(rest)) if rest else first


@st.composite
def alike(draw: st.DrawFn) -> Recipe:
    """Alternatives of a few parts each, of which the first ones are often the same."""
    common = draw(st.lists(_parts, min_size=1, max_size=3))
    rows: list[Any] = []
    for _ in range(draw(st.integers(2, 3))):
        shared = draw(st.integers(1, len(common)))
        rows.append(_row([*common[:shared], *draw(st.lists(_parts, max_size=2))]))
    union = rows[0]
    for row in rows[1:]:
        union = ("alt", union, row)
    return Recipe(("seq", ("literal", draw(st.sampled_from(["", "b"]))), union))


@given(alike(), st.integers(0, 9))
def test_masks_equal_brute_force(source: Recipe, seed: int) -> None:
    constraint, twin = compiled(source), Twin(source)
    for text, state, position in random_walk(constraint, twin, seed, 5):
        assert allowed(constraint, state) == twin.mask(position), text
        assert constraint.is_accepting(state) == twin.reference.is_accepting(position), text


@settings(max_examples=50)
@given(alike(), st.integers(0, 9))
def test_every_state_can_finish_in_the_tokens_it_promises(source: Recipe, seed: int) -> None:
    constraint, twin = compiled(source), Twin(source)
    for text, state, _ in random_walk(constraint, twin, seed, 5):
        for _ in range(left := constraint.min_tokens(state)):
            if constraint.is_accepting(state):
                break
            token_id = min(allowed(constraint, state, left) - {constraint.vocabulary.eos_token_ids[0]})
            after = constraint.advance(state, token_id)
            assert after is not None and constraint.min_tokens(after) < left, text
            state, left = after, constraint.min_tokens(after)
        assert constraint.is_accepting(state), text


def _object(name: str) -> dict[str, Any]:
    properties = {"next": {"$ref": "#/$defs/node"}, name: {"type": "integer"}}
    return {"type": "object", "properties": properties, "required": ["next", name], "additionalProperties": False}


NESTED = {"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [_object("x"), _object("y"), {"type": "null"}]}}}


def walked(constraint: Constraint, text: str) -> State | None:
    """The state after a text, with a mask at every byte of it."""
    state: State | None = constraint.start()
    for byte in text.encode():
        assert state is not None and byte in as_token_ids(constraint.mask(state))
        state = constraint.advance(state, byte)
    return state


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("order", ["declared", "any"])
def test_objects_inside_of_alternatives_need_no_more_states_than_they_are_deep(space: str, order: str) -> None:
    source = JsonSchema(NESTED, whitespace="flexible" if space else "compact", property_order=order)
    compiler = Compiler(VOCABULARY, Limits(states=20_000, nodes=200_000))  # 2^20 ways to come to depth 20
    constraint = compiler.compile(source)
    names = ["xy"[i * i % 3 % 2] for i in range(DEPTH)]
    opened = f'{{"next":{space}' * DEPTH + "null"
    state = walked(constraint, opened)
    assert state is not None and ord(",") in allowed(constraint, state) and ord("}") not in allowed(constraint, state)
    closed = walked(constraint, opened + "".join(f',{space}"{name}":{space}1}}' for name in names))
    assert closed is not None and constraint.is_accepting(closed)


def test_rules_inside_of_alternatives() -> None:
    text = 'root ::= pair\npair ::= "(" pair ")" "x" | "(" pair ")" "y" | "(" pair "]" | "a"'
    constraint = Compiler(VOCABULARY, Limits(states=20_000, nodes=200_000)).compile(Gbnf(text))
    state = walked(constraint, "(" * DEPTH + "a" + ")x)y]" * (DEPTH // 3) + ")x" * (DEPTH % 3))
    assert state is not None and constraint.is_accepting(state)


@dataclass(frozen=True)
class Labelled:
    """Two alternatives with labels behind the same part."""

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        part = grammar.repeat(grammar.seq(grammar.literal("a"), grammar.literal("b")))
        ends = [grammar.label(grammar.literal(text), path) for text, path in (("cd", "#/first"), ("ce", "#/second"))]
        return grammar.seq(grammar.literal("("), grammar.alt(*(grammar.seq(part, end) for end in ends)))


def test_each_alternative_is_named_where_they_are_one() -> None:
    constraint = Compiler(Vocabulary([bytes([i]) for i in range(256)] + [None], eos_token_ids=[256])).compile(Labelled())
    state = walked(constraint, "(ab")
    assert state is not None
    refused = constraint.explain(state, ord("x"))
    assert {"#/first", "#/second"} <= set(refused.paths)
