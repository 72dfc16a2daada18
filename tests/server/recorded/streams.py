"""Streams as the endpoints write them, of replies that were recorded: the real writers behind a service that only has a vocabulary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from maskwright.constraint_choice import ConstraintChoice
from maskwright.engine.requests.output import Event
from maskwright.engine.requests.request import Request
from maskwright.planning import Plan
from maskwright.server.anthropic_messages import MessageWriter
from maskwright.server.chat import ChatBody, ChatWriter
from maskwright.server.errors import ApiError
from maskwright.server.namespaces import Namespaces
from maskwright.server.responses import ResponseBody, ResponseWriter

from ..test_stream_splits import COMPILER, events_of, source_of

FAILURE = ApiError(500, "generation failed: injected", code="generation_failed")
SERVICE: Any = SimpleNamespace(
    llm=SimpleNamespace(vocabulary=COMPILER.vocabulary, tokenizer=SimpleNamespace(encode=lambda text, **_: text.encode())),
    told_name=lambda plan: "embedded",
    responses=SimpleNamespace(stores=False),
)


@dataclass(frozen=True)
class Reply:
    """What a model of some style wrote, cut into the engine's events; several outputs where an endpoint has such."""

    style: str
    text: str
    cuts: Sequence[int] = ()
    num_outputs: int = 1
    fails_after: int | None = None  # events, and then the engine fails
    is_cut: bool = False  # by max_tokens

    @property
    def plan(self) -> Plan:
        source, constraint = source_of(self.style)
        return Plan("", ConstraintChoice(source=source), (Request(prompt_token_ids=(1,), constraint=constraint),) * self.num_outputs, self.num_outputs)

    async def events(self) -> AsyncIterator[tuple[int, Event]]:
        """The outputs take turns."""
        events = events_of(self.text, list(self.cuts))
        if self.is_cut:
            assert events[-1].output is not None
            events[-1] = replace(events[-1], output=replace(events[-1].output, finish_reason="length"))
        numbered = [(index, event) for event in events for index in range(self.num_outputs)]
        for number, each in enumerate(numbered):
            if number == self.fails_after:
                raise FAILURE
            yield each


def writer_of(endpoint: str, reply: Reply, **body: Any) -> Any:
    plan, asked = reply.plan, {"model": "embedded", **body}
    if endpoint == "chat":
        return ChatWriter("chatcmpl-1", SERVICE, ChatBody.model_validate({"messages": [], **asked}), plan)
    if endpoint == "responses":
        return ResponseWriter("resp_1", SERVICE, ResponseBody.model_validate({"input": "x", **asked}), plan, [], Namespaces(()))
    return MessageWriter("msg_1", SERVICE, plan, hides_thought=False)


def stream_of(endpoint: str, reply: Reply, **body: Any) -> bytes:
    """All that a client is sent. body: what of the request the endpoint's writer reads."""

    async def written() -> bytes:
        writer, sent = writer_of(endpoint, reply, **body), b""
        try:
            async for event in writer.stream(reply.events()):
                sent += event
        except ApiError as error:
            sent += writer.failed(error)
        return sent

    return asyncio.run(written())


def whole_of(endpoint: str, reply: Reply, **body: Any) -> Any:
    """The answer that is no stream."""
    return asyncio.run(writer_of(endpoint, reply, **body).whole(reply.events()))
