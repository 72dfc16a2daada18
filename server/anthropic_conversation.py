"""A request of Anthropic's Messages interface, as a chat completion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ApiError

IGNORED = ("cache_control", "citations")  # members of blocks: equal beginnings are always shared, and nothing is cited
OTHERS_RESULTS = "_tool_result"  # how blocks end that tell what a tool of somebody's servers gave
OTHERS = ("server_tool_use", "mcp_tool_use", "container_upload", "compaction", "tool_reference")  # and those beside them
SILENT_TOOL_MEMBERS = ("cache_control", "eager_input_streaming", "input_examples", "allowed_callers", "defer_loading")


def chat_messages(
    messages: Sequence[Mapping[str, Any]], system: Any, passed_over: list[str] | None = None
) -> list[dict[str, Any]]:
    """The conversation in OpenAI's form. Raises ApiError for blocks that this server cannot show a model.

    passed_over: is given the places of blocks that are about tools of somebody's servers, with their types.
    """
    others = [] if passed_over is None else passed_over
    made = [] if system is None else [{"role": "system", "content": _text(system, "system", others)}]
    for index, message in enumerate(messages):
        made += _messages_of(message, f"messages[{index}]", others)
    if made and made[-1]["role"] == "assistant" and (made[-1].get("tool_calls") or not made[-1]["content"]):
        place = f"messages[{len(messages) - 1}]"
        said = f"{place}: a reply that is begun has a text and no tool_use; end with a user message, or with the text to go on with"
        raise ApiError(400, said, param=place, code="unsupported_content")
    return made


def chat_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
    """Definitions of tools in OpenAI's form; None for those that Anthropic's servers run."""
    return [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]


def chat_tool_choice(choice: Mapping[str, Any] | None) -> tuple[Any, bool | None]:
    """(tool_choice, parallel_tool_calls) in OpenAI's form."""
    if choice is None:
        return None, None
    kind = choice.get("type")
    known = ("type", "name", "disable_parallel_tool_use") if kind == "tool" else ("type", "disable_parallel_tool_use")
    _check_members(choice, "tool_choice", known)
    is_single = choice.get("disable_parallel_tool_use", False)
    if not isinstance(is_single, bool):
        raise _wrong("tool_choice.disable_parallel_tool_use", "is true or false")
    if kind == "tool":
        if not isinstance(choice.get("name"), str):
            raise _wrong("tool_choice.name", "is the name of a tool")
        return {"type": "function", "function": {"name": choice["name"]}}, not is_single
    if kind not in ("auto", "any", "none"):
        raise _wrong("tool_choice.type", f"is auto, any, tool or none, not {kind!r}")
    return "required" if kind == "any" else kind, not is_single


# -- messages -------------------------------------------------------------------------------------------------------------


def _messages_of(message: Mapping[str, Any], place: str, others: list[str]) -> list[dict[str, Any]]:
    _check_members(message, place, ("role", "content"))
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise _wrong(f"{place}.role", f"is user or assistant, not {role!r}")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    blocks = [_block(block, f"{place}.content[{i}]") for i, block in enumerate(_list(content, f"{place}.content"))]
    if not blocks:
        raise _wrong(f"{place}.content", "is empty; say something, or leave the message out")
    return _reply(blocks, place, others) if role == "assistant" else _said(blocks, str(role), place, others)


def _reply(blocks: Sequence[Mapping[str, Any]], place: str, others: list[str]) -> list[dict[str, Any]]:
    """One message with what the model said before: text, thinking and calls."""
    texts, thoughts, calls = list[str](), list[str](), list[dict[str, Any]]()
    for index, block in enumerate(blocks):
        where = f"{place}.content[{index}]"
        if block["type"] == "text":
            texts.append(_string(block, "text", where))
        elif block["type"] == "thinking":
            thoughts.append(_string(block, "thinking", where))
        elif block["type"] == "tool_use":
            calls.append(_call(block, where))
        elif block["type"] != "redacted_thinking" and not _is_elsewhere(block, where, others):
            raise _unsupported(block, where)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return [message]


def _said(blocks: Sequence[Mapping[str, Any]], role: str, place: str, others: list[str]) -> list[dict[str, Any]]:
    """Messages with the user's text and with the results of calls, one for each result."""
    made = list[dict[str, Any]]()
    for index, block in enumerate(blocks):
        where = f"{place}.content[{index}]"
        if block["type"] == "tool_result":
            made.append(_result(block, where, others))
        elif _is_elsewhere(block, where, others):
            continue
        elif made and made[-1]["role"] == role:
            made[-1]["content"] += _shown(block, where)
        else:
            made.append({"role": role, "content": _shown(block, where)})
    return made


