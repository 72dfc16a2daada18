"""`escapes="any"`: every spelling of every string, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.base.utf8 import normalize
from maskwright.constraints.front_ends.json_schema.documents.values import string_text
from maskwright.constraints.front_ends.json_schema.strings.any_spelling import AnySpelling
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits

from ..json_texts import matcher

_SHORT = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\", "/": "/"}
characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('aé/"\\\n\x00\x1f\u2028\ud7ff\ue000\uffff😀\U00010000\U0010ffff')


@st.composite
def spelled(draw: st.DrawFn, text: str) -> str:
    """A JSON string for `text`, each character in one of its spellings."""
    out = ""
    for char in text:
        units = char.encode("utf-16-be").hex()
        escape = "".join("\\u" + draw(st.sampled_from([units[i : i + 4], units[i : i + 4].upper()])) for i in range(0, len(units), 4))
        ways = [escape, *(["\\" + _SHORT[char]] if char in _SHORT else []), *([] if char < " " or char in '"\\' else [char])]
        out += draw(st.sampled_from(ways))
    return f'"{out}"'


@settings(max_examples=60)
@given(st.data(), st.lists(st.tuples(characters, characters), min_size=1, max_size=3), characters)
def test_a_character_of_a_set_has_all_its_spellings(data: Any, pairs: list[tuple[str, str]], char: str) -> None:
    ranges = normalize((min(ord(a), ord(b)), max(ord(a), ord(b))) for a, b in pairs)
    grammar = Grammar()
    reference = Reference(grammar, AnySpelling(grammar, "compact", Limits()).unit(ranges))
    for one in {char, *(each for pair in pairs for each in pair)}:
        text = data.draw(spelled(one))[1:-1]
        assert reference.accepts(text.encode()) == any(low <= ord(one) <= high for low, high in ranges)


SCHEMAS: list[Any] = [
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "pattern": "^[a-f]*$"},
    {"type": "string", "not": {"pattern": "[a/]"}},
    {"enum": ["a", "ab", "a/b", "é", 'say "x"', "😀", 1, None]},
    {"not": {"enum": ["a", "ab", "é"]}},
    {"format": "date"},
]
strings = st.text(characters, max_size=4) | st.sampled_from(["ab", "abc", "abcdef", "a/b", 'say "x"', "2024-02-29", "2023-02-29"])


@settings(max_examples=80)
@given(st.data(), st.sampled_from(SCHEMAS), strings)
def test_schemas_are_about_the_string_that_is_meant(data: Any, schema: Any, text: str) -> None:
    expected = matcher(schema).accepts(string_text(text).encode())
    assert matcher(schema, escapes="any").accepts(data.draw(spelled(text)).encode()) == expected


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"properties": {"ab": {"const": "x"}}, "required": ["ab"], "additionalProperties": False},
         [r'{"\u0061b":"\u0078"}', r'{"ab":"x"}'], [r'{"\u0061":"x"}', r'{"a\u0062":"y"}', r'{"ab":"x","\u0061b":"x"}']),
        ({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
         [r'{"\u0061":1,"b":"\/"}', r'{"b":"\u0031"}'], [r'{"a":1,"\u0061":"x"}', r'{"a":1,"\u0061":1}', r'{"\u0061":"x"}']),
        ({"enum": [{"a": ["x/y"]}, ["ä"]]}, [r'{"\u0061":["x\/y"]}', r'["\u00E4"]', '["ä"]'], [r'["\u00e5"]', r'["\xe4"]']),
        ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, ['["a","b"]', '["a"]'], [r'["a","\u0061"]', '["a","a"]']),
        ({"type": "string"}, [r'"\ud83d\uDE00"', r'"\/"'], [r'"\ud83d"', r'"\ude00\ud83d"', r'"\u12"', r'"\a"', '"\n"']),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["declared", "any"])
def test_names_values_and_items(schema: Any, accepted: list[str], rejected: list[str], order: str) -> None:
    reference = matcher(schema, escapes="any", property_order=order)
    assert [text for text in accepted if not reference.accepts(text.encode())] == []
    assert [text for text in rejected if reference.accepts(text.encode())] == []


@settings(max_examples=40)
@given(st.text(characters, min_size=1, max_size=5))
def test_what_a_validator_would_read_is_what_is_listed(text: str) -> None:
    escaped = json.dumps(text)  # with \u for everything that is not ASCII
    assert matcher({"const": text}, escapes="any").accepts(escaped.encode())
    assert not matcher({"not": {"const": text}}, escapes="any").accepts(escaped.encode())
