"""However a recorded reply is cut, and wherever it fails, its streams keep the rules of their interfaces and say what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..test_stream_splits import CASES, RECORDED
from .rules import Said, read_chat, read_messages, read_responses
from .streams import FAILURE, Reply, stream_of

ENDINGS = {"chat": ("stop", "tool_calls"), "messages": ("end_turn", "tool_use"), "responses": ("completed", "completed")}
REPLIES = [pytest.param(*case, id=f"{case[0]} {case[1]}") for case in CASES]


def read(endpoint: str, reply: Reply) -> list[Said]:
    if endpoint == "chat":
        options: Any = {"stream_options": {"include_usage": True}, "stream": True}
        return read_chat(stream_of(endpoint, reply, **options), tells_usage=True)
    return [read_messages(stream_of(endpoint, reply)) if endpoint == "messages" else read_responses(stream_of(endpoint, reply))]


def cut(style: str, number: int, shares: list[float], **more: Any) -> Reply:
    text = RECORDED[style][number][0]
    return Reply(style, text, sorted(int(share * len(text.encode())) for share in shares), **more)


@pytest.mark.parametrize("endpoint", ENDINGS)
@pytest.mark.parametrize(("style", "number"), REPLIES)
@settings(max_examples=20)
@given(shares=st.lists(st.floats(0, 1), max_size=12))
def test_a_stream_keeps_the_rules(endpoint: str, style: str, number: int, shares: list[float]) -> None:
    text, content, reasoning, calls = RECORDED[style][number]
    (said,) = read(endpoint, cut(style, number, shares))
    assert (said.content, said.reasoning, [(name, json.loads(told)) for name, told in said.calls]) == (content, reasoning, calls)
    assert said.ending == ENDINGS[endpoint][bool(calls)] and said.usage == (1, len(text.encode())) and said.error is None


@pytest.mark.parametrize(("style", "number"), REPLIES)
def test_outputs_that_take_turns_are_told_apart(style: str, number: int) -> None:
    _, content, reasoning, calls = RECORDED[style][number]
    several = read("chat", cut(style, number, [0.2, 0.5, 0.9], num_outputs=3))
    assert len(several) == 3
    for said in several:
        assert (said.content, said.reasoning, [(name, json.loads(told)) for name, told in said.calls]) == (content, reasoning, calls)


@pytest.mark.parametrize("endpoint", ENDINGS)
@pytest.mark.parametrize(("style", "number"), REPLIES)
def test_what_max_tokens_has_cut_says_so(endpoint: str, style: str, number: int) -> None:
    (said,) = read(endpoint, cut(style, number, [0.5], is_cut=True))
    assert said.ending == {"chat": "length", "messages": "max_tokens", "responses": "incomplete"}[endpoint]


@pytest.mark.parametrize("endpoint", ENDINGS)
@pytest.mark.parametrize(("style", "number"), REPLIES)
@settings(max_examples=20)
@given(shares=st.lists(st.floats(0, 1), min_size=1, max_size=12), share=st.floats(0, 1))
def test_a_failure_is_the_last_event(endpoint: str, style: str, number: int, shares: list[float], share: float) -> None:
    """What was told before it keeps the rules, and is a beginning of the reply."""
    _, content, reasoning, calls = RECORDED[style][number]
    (said,) = read(endpoint, cut(style, number, shares, fails_after=int(share * len(shares))))
    assert said.error == FAILURE.code and said.ending is None
    assert content.startswith(said.content) and reasoning.startswith(said.reasoning) and len(said.calls) <= len(calls)
    assert [name for name, _ in said.calls] == [name for name, _ in calls[: len(said.calls)]]
