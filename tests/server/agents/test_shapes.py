"""Agents connect: what they send is answered, whole and streamed, and what had no effect is named in a header."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import Compiler, Lark
from maskwright.server.custom_calls import InputReader
from maskwright.server.settings import ServerSettings

from ..serving import served
from .shapes import CODEX, PATCH, SHAPES, TEXT, function

IGNORED = "x-maskwright-ignored"
TOOL = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": PATCH}}
FIND = {"type": "function", **function("find", q={**TEXT, "maxLength": 8})}
FEW = {"max_tokens": 24, "max_output_tokens": 24}
QUESTION = [{"role": "user", "content": "delete a"}]


@pytest.fixture(scope="module", params=["auto", "hermes"])
def http(request: pytest.FixtureRequest, llm: LLM) -> Iterator[httpx.Client]:
    with served(llm, ServerSettings(tool_style=request.param)) as running, running.http() as connected:
        yield connected


def short(path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body with few tokens to generate, and short enough for the model of these tests."""
    name = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    return {**body, "model": "embedded", name: FEW[name], **more}


@pytest.mark.parametrize("agent", SHAPES)
def test_an_agents_request_is_answered(http: httpx.Client, agent: str) -> None:
    path, body = SHAPES[agent]
    more = {"tool_choice": {"type": "none"} if "messages?" in path else "none"} if body.get("tools") else {}
    asked = short(path, body, **more)
    answer = http.post(path, json=asked)
    assert answer.status_code == 200, answer.text
    assert not body.get("stream") or "error" not in answer.text.split("data:")[-2]
    whole = http.post(path, json={name: value for name, value in asked.items() if name not in ("stream", "stream_options")})
    assert whole.status_code == 200, whole.text


@pytest.mark.parametrize("agent", ["codex", "codex, recorded", "claude code", "openhands", "continue, chat"])
def test_its_tools_can_be_called(http: httpx.Client, agent: str) -> None:
    path, body = SHAPES[agent]
    choice = {"type": "any"} if "messages?" in path else "required"
    name = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    asked = {**short(path, body, tool_choice=choice), name: 300, "stream": False, "temperature": 0}
    asked.pop("stream_options", None)
    answer = http.post(path, json=asked)
    assert answer.status_code == 200, answer.text
    assert "call" in answer.text or "tool_use" in answer.text


def test_codex_is_told_what_was_passed_over(http: httpx.Client) -> None:
    answer = http.post("/v1/responses", json=short("/v1/responses", CODEX, tool_choice="none"))
    said = answer.headers[IGNORED]
    for place in ("tools[3] (web_search)", "tools[4] (image_generation)", "tools[6] (local_shell)", "input[12] (web_search_call)"):
        assert place in said
    assert "tools[5]" not in said  # a namespace of functions
    plain = http.post("/v1/responses", json={"input": "hello", "max_output_tokens": 2})
    assert IGNORED not in plain.headers


DOCS = {"type": "namespace", "name": "mcp__docs", "description": "Docs", "tools": [FIND, {"type": "web_search"}]}


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "find", "namespace": "mcp__docs"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "namespace", "name": "mcp__docs"}]},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "find", "namespace": "mcp__docs"}]},
    ],
)
def test_a_tool_in_a_namespace_is_called_by_its_two_names(http: httpx.Client, choice: Any) -> None:
    asked = {"input": QUESTION, "tools": [FIND, DOCS], "tool_choice": choice, "max_output_tokens": 200, "temperature": 0, "stream": True}
    answer = http.post("/v1/responses", json=asked)
    assert answer.status_code == 200 and answer.headers[IGNORED] == "tools[1].tools[1] (web_search)"
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    told = [event["item"] for event in events if event["type"] in ("response.output_item.added", "response.output_item.done")]
    told.append(events[-1]["response"]["output"][-1])
    assert {(item["name"], item["namespace"]) for item in told} == {("find", "mcp__docs")}
    assert set(json.loads(told[-1]["arguments"])) == {"q"}
    back = [*QUESTION, told[-1], {"type": "function_call_output", "call_id": told[-1]["call_id"], "output": "found"}]
    going_on = http.post("/v1/responses", json={**asked, "input": back, "tool_choice": "none", "stream": False, "max_output_tokens": 4})
    assert going_on.status_code == 200 and going_on.json()["tools"] == asked["tools"]


