"""Python functions as tools: the JSON Schema of a signature, and a call read back from the model's output.

A tool call is the JSON object {"name": ..., "arguments": {...}}.

Functions, methods, classes, partials (without what they settle) and callable objects are tools when all of their parameters have a
name for the model and annotations that Pydantic describes. Their schemas are those of Python types (closed, exact), and a call is
run with what Pydantic's validation makes of the JSON of each argument.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .constraints import JsonSchema
from .constraints.front_ends.tags.tools import parameters_key
from .errors import UsageError
from .function_parameters import FunctionParameters, behind_partials, parameters_of

_NAME = re.compile(r"[\w.:/-]+")
_FIRST, _COLON, _COMMA = (re.compile(rf"\s*{each}\s*") for each in (r"\{", ":", ",?"))  # what stands before JSON of an object
ToolLike: TypeAlias = "Tool | Callable[..., Any] | Mapping[str, Any]"


@dataclass(frozen=True)
class Tool:
    """Something a model may call, by its name and description. Made by `as_tool`."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # a JSON Schema of type object
    function: Callable[..., Any] | None = None  # None for a tool given as a schema: the caller runs it

    def definition(self) -> dict[str, Any]:
        """The tool as chat templates and OpenAI's interface spell it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for. `run()` makes it, when the tool is a Python function."""

    tool: Tool
    arguments: Mapping[str, Any]  # JSON values, as generated
    text: str | None = field(default=None, compare=False)  # the JSON of the arguments as it was written, with all digits of numbers

    @property
    def name(self) -> str:
        """The name of the tool that is called."""
        return self.tool.name

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """The arguments as the function's annotations want them: dates, enums, models instead of JSON values.

        Raises `pydantic.ValidationError` for what a condition rejects that no schema can say, `UsageError` for arguments that the
        function does not have.
        """
        if self.tool.function is None:
            return dict(self.arguments)
        texts = _member_texts(json.dumps(dict(self.arguments)) if self.text is None else self.text)
        return self._parameters.values(texts)

    def run(self) -> Any:
        """The value that the function returns for these arguments."""
        if self.tool.function is None:
            raise UsageError(f'tool "{self.name}" was given as a schema; there is no function to run')
        return self._parameters.call(self.tool.function, self.values)

    @functools.cached_property
    def _parameters(self) -> FunctionParameters:
        assert self.tool.function is not None
        return parameters_of(self.tool.function, self.name)


def as_tool(tool: ToolLike) -> Tool:
    """A tool from a Python function (signature, annotations, docstring) or from its JSON form, OpenAI's, Anthropic's or MCP's.

    Raises UsageError naming the function and parameter that cannot be described.
    """
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return _tool_of_definition(tool)
    if not callable(tool):
        raise UsageError(f"a tool is a function or a definition, not {type(tool).__name__}")
    return _tool_of_function(tool)


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


def calls_of(tools: Sequence[Tool], whitespace: str = "auto") -> JsonSchema:
    """A call of any of these tools, as a source. The parameters of each are a document of their own, whose address is the name of
    the tool: references in them lead where they lead in the definition of the tool."""
    calls = [_call_schema(tool.name) for tool in tools]
    documents = {tool.name: dict(tool.parameters) for tool in tools}
    return JsonSchema(calls[0] if len(calls) == 1 else {"anyOf": calls}, whitespace=whitespace, resources=documents)


def _call_schema(name: str) -> dict[str, Any]:
    properties = {"name": {"const": name}, "arguments": {"$ref": name}}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def read_call(text: str, tools: Sequence[Tool]) -> ToolCall:
    """The call that a text satisfying `calls_of(tools)` stands for."""
    texts = _member_texts(text)
    name = json.loads(texts["name"])
    tool = next(tool for tool in tools if tool.name == name)
    return ToolCall(tool, json.loads(texts["arguments"]), texts["arguments"])


def _tool_of_definition(definition: Mapping[str, Any]) -> Tool:
    function = definition.get("function", definition)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f'a tool definition needs a "name" of letters, digits and _ . : / -, not {name!r}')
    return Tool(name, function.get("description") or "", _object_schema(function.get(parameters_key(function)), name))


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


def _tool_of_function(function: Callable[..., Any]) -> Tool:
    plain = behind_partials(function)
    name = getattr(plain, "__name__", type(plain).__name__)  # an object that is called goes by the name of its class
    if not _NAME.fullmatch(name):
        raise UsageError(f'a tool needs a name of letters, digits and _ . : / -, not "{name}": define it with def')
    if (reason := _uncallable(plain)) is not None:
        raise UsageError(f'tool "{name}": {reason}')
    is_object = not (inspect.isroutine(plain) or inspect.isclass(plain))
    description = plain.__doc__ or (type(plain).__call__.__doc__ if is_object else None) or ""
    if inspect.isclass(plain) and description.startswith(f"{name}("):
        description = ""  # Python's own, of a dataclass or a named tuple
    return Tool(name, inspect.cleandoc(description), parameters_of(function, name).schema(), function)


def _uncallable(plain: Any) -> str | None:
    """Why a call with named arguments would fail, whatever they are; None where it need not."""
    if inspect.isabstract(plain):
        missing = ", ".join(sorted(plain.__abstractmethods__))
        return f"it is an abstract class, of which Python makes no objects ({missing} not defined); give a class that defines all"
    if getattr(plain, "_is_protocol", False):
        return "it is a protocol, of which Python makes no objects; give a class or a function"
    code = getattr(plain, "__code__", None)
    if hasattr(plain, "register") and code is not None and code.co_filename == functools.singledispatch.__code__.co_filename:
        return "functools.singledispatch chooses by a positional argument, and those of tools have names; give one of its functions"
    return None


def _member_texts(text: str) -> dict[str, str]:
    """The JSON texts of the members of the JSON text of an object, as they are written."""
    texts: dict[str, str] = {}
    decoder, at = json.JSONDecoder(), _behind(_FIRST, text, 0)
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        begin = _behind(_COLON, text, at)
        _, end = decoder.raw_decode(text, begin)
        texts[name] = text[begin:end]
        at = _behind(_COMMA, text, end)
    return texts


def _behind(separator: re.Pattern[str], text: str, at: int) -> int:
    found = separator.match(text, at)
    assert found is not None  # the text is JSON
    return found.end()
