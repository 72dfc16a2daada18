"""The model that ships: agents end, whatever their tools return, and an object of any form says something."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from maskwright import LLM, SamplingParams
from maskwright.conversation import answered_tools

CASES = [
    ("What is the weather in Porto?", {"temperature": 18, "sky": "cloudy"}),
    ("Is it raining in Oslo?", "yes, 12 degrees"),
    ("Weather in Rome and then in Paris, please.", "unknown city"),
    ("Get the weather for Lima", None),
    ("weather, Cairo", [1, 2, 3]),
]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
MOST_TURNS = 3


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: its name
    """
    return f"{city}: 18 degrees"


@pytest.mark.parametrize(("question", "result"), CASES)
def test_an_agent_on_chat_completions_ends(http: httpx.Client, question: str, result: Any) -> None:
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": PARAMETERS}}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(MOST_TURNS):
        answer = http.post("/v1/chat/completions", json={"messages": messages, "tools": tools, "temperature": 0, "max_tokens": 100}).json()
        message = answer["choices"][0]["message"]
        if not message.get("tool_calls"):
            break
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)} for call in message["tool_calls"]]
    assert not message.get("tool_calls") and message["content"] and answer["choices"][0]["finish_reason"] in ("stop", "length")


@pytest.mark.parametrize(("question", "result"), CASES[:2])
def test_an_agent_on_messages_ends(http: httpx.Client, question: str, result: Any) -> None:
    tools = [{"name": "get_weather", "description": "The weather of a city.", "input_schema": PARAMETERS}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(MOST_TURNS):
        answer = http.post("/v1/messages", json={"model": "embedded", "messages": messages, "tools": tools, "temperature": 0, "max_tokens": 100}).json()
        uses = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not uses:
            break
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": json.dumps(result)} for use in uses]
        messages += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
    assert not uses and answer["content"][0]["text"]


@pytest.mark.parametrize(("question", "result"), CASES[:2])
def test_an_agent_on_responses_ends(http: httpx.Client, question: str, result: Any) -> None:
    tools = [{"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": PARAMETERS}]
    items: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(MOST_TURNS):
        answer = http.post("/v1/responses", json={"input": items, "tools": tools, "temperature": 0, "max_output_tokens": 100}).json()
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        if not calls:
            break
        items += [*calls, *({"type": "function_call_output", "call_id": call["call_id"], "output": json.dumps(result)} for call in calls)]
    assert not calls and answer["output"][-1]["content"][0]["text"]


def test_an_agent_in_python_ends(llm: LLM) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What is the weather in Porto?"}]
    reply = llm.chat(messages, tools=[get_weather], tool_choice="required")
    messages += [reply.message(), {"role": "tool", "tool_call_id": "1", "content": reply.tool_calls[0].run()}]
    told = llm.chat(messages, tools=[get_weather], sampling=SamplingParams(temperature=0.0, max_tokens=100))
    assert not told.tool_calls and told.text


def test_a_call_that_is_asked_for_behind_a_result_comes(llm: LLM, http: httpx.Client) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Porto"}'}}
    messages = [
        {"role": "user", "content": "Porto, then Lima"}, {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "18"},
    ]  # fmt: skip
    for choice in ("required", "get_weather"):
        assert llm.chat(messages, tools=[get_weather], tool_choice=choice).tool_calls
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
    answer = http.post("/v1/chat/completions", json={"messages": messages, "tools": tools, "tool_choice": "required", "temperature": 0})
    assert answer.json()["choices"][0]["message"]["tool_calls"]


def test_which_tools_a_conversation_has_answered() -> None:
    def call(name: Any) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"function": {"name": name}}]}

    result, question = {"role": "tool", "content": "x"}, {"role": "user", "content": "q"}
    assert answered_tools([question, call("a"), result]) == {"a"}
    assert answered_tools([question, call("a"), result, call("b"), result, result]) == {"a", "b"}
    assert answered_tools([question, call("a"), result, question, call("b"), result]) == {"b"}
    assert answered_tools([question, {"role": "assistant", "content": '{"name":"a","arguments":{}}'}, result]) == {"a"}
    for nothing in ([question, call("a"), result, question], [question, call("a")], [], "text", None, [1], [result], [call(7), result], [{"role": "assistant", "content": "{no"}, result], [{"role": "assistant", "tool_calls": 5}, result]):
        assert answered_tools(nothing) == set(), nothing


@pytest.mark.parametrize("text", ["Ada Lovelace, 36, lives in London.", "hello", "Give me a JSON with a city and its country", "Say something as JSON."])
def test_an_object_of_any_form_has_a_member_with_words_of_the_text(http: httpx.Client, text: str) -> None:
    asked = {"messages": [{"role": "user", "content": text}], "response_format": {"type": "json_object"}, "temperature": 0, "max_tokens": 100}
    value = json.loads(http.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"])
    assert list(value) == ["text"] and value["text"].strip() and value["text"].split()[0] in text
