"""LangChain's ChatOpenAI: structured output by schema and by tool, tools, streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ..serving import Served
from .installed import QUIET, client_library
from .people import ADA, MODEL, TEXT, Person

langchain_openai = client_library("langchain_openai")
pytestmark = QUIET


@pytest.fixture
def chat(server: Served, http: httpx.Client) -> Callable[..., Any]:
    """Makes a ChatOpenAI."""
    where: Any = {"base_url": f"{server.url}/v1", "api_key": "none", "model": MODEL, "max_retries": 0, "http_client": http}
    return lambda **options: langchain_openai.ChatOpenAI(**where, **options)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_with_structured_output(chat: Callable[..., Any], method: str) -> None:
    found = chat().with_structured_output(Person, method=method).invoke(TEXT)
    assert isinstance(found, Person) and found.age == ADA.age and found.name in ADA.name


def test_with_structured_output_of_responses(chat: Callable[..., Any]) -> None:
    assert chat(use_responses_api=True).with_structured_output(Person).invoke(TEXT) == ADA


def test_tools(chat: Callable[..., Any]) -> None:
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return city

    reply = chat().bind_tools([get_weather]).invoke("What is the weather in Paris?")
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("get_weather", {"city": "Paris"})]


def test_a_stream_joins_to_the_reply(chat: Callable[..., Any]) -> None:
    model = chat(stream_usage=True, max_tokens=8, temperature=0)
    whole, chunks = model.invoke(TEXT), list(model.stream(TEXT))
    assert "".join(chunk.content for chunk in chunks) == whole.content
    assert [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata][-1]["output_tokens"] == 8
