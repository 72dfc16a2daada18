"""Every way of making a mask (slices, exits, shapes, runs, states in step) against walks that use none of them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Constraint, ConstraintError, ConstraintLimit, JsonSchema, Regex, Vocabulary
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.base.kinds import INFINITE
from maskwright.constraints.base.utf8 import normalize
from maskwright.constraints.runtime.constraint import State, as_token_ids

from ..grammars import Recipe, Twin, regular_recipes, runs

SINGLE_BYTES = [bytes([byte]) for byte in range(256)]
# Subtrees large enough for runs; tokens across several parts, with spaces before, with characters cut short or begun by the last.
PIECES = [
    *("".join(text).encode() for n in (2, 3, 4) for text in itertools.product('ab"', repeat=n)),
    *(b"a" * n + end for n in range(5, 13) for end in (b"", b'"', b'"a', b'": "', b"b", b"d", b"\\")),
    *(b" " * n + end for n in range(1, 12) for end in (b"", b'"', b'"a', b"\n", b"b", "é".encode(), b"\xc3")),
    b'": "', b'a": "', b'","', b'", "a', b': "', b'\\"', b'\\n', b'a\\"a"', b"\r\n", b"\n \t", b"\\",
    *(text.encode() for text in ("é", "aé", "éa", "éé", "è", "ç", "ÿ€", "€", "₭", "a€d", "😀", 'é"', "éb", "ÿ", "Ā")),
    *(text.encode()[:cut] for text in ("é", "aé", "€", "a€", "😀", "aa😀") for cut in range(1, len(text.encode()))),
    b"\xa9", b"\xa9a", b"\x82\xac", b'\xac"', b"\xc3a", b"\xed\xa0", b"\xc0\x80", b"a\xff",
]  # fmt: skip


def vocabulary(tokens: list[bytes]) -> Vocabulary:
    return Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])


def compiler(tokens: list[bytes]) -> Compiler:
    """With tables for more classes, as after many masks."""
    made = Compiler(vocabulary(tokens))
    for ranges in ([(0x61, 0x63)], [(0x61, 0x62), (0xE8, 0x20AC)], [(0x20, 0x7E), (0xC0, 0xFF)]):
        made._lexicon._build(normalize(ranges))
    return made


FULL = SINGLE_BYTES + PIECES
EOS = len(FULL)
LACKING = [b'"', b"a", b"b", b" ", b"d", "é".encode(), "é".encode()[:1], *PIECES]  # nothing spells a lone 0xA9 otherwise
COMPILER = compiler(FULL)
COMPILERS = [COMPILER, compiler(LACKING), compiler([*SINGLE_BYTES, *PIECES[:117:3], b"a" * 60, b" " * 60 + b'"'])]

SLOW = [Compiler(made.vocabulary) for made in COMPILERS]  # for constraints that never make a mask


def allowed(constraint: Constraint, state: State, budget: int | None = None) -> set[int]:
    return set(as_token_ids(constraint.mask(state, budget)))


def compiled(source: Any, compiler: Compiler) -> Constraint:
    try:
        return compiler.compile(source)
    except ConstraintError as error:
        assume("nothing satisfies" not in str(error) and "cannot spell" not in str(error))
        assume(not isinstance(error, ConstraintLimit))
        raise


def plain_walk(constraint: Constraint, text: bytes) -> set[int]:
    """The mask after a text by transitions alone, from a constraint that makes no masks."""
    automaton = constraint._automaton
    state = automaton.start
    for byte in text:
        state, _ = automaton.run(state, bytes([byte]))
    ends, _ = automaton.end_states(state)
    lives = (ends != DEAD) & (automaton.costs(ends) < INFINITE)
    eos = constraint.vocabulary.eos_token_ids if automaton.is_accepting(state) else ()
    return {*automaton.shared_vocabulary.trie.order[lives].tolist(), *eos}


def check_walk(source: Any, which: int, seed: int, length: int = 8) -> None:
    constraint, slow = compiled(source, COMPILERS[which]), SLOW[which].compile(source)
    tokens, rng = constraint.vocabulary.text_tokens, random.Random(seed)
    state, slow_state, text = constraint.start(), slow.start(), b""
    for _ in range(length):
        try:
            found, expected = allowed(constraint, state), plain_walk(slow, text)
        except ConstraintLimit:  # a search for a string in an intersection; refused by name
            return
        if slow_state >> 32:  # a key may be there already, which transitions alone know nothing of
            expected -= {t for t in expected - found if slow.advance(slow_state, t) is None}
        assert found == expected, (text, [tokens[t] for t in found ^ expected])
        choices = sorted(t for t in found if tokens[t])
        if not choices:
            return
        token_id = min(rng.sample(choices, min(len(choices), 2)), key=lambda t: len(tokens[t] or b"") * rng.random())
        after, slow_after = constraint.advance(state, token_id), slow.advance(slow_state, token_id)
        assert after is not None and slow_after is not None
        state, slow_state, text = after, slow_after, text + (tokens[token_id] or b"")


@given(st.one_of(runs, runs, regular_recipes), st.sampled_from(range(len(COMPILERS))), st.integers(0, 99))
def test_masks_of_runs_equal_plain_walks(source: Recipe, which: int, seed: int) -> None:
    check_walk(source, which, seed)


PARTS = [
    '"[ab]*"', '"[^"\\\\]{0,5}"', '"[^"\\\\]*"', '"(?:[^"\\\\]|\\\\[n"])*"', '(?:a|b[ab]{0,3}|"a*")', ' {0,20}"[a-z]*"', "[ab]{1,3}", "[ab]+", "-?[0-9]+",
    '(?:"a"|"ab"|b*d)', '(?:a{2}|"[ab]{2,9}"|bb*é)', " {1,4}(?:a*d|b)", "(?:[ab]{2,}|d)",
]  # fmt: skip
BETWEEN = ['": "', ",", "a", "b", '"', " ", "ab", "b*d", " {0,3}[ab]*,", "(?:a|d)", "é", "[a-z ]*"]


@given(st.sampled_from(PARTS), st.lists(st.sampled_from(BETWEEN), min_size=2, max_size=5), st.sampled_from([0, 1, 2]), st.integers(0, 99))
def test_masks_of_what_stands_at_several_places_equal_plain_walks(part: str, between: list[str], which: int, seed: int) -> None:
    check_walk(Regex("".join(part + separator for separator in between)), which, seed, length=16)


WORDS = [
    *("".join(text).encode() for n in (2, 3) for text in itertools.product("aZ7-é", repeat=n)),
    *(f"{word}{end}".encode() for word in ("true", "Null", "the7", "née", "ABC") for end in ("", '"', " ", "-", '":', '"},', "\u3000")),
    *(f"{lead}name{end}".encode() for lead in ("", '"', ', "', '{"', "\\n") for end in ("", "s", '"', '":')),
    "\u00a0".encode(), "a\u2003b".encode(), "a\u2003b".encode()[:3], "漢字".encode(), "ñandú".encode(), b"a" * 40, b"-" * 30 + b'"',
]  # fmt: skip
COMPILERS.append(compiler([*SINGLE_BYTES, *dict.fromkeys(word for word in WORDS if len(word) > 1)]))
SLOW.append(Compiler(COMPILERS[-1].vocabulary))
WITH_WORDS = len(COMPILERS) - 1
LETTERS = [
    "[a-z]+", "[A-Za-z]+", "[A-Za-z0-9-]{1,9}", "[a-zA-Zé]*", r"[^\s]+", r"[^\s\"]{2,}", "[b-y]*", "[a-z]{3}", "[0-9a-fA-F]+", r"[^\x00-\x1f]{0,5}",
    r"(?:[a-z]+|TRUE)", r"(?:[a-zA-Z]|\\[nt])*", r"[\u00e0-\uffff]*", "[A-Z][a-z]*", "(?:true|[a-z]{2}Z)", '"[^"]{0,35}"', r'"(?:[^"\\]|\\[n"]){0,99}"',
]  # fmt: skip


@given(st.lists(st.sampled_from([*LETTERS, *BETWEEN, '"', ": ", "}"]), min_size=1, max_size=4), st.integers(0, 99))
def test_masks_by_groups_of_bytes_equal_plain_walks(parts: list[str], seed: int) -> None:
    check_walk(Regex("".join(parts)), WITH_WORDS, seed)


SHARED = [{}, {"type": "string"}, {"type": "number"}, {"type": "array", "items": {}}, {"type": "string", "maxLength": 90}, {"enum": [1, "a"]},
    {"type": "object", "properties": {"name": {"type": "string"}, "names": {}}}, {"$ref": "#/$defs/name"}]  # fmt: skip


@given(st.lists(st.sampled_from(SHARED), min_size=2, max_size=5), st.sampled_from(["flexible", "compact"]), st.booleans(), st.integers(0, 99))
def test_masks_of_values_at_several_places_equal_plain_walks(parts: list[dict[str, Any]], whitespace: str, closed: bool, seed: int) -> None:
    schema = {
        "type": "object",
        "properties": {name: parts[k % len(parts)] for k, name in enumerate(["name", "names", "true", "ABC", "a"])},
        "additionalProperties": False if closed else parts[0],
        "$defs": {"name": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/name"}}]}},
    }
    check_walk(JsonSchema(schema, whitespace=whitespace), WITH_WORDS, seed, length=24)


NAMES = ["", "a", "aa", "ab", "b", "ba", "abab", 'a"', 'a"b', "a\\", "\n", "é", "éa", "€", " ", " a"]
OTHERS = [{"const": "dddddddddddd"}, {"const": 1111111111}, {"enum": ["dddddddddddd", "dddd"]}]  # no token spells much of them


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True), st.sampled_from(OTHERS), st.sampled_from(OTHERS),
    st.sampled_from(["declared", "any"]), st.sampled_from(["flexible", "compact"]), st.sampled_from([0, 1, 2]), st.integers(0, 99),
)  # fmt: skip
def test_masks_of_keys_that_are_none_of_some_names_equal_plain_walks(
    names: list[str], value: dict[str, Any], other: dict[str, Any], order: str, whitespace: str, which: int, seed: int
) -> None:
    schema = {"type": "object", "properties": dict.fromkeys(names, value), "additionalProperties": other, "minProperties": 1}
    check_walk(JsonSchema(schema, whitespace=whitespace, property_order=order), which, seed)


COUNTED = [
    "(?:[^ ]+ ){0,%d}[^ ]+", "(?:[ab]+ +){0,%d}[ab]+", "[a-z]{0,%d}", "(?:ab|b){2,%d}", "a*(?:b{1,%d}|c)", "(?: {1,9}a){0,%d}d?", "(?:[^\"]|a\"){0,%d}",
]  # fmt: skip
WITHIN = [".{0,%d}", ".{2,%d}", "[^d]{0,%d}", "(?:..){0,%d}", "a*(?:[^a].*){0,1}.{0,%d}", ".*(?: |b.{0,%d})", "(?:(?:a|b| ){3}){1,%d}"]
BOUNDS = st.one_of(st.integers(2, 12), st.integers(10, 45), st.integers(40, 200))


@given(st.sampled_from(COUNTED), BOUNDS, st.sampled_from(WITHIN), BOUNDS, st.sampled_from([0, 2, 3]), st.integers(0, 99))
def test_masks_of_counters_in_intersections_equal_plain_walks(counted: str, high: int, within: str, other: int, which: int, seed: int) -> None:
    check_walk(Regex(counted % high) & Regex(within % other), which, seed, length=20)


COMPILERS.append(compiler([*FULL, b"a" * 60]))  # one token that is much longer than all others
SLOW.append(Compiler(COMPILERS[-1].vocabulary))
WITH_A_LONG_TOKEN = len(COMPILERS) - 1


@given(
    st.sampled_from([*COUNTED, "(?:.{1,%d}b){1,40}", "(?:[^a]{0,%d}a)*d?"]), BOUNDS, st.sampled_from(WITHIN), st.lists(BOUNDS, min_size=2, max_size=2),
    st.sampled_from([".*", ".*a.*", "(?!.*aab).*"]), st.integers(0, 99),
)  # fmt: skip
def test_masks_of_counters_in_intersections_of_intersections_equal_plain_walks(
    counted: str, high: int, within: str, bounds: list[int], third: str, seed: int
) -> None:
    source = Regex(counted % high) & (Regex(within % bounds[0]) & Regex(third)) & Regex(f".{{0,{bounds[1]}}}")
    check_walk(source, WITH_A_LONG_TOKEN, seed, length=20)


@given(st.sampled_from(COUNTED), BOUNDS, BOUNDS, st.sampled_from([0, 1, 10]), st.sampled_from([0, 1, 3]), st.integers(0, 99))
def test_masks_of_strings_with_a_pattern_and_a_length_equal_plain_walks(
    counted: str, high: int, longest: int, shortest: int, which: int, seed: int
) -> None:
    string = {"type": "string", "pattern": f"^(?:{counted % high})$", "minLength": min(shortest, longest), "maxLength": longest}
    schema = {"type": "array", "items": {"anyOf": [string, {"type": "array", "items": {**string, "maxLength": longest + 30}}]}, "minItems": 2}
    check_walk(JsonSchema(schema), which, seed, length=24)


@given(st.sampled_from(COUNTED), BOUNDS, st.sampled_from(["", "b", "(?:a| ?b)", '"?']), st.sampled_from([0, 1, 3]), st.integers(0, 99))
def test_masks_of_exact_numbers_of_copies_equal_plain_walks(counted: str, count: int, end: str, which: int, seed: int) -> None:
    part = (counted % 3).replace("*", "{0,2}").replace("+", "{1,2}")
    check_walk(Regex(f"(?:{part}){{{count}}}{end}|(?:{part}d?){{{count // 2},}}"), which, seed, length=20)


@given(BOUNDS, st.integers(0, 12), st.sampled_from([[], [{"type": "null"}], [{"type": "string", "enum": ["", "aab"]}]]),
       st.sampled_from([0, 1, 3]), st.integers(0, 99))  # fmt: skip
def test_masks_of_strings_between_lengths_equal_plain_walks(
    longest: int, span: int, others: list[dict[str, Any]], which: int, seed: int
) -> None:
    string = {"type": "string", "minLength": max(longest - span, 1), "maxLength": longest}
    schema = {"type": "array", "items": {"anyOf": [string, *others]}, "minItems": 2}
    check_walk(JsonSchema(schema, whitespace="flexible"), which, seed, length=24)


@given(st.sampled_from(["a", "ab+d", "[ab]{9}", "(?: |b){3,}a", "d$", "^a", "\\n.a"]), BOUNDS, st.sampled_from([0, 1, 3]), st.integers(0, 99))
def test_masks_of_patterns_without_anchors_equal_plain_walks(pattern: str, longest: int, which: int, seed: int) -> None:
    string = {"type": "string", "pattern": pattern, "maxLength": longest + 10}
    check_walk(JsonSchema({"type": "array", "items": string, "minItems": 2}), which, seed, length=20)


@given(runs, st.integers(0, 99))
@settings(max_examples=20)
def test_masks_of_runs_equal_brute_force(source: Recipe, seed: int) -> None:
    constraint = compiled(source, COMPILER)
    twin, is_boolean = Twin(source, COMPILER.vocabulary), source.parts[0] in ("both", "without")
    state, position, rng = constraint.start(), twin.start(), random.Random(seed)
    for _ in range(3):
        survive = {t for t, token in enumerate(FULL) if twin.reference.run(token, position)}
        found = allowed(constraint, state) - {EOS}
        assert found <= survive if is_boolean else found == survive  # others have no dead ends
        choices = sorted(found)
        if not choices:
            return
        token_id = rng.choice(choices)
        after = constraint.advance(state, token_id)
        assert after is not None
        state, position = after, twin.reference.run(FULL[token_id], position)


C, S = r'[^"\\\x00-\x1f]', r"[ \t\n\r]"


@pytest.mark.parametrize(
    "pattern",
    [
        f'{C}{{3,5}}"a|{C}{{0,9}}"b',  # the first may be left only after three characters
        f'{C}"a|{C}{{0,9}}"b',
        f'{C}{{5,9}}"b|{C}{{0,2}}"b',  # no way out after three or four
        f'{C}{{1,9}}"b|"b',
        f'{C}{{0,9}}"b|"b',
        f'{C}{{0,3}}"b|{C}{{0,9}}"b',
        f"{S}{{3,5}}a|{S}{{0,9}}b",
        f'{S}{{2,}}"|"',
        f'{C}{{0,3}}("a)?"b|{C}*"b',
        f'({C}|\\\\n){{2,6}}"b|({C}|\\\\n){{0,1}}"b',
    ],
)
def test_repetitions_of_one_class_with_other_bounds_and_ends(pattern: str) -> None:
    for which, seed in itertools.product(range(len(COMPILERS)), range(3)):
        check_walk(Regex(pattern), which, seed)


def test_lengths_with_a_gap_between_them() -> None:
    lengths = [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 5, "maxLength": 9}]
    for seed in range(5):
        check_walk(JsonSchema({"anyOf": lengths}), 0, seed)


@pytest.mark.parametrize("pattern", [f'"({C}{{0,2}}|{C}{{40,90}})"', f'"{C}{{0,2}}"b|"{C}{{40,90}}"b', f"( {{0,2}}|{S}{{30,40}})b"])
def test_a_budget_is_kept_where_a_longer_text_has_to_become_much_longer(pattern: str) -> None:
    for compiler in COMPILERS:
        constraint = compiler.compile(Regex(pattern))
        tokens, state = constraint.vocabulary.text_tokens, constraint.advance_bytes(constraint.start(), pattern[:1].strip("(").encode())
        assert state is not None
        moves = ((t, constraint.advance(state, t)) for t, token in enumerate(tokens) if token)
        needed = {t: constraint.min_tokens(after) for t, after in moves if after is not None}
        for budget in range(1, 14):
            assert allowed(constraint, state, budget) == {t for t, rest in needed.items() if rest < budget}


@pytest.mark.parametrize("low", [2, 8, 9, 10, 13, 30])
def test_some_token_lowers_the_tokens_left_where_a_string_has_a_least_length(low: int) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": low}}, "required": ["a"]}
    constraint = COMPILER.compile(JsonSchema(schema))
    state = constraint.advance_bytes(constraint.start(), b'{"a":')
    assert state is not None
    while left := constraint.min_tokens(state):
        moves = map(constraint.advance, [state] * EOS, range(EOS))
        after = min((after for after in moves if after is not None), key=constraint.min_tokens)
        assert constraint.min_tokens(after) < left and allowed(constraint, state, left)
        state = after
