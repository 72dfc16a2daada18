"""Python functions become tools, and calls come back as Python values."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel

from maskwright.errors import UsageError
from maskwright.tools import Tool, as_tool, calls_schema, read_call, unique_tools


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
    jsonschema.validate({"name": "stop", "arguments": {}}, calls_schema([tool]))
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
    schema = calls_schema(unique_tools([find, get_weather, stop]))
    assert jsonschema.Draft202012Validator(schema).is_valid(call) == is_valid


def test_definitions_of_different_tools_do_not_mix() -> None:
    def parameters(kind: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "required": ["x"], "$defs": {"X": {"type": kind}}}

    tools = [Tool("number", "", parameters("integer")), Tool("text", "", parameters("string"))]
    validator = jsonschema.Draft202012Validator(calls_schema(tools))
    assert validator.is_valid({"name": "number", "arguments": {"x": 1}})
    assert not validator.is_valid({"name": "number", "arguments": {"x": "1"}})
    assert validator.is_valid({"name": "text", "arguments": {"x": "1"}})


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


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([untyped], 'tool "untyped": parameter "x" has no type annotation'),
        ([variadic], 'tool "variadic": parameter "args" cannot be passed by name'),
        ([stop, stop], 'two tools are called "stop"'),
        ([{"parameters": {}}], 'needs a "name"'),
        ([3], "not int"),
    ],
)
def test_what_cannot_be_a_tool_is_named(tools: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        unique_tools(tools)
