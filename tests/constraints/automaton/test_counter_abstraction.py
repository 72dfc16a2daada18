"""States that stand for all those that differ from them in distant counts alone, against those states themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.grammar.source import Source
from maskwright.constraints.runtime.constraint import FINISHED, Constraint, as_token_ids
from maskwright.constraints.token_automaton.counter_abstraction import PLENTY
from maskwright.constraints.token_automaton.token_automaton import Distant
from maskwright.constraints.vocabulary.vocabulary import Vocabulary

WORDS = [b"ab", b"abab", b"aabbaabb", b'","', b'":"', b'"}', b'{"', b"a,b", b"\xc3\xa9a", b"\xa9", b"],[", b'a"', b"00", b"x1y"]


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler(Vocabulary([None, b"</s>", *(bytes([byte]) for byte in range(256)), *WORDS], eos_token_ids=[1]))


def text(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": low, "maxLength": high, **more}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)[:1], "additionalProperties": False}


SOURCES: list[Source] = [
    Regex(r"[a-z]{2,20000}"),
    Regex(r"[ab]{30,60}x"),
    Regex(r"([ab]|ab){0,40}(,[a-z]{0,30}){0,25}"),
    Regex(r"(é|ab){20,50}1?"),
    Regex(r"([a-z]{1,30}[0-9]{25,40},){10,30}"),
    Regex(r"(a{20,40}|b{10,60}a*){0,30}"),
    JsonSchema(text(0, 1_000_000)),
    JsonSchema(text(25, 45, pattern="^[a-z]+$")),
    JsonSchema(text(0, 70, pattern="^(ab|é)*x?$")),
    JsonSchema(closed(a=text(0, 40), b=text(18, 50), c={"type": "array", "items": text(0, 30), "maxItems": 20})),
    JsonSchema({"type": "array", "items": closed(a=text(0, 25)), "minItems": 15, "maxItems": 60}),
    JsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 30}, "maxItems": 40}),
    JsonSchema({"not": {"type": "string", "pattern": "^a{20,40}$"}, "type": "string", "maxLength": 60}),
    Gbnf('root ::= "(" root ")" [ab]{0,40} | [a-z]{20,50}'),
]


def test_what_no_token_can_bring_to_its_end_is_one_state(compiler):
    constraint = compiler.compile(Regex(r"[a-z]{2,20000}"))
    found = [constraint.distant(constraint.advance_bytes(constraint.start(), b"a" * n)) for n in (2, 3, 500, 10_000)]
    assert len({each.state for each in found}) == 1
    assert [each.room for each in found] == [19_999 - n for n in (2, 3, 500, 10_000)]  # the character read next has begun
    assert {each.more for each in found} == {0}
    near = constraint.advance_bytes(constraint.start(), b"a" * 19_995)
    assert constraint.distant(near).state == near and constraint.distant(near).room == PLENTY


def test_lower_bounds_stand_too(compiler):
    constraint = compiler.compile(JsonSchema(text(1000, 2000)))
    first, second = (constraint.distant(constraint.advance_bytes(constraint.start(), b'"' + b"a" * n)) for n in (1, 900))
    assert first.state == second.state
    assert (first.room, second.room) == (998, 99)
    assert first.more + first.needed >= constraint.min_tokens(constraint.advance_bytes(constraint.start(), b'"a'))


def test_a_memory_keeps_its_states(compiler):
    constraint = compiler.compile(JsonSchema({"type": "object", "additionalProperties": text(0, 500)}))
    state = constraint.advance_bytes(constraint.start(), b'{"a":"b')
    assert constraint.distant(state).state == state and not constraint.distant(state).reach


@given(st.sampled_from(SOURCES), st.integers(0, 2**32 - 1))
def test_registers_and_the_state_that_stands_say_what_the_states_say(compiler, source: Source, seed: int) -> None:
    """Along a random text, as the device goes: placed where it is, then moved by tokens alone while there is room."""
    constraint, rng = compiler.compile(source), np.random.default_rng(seed)
    spelled = constraint.vocabulary.spellings
    state = constraint.start()
    here = placed(constraint, state)
    for _ in range(60):
        allowed = as_token_ids(constraint.mask(state))
        assert list(allowed) == list(as_token_ids(constraint.mask(here.state)))
        assert constraint.min_tokens(state) <= here.needed + here.more
        some = rng.choice(allowed, min(len(allowed), 6), replace=False).tolist()
        for token_id in some:
            after, moved = constraint.advance(state, token_id), constraint.advance(here.state, token_id)
            if after == FINISHED:
                assert moved == FINISHED
                continue
            said = placed(constraint, moved)
            said = said._replace(room=min(here.room - len(spelled[token_id]), said.room), more=here.more + said.more)
            if not said.reach:
                assert said.state == after  # nothing is left to be counted
            if token_id == some[-1]:
                state, here = after, said if said.room >= said.reach else placed(constraint, after)
        if after == FINISHED:
            return


def placed(constraint: Constraint, state: Any) -> Distant:
    """Where a sequence in this state is, and its registers."""
    found = constraint.distant(state)
    constraint.mask(found.state)
    found = found._replace(reach=constraint.distant(found.state).reach)  # which is final once the mask is known
    return found if found.room >= found.reach else Distant(state, PLENTY, 0, constraint.min_tokens(state), 0)
