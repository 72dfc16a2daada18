"""One turn of a conversation: which constraint it has, what the model is shown, and the reply read back.

`tool_choice` decides what a reply to a request with tools may be:

    "none"        free text
    "auto"        free text, or one call: a text that begins with "{" is a call and nothing else
    "required"    one call of any tool
    a tool's name one call of that tool

With a tool style (`constraints/front_ends/tags/styles.py`) a reply is written as the model learned it: text with calls in it,
several perhaps.

With a constraint beside the tools a reply is either calls or a text that satisfies the constraint; "required" and a name still mean
calls, and "none" the constraint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .constraint_choice import ConstraintChoice, ConstraintOptions, choose
from .constraints import Constraint, Tools, ToolStyle, parse_output
from .constraints.front_ends.tags.call_or_text import CallOrText
from .constraints.front_ends.tags.events import ParsedReply
from .conversation import Message, answered_tools, read_messages
from .errors import UsageError
from .outputs import GenerationIncomplete, GenerationOutput
from .tools import Tool, ToolCall, ToolLike, calls_of, read_call, unique_tools

# How the embedded model writes one call: the whole reply is this JSON object. Text does not begin with a brace.
ONE_OBJECT = ToolStyle(call='{"name":"{name}","arguments":{arguments}}', leading="{")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model said: `tool_calls` when it asks for calls, else `text`. `output` is how it came about."""

    output: GenerationOutput = field(repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    parts: ParsedReply | None = field(default=None, repr=False)  # of a reply in a tool style
    answer: ConstraintChoice | None = field(default=None, repr=False)  # what a reply without calls satisfies, beside tools

    @property
    def text(self) -> str:
        """What the model wrote, also when it is a call."""
        return self.output.text

    @property
    def content(self) -> str:
        """The text for the reader, without calls and reasoning."""
        if self.parts is not None:
            return self.parts.text
        return "" if self.tool_calls else self.text

    @property
    def reasoning(self) -> str:
        """What the model thought first, in a style that tells."""
        return self.parts.reasoning if self.parts is not None else ""

    @property
    def parsed(self) -> Any:
        """The reply as its constraint reads it; a `ToolCall` when it is one."""
        if self.tool_calls:
            return self.tool_calls[0]
        return self.output.parsed if self.answer is None else replace(self.output, text=self.content, choice=self.answer).parsed

    def message(self) -> dict[str, Any]:
        """The reply as a message, to be appended to the conversation."""
        if self.parts is None or not self.tool_calls:
            return {"role": "assistant", "content": self.text if self.parts is None else self.content}
        calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in self.tool_calls]
        wrapped = [{"type": "function", "function": call} for call in calls]
        return {"role": "assistant", "content": self.content, "tool_calls": wrapped}


