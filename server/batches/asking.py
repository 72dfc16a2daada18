"""Requests that this process sends to its own application: as HTTP asks it, without a socket between."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from ..client import TRUSTED_CALLER, Caller
from .lines import BatchLine
from .runner import Answer, Ask


@asynccontextmanager
async def asking(app: ASGIApp, caller: Caller) -> AsyncIterator[Ask]:
    """What asks the application on behalf of a caller, who has shown his key before."""

    async def trusted(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, TRUSTED_CALLER: caller}, receive, send)

    transport = httpx.ASGITransport(trusted, raise_app_exceptions=False, client=("batch", 0))
    async with httpx.AsyncClient(transport=transport, base_url="http://batch", timeout=None) as client:

        async def ask(line: BatchLine) -> Answer:
            # a body may have numbers that JSON has not (NaN): it is told so in the answer
            answer = await client.post(line.url, content=json.dumps(line.body), headers={"content-type": "application/json"})
            return _answer(answer)

        yield ask


def _answer(answer: httpx.Response) -> Answer:
    try:
        body = answer.json()
    except ValueError:
        body = {"error": {"message": answer.text, "code": None}}
    waits = answer.headers.get("retry-after", "")
    return Answer(answer.status_code, answer.headers.get("x-request-id", ""), body, float(waits) if waits.isdecimal() else None)
