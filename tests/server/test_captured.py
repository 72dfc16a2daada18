"""Grammars that name what their rules read: answers tell it under `captures`, on every endpoint, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.server.answers import ChatCompletion, Completion, MessageAnswer, ResponseAnswer

from .test_reasoning import TEMPLATE

GRAMMAR = 'start: word "=" value\nword[capture]: /[a-c]{1,4}/\nvalue: n ("," n)~0..3\nn[capture="__LIST_APPEND:items"]: /[0-9]/'
SAID: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 24}
CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
SAMPLING = {"temperature": 1.5, "seed": 8}


def told(text: str) -> dict[str, Any]:
    word, _, value = text.partition("=")
    return {"word": word, "items": value.split(",")}


def post(http: httpx.Client, path: str, body: Any) -> Any:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(http: httpx.Client, path: str, body: Any) -> list[Any]:
    with http.stream("POST", path, json={**body, "stream": True}) as stream:
        lines = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("path", "body", "model"), [(CHAT, SAID, ChatCompletion), (COMPLETIONS, {"prompt": ["x", "y"], "max_tokens": 24}, Completion)])
def test_completions_tell_them_in_each_choice(http: httpx.Client, path: str, body: Any, model: Any) -> None:
    asked = {**body, **SAMPLING, "n": 2, "grammar": GRAMMAR}
    whole = post(http, path, asked)
    model.model_validate(whole)
    texts = [choice["message"]["content"] if "message" in choice else choice["text"] for choice in whole["choices"]]
    assert [choice["captures"] for choice in whole["choices"]] == [told(text) for text in texts]
    ends = {}
    for event in events(http, path, asked):
        for choice in event["choices"]:
            assert ("captures" in choice) == (choice["finish_reason"] is not None)
            if "captures" in choice:
                ends[choice["index"]] = choice["captures"]
    assert ends == {choice["index"]: choice["captures"] for choice in whole["choices"]}


def test_the_best_of_several_tells_its_own(http: httpx.Client) -> None:
    (choice,) = post(http, COMPLETIONS, {"prompt": "x", "max_tokens": 24, **SAMPLING, "best_of": 3, "grammar": GRAMMAR})["choices"]
    assert choice["captures"] == told(choice["text"])


def test_responses_and_messages_tell_them_at_their_end(http: httpx.Client) -> None:
    asked: Any = {"input": "hello", "grammar": GRAMMAR}
    response = post(http, RESPONSES, asked)
    ResponseAnswer.model_validate(response)
    assert response["captures"] == told(response["output"][0]["content"][0]["text"])
    first, *_, last = events(http, RESPONSES, asked)
    assert "captures" not in first["response"] and "captures" in last["response"]
    asked = {**SAID, "grammar": GRAMMAR}
    message = post(http, MESSAGES, asked)
    MessageAnswer.model_validate(message)
    assert message["captures"] == told(message["content"][0]["text"])
    first, *_, last, _ = events(http, MESSAGES, asked)
    assert "captures" not in first["message"] and last["type"] == "message_delta" and last["captures"] == message["captures"]


def test_nothing_is_told_where_nothing_is_named(http: httpx.Client) -> None:
    for asked in ({"grammar": 'start: "a"'}, {"grammar": 'root ::= "a"'}, {"regex": "a"}, {}):
        assert "captures" not in post(http, CHAT, {**SAID, **asked})["choices"][0]


def test_a_name_that_read_nothing_is_left_out(http: httpx.Client) -> None:
    grammar = 'start: "a" maybe?\nmaybe[capture]: "b" "c"~9'
    assert post(http, CHAT, {**SAID, "max_tokens": 1, "grammar": grammar})["choices"][0]["captures"] == {}


def test_what_cannot_be_told_says_why(http: httpx.Client) -> None:
    grammar = 'root ::= a\na[capture, capture_hidden_stop_bytes=1] ::= "x;"'
    choice = post(http, CHAT, {**SAID, "ebnf": grammar})["choices"][0]
    assert choice["message"]["content"] == "x;"
    assert choice["captures"] is None and "capture_hidden_stop_bytes" in choice["captures_error"]


@pytest.mark.parametrize("opening", ["<think>", "-"])
def test_behind_reasoning_the_answer_is_read(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch, opening: str) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)
    more: Any = {"thinking_token_budget": 12, "chat_template_kwargs": {"opening": opening}, "max_tokens": 60}
    choice = post(http, CHAT, {**SAID, **more, "grammar": GRAMMAR})["choices"][0]
    assert choice["captures"] == told(choice["message"]["content"])
