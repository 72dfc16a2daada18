"""What client libraries send is answered, with their peculiarities, or refused by the name of the part."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest

from .libraries import COUNT, LIBRARIES, MESSAGES, PERSON, REFUSED, RESPONSES, TOOL, USER, chat

IGNORED = "x-maskwright-ignored"


def short(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body with a limit, where it has none."""
    name = "max_output_tokens" if path == RESPONSES else "max_tokens"
    return body if path == COUNT or body.get(name) is not None else {**body, name: 60}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_librarys_request_is_answered(http: httpx.Client, library: str) -> None:
    path, body = LIBRARIES[library]
    answer = http.post(path, json=short(path, body))
    assert answer.status_code == 200, answer.text
    if body.get("stream"):
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        assert events and not any("failed" in str(event.get("type")) or "error" in event for event in events)
    else:
        assert said(path, answer.json()) is not None


def said(path: str, answer: Any) -> Any:
    """What a client reads first."""
    if path == COUNT:
        return answer["input_tokens"]
    if path == MESSAGES:
        return answer["content"]
    return answer["output"] if path == RESPONSES else answer["choices"][0]


@pytest.mark.parametrize("request_", REFUSED)
def test_what_cannot_be_is_refused_by_name(http: httpx.Client, request_: str) -> None:
    path, body, param = REFUSED[request_]
    answer = http.post(path, json=body)
    assert answer.status_code == 400, answer.text
    told = answer.json()
    assert told["error"]["param"] == param and told["error"]["message"]
    assert (told.get("type") == "error") == (path == MESSAGES)  # the client's own shape


def test_answers_are_those_of_the_plain_form(http: httpx.Client) -> None:
    """Peculiarities change nothing of the answer."""

    def content(**more: Any) -> Any:
        path, body = chat(USER, temperature=0, **more)
        answer = http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["message"]

    plain = content(max_tokens=12)
    assert content(max_tokens=12.0, seed=3.0, n=1.0, top_k=1.0, stop=[], extra_body={}, logprobs=False, top_logprobs=0) == plain
    assert content(max_tokens=12, tools=[TOOL], tool_choice={"type": "none"}) == plain
    form = {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}
    person = json.loads(content(max_tokens=60.0, response_format=form)["content"])
    assert set(person) == {"name", "age"}
    (call,) = content(max_tokens=60, tools=[TOOL], tool_choice="any")["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert content(max_tokens=60, tools=[TOOL], tool_choice={"type": "required"})["tool_calls"][0]["function"] == call["function"]


def test_what_anthropics_tools_did_is_passed_over_and_named(http: httpx.Client) -> None:
    path, body = LIBRARIES["claude code, tools that Anthropic runs"]
    said = http.post(path, json=body).headers[IGNORED]
    for place in ("messages[1].content[0] (server_tool_use)", "messages[1].content[1] (web_search_tool_result)"):
        assert place in said
    assert "messages[2].content[0].content[1] (tool_reference)" in said and "betas" in said


@pytest.mark.parametrize("block", ["text", "document", "search_result"])
def test_texts_of_documents_are_read(http: httpx.Client, block: str) -> None:
    text = "many words " * 20
    blocks: dict[str, Any] = {
        "text": {"type": "text", "text": text},
        "document": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}},
        "search_result": {"type": "search_result", "source": "x", "title": "y", "content": [{"type": "text", "text": text}]},
    }

    def count(content: Any) -> int:
        return int(http.post(COUNT, json={"messages": [{"role": "user", "content": content}]}).json()["input_tokens"])

    assert count([blocks[block]]) >= count("many words " * 20) > count("many words") + 20


@pytest.mark.parametrize("path", ["/v1/chat/completions", MESSAGES])
def test_a_body_that_is_packed_is_refused(http: httpx.Client, path: str) -> None:
    packed = gzip.compress(json.dumps({"messages": [USER], "max_tokens": 4}).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    answer = http.post(path, content=packed, headers=headers)
    assert answer.status_code == 415 and answer.json()["error"]["code"] == "unsupported_encoding"


@pytest.mark.parametrize("depth", [3, 200])
def test_lists_and_blocks_inside_of_one_another_are_refused_by_name(http: httpx.Client, depth: int) -> None:
    prompt: Any = 5.0
    block: Any = {"type": "text", "text": "x"}
    for _ in range(depth):
        prompt, block = [prompt], {"type": "search_result", "source": "x", "title": "y", "content": [block]}
    answer = http.post("/v1/completions", json={"prompt": prompt, "max_tokens": 2})
    assert answer.status_code == 400 and answer.json()["error"]["param"].startswith("prompt"), answer.text
    answer = http.post(MESSAGES, json={"messages": [{"role": "user", "content": [block]}], "max_tokens": 2})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "messages[0].content[0].content[0]", answer.text
