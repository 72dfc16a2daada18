"""Where masks are kept, and what they are made of: rows that are dropped, that grow, that are described by others."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Limits, Regex, Vocabulary
from maskwright.constraints.masks import mask_rows
from maskwright.constraints.runtime.constraint import State, as_token_ids

SINGLE_BYTES = [bytes([byte]) for byte in range(256)]
TOKENS = [*SINGLE_BYTES, b"ab", b"abc", b"abcd" * 4, b"a" * 20, b'a"', b'"a', b'"ab', b'","', b"a\\n", b"12", b'1"', b'b"1']
C = r'[^"\\\x00-\x1f]'


def compiled(source: Any, tokens: list[bytes] = TOKENS, **limits: Any) -> Constraint:
    return Compiler(Vocabulary([*tokens, None], eos_token_ids=[len(tokens)]), Limits(**limits)).compile(source)


def allowed(constraint: Constraint, state: State, budget: int | None = None) -> set[int]:
    return set(as_token_ids(constraint.mask(state, budget)))


def by_advancing(constraint: Constraint, state: State) -> set[int]:
    return {t for t in range(constraint.vocabulary.size) if constraint.advance(state, t) is not None}


def states_after(constraint: Constraint, texts: list[bytes]) -> list[State]:
    states = [constraint.advance_bytes(constraint.start(), text) for text in texts]
    assert None not in states
    return states  # type: ignore[return-value]


def prefixes(text: bytes) -> list[bytes]:
    return [text[:end] for end in range(len(text) + 1)]


@pytest.mark.parametrize(
    "pattern",
    [
        rf'(?:{C}|\\n){{5,20}}"(?:{C}|\\n)',  # behind each character of the repetition comes the rest of it: their common tail
        rf'(?:{C}|\\n){{5,}}"(?:{C}|\\n)',
        rf'(?:{C}"|\\n){{5,}}"(?:{C}"|\\n)',
        rf'(?:{C}{{2}}|\\n){{5,}}"(?:{C}{{2}}|\\n)',
    ],
)
def test_a_state_without_its_tail_has_a_body_of_its_own(pattern: str) -> None:
    constraint = compiled(Regex(pattern))
    text = rb'\n\n\n\n\n"'
    for _ in range(2):
        for state in states_after(constraint, prefixes(text)):
            assert allowed(constraint, state) == by_advancing(constraint, state)


def test_more_edits_than_there_is_room_for() -> None:
    tokens = [*SINGLE_BYTES, *(b"a" * n for n in range(2, 300))]  # a value may end at any of 100 nested tokens
    value, literal = "(?:(?:aa){1,100}|b)", "a" * 300
    constraint = compiled(Regex("".join(value + literal + end for end in "bcd")), tokens)
    states = states_after(constraint, [b"", b"b" + literal.encode() + b"b", b"b" + literal.encode() + b"bb" + literal.encode() + b"c"])
    first = [constraint.mask(state).copy() for state in states]
    for state, mask in zip(states, first, strict=True):
        assert set(as_token_ids(mask)) == allowed(constraint, state) == by_advancing(constraint, state)


VALUE = '(?:"[a-c]{0,4}"|[0-9]+x|"1")'
TEXT = b'"ab",,12x;"1":0x,'


def test_masks_after_rows_were_dropped() -> None:
    constraint = compiled(Regex(f"{VALUE},,{VALUE};{VALUE}:{VALUE},"), row_bytes=300)
    states = states_after(constraint, prefixes(TEXT))
    for state in [*states, *reversed(states), *states]:
        assert allowed(constraint, state) == by_advancing(constraint, state)
        assert constraint.statistics["rows"] < 12


def test_rows_stay_what_they_are_when_their_room_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_rows, "_FIRST_WORDS", 1)  # room for 64
    classes = ["".join(letter for bit, letter in enumerate("abcdefgh") if number >> bit & 1) for number in range(1, 180)]
    constraint = compiled(Regex("|".join(f"{number:03}[{letters}]" for number, letters in enumerate(classes))))
    states = states_after(constraint, [f"{number:03}".encode() for number in range(len(classes))])
    numbers = [int(constraint.mask_rows([state])[0][0]) for state in states]
    again, pool = constraint.mask_rows(states)
    assert len(set(numbers)) == len(classes) and numbers == again.tolist()
    for state, number, letters in zip(states, numbers, classes, strict=True):
        expected = {TOKENS.index(letter.encode()) for letter in letters}
        assert set(as_token_ids(pool.get(number))) == allowed(constraint, state) == expected


def test_tokens_along_rivals_are_found_in_two_tries() -> None:
    """With a quotation mark in nearly every token, more are found than there are tokens."""
    tokens = [b"[", b"]", b",", b'"', b"a", b"b", *(b'"' + b"a" * n for n in range(1, 20))]
    constraint = compiled(JsonSchema({"type": "array", "items": {"type": "string", "pattern": "^a*b?$"}, "uniqueItems": True}), tokens)
    (state,) = states_after(constraint, [b'["' + b"a" * 30 + b'",'])
    for budget in (4, 100):
        after = {t: constraint.advance(state, t) for t in allowed(constraint, state)}
        expected = {t for t, next_state in after.items() if next_state is not None and constraint.min_tokens(next_state) < budget}
        assert allowed(constraint, state, budget) == expected
