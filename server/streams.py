"""Server-sent events, and clients that go away."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from .errors import ApiError, ClientGone, api_error

logger = logging.getLogger(__name__)

T = TypeVar("T")
EVENTS = "text/event-stream"
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"  # the last event of OpenAI's completions


def data(value: Any) -> bytes:
    """One event without a name."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


def error_event(error: ApiError) -> bytes:
    """The last event of a stream that failed, as clients of OpenAI's completions read it."""
    return data(error.body)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. When the client goes before it is there, `work` is cancelled, and ClientGone raised."""
    return await unless(client_gone(request.receive), work)


async def unless(leaving: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. When `leaving` ends before, `work` is cancelled, and ClientGone raised."""
    working, gone = asyncio.create_task(work), asyncio.create_task(leaving)
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        await _end(working, gone)


class EventStream(Response):
    """Sends events as they come, a comment when there was none for a while, and closes their generator when the client goes.

    An error becomes one last event, which `write_error` writes: the status has been sent long before.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        stack: AsyncExitStack,
        keep_alive_seconds: float | None,
        send_seconds: float = 60.0,
        write_error: Callable[[ApiError], bytes] = error_event,
        media_type: str = EVENTS,
    ) -> None:
        """`stack` holds what the events come from; it is closed with the stream, even if no event was asked for.

        keep_alive_seconds: None for no comments. send_seconds: how long the client may leave unread what was sent.
        """
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}, media_type=media_type)
        del self.headers["content-length"]
        self._events, self._stack, self._write_error = events, stack, write_error
        self._keep_alive_seconds, self._send_seconds = keep_alive_seconds, send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(client_gone(receive))

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._send_seconds):
                await send(message)

        try:
            async with self._stack, aclosing(self._events):
                await send_in_time({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await self._send_all(send_in_time, gone)
        except TimeoutError:
            logger.info("a client left its stream lying for %s seconds; it was ended", self._send_seconds)
        finally:
            await _end(gone)

    async def _send_all(self, send: Send, gone: asyncio.Task[None]) -> None:
        while not gone.done():
            coming = asyncio.ensure_future(anext(self._events, None))
            try:
                while not coming.done() and not gone.done():
                    await asyncio.wait(
                        {coming, gone}, timeout=self._keep_alive_seconds, return_when=asyncio.FIRST_COMPLETED
                    )
                    if not coming.done() and not gone.done():
                        await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
                if gone.done():
                    return
                chunk = coming.result()
            except Exception as error:
                chunk = self._write_error(api_error(error))
                await send({"type": "http.response.body", "body": chunk, "more_body": False})
                return
            finally:
                await _end(coming)
            if chunk is None:
                await self._stack.aclose()  # who has read the end may ask for as much again
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def client_gone(receive: Receive) -> None:
    """Ends when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks that still run and wait for them; results and errors were taken by others."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
