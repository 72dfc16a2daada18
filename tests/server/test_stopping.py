"""Stop strings of replies with calls or reasoning end the content, wherever the engine's events and tokens are cut, and nothing else."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright import LLM
from maskwright.server.deltas import CallDelta, CallStart, ContentDelta, ReplyDelta, ThoughtDelta
from maskwright.server.replies import ReplyReader
from maskwright.server.stopping import ContentStop

from .test_stream_splits import CASES, RECORDED, events_of, source_of
from .test_streams import events_of as streamed_events

CHAT = "/v1/chat/completions"
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}<think>{# </think> #}"
ASKED: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 60, "temperature": 0}
FIND: Any = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}

Parts = list[tuple[str, str]]  # kind and text; neighbours differ in their kind


def parts_of(deltas: list[ReplyDelta]) -> Parts:
    parts: Parts = []
    for delta in deltas:
        kind, text = type(delta).__name__, delta.name if isinstance(delta, CallStart) else delta.text
        if parts and parts[-1][0] == kind and kind != "CallStart":
            parts[-1] = (kind, parts[-1][1] + text)
        else:
            parts.append((kind, text))
    return parts


def cut(parts: Parts, stop: list[str], is_shown: bool) -> tuple[Parts, str | None]:
    """The slow twin: each text is searched at each of its ends."""
    kept: Parts = []
    for kind, text in parts:
        for end in range(len(text) + 1) if kind == "ContentDelta" else ():
            matching = [string for string in stop if text[:end].endswith(string)]
            if matching:
                longest = max(matching, key=len)
                shown = text[: end if is_shown else end - len(longest)]
                return ([*kept, (kind, shown)] if shown else kept), longest
        kept.append((kind, text))
    return kept, None


TEXTS = st.text("ab<", min_size=1, max_size=6)
DELTAS = st.one_of(
    st.builds(ContentDelta, TEXTS), st.builds(ContentDelta, TEXTS), st.builds(ThoughtDelta, TEXTS), st.builds(CallDelta, st.just(0), TEXTS)
)


@settings(max_examples=50)
@given(st.lists(DELTAS, max_size=8), st.lists(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=3), st.booleans())
def test_content_is_cut_at_the_first_stop_string(deltas: list[ReplyDelta], stop: list[str], is_shown: bool) -> None:
    follower = ContentStop(stop, is_shown)
    shown = [each for number, delta in enumerate(deltas) for each in follower.read([delta], number == len(deltas) - 1)]
    assert (parts_of(shown), follower.matched) == cut(parts_of(deltas), stop, is_shown)
    at_once = ContentStop(stop, is_shown)
    assert parts_of(list(at_once.read(deltas, is_last=True))) == parts_of(shown)


@pytest.mark.parametrize(("style", "number"), CASES)
@settings(max_examples=20)
@given(cuts=st.lists(st.floats(0, 1), max_size=8), place=st.floats(0, 1), length=st.integers(1, 3), is_shown=st.booleans())
def test_every_style_is_cut_like_its_content(
    style: str, number: int, cuts: list[float], place: float, length: int, is_shown: bool
) -> None:
    text, content, *_ = RECORDED[style][number]
    begin = int(place * len(content))
    stop = [content[begin : begin + length] or "absent"]
    size = len(text.encode())
    (whole,) = events_of(text, [])
    expected, matched = cut(parts_of(ReplyReader(*source_of(style)).read(whole)), stop, is_shown)
    reader, told = ReplyReader(*source_of(style), stop, is_shown), list[ReplyDelta]()
    for event in events_of(text, sorted(int(each * size) for each in cuts)):
        told += reader.read(event)
    assert (parts_of(told), reader.stop_string) == (expected, matched)


@pytest.mark.parametrize(("style", "number"), CASES)
def test_the_engine_ends_where_the_reader_does(style: str, number: int) -> None:
    """What comes behind the token at which the engine ends is not shown, and the string is complete there."""
    text, content, *_ = RECORDED[style][number]
    data = text.encode()
    for first, second in pairwise(content):
        ending = ReplyReader(*source_of(style), [first + second])
        length = next((place for place, byte in enumerate(data, 1) if ending.ends_after(byte)), len(data))
        reader, follower = ReplyReader(*source_of(style), [first + second]), ReplyReader(*source_of(style), [first + second])
        cut_short, *_ = events_of(data[:length].decode(errors="ignore"), [])
        (whole,) = events_of(text, [])
        assert parts_of(follower.read(cut_short)) == parts_of(reader.read(whole))


@pytest.fixture
def thinking(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)


def reply(http: httpx.Client, **more: Any) -> tuple[Any, str, int]:
    """(message, finish reason, tokens) of an answer that its stream repeats."""
    body = {**ASKED, **more}
    answer = http.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    message = choice["message"]
    joined, reason = {"content": "", "reasoning_content": ""}, None
    for event in streamed_events(http, CHAT, body):
        for name in joined:
            joined[name] += event["choices"][0]["delta"].get(name) or ""
        reason = event["choices"][0]["finish_reason"] or reason
    assert joined == {name: message.get(name) or "" for name in joined} and reason == choice["finish_reason"]
    return message, choice["finish_reason"], answer.json()["usage"]["completion_tokens"]


@pytest.mark.usefixtures("thinking")
def test_reasoning_is_not_cut(http: httpx.Client, llm: LLM) -> None:
    ends = {str(token_id): -100 for token_id in llm.vocabulary.eos_token_ids}
    asked: Any = {"thinking_token_budget": 12, "logit_bias": ends}
    message, reason, num_tokens = reply(http, **asked)
    assert reason == "length" and message["reasoning_content"] and len(message["content"]) > 8
    mark = message["content"][4:7]
    stopped, reason, num_until = reply(http, **asked, stop=[mark, "absent"])
    assert stopped["content"] == message["content"][: message["content"].index(mark)] and reason == "stop"
    assert stopped["reasoning_content"] == message["reasoning_content"] and num_until < num_tokens
    shown, *_ = reply(http, **asked, stop=mark, include_stop_str_in_output=True)
    assert shown["content"] == stopped["content"] + mark
    thought = message["reasoning_content"]
    apart = next(thought[:end] for end in range(1, len(thought) + 1) if thought[:end] not in message["content"])
    assert reply(http, **asked, stop=apart)[0] == message, "a stop string in what is thought ends nothing"


@pytest.mark.usefixtures("thinking")
def test_messages_name_the_stop_sequence(http: httpx.Client) -> None:
    body: Any = {"messages": ASKED["messages"], "max_tokens": 60, "thinking": {"type": "enabled", "budget_tokens": 12}, "temperature": 0}
    thought, said = http.post("/v1/messages", json=body).json()["content"]
    mark = said["text"][4:7]
    stopped = http.post("/v1/messages", json={**body, "stop_sequences": ["absent", mark]}).json()
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", mark)
    assert stopped["content"] == [thought, {"type": "text", "text": said["text"][: said["text"].index(mark)]}]
    last = streamed_events(http, "/v1/messages", {**body, "stop_sequences": [mark]})[-2]
    assert last["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": mark}


def test_tools_leave_calls_whole(http: httpx.Client, llm: LLM) -> None:
    kept_from = [token_id for token_id, text in enumerate(llm.vocabulary.tokens) if text and text.startswith(b"{")]
    kept_from += llm.vocabulary.eos_token_ids  # the text is to be long enough to be cut
    asked: Any = {"tools": [FIND], "logit_bias": {str(token_id): -100 for token_id in kept_from}}
    message, reason, _ = reply(http, **asked)
    assert reason == "length" and len(message["content"]) > 8
    mark = message["content"][4:7]
    stopped, reason, _ = reply(http, **asked, stop=mark)
    assert stopped["content"] == message["content"][: message["content"].index(mark)] and reason == "stop"
    called, reason, _ = reply(http, tools=[FIND], tool_choice="required", stop=['"', "{", "}"])
    assert reason == "tool_calls" and isinstance(json.loads(called["tool_calls"][0]["function"]["arguments"]), dict)
