"""Conversations as people and clients write them, made into what chat templates read.

Content may be a text or a list of text parts; a message with calls may have none. Arguments of calls are objects, as templates want
them, whatever they were written as; the text of a custom tool, and what is no object, is the argument `input`. For a template
that knows neither calls nor their results both are told as text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from .errors import MessageError, UsageError

Message: TypeAlias = Mapping[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")  # parts of what was thought before, which is not shown again
REFUSED = {"audio": "this model neither hears nor speaks", "function_call": "write a call as tool_calls"}
OWN = ("name", "tool_call_id", "reasoning_content")  # strings that a message may have beside its content
INPUT = "input"  # the argument that stands for the text of a custom tool
UNSUPPORTED = "unsupported_content"


def read_messages(
    messages: str | Sequence[Message],
    *,
    has_tool_role: bool = True,
    roles: Collection[str] | None = None,
    members: Collection[str] | None = None,
) -> tuple[dict[str, Any], ...]:
    """The messages of a conversation; a lone string is a message of the user.

    has_tool_role: whether the template knows calls and their results. roles: the roles that are known; None leaves that
    to the template. members: the members that the template is shown beside role, content and calls; None shows all.

    Raises UsageError; for a message that cannot be read MessageError.
    """
    if isinstance(messages, str):
        return ({"role": "user", "content": messages},)
    if isinstance(messages, Mapping | bytes) or not isinstance(messages, Sequence):
        raise UsageError(f"messages is a str or a list of messages, not {type(messages).__name__}")
    if not messages:
        raise MessageError("messages", "is empty; a conversation begins with at least one message", joint=" ")
    made = [_message(message, f"messages[{index}]", roles, members) for index, message in enumerate(messages)]
    return tuple(made if has_tool_role else [_plain(message) for message in made])


def _message(message: Any, place: str, roles: Collection[str] | None, members: Collection[str] | None) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise MessageError(place, f'has a "role" and a "content", and is not {type(message).__name__}', joint=" ")
    role = _role(message, place, roles)
    for name, reason in REFUSED.items():
        if message.get(name) is not None:
            raise MessageError(f"{place}.{name}", reason, code=UNSUPPORTED)
    calls = message.get("tool_calls")
    content = message.get("content") if message.get("content") is not None else message.get("refusal")
    may_be_null = "content" in message and role in ("assistant", "tool")  # a tool that gave nothing, a reply that was cut short
    if content is None and not calls and not may_be_null:
        raise MessageError(f"{place}.content", "is missing", joint=" ")
    made = {name: value for name, value in message.items() if members is None or name in members}
    left_out = THOUGHTS if role == "assistant" else ()
    made |= {"role": "system" if role == "developer" else role, "content": _text(content, f"{place}.content", left_out)}
    for name in OWN:
        if not isinstance(message.get(name), str | None):
            raise MessageError(f"{place}.{name}", "is a string", joint=" ")
        if message.get(name) is None:
            made.pop(name, None)
    made.pop("tool_calls", None)
    if calls:
        place = f"{place}.tool_calls"
        made["tool_calls"] = [_call(call, f"{place}[{index}]") for index, call in enumerate(_list(calls, place, "a list of calls"))]
    return made


def answered_tools(messages: Any) -> set[str]:
    """The names of tools that were called since the user spoke last, where a conversation, as it was given, ends with a result.

    A model that has not learned what results are would ask for the same call again and again, so these are not offered to it.
    """
    given = messages if isinstance(messages, list | tuple) and all(isinstance(each, Mapping) for each in messages) else ()
    if not given or given[-1].get("role") != "tool":
        return set()
    since = takewhile(lambda message: message.get("role") in ("assistant", "tool"), reversed(given))
    return {name for message in since for function in _functions(message) if isinstance(name := function.get("name"), str)}


def _functions(message: Message) -> list[Mapping[str, Any]]:
    """What a message calls, whether it says so apart or in its text, as `_plain` writes it. Malformed calls are none."""
    calls, content = message.get("tool_calls"), message.get("content")
    if isinstance(calls, list | tuple) and calls:
        functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    elif message.get("role") == "assistant" and isinstance(content, str) and content.startswith("{"):
        functions = [_object(line) for line in content.splitlines()]
    else:
        functions = []
    return [each for each in functions if isinstance(each, Mapping)]


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _role(message: Message, place: str, roles: Collection[str] | None) -> str:
    role = message.get("role")
    if roles is not None and role not in roles:
        raise MessageError(f"{place}.role", f"is one of {', '.join(roles)}, not {role!r}", joint=" ")
    if not isinstance(role, str):
        raise MessageError(f"{place}.role", f"is a word such as user or assistant, not {role!r}", joint=" ")
    return role


def _text(content: Any, place: str, left_out: Collection[str] = ()) -> str:
    """left_out: types of parts that are not shown."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_part(part, f"{place}[{index}]", left_out) for index, part in enumerate(_list(content, place)))


def _part(part: Any, place: str, left_out: Collection[str]) -> str:
    if not isinstance(part, Mapping):
        raise MessageError(place, f'is a part such as {{"type": "text", "text": ...}}, not {type(part).__name__}', joint=" ")
    kind = part.get("type")
    if kind in left_out:
        return ""
    if kind not in TEXT_PARTS:
        raise MessageError(place, f"this model reads text, not {kind!r}", code=UNSUPPORTED)
    text = part.get("refusal" if kind == "refusal" else "text")
    if not isinstance(text, str):
        raise MessageError(f"{place}.text", "is a string", joint=" ")
    return text


def _call(call: Any, place: str) -> dict[str, Any]:
    custom = call.get("custom") if isinstance(call, Mapping) else None
    function = {**custom, "arguments": {INPUT: custom.get("input", "")}} if isinstance(custom, Mapping) else None
    if function is None and isinstance(call, Mapping):
        function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise MessageError(f"{place}.function", "has a name and arguments", joint=" ", param=place)
    given = function.get("arguments")
    if not isinstance(given, str | Mapping | None):
        raise MessageError(f"{place}.function.arguments", "are an object or a JSON text", joint=" ", param=place)
    wrapped = {"type": "function", "function": {"name": function["name"], "arguments": _arguments(given)}}
    return wrapped | ({"id": call["id"]} if isinstance(call.get("id"), str) else {})


def _arguments(given: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Arguments as an object, which templates want. What is none, because a model has called a tool wrongly, is shown as
    the one argument of a custom tool is."""
    try:
        arguments: Any = json.loads(given or "{}") if isinstance(given, str | None) else given
    except (ValueError, RecursionError):
        arguments = given
    return arguments if isinstance(arguments, Mapping) else {INPUT: given}


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message for a template that knows neither calls nor their results: a call is its JSON text, a result is a text
    of the user."""
    role = "user" if message["role"] == "tool" else message["role"]
    calls = [call["function"] for call in message.get("tool_calls", ())]
    written = "\n".join(json.dumps(call, ensure_ascii=False, separators=(",", ":")) for call in calls)
    return {"role": role, "content": "\n".join(filter(None, (message["content"], written)))}


def _list(value: Any, place: str, wanted: str = "a string or a list of parts") -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise MessageError(place, f"is {wanted}, not {type(value).__name__}", joint=" ")
    return value
