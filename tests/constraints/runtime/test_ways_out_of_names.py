"""Where a limit is met and names of members or items must differ, texts are finished, too: in as many bytes as it takes to differ."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Limits
from maskwright.constraints.base.ids import NodeId, RegisterId, StateId
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids
from maskwright.constraints.runtime.near_limits import LED_OUT
from maskwright.constraints.token_automaton.ways_out import WaysOut

from .test_ways_out import PATTERNS, VOCABULARY, string

LETTERS = frozenset(b"abx9A1")
HARD = [*PATTERNS, "^(?!.*x.{9}x)[ax9]{0,40}$", "^(?!.*x.{8}[a9])(aa|x9|b)+$"]
NUM_WALKS, MOST_TOKENS = 50, 600


def named(pattern: str, value: Any, count: int) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {pattern: value}, "additionalProperties": False, "minProperties": count}


def unique(item: Any, count: int) -> dict[str, Any]:
    return {"type": "array", "items": item, "uniqueItems": True, "minItems": count}


def closed(members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 1) -> Any:
    """Values in which several names or items are wanted that differ, and are of patterns with many states."""
    hard = draw(st.sampled_from(HARD))
    inner = draw(schemas(depth - 1)) if depth and draw(st.booleans()) else draw(st.sampled_from([string(hard), {"type": "boolean"}]))
    count = draw(st.integers(1, 6 if depth else 3))
    return draw(st.sampled_from([
        named(hard, inner, count),
        {"type": "object", "propertyNames": {"pattern": hard}, "additionalProperties": inner, "minProperties": count},
        unique(string(hard), count), unique(closed({"a": string(hard)}), min(count, 3)),
        closed({"first": named(hard, inner, count), "second": unique(string(hard), count)}),
    ]))  # fmt: skip


class Members(list[Any]):
    """An object as its members, each a pair."""


def are_different(value: Any) -> bool:
    """Whether no object has a name twice, and no array an item."""
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(set(names)) == len(names) and all(are_different(inner) for _, inner in value)
    return not isinstance(value, list) or all(value.count(item) == 1 and are_different(item) for item in value)


def way_out(constraint: Constraint, state: int) -> bytes:
    with constraint.exclusively() as (automaton, _):
        text = WaysOut(automaton).text(StateId(state & 0xFFFFFFFF), RegisterId(NodeId(state >> 32)))
    assert text is not None
    return text


def finished(constraint: Constraint, rng: random.Random) -> None:
    """A random text is finished: of letters as long as some are allowed, and where no limit is met, behind some, on its way out."""
    state, text = constraint.start(), b""
    wanted = {token for token, spelled in enumerate(VOCABULARY.tokens) if spelled and not set(spelled) - LETTERS}
    for _ in range(rng.randrange(MOST_TOKENS)):
        allowed = list(as_token_ids(constraint.mask(state)))
        assert allowed, f"a dead end behind {text!r}"
        token = rng.choice([token for token in allowed if token in wanted] or allowed)
        after = constraint.advance(state, token)
        assert after is not None
        if after == FINISHED:
            break
        state, text = after, text + (VOCABULARY.tokens[token] or b"")
    else:
        text += way_out(constraint, state)
    assert constraint.accepts(text) and are_different(json.loads(text, object_pairs_hook=Members)), text


@given(schemas(), st.sampled_from([1_000, 8_000, 12_000]), st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_what_compiles_is_finished(schema: Any, states: int, seed: int) -> None:
    try:
        constraint = Compiler(VOCABULARY, Limits(search_states=600, states=states)).compile(JsonSchema(schema))
    except ConstraintError:
        return
    for number in range(NUM_WALKS):
        finished(constraint, random.Random(seed + number))


@pytest.mark.parametrize("pattern", HARD[:3])
def test_six_names_that_differ(pattern: str) -> None:
    constraint = Compiler(VOCABULARY, Limits(search_states=600, states=8_000)).compile(JsonSchema(named(pattern, string(pattern), 6)))
    for seed in range(6):
        finished(constraint, random.Random(seed))
    assert LED_OUT in constraint.notes


def test_a_way_out_of_names_that_begin_alike() -> None:
    """The only names that are left differ early, behind many that are there."""
    constraint = Compiler(VOCABULARY).compile(JsonSchema(named("^(a|x)(b{9})*$", {"type": "null"}, 8)))
    names = ["a" + "b" * (9 * k) for k in range(4)] + ["x"]
    begun = "{" + ",".join(f'"{name}":null' for name in names) + ',"'
    state = constraint.advance_bytes(constraint.start(), begun.encode())
    assert state is not None
    rest = way_out(constraint, state)
    assert len(json.loads(begun + rest.decode())) == 8
