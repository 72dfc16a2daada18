"""Pydantic AI: typed outputs in each of its modes, and an agent that does a small task with tools."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from ..serving import TIMEOUT, Served
from .installed import QUIET, client_library
from .people import ADA, MODEL, TEXT, Person

pydantic_ai = client_library("pydantic_ai")
pytestmark = QUIET


class Email(BaseModel):
    """Send an email."""

    to: str
    subject: str


def answer(server: Served, question: str, *, is_responses: bool = False, **options: Any) -> Any:
    """What an agent with these options makes of a question."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    tools = options.pop("tools", ())

    async def run() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=TIMEOUT) as client:
            kind = OpenAIResponsesModel if is_responses else OpenAIChatModel
            model = kind(MODEL, provider=OpenAIProvider(openai_client=client))
            agent = pydantic_ai.Agent(model, tools=tools, **options)
            return await agent.run(question, usage_limits=pydantic_ai.UsageLimits(request_limit=4))

    return asyncio.run(run())


@pytest.mark.parametrize("is_responses", [False, True], ids=["chat", "responses"])
def test_native_output(server: Served, is_responses: bool) -> None:
    result = answer(server, TEXT, is_responses=is_responses, output_type=pydantic_ai.NativeOutput(Person))
    assert result.output == ADA
    assert result.usage.input_tokens > 0 and result.usage.output_tokens > 0


def test_output_as_a_tool_call(server: Served) -> None:
    assert answer(server, TEXT, output_type=Person).output.age == 36


def test_streamed_output(server: Served) -> None:
    seen: list[Any] = []

    async def run() -> None:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=TIMEOUT) as client:
            model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
            agent = pydantic_ai.Agent(model, output_type=pydantic_ai.NativeOutput(Person))
            async with agent.run_stream(TEXT) as stream:
                seen.extend([each async for each in stream.stream_output(debounce_by=None)])

    asyncio.run(run())
    assert seen[-1] == ADA


def test_an_agent_completes_its_task(server: Served) -> None:
    """The model decides for itself: it asks for the weather, reads the answer, and ends with the email that the answer asks for."""
    asked = []

    def get_weather(city: str) -> str:
        asked.append(city)
        return "It rains in Paris. Send an email to ada@example.com with the subject rain."

    output = pydantic_ai.ToolOutput(Email, name="send_email")
    result = answer(server, "What is the weather in Paris?", output_type=output, tools=[get_weather])
    assert asked == ["Paris"]
    assert result.output == Email(to="ada@example.com", subject="rain")
