"""Keys beside those that an object names, and what masks inside of strings take for granted."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Constraint, JsonSchema, Lark, Vocabulary
from maskwright.constraints.base.errors import ConstraintError
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.runtime.constraint import as_token_ids

from ..uniqueness.test_seen_values import Written

SINGLE_BYTES = [bytes([byte]) for byte in range(256)]
# Tokens with control characters inside and outside of strings, with parts of characters, and with several members of an object.
PIECES = [
    b"a\n", b"ab\n", b"a\nb", b'a\n"', b'"\n', b'"a\n', b'a"\n', b'a"\n"', b'",\n"a', b"\n\n", b" \n", b"\na", "é\n".encode(), b"\xc3\n", b"\\n\n",
    b'\\"\n', b"\x7f", b"\x00", b"a\x00", "éb".encode(), "aé".encode(), "a€é".encode(), b"a\xc3", b"a\xe2\x82", b"\xe2\x82", b"\xa9a", b"aa", b"aaa",
    b'a":1,"', b'":1,"a', b'":1,"a"', b'":1,"b":1,"a"', b'"a":1,"a"', b'"a":1,"b":1', b',"a":1', b'":{"a":1,"', b'":{"a":1},"a"', b'a":1},"a":', b'"b":[],"',
    b'":"a","', b'":"b","a"', b'"","', b'":"', b'","', b'{"a":1,"a', b'1,"a":1,"',
]  # fmt: skip
FULL = Vocabulary([*SINGLE_BYTES, *PIECES, None], eos_token_ids=[256 + len(PIECES)])
COMPILER, SLOW = Compiler(FULL), Compiler(FULL)  # the latter's constraints never make a mask
NAMES = ["a", "b", "ab", "aa", "", "é", 'a"', "\n", "a\u20ac", "zz"]


def walk(source: JsonSchema, seed: int, length: int = 12) -> None:
    """Each mask along random tokens has the tokens that the constraint advances by, taken one by one."""
    constraint, slow = COMPILER.compile(source), SLOW.compile(source)
    rng, state, slow_state, text = random.Random(seed), constraint.start(), slow.start(), b""
    for _ in range(length):
        found = set(as_token_ids(constraint.mask(state)))
        expected = {token for token in range(FULL.size) if slow.advance(slow_state, token) is not None}
        assert found == expected, (text, [FULL.tokens[token] for token in found ^ expected])
        choices = sorted(token for token in found if FULL.tokens[token])
        if not choices:
            return
        token = max(rng.sample(choices, min(3, len(choices))), key=lambda token: len(FULL.tokens[token] or b"") + rng.random())
        after, slow_after = constraint.advance(state, token), slow.advance(slow_state, token)
        assert after is not None and slow_after is not None
        state, slow_state, text = after, slow_after, text + (FULL.tokens[token] or b"")


OBJECTS = st.builds(
    lambda names, required, least, rest: {
        "type": "object", "properties": {name: {"enum": [1]} for name in names}, "required": names[:required], "minProperties": least,
        "additionalProperties": rest,
    },
    st.lists(st.sampled_from(NAMES), unique=True, max_size=6), st.integers(0, 1), st.integers(0, 3),
    st.sampled_from([True, {"enum": [1]}, {"type": "object"}, {"type": "string"}, {"type": "array", "items": {"type": "object"}}]),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(OBJECTS, st.sampled_from(["compact", "flexible"]), st.sampled_from(["declared", "any"]), st.integers(0, 99))
def test_masks_of_objects_with_other_members(schema: dict[str, Any], whitespace: str, order: str, seed: int) -> None:
    walk(JsonSchema(schema, whitespace=whitespace, property_order=order), seed)


@pytest.mark.parametrize("listed", ["\n", "\x00", "\x1fa", "a\x10", "a\x1f\x01"])
@pytest.mark.parametrize("make", [lambda schema: JsonSchema(schema, whitespace="compact"), lambda schema: Lark(f"start: %json {json.dumps(schema)}")])
def test_no_key_is_lost_beside_a_listed_one_with_an_escape(make: Any, listed: str) -> None:
    constraint = COMPILER.compile(make({"type": "object", "properties": {listed: {"enum": [1]}}}))
    for first in ("", listed[:1], "b"):
        for char in map(chr, range(0x7F)):
            key = first + char
            assert constraint.accepts(f"{{{json.dumps(key)}:2}}".encode()) == (key != listed), key


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "not": {"const": "\x1f"}}, r'"\u001F"'),
        ({"type": "object", "properties": {"\x1f": {"enum": [1]}}}, r'{"\u001F":2}'),
        ({"type": "array", "uniqueItems": True}, r'["\u001f","\u001F"]'),
    ],
)
def test_what_is_compared_in_a_grammar_has_one_spelling(schema: dict[str, Any], text: str) -> None:
    constraint = COMPILER.compile(Lark(f"start: %json {json.dumps(schema)}"))
    assert not constraint.accepts(text) and constraint.accepts(text.replace("1F", "1e"))


PATTERNS = st.dictionaries(
    st.sampled_from(["^a", "^x-", "b", "^[ab]+$", "^a?b$", "^[^b]*$", "^(?!a)", "^.{2}$", "z$", "^(a|é)*$", ""]), st.sampled_from([{}, {"enum": [1]}, False]),
    min_size=1, max_size=2,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(OBJECTS, PATTERNS, st.booleans(), st.sampled_from(["compact", "flexible"]), st.sampled_from(["declared", "any"]), st.integers(0, 99))
def test_masks_of_objects_with_patterns_beside_names(
    schema: dict[str, Any], patterns: dict[str, Any], is_open: bool, whitespace: str, order: str, seed: int
) -> None:  # fmt: skip
    schema = {**schema, "patternProperties": patterns}
    if not is_open:
        schema["additionalProperties"] = False
    source = JsonSchema(schema, whitespace=whitespace, property_order=order)
    try:
        COMPILER.compile(source)
    except ConstraintError:  # some admit nothing
        reject()
    walk(source, seed)


@pytest.mark.parametrize("pattern", ["^x-", "^a", "^[a-z]+$", "^[ab]{1,2}$", "^(ab|zz)$", "^ab?"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_masks_of_keys_of_a_pattern_beside_many_names(pattern: str, is_nested: bool) -> None:
    names = ["a", "b", "ab", "aa", "zz", "é", "abc", "x", "x-", "x-a"]
    schema: dict[str, Any] = {
        "type": "object", "properties": {name: {"enum": [1]} for name in names}, "patternProperties": {pattern: {"enum": [2]}},
    }  # fmt: skip
    for seed in range(6):
        walk(JsonSchema({"type": "array", "items": schema} if is_nested else schema), seed, 20)


STRINGS = [
    {"type": "string"}, {"type": "string", "pattern": "^[^#]*$"}, {"type": "string", "pattern": "b$"}, {"type": "string", "minLength": 2},
    {"type": "string", "pattern": "^[^/]+/", "maxLength": 6}, {"anyOf": [{"pattern": "^a"}, {"pattern": "b$"}], "type": "string"},
    {"type": "array", "items": {"type": "string"}}, {"patternProperties": {"^a": {}, "b": {"type": "string"}}, "additionalProperties": False},
    {"type": "string", "pattern": "^[ -~]*$"}, {"not": {"const": "a"}, "type": "string"}, {"type": ["string", "object"]},
]  # fmt: skip


@pytest.mark.parametrize("whitespace", ["compact", "flexible", "[ \n#_AZbz]{0,2}"])
@pytest.mark.parametrize("schema", STRINGS, ids=str)
def test_masks_of_strings_beside_tokens_with_control_characters(schema: dict[str, Any], whitespace: str) -> None:
    for seed in range(12):
        walk(JsonSchema(schema, whitespace=whitespace), seed)


def test_all_but_some_words_may_stand_among_alternatives() -> None:
    def build(grammar: Grammar) -> Node:
        letters = grammar.repeat(grammar.chars([(97, 122)]), 1)
        others = grammar.unlisted(grammar.seq(letters, grammar.literal(".")), [b"if.", b"in."])
        behind = grammar.seq(grammar.literal(":"), grammar.spare(others))
        return grammar.repeat(grammar.alt(grammar.literal("0"), others, behind), 1, 3)

    grammar = Grammar()
    twin, constraint = Reference(grammar, build(grammar)), COMPILER.compile(Written(build))
    for text in ("if.", "in.", "iff.", "i.", "0", ":x.", ":if.", "0if.", "0x.", ":in.0", ":inn.0", "x.y.z.", "x.in.", "x", "."):
        assert constraint.accepts(text.encode()) == twin.accepts(text.encode()), text


FEW = Vocabulary([b'"', b"a", b"{", b"}", b":", b",", b"1", b'"a', b"\\", b"u00", b"0", None], eos_token_ids=[11])
PLAIN = "a{}:,01"  # what stands for itself in a string and is a token
SHORT = ["", *PLAIN]
LONGER = ["".join(text) for text in itertools.product(PLAIN, repeat=2)]


@settings(max_examples=60, deadline=None)
@given(st.permutations(SHORT).flatmap(lambda names: st.integers(1, len(SHORT)).map(lambda count: names[:count])), st.sets(st.sampled_from(LONGER)))
def test_min_tokens_of_a_key_whose_short_texts_are_taken(short: list[str], longer: set[str]) -> None:
    names = [*short, *sorted(longer)]
    schema = {"type": "object", "properties": dict.fromkeys(names, False), "additionalProperties": {"const": 1}, "minProperties": 1}
    constraint = Compiler(FEW).compile(JsonSchema(schema, whitespace="compact"))
    fewest = fewest_tokens(constraint)
    promised = constraint.min_tokens(constraint.start())
    assert fewest <= promised  # a key that must be new is charged for the worst
    state = constraint.start()
    for left in range(promised, 0, -1):
        choices = [token for token in as_token_ids(constraint.mask(state, left)) if token != 11]
        after = constraint.advance(state, choices[-1])
        assert after is not None
        state = after
        if constraint.is_accepting(state):
            return
    pytest.fail("the budget is used up")


def fewest_tokens(constraint: Constraint) -> int:
    """Breadth first, of a language without the empty text."""
    frontier = {constraint.start()}
    for count in range(1, 12):
        found = set()
        for state, token in itertools.product(frontier, range(11)):
            after = constraint.advance(state, token)
            if after is None:
                continue
            if constraint.is_accepting(after):
                return count
            found.add(after)
        frontier = found
    pytest.fail("nothing so short")