def _is_elsewhere(block: Mapping[str, Any], place: str, others: list[str]) -> bool:
    """Whether a block is about a tool of somebody's servers; its place is noted then."""
    is_elsewhere = block["type"] in OTHERS or block["type"].endswith(OTHERS_RESULTS)
    if is_elsewhere:
        others.append(f"{place} ({block['type']})")
    return is_elsewhere


def _shown(block: Mapping[str, Any], place: str) -> str:
    """The text of a block: of a document and of what was found with its title before it."""
    if block["type"] == "text":
        return _string(block, "text", place)
    if block["type"] == "search_result":
        heads, text = (block.get("title"), block.get("source")), _text(block.get("content"), f"{place}.content")
    elif block["type"] == "document":
        heads, text = (block.get("title"), block.get("context")), _document(block, place)
    else:
        raise _unsupported(block, place)
    return "\n".join([*(head for head in heads if isinstance(head, str)), text]) + "\n\n"


def _document(block: Mapping[str, Any], place: str) -> str:
    source = block.get("source")
    kind = source.get("type") if isinstance(source, Mapping) else None
    if isinstance(source, Mapping) and kind == "text":
        return _string(source, "data", f"{place}.source")
    if isinstance(source, Mapping) and kind == "content":
        return _text(source.get("content"), f"{place}.source.content")
    message = f"{place}: this model reads documents whose source is text, not {kind!r}"
    raise ApiError(400, message, param=place, code="unsupported_content")


def _result(block: Mapping[str, Any], place: str, others: list[str]) -> dict[str, Any]:
    _check_members(block, place, ("type", "tool_use_id", "content", "is_error", *IGNORED))
    content = _text("" if block.get("content") is None else block["content"], f"{place}.content", others)
    return {"role": "tool", "tool_call_id": _string(block, "tool_use_id", place), "content": content}


def _call(block: Mapping[str, Any], place: str) -> dict[str, Any]:
    given = block.get("input")
    if not isinstance(given, Mapping):
        raise _wrong(f"{place}.input", "is an object")
    function = {"name": _string(block, "name", place), "arguments": json.dumps(given)}
    return {"id": _string(block, "id", place), "type": "function", "function": function}


def _text(content: Any, place: str, others: list[str] | None = None) -> str:
    """The text of a string, or of blocks. others: as of `_is_elsewhere`; without it all blocks are text, as inside of a block."""
    if isinstance(content, str):
        return content
    texts = []
    for index, each in enumerate(_list(content, place)):
        block, where = _block(each, f"{place}[{index}]"), f"{place}[{index}]"
        if others is None:
            if block["type"] != "text":
                raise _unsupported(block, where)
            texts.append(_string(block, "text", where))
        elif not _is_elsewhere(block, where, others):
            texts.append(_shown(block, where))
    return "".join(texts)


def _block(block: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise _wrong(place, "is a content block with a type")
    return block


# -- tools ----------------------------------------------------------------------------------------------------------------


def _tool(tool: Mapping[str, Any], place: str) -> dict[str, Any] | None:
    kind = tool.get("type") or "custom"
    if not isinstance(kind, str):
        raise _wrong(f"{place}.type", "is a string")
    if kind != "custom":
        return None
    _check_members(tool, place, ("type", "name", "description", "input_schema", "strict", *SILENT_TOOL_MEMBERS))
    if not isinstance(tool.get("input_schema"), Mapping):
        raise _wrong(f"{place}.input_schema", "is a JSON Schema of type object")
    function = {"name": tool.get("name"), "input_schema": tool["input_schema"]}
    return function | {name: tool[name] for name in ("description", "strict") if tool.get(name) is not None}


# -- what is wrong --------------------------------------------------------------------------------------------------------


def _string(block: Mapping[str, Any], name: str, place: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise _wrong(f"{place}.{name}", "is a string")
    return value


def _list(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise _wrong(place, "is a string or a list of content blocks")
    return value


def _check_members(form: Mapping[str, Any], place: str, known: Sequence[str]) -> None:
    unknown = next((name for name, value in form.items() if name not in known and value is not None), None)
    if unknown is not None:
        raise ApiError(400, f"unknown parameter: {place}.{unknown}", param=f"{place}.{unknown}", code="unknown_parameter")


def _unsupported(block: Mapping[str, Any], place: str) -> ApiError:
    message = f"{place}: blocks of type {block['type']!r} are not supported here"
    return ApiError(400, message, param=place, code="unsupported_content")


def _wrong(param: str, reason: str) -> ApiError:
    return ApiError(400, f"{param} {reason}", param=param, code="invalid_value")
