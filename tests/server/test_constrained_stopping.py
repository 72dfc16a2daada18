"""Stop strings beside a constraint: they end the output as OpenAI's do, or only where the constraint may end, as the caller chooses."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Constraint, JsonSchema, Regex, Source, Tools
from maskwright.server.deltas import ContentDelta, ReplyDelta, ThoughtDelta
from maskwright.server.reasoning import reasoned
from maskwright.server.replies import ReplyReader

from .test_stream_splits import COMPILER, FIND, events_of
from .test_streams import events_of as streamed_events

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}
PAIRS = Regex("((ab|ba)c?)*", dialect="python")


@cache
def compiled(source: Source) -> Constraint:
    return COMPILER.compile(source)


def cut(text: str, stop: list[str], constraint: Constraint, inside: bool, is_shown: bool) -> tuple[str, str | None, bool | None]:
    """(what is shown, the string that ended it, whether that is complete), the slow way: every end of the text is looked at."""
    searched_from = 0
    for end in range(1, len(text) + 1):
        matching = [string for string in stop if text[searched_from:end].endswith(string)]
        if not matching:
            continue
        longest = max(matching, key=len)
        is_complete = constraint.accepts(text[: end - len(longest)])
        if inside or is_complete:
            return text[: end if is_shown else end - len(longest)], longest, is_complete
        searched_from = end
    return text, None, None


@settings(max_examples=150)
@given(
    words=st.lists(st.sampled_from(["ab", "ba", "abc", "bac"]), max_size=5),
    stop=st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=2),
    cuts=st.lists(st.floats(0, 1), max_size=4),
    inside=st.booleans(),
    is_shown=st.booleans(),
)
def test_the_output_ends_where_a_search_of_all_ends_says(
    words: list[str], stop: list[str], cuts: list[float], inside: bool, is_shown: bool
) -> None:
    text, constraint = "".join(words), compiled(PAIRS)
    expected, matched, is_complete = cut(text, stop, constraint, inside, is_shown)
    reader, told = ReplyReader(PAIRS, constraint, stop, is_shown, inside), list[ReplyDelta]()
    for event in events_of(text, sorted(int(each * len(text)) for each in cuts)):
        told += reader.read(event)
    ended = events_of(text, [])[-1].output
    assert ended is not None
    assert "".join(delta.text for delta in told if isinstance(delta, ContentDelta)) == expected
    assert reader.told_stop(ended) == ({} if matched is None else {"stop_reason": matched, "is_complete": is_complete})


@pytest.mark.parametrize("inside", [True, False])
def test_reasoning_and_calls_end_nothing(inside: bool) -> None:
    thought = reasoned(JsonSchema(TEXT), is_open=False)
    called = Tools([FIND], style="hermes", answer=JsonSchema(TEXT))
    call = '<tool_call>\n{"name": "find", "arguments": {"text": "a stop b"}}\n</tool_call>'
    for source, text in ((thought, '<think>a stop b</think>{"text":"c"}'), (called, call)):
        reader = ReplyReader(source, compiled(source), ["stop"], False, inside)
        whole = ReplyReader(source, compiled(source)).read(events_of(text, [])[0])
        told = [delta for event in events_of(text, [5, 9, 20]) for delta in reader.read(event)]
        for kind in (ContentDelta, ThoughtDelta):
            assert "".join(d.text for d in told if isinstance(d, kind)) == "".join(d.text for d in whole if isinstance(d, kind))
        assert reader.stop_string is None


@pytest.mark.parametrize("text", ['{"text":"grüß stop you"}', '<think>stop</think>\n{"text":"grüß stop you"}'])
def test_a_string_inside_an_object_ends_it_unless_told_otherwise(text: str) -> None:
    source = reasoned(JsonSchema(TEXT, whitespace="compact"), is_open=False)
    for size in (1, 2, len(text.encode())):
        cuts = list(range(0, len(text.encode()), size))[1:]
        reader = ReplyReader(source, compiled(source), [" stop"], False, True)
        told = [delta for event in events_of(text, cuts) for delta in reader.read(event)]
        assert "".join(delta.text for delta in told if isinstance(delta, ContentDelta)) == '{"text":"grüß'
        patient = ReplyReader(source, compiled(source), [" stop"], False, False)
        told = [delta for event in events_of(text, cuts) for delta in patient.read(event)]
        assert "".join(delta.text for delta in told if isinstance(delta, ContentDelta)) == text.split("</think>\n")[-1]


# -- over HTTP ------------------------------------------------------------------------------------------------------------


def body_for(path: str, **more: Any) -> dict[str, Any]:
    """The same request as each endpoint writes it; stop is given as `stop`."""
    stop = more.pop("stop", None)
    form = {"type": "json_schema", "name": "x", "schema": TEXT}
    asked: dict[str, Any] = {"temperature": 0, **more}
    question = [{"role": "user", "content": "Ada Lovelace lives in London"}]
    if path == RESPONSES:
        asked |= {"input": question, "max_output_tokens": 60, "text": {"format": form}}
    elif path == MESSAGES:
        asked |= {"messages": question, "max_tokens": 60, "output_config": {"format": form}}
    else:
        asked |= {"max_tokens": 60, "response_format": form}
        asked |= {"prompt": question[0]["content"]} if path == COMPLETIONS else {"messages": question}
    return asked | ({"stop_sequences" if path == MESSAGES else "stop": stop} if stop is not None else {})


def told(answer: Any) -> tuple[str, dict[str, Any]]:
    """(content of an answer, what it says about its end)."""
    if "choices" in answer:
        (choice,) = answer["choices"]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
        return text, {name: choice.get(name) for name in ("finish_reason", "stop_reason", "is_complete")}
    if "output" in answer:
        text = answer["output"][0]["content"][0]["text"]
        return text, {"finish_reason": answer["status"], **{name: answer.get(name) for name in ("stop_reason", "is_complete")}}
    text = "".join(block["text"] for block in answer["content"])
    return text, {"finish_reason": answer["stop_reason"], "stop_reason": answer["stop_sequence"], "is_complete": answer.get("is_complete")}


def streamed(http: httpx.Client, path: str, body: Any) -> tuple[str, dict[str, Any]]:
    text, end = "", dict[str, Any]()
    for event in streamed_events(http, path, body):
        if event.get("type") == "response.output_text.delta" or event.get("type") == "content_block_delta":
            text += event["delta"] if isinstance(event["delta"], str) else event["delta"]["text"]
        elif event.get("type") == "message_delta":
            delta = event["delta"]
            end = {"finish_reason": delta["stop_reason"], "stop_reason": delta["stop_sequence"], "is_complete": event.get("is_complete")}
        elif "response" in event and event["type"] in ("response.completed", "response.incomplete"):
            end = told(event["response"])[1]
        elif event.get("choices"):
            (choice,) = event["choices"]
            text += choice["text"] if "text" in choice else choice["delta"].get("content") or ""
            if choice["finish_reason"]:
                end = {name: choice.get(name) for name in ("finish_reason", "stop_reason", "is_complete")}
    return text, end


STOPPED = {RESPONSES: "completed", MESSAGES: "stop_sequence"}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES, MESSAGES])
def test_on_every_endpoint(http: httpx.Client, path: str) -> None:
    whole = http.post(path, json=body_for(path))
    assert whole.status_code == 200, whole.text
    text, end = told(whole.json())
    mark = json.loads(text)["text"][1:4]
    assert mark and end["stop_reason"] is None and end["is_complete"] is None
    body = body_for(path, stop=["absent", mark])
    cut_short = told(http.post(path, json=body).json())
    assert cut_short == (text[: text.index(mark)], {"finish_reason": STOPPED.get(path, "stop"), "stop_reason": mark, "is_complete": False})
    assert streamed(http, path, {**body, "stream": True}) == cut_short
    outside = body_for(path, stop=["absent", mark], stop_inside=False)
    assert told(http.post(path, json=outside).json()) == (text, end)
    assert streamed(http, path, {**outside, "stream": True}) == (text, end)


def test_the_string_may_be_shown(http: httpx.Client) -> None:
    text, _ = told(http.post(CHAT, json=body_for(CHAT)).json())
    mark = json.loads(text)["text"][1:4]
    shown, _ = told(http.post(CHAT, json=body_for(CHAT, stop=mark, include_stop_str_in_output=True)).json())
    assert shown == text[: text.index(mark)] + mark


def test_where_the_constraint_may_end_it_does(http: httpx.Client) -> None:
    asked: Any = {"messages": [{"role": "user", "content": "x"}], "regex": "ab(ab)*", "max_tokens": 20, "temperature": 0}
    for inside in (True, False):
        choice = http.post(CHAT, json={**asked, "stop": "ab", "stop_inside": inside, "min_p": 0.0}).json()["choices"][0]
        said = choice["message"]["content"], choice.get("stop_reason"), choice.get("is_complete")
        assert said == ("", "ab", False) if inside else said[0] == "ab" and said[2] in (None, True)
