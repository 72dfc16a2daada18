"""Wrong values of keywords over HTTP: an answer, or a 400 that says what is wrong; never a 500."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from maskwright.constraints.front_ends.json_schema.documents.keyword_table import KEYWORDS

MESSAGES = [{"role": "user", "content": "Yes?"}]
FEW = {"max_tokens": 30, "temperature": 0}


def chat(schema: Any) -> dict[str, Any]:
    return {"messages": MESSAGES, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}, **FEW}


def tools(schema: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    return {"messages": MESSAGES, "tools": [tool], "tool_choice": "required", **FEW}


def completions(schema: Any) -> dict[str, Any]:
    return {"prompt": "Yes?", "guided_json": schema, **FEW}


def responses(schema: Any) -> dict[str, Any]:
    form = {"type": "json_schema", "name": "x", "schema": schema, "strict": False}
    return {"input": "Yes?", "text": {"format": form}, "max_output_tokens": 30, "temperature": 0}


def messages(schema: Any) -> dict[str, Any]:
    tool = {"name": "f", "input_schema": schema}
    return {"messages": MESSAGES, "tools": [tool], "tool_choice": {"type": "any"}, **FEW}


ENDPOINTS = {
    "/v1/chat/completions": [chat, tools], "/v1/completions": [completions], "/v1/responses": [responses], "/v1/messages": [messages],
}  # fmt: skip
WRONG: list[Any] = [None, 5, "\ud800", {"a": None}]


@pytest.mark.parametrize(("path", "body"), [(path, body) for path, bodies in ENDPOINTS.items() for body in bodies], ids=lambda x: getattr(x, "__name__", x))
def test_no_value_of_a_keyword_is_an_error_of_the_server(http: httpx.Client, path: str, body: Any) -> None:
    for number, keyword in enumerate(KEYWORDS):
        value = WRONG[number % len(WRONG)]
        schema = {"type": "object", "properties": {"a": {keyword: value}}, "maxProperties": 0}
        answer = http.post(path, content=json.dumps(body(schema)), headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400), (keyword, value, answer.text)


@pytest.mark.parametrize("keyword", ["required", "properties", "allOf", "anyOf", "enum", "items"])
@pytest.mark.parametrize(("path", "body"), [(path, body) for path, bodies in ENDPOINTS.items() for body in bodies], ids=lambda x: getattr(x, "__name__", x))
def test_null_is_as_if_the_keyword_were_not_there(http: httpx.Client, path: str, body: Any, keyword: str) -> None:
    answer = http.post(path, json=body({"type": "object", "maxProperties": 0, keyword: None}))
    assert answer.status_code == 200, answer.text
