"""What users of other servers send: honoured, named as ignored, or refused with advice; and values that ask for nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.server.anthropic_messages import MessageBody
from maskwright.server.chat import ChatBody
from maskwright.server.completions import CompletionBody
from maskwright.server.responses import ResponseBody

from .serving import Served
from .test_reasoning import TEMPLATE
from .test_streams import events_of

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
SAID: Any = [{"role": "user", "content": "hello"}]
ASKED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": SAID, "max_tokens": 6, "temperature": 0},
    COMPLETIONS: {"prompt": "hello", "max_tokens": 6, "temperature": 0},
    RESPONSES: {"input": "hello", "max_output_tokens": 6, "temperature": 0},
    MESSAGES: {"messages": SAID, "max_tokens": 6, "temperature": 0},
}
NEUTRAL: dict[str, Any] = {
    "use_beam_search": False, "lora_path": None, "bad_words": [], "allowed_token_ids": None, "length_penalty": 1.0, "cache_salt": None,
    "early_stopping": False, "skip_special_tokens": True, "return_token_ids": False, "guided_decoding_backend": None, "nobody_knows_this": False,
    "nor_this": None, "prompt_logprobs": None, "chat_template": None, "truncate_prompt_tokens": -1, "cache_prompt": True, "logits_processors": [],
}  # fmt: skip


def post(http: httpx.Client, path: str, **more: Any) -> httpx.Response:
    answer = http.post(path, json={**ASKED[path], **more})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", ASKED)
def test_what_asks_for_nothing_is_taken_without_a_word(http: httpx.Client, path: str) -> None:
    answer = post(http, path, **NEUTRAL)
    assert "x-maskwright-ignored" not in answer.headers


@pytest.mark.parametrize("path", ASKED)
def test_what_is_ignored_is_named(http: httpx.Client, path: str) -> None:
    asked = {"skip_special_tokens": False, "length_penalty": 1.3, "vllm_xargs": {"x": 1}, "temperature": 0}
    for stream in (False, True):
        told = post(http, path, **asked, stream=stream).headers["x-maskwright-ignored"]
        assert set(told.split(", ")) == {"skip_special_tokens", "length_penalty", "vllm_xargs"}


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ({"use_beam_search": True}, "LLM.beam_search"),
        ({"chat_template": "x"}, "operator's choice"),
        ({"prompt_logprobs": 1}, "/v1/completions and"),
        ({"lora_path": "x"}, "one model"),
    ],
)
def test_what_is_refused_says_what_to_do(http: httpx.Client, path: str, more: Any, advice: str) -> None:
    if path in (COMPLETIONS, CHAT) and more.keys() & {"prompt_logprobs", "use_beam_search"}:
        pytest.skip("honoured here")
    answer = http.post(path, json={**ASKED[path], **more})
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] in more and advice in error["message"]


@pytest.mark.parametrize("body", [ChatBody, CompletionBody, ResponseBody, MessageBody])
def test_every_parameter_says_what_becomes_of_it(body: Any, http: httpx.Client) -> None:
    form = http.get("/openapi.json").json()["components"]["schemas"][body.__name__]["properties"]
    assert set(form) >= set(body.model_fields) and "use_beam_search" in form
    assert {each["x-maskwright"] for each in form.values()} == {"honoured", "ignored", "refused"}
    assert form["vllm_xargs"]["x-maskwright"] == "ignored" and form["temperature"]["x-maskwright"] == "honoured"
    searches = body in (ChatBody, CompletionBody)
    assert {form[name]["x-maskwright"] for name in ("use_beam_search", "length_penalty")} == (
        {"honoured"} if searches else {"refused", "ignored"}
    )
    assert form["cache_salt"]["x-maskwright"] == form["allowed_token_ids"]["x-maskwright"] == "honoured"
    assert form["bad_words"]["x-maskwright"] == "honoured" and form["lora_path"]["description"].startswith("Refused")
    page = http.get("/docs").text
    assert ">refused</span>" in page and ">ignored</span>" in page


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_token_ids(http: httpx.Client, llm: LLM, path: str) -> None:
    answer = post(http, path, return_token_ids=True).json()
    (choice,) = answer["choices"]
    text = choice["text"] if path == COMPLETIONS else choice["message"]["content"]
    tokens = llm.vocabulary.text_tokens
    assert b"".join(tokens[token_id] or b"" for token_id in choice["token_ids"]).decode() == text
    prompt = choice["prompt_token_ids"] if path == COMPLETIONS else answer["prompt_token_ids"]
    assert len(prompt) == answer["usage"]["prompt_tokens"]
    streamed = [each for event in events_of(http, path, {**ASKED[path], "return_token_ids": True}) for each in event["choices"][0].get("token_ids", ())]
    assert streamed == choice["token_ids"]
    kept = post(http, path, return_token_ids=True, truncate_prompt_tokens=2).json()
    assert (kept["choices"][0]["prompt_token_ids"] if path == COMPLETIONS else kept["prompt_token_ids"]) == prompt[-2:]


def test_tokens_by_their_ids(http: httpx.Client) -> None:
    told = post(http, CHAT, logprobs=True, top_logprobs=1, return_tokens_as_token_ids=True, return_token_ids=True).json()["choices"][0]
    assert [each["token"] for each in told["logprobs"]["content"]] == [f"token_id:{token_id}" for token_id in told["token_ids"]]
    told = post(http, COMPLETIONS, logprobs=1, return_tokens_as_token_ids=True).json()["choices"][0]["logprobs"]
    assert all(each.startswith("token_id:") for each in told["tokens"]) and told["text_offset"][-1] < 30


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_usage_of_every_chunk(http: httpx.Client, path: str) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    *chunks, last = events_of(http, path, {**ASKED[path], "stream_options": options})
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts) and counts[-1] == last["usage"]["completion_tokens"]
    assert {chunk["usage"]["prompt_tokens"] for chunk in chunks} == {last["usage"]["prompt_tokens"]}


def test_the_id_that_was_asked_for(http: httpx.Client) -> None:
    for path, beginning in ((CHAT, "chatcmpl-"), (COMPLETIONS, "cmpl-"), (RESPONSES, "resp_"), (MESSAGES, "msg_")):
        assert post(http, path, request_id="mine-1").json()["id"] == f"{beginning}mine-1"
    assert http.post(CHAT, json={**ASKED[CHAT], "request_id": "a b"}).status_code == 400


def test_reasoning_can_be_left_out(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)
    asked = {"thinking_token_budget": 12, "regex": "[a-z]{3}", "max_tokens": 40}
    assert post(http, CHAT, **asked).json()["choices"][0]["message"]["reasoning_content"]
    left = post(http, CHAT, **asked, include_reasoning=False).json()["choices"][0]["message"]
    assert "reasoning_content" not in left and len(left["content"]) == 3


def test_documents_reach_the_template(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% for each in documents or [] %}{{ each.text }}{% endfor %}{% for message in messages %}{{ message.content }}{% endfor %}"
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", template)
    few = post(http, CHAT).json()["usage"]["prompt_tokens"]
    more = post(http, CHAT, documents=[{"title": "t", "text": "a long text about a thing"}]).json()["usage"]["prompt_tokens"]
    assert more > few


def test_special_tokens_of_a_prompt(http: httpx.Client) -> None:
    counts = [post(http, COMPLETIONS, add_special_tokens=value).json()["usage"]["prompt_tokens"] for value in (True, False)]
    assert counts[0] >= counts[1] >= 1


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ({"structured_outputs": {"json": {"const": [1, 2]}, "disable_any_whitespace": True}}, "[1,2]"),
        ({"structured_outputs": {"json": {"const": [1, 2]}, "whitespace_pattern": " "}}, "[1, 2]"),
        ({"guided_json": {"const": [1, 2]}, "guided_whitespace_pattern": " "}, "[1, 2]"),
        ({"structured_outputs": {"json": {"const": [1, 2]}, "disable_fallback": True, "disable_additional_properties": False}}, "[1,2]"),
    ],
)
def test_white_space_as_vllm_asks_for_it(http: httpx.Client, more: Any, written: str) -> None:
    content = post(http, CHAT, **more, max_tokens=20).json()["choices"][0]["message"]["content"]
    assert json.loads(content) == [1, 2] and (" " in content) == (" " in written)


@pytest.mark.parametrize(
    ("path", "more", "named"),
    [
        (CHAT, {"thinking_token_budget": 5}, "thinking_token_budget"),
        (CHAT, {"priority": 3}, "priority"),
        (COMPLETIONS, {"priority": 3}, "priority"),
        (RESPONSES, {"priority": -1}, "priority"),
        (MESSAGES, {"priority": 1}, "priority"),
        (CHAT, {"chat_template_kwargs": {"enable_thinking": True, "nobody": 0, "nothing": None}}, "chat_template_kwargs.enable_thinking, chat_template_kwargs.nobody"),
        (CHAT, {"reasoning_effort": "low", "verbosity": "low", "documents": [{"text": "a"}]}, "reasoning_effort, verbosity, documents"),
        (RESPONSES, {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}}, "reasoning.effort, text.verbosity"),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 5}}, "thinking.type, thinking.budget_tokens"),
        (MESSAGES, {"thinking": {"type": "disabled"}}, None),
        (CHAT, {"priority": 0, "chat_template_kwargs": {"enable_thinking": False}}, None),
    ],
    ids=str,
)  # fmt: skip
def test_what_this_model_or_server_cannot_heed_is_named(http: httpx.Client, path: str, more: Any, named: str | None) -> None:
    assert post(http, path, **more).headers.get("x-maskwright-ignored") == named


def test_what_this_model_heeds_is_not_named(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", "{{ verbosity }}{% set own = 1 %}" + TEMPLATE)
    asked = {"thinking_token_budget": 12, "regex": "[a-z]{3}", "max_tokens": 40, "verbosity": "low", "chat_template_kwargs": {"own": 3}}
    assert post(http, CHAT, **asked).headers["x-maskwright-ignored"] == "chat_template_kwargs.own"


def test_priority_is_heeded_with_its_policy(http: httpx.Client, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.service.llm, "features", replace(server.service.llm.features, policy="priority"))
    assert "x-maskwright-ignored" not in post(http, CHAT, priority=3).headers
