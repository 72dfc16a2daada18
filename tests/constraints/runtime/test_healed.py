"""A constraint whose prompt's last token is written anew, against the one constraint of both texts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Constraint, JsonSchema, Regex, Vocabulary
from maskwright.constraints.runtime.front_end import places_of, values_of
from maskwright.constraints.runtime.healed import HealedConstraint
from maskwright.constraints.runtime.values import OpenValue

TOKENS = [b"a", b"b", b"c", b"ab", b"abc", b"bc", b"ca", b"bca", b"cab", b"aa", b"{", b"b{", b'{"', b'{"n":', None, None]
END = 14
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=[END], special_tokens={"<end>": END, "<x>": 15})
PATTERNS = ["[abc]{2,4}", "(ab|bc)+", "c?a*b", "abc|bca|a", "(a|b(c|aa))*"]
COMPILER = Compiler(VOCABULARY)


def allowed(constraint: Constraint, state: object, budget: int | None = None) -> list[int]:
    mask = constraint.mask(state, budget)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


@settings(max_examples=60)
@given(st.sampled_from(PATTERNS), st.sampled_from(["a", "ab", "abc", "bca", "c", "aa"]), st.integers(0, 12), st.data())
def test_it_is_the_constraint_of_both_texts(pattern: str, owed: str, spare: int, data: st.DataObject) -> None:
    healed = HealedConstraint(COMPILER.compile(Regex(pattern)), owed.encode())
    whole = COMPILER.compile(Regex(re.escape(owed) + f"({pattern})"))
    state, twin, budget = healed.start(), whole.start(), whole.min_tokens(whole.start()) + spare
    while True:
        assert healed.min_tokens(state) == whole.min_tokens(twin)
        assert allowed(healed, state) == allowed(whole, twin)
        assert healed.is_accepting(state) == whole.is_accepting(twin)
        assert healed.forced(state) == whole.forced(twin)
        assert np.array_equal(healed.mask_rows([state])[1].get(int(healed.mask_rows([state])[0][0])), healed.mask(state))
        choices = allowed(healed, state, budget)
        assert choices == allowed(whole, twin, budget)
        if not set(choices) - {END}:
            break
        token = data.draw(st.sampled_from(sorted(set(choices) - {END})))
        text = TOKENS[token]
        assert text is not None and healed.advance_bytes(state, text) == healed.advance(state, token)
        assert healed.survives(state, text + b"x") == whole.survives(twin, text + b"x")
        state, twin, budget = healed.advance(state, token), whole.advance(twin, token), budget - 1
        assert state is not None and twin is not None
    assert healed.is_accepting(state)


@given(st.binary(max_size=6))
def test_any_bytes_survive_as_far_as_in_the_constraint_of_both_texts(data: bytes) -> None:
    healed, whole = HealedConstraint(COMPILER.compile(Regex("[bc]+a")), b"ab"), COMPILER.compile(Regex("ab[bc]+a"))
    for text in (data, b"ab" + data, b"abc" + data):
        assert healed.survives(healed.start(), text) == whole.survives(whole.start(), text)
        assert (healed.advance_bytes(healed.start(), text) is None) == (whole.advance_bytes(whole.start(), text) is None)
        assert healed.accepts(text) == whole.accepts(text)


@pytest.mark.parametrize(("pattern", "owed", "merges"), [("b", b"a", True), ("c", b"a", False), ("bc", b"a", True), ("c", b"ab", True)])
def test_whether_a_token_holds_both(pattern: str, owed: bytes, merges: bool) -> None:
    assert HealedConstraint(COMPILER.compile(Regex(pattern)), owed).can_merge == merges


def test_no_token_leads_to_bytes_that_none_can_spell() -> None:
    sparse = Vocabulary([b"a", b"xyz", b"x", b"xyza", None], eos_token_ids=[4])
    healed = HealedConstraint(Compiler(sparse).compile(Regex("a")), b"xyz")
    assert allowed(healed, healed.start()) == [1, 3] and healed.min_tokens(healed.start()) == 1


def test_values_and_places_begin_behind_what_is_owed() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"], "additionalProperties": False}
    every_byte = Vocabulary([*(bytes([byte]) for byte in range(256)), b'b{"', None], eos_token_ids=[257])
    constraint = Compiler(every_byte).compile(JsonSchema(schema))
    healed = HealedConstraint(constraint, b'b{"')
    values, places, plain_places = values_of(healed), places_of(healed), places_of(constraint)
    assert values is not None and places is not None and plain_places is not None
    assert places.read(b"b") == plain_places.read(b"")
    values.read(b"b")
    values.read(b'{"')
    assert not list(values.open)
    text = b'{"n": "abc'
    values.read(text[:5])
    forked = values.fork()
    values.read(text[5:])
    forked.read(text[5:])
    expected = [OpenValue(3, "object", "#"), OpenValue(9, "string", "#/n")]
    assert list(values.open) == list(forked.open) == expected
    assert places.read(b'{"' + text) == plain_places.read(text)


@settings(max_examples=60)
@given(st.sampled_from(PATTERNS), st.data())
def test_of_a_text_that_is_begun_it_is_the_constraint_itself(pattern: str, data: st.DataObject) -> None:
    """Where the beginning is a text of the constraint, all that begins with it is left: nothing else, and nothing less."""
    constraint = COMPILER.compile(Regex(pattern))
    begun = data.draw(st.text("abc", min_size=1, max_size=3)).encode()
    if constraint.advance_bytes(constraint.start(), begun) is None:
        return
    owed = begun[data.draw(st.integers(0, len(begun) - 1)) :]
    healed, whole = HealedConstraint(constraint, owed, begun), COMPILER.compile(Regex(f"{pattern}") & Regex(f"{begun.decode()}[abc]*"))
    before = begun.removesuffix(owed)
    state, twin = healed.advance_bytes(healed.start(), before), whole.advance_bytes(whole.start(), before)
    while True:
        assert healed.min_tokens(state) == whole.min_tokens(twin)
        assert allowed(healed, state) == allowed(whole, twin)
        assert healed.is_accepting(state) == whole.is_accepting(twin)
        choices = set(allowed(healed, state, healed.min_tokens(state) + 2)) - {END}
        if not choices:
            break
        token = data.draw(st.sampled_from(sorted(choices)))
        state, twin = healed.advance(state, token), whole.advance(twin, token)
        assert state is not None and twin is not None
    assert healed.is_accepting(state)


def test_values_and_places_of_a_text_that_is_begun_are_its_own() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"], "additionalProperties": False}
    constraint = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])).compile(JsonSchema(schema))
    healed, text = HealedConstraint(constraint, b'"n', b'{"n'), b'{"n": "abc"}'
    values, plain, places, plain_places = values_of(healed), values_of(constraint), places_of(healed), places_of(constraint)
    assert values is not None and plain is not None and places is not None and plain_places is not None
    values.read(text)
    plain.read(text)
    assert list(values.open) == list(plain.open) and places.read(text) == plain_places.read(text)
