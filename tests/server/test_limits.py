"""Who may ask, how much, and what is answered when it is too much or makes no sense."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from maskwright import LLM
from maskwright.server.settings import ServerSettings

from .serving import Served, served

MESSAGES: Any = [{"role": "user", "content": "hello"}]
ASKED: Any = {"messages": MESSAGES, "max_tokens": 2, "temperature": 0}
STRICT = ServerSettings(
    api_key=("first-key", "second-key"), max_body_bytes=4000, max_n=2, max_tokens=5, max_logprobs=1, max_stop=1, max_tools=1, max_open=2
)  # fmt: skip
KEY = {"Authorization": "Bearer second-key"}


@pytest.fixture(scope="module")
def strict(llm: LLM) -> Iterator[Served]:
    with served(llm, STRICT) as running:
        yield running


@pytest.fixture(scope="module")
def keyed(strict: Served) -> Iterator[httpx.Client]:
    with strict.http() as connected:
        connected.headers.update(KEY)
        yield connected


def error_of(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["message"] and {"type", "param", "code"} <= error.keys()
    return error


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 3}, "n"),
        ({"max_tokens": 6}, "max_tokens"),
        ({"max_completion_tokens": 6}, "max_completion_tokens"),
        ({"logprobs": True, "top_logprobs": 2}, "top_logprobs"),
        ({"stop": ["a", "b"]}, "stop"),
        ({"tools": [{"type": "function", "function": {"name": name}} for name in "fg"]}, "tools"),
    ],
    ids=str,
)
def test_limits_name_what_was_too_much(keyed: httpx.Client, more: Any, param: str) -> None:
    error = error_of(keyed.post("/v1/chat/completions", json={**ASKED, **more}), 400)
    assert error["param"] == param and error["code"] == "limit_exceeded"


def test_without_max_tokens_the_limit_holds(keyed: httpx.Client) -> None:
    answer = keyed.post("/v1/chat/completions", json={"messages": MESSAGES, "ignore_eos": True}).json()
    assert answer["usage"]["completion_tokens"] == STRICT.max_tokens


def test_the_body_is_limited_with_and_without_its_length(keyed: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(10):
            yield b" " * 1000

    for content in (b" " * 5000, pieces()):
        assert error_of(keyed.post("/v1/chat/completions", content=content), 413)["code"] == "body_too_large"


def test_a_full_queue_is_told(keyed: httpx.Client, strict: Served) -> None:
    with strict.service._place(2):  # what two outputs that run have: real ones may have ended when the next request comes
        answer = keyed.post("/v1/completions", json={"prompt": ["a", "b", "c"], "max_tokens": 1})
    assert error_of(answer, 429)["code"] == "queue_full" and answer.headers["retry-after"]
    assert keyed.post("/v1/chat/completions", json=ASKED).status_code == 200


def test_keys(strict: Served) -> None:
    with strict.http() as http:
        for headers in ({}, {"Authorization": "Bearer first-ke"}, {"Authorization": "Basic first-key"}, {"x-api-key": "third"}):
            for path in ("/v1/models", "/tokenize", "/v1/nothing"):
                assert error_of(http.get(path, headers=headers), 401)["code"] == "invalid_api_key"
        for headers in ({"Authorization": "bearer first-key"}, KEY, {"x-api-key": "first-key"}):
            assert http.get("/v1/models", headers=headers).status_code == 200
        for path in ("/health", "/ready", "/version", "/metrics", "/openapi.json", "/docs"):
            assert http.get(path).status_code == 200
    with strict.openai(key="wrong") as client, pytest.raises(openai.AuthenticationError):
        client.models.list()


def test_request_ids_are_kept_or_made(http: httpx.Client) -> None:
    answer = http.post("/v1/chat/completions", json=ASKED, headers={"X-Request-Id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1" and answer.json()["id"] == "chatcmpl-mine-1"
    made = {http.get("/health", headers=headers).headers["x-request-id"] for headers in ({}, {}, {"X-Request-Id": "a b" * 90})}
    assert len(made) == 3
    assert http.get("/nowhere", headers={"X-Request-Id": "lost"}).headers["x-request-id"] == "lost"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({}, "messages"),
        ({"messages": MESSAGES, "temprature": 1}, "temprature"),
        ({"messages": MESSAGES, "temperature": -1}, "temperature"),
        ({"messages": MESSAGES, "top_p": 0}, "top_p"),
        ({"messages": MESSAGES, "logit_bias": {"x": "1"}}, "logit_bias.x"),
        ({"messages": MESSAGES, "top_logprobs": 1}, "top_logprobs"),
        ({"messages": MESSAGES, "stream_options": {"include_usage": True}}, "stream_options"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]}]}, "messages[0].tool_calls[0]"),
        ({"messages": [{"role": "user", "content": "x" * 9000}]}, "messages"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_wrong_parameters_are_named(http: httpx.Client, body: Any, param: str) -> None:
    error = error_of(http.post("/v1/chat/completions", json=body), 400)
    assert error["param"] == param and error["type"] == "invalid_request_error"


def test_wrong_bodies_paths_and_models(http: httpx.Client) -> None:
    json_type = {"content-type": "application/json"}
    assert error_of(http.post("/v1/chat/completions", content="{", headers=json_type), 400)["code"] == "invalid_json"
    error_of(http.post("/v1/chat/completions", content=b"\xff", headers=json_type), 400)
    error_of(http.get("/v1/chat/completions"), 405)
    error_of(http.get("/v1/nothing"), 404)
    assert error_of(http.post("/v1/chat/completions", json={**ASKED, "model": "gpt-9"}), 404)["code"] == "model_not_found"
    error_of(http.get("/v1/models/gpt-9"), 404)


def test_parts_of_messages_are_joined(http: httpx.Client) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
    whole, split = (http.post("/v1/chat/completions", json={**ASKED, "messages": messages}).json() for messages in (MESSAGES, parts))
    assert whole["choices"] == split["choices"]


def test_tokens_there_and_back(http: httpx.Client) -> None:
    answer = http.post("/tokenize", json={"prompt": "Grüße, Ada", "return_token_strs": True}).json()
    assert answer["count"] == len(answer["tokens"]) and answer["max_model_len"] == 2048
    assert http.post("/detokenize", json={"tokens": answer["tokens"]}).json() == {"prompt": "Grüße, Ada", "content": "Grüße, Ada"}
    assert http.post("/tokenize", json={"messages": MESSAGES}).json()["count"] > 1
    error_of(http.post("/detokenize", json={"tokens": [10**9]}), 400)
    error_of(http.post("/tokenize", json={}), 400)


def test_operators_see_what_goes_on(http: httpx.Client) -> None:
    http.post("/v1/chat/completions", json={**ASKED, "regex": "[a-z]{2}"})
    assert http.get("/health").status_code == 200 and http.get("/ready").json() == {"ready": True}
    assert http.get("/version").json()["version"]
    text = http.get("/metrics").text
    for name in (
        "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total", "vllm:request_success_total", "vllm:time_to_first_token_seconds_bucket",
        "vllm:e2e_request_latency_seconds_count", "vllm:prefix_cache_hits_total", "maskwright:constraint_compile_seconds_sum",
        "maskwright:constraint_cache_hits_total", "maskwright:mask_misses_total", "maskwright:kept_mass_count",
    ):  # fmt: skip
        assert f'{name}{{' in text, name
    dashboard = (Path(__file__).parents[2] / "deploy" / "grafana.json").read_text()
    shown = re.findall(r"(?:vllm|maskwright):\w+", dashboard)
    assert len(shown) > 20
    for name in shown:
        assert f"\n{name}{{" in text, f"{name} is on the dashboard, but not among the metrics"
    paths = http.get("/openapi.json").json()["paths"]
    assert {"/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/health"} <= paths.keys()
