"""However a recorded reply is cut into chunks, the same content, reasoning and calls come out."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Tools, Vocabulary
from maskwright.server.asked_tools import ONE_OBJECT
from maskwright.server.reasoning import reasoned
from maskwright.server.replies import ReplyParts, ReplyReader

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
TOOL = {
    "name": "find",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": False,
    },
}
FIRST, SECOND = {"text": 'a <b> "ü" }', "limit": 3}, {"text": "x"}
RECORDED: dict[str, tuple[Any, str, str, str, list[Any]]] = {
    "one object": (ONE_OBJECT, '{"name":"find","arguments":{"text":"x"}}', "", "", [SECOND]),
    "one object, text": (ONE_OBJECT, "Grüße { no call }", "Grüße { no call }", "", []),
    "hermes": (
        "hermes",
        'Let me <look>.<tool_call>\n{"name": "find", "arguments": ' + json.dumps(FIRST, ensure_ascii=False) + "}\n</tool_call>\n"
        '<tool_call>\n{"name": "find", "arguments": {"text": "x"}}\n</tool_call>',
        "Let me <look>.",
        "",
        [FIRST, SECOND],
    ),
    "qwen3-coder": (
        "qwen3-coder",
        "<tool_call>\n<function=find>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>",
        "",
        "",
        [SECOND],
    ),
    "llama3-json": ("llama3-json", '{"name": "find", "parameters": {"text": "x"}}', "", "", [SECOND]),
    "llama-pythonic": ("llama-pythonic", '[find(text="a", limit=2), find(text="x")]', "", "", [{"text": "a", "limit": 2}, SECOND]),
    "mistral-v11": ("mistral-v11", 'Yes.[TOOL_CALLS]find[ARGS]{"text": "x"}', "Yes.", "", [SECOND]),
    "thought": ("hermes", "<think>Hm < hm?</think>\nIt is 3 < 4.", "It is 3 < 4.", "Hm < hm?", []),
    "thought, open": ("hermes", "Hm < hm?</think>It is <b>3</b>.", "It is <b>3</b>.", "Hm < hm?", []),
    "thought, none": ("hermes", "It is < 3 <th", "It is < 3 <th", "", []),
    "thought, call": (
        "hermes",
        '<think>ß</think>\n\n<tool_call>\n{"name": "find", "arguments": {"text": "x"}}\n</tool_call>',
        "",
        "ß",
        [SECOND],
    ),
}


@cache
def constraint(name: str) -> tuple[Any, Any]:
    style = RECORDED[name][0]
    source: Any = Tools([TOOL], style=style, parallel=style is not ONE_OBJECT)
    if name.startswith("thought"):
        source = reasoned(source, is_open="open" in name)
    return source, COMPILER.compile(source)


def read(name: str, chunks: list[bytes]) -> tuple[str, str, list[tuple[str, Any]]]:
    reader, parts = ReplyReader(*constraint(name)), ReplyParts()
    for chunk in chunks:
        for delta in reader.read_text(chunk):
            parts.add(delta)
    for delta in reader.read_text(b"", is_last=True):
        parts.add(delta)
    return parts.content, parts.reasoning, [(call.name, json.loads(call.arguments)) for call in parts.calls]


def expected(name: str) -> tuple[str, str, list[tuple[str, Any]]]:
    _, _, content, reasoning, calls = RECORDED[name]
    return content, reasoning, [("find", arguments) for arguments in calls]


@pytest.mark.parametrize("name", RECORDED)
def test_every_cut_in_two(name: str) -> None:
    data = RECORDED[name][1].encode()
    for at in range(len(data) + 1):
        assert read(name, [data[:at], data[at:]]) == expected(name)
    assert read(name, [bytes([byte]) for byte in data]) == expected(name)


@pytest.mark.parametrize("name", RECORDED)
@given(cuts=st.lists(st.floats(0, 1), max_size=12))
def test_any_cuts(name: str, cuts: list[float]) -> None:
    data = RECORDED[name][1].encode()
    places = [0, *sorted(int(cut * len(data)) for cut in cuts), len(data)]
    assert read(name, [data[start:end] for start, end in pairwise(places)]) == expected(name)
