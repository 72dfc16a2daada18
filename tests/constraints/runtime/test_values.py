"""Which values are open behind each byte, against the spans of the values in the text as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, JsonSchema, Reasoning, Regex, Tools, Vocabulary
from maskwright.constraints.runtime.front_end import values_of
from maskwright.constraints.runtime.values import VALUE_ENDS, JsonValues, SegmentedValues, ending_tokens

VOCABULARY = Vocabulary([None, *(bytes([byte]) for byte in range(256)), b'",', b'"}', b"ab", b"1]"], eos_token_ids=[0])
COMPILER = Compiler(VOCABULARY)
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}}, "additionalProperties": False}
TOOL = {"name": "look", "parameters": {**CITY, "required": ["city", "days"]}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


def written(value: Any, path: str, at: int, gap: str) -> tuple[str, list[tuple[int, int, str, str]]]:
    """The text of a value and the spans (start, end, kind, path) of all values and keys in it, the outermost first."""
    if isinstance(value, dict | list):
        kind, first, last = ("object", "{", "}") if isinstance(value, dict) else ("array", "[", "]")
        text, spans = first, []
        for number, where in enumerate(value if kind == "object" else range(len(value))):
            text += f"{gap},{gap}" if number else gap
            if kind == "object":
                key = json.dumps(where)
                spans.append((at + len(text), at + len(text + key), "key", path))
                text += f"{key}{gap}:{gap}"
            step = str(where).replace("~", "~0").replace("/", "~1")
            inner, of_inner = written(value[where], f"{path}/{step}", at + len(text), gap)
            text, spans = text + inner, spans + of_inner
        text += gap + last
        return text, [(at, at + len(text), kind, path), *spans]
    text = json.dumps(value)
    return text, [(at, at + len(text), "string" if isinstance(value, str) else "scalar", path)]


@settings(deadline=None, max_examples=150)
@given(JSON, st.sampled_from(["", " ", "\n\t"]), st.data())
def test_the_values_that_have_begun_and_not_ended_are_open(value: Any, gap: str, data: st.DataObject) -> None:
    text, spans = written(value, "#", 0, gap)
    values, read = JsonValues(), 0
    while read < len(text):
        size = data.draw(st.integers(1, len(text) - read))
        fork = values.fork()
        values.read(text[read : read + size].encode())
        read += size
        open_now = [span for span in spans if span[0] < read and (read <= span[1] if span[2] == "scalar" else read < span[1])]
        assert [(each.start, each.kind, each.path) for each in values.open] == [(span[0], *span[2:]) for span in open_now]
        fork.read(text[read - size : read].encode())
        assert fork.open == values.open


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=40))
def test_a_text_that_is_no_json_does_no_harm(data: bytes) -> None:
    values = JsonValues()
    values.read(data)
    starts = [each.start for each in values.open]
    assert starts == sorted(set(starts))


@pytest.mark.parametrize("kind", VALUE_ENDS)
def test_the_tokens_that_may_end_a_value(kind: Any) -> None:
    row = ending_tokens(VOCABULARY, kind)
    has = [bool(row[i // 32] >> i % 32 & 1) for i in range(VOCABULARY.size)]
    assert has == [token is not None and any(byte in VALUE_ENDS[kind] for byte in token) for token in VOCABULARY.spellings]


def paths_read(source: Any, text: str) -> list[tuple[str, ...]]:
    """The paths of the open values behind each byte, without repetitions."""
    values = values_of(COMPILER.compile(source))
    assert isinstance(values, SegmentedValues)
    seen: list[tuple[str, ...]] = []
    for byte in text.encode():
        values.read(bytes([byte]))
        now = tuple(f"{each.kind} {each.path}" for each in values.open)
        seen += [now] if not seen or seen[-1] != now else []
    return seen


def test_calls_have_values_and_the_text_around_them_has_none() -> None:
    text = 'No {"a": [1. <tool_call>\n{"name": "look", "arguments": {"city":"Oslo","days":[7]}}\n</tool_call>'
    assert paths_read(Tools([TOOL], style="hermes", choice="auto"), text) == [
        (),
        ("object look#",),
        ("object look#", "key look#"),
        ("object look#",),
        ("object look#", "string look#/city"),
        ("object look#",),
        ("object look#", "key look#"),
        ("object look#",),
        ("object look#", "array look#/days"),
        ("object look#", "array look#/days", "scalar look#/days/0"),
        ("object look#",),
        (),
    ]


def test_arguments_that_are_written_one_by_one_are_values_themselves() -> None:
    text = "<tool_call>\n<function=look>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n[7]\n</parameter>\n</function>\n</tool_call>"
    seen = paths_read(Tools([TOOL], style="qwen3-coder", choice="required"), text)
    assert [now for now in seen if now] == [("text look#/city",), ("array look#/days",), ("array look#/days", "scalar look#/days/0")]


@pytest.mark.parametrize(
    "source",
    [
        Reasoning(JsonSchema(CITY)),
        Reasoning(JsonSchema(CITY), max_tokens=30),
        Tools([TOOL], choice="auto", answer=JsonSchema(CITY)),
    ],
)
def test_an_answer_that_is_json_has_values_and_reasoning_has_none(source: Any) -> None:
    thought = "<think>\"[1 {</think>" if isinstance(source, Reasoning) else ""
    seen = paths_read(source, thought + '{"city":"Oslo"}')
    assert [now for now in seen if now] == [
        ("object #",), ("object #", "key #"), ("object #",), ("object #", "string #/city"), ("object #",),
    ]  # fmt: skip


def test_what_has_values(tmp_path: Any) -> None:
    spaced = JsonSchema(CITY, whitespace=r"[ \n]?")
    for source in (JsonSchema(CITY), JsonSchema(CITY, whitespace="flexible"), spaced):
        assert isinstance(values_of(COMPILER.compile(source)), JsonValues)
    for source in (Regex("a+"), Reasoning(Regex("a+")), JsonSchema(CITY, whitespace=r"(/\*c\*/)?")):
        assert values_of(COMPILER.compile(source)) is None
    for source, kind in ((JsonSchema(CITY), JsonValues), (Tools([TOOL]), SegmentedValues), (Regex("a+"), type(None))):
        COMPILER.compile(source).save(tmp_path / "saved")
        loaded = COMPILER.load(tmp_path / "saved")
        assert loaded.source is None and isinstance(values_of(loaded), kind)
