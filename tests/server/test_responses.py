"""OpenAI's responses with the official client."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel

from maskwright import LLM
from maskwright.constraints import Regex

MODEL = "embedded"
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
}


class Person(BaseModel):
    name: str
    age: int


def test_text(client: openai.OpenAI) -> None:
    reply = client.responses.create(model=MODEL, input="hello", max_output_tokens=6, temperature=0)
    chat = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}], max_tokens=6, temperature=0)
    assert reply.output_text == chat.choices[0].message.content
    assert reply.usage is not None and reply.usage.output_tokens == 6
    assert reply.status == "incomplete" and reply.incomplete_details is not None
    assert reply.incomplete_details.reason == "max_output_tokens"


def test_parse(client: openai.OpenAI) -> None:
    reply = client.responses.parse(model=MODEL, input="Ada Lovelace, 36, lives in London.", text_format=Person)
    assert reply.output_parsed == Person(name="Ada Lovelace", age=36) and reply.status == "completed"


def test_a_call_and_its_result(client: openai.OpenAI) -> None:
    question: Any = {"role": "user", "content": "What is the weather in Paris?"}
    reply = client.responses.create(model=MODEL, input=[question], tools=[WEATHER])
    (call,) = reply.output
    assert call.type == "function_call" and call.name == "get_weather" and json.loads(call.arguments) == {"city": "Paris"}
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    items: Any = [question, call.model_dump(exclude_none=True), result]
    answer = client.responses.parse(model=MODEL, input=items, text_format=Person, max_output_tokens=40)
    assert isinstance(answer.output_parsed, Person)


def test_streams_join_to_the_same(client: openai.OpenAI) -> None:
    with client.responses.stream(model=MODEL, input="Ada Lovelace, 36, lives in London.", text_format=Person) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_parsed == Person(name="Ada Lovelace", age=36)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == final.output_text
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    called = list(client.responses.create(model=MODEL, input="What is the weather in Paris?", tools=[WEATHER], stream=True))
    arguments = "".join(event.delta for event in called if event.type == "response.function_call_arguments.delta")
    assert json.loads(arguments) == {"city": "Paris"}
    assert [event.sequence_number for event in called] == list(range(len(called)))


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"text": {"tone": 1}}, "text.tone"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "robot"}}}}, "text.format.schema"),
        ({"input": [{"type": "item_reference"}]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": "x" * 9000}, "input"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_supported_is_named(client: openai.OpenAI, more: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**{"model": MODEL, "input": "x", **more})
    assert caught.value.param == param


def test_a_stream_that_fails_says_so(client: openai.OpenAI, http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("injected")

    broken = llm.compiler.compile(Regex("fails[a-z]{5}"))
    monkeypatch.setattr(broken, "advance", fail)
    text: Any = {"format": {"type": "regex", "regex": "fails[a-z]{5}"}}
    seen = []
    with pytest.raises(openai.APIError, match="injected") as raised:  # by the client, at the event "error"
        for event in client.responses.create(model=MODEL, input="x", text=text, stream=True):
            seen.append(event.type)
    assert raised.value.code == "generation_failed" and seen[:2] == ["response.created", "response.in_progress"]
    answer = http.post("/v1/responses", json={"input": "x", "text": text, "stream": True}).text.split("\n\n")
    error, failed = (json.loads(event.partition("data: ")[2]) for event in answer[-3:-1])
    assert (error["type"], failed["type"], failed["response"]["status"]) == ("error", "response.failed", "failed")
    assert error["error"]["code"] == failed["response"]["error"]["code"] == "generation_failed"
    assert failed["sequence_number"] == error["sequence_number"] + 1
