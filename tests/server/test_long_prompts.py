"""Prompts that are far too long cost little, wherever they stand."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from maskwright import LLM, RequestError

LONG = "word " * 600_000
MESSAGES: Any = [{"role": "user", "content": LONG}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES}),
        ("/v1/chat/completions", {"messages": [{"role": "system", "content": LONG}, *MESSAGES]}),
        ("/v1/completions", {"prompt": LONG}),
        ("/v1/responses", {"input": LONG}),
        ("/v1/messages", {"messages": MESSAGES, "max_tokens": 5}),
    ],
    ids=["chat", "system", "completions", "responses", "messages"],
)
def test_they_are_refused_by_their_beginning(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch, path: str, body: Any) -> None:
    encode, read = llm.tokenizer.encode, list[int]()

    def counted(text: str, **options: bool) -> tuple[int, ...]:
        read.append(len(text))
        return encode(text, **options)

    monkeypatch.setattr(llm.tokenizer, "encode", counted)
    answer = http.post(path, json=body)
    assert answer.status_code == 400 and "more than 2047 tokens" in answer.text, answer.text[:200]
    assert "context_length_exceeded" in answer.text and sum(read) < 100_000


def test_they_are_refused_without_a_server_too(llm: LLM) -> None:
    with pytest.raises(RequestError, match="more than 2047 tokens"):
        llm.generate(LONG)


def test_counting_waits_for_no_request_and_none_for_it(http: httpx.Client) -> None:
    counted = http.post("/tokenize", json={"prompt": LONG[:2_000_000]}).json()
    assert counted["count"] > 400_000 and counted["max_model_len"] == 2048


def test_a_half_pair_is_found_in_long_texts(http: httpx.Client) -> None:
    content = b'{"prompt": "' + "é".encode() * 100_000 + b'\\ud800"}'
    answer = http.post("/v1/completions", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and "surrogate" in answer.text
