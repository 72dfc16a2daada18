"""Tools beside an answer: a reply is calls or the answer, told apart by one automaton in every style."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    JsonSchema,
    OutputParser,
    Reasoning,
    Regex,
    StructuralTag,
    Tools,
    parse_output,
)
from maskwright.constraints.front_ends.tags.events import ArgumentsDelta, Event, TextDelta
from maskwright.constraints.front_ends.tags.styles import STYLES
from maskwright.constraints.runtime.constraint import Constraint

from .tool_cases import CALLS, MARKED, PLAIN, TOOLS
from .tool_texts import ONE_CALL, WRITERS

OBJECT = {"name": "get", "parameters": {"more": 1}}  # an answer, and nearly a call of a style that writes JSON
SCHEMA = {"type": "object"}


@cache
def compiled(style: str, choice: str = "auto") -> Constraint:
    compiler = Compiler(MARKED) if style == "harmony" else PLAIN
    return compiler.compile(Tools(TOOLS, style=style, choice=choice, answer=JsonSchema(SCHEMA, whitespace="flexible")))


def answer_in(style: str, text: str) -> str:
    return f"<|channel|>final<|message|>{text}" if style == "harmony" else text


def spelled(style: str, text: str) -> bytes:
    if style != "harmony":
        return text.encode()
    data = text.encode()
    for name, token_id in MARKED.special_tokens.items():
        data = data.replace(name.encode(), MARKED.spellings[token_id] or b"")
    return data


def events_of(constraint: Constraint, chunks: list[bytes]) -> list[Event]:
    parser = OutputParser(constraint)
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.finish()


@pytest.mark.parametrize("style", STYLES)
def test_a_reply_is_the_answer_or_calls(style: str) -> None:
    calls = CALLS[:1] if style in ONE_CALL else CALLS[:2]
    written = spelled(style, WRITERS[style]("", calls))
    constraint = compiled(style)
    parsed = parse_output(constraint, written)
    assert [(call.name, json.loads(call.arguments)) for call in parsed.calls] == calls and not parsed.text and parsed.is_complete
    for text in ("{}", json.dumps(OBJECT)):
        parsed = parse_output(constraint, spelled(style, answer_in(style, text)))
        assert parsed.text == text and not parsed.calls and parsed.is_complete
    for wrong in (b"It rains.", spelled(style, answer_in(style, "{}")) + written, written + b"{}", b""):
        assert not constraint.accepts(wrong)


@pytest.mark.parametrize("style", STYLES)
def test_a_choice_of_tools_leaves_calls_alone(style: str) -> None:
    for choice in ("required", "get_weather"):
        constraint = compiled(style, choice)
        assert constraint.accepts(spelled(style, WRITERS[style]("", CALLS[:1])))
        assert not constraint.accepts(spelled(style, answer_in(style, "{}")))
    constraint = compiled(style, "none")
    assert constraint.accepts(spelled(style, answer_in(style, "{}")))
    written = spelled(style, WRITERS[style]("", CALLS[:1]))
    assert not constraint.accepts(written) or parse_output(constraint, written).text == written.decode()  # JSON as any other


@pytest.mark.parametrize("style", ["llama3-json", "hermes"])
@pytest.mark.parametrize("text", [json.dumps({"name": "get", "parameters": {}}), json.dumps(OBJECT), '{"x": 1}'])
def test_every_cut_of_a_reply_says_the_same(style: str, text: str) -> None:
    whole, at_once = text.encode(), events_of(compiled(style), [text.encode()])
    for size in (1, 3, 10):
        events = events_of(compiled(style), [whole[i : i + size] for i in range(0, len(whole), size)])
        for kind in (TextDelta, ArgumentsDelta):
            assert "".join(e.text for e in events if isinstance(e, kind)) == "".join(e.text for e in at_once if isinstance(e, kind))
        assert [type(e) for e in events if not isinstance(e, TextDelta | ArgumentsDelta)] == [
            type(e) for e in at_once if not isinstance(e, TextDelta | ArgumentsDelta)
        ]


def test_what_is_a_call_and_an_answer_is_a_call() -> None:
    text = json.dumps({"name": "get_weather", "parameters": {"city": "Oslo"}})
    parsed = parse_output(compiled("llama3-json"), text)
    assert [(call.name, call.arguments) for call in parsed.calls] == [("get_weather", '{"city": "Oslo"}')] and not parsed.text


def test_an_answer_is_told_as_soon_as_it_is_no_call() -> None:
    parser = OutputParser(compiled("llama3-json"))
    assert parser.feed('{"name": "get", "para') == [] and parser.num_held > 0
    assert parser.feed("x") == [TextDelta('{"name": "get", "parax')]


@pytest.mark.parametrize("answer", [StructuralTag({"type": "structural_tag", "format": {"type": "any_text"}}), Tools(TOOLS), Reasoning(Regex("a"))])
def test_an_answer_has_no_parts(answer: Any) -> None:
    with pytest.raises(ConstraintError, match=f"at #/answer: {type(answer).__name__} is no answer beside tools"):
        Tools(TOOLS, answer=answer)


def test_errors_tell_the_answer_from_the_tools() -> None:
    with pytest.raises(ConstraintError) as caught:
        PLAIN.compile(Tools(TOOLS, answer=JsonSchema({"properties": {"a": {"$ref": "#/nowhere"}}})))
    assert caught.value.path is not None and caught.value.path.startswith("#/answer/properties/a")
