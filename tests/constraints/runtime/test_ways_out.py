"""Where a limit is met inside of a text, that text is finished all the same, on one way to its end, and the constraint says so."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Constraint, ConstraintLimit, Gbnf, JsonSchema, Limits, Vocabulary
from maskwright.constraints.runtime.constraint import FINISHED, NOWHERE, as_token_ids
from maskwright.constraints.runtime.near_limits import LED_OUT
from maskwright.constraints.token_automaton.ways_out import WaysOut, tokens_along
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

from ..grammar.growing import unchecked

WORDS = [b"ab", b"Ab1", b"aabb", b'","', b'":', b'"}', b"x9", b" x", b"\xc3\xa9", b"\xa9", b"xx", b"ax"]
EOS = 256 + len(WORDS)
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *WORDS, None], eos_token_ids=[EOS])
LIMITS = Limits(search_states=600, states=8_000)  # a table may have 60 states, and a part that is settled 32 for a token
PATTERNS = {"^(?!.*x.{9}x).*$": r"(?s)(?!.*x.{9}x)", "^(?!.*x.{8}[a9]).*$": r"(?s)(?!.*x.{8}[a9])"}
LONGER = "^(?!.*x.{11}x).*$"
GROWS = 'root ::= x "."\nx ::= "a" x? y? | "b"\ny ::= "a" y? x? | "c"'


def string(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def led(constraint: Constraint, rng: random.Random, letters: bytes, budget: int | None = None) -> str:
    """A text whose tokens are of the given letters as long as some of these are allowed, and then any."""
    wanted = {token for token, text in enumerate(constraint.vocabulary.tokens) if text and not set(text) - set(letters)}
    state, text = constraint.start(), b""
    for spent in range(3_000):
        left = None if budget is None else budget - spent
        allowed = list(as_token_ids(constraint.mask(state, left)))
        assert allowed, f"a dead end behind {text!r}"
        token = rng.choice([token for token in allowed if token in wanted] or allowed)
        after = constraint.advance(state, token)
        assert after is not None
        if after == FINISHED:
            return text.decode()
        assert left is None or constraint.min_tokens(after) < left
        state, text = after, text + (constraint.vocabulary.tokens[token] or b"")
    raise AssertionError(f"no end behind {len(text)} bytes, with {constraint.statistics}")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", range(3))
def test_a_text_in_which_a_limit_is_met_is_finished(pattern: str, seed: int) -> None:
    constraint = Compiler(VOCABULARY, LIMITS).compile(JsonSchema({
        "type": "object", "properties": {"a": string(pattern), "b": {"type": "integer"}, "c": string("^[ab]{3}$")},
        "required": ["a", "b", "c"], "additionalProperties": False,
    }))  # fmt: skip
    value = json.loads(led(constraint, random.Random(seed), b"abx9A1"))
    assert LED_OUT in constraint.notes and set(value) == {"a", "b", "c"}
    assert re.match(PATTERNS[pattern], value["a"]) and len(value["a"]) > 50 and re.fullmatch("[ab]{3}", value["c"])
    again = json.loads(led(constraint, random.Random(seed), b"abx9A1"))  # those that come later are finished, too
    assert set(again) == {"a", "b", "c"} and re.match(PATTERNS[pattern], again["a"])


@given(st.sampled_from(sorted(PATTERNS)), st.integers(0, 2**32), st.integers(200, 900))
@settings(max_examples=6)
def test_budgets_hold_there(pattern: str, seed: int, budget: int) -> None:
    constraint = Compiler(VOCABULARY, LIMITS).compile(JsonSchema({"type": "array", "items": string(pattern), "minItems": 2}))
    for number in range(3):
        values = json.loads(led(constraint, random.Random(seed + number), b"abx9A1", budget))
        assert len(values) >= 2 and all(re.match(PATTERNS[pattern], value) for value in values)


def test_grammars_that_grow_are_finished_too() -> None:
    constraint = unchecked(Gbnf(GROWS), Limits(nodes=30_000), SharedVocabulary(VOCABULARY))
    text = led(constraint, random.Random(2), b"a")
    assert LED_OUT in constraint.notes and text.endswith(".") and unchecked(Gbnf(GROWS), Limits()).accepts(text[:0] + "b.")


def test_tables_of_tokens_and_bytes_are_those_of_masks() -> None:
    constraint = Compiler(VOCABULARY, LIMITS).compile(JsonSchema(string(LONGER)))
    rng, state = random.Random(3), constraint.advance(constraint.start(), ord('"'))
    for _ in range(4_000):
        assert state is not None
        tokens = [token for token in as_token_ids(constraint.mask(state)) if token in set(b"abx9A1")]
        if LED_OUT in constraint.notes:
            break
        state = constraint.advance(state, rng.choice(tokens))
    assert state is not None and LED_OUT in constraint.notes
    for _ in range(5):
        row, after_tokens, after_bytes = constraint.mask(state), constraint.successors(state), constraint.after_bytes(state)
        assert after_tokens is not None and after_bytes is not None
        assert np.flatnonzero(after_tokens != NOWHERE).tolist() == list(as_token_ids(row))
        out = np.zeros((1, row.size), np.uint32)
        constraint.fill_masks([state], out)
        assert np.array_equal(out[0], row)
        state = constraint.advance(state, next(iter(as_token_ids(row)))) or state
        if state == FINISHED:
            break


def test_a_limit_without_a_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WaysOut, "text", lambda *_: None)
    constraint = Compiler(VOCABULARY, LIMITS).compile(JsonSchema(string(min(PATTERNS))))
    with pytest.raises(ConstraintLimit, match="states"):
        led(constraint, random.Random(0), b"abx9A1")
    assert LED_OUT not in constraint.notes


@given(st.lists(st.binary(min_size=1, max_size=4), max_size=30, unique=True), st.binary(max_size=8))
def test_tokens_along_a_text_are_those_with_which_it_begins(tokens: list[bytes], text: bytes) -> None:
    vocabulary = Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])
    found = [int(token) for ids in tokens_along(SharedVocabulary(vocabulary).trie, text) for token in ids]
    spelled = [vocabulary.spellings[token] for token in found]
    assert spelled == [text[:size] for size in range(1, len(text) + 1) if text[:size] in tokens and b"\xff" not in text[:size]]
