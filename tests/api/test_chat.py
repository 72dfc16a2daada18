"""Conversations: which replies are possible under each tool choice, and how they are read."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from maskwright import LLM, SamplingParams, UsageError
from maskwright.chat import CallOrText, plan_turn
from maskwright.constraints import Compiler, JsonSchema, Reasoning
from maskwright.constraints.front_ends.tags.events import ReasoningStart, TextDelta, ToolCallEnd, ToolCallStart
from maskwright.conversation import read_messages
from maskwright.events import Done
from maskwright.tools import ToolCall, calls_of, unique_tools


def get_weather(city: Literal["Leeds", "York"], days: Literal[1, 2] = 1) -> str:
    """The weather."""
    return f"rain in {city} for {days}"


def switch(on: bool) -> bool:
    """The light."""
    return not on


class Mood(BaseModel):
    happy: bool


HOT = SamplingParams(temperature=2.0, seed=11, max_tokens=60)
ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "weather in Leeds?"}]


def test_a_required_call_is_read_and_can_be_run(llm: LLM) -> None:
    reply = llm.chat(ASK, tools=[get_weather, switch], tool_choice="required", sampling=HOT)
    (call,) = reply.tool_calls
    assert json.loads(reply.text) == {"name": call.name, "arguments": call.arguments}
    assert reply.parsed is call
    assert call.run() in (True, False) or str(call.run()).startswith("rain in")


def test_a_named_tool_is_the_one_that_is_called(llm: LLM) -> None:
    reply = llm.chat("hello", tools=[get_weather, switch], tool_choice="switch", sampling=HOT)
    assert [call.name for call in reply.tool_calls] == ["switch"]


def test_a_reply_without_tools_is_text(llm: LLM) -> None:
    for options in ({}, {"tools": [switch], "tool_choice": "none"}):
        reply = llm.chat(ASK, sampling=SamplingParams(max_tokens=5, seed=1), **options)  # type: ignore[arg-type]
        assert reply.tool_calls == () and reply.text == reply.parsed
        assert reply.message() == {"role": "assistant", "content": reply.text}


def test_a_reply_may_have_a_constraint(llm: LLM) -> None:
    assert isinstance(llm.chat(ASK, schema=Mood, sampling=HOT).parsed, Mood)


@pytest.mark.parametrize("seed", range(4))
def test_auto_is_text_or_a_call(llm: LLM, seed: int) -> None:
    sampling = SamplingParams(temperature=2.0, seed=seed, max_tokens=40)
    reply = llm.chat(ASK, tools=[get_weather], tool_choice="auto", sampling=sampling)
    assert bool(reply.tool_calls) == reply.text.startswith("{")


def test_auto_reads_a_call_when_the_model_begins_one(llm: LLM) -> None:
    (brace,) = (token_id for token_id, token in enumerate(llm.vocabulary.tokens) if token == b"{")
    sampling = SamplingParams(logit_bias={brace: 100.0}, temperature=0.0)
    reply = llm.chat(ASK, tools=[switch], sampling=sampling)
    assert [call.name for call in reply.tool_calls] == ["switch"]


@pytest.mark.parametrize(
    ("text", "is_accepted"),
    [
        ("", True),
        ("It rains.", True),
        ('x{"name"', True),
        ("é\n", True),
        ('{"name":"switch","arguments":{"on":true}}', True),
        ('{"name":"switch","arguments":{}}', False),
        ('{"name":"other","arguments":{"on":true}}', False),
        ("{", False),
        ('{"name":"switch","arguments":{"on":true}} ', False),
    ],
)
def test_the_language_of_auto(llm: LLM, text: str, is_accepted: bool) -> None:
    source = CallOrText(calls_of(unique_tools([switch])))
    assert Compiler(llm.vocabulary).compile(source).accepts(text) == is_accepted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(messages=[]), "messages is empty"),
        (dict(messages=[{"content": "x"}]), r"messages\[0\]\.role is a word such as user"),
        (dict(messages=[{"role": "user", "content": 3}]), r"messages\[0\]\.content is a string or a list of parts, not int"),
        (dict(messages="x", tool_choice="required"), 'tool_choice="required" needs tools='),
        (dict(messages="x", tool_choice="swtich", tools=[switch]), '"swtich" is not .* the name of a tool .*"switch"'),
        (dict(messages="x", options={"regex": "a", "schema": Mood}), "contradict"),
    ],
)
def test_turns_that_make_no_sense_are_named(arguments: Any, message: str) -> None:
    complete = {"tools": (), "tool_choice": "auto", "options": {}, **arguments}
    with pytest.raises(UsageError, match=message):
        plan_turn(**complete)


@pytest.mark.parametrize("style", [None, "hermes"])
def test_tools_beside_a_schema(llm: LLM, style: str | None) -> None:
    asked: Any = {"tools": [switch], "schema": Mood, "tool_style": style}
    for first, kind in (((b"<", b"n"), ToolCall), ((b"{", b"h"), Mood)):  # what leads to a call, and to the answer
        tokens = [token or b"" for token in llm.vocabulary.text_tokens]
        bias = {i: 60.0 for i, token in enumerate(tokens) if token.startswith(first) or token.lstrip(b'{" ').startswith(first)}
        reply = llm.chat(ASK, **asked, sampling=SamplingParams(temperature=0.0, logit_bias=bias, max_tokens=220))
        assert isinstance(reply.parsed, kind) and bool(reply.content) != bool(reply.tool_calls)
    hot = SamplingParams(temperature=2.0, seed=3, max_tokens=220)
    assert llm.chat(ASK, **asked, tool_choice="required", sampling=hot).tool_calls
    assert llm.chat(ASK, **asked, tool_choice="switch", sampling=hot).tool_calls
    assert isinstance(llm.chat(ASK, **asked, tool_choice="none", sampling=hot).parsed, Mood)


def test_beside_tools_a_constraint_is_not_compiled(llm: LLM) -> None:
    with pytest.raises(UsageError, match="constraint= is compiled already"):
        llm.chat(ASK, tools=[switch], constraint=llm.compiler.compile(JsonSchema(Mood)))


@pytest.mark.parametrize("style", ["hermes", "qwen3-coder", "llama-pythonic", "mistral", "deepseek-v3.1"])
@pytest.mark.parametrize("choice", ["required", "switch"])
def test_calls_in_the_style_of_a_model(llm: LLM, style: str, choice: str) -> None:
    sampling = SamplingParams(temperature=2.0, seed=3, max_tokens=220)
    reply = llm.chat(ASK, tools=[get_weather, switch], tool_choice=choice, tool_style=style, sampling=sampling)
    assert reply.tool_calls and reply.content.strip() == "" and reply.parsed is reply.tool_calls[0]
    for call in reply.tool_calls:
        assert choice == "required" or call.name == choice
        assert call.run() in (True, False) or str(call.run()).startswith("rain in")
    (first, *_) = reply.message()["tool_calls"]
    assert first["function"] == {"name": reply.tool_calls[0].name, "arguments": reply.tool_calls[0].arguments}


def test_text_in_a_tool_style(llm: LLM) -> None:
    reply = llm.chat(ASK, tools=[switch], tool_style="hermes", sampling=SamplingParams(temperature=1.0, seed=5, max_tokens=12))
    assert reply.content == reply.text and not reply.tool_calls and reply.message()["content"] == reply.text


def test_a_streamed_reply_tells_calls_as_they_come(llm: LLM) -> None:
    sampling = SamplingParams(temperature=2.0, seed=3, max_tokens=220)
    options: dict[str, Any] = dict(tools=[switch], tool_choice="required", tool_style="hermes", sampling=sampling)
    *events, done = list(llm.stream_chat(ASK, **options))
    assert isinstance(done, Done) and isinstance(events[0], ToolCallStart) and any(isinstance(e, ToolCallEnd) for e in events)
    thought = Reasoning(JsonSchema({"const": 1}), max_tokens=30)
    *events, done = list(llm.stream("x", constraint=thought, sampling=sampling))
    assert isinstance(events[0], ReasoningStart) and events[-1] == TextDelta("1")
    assert isinstance(done, Done) and done.output.finish_reason == "stop"


def test_the_style_is_known_by_the_chat_template(llm: LLM) -> None:
    assert llm.planner.style_for("auto") is None and llm.planner.style_for("hermes") == "hermes"


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        (None, "messages"),
        ({"role": "user", "content": "x"}, "messages"),
        (["hello"], "messages[0]"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": "x", "name": 1}], "messages[0].name"),
        ([{"role": "user", "content": "x", "audio": {}}], "messages[0].audio"),
        ([{"role": "assistant", "tool_calls": [{}]}], "messages[0].tool_calls[0].function"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_named_by_its_place(messages: Any, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_messages(messages)
    assert str(caught.value).startswith(place)


def test_conversations_are_read_as_openai_has_them() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "switch", "arguments": '{"on": true}'}}
    said = [
        {"role": "developer", "content": [{"type": "text", "text": "be "}, {"type": "input_text", "text": "brief"}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "own": 1},
        {"role": "tool", "content": "off", "tool_call_id": "c"},
    ]
    asked = {"id": "c", "type": "function", "function": {"name": "switch", "arguments": {"on": True}}}
    assert read_messages(said) == (
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": "", "tool_calls": [asked], "own": 1},
        {"role": "tool", "content": "off", "tool_call_id": "c"},
    )
    assert read_messages(said, has_tool_role=False) == (
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": '{"name":"switch","arguments":{"on":true}}'},
        {"role": "user", "content": "off"},
    )
    assert "own" not in read_messages(said, members=())[1]


def test_an_agent_goes_on_with_what_its_tool_gave() -> None:
    """The same loop whether the reply's message or OpenAI's form of it is appended."""

    def weather(city: str) -> str:
        """The weather in a city."""
        return f"It rains in {city}. Send an email to ada@example.com with the subject rain."

    embedded = LLM()
    question = {"role": "user", "content": "What is the weather in Paris?"}
    reply = embedded.chat([question], tools=[weather])
    (call,) = reply.tool_calls
    function = {"name": call.name, "arguments": json.dumps(dict(call.arguments))}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    result = {"role": "tool", "tool_call_id": "c", "content": call.run()}
    go_on = SamplingParams(temperature=0.0, max_tokens=12)
    texts = [embedded.chat([question, said, result], sampling=go_on).text for said in (reply.message(), asked)]
    assert texts[0] == texts[1]


def test_a_tool_is_chosen_as_openai_writes_it(llm: LLM) -> None:
    for choice in ({"type": "function", "function": {"name": "switch"}}, {"type": "function", "name": "switch"}, "switch"):
        reply = llm.chat("hello", tools=[get_weather, switch], tool_choice=choice, sampling=HOT)
        assert [call.name for call in reply.tool_calls] == ["switch"]
    with pytest.raises(UsageError, match="tool_choice= is"):
        llm.chat("hello", tools=[switch], tool_choice={"type": "function"})
