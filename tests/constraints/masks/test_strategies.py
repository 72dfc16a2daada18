"""Every strategy for a mask left out by itself: the masks are the same, and some are seen to take part."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import ConstraintError, JsonSchema, Lark, Regex
from maskwright.constraints.masks.strategies import STRATEGIES
from maskwright.constraints.masks.strategy_contract import Strategy
from maskwright.constraints.runtime.constraint import as_token_ids

from ..grammars import regular_recipes, runs
from .test_mask_walk import EOS, FULL, compiler

NAME = {"type": "string", "pattern": "^[a-z]+$", "maxLength": 30}
WORDS = {"anyOf": [{"type": "string", "maxLength": 40}, {"type": "integer"}, {"type": "null"}]}
EACH = [one for one, _ in STRATEGIES]
SOURCES: dict[str, Any] = {
    "names": JsonSchema({"properties": dict.fromkeys(("a", "ab", "abc", "aab"), WORDS), "required": ["a"]}),
    "places": JsonSchema({"$defs": {"v": WORDS}, "properties": {k: {"$ref": "#/$defs/v"} for k in "abc"}, "additionalProperties": False}),
    "arrays": JsonSchema({"type": "array", "items": {"anyOf": [WORDS, {"type": "array", "items": WORDS}]}}),
    "patterns": JsonSchema({"patternProperties": {"^[a-z]*$": NAME}, "properties": {"ab": {}}, "additionalProperties": NAME}),
    "strings": JsonSchema({"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 60}}),
    "counts": Regex("(ab|ba|aab){0,200}"),
    "unlike": Regex('(?!(ab|ba|abc)")"[a-c]*"'),
    "bounded": Regex('("[^"]{0,50}"a{2,80})*'),
    "words": Regex('"(?!ab)(?!.*aa)[^"]{0,20}"'),
    "calls": Lark('start: "(" start* ")" | STRING\nSTRING: /"[^"]*"/'),
    "any order": JsonSchema({"properties": dict.fromkeys(("a", "ab", "aab"), WORDS), "additionalProperties": WORDS}, property_order="any"),
    "patterned": JsonSchema({"patternProperties": {"^d": {}}, "properties": dict.fromkeys(("ab", "aab", "b"), WORDS), "additionalProperties": WORDS}),
    "other": JsonSchema({"type": "string", "not": {"enum": ["ab", "aab", "ba"]}}),
    "unique": JsonSchema({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    "labels": JsonSchema({"type": "string", "pattern": r"^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$"}),
    "lengths": JsonSchema({"type": "string", "pattern": "^(?=.{2,50}$)(?!.*aa)(.{1,40}b){1,9}$"}),
}


TEXTS: dict[str, list[bytes]] = {  # where masks are asked for, beside those along random texts
    "names": [b'{"', b'{"a":1,"', b'{"a":1,"a', b'{"a":1,"aa', b'{"a":1,"b'],
    "patterns": [b'{"', b'{"a', b'{"ab', b'{"b'],
    "any order": [b'{"', b'{"a', b'{"ab', b'{"b', b'{"ab":1,"', b'{"ab":1,"aa'],
    "patterned": [b'{"', b'{"a', b'{"aa', b'{"d', b'{"b":1,"'],
    "other": [b'"', b'"a', b'"aa', b'"b', b'"d'],
}
MET_IN = {  # a source whose masks each of these makes
    Strategy.ENDLESS_COUNTS: "counts", Strategy.UNLISTED_NAMES: "any order",
    Strategy.SHARED_TAIL: "calls", Strategy.ENDLESS_BODY: "unique", Strategy.COMMON_LENGTHS: "labels",
}  # fmt: skip


WITH_A_LONG_ONE = [*FULL, b"a" * 60]  # much longer than all others
FAR = ("labels", "lengths")  # sources for that vocabulary
COMPILERS = {(one, far): compiler(WITH_A_LONG_ONE if far else FULL) for one in (Strategy.NONE, *EACH) for far in (False, True)}


def masks_of(source: Any, strategy: Strategy, seed: int, steps: int, name: str = "") -> list[bytes]:
    """The masks along a random text, and at the texts of the source, each made without a strategy."""
    constraint = COMPILERS[strategy, name in FAR].compile(source)
    constraint._automaton.leave_out(strategy)
    rng, state, masks = random.Random(seed), constraint.start(), []
    for _ in range(steps):
        masks.append(constraint.mask(state).tobytes())
        allowed = [token for token in as_token_ids(constraint.mask(state)) if token < EOS]
        after = constraint.advance(state, rng.choice(allowed)) if allowed else None
        if after is None:
            break
        state = after
    for text in TEXTS.get(name, []):
        reached = constraint.advance_bytes(constraint.start(), text)
        assert reached is not None
        masks.append(constraint.mask(reached).tobytes())
    return masks


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("strategy", EACH, ids=lambda one: str(one.name))
def test_masks_without_a_strategy_are_the_same(strategy: Strategy, name: str) -> None:
    for seed in range(3):
        assert masks_of(SOURCES[name], strategy, seed, 16, name) == masks_of(SOURCES[name], Strategy.NONE, seed, 16, name)


@given(st.one_of(runs, regular_recipes), st.sampled_from(EACH), st.integers(0, 99))
@settings(max_examples=60)
def test_masks_of_random_expressions_without_a_strategy_are_the_same(source: Any, strategy: Strategy, seed: int) -> None:
    try:
        expected = masks_of(source, Strategy.NONE, seed, 10)
    except ConstraintError:
        return
    assert masks_of(source, strategy, seed, 10) == expected


@cache
def work(strategy: Strategy, name: str) -> tuple[int, ...]:
    """What was visited and made for the masks of a source without a strategy."""
    constraint = compiler(WITH_A_LONG_ONE if name in FAR else FULL).compile(SOURCES[name])
    constraint._automaton.leave_out(strategy)
    for seed in range(3):
        rng, state = random.Random(seed), constraint.start()
        for _ in range(16):
            allowed = [token for token in as_token_ids(constraint.mask(state)) if token < EOS]
            after = constraint.advance(state, rng.choice(allowed)) if allowed else None
            if after is None:
                break
            state = after
    for text in TEXTS.get(name, []):
        reached = constraint.advance_bytes(constraint.start(), text)
        assert reached is not None
        constraint.mask(reached)
    n = constraint._automaton._machine.n
    return n.visited, n.steps, n.states, n.nodes, n.pool


@pytest.mark.parametrize("strategy", MET_IN, ids=lambda one: str(one.name))
def test_strategies_take_part_somewhere(strategy: Strategy) -> None:
    name = MET_IN[strategy]
    work.__wrapped__(Strategy.NONE, name)  # computes what all constraints share, such as automata of intersections
    assert work(strategy, name) != work(Strategy.NONE, name)


def test_each_strategy_is_tried_once() -> None:
    assert [one for one, _ in STRATEGIES] == [one for one in Strategy if one != Strategy.NONE]
