"""The rules of three interfaces' streams, as the readers of their clients rely on them. A reader here takes a whole stream to pieces
and fails where a rule is broken; what it gives is what the stream has said.

Sources: the references of OpenAI's chat completions and responses and of Anthropic's messages, and the stream readers of their
official clients.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Said:
    """What one output has said."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)  # (name, arguments)
    ending: str | None = None
    usage: tuple[int, int] | None = None  # tokens of prompt and output
    error: str | None = None  # its code


def events_of(stream: bytes) -> Iterator[tuple[str | None, Any]]:
    """(name, data) of server-sent events, as they are on the wire: "event" before "data", a blank line behind, and no others."""
    assert stream.endswith(b"\n\n")
    for block in stream.decode().removesuffix("\n\n").split("\n\n"):
        *named, line = [each for each in block.split("\n") if not each.startswith(":")] or [""]
        assert len(named) <= 1 and all(each.startswith("event: ") for each in named), block
        if line:
            assert line.startswith("data: "), block
            data = line.removeprefix("data: ")
            yield (named[0].removeprefix("event: ") if named else None), (data if data == "[DONE]" else json.loads(data))


def read_chat(stream: bytes, *, tells_usage: bool = False) -> list[Said]:
    """One for each output, by its index."""
    events = [data for name, data in events_of(stream) if name is None]
    outputs: dict[int, Said] = {}
    parts: dict[int, list[dict[str, str]]] = {}
    if isinstance(events[-1], dict) and "error" in events[-1]:
        error = events.pop()["error"]
        assert error["message"] and error["type"], "clients raise both"
    else:
        assert events.pop() == "[DONE]"
        error = None
    heads = [{name: chunk[name] for name in ("id", "object", "created", "model")} for chunk in events]
    assert all(head == heads[0] for head in heads) and heads[0]["object"] == "chat.completion.chunk"
    usage = events.pop()["usage"] if tells_usage and error is None else None
    for chunk in events:
        assert chunk.get("usage") is None and ("usage" in chunk) == tells_usage
        (choice,) = chunk["choices"]  # clients read the first one
        index, delta = choice["index"], choice["delta"]
        is_new = index not in outputs
        said, calls = outputs.setdefault(index, Said()), parts.setdefault(index, [])
        assert said.ending is None, "behind its end an output says nothing"
        assert ("role" in delta) == is_new and delta.get("role", "assistant") == "assistant"
        told = {name: value for name, value in delta.items() if name != "role" and value not in (None, "")}
        assert len(told) == (not is_new and choice["finish_reason"] is None), f"one piece a chunk, none of them empty: {delta}"
        said.content += delta.get("content") or ""
        said.reasoning += delta.get("reasoning_content") or ""
        for part in delta.get("tool_calls", ()):
            function = part["function"]
            if part["index"] == len(calls):
                assert part["id"] and part["type"] == "function" and function["name"] and function["arguments"] == ""
                calls.append({"id": part["id"], "name": function["name"], "arguments": ""})
            else:  # only the last call grows, and what was told of it is not told again
                assert part["index"] == len(calls) - 1 and part.keys() == {"index", "function"} and function.keys() == {"arguments"}
                assert function["arguments"]
            calls[-1]["arguments"] += function["arguments"]
        said.ending = choice["finish_reason"]
    for index, said in outputs.items():
        assert len({call["id"] for call in parts[index]}) == len(parts[index])
        said.calls = [(call["name"], call["arguments"]) for call in parts[index]]
        assert error or said.ending
        said.usage = (usage["prompt_tokens"], usage["completion_tokens"]) if usage else None
        said.error = error["code"] if error else None
    assert sorted(outputs) == list(range(len(outputs)))
    return [outputs[index] for index in sorted(outputs)]


MESSAGE_DELTAS = {"text": {"text_delta": "text"}, "tool_use": {"input_json_delta": "partial_json"}} | {
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"}
}


def read_messages(stream: bytes) -> Said:
    events = list(events_of(stream))
    assert all(name == event["type"] for name, event in events)
    (_, first), *rest = events
    message, said = first["message"], Said()
    assert first["type"] == "message_start" and message["content"] == [] and message["role"] == "assistant"
    assert message["stop_reason"] is None and message["stop_sequence"] is None and message["usage"]["output_tokens"] == 0
    blocks: list[dict[str, Any]] = []
    is_open = False
    for _, event in rest:
        kind = event["type"]
        assert (said.error is None and said.usage is None) or kind == "message_stop", "the end is the end"
        if kind == "content_block_start":
            assert not is_open and event["index"] == len(blocks)
            blocks.append({**event["content_block"], "partial_json": ""})
            is_open = True
        elif kind == "content_block_delta":
            block, delta = blocks[-1], event["delta"]
            member = MESSAGE_DELTAS[block["type"]][delta["type"]]
            assert is_open and event["index"] == len(blocks) - 1 and delta[member] and not block.get("signature")
            block[member] += delta[member]
        elif kind == "content_block_stop":
            assert is_open and event["index"] == len(blocks) - 1
            is_open = False
        elif kind == "message_delta":
            assert not is_open
            said.ending, usage = event["delta"]["stop_reason"], event["usage"]
            assert said.ending and "stop_sequence" in event["delta"]
            said.usage = usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]
        elif kind == "error":
            said.error = event["error"]["code"]
            assert event["error"]["type"] and event["error"]["message"]
        else:
            assert kind == "message_stop" and said.usage is not None
    assert said.error or rest[-1][1]["type"] == "message_stop"
    for block in blocks:
        assert block["type"] != "thinking" or block["signature"] or said.error, "clients send it back"
    said.content = "".join(block["text"] for block in blocks if block["type"] == "text")
    said.reasoning = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    uses = [block for block in blocks if block["type"] == "tool_use"]
    assert all(block["input"] == {} and block["id"].startswith("toolu_") for block in uses) and len({block["id"] for block in uses}) == len(uses)
    said.calls = [(block["name"], block["partial_json"]) for block in uses]
    return said


