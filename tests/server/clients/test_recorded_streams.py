"""Client libraries read recorded streams as they were meant, and raise where a stream fails in its middle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter

from ..recorded.rules import events_of
from ..recorded.streams import Reply, stream_of, whole_of
from ..test_stream_splits import CASES, RECORDED
from .installed import QUIET, client_library
from .readers import READERS, Replay, replaying

pytestmark = QUIET
REPLIES = [pytest.param(*case, id=f"{case[0]} {case[1]}") for case in CASES]


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    with replaying() as running:
        yield running


def recorded(style: str, number: int, **more: Any) -> Reply:
    text = RECORDED[style][number][0]
    return Reply(style, text, range(3, len(text.encode()), 7), **more)


@pytest.mark.parametrize("library", READERS)
@pytest.mark.parametrize(("style", "number"), REPLIES)
def test_a_library_reads_what_was_said(replay: Replay, library: str, style: str, number: int) -> None:
    endpoint, read = READERS[library]
    _, content, reasoning, calls = RECORDED[style][number]
    replay.stream = stream_of(endpoint, recorded(style, number))
    text, thought, called = read(replay.url)
    assert text == content and thought in ("", reasoning)
    assert [(name, json.loads(told) if isinstance(told, str) else told) for name, told in called] == calls


@pytest.mark.parametrize("library", READERS)
@pytest.mark.parametrize("fails_after", [0, 1, 4])
def test_a_library_raises_what_fails(replay: Replay, library: str, fails_after: int) -> None:
    """Half an answer is none."""
    endpoint, read = READERS[library]
    replay.stream = stream_of(endpoint, recorded("hermes", 0, fails_after=fails_after))
    with pytest.raises(Exception, match="injected"):
        read(replay.url)


@cache
def forms_of(endpoint: str) -> tuple[TypeAdapter[Any], TypeAdapter[Any]]:
    """What an official client declares of an answer that is whole, and of an event."""
    if endpoint == "messages":
        types = client_library("anthropic").types
        return TypeAdapter(types.Message), TypeAdapter(types.RawMessageStreamEvent)
    if endpoint == "responses":
        from openai.types.responses import Response, ResponseStreamEvent

        return TypeAdapter(Response), TypeAdapter(ResponseStreamEvent)
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    return TypeAdapter(ChatCompletion), TypeAdapter(ChatCompletionChunk)


@pytest.mark.parametrize("endpoint", ["chat", "messages", "responses"])
@pytest.mark.parametrize(("style", "number"), REPLIES)
def test_answers_and_events_are_as_official_clients_declare_them(endpoint: str, style: str, number: int) -> None:
    """Clients construct their types without looking; here each member that they declare is looked at."""
    whole, event = forms_of(endpoint)
    for is_cut in (False, True):
        whole.validate_python(whole_of(endpoint, recorded(style, number, is_cut=is_cut)))
    for more in ({}, {"is_cut": True}, {"fails_after": 1}):
        for _, data in events_of(stream_of(endpoint, recorded(style, number, **more))):
            if data == "[DONE]" or (endpoint != "responses" and "error" in data):  # which clients raise as they are
                continue
            if data.get("type") == "response.failed":
                data["response"]["error"]["code"] = "server_error"  # codes are our own, beside those that are declared
            event.validate_python(data)
