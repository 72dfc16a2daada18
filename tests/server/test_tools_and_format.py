"""Tools beside a response format over HTTP: the reply is calls or the object, on every endpoint, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest

from maskwright import LLM
from maskwright.server.settings import ServerSettings

from .serving import served

CITY = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"], "additionalProperties": False}
ANSWER = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER, "strict": True}}
FUNCTION: Any = {"name": "get_weather", "parameters": CITY, "strict": True}
ASKED: Any = {"temperature": 1.0, "seed": 1}
QUESTION: Any = [{"role": "user", "content": "What is the weather in Rome?"}]
LEADING = {"hermes": ((b"{",), (b"<",)), "harmony": ((b"<", b"f"), (b"to",)), "auto": ((b"o",), (b"n",))}  # to the object, to a call


@pytest.fixture(scope="module", params=["hermes", "harmony", "auto"])
def http(request: pytest.FixtureRequest, llm: LLM) -> Iterator[httpx.Client]:
    """A server whose model writes calls as text, as messages, or as one object."""
    with served(llm, ServerSettings(tool_style=request.param)) as running, running.http() as connected:
        yield connected


def chat(http: httpx.Client, **more: Any) -> tuple[str, list[tuple[str, str]], str]:
    """(content, calls, finish_reason) of a reply, the same whole and streamed."""
    asked = {**ASKED, "messages": QUESTION, "tools": [{"type": "function", "function": FUNCTION}], "response_format": FORMAT, **more}
    answer = http.post("/v1/chat/completions", json=asked)
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    message = choice["message"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    content, streamed, reason = "", list[list[str]](), ""
    with http.stream("POST", "/v1/chat/completions", json={**asked, "stream": True}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                (part,) = json.loads(line[6:])["choices"]
                content += part["delta"].get("content") or ""
                reason = part["finish_reason"] or reason
                for call in part["delta"].get("tool_calls", ()):
                    if "id" in call:
                        streamed.append([call["function"]["name"], ""])
                    streamed[call["index"]][1] += call["function"]["arguments"]
    assert (content, [tuple(each) for each in streamed], reason) == (message["content"] or "", calls, choice["finish_reason"])
    return content, calls, reason


def check(content: str, calls: list[tuple[str, str]]) -> None:
    assert bool(content) != bool(calls)
    if content:
        jsonschema.validate(json.loads(content), ANSWER)
    for name, arguments in calls:
        assert name == "get_weather"
        jsonschema.validate(json.loads(arguments), CITY)


@pytest.mark.parametrize("seed", range(4))
def test_auto_is_calls_or_the_object(http: httpx.Client, seed: int) -> None:
    content, calls, reason = chat(http, seed=seed, temperature=2.0)
    check(content, calls)
    assert reason == ("tool_calls" if calls else "stop")


@pytest.mark.parametrize("wants_calls", [True, False])
def test_the_model_decides(http: httpx.Client, llm: LLM, request: pytest.FixtureRequest, wants_calls: bool) -> None:
    first = LEADING[request.node.callspec.params["http"]][wants_calls]
    tokens = [token or b"" for token in llm.vocabulary.text_tokens]
    bias = {str(i): 60.0 for i, token in enumerate(tokens) if token.startswith(first) or token.lstrip(b'{" ').startswith(first)}
    content, calls, _ = chat(http, logit_bias=bias, temperature=0)
    check(content, calls)
    assert bool(calls) == wants_calls


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_required_call_is_a_call(http: httpx.Client, choice: Any) -> None:
    content, calls, reason = chat(http, tool_choice=choice)
    check(content, calls)
    assert calls and reason == "tool_calls"


def test_none_is_the_object(http: httpx.Client) -> None:
    content, calls, reason = chat(http, tool_choice="none")
    check(content, calls)
    assert content and reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_responses(http: httpx.Client, choice: str, stream: bool) -> None:
    form = {"type": "json_schema", "name": "answer", "schema": ANSWER, "strict": True}
    asked = {"input": QUESTION, "tools": [{"type": "function", **FUNCTION}], "text": {"format": form}, "tool_choice": choice, **ASKED}
    if stream:
        lines = [line for line in http.post("/v1/responses", json={**asked, "stream": True}).text.splitlines() if line.startswith("data: ")]
        response = json.loads(lines[-1][6:])["response"]
    else:
        response = http.post("/v1/responses", json=asked).json()
    assert response["status"] == "completed"
    texts = "".join(item["content"][0]["text"] for item in response["output"] if item["type"] == "message")
    calls = [(item["name"], item["arguments"]) for item in response["output"] if item["type"] == "function_call"]
    check(texts, calls)
    assert choice == "auto" or bool(calls) == (choice == "required")


@pytest.mark.parametrize("choice", ["auto", "any", "none"])
def test_messages(http: httpx.Client, choice: str) -> None:
    asked = {
        "messages": QUESTION,
        "max_tokens": 200,
        "tools": [{"name": "get_weather", "input_schema": CITY}],
        "tool_choice": {"type": choice},
        "output_config": {"format": {"type": "json_schema", "schema": ANSWER}},
        **ASKED,
    }
    answer = http.post("/v1/messages", json=asked)
    assert answer.status_code == 200, answer.text
    message = answer.json()
    texts = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    calls = [(block["name"], json.dumps(block["input"])) for block in message["content"] if block["type"] == "tool_use"]
    check(texts, calls)
    assert message["stop_reason"] == ("tool_use" if calls else "end_turn")
    assert choice == "auto" or bool(calls) == (choice == "any")


def test_what_is_wrong_is_told_at_its_place(http: httpx.Client) -> None:
    wrong = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    tools = [{"type": "function", "function": FUNCTION}]
    bad_format = {"type": "json_schema", "json_schema": {"name": "x", "schema": wrong}}
    error = http.post("/v1/chat/completions", json={"messages": QUESTION, "tools": tools, "response_format": bad_format}).json()["error"]
    assert error["param"] == "response_format.json_schema.schema" and error["path"].startswith("#/properties/a")
    bad_tool = [{"type": "function", "function": {"name": "f", "parameters": wrong}}]
    error = http.post("/v1/chat/completions", json={"messages": QUESTION, "tools": bad_tool, "response_format": FORMAT}).json()["error"]
    assert error["param"] == "tools" and error["path"].startswith("#/tools/0")
    tagged = {"type": "structural_tag", "format": {"type": "any_text"}}
    error = http.post("/v1/chat/completions", json={"messages": QUESTION, "tools": tools, "response_format": tagged}).json()["error"]
    assert error["param"] == "response_format" and "no answer beside tools" in error["message"]