GROWING = {  # kind of item: (events of its pieces, of its whole, the member of both)
    "message": ("response.output_text.delta", "response.output_text.done", "text"),
    "reasoning": ("response.reasoning_text.delta", "response.reasoning_text.done", "text"),
    "function_call": ("response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"),
}
PART = {"message": "output_text", "reasoning": "reasoning_text"}
ENDS = ("response.completed", "response.incomplete", "response.failed")


def read_responses(stream: bytes) -> Said:
    events = list(events_of(stream))
    assert all(name == event["type"] for name, event in events)
    assert [event["sequence_number"] for _, event in events] == list(range(len(events)))
    assert [event["type"] for _, event in events[:2]] == ["response.created", "response.in_progress"]
    lifecycle = [event for _, event in events if "response" in event]
    last = lifecycle[-1]
    assert last is events[-1][1] and last["type"] in ENDS and len(lifecycle) == 3
    assert {event["response"]["id"] for event in lifecycle} == {last["response"]["id"]}
    assert all(event["response"]["status"] == "in_progress" and event["response"]["output"] == [] for event in lifecycle[:-1])
    has_failed, items = last["type"] == "response.failed", list[Any]()
    if has_failed:  # clients raise the event before it
        _, raised = events.pop(-2)
        assert raised["type"] == "error" and raised["error"]["type"] and "param" in raised
        for told in (raised, raised["error"], last["response"]["error"]):
            assert told["code"] and (told["code"], told["message"]) == (raised["code"], raised["message"])
    texts: list[str] = []
    awaited: list[str] = []  # of the open item, the events that have to come
    for _, event in events[2:-1]:
        kind = event["type"]
        if kind == "response.output_item.added":
            item = event["item"]
            assert not awaited and event["output_index"] == len(items) and item["status"] == "in_progress" and item["id"]
            items.append(item)
            texts.append("")
            has_parts = item["type"] in PART
            awaited = ["response.content_part.added"] * has_parts + [GROWING[item["type"]][1]]
            awaited += ["response.content_part.done"] * has_parts + ["response.output_item.done"]
            continue
        item, text, (piece, whole, member) = items[-1], texts[-1], GROWING[items[-1]["type"]]
        assert event["output_index"] == len(items) - 1
        if kind == piece:
            assert awaited[0] == whole and event["item_id"] == item["id"] and event["delta"]
            texts[-1] += event["delta"]
            continue
        assert kind == awaited.pop(0)
        if kind == "response.output_item.done":
            done = event["item"]
            assert {**done, "status": None, "content": None} == {**item, "status": None, "content": None} or member in done
            assert text == (done[member] if member in done else done["content"][0]["text"])
            is_last = event is events[-2][1]
            assert done["status"] == ("incomplete" if is_last and last["type"] == "response.incomplete" else "completed")
            items[-1] = done
        else:
            assert event["item_id"] == item["id"]
            if kind == whole:
                assert event[member] == text
            elif kind == "response.content_part.added":
                assert event["part"]["type"] == PART[item["type"]] and event["part"]["text"] == "" and event["content_index"] == 0
            else:
                assert event["part"]["text"] == text
    assert has_failed or (not awaited and items == last["response"]["output"])
    kinds = [item["type"] for item in items]
    told = {kind: "".join(text for each, text in zip(kinds, texts, strict=True) if each == kind) for kind in PART}
    response = last["response"]
    said = Said(told["message"], told["reasoning"])
    said.calls = [(item["name"], text) for item, text in zip(items, texts, strict=True) if item["type"] == "function_call"]
    if has_failed:
        said.error = response["error"]["code"]
        statuses = [item["status"] for item in response["output"]]
        assert response["error"]["message"] and statuses == ["completed"] * len(items[: -1 if awaited else None]) + ["incomplete"] * bool(awaited)
    else:
        assert (response["incomplete_details"] is None) == (response["status"] == "completed")
        said.ending, said.usage = response["status"], (response["usage"]["input_tokens"], response["usage"]["output_tokens"])
    return said
