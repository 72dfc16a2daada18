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
        length = headers.get("content-length", "")
        self._told_length = int(length) if length.isdecimal() else None  # None where the client does not say
        if self._told_length is not None and self._told_length > self._limit:
            raise self._too_large()

    async def __call__(self) -> Message:
        return self._kept.popleft() if self._kept else await self._next()

    def is_between(self, least: int, most: int) -> bool:
        """Whether it has so many bytes, as the client says in the head."""
        return self._told_length is not None and least <= self._told_length <= most

    async def whole(self) -> bytes:
        """All of it, which is there to be read as before. Raises ApiError as reading it does."""
        while not self._is_complete:
            self._kept.append(await self._next())
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