@pytest.mark.parametrize(
    ("tools", "place"),
    [
        ([{"type": "function", **function("a__b")}, {"type": "namespace", "name": "a", "tools": [{"type": "function", **function("b")}]}], "tools[1].tools[0].name"),
        ([{"type": "namespace", "name": "a", "tools": [{"type": "function", **function("b")}] * 2}], "tools[0].tools[1].name"),
        ([{"type": "namespace", "tools": []}], "tools[0].name"),
        ([{"type": "namespace", "name": "a", "tools": ["b"]}], "tools[0].tools"),
    ],
)
def test_a_namespace_that_is_none_is_refused_by_its_place(http: httpx.Client, tools: Any, place: str) -> None:
    error = http.post("/v1/responses", json={"input": "x", "tools": tools, "max_output_tokens": 4})
    assert error.status_code == 400 and error.json()["error"]["param"] == place


@pytest.mark.parametrize("stream", [False, True])
def test_a_custom_tool_is_called_with_a_text_of_its_grammar(http: httpx.Client, llm: LLM, stream: bool) -> None:
    choice = {"type": "custom", "name": "patch"}
    asked = {"input": QUESTION, "tools": [TOOL], "tool_choice": choice, "max_output_tokens": 200, "temperature": 0, "stream": stream}
    answer = http.post("/v1/responses", json=asked)
    assert answer.status_code == 200, answer.text
    if stream:
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        deltas = "".join(each["delta"] for each in events if each["type"] == "response.custom_tool_call_input.delta")
        (done,) = [each["input"] for each in events if each["type"] == "response.custom_tool_call_input.done"]
        item = events[-1]["response"]["output"][-1]
        assert deltas == done == item["input"]
    else:
        item = answer.json()["output"][-1]
    assert (item["type"], item["name"]) == ("custom_tool_call", "patch") and item["call_id"]
    assert Compiler(llm.vocabulary).compile(Lark(PATCH)).accepts(item["input"])
    back = [*QUESTION, item, {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "done"}]
    assert http.post("/v1/responses", json={"input": back, "max_output_tokens": 4}).status_code == 200


def test_a_custom_tool_in_chat_completions(http: httpx.Client) -> None:
    digits = {"type": "grammar", "grammar": {"syntax": "regex", "definition": '"\\d{3}"\n'}}
    tools = [{"type": "custom", "custom": {"name": "dial", "format": digits}}]
    asked: Any = {"messages": QUESTION, "tools": tools, "tool_choice": {"type": "custom", "custom": {"name": "dial"}}, "max_tokens": 60}
    message = http.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert call["type"] == "custom" and call["custom"]["name"] == "dial"
    text = call["custom"]["input"]
    assert text[0] == text[4] == '"' and text[1:4].isdigit() and text[5:] == "\n"
    streamed = ""
    with http.stream("POST", "/v1/chat/completions", json={**asked, "stream": True, "temperature": 0}) as lines:
        for line in lines.iter_lines():
            if line.startswith("data: {"):
                for part in json.loads(line[6:])["choices"][0]["delta"].get("tool_calls", ()):
                    streamed += part["custom"]["input"]
    assert len(streamed) == 6
    history = [*QUESTION, message, {"role": "tool", "tool_call_id": call["id"], "content": None}]
    assert http.post("/v1/chat/completions", json={"messages": history, "max_tokens": 3}).status_code == 200


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([{"role": "user", "content": 5}], "input[0].content"),
        ([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], "input[0].content[0]"),
        ([{"role": "walrus", "content": "a"}], "input[0].role"),
        (
            [
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_file"}]},
            ],
            "input[2].output[0]",
        ),
        ([{"type": "function_call", "call_id": "1", "arguments": "{}"}], "input[0].name"),
        ([{"type": "custom_tool_call", "call_id": "1", "name": "f"}], "input[0].input"),
        ([{"type": "item_reference", "id": "x"}], "input[0]"),
    ],
)
@pytest.mark.parametrize("instructions", [None, "be brief"])
def test_errors_name_the_items_of_the_client(http: httpx.Client, items: Any, param: str, instructions: str | None) -> None:
    answer = http.post("/v1/responses", json={"input": items, "instructions": instructions})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param and param in error["message"] and "messages[" not in error["message"]


@pytest.mark.parametrize("text", ["", "a", 'é"\\\n\x01😀/'])
def test_the_input_is_read_in_any_pieces(text: str) -> None:
    for written in (json.dumps({"input": text}), json.dumps({"input": text}, ensure_ascii=False, indent=1)):
        for size in (1, 2, 3, 7, 100):
            reader = InputReader()
            pieces = [reader.feed(written[i : i + size]) for i in range(0, len(written), size)]
            assert "".join(pieces) == text
