"""A model whose chat template opens the reasoning: what it thinks is told apart from what it answers."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from maskwright import LLM

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}{{ opening or '<think>' }}{# </think> #}"
ASKED: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 40, "temperature": 0}
CHAT = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def thinking(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)


@pytest.mark.parametrize("opening", ["<think>", "-"])
def test_the_answer_satisfies_its_constraint_behind_the_reasoning(http: httpx.Client, opening: str) -> None:
    body = {**ASKED, "regex": "[a-z]{3}", "chat_template_kwargs": {"opening": opening}}
    message = http.post(CHAT, json=body).json()["choices"][0]["message"]
    assert re.fullmatch("[a-z]{3}", message["content"])
    if opening == "<think>":
        assert message["reasoning_content"]


def test_a_stream_tells_them_apart_too(http: httpx.Client) -> None:
    body = {**ASKED, "regex": "[a-z]{3}"}
    message = http.post(CHAT, json=body).json()["choices"][0]["message"]
    joined = {"content": "", "reasoning_content": ""}
    with http.stream("POST", CHAT, json={**body, "stream": True}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
                for name in joined:
                    joined[name] += delta.get(name, "")
    assert joined == {name: message[name] for name in joined}


def test_a_template_that_closes_the_reasoning_leaves_none(http: httpx.Client) -> None:
    body = {**ASKED, "max_tokens": 6, "chat_template_kwargs": {"opening": "<think></think>"}}
    message = http.post(CHAT, json=body).json()["choices"][0]["message"]
    assert "reasoning_content" not in message and message["content"]


def test_thinking_blocks_of_messages(http: httpx.Client) -> None:
    body = {**ASKED, "thinking": {"type": "enabled", "budget_tokens": 9}, "output_config": {"format": {"type": "regex", "regex": "[a-z]{3}"}}}
    del body["temperature"]
    thought, said = http.post("/v1/messages", json=body).json()["content"]
    assert (thought["type"], said["type"]) == ("thinking", "text") and thought["thinking"] and re.fullmatch("[a-z]{3}", said["text"])
    kinds, joined = [], {"thinking": "", "text": "", "signature": ""}
    with http.stream("POST", "/v1/messages", json={**body, "stream": True}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                kinds.append(event["type"])
                for name in joined:
                    joined[name] += event.get("delta", {}).get(name, "")
    assert joined == {"thinking": thought["thinking"], "text": said["text"], "signature": thought["signature"]}
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2


@pytest.mark.parametrize("opening", ["<think>", "-"])
def test_a_budget_ends_the_reasoning(http: httpx.Client, llm: LLM, opening: str) -> None:
    body = {**ASKED, "regex": "[a-z]{3}", "thinking_token_budget": 12, "chat_template_kwargs": {"opening": opening}}
    answer = http.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    assert re.fullmatch("[a-z]{3}", message["content"])
    assert len(llm.tokenizer.encode(message.get("reasoning_content", ""), add_special_tokens=False)) <= 12
