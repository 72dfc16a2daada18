"""Tools over HTTP in every style that models write calls in: choices are kept, arguments satisfy their schema, streams say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest

from maskwright import LLM
from maskwright.constraints.front_ends.tags.styles import STYLES
from maskwright.server.settings import ServerSettings

from .serving import served

CHAT = "/v1/chat/completions"
SCHEMAS: dict[str, Any] = {
    "find": {
        "type": "object",
        "properties": {"kind": {"enum": ["a b", "<c>"]}, "limit": {"type": "integer", "minimum": 1, "maximum": 20}},
        "required": ["kind", "limit"],
        "additionalProperties": False,
    },
    "halt": {"type": "object", "properties": {"now": {"type": "boolean"}}, "required": ["now"], "additionalProperties": False},
}
TOOLS: Any = [{"type": "function", "function": {"name": name, "strict": True, "parameters": schema}} for name, schema in SCHEMAS.items()]
HALT: Any = {"type": "function", "function": {"name": "halt"}}
ASK: Any = {"messages": [{"role": "user", "content": "hello"}], "tools": TOOLS, "max_tokens": 160, "temperature": 0}


@pytest.fixture(scope="module", params=["auto", *STYLES])
def styled(request: pytest.FixtureRequest, llm: LLM) -> Iterator[httpx.Client]:
    """A server whose model writes calls in any of the styles."""
    with served(llm, ServerSettings(tool_style=request.param)) as running, running.http() as connected:
        yield connected


@pytest.fixture(scope="module", params=["auto", "hermes"])
def spoken(request: pytest.FixtureRequest, llm: LLM) -> Iterator[httpx.Client]:
    """In one of two styles: which tools may be called does not depend on it."""
    with served(llm, ServerSettings(tool_style=request.param)) as running, running.http() as connected:
        yield connected


def calls_of(http: httpx.Client, **more: Any) -> list[tuple[str, Any]]:
    """The calls of a reply, the same whole and streamed, valid by their schemas."""
    answer = http.post(CHAT, json={**ASK, **more})
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in choice["message"].get("tool_calls") or ()]
    content, streamed, reason = "", list[list[str]](), None
    with http.stream("POST", CHAT, json={**ASK, **more, "stream": True}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                (part,) = json.loads(line[6:])["choices"]
                content += part["delta"].get("content") or ""
                reason = part["finish_reason"] or reason
                for call in part["delta"].get("tool_calls", ()):
                    if "id" in call:
                        assert call["index"] == len(streamed)
                        streamed.append([call["function"]["name"], ""])
                    streamed[call["index"]][1] += call["function"]["arguments"]
    assert [tuple(call) for call in streamed] == calls
    assert content == (choice["message"]["content"] or "") and reason == choice["finish_reason"]
    assert (reason == "tool_calls") == bool(calls)
    for name, arguments in calls:
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])
    return [(name, json.loads(arguments)) for name, arguments in calls]


def test_required_is_at_least_one_call(styled: httpx.Client) -> None:
    assert calls_of(styled, tool_choice="required")


def test_without_parallel_calls_there_is_one(styled: httpx.Client) -> None:
    assert len(calls_of(styled, tool_choice="required", parallel_tool_calls=False)) == 1


def test_a_named_tool_is_called_once(spoken: httpx.Client) -> None:
    for choice in (HALT, {"type": "function", "name": "halt"}):
        ((name, _),) = calls_of(spoken, tool_choice=choice)
        assert name == "halt"


def test_only_allowed_tools_are_called(spoken: httpx.Client) -> None:
    nested = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [HALT]}}
    flat = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "halt"}]}
    for choice in (nested, flat):
        assert {name for name, _ in calls_of(spoken, tool_choice=choice)} == {"halt"}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [HALT]}}
    assert {name for name, _ in calls_of(spoken, tool_choice=allowed, max_tokens=40)} <= {"halt"}


def test_none_is_text(spoken: httpx.Client) -> None:
    assert calls_of(spoken, tool_choice="none", max_tokens=12) == []


def test_auto_is_either(styled: httpx.Client) -> None:
    calls_of(styled, tool_choice="auto", temperature=1.2, seed=3)
