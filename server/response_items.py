"""The output items of a response: reasoning, a message, calls of functions, and the events that tell them piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..engine.requests.output import Event, RequestOutput, TokenRecord
from ..planning import Plan
from .deltas import CallStart, ContentDelta, ReplyDelta, ThoughtDelta
from .replies import ReplyParts, reader_of
from .token_logprobs import LogprobWriter

GROWING = {"function_call": "arguments", "custom_tool_call": "input"}  # the member of a call that is told piece by piece


class ItemWriter:
    """Follows one output. At any time one item is open; what belongs to another one closes it."""

    def __init__(
        self,
        response_id: str,
        plan: Plan,
        logprobs: LogprobWriter | None = None,
        named: Callable[[str], Mapping[str, str]] = lambda name: {"name": name},
    ) -> None:
        """logprobs: writes the log-probabilities of the tokens that text is made of, when they are wanted. named: the members of
        a call that say what is called, by the name that the model knows."""
        self._id, self._logprobs, self._named = response_id, logprobs, named
        self._tokens: list[TokenRecord] = []  # read, but not told with a text yet
        self._reader = reader_of(plan)
        self.parts = ReplyParts()
        self.items: list[dict[str, Any]] = []
        self._is_open = False

    def read(self, event: Event) -> list[dict[str, Any]]:
        """The events of the stream that one event of the engine adds."""
        told: list[dict[str, Any]] = []
        self._tokens += event.tokens
        for delta in self._reader.read(event):
            self.parts.add(delta)
            told += self._take(delta)
        return told

    def finish_reason(self, output: RequestOutput) -> str:
        """The reason that the reader of the output tells."""
        return self._reader.finish_reason(output)

    def told_stop(self, output: RequestOutput) -> dict[str, Any]:
        """What the reader tells of a stop string."""
        return self._reader.told_stop(output)

    def finish(self, *, is_cut: bool = False) -> list[dict[str, Any]]:
        """The events of the end of the output. An output without any text is an empty message.

        is_cut: the end is none of the model's, so the open item is incomplete.
        """
        opened = [] if self.items else self._open({"type": "message", "role": "assistant", "content": []})
        return opened + self._close("incomplete" if is_cut else "completed")

    def give_up(self) -> None:
        """What is open stays as it is: nothing more comes."""
        if self._is_open:
            self.items[-1]["status"], self._is_open = "incomplete", False

    def _take(self, delta: ReplyDelta) -> list[dict[str, Any]]:
        if isinstance(delta, ThoughtDelta):
            self._tokens.clear()
            told = self._switch({"type": "reasoning", "summary": [], "content": []})
            return [*told, self._grow("response.reasoning_text.delta", delta.text, content_index=0)]
        if isinstance(delta, ContentDelta):
            told = self._switch({"type": "message", "role": "assistant", "content": []})
            logprobs = self._take_logprobs()
            return [*told, self._grow("response.output_text.delta", delta.text, content_index=0, logprobs=logprobs)]
        self._tokens.clear()  # of calls and reasoning, none are told
        if isinstance(delta, CallStart) and delta.is_custom:
            call = {"type": "custom_tool_call", "call_id": delta.call_id, **self._named(delta.name), "input": ""}
            return self._close() + self._open(call)
        if isinstance(delta, CallStart):
            call = {"type": "function_call", "call_id": delta.call_id, **self._named(delta.name), "arguments": ""}
            return self._close() + self._open(call)
        is_custom = self.items[-1]["type"] == "custom_tool_call"
        kind = "response.custom_tool_call_input.delta" if is_custom else "response.function_call_arguments.delta"
        return [self._grow(kind, delta.text)]

    def _take_logprobs(self) -> list[dict[str, Any]]:
        """The log-probabilities of the tokens since the last delta, which have become text of the open message."""
        tokens = self._tokens.copy()
        self._tokens.clear()
        if self._logprobs is None:
            return []
        told: list[dict[str, Any]] = self._logprobs.chat(tokens)["content"]
        self.items[-1]["content"][0]["logprobs"] += told
        return told

    def _switch(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """Make an item of this type the open one."""
        if self._is_open and self.items[-1]["type"] == item["type"]:
            return []
        return self._close() + self._open(item)

    def _open(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        number = len(self.items)
        made = {"id": f"item_{self._id.removeprefix('resp_')}_{number}", "status": "in_progress", **item}
        self.items.append(made)
        self._is_open = True
        told = [{"type": "response.output_item.added", "output_index": number, "item": dict(made)}]
        if item["type"] in GROWING:
            return told
        made["content"] = [_part(item["type"])]
        return [*told, self._about("response.content_part.added", content_index=0, part=_part(item["type"]))]

    def _grow(self, kind: str, text: str, **more: Any) -> dict[str, Any]:
        item = self.items[-1]
        if item["type"] in GROWING:
            item[GROWING[item["type"]]] += text
        else:
            item["content"][0]["text"] += text
        return self._about(kind, delta=text, **more)

    def _close(self, status: str = "completed") -> list[dict[str, Any]]:
        if not self._is_open:
            return []
        item = self.items[-1]
        item["status"], self._is_open = status, False
        done = self._about("response.output_item.done", item=dict(item))
        del done["item_id"]
        if item["type"] == "function_call":
            arguments = self._about("response.function_call_arguments.done", arguments=item["arguments"], name=item["name"])
            return [arguments, done]
        if item["type"] == "custom_tool_call":
            return [self._about("response.custom_tool_call_input.done", input=item["input"]), done]
        part = item["content"][0]
        if item["type"] == "reasoning":
            text = self._about("response.reasoning_text.done", content_index=0, text=part["text"])
        else:
            self._take_logprobs()
            text = self._about("response.output_text.done", content_index=0, text=part["text"], logprobs=part["logprobs"])
        return [text, self._about("response.content_part.done", content_index=0, part=dict(part)), done]

    def _about(self, kind: str, **members: Any) -> dict[str, Any]:
        """An event about the last item."""
        return {"type": kind, "item_id": self.items[-1]["id"], "output_index": len(self.items) - 1, **members}


def _part(kind: str) -> dict[str, Any]:
    if kind == "reasoning":
        return {"type": "reasoning_text", "text": ""}
    return {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
