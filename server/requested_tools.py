"""Tools of a request, as the constraint of the reply: what may be called, how many times, and how the model writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..constraint_choice import ConstraintChoice
from ..constraints import ConstraintError, Tools, ToolStyle
from ..tools import Tool, as_tool
from .errors import ApiError, api_error

# How the embedded model writes one call: the whole reply is this JSON object. Text does not begin with a brace.
ONE_OBJECT = ToolStyle(call='{"name":"{name}","arguments":{arguments}}', leading="{")


def asked_tools(
    tools: Sequence[Mapping[str, Any]], tool_choice: Any, parallel: bool | None, style: str | ToolStyle | None
) -> tuple[tuple[Tool, ...], ConstraintChoice] | None:
    """(the tools the model is told, the constraint of its reply), None when nothing may be called.

    Arguments satisfy the schema of their tool, whatever `strict` says; keywords that cannot be enforced are refused, unless
    every tool says "strict": false. Raises ApiError with the path of the tool.
    """
    choice = _checked_choice(tool_choice)
    if not tools and choice not in ("auto", "none"):
        raise ApiError(400, "tool_choice asks for a call, but there are no tools", param="tool_choice", code="invalid_value")
    try:
        source = _source(tools, choice, parallel, style)
    except ConstraintError as error:
        raise api_error(error, _param(error)) from error
    if not tools or choice == "none" or source.choice == "none":
        return None
    callable_names = [tool.name for tool in source.tools]
    told = tuple(tool for tool in map(as_tool, tools) if tool.name in callable_names)
    return told, ConstraintChoice(source, told={"tools": [tool.definition() for tool in told]})


def _source(tools: Sequence[Mapping[str, Any]], choice: Any, parallel: bool | None, style: str | ToolStyle | None) -> Tools:
    is_loose = bool(tools) and all(_strict(tool) is False for tool in tools)
    policy = "relax" if is_loose else "refuse"
    if style is None:
        return Tools(tools, style=ONE_OBJECT, choice=choice, parallel=False, whitespace="compact", on_unsupported=policy)
    return Tools(tools, style=style, choice=choice, parallel=parallel is not False, on_unsupported=policy)


def _checked_choice(choice: Any) -> Any:
    """The tool choice. A word has to be a known one: a name stands in an object, so that a misspelt word is not taken
    for a tool."""
    if choice is None:
        return "auto"
    if isinstance(choice, str) and choice in ("auto", "none", "required"):
        return choice
    if isinstance(choice, Mapping) and choice.get("type", "function") in ("function", "allowed_tools"):
        return choice
    message = f"tool_choice is auto, none, required, a function or allowed_tools, not {choice!r}"
    raise ApiError(400, message, param="tool_choice", code="invalid_value")


def _strict(tool: Mapping[str, Any]) -> Any:
    function = tool.get("function")
    return (function if isinstance(function, Mapping) else tool).get("strict")


def _param(error: ConstraintError) -> str:
    return "tool_choice" if (error.path or "").startswith("#/tool_choice") else "tools"
