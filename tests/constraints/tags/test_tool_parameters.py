"""Arguments that are not written as JSON: Python literals, parameters between marks, and what ends their values."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import ConstraintError, Tools, ToolStyle
from maskwright.constraints.front_ends.tags.arguments import as_json

from .tool_cases import PLAIN, compiled, parsed_calls
from .tool_texts import python_literal


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)), lambda c: st.one_of(st.lists(c, max_size=2), st.dictionaries(st.text(max_size=3), c, max_size=2)), max_leaves=5))  # fmt: skip
def test_python_literals_become_json(value: Any) -> None:
    assert json.loads(as_json(python_literal(value), "python")) == value


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


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_the_schema_of_arguments_by_the_names_of_other_interfaces(key: str) -> None:
    tool = {"name": "f", key: {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
    (definition,) = Tools([tool]).tools
    assert json.loads(definition.parameters) == tool[key]
    with pytest.raises(ConstraintError, match=f"#/tools/0/{key}"):
        Tools([{"name": "f", key: {"type": "array"}}])
