"""Python functions become tools, and calls come back as Python values."""

from __future__ import annotations

import abc
import datetime
import functools
import json
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import pytest
from pydantic import BaseModel

from maskwright.constraints import Compiler, Vocabulary
from maskwright.errors import UsageError
from maskwright.tools import Tool, as_tool, calls_of, read_call, unique_tools

COMPILER = Compiler(Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=[256]))


class Place(BaseModel):
    city: str
    country: str = "GB"


def get_weather(place: Place, day: datetime.date, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """The weather at a place."""
    return f"{place.city}, {day:%d %B}, {unit}"


def stop() -> str:
    return "stopped"


def find(place: Place) -> str:
    return place.country


def is_call(call: Any, tools: Sequence[Tool]) -> bool:
    return COMPILER.compile(calls_of(tools)).accepts(json.dumps(call).encode())


def test_a_function_becomes_a_definition() -> None:
    definition = as_tool(get_weather).definition()
    function = definition["function"]
    assert (definition["type"], function["name"], function["description"]) == ("function", "get_weather", "The weather at a place.")
    assert list(function["parameters"]["properties"]) == ["place", "day", "unit"]
    assert function["parameters"]["required"] == ["place", "day"]
    assert function["parameters"]["additionalProperties"] is False


def test_a_call_runs_with_the_types_of_the_annotations() -> None:
    text = '{"name":"get_weather","arguments":{"place":{"city":"Leeds"},"day":"2025-03-09"}}'
    call = read_call(text, unique_tools([stop, get_weather]))
    assert (call.name, call.arguments["day"]) == ("get_weather", "2025-03-09")
    assert call.values["place"] == Place(city="Leeds")
    assert call.run() == "Leeds, 09 March, celsius"


def test_a_function_without_parameters_takes_no_arguments() -> None:
    (tool,) = unique_tools([stop])
    assert is_call({"name": "stop", "arguments": {}}, [tool])
    assert read_call('{"name":"stop","arguments":{}}', [tool]).run() == "stopped"


@pytest.mark.parametrize(
    ("call", "is_valid"),
    [
        ({"name": "find", "arguments": {"place": {"city": "Leeds"}}}, True),
        ({"name": "stop", "arguments": {}}, True),
        ({"name": "find", "arguments": {"place": {"town": "Leeds"}}}, False),
        ({"name": "find", "arguments": {}}, False),
        ({"name": "stop", "arguments": {"x": 1}}, False),
        ({"name": "other", "arguments": {}}, False),
        ({"name": "stop"}, False),
    ],
)
def test_the_schema_of_calls_admits_calls_of_the_tools_only(call: Any, is_valid: bool) -> None:
    assert is_call(call, unique_tools([find, get_weather, stop])) == is_valid


def test_definitions_of_different_tools_do_not_mix() -> None:
    def parameters(kind: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "required": ["x"], "$defs": {"X": {"type": kind}}}

    tools = [Tool("number", "", parameters("integer")), Tool("text", "", parameters("string"))]
    assert is_call({"name": "number", "arguments": {"x": 1}}, tools)
    assert not is_call({"name": "number", "arguments": {"x": "1"}}, tools)
    assert is_call({"name": "text", "arguments": {"x": "1"}}, tools)


POSITIVE = {"type": "integer", "minimum": 1}
REFERRING: dict[str, dict[str, Any]] = {  # schemas of an "x" that is positive, or that has such an "x" in it, as libraries write them
    "definitions": {"properties": {"x": {"$ref": "#/definitions/N"}}, "definitions": {"N": POSITIVE}},
    "properties": {"properties": {"y": POSITIVE, "x": {"$ref": "#/properties/y"}}},
    "address": {"$id": "http://example.org/a", "properties": {"x": {"$ref": "a#/$defs/N"}}, "$defs": {"N": POSITIVE}},
    "anchor": {"properties": {"x": {"$ref": "#n"}}, "$defs": {"N": {"$anchor": "n", **POSITIVE}}},
    "root": {
        "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/A",
        "definitions": {"A": {"type": "object", "properties": {"x": POSITIVE}, "required": ["x"]}},
    },
    "itself": {"properties": {"x": {"anyOf": [POSITIVE, {"$ref": "#"}]}}},
    "draft-4": {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"x": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}},
}  # fmt: skip


@pytest.mark.parametrize("name", REFERRING)
def test_references_lead_where_they_lead_in_the_definition(name: str) -> None:
    definitions = [{"name": each, "inputSchema": {"type": "object", "required": ["x"], **schema}} for each, schema in REFERRING.items()]
    tools = unique_tools(definitions)
    assert is_call({"name": name, "arguments": {"x": 1}}, tools)
    assert not is_call({"name": name, "arguments": {"x": 0}}, tools)
    assert is_call({"name": name, "arguments": {"x": {"x": 1}}}, tools) == (name == "itself")
    assert not is_call({"name": name, "arguments": {"x": {"name": name, "arguments": {"x": 1}}}}, tools)


def test_a_constant_that_looks_like_a_reference_is_kept() -> None:
    (tool,) = unique_tools([{"name": "f", "parameters": {"properties": {"x": {"const": {"$ref": "#/$defs/N"}}}, "$defs": {"N": POSITIVE}}}])
    assert is_call({"name": "f", "arguments": {"x": {"$ref": "#/$defs/N"}}}, [tool])


def test_a_tool_given_as_a_definition_is_not_run() -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}}}
    (tool,) = unique_tools([{"type": "function", "function": {"name": "f", "parameters": parameters}}])
    call = read_call('{"name":"f","arguments":{"x":1}}', [tool])
    assert call.values == {"x": 1}
    with pytest.raises(UsageError, match='tool "f" was given as a schema'):
        call.run()


def untyped(x) -> None:  # type: ignore[no-untyped-def]
    ...


def variadic(*args: int) -> None: ...


class Shape(abc.ABC):
    def __init__(self, size: int) -> None:
        self.size = size

    @abc.abstractmethod
    def area(self) -> float: ...


class Sized(Protocol):
    def size(self, unit: str) -> int: ...


@functools.singledispatch
def shown(value: int) -> str:
    return str(value)


class Printer:
    @functools.singledispatchmethod
    def show(self, value: int) -> str:
        return str(value)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([untyped], 'tool "untyped": parameter "x" has no type annotation'),
        ([variadic], 'tool "variadic": parameter "args" cannot be passed by name'),
        ([stop, stop], 'two tools are called "stop"'),
        ([{"parameters": {}}], 'needs a "name"'),
        ([3], "not int"),
        ([Shape], 'tool "Shape": it is an abstract class, of which Python makes no objects .area not defined.'),
        ([functools.partial(Shape, size=3)], 'tool "Shape": it is an abstract class'),
        ([Sized], 'tool "Sized": it is a protocol'),
        ([shown], 'tool "shown": functools.singledispatch chooses by a positional argument'),
        ([Printer().show], 'tool "show": functools.singledispatch chooses by a positional argument'),
    ],
)
def test_what_cannot_be_a_tool_is_named(tools: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        unique_tools(tools)
