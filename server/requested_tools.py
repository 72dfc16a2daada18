"""Tools of a request, as the constraint of the reply: what may be called, how many times, and how the model writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..chat import ONE_OBJECT
from ..constraint_choice import ConstraintChoice
from ..constraints import ConstraintError, Source, Tools, ToolStyle
from ..tools import Tool, as_tool
from .errors import ApiError
from .requested_constraint import AskedConstraint


def asked_tools(
    tools: Sequence[Mapping[str, Any]],
    tool_choice: Any,
    parallel: bool | None,
    style: str | ToolStyle | None,
    answer: AskedConstraint,
) -> tuple[tuple[Tool, ...], AskedConstraint] | None:
    """(the tools the model is told, the constraint of its reply), None when nothing may be called.

    answer: what a reply without calls satisfies, where the choice leaves it open whether there are calls.

    Arguments satisfy the schema of their tool, whatever `strict` says; keywords that cannot be enforced are refused, unless
    every tool says "strict": false. Raises ApiError with the path of the tool.
    """
    choice = _checked_choice(tool_choice)
    if not tools and choice not in ("auto", "none"):
        raise ApiError(400, "tool_choice asks for a call, but there are no tools", param="tool_choice", code="invalid_value")
    is_alone = not tools or choice == "none"
    try:
        source = _source(tools, choice, parallel, style, None if is_alone else answer.choice.source)
    except ConstraintError as error:
        raise AskedConstraint(param=_param(error), answer_param=answer.param).blame(error) from error
    if is_alone or source.choice == "none":
        return None
    callable_names = [tool.name for tool in source.tools]
    told = tuple(tool for tool in map(as_tool, tools) if tool.name in callable_names)
    definitions = [tool.definition() for tool in told]
    return told, AskedConstraint(ConstraintChoice(source, told={"tools": definitions, **answer.choice.told}), "tools", answer.param)


def _source(
    tools: Sequence[Mapping[str, Any]], choice: Any, parallel: bool | None, style: str | ToolStyle | None, answer: Source | None
) -> Tools:
    is_loose = bool(tools) and all(_strict(tool) is False for tool in tools)
    asked: dict[str, Any] = {"choice": choice, "on_unsupported": "relax" if is_loose else "refuse", "answer": answer}
    if style is None:
        return Tools(tools, style=ONE_OBJECT, parallel=False, whitespace="compact", **asked)
    return Tools(tools, style=style, parallel=parallel is not False, **asked)


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
