"""The server under an open-loop load: requests arrive as a Poisson process, whether it keeps up or not.

Server and clients share this process, unless the server is elsewhere (`--url`); so on a small machine figures are those of both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import Any

from ...errors import UsageError
from ...llm import LLM
from ..known_errors import not_installed
from . import answer_tasks
from .runs import Case
from .timing import percentiles

try:
    import httpx
    import uvicorn

    from ...server.app import create_app
    from ...server.settings import ServerSettings
except ModuleNotFoundError as error:
    raise not_installed("bench serve", error) from error

TIMEOUT = 300.0  # seconds that a reply may take
WARM_REQUESTS = 2


@dataclass(slots=True)
class Reply:
    """One streamed request. Times in seconds of the clock."""

    begun: float
    times: list[float] = field(default_factory=list)  # of each chunk with text
    num_tokens: int = 0
    ended: float = 0.0
    error: str | None = None


@contextlib.contextmanager
def serving(llm: LLM) -> Iterator[str]:
    """A server in this process on a port of its own; its address."""
    config = uvicorn.Config(create_app(llm, ServerSettings()), log_level="error", ws="none", access_log=False)
    server, listening = uvicorn.Server(config), socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def serve(url: str, rates: tuple[float, ...], seconds: float, num_tokens: int, share: float) -> Iterator[Case]:
    """Replies to what arrives within `seconds` at each rate. share: of the requests, how many are for JSON of a schema."""
    for rate in rates:
        replies = asyncio.run(_open_loop(url, rate, seconds, num_tokens, share))
        whole = [reply for reply in replies if reply.error is None and reply.times]
        if not whole:
            error = next((reply.error for reply in replies if reply.error), "they have no text")
            raise UsageError(f"bench serve: no reply came whole from {url}: {error}")
        took = max(reply.ended for reply in whole) - min(reply.begun for reply in replies)
        gaps = [after - before for reply in whole for before, after in pairwise(reply.times)]
        yield Case(
            f"{rate:g} requests a second, {share:.0%} JSON",
            {
                **percentiles("first_text", [reply.times[0] - reply.begun for reply in whole]),
                **percentiles("between_texts", gaps),
                "output_tokens_per_s": sum(reply.num_tokens for reply in whole) / took,
                "requests_per_s": len(whole) / took,
                "requests_lost": len(replies) - len(whole),
            },
        )


async def _open_loop(url: str, rate: float, seconds: float, num_tokens: int, share: float) -> list[Reply]:
    chance, tasks = random.Random(0), list(answer_tasks.extraction(64))
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT, limits=limits) as client:
        model = await _model(client)
        for _ in range(WARM_REQUESTS):
            await _ask(client, _body(chance, tasks, num_tokens, share) | model)
        running, due = list[asyncio.Task[Reply]](), perf_counter()
        end = due + seconds
        while (due := due + chance.expovariate(rate)) < end or not running:
            await asyncio.sleep(max(0.0, due - perf_counter()))
            body = _body(chance, tasks, num_tokens, share) | model
            running.append(asyncio.create_task(_ask(client, body)))
        return list(await asyncio.gather(*running))


async def _model(client: httpx.AsyncClient) -> dict[str, str]:
    """The name of the first model that is served. Raises UsageError where none is."""
    try:
        return {"model": (await client.get("/v1/models")).json()["data"][0]["id"]}
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"bench serve: no model is served at {client.base_url} ({type(error).__name__}: {error})") from None


def _body(chance: random.Random, tasks: list[answer_tasks.Task], num_tokens: int, share: float) -> dict[str, Any]:
    task = chance.choice(tasks)
    body: dict[str, Any] = {"messages": [{"role": "user", "content": task.prompt}], "seed": chance.getrandbits(32), "stream": True}
    body["stream_options"] = {"include_usage": True}
    if chance.random() >= share:
        return body | {"max_tokens": num_tokens, "ignore_eos": True}
    schema = {"type": "json_schema", "json_schema": {"name": "record", "schema": task.schema}}
    return body | {"max_tokens": 256, "response_format": schema}


async def _ask(client: httpx.AsyncClient, body: dict[str, Any]) -> Reply:
    reply = Reply(perf_counter())
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != 200:
                reply.error = (await answer.aread()).decode(errors="replace")[:300]
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    _read(reply, json.loads(line[6:]))
    except (httpx.HTTPError, ValueError) as error:
        reply.error = f"{type(error).__name__}: {error}"
    reply.ended = perf_counter()
    return reply


def _read(reply: Reply, chunk: dict[str, Any]) -> None:
    if "error" in chunk:
        reply.error = json.dumps(chunk["error"])
        return
    if chunk.get("usage"):
        reply.num_tokens = chunk["usage"]["completion_tokens"]
    if any(choice["delta"].get("content") for choice in chunk.get("choices", ())):
        reply.times.append(perf_counter())
