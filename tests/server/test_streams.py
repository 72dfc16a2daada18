"""What holds for the streams of all endpoints: they say what the whole answer says, and end when their client does."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from maskwright import LLM
from maskwright.server import answers
from maskwright.server.settings import ServerSettings

from .alike import assert_alike
from .serving import Served, served
from .test_reliability import eventually

ASK: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12}
SAMPLED: Any = {"temperature": 1.4, "seed": 7}
CASES: list[tuple[str, Any, type[BaseModel], type[BaseModel]]] = [
    ("/v1/chat/completions", {**ASK, **SAMPLED}, answers.ChatCompletion, answers.ChatCompletionChunk),
    ("/v1/completions", {"prompt": "hello", "max_tokens": 12, **SAMPLED}, answers.Completion, answers.Completion),
    ("/v1/responses", {"input": "hello", "max_output_tokens": 12}, answers.ResponseAnswer, answers.ResponseEvent),
    ("/v1/messages", ASK, answers.MessageAnswer, answers.MessageEvent),
]
IDS = ["chat", "completions", "responses", "messages"]


def events_of(http: httpx.Client, path: str, body: Any) -> list[Any]:
    with http.stream("POST", path, json={**body, "stream": True}) as stream:
        assert stream.status_code == 200 and stream.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
    if path.endswith("completions"):
        assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def text_of(events: list[Any]) -> str:
    """What the deltas of any endpoint's events join to."""
    joined = ""
    for event in events:
        for choice in event.get("choices", ()):
            joined += choice["text"] if "text" in choice else choice["delta"].get("content", "")
        if event.get("type") == "response.output_text.delta":
            joined += event["delta"]
        elif event.get("type") == "content_block_delta":
            joined += event["delta"].get("text", "")
    return joined


def text_of_whole(answer: Any) -> str:
    if "choices" in answer:
        choice = answer["choices"][0]
        return str(choice["text"] if "text" in choice else choice["message"]["content"])
    content = answer["output"][0]["content"] if "output" in answer else answer["content"]
    return "".join(part["text"] for part in content)


def constrained(path: str, body: Any, pattern: str) -> Any:
    form = {"type": "regex", "regex": pattern}
    if path.endswith("completions"):
        return {**body, "response_format": form}
    return {**body, **({"text": {"format": form}} if "responses" in path else {"output_config": {"format": form}})}


@pytest.mark.parametrize(("path", "body", "whole", "event"), CASES, ids=IDS)
def test_a_stream_says_what_the_answer_says_as_documented(
    http: httpx.Client, path: str, body: Any, whole: type[BaseModel], event: type[BaseModel]
) -> None:
    answer = http.post(path, json=body).json()
    whole.model_validate(answer)
    events = events_of(http, path, body)
    for each in events:
        event.model_validate(each)
    assert text_of(events) == text_of_whole(answer) != ""


@pytest.mark.parametrize(("path", "body"), [case[:2] for case in CASES], ids=IDS)
def test_usage_is_told_at_the_end(http: httpx.Client, path: str, body: Any) -> None:
    if path.endswith("completions"):
        body = {**body, "stream_options": {"include_usage": True}}
        usage = events_of(http, path, body)[-1]["usage"]
        counted = usage["prompt_tokens"], usage["completion_tokens"]
        plain = http.post(path, json={name: value for name, value in body.items() if name != "stream_options"}).json()["usage"]
        assert counted == (plain["prompt_tokens"], plain["completion_tokens"])
    else:
        last = events_of(http, path, body)[-1 if "responses" in path else -2]
        usage, plain = last.get("response", last)["usage"], http.post(path, json=body).json()["usage"]
        assert usage["output_tokens"] == plain["output_tokens"] > 0
        cached = "cache_read_input_tokens"
        assert usage["input_tokens"] + usage.get(cached, 0) == plain["input_tokens"] + plain.get(cached, 0)


@pytest.mark.parametrize(("path", "body", "name"), [(*CASES[i][:2], name) for i, name in ((0, "stop"), (1, "stop"), (3, "stop_sequences"))])
def test_a_stop_string_is_never_shown(http: httpx.Client, path: str, body: Any, name: str) -> None:
    text = text_of_whole(http.post(path, json=body).json())
    mark = text[2:5]
    assert text_of(events_of(http, path, {**body, name: [mark]})) == text[: text.index(mark)]


@pytest.mark.parametrize(("path", "body"), [case[:2] for case in CASES], ids=IDS)
def test_a_long_prompt_is_waited_for_with_comments(llm: LLM, path: str, body: Any) -> None:
    long = constrained(path, json.loads(json.dumps(body).replace("hello", f"{path}: " + "the sun rises over the hills and " * 40)), "[a-z]{4}")
    with (
        served(llm, ServerSettings(keep_alive_seconds=0.002)) as patient,
        patient.http() as http,
        http.stream("POST", path, json={**long, "stream": True}) as stream,
    ):
        assert stream.status_code == 200
        lines = [line for line in stream.iter_lines() if line]
    spoken = [number for number, line in enumerate(lines) if line.startswith("data: {") and text_of([json.loads(line[6:])])]
    assert ": keep-alive" in lines[: spoken[0]]
    assert all(line.startswith((": keep-alive", "data: ", "event: ")) for line in lines)


@pytest.mark.parametrize(("path", "body"), [case[:2] for case in CASES], ids=IDS)
def test_a_client_that_goes_frees_its_blocks_before_the_next_step(
    server: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
) -> None:
    worker, seen = server.service.worker, list[tuple[int, int]]()
    cancel = worker._driver.cancel

    def watched_cancel(request_id: int) -> None:
        cancel(request_id)
        seen.append((worker._driver.statistics.num_blocks_in_use, worker._driver.statistics.num_running))

    monkeypatch.setattr(worker._driver, "cancel", watched_cancel)
    limit = next(name for name in body if name.startswith("max_"))
    asked = constrained(path, {**body, limit: 1800}, "[a-z]{1700}")
    assert eventually(http, lambda: worker.num_open == 0)
    with http.stream("POST", path, json={**asked, "stream": True}) as stream:
        assert stream.status_code == 200
        lines = stream.iter_lines()  # kept: the connection is closed with it
        next(lines)
        assert eventually(http, lambda: worker.num_open == 1)
    assert eventually(http, lambda: bool(seen))
    assert seen == [(0, 0)]


def test_outputs_of_one_request_have_seeds_of_their_own(http: httpx.Client) -> None:
    body = {**ASK, **SAMPLED, "temperature": 2.0, "n": 2, "messages": [{"role": "user", "content": "x"}]}
    whole = [choice["message"]["content"] for choice in http.post("/v1/chat/completions", json=body).json()["choices"]]
    for _ in range(2):
        joined = ["", ""]
        for event in events_of(http, "/v1/chat/completions", body):
            for choice in event["choices"]:
                joined[choice["index"]] += choice["delta"].get("content", "")
        assert joined == whole and whole[0] != whole[1]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_logprobs_are_those_of_the_whole(http: httpx.Client, path: str) -> None:
    body = dict(CASES[IDS.index("chat" if "chat" in path else "completions")][1])
    body |= {"logprobs": True, "top_logprobs": 2} if "chat" in path else {"logprobs": 2}
    whole = http.post(path, json=body).json()["choices"][0]["logprobs"]
    streamed = [event["choices"][0]["logprobs"] for event in events_of(http, path, body) if event["choices"][0]["logprobs"]]
    for name in whole:
        if whole[name] is not None:
            assert_alike([entry for each in streamed for entry in each[name]], whole[name])
