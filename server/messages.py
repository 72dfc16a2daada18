"""Conversations as clients write them, made into what chat templates read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ApiError

ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
# Not variables of a template, but how it is rendered. A template of the client's own could keep the server busy without end.
RESERVED = (
    "chat_template", "add_generation_prompt", "continue_final_message", "sanitize_control_tokens", "tokenize", "tokenizer_kwargs",
    "padding", "truncation", "max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask",
    "conversation", "messages", "tools",
)  # fmt: skip


def template_messages(messages: Sequence[Mapping[str, Any]], *, has_tool_role: bool) -> tuple[dict[str, Any], ...]:
    """Messages with a known role and text as content; arguments of calls are objects, as templates want them.

    has_tool_role: whether the template knows calls and their results; else they are told as text.
    """
    if not messages:
        message = "messages is empty; a conversation begins with at least one message"
        raise ApiError(400, message, param="messages", code="invalid_value")
    made = [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    return tuple(made if has_tool_role else [_plain(message) for message in made])


def template_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """What `chat_template_kwargs` hands to the template."""
    wrong = next((name for name in given if name in RESERVED), None)
    if wrong is not None:
        param = f"chat_template_kwargs.{wrong}"
        raise ApiError(400, f"{param} is not a variable that clients may set", param=param, code="invalid_value")
    return dict(given)


def _message(message: Mapping[str, Any], place: str) -> dict[str, Any]:
    role = message.get("role")
    if role not in ROLES:
        raise ApiError(400, f"{place}.role is one of {', '.join(ROLES)}, not {role!r}", param=f"{place}.role", code="invalid_value")
    for name in ("audio", "function_call"):
        if message.get(name) is not None:
            reason = "this model neither hears nor speaks" if name == "audio" else "write a call as tool_calls"
            raise ApiError(400, f"{place}.{name}: {reason}", param=f"{place}.{name}", code="unsupported_content")
    calls = message.get("tool_calls")
    content = message.get("content") if message.get("content") is not None else message.get("refusal")
    if content is None and not calls:
        raise ApiError(400, f"{place}.content is missing", param=f"{place}.content", code="invalid_value")
    made = {"role": "system" if role == "developer" else role, "content": _text(content, f"{place}.content")}
    for name in ("name", "tool_call_id", "reasoning_content"):
        if not isinstance(message.get(name), str | None):
            raise ApiError(400, f"{place}.{name} is a string", param=f"{place}.{name}", code="invalid_value")
        if message.get(name) is not None:
            made[name] = message[name]
    if calls:
        made["tool_calls"] = [_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(_list(calls, place))]
    return made


def _text(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_part(part, f"{place}[{index}]") for index, part in enumerate(_list(content, place)))


def _part(part: Any, place: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind not in TEXT_PARTS:
        raise ApiError(400, f"{place}: this model reads text, not {kind!r}", param=place, code="unsupported_content")
    text = part.get("refusal" if kind == "refusal" else "text")
    if not isinstance(text, str):
        raise ApiError(400, f"{place}.text is a string", param=f"{place}.text", code="invalid_value")
    return text


def _call(call: Any, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ApiError(400, f"{place}.function has a name and arguments", param=place, code="invalid_value")
    arguments = function.get("arguments", "{}")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise ApiError(400, f"{place}.function.arguments is not JSON", param=place, code="invalid_value") from None
    wrapped = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    return wrapped | ({"id": call["id"]} if isinstance(call.get("id"), str) else {})


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """For a template that knows neither calls nor their results: a call is its JSON text, a result what the user says."""
    role = "user" if message["role"] == "tool" else message["role"]
    calls = [call["function"] for call in message.get("tool_calls", ())]
    written = "\n".join(json.dumps(call, ensure_ascii=False, separators=(",", ":")) for call in calls)
    return {"role": role, "content": "\n".join(filter(None, (message["content"], written)))}


def _list(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ApiError(400, f"{place} is a string or a list of parts", param=place, code="invalid_value")
    return value
