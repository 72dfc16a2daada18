"""However a reply is cut into the engine's events, its stream joins to the whole reply, for every style of tool calls and endpoint."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Tools, Vocabulary
from maskwright.constraints.front_ends.tags.styles import STYLES
from maskwright.engine.requests.output import Event, RequestOutput, TokenRecord
from maskwright.server.anthropic_blocks import BlockWriter
from maskwright.server.deltas import CallDelta, CallStart, ContentDelta, ThoughtDelta
from maskwright.server.reasoning import reasoned
from maskwright.server.replies import ReplyParts, ReplyReader
from maskwright.server.requested_tools import ONE_OBJECT
from maskwright.server.response_items import ItemWriter

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
FIND = {
    "name": "find",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": False,
    },
}
STOP = {"name": "stop", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
FIRST, SECOND, NONE = ("find", {"text": 'a <b> "ü😀" }', "limit": 3}), ("find", {"text": "x"}), ("stop", {})
F, S = (json.dumps(call[1], ensure_ascii=False) for call in (FIRST, SECOND))

# style: what a model of that style wrote, the text for the reader, what it thought, and its calls
RECORDED: dict[str, list[tuple[str, str, str, list[Any]]]] = {
    "one object": [
        ('{"name":"find","arguments":{"text":"x"}}', "", "", [SECOND]),
        ("Grüße { no call }", "Grüße { no call }", "", []),
        ("", "", "", []),
    ],
    "hermes": [
        (
            f'Let me <look>.<tool_call>\n{{"name": "find", "arguments": {F}}}\n</tool_call>\n'
            '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>',
            "Let me <look>.",
            "",
            [FIRST, NONE],
        ),
        ("a <tool_", "a <tool_", "", []),
    ],
    "qwen3-coder": [
        (
            "Now.<tool_call>\n<function=find>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>\n"
            "<tool_call>\n<function=stop>\n</function>\n</tool_call>",
            "Now.",
            "",
            [SECOND, NONE],
        ),
    ],
    "llama3-json": [(f'{{"name": "find", "parameters": {F}}}; {{"name": "stop", "parameters": {{}}}}', "", "", [FIRST, NONE]), ("3 < 4", "3 < 4", "", [])],
    "llama-pythonic": [('[find(text="a", limit=2), stop()]', "", "", [("find", {"text": "a", "limit": 2}), NONE]), ("No [call].", "No [call].", "", [])],
    "mistral": [(f'Yes.[TOOL_CALLS][{{"name": "find", "arguments": {F}}}, {{"name": "stop", "arguments": {{}}}}]', "Yes.", "", [FIRST, NONE])],
    "mistral-v11": [(f"Yes.[TOOL_CALLS]find[ARGS]{F}[TOOL_CALLS]stop[ARGS]{{}}", "Yes.", "", [FIRST, NONE]), ("[TOOL_", "[TOOL_", "", [])],
    "deepseek-v3": [
        (
            f"Ja.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{F}\n```<｜tool▁call▁end｜>\n"
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "Ja.",
            "",
            [FIRST, NONE],
        ),
    ],
    "deepseek-v3.1": [
        (
            f"Ja.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{F}<｜tool▁call▁end｜>"
            "<｜tool▁call▁begin｜>stop<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "Ja.",
            "",
            [FIRST, NONE],
        ),
        ("Ja <｜tool", "Ja <｜tool", "", []),
    ],
    "harmony": [
        (
            "<|channel|>analysis<|message|>Hm < hm?<|end|><|start|>assistant"
            f"<|channel|>commentary to=functions.find <|constrain|>json<|message|>{F}<|call|>",
            "",
            "Hm < hm?",
            [FIRST],
        ),
        ("<|channel|>final<|message|>It is <b>3</b>.", "It is <b>3</b>.", "", []),
    ],
    "thought": [
        ("<think>Hm < hm?</think>\n\nIt is 3 < 4.", "It is 3 < 4.", "Hm < hm?", []),
        (f'<think>ß</think>\n\n<tool_call>\n{{"name": "find", "arguments": {S}}}\n</tool_call>', "", "ß", [SECOND]),
        ("It is < 3 <th", "It is < 3 <th", "", []),
    ],
    "thought, open": [("Hm < hm?</think>It is <b>3</b>.", "It is <b>3</b>.", "Hm < hm?", []), ("</think>", "", "", [])],
}
CASES = [(style, number) for style, replies in RECORDED.items() for number in range(len(replies))]


def test_every_style_is_recorded() -> None:
    assert RECORDED.keys() >= STYLES.keys()


@cache
def source_of(style: str) -> tuple[Any, Any]:
    spoken: Any = {"one object": ONE_OBJECT, "thought": "hermes", "thought, open": "hermes"}.get(style, style)
    source: Any = Tools([FIND, STOP], style=spoken, parallel=spoken is not ONE_OBJECT)
    if style.startswith("thought"):
        source = reasoned(source, is_open="open" in style)
    return source, COMPILER.compile(source)


def events_of(text: str, cuts: list[int]) -> list[Event]:
    """The engine's events for a reply whose tokens are bytes, and which ends with the last of them or after it."""
    data = text.encode()
    records = [TokenRecord(byte, -0.5, 1.0, 2) for byte in data]
    output = RequestOutput(0, 1, tuple(data), text, "stop", False, False, tuple(records))
    places = [0, *cuts, len(data)]
    events = [Event(0, tuple(records[start:end]), "") for start, end in pairwise(places)]
    return [*events[:-1], Event(0, events[-1].tokens, "", output)]


