"""The body of a request while it arrives: bounded in bytes and in time."""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from .errors import ApiError
from .streams import client_gone


class ArrivingBody:
    """A `receive` that counts the bytes of the body, and does not wait for them forever."""

    def __init__(self, receive: Receive, headers: Headers, limit: int, seconds: float) -> None:
        """limit: of bytes. seconds: for all of them to arrive. Raises ApiError where the head says that it is larger."""
        self._receive, self._limit, self._seconds, self._num_read = receive, limit, seconds, 0
        self._deadline = asyncio.get_running_loop().time() + self._seconds
        self._is_complete = False
        self._kept = deque[Message]()  # that have been looked at, and are still to be read
        self._error: ApiError | None = None  # that looking at it has met
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit:
            raise self._too_large()

    async def __call__(self) -> Message:
        if self._kept:
            return self._kept.popleft()
        if self._error is not None:
            raise self._error
        return await self._next()

    async def whole(self, most: int) -> bytes | None:
        """All of it, which is there to be read as before; None where that are more than so many bytes, or it cannot be read: then
        who reads it is told why."""
        try:
            while not self._is_complete and self._num_read <= most:
                self._kept.append(await self._next())
        except ApiError as error:
            self._error = error
        if not self._is_complete or self._num_read > most:
            return None
        return b"".join(message.get("body", b"") for message in self._kept)

    async def gone(self) -> None:
        """Ends when the client has left, whose whole body is there."""
        await client_gone(self._receive)

    async def _next(self) -> Message:
        if self._is_complete:  # the next message is that the client has gone
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise self._too_slow() from None
        self._is_complete = not message.get("more_body", False)
        self._num_read += len(message.get("body", b""))
        if self._num_read > self._limit:
            raise self._too_large()
        return message

    def _too_slow(self) -> ApiError:
        message = f"the body took longer than {self._seconds} seconds"
        return ApiError(408, message, code="request_timeout", headers={"Connection": "close"})

    def _too_large(self) -> ApiError:
        return ApiError(413, f"the body is larger than {self._limit} bytes", code="body_too_large", headers={"Connection": "close"})
