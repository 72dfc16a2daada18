"""The official client against the embedded model."""

from __future__ import annotations

import json
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from maskwright import LLM, SamplingParams

MODEL = "embedded"
ADA = [{"role": "user", "content": "Ada Lovelace, 36, lives in London."}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
TIME: Any = {
    "type": "function",
    "function": {"name": "get_time", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}},
}


class Person(BaseModel):
    name: str
    age: int


class Plan(BaseModel):
    plan: Literal["free", "pro"]


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).owned_by == "maskwright"


def test_chat_gives_what_the_library_gives(client: openai.OpenAI, llm: LLM) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=ADA, max_tokens=12, temperature=0)
    expected = llm.chat(ADA, sampling=SamplingParams(temperature=0, max_tokens=12))
    (choice,) = reply.choices
    assert choice.message.content == expected.text
    assert choice.finish_reason == expected.output.finish_reason
    assert reply.usage is not None
    assert reply.usage.completion_tokens == len(expected.output.token_ids)
    assert reply.usage.prompt_tokens == expected.output.usage.prompt_tokens
    assert reply.id.startswith("chatcmpl-")


def test_a_stream_joins_to_the_reply(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": ADA, "max_tokens": 10, "temperature": 1.0, "seed": 5}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    assert chunks[-1].usage is not None and whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 10
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_parse_gives_an_instance(client: openai.OpenAI) -> None:
    reply = client.chat.completions.parse(model=MODEL, messages=ADA, response_format=Person)  # type: ignore[arg-type]
    assert reply.choices[0].message.parsed == Person(name="Ada Lovelace", age=36)
    assert reply.choices[0].finish_reason == "stop"


def test_parse_while_streaming(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=ADA, response_format=Person) as stream:  # type: ignore[arg-type]
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == Person(name="Ada Lovelace", age=36)
    assert "content.delta" in kinds and "content.done" in kinds


def test_several_outputs_and_seeds(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": ADA, "max_tokens": 6, "temperature": 1.5, "n": 3, "seed": 11}
    first, second = (client.chat.completions.create(**asked) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert texts == [choice.message.content for choice in second.choices]
    assert len(set(texts)) > 1
    streamed = ["", "", ""]
    for chunk in client.chat.completions.create(**asked, stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert streamed == texts


def test_logprobs(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": ADA, "max_tokens": 4, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    choice = client.chat.completions.create(**asked).choices[0]
    assert choice.logprobs is not None and choice.logprobs.content is not None
    content = choice.logprobs.content
    assert len(content) == 4
    assert b"".join(bytes(token.bytes or []) for token in content).decode() == choice.message.content
    assert all(token.top_logprobs[0].logprob == token.logprob and len(token.top_logprobs) == 2 for token in content)
    streamed = [
        token
        for chunk in client.chat.completions.create(**asked, stream=True)
        if chunk.choices and chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content or []
    ]
    assert [token.token for token in streamed] == [token.token for token in content]
    # A prompt found in the cache goes through the model in other shapes, so the last digits may differ.
    for one, other in zip(streamed, content, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert [top.token for top in one.top_logprobs] == [top.token for top in other.top_logprobs]
        assert [top.logprob for top in one.top_logprobs] == pytest.approx([top.logprob for top in other.top_logprobs], abs=1e-4)


def test_stop_strings(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": ADA, "max_tokens": 24, "temperature": 0}
    text = client.chat.completions.create(**asked).choices[0].message.content or ""
    mark = text[3:5]
    choice = client.chat.completions.create(**asked, stop=[mark]).choices[0]
    assert choice.message.content == text[: text.index(mark)] and choice.finish_reason == "stop"
    kept = client.chat.completions.create(**asked, stop=mark, extra_body={"include_stop_str_in_output": True}).choices[0]
    assert kept.message.content == text[: text.index(mark)] + mark


def test_completions(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "prompt": ["one", "three"], "max_tokens": 4, "temperature": 0, "logprobs": 1}
    whole = client.completions.create(**asked)
    assert [choice.index for choice in whole.choices] == [0, 1]
    for choice in whole.choices:
        assert choice.logprobs is not None and choice.logprobs.tokens is not None
        assert "".join(choice.logprobs.tokens) == choice.text
        assert choice.logprobs.text_offset is not None and choice.logprobs.text_offset[0] == 0
    streamed = ["", ""]
    for chunk in client.completions.create(**asked, stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].text
    assert streamed == [choice.text for choice in whole.choices]


def test_best_of_and_token_prompts(client: openai.OpenAI, llm: LLM) -> None:
    token_ids = list(llm.tokenizer.encode("one"))
    asked: Any = {"model": MODEL, "max_tokens": 3, "temperature": 1.2, "seed": 3}
    best = client.completions.create(**asked, prompt=token_ids, n=1, best_of=3)
    assert len(best.choices) == 1 and best.usage is not None and best.usage.completion_tokens >= 3
    assert best.usage.prompt_tokens == len(token_ids)


# -- tools ----------------------------------------------------------------------------------------------------------------


def ask_weather(client: openai.OpenAI, **options: Any) -> Any:
    messages: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
    return client.chat.completions.create(model=MODEL, messages=messages, **{"tools": [WEATHER], "max_tokens": 64, **options})


def test_a_tool_is_called(client: openai.OpenAI) -> None:
    choice = ask_weather(client).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    (call,) = choice.message.tool_calls
    assert call.function.name == "get_weather" and json.loads(call.function.arguments) == {"city": "Paris"}
    assert call.id.startswith("call_")


def test_streamed_calls_join_to_the_same(client: openai.OpenAI) -> None:
    name, arguments, ids, reason = "", "", set(), None
    for chunk in ask_weather(client, stream=True):
        choice = chunk.choices[0]
        reason = choice.finish_reason or reason
        for call in choice.delta.tool_calls or []:
            assert call.index == 0
            name += call.function.name or ""
            arguments += call.function.arguments or ""
            ids |= {call.id} - {None}
    assert (name, json.loads(arguments), reason, len(ids)) == ("get_weather", {"city": "Paris"}, "tool_calls", 1)


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "get_time"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_time"}}]}},
    ],
)
def test_tool_choice_is_kept(client: openai.OpenAI, choice: Any) -> None:
    reply = ask_weather(client, tools=[WEATHER, TIME], tool_choice=choice, temperature=1.3, seed=2, max_tokens=40)
    (call,) = reply.choices[0].message.tool_calls
    wanted = {"get_weather", "get_time"} if choice == "required" else {"get_time"}
    assert call.function.name in wanted
    assert isinstance(json.loads(call.function.arguments), dict)


def test_no_call_when_none_is_wanted(client: openai.OpenAI) -> None:
    choice = ask_weather(client, tool_choice="none", max_tokens=8).choices[0]
    assert not choice.message.tool_calls and choice.message.content


def test_an_agent_loop_completes_its_task(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
    call = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER]).choices[0].message
    messages.append(call.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": '{"sky": "rain", "degrees": 9}'})
    report = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Plan, max_tokens=40)
    assert isinstance(report.choices[0].message.parsed, Plan)
