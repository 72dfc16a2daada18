"""A request that came from elsewhere, answered by the application in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Scope

from ..client import TRUSTED_CALLER
from .asked import Asked, Head, Whole
from .knowledge import ASKED_KEY

logger = logging.getLogger(__name__)

LAST_SECONDS = 10.0  # for an application to end when its client has gone


async def answered(app: ASGIApp, asked: Asked) -> AsyncGenerator[Head | bytes, None]:
    """The head of the answer, then its body as it comes. Who closes the generator is a client that has gone."""
    messages: asyncio.Queue[Message | None] = asyncio.Queue()
    has_gone, is_read = asyncio.Event(), False

    async def receive() -> Message:
        nonlocal is_read
        if not is_read:
            is_read = True
            return {"type": "http.request", "body": asked.body, "more_body": False}
        await has_gone.wait()
        return {"type": "http.disconnect"}

    async def run() -> None:
        ASKED_KEY.set(asked.key)
        try:
            await app(_scope(asked), receive, messages.put)
        finally:
            messages.put_nowait(None)

    running, is_whole = asyncio.create_task(run()), False
    try:
        while (message := await messages.get()) is not None:
            is_whole = is_whole or _is_last(message)
            if message["type"] == "http.response.start":
                yield Head(message["status"], tuple(message["headers"]))
                continue
            more, ends = _waiting(messages)
            is_whole = is_whole or ends
            if body := message.get("body", b"") + more:
                yield body
        if not is_whole:
            await running
    finally:
        has_gone.set()
        try:
            await asyncio.wait({running}, timeout=LAST_SECONDS)
        finally:
            running.cancel()
        if running.done() and not running.cancelled() and (error := running.exception()) is not None:
            logger.error("answering %s failed", asked.path, exc_info=error)


async def whole(app: ASGIApp, asked: Asked) -> Whole:
    """The answer when it has ended."""
    head, pieces = Head(500, ()), list[bytes]()
    async with aclosing(answered(app, asked)) as answer:
        async for each in answer:
            if isinstance(each, Head):
                head = each
            else:
                pieces.append(each)
    return Whole(head, b"".join(pieces))


def _waiting(messages: asyncio.Queue[Message | None]) -> tuple[bytes, bool]:
    """(pieces of a body that are there already, whether the last one is among them): they travel together."""
    pieces, ends = list[bytes](), False
    while not messages.empty():
        message = messages.get_nowait()
        if message is None:
            messages.put_nowait(None)
            break
        pieces.append(message.get("body", b""))
        ends = ends or _is_last(message)
    return b"".join(pieces), ends


def _is_last(message: Message) -> bool:
    return message["type"] == "http.response.body" and not message.get("more_body", False)


def _scope(asked: Asked) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.path,
        "raw_path": quote(asked.path).encode(),
        "query_string": asked.query,
        "root_path": "",
        "headers": list(asked.headers),
        "client": asked.client,
        "server": None,
        TRUSTED_CALLER: asked.caller,
    }
