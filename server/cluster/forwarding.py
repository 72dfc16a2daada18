"""One request at the ingress: asked of a replica, of another one when that is lost, and told to the client once."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from starlette.types import Receive, Send

from ..errors import ANTHROPIC_PATH, OLLAMA_PATH, ApiError, anthropic_body
from ..streams import client_gone, error_event
from .asked import Asked, Head

logger = logging.getLogger(__name__)

Answer = AsyncGenerator["Head | bytes", None]
RESPONSES_PATH = "/v1/responses"
STREAMS = (b"text/event-stream", b"application/x-ndjson")


class ReplicaLost(Exception):
    """The replica that was to answer has died, or cannot be reached."""


class Forwarding:
    """Sends one request. `num_lost` says how many replicas were lost over it."""

    def __init__(self, asked: Asked, ask: Callable[[Asked], Answer], max_retries: int) -> None:
        """ask: begins to answer; it may raise ReplicaLost at any time. max_retries: while nothing was sent to the client."""
        self._asked, self._ask, self._max_retries = asked, ask, max_retries
        self._head: Head | None = None
        self.has_begun = False  # whether the client was sent anything
        self.num_lost = 0
        self.is_broken = False  # whether it ended with an error behind what was sent

    async def run(self, receive: Receive, send: Send) -> None:
        """Answer the client. Raises ApiError while nothing was sent; later a stream ends with an event that is an error. What
        the client has not waited for is closed."""
        answering, gone = asyncio.create_task(self._answer(send)), asyncio.create_task(client_gone(receive))
        try:
            await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            for task in (answering, gone):
                task.cancel()
            await asyncio.gather(answering, gone, return_exceptions=True)

    async def _answer(self, send: Send) -> None:
        for attempt in range(self._max_retries + 1):
            try:
                if await self._told(send, takes_refusal=attempt == self._max_retries):
                    return
            except ReplicaLost as lost:
                self.num_lost += 1
                logger.warning("a replica was lost over %s: %s", self._asked.path, lost)
                if self.has_begun:
                    await self._end_broken(send)
                    return
        raise _lost(f"{self.num_lost} replicas were lost one after another while they had this request; try again later")

    async def _told(self, send: Send, *, takes_refusal: bool) -> bool:
        """Whether the answer of one replica was told. False: it takes no requests just now (503), and another one may."""
        pieces = list[bytes]()
        async with aclosing(self._ask(self._asked)) as answer:
            async for each in answer:
                if isinstance(each, Head):
                    if each.status == 503 and not takes_refusal:
                        return False
                    self._head = each
                elif self._is_stream:
                    await self._send(send, each)
                else:  # told when it is whole: until then another replica may answer
                    pieces.append(each)
        await self._send(send, b"".join(pieces), is_last=True)
        return True

    async def _send(self, send: Send, body: bytes, *, is_last: bool = False) -> None:
        """The head goes with the first piece of the body."""
        assert self._head is not None, "an answer has a head"
        if not self.has_begun:
            self.has_begun = True
            await send({"type": "http.response.start", "status": self._head.status, "headers": list(self._head.headers)})
        await send({"type": "http.response.body", "body": body, "more_body": not is_last})

    async def _end_broken(self, send: Send) -> None:
        """End a stream whose beginning was sent."""
        self.is_broken = True
        error = _lost("the replica that was writing this answer was lost; what was sent is not all of it")
        await self._send(send, _last_event(self._asked.path, error, self._request_id), is_last=True)

    @property
    def _is_stream(self) -> bool:
        assert self._head is not None, "an answer has a head"
        kind = next((value for name, value in self._head.headers if name == b"content-type"), b"")
        return kind.startswith(STREAMS)

    @property
    def _request_id(self) -> str:
        return next((value.decode("latin-1") for name, value in self._asked.headers if name == b"x-request-id"), "")


def _lost(message: str) -> ApiError:
    return ApiError(503, message, code="replica_lost", headers={"Retry-After": "1"})


def _last_event(path: str, error: ApiError, request_id: str) -> bytes:
    """The error as the last event that a client of this path reads."""
    if path.startswith(ANTHROPIC_PATH):
        told = json.dumps(anthropic_body(error, request_id))
        return f"event: error\ndata: {told}\n\n".encode()
    if path.startswith(RESPONSES_PATH):  # OpenAI's `error` event
        told = json.dumps({"type": "error", "code": error.code, "message": error.message, "param": None})
        return f"event: error\ndata: {told}\n\n".encode()
    if path.startswith(OLLAMA_PATH):
        return json.dumps({"error": error.message}).encode() + b"\n"
    return error_event(error)
