"""Tool calls in every style: what is accepted, what is refused, and the parser on every way to cut a reply."""

from __future__ import annotations

import json
import random
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Compiler,
    Constraint,
    ConstraintError,
    OutputParser,
    Tools,
    ToolStyle,
    UnexpectedOutput,
    UnsupportedKeyword,
    Vocabulary,
    parse_output,
)
from maskwright.constraints.constraint import as_token_ids
from maskwright.constraints.tags.arguments import as_json
from maskwright.constraints.tags.events import (
    ArgumentsDelta,
    Event,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from maskwright.constraints.tags.styles import ALIASES, STYLES, style_of_template

from .tool_texts import ONE_CALL, TEXT_OR_CALLS, WRITERS, Call

SPECIAL = [
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|start|>",
    "<|call|>",
    "<|constrain|>",
    "<|python_tag|>",
]
BYTES = [bytes([byte]) for byte in range(256)]
PLAIN = Compiler(Vocabulary([*BYTES, None], eos_token_ids=[256]))
MARKED = Vocabulary(
    [*BYTES, None, *[None] * len(SPECIAL)],
    eos_token_ids=[256],
    special_tokens={name: 257 + i for i, name in enumerate(SPECIAL)},
)

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"enum": ["C", "F"]},
                "at": {"type": ["string", "null"]},
                "options": {
                    "type": "object",
                    "properties": {"snow": {"type": "boolean"}},
                    "additionalProperties": False,
                },
                "tags": {"type": "array", "items": {"type": "string"}},
                "code": {"type": "string", "pattern": "^[A-Z]{2,3}$"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
PING = {"name": "get", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
TOOLS = [WEATHER, PING]
CALLS: list[Call] = [
    ("get_weather", {"city": "Oslo"}),
    ("get", {}),
    (
        "get_weather",
        {
            "city": 'a "quoted"\nÅ <tag>',
            "days": 14,
            "unit": "F",
            "at": None,
            "options": {"snow": True},
            "tags": ["x", "]"],
            "code": "ABC",
        },
    ),
    ("get_weather", {"city": "", "at": "noon", "options": {}, "tags": []}),
]
WRONG: list[Call] = [
    ("get_weather", {}),
    ("get_weather", {"city": 3}),
    ("get_weather", {"city": "Oslo", "days": 15}),
    ("get_weather", {"city": "Oslo", "unit": "K"}),
    ("get_weather", {"city": "Oslo", "code": "abc"}),
    ("get_weather", {"city": "Oslo", "other": 1}),
    ("get_weather", {"days": 3}),
    ("fetch", {}),
]  # fmt: skip


def compiled(style: str, compiler: Compiler = PLAIN, tools: Any = TOOLS, **options: Any) -> Constraint:
    return compiler.compile(Tools(tools, style=style, **options))


def parsed_calls(constraint: Constraint, reply: str) -> list[Call]:
    return [(call.name, json.loads(call.arguments)) for call in parse_output(constraint, reply).calls]


def cases(style: str) -> list[tuple[str, list[Call]]]:
    lengths = (1,) if style in ONE_CALL else (1, 2, 4)
    texts = ("",) if style in TEXT_OR_CALLS else ("", "I look < it up. ")
    return [(text, CALLS[i : i + n]) for text in texts for n in lengths for i in range(0, len(CALLS), n)]


@pytest.mark.parametrize("style", STYLES)
def test_calls_come_back_as_they_were_written(style: str) -> None:
    for compiler in (PLAIN,):
        constraint = compiled(style, compiler)
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


# -- streaming ------------------------------------------------------------------------------------------------------------


def events_of(constraint: Constraint, chunks: list[bytes]) -> list[Event]:
    parser = OutputParser(constraint)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.finish()


def joined(events: list[Event]) -> list[Event]:
    """Neighbouring deltas as one."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta):
            out[-1] = ArgumentsDelta(last.index, last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(last.text + event.text)
        else:
            out.append(event)
    return out


@pytest.mark.parametrize("style", STYLES)
def test_every_cut_of_a_reply_gives_the_same_events(style: str) -> None:
    constraint = compiled(style)
    text = "" if style in TEXT_OR_CALLS else "é <"
    reply = WRITERS[style](text, CALLS[2:3] if style in ONE_CALL else CALLS[2:4]).encode()
    whole = joined(events_of(constraint, [reply]))
    assert [type(event) for event in whole if not isinstance(event, TextDelta)][:3] == [
        ToolCallStart,
        ArgumentsDelta,
        ToolCallEnd,
    ]
    assert joined(events_of(constraint, [reply[i : i + 1] for i in range(len(reply))])) == whole
    for i, j in combinations(range(0, len(reply), 7), 2):
        assert joined(events_of(constraint, [reply[:i], reply[i:j], reply[j:]])) == whole


@given(st.sampled_from(sorted(STYLES)), st.text(max_size=12), st.integers(0, 3), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_random_text_and_random_cuts(style: str, text: str, first: int, rng: random.Random) -> None:
    text = "" if style in TEXT_OR_CALLS else text.encode("utf-8", "ignore").decode()
    calls = CALLS[first : first + 1]
    reply = WRITERS[style](text, calls).encode()
    cuts = sorted(rng.randrange(len(reply) + 1) for _ in range(6))
    events = events_of(compiled(style), [reply[i:j] for i, j in zip([0, *cuts], [*cuts, len(reply)], strict=True)])
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    assert [(end.name, json.loads(end.arguments)) for end in ends] == calls
    deltas = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    assert deltas == "".join(end.arguments for end in ends)


def test_text_is_told_as_soon_as_it_is_certain() -> None:
    parser = OutputParser(compiled("hermes"))
    assert parser.feed("a <") == [TextDelta("a ")]
    assert parser.feed("tool_cal") == []
    assert parser.feed("m") == [TextDelta("<tool_calm")]
    assert parser.feed("<tool_call>\n{") == []
    assert parser.feed('"name": "get_weather", "arguments": {"city": "O') == [
        ToolCallStart(0, "get_weather"),
        ArgumentsDelta(0, '{"city": "O'),
    ]
    with pytest.raises(UnexpectedOutput) as error:
        parser.feed('slo", "days": 15')
    assert error.value.at > 0


def test_a_cut_reply_says_that_it_is_not_complete() -> None:
    parsed = parse_output(compiled("hermes"), 'Hi <tool_call>\n{"name": "get_weather", "argu')
    assert (parsed.text, parsed.calls, parsed.is_complete) == ("Hi ", (), False)
    assert parse_output(compiled("hermes"), "Hi <tool").text == "Hi <tool"


def test_a_call_of_harmony_has_several_spellings() -> None:
    for begin in (
        "<|channel|>commentary to=functions.get<|constrain|>json<|message|>",
        " to=functions.get<|channel|>commentary json<|message|>",
        " to=functions.get<|channel|>commentary <|constrain|>json<|message|>",
    ):
        assert parsed_calls(compiled("harmony"), begin + "{}<|call|>") == [("get", {})]


def test_harmony_tells_reasoning_and_preambles() -> None:
    reply = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + WRITERS["harmony"]("So:", CALLS[:1])
    events = joined(events_of(compiled("harmony"), [reply.encode()]))
    assert events[:4] == [ReasoningStart(), ReasoningDelta("Hm."), ReasoningEnd(), TextDelta("So:")]
    assert isinstance(events[-1], ToolCallEnd)


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


# -- styles of one's own, refusals ------------------------------------------------------------------------------------------


def test_a_style_can_be_declared() -> None:
    style = ToolStyle(call="@{name} {arguments};", separator=" ")
    constraint = PLAIN.compile(Tools(TOOLS, style=style))
    assert parsed_calls(constraint, 'x @get {}; @get_weather {"city":"Oslo"}; y') == [
        ("get", {}),
        ("get_weather", {"city": "Oslo"}),
    ]
    own = ToolStyle(call="<call {name}>{arguments}</call>", parameter="<{key}>{value}</{key}>".replace("</{key}>", "|"))
    assert parsed_calls(PLAIN.compile(Tools(TOOLS, style=own)), "<call get_weather><city>Oslo|<days>3|</call>") == [
        ("get_weather", {"city": "Oslo", "days": 3})
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(call="{name}"), "{arguments}"),
        (dict(call="{name}{arguments}", notation="yaml"), "notation"),
        (dict(call="{name}{arguments}", parameter="{key}"), "{value}"),
        (dict(call="{name}{arguments}", answer="final"), "{text}"),
    ],
)  # fmt: skip
def test_styles_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        ToolStyle(**options)


REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    (dict(tools=[{"name": "a b"}]), "a name is made of", "#/tools/0"),
    (dict(tools=[PING, PING]), "two tools", "#/tools/1/parameters"),
    (dict(tools=[{"type": "web_search"}]), "not a function", "#/tools/0"),
    (dict(tools=3), "list", "#/tools"),
    (dict(tools=[{"name": "a", "parameters": {"type": "array"}}]), "arguments are an object", "#/tools/0/parameters"),
    (dict(tools=TOOLS, style="yaml"), "no style", None),
    (dict(tools=TOOLS, choice="fetch"), "no tool is called 'fetch'", "#/tool_choice"),
    (dict(tools=[], choice="required"), "there are no tools", "#/tool_choice"),
    (dict(tools=[{"name": "a", "parameters": {"properties": {"x": {"type": "nothing"}}}}]), "type", "#/tools/0/parameters/properties/x"),
    (dict(tools=[{"name": "a", "parameters": {"minProperties": 1}}], style="qwen3-coder"), "minProperties", "#/tools/0/parameters"),
    (dict(tools=[{"name": "a", "parameters": {"required": ["x"]}}], style="pythonic"), "not declared", "#/tools/0/parameters"),
    (dict(tools=[{"name": "a", "parameters": {"properties": 3}}], style="pythonic"), "object is expected", "#/tools/0/parameters"),
    (dict(tools=[{"name": "a", "parameters": {"properties": {"x": False}, "required": ["x"]}}], style="pythonic"), "no value", "#/tools/0/parameters/properties/x"),
    (dict(tools=[{"name": "a", "parameters": {"properties": {"x": {"const": "\ud800"}}}}], style="qwen3-coder"), "surrogate", "#/tools/0/parameters"),
    (dict(tools=TOOLS, style=ToolStyle(call="{name}{arguments}")), "told from text", "{name}{arguments}"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message", "path"), REFUSED)
def test_errors_tell_the_path(options: dict[str, Any], message: str, path: str | None) -> None:
    with pytest.raises(ConstraintError, match=message) as error:
        PLAIN.compile(Tools(**options))
    assert error.value.path == path


def test_keywords_that_are_not_enforced_are_refused_or_relaxed() -> None:
    tools = [
        {
            "name": "a",
            "parameters": {
                "type": "object",
                "properties": {"x": {"type": "string", "pattern": r"(a)\1"}},
                "required": ["x"],
            },
        }
    ]
    with pytest.raises(UnsupportedKeyword) as error:
        PLAIN.compile(Tools(tools))
    assert error.value.path == "#/tools/0/parameters/properties/x"
    assert PLAIN.compile(Tools(tools, on_unsupported="relax")).residue


@pytest.mark.parametrize("name", ALIASES)
def test_aliases_are_styles(name: str) -> None:
    assert PLAIN.compile(Tools(TOOLS, style=name)) is not None


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)), lambda c: st.one_of(st.lists(c, max_size=2), st.dictionaries(st.text(max_size=3), c, max_size=2)), max_leaves=5))  # fmt: skip
def test_python_literals_become_json(value: Any) -> None:
    from .tool_texts import _python

    assert json.loads(as_json(_python(value), "python")) == value


def test_a_string_that_reads_as_something_else_is_left_out() -> None:
    constraint = compiled(
        "qwen3-coder",
        tools=[
            {"name": "f", "parameters": {"properties": {"x": {"type": ["string", "integer", "null"], "minimum": 3}}}}
        ],
    )
    for text, expected in (
        ("a", "a"),
        ("7", 7),
        ("null", None),
        ("nul", "nul"),
        ("07", "07"),
        ("2", ...),
        ("true", ...),
        ("[", ...),
    ):
        reply = f"<tool_call>\n<function=f>\n<parameter=x>\n{text}\n</parameter>\n</function>\n</tool_call>"
        assert constraint.accepts(reply) == (expected is not ...), text
        assert expected is ... or parsed_calls(constraint, reply) == [("f", {"x": expected})]


def test_a_parameter_without_values_is_not_written() -> None:
    tools = [
        {
            "name": "f",
            "parameters": {"properties": {"x": False, "y": {"$ref": "#/$defs/y"}}, "$defs": {"y": {"enum": ["a", 1]}}},
        }
    ]
    constraint = compiled("llama-pythonic", tools=tools)
    assert parsed_calls(constraint, '[f(), f(y="a"), f(y=1)]') == [("f", {}), ("f", {"y": "a"}), ("f", {"y": 1})]
    assert not constraint.accepts("[f(x=1)]") and not constraint.accepts("[f(y=2)]")


def test_values_that_end_in_what_ends_them() -> None:
    constraint = compiled(
        "qwen3-coder",
        tools=[
            {
                "name": "f",
                "parameters": {"properties": {"x": {"type": "string"}, "y": {"type": "string", "maxLength": 20}}},
            }
        ],
    )
    for text in ("\n", "a\n\n", "</parameter>\n", "\n</parameter", "é\n</", "\n</parameter>"):
        for key in ("x", "y"):
            reply = f"<tool_call>\n<function=f>\n<parameter={key}>\n{text}\n</parameter>\n</function>\n</tool_call>"
            if text.endswith("\n</parameter>"):  # the end stands there already
                assert not constraint.accepts(reply)
            else:
                assert parsed_calls(constraint, reply) == [("f", {key: text})], text


@pytest.mark.parametrize("end", ["ab", "aba", "aa", "abab"])
def test_bounded_strings_end_where_free_ones_do(end: str) -> None:
    style = ToolStyle(call="@{name}({arguments})", parameter="{key}={value}" + end)
    properties = {"x": {"type": "string"}, "y": {"type": "string", "maxLength": 99}, "z": {"type": ["string", "null"]}}
    constraint = PLAIN.compile(Tools([{"name": "f", "parameters": {"properties": properties}}], style=style))
    for size in range(5):
        for chars in product("ab", repeat=size):
            value = "".join(chars)
            is_first = (value + end).index(end) == size
            for key in "xyz":
                reply = f"@f({key}={value}{end})"
                assert constraint.accepts(reply) == is_first, reply
                assert not is_first or parsed_calls(constraint, reply) == [("f", {key: value})], reply


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


@pytest.mark.parametrize(
    ("folder", "style"),
    [("qwen3", "hermes"), ("llama-3.2", "llama3-json"), ("tekken-nemo", "mistral"), ("gpt-oss", "harmony"), ("deepseek-v3", "deepseek-v3")],
)  # fmt: skip
def test_styles_are_known_by_chat_templates(folder: str, style: str, shared_data: Path) -> None:
    place = shared_data / "tokenizers" / folder
    if not place.is_dir():
        pytest.skip("needs the tokenizers")
    path = place / "chat_template.jinja"
    template = (
        path.read_text("utf-8")
        if path.exists()
        else json.loads((place / "tokenizer_config.json").read_text("utf-8"))["chat_template"]
    )
    assert style_of_template(template) == style


def test_other_templates_have_no_style() -> None:
    assert style_of_template("{% for message in messages %}{{ message.content }}{% endfor %}") is None
    assert style_of_template("<tool_call><function={name}><parameter=x>") == "qwen3-coder"


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
