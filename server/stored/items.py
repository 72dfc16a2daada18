"""Items of an input as they are given back: with an id, a type, and content in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}  # of the ids that OpenAI gives


def stored_items(given: str | Sequence[Mapping[str, Any]], response_id: str) -> list[dict[str, Any]]:
    """The items of an input, each with an id that is its own."""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    number = response_id.removeprefix("resp_")
    return [_item(item, f"{number}_in{index}") for index, item in enumerate(items)]


def _item(item: Mapping[str, Any], number: str) -> dict[str, Any]:
    kind = item.get("type", "message")
    made = {"type": kind, "status": "completed", **item}
    if not isinstance(made.get("id"), str):
        made["id"] = f"{PREFIXES.get(kind, 'item')}_{number}"
    if kind == "message" and isinstance(made.get("content"), str):
        part = "output_text" if made.get("role") == "assistant" else "input_text"
        made["content"] = [{"type": part, "text": made["content"]} | ({"annotations": []} if part == "output_text" else {})]
    return made