@dataclass(frozen=True, slots=True)
class Turn:
    """A checked request for one reply."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    choice: ConstraintChoice
    variables: Mapping[str, Any] = field(default_factory=dict)  # for the chat template
    answer: ConstraintChoice | None = None  # what a reply without calls satisfies, where there are tools
    is_begun: bool = False  # the last message is the beginning of the reply

    @property
    def begun(self) -> str:
        """The beginning of the reply that the model goes on with."""
        return str(self.messages[-1]["content"]) if self.is_begun else ""


def plan_turn(
    messages: str | Sequence[Message],
    tools: Sequence[ToolLike],
    tool_choice: str | Mapping[str, Any],
    options: ConstraintOptions,
    tool_style: str | ToolStyle | None = None,
    has_tool_role: bool = True,
) -> Turn:
    """The constraint of a reply. Raises UsageError for messages, tools or choices that make no sense together.

    tool_style: how the model writes calls; None for one JSON object.
    has_tool_role: whether the chat template knows calls and their results; where it does not, `answered_tools` are left out.
    """
    checked = unique_tools(tools)
    tool_choice = _choice_word(tool_choice)
    if tool_choice == "auto" and not has_tool_role:
        checked = tuple(tool for tool in checked if tool.name not in answered_tools(messages))
    callable_tools = _callable_tools(checked, tool_choice)
    asked = choose(options)
    read = read_messages(messages, has_tool_role=has_tool_role)
    if not callable_tools:
        return Turn(read, (), asked)
    if asked.source is None:
        return Turn(read, callable_tools, _choice_of_call(callable_tools, tool_choice, tool_style))
    if isinstance(asked.source, Constraint):
        raise UsageError(f"{_given(options)}= is compiled already: beside tools= give what it was compiled from")
    return Turn(read, callable_tools, _choice_of_call_or(asked, callable_tools, tool_choice, tool_style), answer=asked)


def reply_of(output: GenerationOutput, turn: Turn, constraint: Constraint | None = None) -> Reply:
    """The reply; an incomplete call raises GenerationIncomplete. `constraint` is the compiled one, which also parses."""
    if isinstance(output.choice.source, Tools) and constraint is not None:
        return _parsed_reply(output, turn, constraint)
    is_call = bool(turn.tools) and (output.choice.is_json or output.text.startswith("{"))
    if not is_call:
        return Reply(output=output)
    call: ToolCall = output.parsed if output.choice.is_json else read_call(_complete(output), turn.tools)
    return Reply(output=output, tool_calls=(call,))


def _choice_word(choice: str | Mapping[str, Any]) -> str:
    """A tool choice in one word; OpenAI's object for a function is its name."""
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else choice
    if not isinstance(name, str):
        raise UsageError(f'tool_choice= is "auto", "none", "required" or the name of a tool, not {choice!r}')
    return name


def _callable_tools(tools: tuple[Tool, ...], tool_choice: str) -> tuple[Tool, ...]:
    if tool_choice in ("none", "auto", "required"):
        if tool_choice == "required" and not tools:
            raise UsageError('tool_choice="required" needs tools=')
        return () if tool_choice == "none" else tools
    named = tuple(tool for tool in tools if tool.name == tool_choice)
    if not named:
        known = ", ".join(f'"{tool.name}"' for tool in tools) or "there are none"
        raise UsageError(
            f'tool_choice="{tool_choice}" is not "auto", "none", "required" or the name of a tool ({known})'
        )
    return named


def _parsed_reply(output: GenerationOutput, turn: Turn, constraint: Constraint) -> Reply:
    if not output.is_complete:
        raise GenerationIncomplete(output)
    parts = parse_output(constraint, output.token_ids)
    by_name = {tool.name: tool for tool in turn.tools}
    calls = tuple(ToolCall(by_name[call.name], json.loads(call.arguments), call.arguments) for call in parts.calls)
    return Reply(output=output, tool_calls=calls, parts=parts, answer=turn.answer)


def _choice_of_call_or(
    answer: ConstraintChoice, tools: tuple[Tool, ...], tool_choice: str, style: str | ToolStyle | None
) -> ConstraintChoice:
    """Calls, or, where the choice leaves that open, a text that satisfies `answer`."""
    told = {"tools": [tool.definition() for tool in tools], **answer.told}
    choice: Any = tool_choice if tool_choice in ("auto", "required") else {"name": tool_choice}
    if style is None:
        written: dict[str, Any] = {"style": ONE_OBJECT, "parallel": False, "whitespace": "compact"}
    else:
        written = {"style": style}
    return ConstraintChoice(Tools(told["tools"], choice=choice, answer=answer.source, **written), told=told)


def _choice_of_call(tools: tuple[Tool, ...], tool_choice: str, style: str | ToolStyle | None) -> ConstraintChoice:
    told = {"tools": [tool.definition() for tool in tools]}
    if style is not None:
        choice: Any = tool_choice if tool_choice in ("auto", "required") else {"name": tool_choice}
        return ConstraintChoice(Tools(told["tools"], style=style, choice=choice), told=told)
    calls = calls_of(tools, whitespace="compact")  # as the embedded model learned it
    if tool_choice == "auto":
        return ConstraintChoice(CallOrText(calls), told=told)
    return ConstraintChoice(calls, lambda text: read_call(text, tools), True, told)


def _complete(output: GenerationOutput) -> str:
    text: str = output.parsed  # raises GenerationIncomplete
    return text


def _given(options: ConstraintOptions) -> str:
    return next(name for name, value in options.items() if value is not None)
