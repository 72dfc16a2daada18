"""A body may be looked at before it is read, and reading it says the same as without."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from maskwright.server.arriving import ArrivingBody
from maskwright.server.errors import ApiError

MOST, LIMIT = 8, 20


async def read(body: ArrivingBody) -> bytes | int:
    """The bytes, or the status of the error that reading them meets."""
    found, more = b"", True
    try:
        while more:
            message = await body()
            found, more = found + message["body"], message["more_body"]
    except ApiError as error:
        return error.status
    return found


def arriving(pieces: list[bytes], *, is_slow: bool = False) -> ArrivingBody:
    coming = iter([*({"type": "http.request", "body": piece, "more_body": True} for piece in pieces), {"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        if (message := next(coming, None)) is None or (is_slow and not message["more_body"]):
            await asyncio.Event().wait()
        return message

    return ArrivingBody(receive, Headers(), LIMIT, 0.001 if is_slow else 60.0)


@given(st.lists(st.binary(max_size=7), max_size=6), st.booleans())
def test_looking_changes_nothing(pieces: list[bytes], is_slow: bool) -> None:
    async def play() -> None:
        looked_at = arriving(pieces, is_slow=is_slow)
        seen = await looked_at.whole(MOST)
        whole = b"".join(pieces)
        assert seen == (None if is_slow or len(whole) > MOST else whole)
        assert await read(looked_at) == await read(arriving(pieces, is_slow=is_slow))

    asyncio.run(asyncio.wait_for(play(), 60))


def test_a_body_that_is_told_to_be_too_large_is_refused_at_once() -> None:
    async def play() -> None:
        with pytest.raises(ApiError, match="larger than 20 bytes"):
            ArrivingBody(asyncio.Event().wait, Headers({"content-length": "21"}), LIMIT, 60.0)  # type: ignore[arg-type]  # nothing is received

    asyncio.run(play())
