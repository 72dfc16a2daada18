"""The input of a response, as the messages of a chat completion. Each message knows the place of its item, for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ApiError
from .namespaces import joined

SHELL = "local_shell"  # what the calls of OpenAI's own shell tool are shown as
ELSEWHERE = (  # items beside calls that are about tools and servers which are not here
    "tool_search_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction", "context_compaction",
)  # fmt: skip
REFERENCE = "item_reference"
OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


class InputMessages:
    """Reads items in order. Calls that follow each other are calls of one message."""

    def __init__(self, instructions: str | None) -> None:
        self.messages: list[dict[str, Any]] = []
        self.passed_over: list[str] = []  # places of items that the model is not shown, with their types
        self._places: list[str] = []
        if instructions is not None:
            self._add({"role": "system", "content": instructions}, "instructions")

    def read(self, items: str | Sequence[Mapping[str, Any]]) -> None:
        """Add all items of an input. Raises ApiError."""
        if isinstance(items, str):
            self._add({"role": "user", "content": items}, "input")
            return
        for index, item in enumerate(items):
            self._read(item, f"input[{index}]")

    def recall(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Add the items of a response that this one goes on from."""
        for item in items:
            self._read(item, "previous_response_id")

    def renamed(self, param: str) -> str:
        """A place in the messages as a place in the input."""
        head, _, rest = param.removeprefix("messages[").partition("]")
        if not param.startswith("messages[") or not head.isdigit() or int(head) >= len(self._places):
            return param
        place = self._places[int(head)]
        if place in ("instructions", "input", "previous_response_id"):
            return place
        is_output = self.messages[int(head)]["role"] == "tool"
        return place + (rest.replace(".content", ".output", 1) if is_output else rest)

    def _add(self, message: dict[str, Any], place: str) -> None:
        self.messages.append(message)
        self._places.append(place)

    def _read(self, item: Mapping[str, Any], place: str) -> None:
        kind = item.get("type", "message")
        if kind == "message":
            self._add({"role": item.get("role"), "content": item.get("content")}, place)
        elif kind == "function_call":
            arguments = item.get("arguments")
            if not isinstance(arguments, str | None):
                raise _wrong(f"{place}.arguments", "is a string")
            self._call(item, {"function": {"name": _name(item, place), "arguments": arguments}}, place)
        elif kind == "custom_tool_call":
            if not isinstance(item.get("input"), str):
                raise _wrong(f"{place}.input", "is a string")
            self._call(item, {"custom": {"name": _name(item, place), "input": item["input"]}}, place)
        elif kind == "local_shell_call":
            self._call(item, {"function": {"name": SHELL, "arguments": item.get("action") or {}}}, place)
        elif kind in OUTPUTS:
            self._add({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}, place)
        elif isinstance(kind, str) and (kind in ELSEWHERE or kind.endswith(("_call", "_call_output"))):
            self.passed_over.append(f"{place} ({kind})")  # of tools that run on somebody's servers
        elif kind != "reasoning":  # what was thought before is not shown again
            raise ApiError(400, f"{place}: items of type {kind!r} are not supported", param=place, code="unsupported_content")

    def _call(self, item: Mapping[str, Any], call: dict[str, Any], place: str) -> None:
        called = {"id": item.get("call_id"), **call}
        if self.messages and self.messages[-1].get("tool_calls"):
            self.messages[-1]["tool_calls"].append(called)
        else:
            self._add({"role": "assistant", "content": None, "tool_calls": [called]}, place)


def _name(item: Mapping[str, Any], place: str) -> str:
    name = item.get("name")
    if not isinstance(name, str):
        raise _wrong(f"{place}.name", "is the name of a tool")
    return str(joined(item)["name"])


def _wrong(param: str, reason: str) -> ApiError:
    return ApiError(400, f"{param} {reason}", param=param, code="invalid_value")
