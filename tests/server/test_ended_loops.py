"""Values that were ended because the model repeated itself: answers tell it under `loops` on every endpoint, whole and streamed."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.server.answers import ChatCompletion, ChatCompletionChunk, Completion, MessageAnswer, ResponseAnswer
from maskwright.server.llamacpp.answers import LlamaFinal
from maskwright.server.sglang.answers import Generated

from .test_captured import CHAT, COMPLETIONS, MESSAGES, RESPONSES, events, post

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["a", "b"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
SAID: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 120}
BOUND = 10


@pytest.fixture
def loops(llm: LLM) -> dict[str, Any]:
    """What makes the model say x again and again."""
    (token_id,) = [number for number, token in enumerate(llm.vocabulary.tokens) if token == b"x"]
    return {"temperature": 0, "logit_bias": {str(token_id): 60}, "json_schema": SCHEMA, "loop_bound": BOUND}


def told(text: str) -> list[dict[str, Any]]:
    assert json.loads(text)["a"] == "x" * BOUND
    return [{"path": "#/a", "text": "x", "count": BOUND, "start": pytest.approx(4, abs=4)}]


@pytest.mark.parametrize(("path", "body", "model"), [(CHAT, SAID, ChatCompletion), (COMPLETIONS, {"prompt": "x", "max_tokens": 120}, Completion)])
def test_completions_tell_them_in_each_choice(http: httpx.Client, loops: dict[str, Any], path: str, body: Any, model: Any) -> None:
    asked = {**body, **loops, "n": 2}
    whole = post(http, path, asked)
    model.model_validate(whole)
    for choice in whole["choices"]:
        assert choice["loops"] == told(choice["message"]["content"] if "message" in choice else choice["text"])
    streamed = events(http, path, asked)
    ends = [choice for event in streamed for choice in event["choices"] if choice["finish_reason"] is not None]
    assert [choice["loops"] for choice in ends] == [choice["loops"] for choice in whole["choices"]]
    assert sum("loops" in choice for event in streamed for choice in event["choices"]) == 2
    if path == CHAT:
        ChatCompletionChunk.model_validate(streamed[-1])


def test_responses_messages_and_ollama_tell_them_at_their_end(http: httpx.Client, loops: dict[str, Any]) -> None:
    asked: Any = {"input": "hello", "max_output_tokens": 120, **loops}
    response = post(http, RESPONSES, asked)
    ResponseAnswer.model_validate(response)
    assert response["loops"] == told(response["output"][0]["content"][0]["text"])
    first, *_, last = events(http, RESPONSES, asked)
    assert "loops" not in first["response"] and last["response"]["loops"] == response["loops"]
    message = post(http, MESSAGES, {**SAID, **loops})
    MessageAnswer.model_validate(message)
    assert message["loops"] == told(message["content"][0]["text"])
    first, *_, last, _ = events(http, MESSAGES, {**SAID, **loops})
    assert "loops" not in first["message"] and last["loops"] == message["loops"]
    options = {"temperature": 0, "num_predict": 90, "loop_bound": 1000}
    assert "loops" not in post(http, "/api/generate", {"prompt": "x", "format": SCHEMA, "options": options, "stream": False})


def test_llamacpps_and_sglangs_routes_tell_them(http: httpx.Client, loops: dict[str, Any]) -> None:
    asked = {"prompt": "x", "n_predict": 120, **loops}
    answer = post(http, "/completion", asked)
    LlamaFinal.model_validate(answer)
    found = answer["loops"]
    assert found[0]["count"] >= BOUND
    assert events(http, "/completion", asked)[-1]["loops"] == found
    asked = {"text": "x", "sampling_params": {**loops, "json_schema": json.dumps(SCHEMA), "max_new_tokens": 120}}
    generated = post(http, "/generate", asked)
    Generated.model_validate(generated)
    assert generated["meta_info"]["loops"] == found and generated["text"] == answer["content"]
    first, *_, last = events(http, "/generate", asked)
    assert "loops" not in first["meta_info"] and last["meta_info"]["loops"] == found


def test_in_tags_values_are_those_of_their_schema(http: httpx.Client, loops: dict[str, Any]) -> None:
    tag = {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": "</f>"}
    asked = {name: value for name, value in loops.items() if name not in ("json_schema", "loop_bound")}
    (choice,) = post(http, CHAT, {**SAID, **asked, "response_format": {"type": "structural_tag", "format": tag}})["choices"]
    text = choice["message"]["content"]
    assert json.loads(text.removeprefix("<f>").removesuffix("</f>"))["a"] == "x" * 32
    assert [each["path"] for each in choice["loops"]] == ["<f>#/a"]


def test_the_default_holds_for_schemas_and_tools(http: httpx.Client, loops: dict[str, Any]) -> None:
    del loops["loop_bound"]
    text = post(http, CHAT, {**SAID, **loops})["choices"][0]["message"]["content"]
    assert json.loads(text)["a"] == "x" * 32
    asked = {name: value for name, value in loops.items() if name != "json_schema"}
    (choice,) = post(http, CHAT, {**SAID, **asked, "tools": [TOOL], "tool_choice": "required"})["choices"]
    assert choice["loops"][0]["path"] == "f#/a"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["a"] == "x" * 32
    free = post(http, CHAT, {**SAID, **asked})["choices"][0]
    assert "loops" not in free and "x" * 60 in free["message"]["content"]


def test_it_can_be_switched_off_and_has_no_meaning_for_free_text(http: httpx.Client, loops: dict[str, Any]) -> None:
    (choice,) = post(http, CHAT, {**SAID, **loops, "loop_bound": 0})["choices"]
    assert "loops" not in choice and len(json.loads(choice["message"]["content"])["a"]) > 60
    for wrong in ({**SAID, "loop_bound": 8}, {**SAID, **loops, "loop_bound": -1}):
        answer = http.post(CHAT, json=wrong)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "loop_bound"), answer.text


def test_details_of_tokens_say_why_the_favourite_was_masked(http: httpx.Client, loops: dict[str, Any]) -> None:
    (choice,) = post(http, CHAT, {**SAID, **loops, "maskwright": {"tokens": True, "candidates": 1}})["choices"]
    reasons = [each.get("reason") for token in choice["maskwright"]["tokens"] for each in token["candidates"] if each["token"] == "x"]
    assert any(reason and "repeats itself" in reason for reason in reasons)


def test_they_are_counted(http: httpx.Client, loops: dict[str, Any]) -> None:
    def count() -> float:
        (line,) = re.findall(r"^maskwright:ended_loops_total\{.*\} (\S+)$", http.get("/metrics").text, re.MULTILINE)
        return float(line)

    before = count()
    post(http, CHAT, {**SAID, **loops})
    assert count() == before + 1
