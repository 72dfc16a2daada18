"""The content of an Anthropic message: thinking, text and tool_use blocks, and the events that tell them piece by piece."""

from __future__ import annotations

import json
from typing import Any

from .deltas import CallStart, ContentDelta, ReplyDelta, ThoughtDelta

SIGNATURE = "unsigned"  # thinking blocks have one, so that clients can give them back; nothing is checked by it


class BlockWriter:
    """Follows one output. At any time one block is open; what belongs to another one closes it."""

    def __init__(self, *, hides_thought: bool = False) -> None:
        """hides_thought: the reasoning is left out; only that there was some is told."""
        self._hides_thought = hides_thought
        self.blocks: list[dict[str, Any]] = []
        self.num_calls = 0
        self._is_open = False
        self._arguments = ""  # of the open call

    def take(self, delta: ReplyDelta) -> list[dict[str, Any]]:
        """The events of the stream that one delta of the reply adds."""
        if isinstance(delta, ThoughtDelta):
            told = self._switch({"type": "thinking", "thinking": "", "signature": ""})
            if self._hides_thought:
                return told
            return [*told, self._grow("thinking", {"type": "thinking_delta", "thinking": delta.text}, delta.text)]
        if isinstance(delta, ContentDelta):
            told = self._switch({"type": "text", "text": ""})
            return [*told, self._grow("text", {"type": "text_delta", "text": delta.text}, delta.text)]
        if isinstance(delta, CallStart):
            self.num_calls += 1
            call_id = delta.call_id.replace("call_", "toolu_", 1)
            return self.finish() + self._open({"type": "tool_use", "id": call_id, "name": delta.name, "input": {}})
        self._arguments += delta.text
        return [self._about("content_block_delta", delta={"type": "input_json_delta", "partial_json": delta.text})]

    def finish(self) -> list[dict[str, Any]]:
        """The events that end the open block, if there is one."""
        if not self._is_open:
            return []
        self._is_open = False
        block, told = self.blocks[-1], []
        if block["type"] == "thinking":
            block["signature"] = SIGNATURE
            told = [self._about("content_block_delta", delta={"type": "signature_delta", "signature": SIGNATURE})]
        elif block["type"] == "tool_use":
            block["input"] = _read(self._arguments)
        return [*told, self._about("content_block_stop")]

    def _switch(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        """Make a block of this type the open one."""
        if self._is_open and self.blocks[-1]["type"] == block["type"]:
            return []
        return self.finish() + self._open(block)

    def _open(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        self.blocks.append(block)
        self._is_open, self._arguments = True, ""
        return [self._about("content_block_start", content_block=dict(block))]

    def _grow(self, member: str, delta: dict[str, Any], text: str) -> dict[str, Any]:
        self.blocks[-1][member] += text
        return self._about("content_block_delta", delta=delta)

    def _about(self, kind: str, **members: Any) -> dict[str, Any]:
        """An event about the last block."""
        return {"type": kind, "index": len(self.blocks) - 1, **members}


def _read(arguments: str) -> Any:
    """The arguments of a call as an object; {} for a call that was cut short."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
