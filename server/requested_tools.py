"""Tools of a request, as the constraint of the reply: what may be called, how many times, and how the model writes it.

Functions and custom tools may be called. Tools of other types, such as `web_search`, are those of somebody's own servers: they are
passed over, and a header of the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..chat import ONE_OBJECT
from ..constraint_choice import ConstraintChoice
from ..constraints import ConstraintError, Source, Tools, ToolStyle
from ..tools import Tool, as_tool
from .errors import ApiError
from .requested_constraint import AskedConstraint

OWN = ("function", "custom")  # types of tools that clients run themselves
ONE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"], "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class AskedTools:
    """The tools that the model is told, and the constraint of a reply that may call them."""

    told: tuple[Tool, ...]
    constraint: AskedConstraint


def own_tools(tools: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """(the tools that a client can run, the places of the others, with their types)."""
    kept, passed_over = [], []
    for index, tool in enumerate(tools):
        kind = tool.get("type", "function")
        if kind in OWN or not isinstance(kind, str):
            kept.append(tool)
        else:
            passed_over.append(f"tools[{index}] ({kind})")
    return kept, passed_over


def plain_choice(choice: Any) -> Any:
    """A tool choice as chat completions have it: its word for one in an object, and for what others call "any"."""
    if choice == "":
        return None
    kind = choice.get("type") if isinstance(choice, Mapping) and len(choice) == 1 else choice
    if kind in ("any", "required"):
        return "required"
    return kind if kind in ("auto", "none") else choice


def asked_tools(
    tools: Sequence[Mapping[str, Any]],
    tool_choice: Any,
    parallel: bool | None,
    style: str | ToolStyle | None,
    answer: AskedConstraint,
) -> AskedTools | None:
    """What own tools ask for; None when nothing may be called.

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
    told = tuple(tool for tool in map(_told, tools) if tool.name in callable_names)
    said = {"tools": [tool.definition() for tool in told], **answer.choice.told}
    return AskedTools(told, AskedConstraint(ConstraintChoice(source, told=said), "tools", answer.param))


def _source(
    tools: Sequence[Mapping[str, Any]], choice: Any, parallel: bool | None, style: str | ToolStyle | None, answer: Source | None
) -> Tools:
    is_loose = bool(tools) and all(_strict(tool) is False for tool in tools if tool.get("type") != "custom")
    asked: dict[str, Any] = {"choice": choice, "on_unsupported": "relax" if is_loose else "refuse", "answer": answer}
    if style is None:
        return Tools(tools, style=ONE_OBJECT, parallel=False, whitespace="compact", **asked)
    return Tools(tools, style=style, parallel=parallel is not False, **asked)


def _told(tool: Mapping[str, Any]) -> Tool:
    """A tool as the model is told of it: a custom tool is a function of one text, whose grammar is shown."""
    if tool.get("type") != "custom":
        return as_tool(tool)
    custom = tool.get("custom", tool)
    form = custom.get("format") or {}
    grammar = form.get("grammar", form)
    said = [custom.get("description") or ""]
    if form.get("type") == "grammar":
        said.append(f"The input satisfies this {grammar['syntax']}:\n{grammar['definition']}")
    return as_tool({"name": custom["name"], "description": "\n\n".join(filter(None, said)), "parameters": ONE_TEXT})


def _checked_choice(choice: Any) -> Any:
    """The tool choice. A word has to be a known one: a name stands in an object, so that a misspelt word is not taken
    for a tool."""
    if choice is None:
        return "auto"
    if isinstance(choice, str) and choice in ("auto", "none", "required"):
        return choice
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return _without_others(choice)
    if isinstance(choice, Mapping) and choice.get("type", "function") in OWN:
        return choice
    message = f"tool_choice is auto, none, required, a function, a custom tool or allowed_tools, not {choice!r}"
    raise ApiError(400, message, param="tool_choice", code="invalid_value")


def _without_others(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Allowed tools without those that are passed over."""
    allowed = choice.get("allowed_tools", choice)
    tools = allowed.get("tools") if isinstance(allowed, Mapping) else None
    if not isinstance(tools, list):
        return choice
    kept = [tool for tool in tools if not isinstance(tool, Mapping) or tool.get("type", "function") in OWN]
    changed = {**allowed, "tools": kept}
    return changed if allowed is choice else {**choice, "allowed_tools": changed}


def _strict(tool: Mapping[str, Any]) -> Any:
    function = tool.get("function")
    return (function if isinstance(function, Mapping) else tool).get("strict")


def _param(error: ConstraintError) -> str:
    return "tool_choice" if (error.path or "").startswith("#/tool_choice") else "tools"
