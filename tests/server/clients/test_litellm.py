"""LiteLLM as a client of an OpenAI-compatible server."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from .installed import QUIET, client_library
from .people import ADA, MESSAGES, MODEL, Person

litellm = client_library("litellm")
pytestmark = QUIET
WEATHER: Any = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}


def complete(client: openai.OpenAI, **options: Any) -> Any:
    return litellm.completion(**{"model": f"openai/{MODEL}", "client": client, "messages": MESSAGES, **options})


def test_response_format(client: openai.OpenAI) -> None:
    reply = complete(client, response_format=Person)
    assert Person.model_validate_json(reply.choices[0].message.content) == ADA
    assert reply.usage.completion_tokens > 0


def test_streams(client: openai.OpenAI) -> None:
    chunks = list(complete(client, response_format=Person, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert Person.model_validate_json(text) == ADA
    assert chunks[-1].usage.completion_tokens > 0


def test_tools(client: openai.OpenAI) -> None:
    question: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
    whole = complete(client, messages=question, tools=[WEATHER])
    chunks = list(complete(client, messages=question, tools=[WEATHER], stream=True))
    for choice in (whole.choices[0], litellm.stream_chunk_builder(chunks).choices[0]):
        (call,) = choice.message.tool_calls
        assert call.function.name == "get_weather" and call.function.arguments == '{"city":"Paris"}'
    reasons = {chunk.choices[0].finish_reason for chunk in chunks} - {None}
    assert whole.choices[0].finish_reason == "tool_calls" and reasons == {"tool_calls"}


def test_errors_keep_their_kind(client: openai.OpenAI) -> None:
    with pytest.raises(litellm.BadRequestError, match="never closed"):
        complete(client, extra_body={"regex": "(["})
