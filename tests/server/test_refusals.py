"""What clients send that makes no sense: refused with status 400, OpenAI's shape, and the path of the parameter that is wrong."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

CHAT = "/v1/chat/completions"
ASK: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
SAID: Any = {"role": "user", "content": "x"}


def param_of(answer: httpx.Response) -> str | None:
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error" and error["code"] and error["message"]
    param: str | None = error["param"]
    return param


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logit_bias": {"99999999": 1}}, "logit_bias"),
        ({"logit_bias": {"5": "a"}}, "logit_bias.5"),
        ({"stop_token_ids": [99999999]}, "stop_token_ids"),
        ({"stop": [1]}, "stop"),
        ({"stop": ""}, "stop"),
        ({"regex": "a+", "ignore_eos": True}, "ignore_eos"),
        ({"regex": "a+", "json_schema": {}}, "regex"),
        ({"messages": []}, "messages"),
        ({"messages": [None]}, "messages[0]"),
        ({"messages": [{**SAID, "name": 5}]}, "messages[0].name"),
        ({"messages": [{**SAID, "audio": {"id": "a"}}]}, "messages[0].audio"),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, SAID]}, "messages[0].function_call"),
        ({"messages": [SAID, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages[1].content[0]"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"chat_template_kwargs": {"chat_template": "{% for _ in range(10 ** 9) %}{% endfor %}"}}, "chat_template_kwargs.chat_template"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"structured_outputs": {"json_object": False}}, "structured_outputs"),
        ({"structured_outputs": {"json_object": 1}}, "structured_outputs.json_object"),
        ({"response_format": {"type": "json_object", "schema": 5}}, "response_format.schema"),
        ({"response_format": {"type": "structural_tag"}}, "response_format"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "messages[0].tool_calls"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"max_token": 4}, "max_token"),
        ({"modalities": ["audio"]}, "modalities"),
    ],
)
def test_what_is_wrong_is_named(http: httpx.Client, more: Any, param: str) -> None:
    assert param_of(http.post(CHAT, json={**ASK, **more})) == param


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"type": "allowed_tools"}, "allowed tools are a list"),
        ({"type": "allowed_tools", "allowed_tools": 5}, "allowed tools are a list"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}, "allowed tools are a list"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "some", "tools": []}}, '"auto" or "required"'),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function"}]}}, "by its name"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [5]}}, "by its name"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}, "there are no tools"),
        ({"type": "allowed_tools", "tools": [{"type": "function", "name": "g"}]}, "instead: 'f'"),
        ({"type": "function"}, "by its name"),
        ({}, "by its name"),
        ("some", "allowed_tools"),
    ],
    ids=str,
)
def test_a_choice_of_tools_that_makes_no_sense(http: httpx.Client, choice: Any, said: str) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    answer = http.post(CHAT, json={**ASK, "tools": tools, "tool_choice": choice})
    assert param_of(answer) == "tool_choice" and said in answer.json()["error"]["message"]


def test_what_a_member_is_instead_is_said(http: httpx.Client) -> None:
    def message(**form: Any) -> Any:
        return http.post(CHAT, json={**ASK, "response_format": form}).json()["error"]["message"]

    assert message(type="regex", regex=5) == "response_format.regex is a string, not 5"
    assert message(type="json_object", schema=[1]) == "response_format.schema is an object or true or false or a string, not [1]"
    assert message(type="structural_tag") == "at # 'format': 'format' is missing"
    refused = message(type="json_schema", name="x", schema={"pattern": "(a)\\1"})
    assert refused.splitlines() == [refused], "no line of a source that is not there"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, '{"messages": [{"role": "user", "content": "\\ud800"}]}', "messages[0].content"),
        (CHAT, '{"messages": [], "json_schema": {"const": ["a", "\\udfff"]}}', "json_schema.const[1]"),
        (CHAT, '{"messages": [], "stop": "a\\ud800b"}', "stop"),
        ("/v1/completions", '{"prompt": "\\udc00\\ud800"}', "prompt"),
        ("/v1/responses", '{"input": [{"role": "user", "content": "\\ud800"}]}', "input[0].content"),
        ("/v1/messages", '{"max_tokens": 4, "messages": [{"role": "user", "content": "\\ud800"}]}', "messages[0].content"),
        ("/tokenize", '{"prompt": "\\ud800"}', "prompt"),
        ("/v1/completions", '{"prompt": [99999999]}', "prompt"),
        ("/v1/completions", '{"prompt": [[]]}', "prompt"),
        ("/v1/responses", '{"input": "x", "regex": "a", "text": {"format": {"type": "json_object"}}}', "regex"),
    ],
)
def test_so_it_is_on_every_endpoint(http: httpx.Client, path: str, body: str, param: str) -> None:
    assert param_of(http.post(path, content=body, headers={"Content-Type": "application/json"})) == param


def test_a_whole_pair_is_text(http: httpx.Client) -> None:
    body = '{"messages": [{"role": "user", "content": "\\ud83d\\ude00"}], "max_tokens": 2, "stop": "\\ud83d\\ude00"}'
    assert http.post(CHAT, content=body, headers={"Content-Type": "application/json"}).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b'{"messages": "\xff"}', b"[" * 50_000, b'{"max_tokens": ' + b"9" * 5000 + b"}"]
)
def test_a_body_that_is_none(http: httpx.Client, body: bytes) -> None:
    answer = http.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    assert param_of(answer) is None and answer.json()["error"]["code"] == "invalid_json" and "body" in answer.json()["error"]["message"]


def test_a_prompt_that_is_too_long_is_named_as_the_endpoint_calls_it(http: httpx.Client) -> None:
    long = "the sun rises " * 20_000
    for path, body, param in (
        (CHAT, {"messages": [{"role": "user", "content": long}]}, "messages"),
        ("/v1/completions", {"prompt": long}, "prompt"),
        ("/v1/responses", {"input": long}, "input"),
    ):
        answer = http.post(path, json=body)
        assert param_of(answer) == param and answer.json()["error"]["code"] == "context_length_exceeded"


def test_addresses_that_are_not_there(http: httpx.Client) -> None:
    answer = http.post("/v1/nothing", json={})
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "not_found" and "/v1/nothing" in answer.json()["error"]["message"]
    answer = http.get(CHAT)
    assert answer.status_code == 405 and answer.json()["error"]["code"] == "method_not_allowed" and answer.headers["allow"] == "POST"


def test_a_reply_that_was_refused_is_a_message(http: httpx.Client) -> None:
    messages = [SAID, {"role": "assistant", "content": None, "refusal": "no", "audio": None, "annotations": []}, SAID]
    assert http.post(CHAT, json={**ASK, "messages": messages}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/responses", {"input": "x"}), ("/v1/messages", {"messages": [SAID], "max_tokens": 40})]
)
@pytest.mark.parametrize(
    "named", [{"regex": "ab"}, {"guided_choice": ["ab"]}, {"structured_outputs": {"regex": "ab"}}, {"grammar": 'root ::= "ab"'}, {"guided_regex": "ab"}]
)
def test_other_names_of_constraints_hold_everywhere(http: httpx.Client, path: str, body: Any, named: Any) -> None:
    answer = http.post(path, json={**body, **named}).json()
    content = answer["output"][0]["content"] if "output" in answer else answer["content"]
    assert content[0]["text"] == "ab"
