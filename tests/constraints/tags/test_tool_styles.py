"""Styles of tool calls: of one's own, by alias, by chat template; and what is refused, with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maskwright.constraints import ConstraintError, StructuralTag, Tools, ToolStyle, UnsupportedKeyword
from maskwright.constraints.front_ends.tags.styles import ALIASES, style_of_template

from .tool_cases import PING, PLAIN, TOOLS, parsed_calls


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
    (dict(tools=[{"name": "a", "parameters": {"properties": 3}}], style="pythonic"), "an object of schemas is expected", "#/tools/0/parameters"),
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
    (told,) = PLAIN.compile(Tools(tools, on_unsupported="relax")).residue
    assert told.startswith("#/tools/0/parameters/properties/x pattern: not enforced")


@pytest.mark.parametrize("style", ["hermes", "qwen3-coder"])
def test_notes_say_of_which_tool_they_are(style: str) -> None:
    parameters: Any = {"type": "object", "properties": {"x": {"type": "string", "patern": "a"}}, "required": ["x"]}
    tools = [{"name": name, "parameters": parameters} for name in "ab"]
    places = [f"#/tools/{i}/parameters/properties/x" for i in range(2)]
    assert [note.partition(": 'patern'")[0] for note in PLAIN.compile(Tools(tools, style=style)).notes] == places
    parameters["properties"]["x"] = {"type": "string", "pattern": r"(a)\1"}
    residue = PLAIN.compile(Tools(tools, style=style, on_unsupported="relax")).residue
    assert [told.partition(" pattern: not enforced")[0] for told in residue] == places


def test_notes_say_in_which_tag_they_are() -> None:
    contents = [{"type": "json_schema", "json_schema": {"type": "string", "title": title}} for title in ("A", 3)]
    tags = [{"type": "tag", "begin": f"<{i}>", "content": content, "end": "</>"} for i, content in enumerate(contents)]
    (note,) = PLAIN.compile(StructuralTag({"type": "structural_tag", "format": {"type": "sequence", "elements": tags}})).notes
    assert note == "#/format/elements/1/content: 'title' is not a string: ignored"
    members = {"type": "object", "properties": {"x": {"type": "string", "patern": "a"}}, "required": ["x"]}
    content = {"type": "json_schema", "style": "qwen_xml", "json_schema": members}
    (note,) = PLAIN.compile(StructuralTag({"type": "structural_tag", "format": content})).notes
    assert note.startswith("#/format/properties/x: 'patern'")


@pytest.mark.parametrize("name", ALIASES)
def test_aliases_are_styles(name: str) -> None:
    assert PLAIN.compile(Tools(TOOLS, style=name)) is not None


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
