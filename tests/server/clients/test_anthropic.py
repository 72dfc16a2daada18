"""Anthropic's official client: messages, streams, tools, structured output, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ..serving import TIMEOUT, Served
from .installed import QUIET, client_library
from .people import ADA, MESSAGES, MODEL, Person

anthropic = client_library("anthropic")
pytestmark = QUIET
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"name": "get_weather", "description": "The weather in a city.", "input_schema": CITY, "strict": True}
ASKED: Any = {"model": MODEL, "max_tokens": 64, "messages": MESSAGES}


@pytest.fixture(scope="module")
def claude(server: Served) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=TIMEOUT) as connected:
        yield connected


def test_text(claude: Any) -> None:
    reply = claude.messages.create(**{**ASKED, "max_tokens": 6}, system="Be brief.")
    (block,) = reply.content
    assert (reply.type, reply.role, block.type, reply.stop_reason) == ("message", "assistant", "text", "max_tokens")
    assert block.text and reply.usage.output_tokens == 6 and reply.id.startswith("msg_")
    parts = claude.messages.create(**{**ASKED, "max_tokens": 6}, system=[{"type": "text", "text": "Be brief."}])
    assert parts.content[0].text == block.text


def test_a_stream_joins_to_the_message(claude: Any) -> None:
    asked = {**ASKED, "max_tokens": 9}
    whole = claude.messages.create(**asked)
    with claude.messages.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text and final.stop_reason == whole.stop_reason == "max_tokens"
    assert final.usage.output_tokens == 9
    assert final.usage.input_tokens + final.usage.cache_read_input_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens
    raw = [kind for kind in kinds if kind in ("message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop")]
    assert raw == ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]


@pytest.mark.parametrize("stream", [False, True])
def test_stop_sequences(claude: Any, stream: bool) -> None:
    text = claude.messages.create(**ASKED).content[0].text
    mark, unmet = text[3:5], "\u2603"
    asked = {**ASKED, "stop_sequences": [unmet, mark]}
    if stream:
        with claude.messages.stream(**asked) as events:
            reply = events.get_final_message()
    else:
        reply = claude.messages.create(**asked)
    assert (reply.stop_reason, reply.stop_sequence) == ("stop_sequence", mark)
    assert reply.content[0].text == text[: text.index(mark)]


def test_parse_gives_an_instance(claude: Any) -> None:
    assert claude.messages.parse(**ASKED, output_format=Person).parsed_output == ADA
    with claude.messages.stream(**ASKED, output_format=Person) as stream:
        assert stream.get_final_message().parsed_output == ADA


def test_output_format_of_the_beta(claude: Any) -> None:
    form = {"type": "json_schema", "schema": Person.model_json_schema()}
    reply = claude.messages.create(**ASKED, extra_body={"output_format": form})
    assert Person.model_validate_json(reply.content[0].text) == ADA


@pytest.mark.parametrize(
    "choice", [{}, {"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}}], ids=str
)
def test_a_tool_is_used(claude: Any, choice: Any) -> None:
    asked = {**ASKED, "messages": QUESTION, "tools": [WEATHER], **choice}
    whole = claude.messages.create(**asked)
    with claude.messages.stream(**asked) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        streamed = stream.get_final_message()
    for reply in (whole, streamed):
        (block,) = reply.content
        assert (block.type, block.name, block.input, reply.stop_reason) == ("tool_use", "get_weather", {"city": "Paris"}, "tool_use")
        assert block.id.startswith("toolu_")
    assert json.loads("".join(pieces)) == {"city": "Paris"}


def test_no_tool_when_none_is_wanted(claude: Any) -> None:
    reply = claude.messages.create(**{**ASKED, "max_tokens": 6, "messages": QUESTION}, tools=[WEATHER], tool_choice={"type": "none"})
    assert [block.type for block in reply.content] == ["text"]


def test_a_loop_of_tools_completes_its_task(claude: Any) -> None:
    """The weather is asked for, then what the result says is done: an email is written."""
    send = {"properties": {"to": {"type": "string", "format": "email"}, "subject": {"type": "string"}}, "required": ["to", "subject"]}
    tools = [WEATHER, {"name": "send_email", "input_schema": {"type": "object", **send}}]
    messages, used = list(QUESTION), []
    while not used or used[-1][0] != "send_email":
        reply = claude.messages.create(**{**ASKED, "messages": messages}, tools=tools)
        (block,) = reply.content
        used.append((block.name, block.input))
        assert reply.stop_reason == "tool_use" and len(used) < 4
        result = "It rains in Paris. Send an email to ada@example.com with the subject rain."
        messages.append({"role": "assistant", "content": reply.content})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": block.id, "content": result}]})
    assert used == [("get_weather", {"city": "Paris"}), ("send_email", {"to": "ada@example.com", "subject": "rain"})]


def test_tokens_are_counted(claude: Any) -> None:
    counted = claude.messages.count_tokens(model=MODEL, messages=MESSAGES, system="Be brief.").input_tokens
    usage = claude.messages.create(**ASKED, system="Be brief.").usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens


def test_earlier_blocks_are_read(claude: Any) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hel", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "lo"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "hi"}]},
        {"role": "user", "content": "again"},
    ]
    plain = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "again"}]
    replies = [claude.messages.create(model=MODEL, max_tokens=5, messages=each).content for each in (messages, plain)]
    assert replies[0] == replies[1]


@pytest.mark.parametrize(
    ("more", "kind", "param"),
    [
        ({"model": "claude"}, anthropic.NotFoundError, "model"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "robot"}}}}, anthropic.BadRequestError, "output_config.format.schema"),
        ({"output_config": {"tone": 1}}, anthropic.BadRequestError, "output_config.tone"),
        ({"extra_body": {"mcp_servers": [{"url": "x"}]}}, anthropic.BadRequestError, "mcp_servers"),
        ({"tools": [{"name": "f", "input_schema": {"type": "array"}}]}, anthropic.BadRequestError, "tools"),
        ({"tools": [WEATHER], "tool_choice": {"type": "some"}}, anthropic.BadRequestError, "tool_choice.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "g"}}, anthropic.BadRequestError, "tool_choice"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, anthropic.BadRequestError, "messages[0].content[0]"),
        ({"messages": [*MESSAGES, {"role": "assistant", "content": ""}]}, anthropic.BadRequestError, "messages[1]"),
        ({"thinking": {"type": "much"}}, anthropic.BadRequestError, "thinking.type"),
        ({"thinking": {"type": "enabled", "budget_tokens": -1}}, anthropic.BadRequestError, "thinking.budget_tokens"),
        ({"max_tokens": 0}, anthropic.BadRequestError, "max_tokens"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_what_is_refused_is_named(claude: Any, more: Any, kind: type[Exception], param: str) -> None:
    with pytest.raises(kind) as caught:
        claude.messages.create(**{**ASKED, **more})
    body = caught.value.body  # type: ignore[attr-defined]
    assert body["type"] == "error" and body["error"]["type"] in ("invalid_request_error", "not_found_error")
    assert body["error"]["param"] == param and body["request_id"]


def test_sampling_is_kept(claude: Any) -> None:
    """The client has no parameters for it any more; other clients send them."""
    more = {"temperature": 1.5, "top_k": 40, "top_p": 0.9, "metadata": {"user_id": "u"}, "thinking": {"type": "disabled"}}
    texts = (claude.messages.create(**{**ASKED, "max_tokens": 8}, extra_body=more).content[0].text for _ in range(50))
    first = next(texts)
    assert any(text != first for text in texts)