def of_reader(style: str, events: list[Event]) -> tuple[str, str, list[Any]]:
    reader, parts = ReplyReader(*source_of(style)), ReplyParts()
    for event in events:
        for delta in reader.read(event):
            assert delta.text if isinstance(delta, ContentDelta | ThoughtDelta | CallDelta) else delta.name
            parts.add(delta)
    return parts.content, parts.reasoning, [(call.name, json.loads(call.arguments)) for call in parts.calls]


def of_blocks(style: str, events: list[Event]) -> tuple[str, str, list[Any]]:
    """From the events of Anthropic's stream alone, which must say what the finished blocks say."""
    reader, writer = ReplyReader(*source_of(style)), BlockWriter()
    told = [each for event in events for delta in reader.read(event) for each in writer.take(delta)] + writer.finish()
    blocks = list[dict[str, Any]]()
    for event in told:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append({**event["content_block"], "partial": ""})
        elif event["type"] == "content_block_delta":
            delta = {name: text for name, text in event["delta"].items() if name != "type"}
            for name, text in delta.items():
                blocks[event["index"]]["partial" if name == "partial_json" else name] += text
    for block in blocks:
        partial = block.pop("partial")
        if block["type"] == "tool_use":
            block["input"] = json.loads(partial)
    assert blocks == writer.blocks and len(told) - sum("delta" in event for event in told) == 2 * len(blocks)
    texts = {kind: "".join(block[kind] for block in blocks if block["type"] == kind) for kind in ("text", "thinking")}
    return texts["text"], texts["thinking"], [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]


def of_items(style: str, events: list[Event]) -> tuple[str, str, list[Any]]:
    """From the typed deltas of a response, which must say what the finished items say."""
    source, constraint = source_of(style)
    plan: Any = SimpleNamespace(choice=SimpleNamespace(source=source), constraint=constraint, requests=[SimpleNamespace(ending=None, begun=b"")])
    writer = ItemWriter("resp_1", plan)
    told = [each for event in events for each in writer.read(event)] + writer.finish()

    def joined(kind: str) -> dict[int, str]:
        found = dict[int, str]()
        for event in told:
            if event["type"] == kind:
                found[event["output_index"]] = found.get(event["output_index"], "") + event["delta"]
        return found

    texts, thoughts = joined("response.output_text.delta"), joined("response.reasoning_text.delta")
    arguments = joined("response.function_call_arguments.delta")
    for index, item in enumerate(writer.items):
        whole = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
        assert whole == (texts | thoughts | arguments).get(index, "") and item["status"] == "completed"
    names = {event["output_index"]: event["item"]["name"] for event in told if event["type"].endswith("item.added") and "name" in event["item"]}
    return "".join(texts.values()), "".join(thoughts.values()), [(names[index], json.loads(text)) for index, text in arguments.items()]


@pytest.mark.parametrize(("style", "number"), CASES)
def test_every_cut_in_two(style: str, number: int) -> None:
    text, *expected = RECORDED[style][number]
    size = len(text.encode())
    for cuts in ([], *([at] for at in range(size + 1)), list(range(size))):
        assert of_reader(style, events_of(text, cuts)) == tuple(expected)


@pytest.mark.parametrize("read", [of_reader, of_blocks, of_items])
@pytest.mark.parametrize(("style", "number"), CASES)
@given(cuts=st.lists(st.floats(0, 1), max_size=12))
def test_any_cuts(style: str, number: int, read: Any, cuts: list[float]) -> None:
    text, *expected = RECORDED[style][number]
    size = len(text.encode())
    assert read(style, events_of(text, sorted(int(cut * size) for cut in cuts))) == tuple(expected)


@pytest.mark.parametrize("style", [style for style in RECORDED if style != "thought, open"])
def test_nothing_is_late(style: str) -> None:
    """Of text only what may still become a mark is held back, and a call is told as soon as its name is certain."""
    text = "It is 3. Or <4"
    if style == "harmony":
        text = "<|channel|>final<|message|>" + text
    reader, told = ReplyReader(*source_of(style)), 0
    for number, event in enumerate(events_of(text, list(range(1, len(text)))), 1):
        told += sum(len(delta.text) for delta in reader.read(event) if isinstance(delta, ContentDelta))
        if number < len(text) and "<" not in text[number - 2 : number] and number > text.index("I") + 1:
            assert told == number - text.index("I")
    assert told == len(text) - text.index("I")
    for recorded, _, _, calls in RECORDED[style]:
        if calls:
            reader, data = ReplyReader(*source_of(style)), recorded.encode()
            begun = next(
                number
                for number, event in enumerate(events_of(recorded, list(range(1, len(data)))), 1)
                if any(isinstance(delta, CallStart) for delta in reader.read(event))
            )
            assert begun <= data.index(calls[0][0].encode()) + 50 and begun < len(data)
