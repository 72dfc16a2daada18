"""Structural tags: the content is what was written, tags included, and stop strings end its text, wherever the reply is cut into pieces."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright import LLM
from maskwright.constraints import Compiler, Constraint, Source, StructuralTag, Vocabulary
from maskwright.server.deltas import ContentDelta, ThoughtDelta
from maskwright.server.reasoning import reasoned
from maskwright.server.replies import ReplyReader
from maskwright.server.tagged import TaggedReply

from .test_captured import CHAT, COMPLETIONS, MESSAGES, RESPONSES, events, post
from .test_reasoning import TEMPLATE

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [b"</s>"], eos_token_ids=[256])
TAG: Any = {"begin": "<a>", "content": {"type": "regex", "pattern": "[xyé]*"}, "end": "</a>"}
FREE: Any = {"type": "triggered_tags", "triggers": ["<a"], "tags": [TAG]}
BEFORE: Any = {"type": "sequence", "elements": [{"type": "any_text", "excludes": ["<"]}, {"type": "tag", **TAG}, {"type": "any_text"}]}
SAID: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 48, "temperature": 0}


def tags(form: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": form}


@cache
def source_of(form: str, opening: str) -> Source:
    source: Source = StructuralTag(tags(json.loads(form)))
    return source if opening == "no" else reasoned(source, opening == "open")


@cache
def compiled(form: str, opening: str) -> Constraint:
    return Compiler(BYTES).compile(source_of(form, opening))


def read(reply: str, cuts: list[int], stop: list[str], form: Any = FREE, opening: str = "no", shows: bool = False) -> tuple[str, str, str | None]:
    """(content, reasoning, the stop string) of a reply whose tokens are bytes and come in these pieces."""
    reader, data = TaggedReply(compiled(json.dumps(form), opening), stop, shows), reply.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    told = [delta for begin, end in pairwise(places) for delta in reader.take(data[begin:end], False)]
    told += reader.take((), True)
    assert all(delta.text for delta in told if isinstance(delta, ContentDelta | ThoughtDelta))
    content = "".join(delta.text for delta in told if isinstance(delta, ContentDelta))
    return content, "".join(delta.text for delta in told if isinstance(delta, ThoughtDelta)), reader.matched


def twin(reply: str, stop: list[str], shows: bool) -> tuple[str, str | None]:
    """Each text between tags is searched at each of its ends."""
    begin = 0
    for tag in [*re.finditer("<a>[xyé]*</a>", reply), None]:
        text = reply[begin : len(reply) if tag is None else tag.start()]
        for end in range(len(text) + 1):
            found = max((each for each in stop if text[:end].endswith(each)), key=len, default=None)
            if found is not None:
                return reply[: begin + end - (0 if shows else len(found))], found
        begin = len(reply) if tag is None else tag.end()
    return reply, None


PIECES = st.one_of(st.text("bé< x", min_size=1, max_size=4), st.sampled_from(["<a></a>", "<a>xyé</a>", "<a>x</a>"]))


@settings(max_examples=80)
@given(
    st.lists(PIECES, max_size=5).map("".join),
    st.lists(st.text("bé< x", min_size=1, max_size=3), max_size=2),
    st.lists(st.integers(0, 40), max_size=6),
    st.booleans(),
)
def test_content_is_cut_at_the_first_stop_string_in_its_text(reply: str, stop: list[str], cuts: list[int], shows: bool) -> None:
    content, thought, matched = read(reply, cuts, stop, shows=shows)
    assert ((content, matched), thought) == (twin(reply, stop, shows), "")


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=4).map("".join), st.lists(st.integers(0, 60), max_size=6), st.sampled_from(["open", "optional"]))
def test_behind_reasoning_all_that_was_written_is_content(reply: str, cuts: list[int], opening: str) -> None:
    start = "" if opening == "open" else "<think>"
    assert read(f"{start}hm < <a></think>\n{reply}", cuts, [], opening=opening) == (reply.lstrip(), "hm < <a>", None)
    if opening == "optional":
        assert read(reply, cuts, [], opening=opening) == (reply, "", None), "reasoning may be left out"


def test_a_stop_string_where_more_has_to_follow_is_text() -> None:
    assert read("bee<a>x</a>be", [], ["e"], BEFORE) == ("bee<a>x</a>b", "", "e")
    assert read("bee<a>x</a>b", [], ["e"], BEFORE) == ("bee<a>x</a>b", "", None)
    assert read("é<a>é</a>éb", [1, 5], ["éb", "é<"], FREE) == ("é<a>é</a>", "", "éb"), "no stop string reaches into a tag"


def test_the_mark_of_reasoning_begins_no_text() -> None:
    """Else it would not be certain what a reply that begins with it is."""
    for form in (FREE, BEFORE, {"type": "or", "elements": [FREE, {"type": "any_text"}]}):
        constraint = compiled(json.dumps(form), "optional")
        assert constraint.accepts("<think>x</think><a>x</a>") and not constraint.accepts("<think>x<a>x</a>")


def test_the_reader_of_replies_uses_it() -> None:
    source = source_of(json.dumps(FREE), "no")
    reader = ReplyReader(source, compiled(json.dumps(FREE), "no"), ["b"])
    ends = [reader.ends_after(byte) for byte in b"a<a>x</a>b"]
    assert ends == [False] * 9 + [True] and reader.stop_string == "b"


def content_of(answer: Any) -> Any:
    if "choices" in answer:
        return answer["choices"][0]["message"]["content"]
    return answer["output"][-1]["content"][0]["text"] if "output" in answer else answer["content"][-1]["text"]


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_stop_strings_end_the_text_around_tags(http: httpx.Client, path: str) -> None:
    """The reply is free text here: the model knows no tags."""
    names = {RESPONSES: ("text", "stop", "input", "max_output_tokens"), MESSAGES: ("output_config", "stop_sequences", "messages", "max_tokens")}
    holder, stop, said, most = names.get(path, ("response_format", "stop", "messages", "max_tokens"))
    form = tags(FREE) if holder == "response_format" else {"format": tags(FREE)}
    body = {said: SAID["messages"], most: 48, "temperature": 0, holder: form}
    whole = content_of(post(http, path, body))
    mark = whole[5:7]
    cut = post(http, path, {**body, stop: ["absent", mark]})
    assert content_of(cut) == whole[: whole.index(mark)]
    if path == CHAT:
        assert cut["choices"][0]["finish_reason"] == "stop" and cut["usage"]["completion_tokens"] < 48
        streamed = "".join(event["choices"][0]["delta"].get("content", "") for event in events(http, path, {**body, stop: [mark]}))
        assert streamed == content_of(cut)
    if path == MESSAGES:
        assert (cut["stop_reason"], cut["stop_sequence"]) == ("stop_sequence", mark)


def test_a_prompt_to_be_completed_ends_at_a_stop_string(http: httpx.Client) -> None:
    body: Any = {"prompt": "hello", "max_tokens": 24, "temperature": 0, "response_format": tags(FREE)}
    text = post(http, COMPLETIONS, body)["choices"][0]["text"]
    mark = text[3:5]
    (choice,) = post(http, COMPLETIONS, {**body, "stop": mark})["choices"]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == (text[: text.index(mark)], "stop", mark)


@pytest.mark.parametrize("opening", ["<think>", "-"])
def test_tags_behind_reasoning_are_told_whole(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch, opening: str) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)
    only = {"type": "sequence", "elements": [{"type": "const_string", "value": "so "}, {"type": "tag", **TAG}]}
    asked = {**SAID, "max_tokens": 80, "thinking_token_budget": 12, "chat_template_kwargs": {"opening": opening}, "response_format": tags(only)}
    content = content_of(post(http, CHAT, asked))
    assert re.fullmatch("so <a>[xyé]*</a>", content)
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events(http, CHAT, asked)) == content
