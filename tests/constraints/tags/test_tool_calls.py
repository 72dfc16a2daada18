"""Tool calls in every style: what is accepted, what is refused, and that calls come back as they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maskwright.constraints import Compiler, Tools, Vocabulary, parse_output
from maskwright.constraints.front_ends.tags.styles import STYLES
from maskwright.constraints.runtime.constraint import as_token_ids

from .tool_cases import BYTES, CALLS, MARKED, PING, PLAIN, SPECIAL, TOOLS, WEATHER, WRONG, compiled, parsed_calls
from .tool_texts import ONE_CALL, TEXT_OR_CALLS, WRITERS, Call


def cases(style: str) -> list[tuple[str, list[Call]]]:
    lengths = (1,) if style in ONE_CALL else (1, 2, 4)
    texts = ("",) if style in TEXT_OR_CALLS else ("", "I look < it up. ")
    return [(text, CALLS[i : i + n]) for text in texts for n in lengths for i in range(0, len(CALLS), n)]


@pytest.mark.parametrize("style", STYLES)
def test_calls_come_back_as_they_were_written(style: str) -> None:
    constraint = compiled(style)
    for text, calls in cases(style):
        reply = WRITERS[style](text, calls)
        assert constraint.accepts(reply), reply
        parsed = parse_output(constraint, reply)
        assert (parsed.text, parsed.is_complete) == (text, True)
        assert [(call.name, json.loads(call.arguments)) for call in parsed.calls] == calls, reply


@pytest.mark.parametrize("style", STYLES)
def test_arguments_are_exact(style: str) -> None:
    constraint = compiled(style)
    for call in WRONG:
        if style == "qwen3-coder" and call[1].get("city") == 3:
            continue  # without quotes a 3 is a string
        assert not constraint.accepts(WRITERS[style]("", [call])), call


@pytest.mark.parametrize("style", STYLES)
def test_choices(style: str) -> None:
    text = WRITERS[style]("", [CALLS[0]])
    free = "<|channel|>final<|message|>Hello." if style == "harmony" else "Hello."
    auto, none = compiled(style), compiled(style, choice="none")
    assert auto.accepts(free) and auto.accepts(text) and none.accepts(free)
    assert style not in (*TEXT_OR_CALLS, "harmony") or not none.accepts(text)
    for choice in (
        "required",
        {"name": "get_weather"},
        "get_weather",
        {"type": "function", "function": {"name": "get_weather"}},
    ):
        constraint = compiled(style, choice=choice)
        assert constraint.accepts(text) and not constraint.accepts(free) and not constraint.accepts("")
        assert constraint.accepts(WRITERS[style]("", [CALLS[1]])) == (choice == "required")
    if style not in ONE_CALL:
        two = WRITERS[style]("", CALLS[:2])
        assert auto.accepts(two) and compiled(style, choice="required").accepts(two)
        assert not compiled(style, parallel=False).accepts(two) and not compiled(style, choice="get_weather").accepts(
            two
        )


def test_allowed_tools() -> None:
    choice = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get"}}]},
    }
    constraint = compiled("hermes", choice=choice)
    assert constraint.accepts(WRITERS["hermes"]("", [CALLS[1]])) and not constraint.accepts(
        WRITERS["hermes"]("", [CALLS[0]])
    )


BUILT_IN = {
    "hermes": "qwen_3",
    "llama3-json": "llama",
    "deepseek-v3": "deepseek_r1",
    "deepseek-v3.1": "deepseek_v3_1",
    "qwen3-coder": "qwen_3_coder",
}


@pytest.mark.parametrize("style", BUILT_IN)
def test_replies_are_those_that_xgrammar_has_built_in(style: str) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    built_in = pytest.importorskip("xgrammar.builtin_structural_tag")
    info = xgrammar.TokenizerInfo([*BYTES, b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    tools = [WEATHER, {"type": "function", "function": PING}]
    for choice in ("auto", "required"):
        tag = built_in.get_model_structural_tag(BUILT_IN[style], tools=tools, tool_choice=choice, reasoning="disabled")
        grammar = xgrammar.GrammarCompiler(info).compile_structural_tag(tag)
        for calls in ([CALLS[0]], [CALLS[0], ("get_weather", {"city": "Oslo", "days": 3})]):
            matcher = xgrammar.GrammarMatcher(grammar)
            assert matcher.accept_string(WRITERS[style]("", calls)) and matcher.accept_token(256)


def test_a_call_of_harmony_has_several_spellings() -> None:
    for begin in (
        "<|channel|>commentary to=functions.get<|constrain|>json<|message|>",
        " to=functions.get<|channel|>commentary json<|message|>",
        " to=functions.get<|channel|>commentary <|constrain|>json<|message|>",
    ):
        assert parsed_calls(compiled("harmony"), begin + "{}<|call|>") == [("get", {})]


# -- special tokens -------------------------------------------------------------------------------------------------------


def tokens_of(reply: str, vocabulary: Vocabulary) -> list[int]:
    """Names of special tokens as the tokens, all else byte by byte."""
    out, at = [], 0
    while at < len(reply):
        name = next((name for name in vocabulary.special_tokens if reply.startswith(name, at)), None)
        out += [vocabulary.special_tokens[name]] if name else list(reply[at].encode())
        at += len(name or reply[at])
    return out


@pytest.mark.parametrize("style", ["mistral", "mistral-v11", "harmony", "llama3-json"])
def test_marks_are_special_tokens_where_the_vocabulary_has_them(style: str) -> None:
    constraint = compiled(style, Compiler(MARKED))
    reply = WRITERS[style]("", CALLS[2:3])
    ids = tokens_of(reply, MARKED)
    assert [(call.name, json.loads(call.arguments)) for call in parse_output(constraint, ids).calls] == CALLS[2:3]
    if style != "llama3-json":  # otherwise the name of the token is only text
        assert not constraint.accepts(reply) or style.startswith("mistral")
    state = constraint.start()
    for token in ids:
        assert token in as_token_ids(constraint.mask(state))
        state = constraint.advance(state, token)  # type: ignore[assignment]
    assert constraint.is_accepting(state)


def test_a_call_may_end_with_an_end_of_text_token() -> None:
    special = {name: 257 + i for i, name in enumerate(SPECIAL)}
    vocabulary = Vocabulary(
        [*BYTES, None, *[None] * len(SPECIAL)], eos_token_ids=[256, special["<|call|>"]], special_tokens=special
    )
    constraint = Compiler(vocabulary).compile(Tools(TOOLS, style="gpt-oss", choice="required"))
    ids = tokens_of(WRITERS["harmony"]("", CALLS[:1]), vocabulary)
    state = constraint.start()
    for token in ids[:-1]:
        state = constraint.advance(state, token)  # type: ignore[assignment]
    assert set(as_token_ids(constraint.mask(state))) == {256, special["<|call|>"]}
    assert [call.name for call in parse_output(constraint, ids).calls] == ["get_weather"]


def test_python_tag_may_stand_before_llama_calls() -> None:
    constraint = compiled("llama3-json", Compiler(MARKED))
    ids = tokens_of("<|python_tag|>" + WRITERS["llama3-json"]("", CALLS[:1]), MARKED)
    assert [call.name for call in parse_output(constraint, ids).calls] == ["get_weather"]


# -- published cases --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(shared_data: Path) -> list[dict[str, Any]]:
    path = shared_data / "tool_calling" / "dev.jsonl"
    if not path.exists():
        pytest.skip("needs tool_calling/dev.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("style", STYLES)
def test_published_calls(style: str, published: list[dict[str, Any]]) -> None:
    """Every eighth case of the development half, all calls of it."""
    for case in published[::8]:
        constraint = PLAIN.compile(Tools(case["tools"], style=style, choice="required"))
        calls = [(call["name"], in_declared_order(case, call)) for call in case["calls"]]
        for some in [[call] for call in calls] if style in ONE_CALL else [calls]:
            reply = WRITERS[style]("", some)
            assert constraint.accepts(reply), (case["id"], reply)
            assert parsed_calls(constraint, reply) == [(name, plain(arguments)) for name, arguments in some], case["id"]


def in_declared_order(case: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    tool = next(tool["function"] for tool in case["tools"] if tool["function"]["name"] == call["name"])
    return ordered(call["arguments"], tool["parameters"])


def ordered(value: Any, schema: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # the canonical text of 5.0 is 5
    if isinstance(value, list):
        return [ordered(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    declared = schema.get("properties", {})
    names = [*(name for name in declared if name in value), *(name for name in value if name not in declared)]
    return {name: ordered(value[name], declared.get(name, {})) for name in names}


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
