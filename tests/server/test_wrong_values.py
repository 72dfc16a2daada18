"""Wrong values of keywords and parameters over HTTP, and bodies that are none: an answer, or a 400 that says what is wrong; never a 500."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints.front_ends.json_schema.documents.keyword_table import KEYWORDS
from maskwright.server.chat import ChatBody
from maskwright.server.completions import CompletionBody
from maskwright.server.llamacpp.bodies import LlamaCompletionBody
from maskwright.server.ollama.chats import OllamaChatBody, OllamaGenerateBody
from maskwright.server.responses import ResponseBody
from maskwright.server.settings import ServerSettings
from maskwright.server.sglang.bodies import GenerateBody, SglangSampling
from maskwright.server.sglang.operations import AbortRequestBody
from maskwright.server.tokens import TokenizeBody
from maskwright.server.vllm.operations import AbortBody

from .serving import served

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


def llamacpp(schema: Any) -> dict[str, Any]:
    return {"prompt": "Yes?", "json_schema": schema, "n_predict": 30, "temperature": 0}


def sglang(schema: Any) -> dict[str, Any]:
    return {"text": "Yes?", "sampling_params": {"json_schema": json.dumps(schema), "max_new_tokens": 30, "temperature": 0}}


def ollama(schema: Any) -> dict[str, Any]:
    return {"messages": MESSAGES, "format": schema, "options": {"num_predict": 30, "temperature": 0}, "stream": False}


ENDPOINTS = {
    "/v1/chat/completions": [chat, tools], "/v1/completions": [completions], "/v1/responses": [responses], "/v1/messages": [messages],
    "/completion": [llamacpp], "/generate": [sglang], "/api/chat": [ollama],
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


# ---- parameters

VALUES: list[Any] = [None, True, -1, 10**30, 1.5, "x", "", [], {}, "\ud800", [[]], [None], {"a": 1}, 1e308, "a" * 200, [{}], float("nan")]
ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "/v1/completions": (CompletionBody, {"prompt": "x"}),
    "/completion": (LlamaCompletionBody, {"prompt": "x"}),
    "/generate": (GenerateBody, {"text": "x"}),
    "/api/chat": (OllamaChatBody, {"messages": MESSAGES, "stream": False}),
    "/api/generate": (OllamaGenerateBody, {"prompt": "x", "stream": False}),
    "/v1/responses": (ResponseBody, {"input": "x"}),
    "/tokenize": (TokenizeBody, {"prompt": "x"}),
    "/apply-template": (ChatBody, {"messages": MESSAGES}),
    "/abort_request": (AbortRequestBody, {}),
    "/abort_requests": (AbortBody, {}),
}


@pytest.fixture(scope="module")
def small(llm: LLM) -> Iterator[httpx.Client]:
    with served(llm, ServerSettings(max_tokens=2, max_n=2)) as running, running.http() as connected:
        yield connected


def asked(path: str) -> Iterator[dict[str, Any]]:
    """Bodies, each with one parameter that has one of the values; over all parameters every value comes."""
    body, base = ASKED[path]
    names = [*body.model_fields, *body._declared_refused()]
    for number, name in enumerate(names):
        for step in range(4):
            yield {**base, name: VALUES[(number + 5 * step) % len(VALUES)]}
    if path == "/generate":
        for number, name in enumerate(SglangSampling.model_fields):
            for step in range(3):
                yield {**base, "sampling_params": {name: VALUES[(number + 5 * step) % len(VALUES)]}}


@pytest.mark.parametrize("path", ASKED)
def test_no_value_of_a_parameter_is_an_error_of_the_server(small: httpx.Client, path: str) -> None:
    for body in asked(path):
        answer = small.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400, 404), (body, answer.text)
        if answer.status_code != 200:
            assert answer.json()["error"], (body, answer.text)


@pytest.mark.parametrize(("path", "place"), [("/v1/responses", "metadata.a"), ("/v1/chat/completions", "messages[0].content[0].x"), ("/generate", "sampling_params.custom_params.a")])
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_what_is_no_number_of_json_is_named(small: httpx.Client, path: str, place: str, number: str) -> None:
    bodies = {
        "/v1/responses": '{"input": "x", "metadata": {"a": %s}}',
        "/v1/chat/completions": '{"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "x": %s}]}]}',
        "/generate": '{"text": "x", "sampling_params": {"custom_params": {"a": %s}}}',
    }
    answer = small.post(path, content=bodies[path] % number, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]["message"] == f"{place}: Input should be a finite number"


UNREADABLE = {
    b"\xff{}": "the body is not UTF-8: byte 0 is no part of a character",
    b"[" * 100_000: "the body nests too deeply",
    b'{"max_tokens": ' + b"1" * 5000 + b"}": "the body has a number of more than 4300 digits",
    b"{": "the body is not JSON: Expecting property name enclosed in double quotes",
    b"": "the body is missing",
    b"5": None,
}  # fmt: skip


def test_a_body_that_cannot_be_read_is_told_in_one_sentence_for_each_cause(http: httpx.Client) -> None:
    paths = http.get("/openapi.json").json()["paths"]
    taking = [path for path, item in paths.items() if "application/json" in item.get("post", {}).get("requestBody", {}).get("content", {})]
    assert len(taking) > 12
    for content, said in UNREADABLE.items():
        told = set()
        for path in taking:
            answer = http.post(path, content=content, headers={"content-type": "application/json"})
            error = answer.json()["error"]
            told.add(error if isinstance(error, str) else error["message"])
            assert answer.status_code == 400, (path, answer.text)
        assert len(told) == 1 and said in (None, *told), told


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": [[5, 10**9]], "max_tokens": 2}),
        ("/v1/completions", {"prompt": [-1], "max_tokens": 2}),
        ("/completion", {"prompt": [5, 10**9], "n_predict": 2}),
        ("/generate", {"input_ids": [-1], "sampling_params": {"max_new_tokens": 2}}),
    ],
)
@pytest.mark.parametrize(
    "more",
    [{}, {"echo": True}, {"echo": True, "logprobs": 2}, {"return_token_ids": True}, {"maskwright": {"tokens": True}}, {"stream": True, "echo": True}],
    ids=str,
)
def test_tokens_that_there_are_not_are_refused_whatever_is_told_of_them(http: httpx.Client, path: str, body: Any, more: Any) -> None:
    asked = {**body, **(more if path == "/v1/completions" else {name: more[name] for name in ("stream",) if name in more})}
    answer = http.post(path, json=asked)
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "invalid_value", answer.text
