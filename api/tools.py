"""Python functions as tools: the JSON Schema of a signature, and a call read back from the model's output.

A tool call is the JSON object {"name": ..., "arguments": {...}}.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from .errors import UsageError

_NAME = re.compile(r"[\w.:/-]+")
ToolLike: TypeAlias = "Tool | Callable[..., Any] | Mapping[str, Any]"


@dataclass(frozen=True)
class Tool:
    """Something a model may call. Made by `as_tool`."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # a JSON Schema of type object
    function: Callable[..., Any] | None = None  # None for a tool given as a schema: the caller runs it

    def definition(self) -> dict[str, Any]:
        """The tool as chat templates and OpenAI's interface spell it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    def call_schema(self) -> dict[str, Any]:
        """The JSON Schema of a call of this tool."""
        properties = {"name": {"const": self.name}, "arguments": dict(self.parameters)}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for. `run()` makes it, when the tool is a Python function."""

    tool: Tool
    arguments: Mapping[str, Any]  # JSON values, as generated

    @property
    def name(self) -> str:
        return self.tool.name

    @cached_property
    def values(self) -> dict[str, Any]:
        """The arguments as the function's annotations want them: dates, enums, models instead of JSON values."""
        if self.tool.function is None:
            return dict(self.arguments)
        return _validated(self.tool.function, self.arguments)

    def run(self) -> Any:
        """The value that the function returns for these arguments."""
        if self.tool.function is None:
            raise UsageError(f'tool "{self.name}" was given as a schema; there is no function to run')
        return self.tool.function(**self.values)


def as_tool(tool: ToolLike) -> Tool:
    """A tool from a Python function (signature, annotations, docstring) or from OpenAI's JSON form.

    Raises UsageError naming the function and parameter that cannot be described.
    """
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return _tool_of_definition(tool)
    if not callable(tool):
        raise UsageError(f"a tool is a function or a definition, not {type(tool).__name__}")
    return Tool(tool.__name__, inspect.cleandoc(tool.__doc__ or ""), _parameters_of(tool), tool)


def unique_tools(tools: Sequence[ToolLike]) -> tuple[Tool, ...]:
    """All tools, checked to have different names."""
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise UsageError(f"tools= is a list of functions and definitions, not {type(tools).__name__}")
    made = tuple(as_tool(tool) for tool in tools)
    names = [tool.name for tool in made]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise UsageError(f'two tools are called "{doubled}"')
    return made


def calls_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON Schema of a call of any of these tools; `$defs` of the parameters move to its root."""
    definitions: dict[str, Any] = {}
    calls = []
    for tool in tools:
        prefix = f"{tool.name}."
        own = dict(tool.parameters).get("$defs", {})
        definitions |= {prefix + name: _with_prefix(schema, prefix) for name, schema in own.items()}
        call = tool.call_schema()
        call["properties"]["arguments"] = _with_prefix({k: v for k, v in tool.parameters.items() if k != "$defs"}, prefix)
        calls.append(call)
    schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return schema | ({"$defs": definitions} if definitions else {})


def read_call(text: str, tools: Sequence[Tool]) -> ToolCall:
    """The call that a text satisfying `calls_schema(tools)` stands for."""
    call = json.loads(text)
    tool = next(tool for tool in tools if tool.name == call["name"])
    return ToolCall(tool, call["arguments"])


def _with_prefix(schema: Any, prefix: str) -> Any:
    """`schema` with its references into `$defs` renamed. (A property called "$ref" has a mapping as value, not a string.)"""
    if isinstance(schema, list):
        return [_with_prefix(item, prefix) for item in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: _with_prefix(value, prefix) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        renamed["$ref"] = "#/$defs/" + prefix + reference.removeprefix("#/$defs/")
    return renamed


def _tool_of_definition(definition: Mapping[str, Any]) -> Tool:
    function = definition.get("function", definition)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f'a tool definition needs a "name" of letters, digits and _ . : / -, not {name!r}')
    return Tool(name, function.get("description") or "", _object_schema(function.get("parameters"), name))


def _object_schema(parameters: Any, name: str) -> dict[str, Any]:
    """The schema of the arguments. It describes an object, whether it says so or not; without a schema there are no
    arguments."""
    if parameters is None or parameters == {}:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if parameters is True:
        return {"type": "object"}
    if not isinstance(parameters, Mapping):
        raise UsageError(f'tool "{name}": parameters are a JSON Schema, not {type(parameters).__name__}')
    kinds = parameters.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list | tuple) and "object" in kinds):
        raise UsageError(f'tool "{name}": arguments are an object, so the "type" of parameters is "object", not {kinds!r}')
    return {**parameters, "type": "object"}


def _parameters_of(function: Callable[..., Any]) -> dict[str, Any]:
    schema = _arguments_model(function).model_json_schema()
    schema.pop("title", None)
    return schema


def _validated(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    model = _arguments_model(function).model_validate_json(json.dumps(arguments))
    return {name: getattr(model, name) for name in model.model_fields_set}


def _arguments_model(function: Callable[..., Any]) -> Any:
    """A closed Pydantic model with one field per parameter."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f'tool "{function.__name__}": parameter "{name}" cannot be passed by name')
        if parameter.annotation is parameter.empty:
            raise UsageError(f'tool "{function.__name__}": parameter "{name}" has no type annotation')
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (parameter.annotation, Field(default))
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
