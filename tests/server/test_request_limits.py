"""Limits on the head of a request, on its time, and on clients that are slow."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.errors import UsageError
from maskwright.server.run import server_of
from maskwright.server.settings import ServerSettings
from maskwright.server.streams import EventStream

from .serving import TIMEOUT, served
from .test_reliability import eventually

ASKED: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, "temperature": 0}
CHAT = "/v1/chat/completions"
SETTINGS = ServerSettings(max_header_bytes=2000, max_headers=20, head_seconds=0.2, body_seconds=0.2, max_open=4, port=0)


@pytest.fixture(scope="module")
def address(llm: LLM) -> Iterator[tuple[str, int]]:
    """A server as `maskwright serve` makes it."""
    server = server_of(llm, SETTINGS, "embedded")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def say(address: tuple[str, int], sent: bytes) -> tuple[int, Any]:
    """Status and error of what the server answers before it closes the connection."""
    with socket.create_connection(address, timeout=TIMEOUT) as connection:
        connection.sendall(sent)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def head(headers: list[str], body: bytes = b"") -> bytes:
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", "Connection: close", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()


def test_headers_are_limited_in_size_and_number(address: tuple[str, int]) -> None:
    body = json.dumps(ASKED).encode()
    for headers, code in (
        (["X-Long: " + "x" * 2500], "headers_too_large"),
        (["X-Longer: " + "x" * 500_000], "headers_too_large"),
        ([f"X-{number}: y" for number in range(30)], "too_many_headers"),
    ):
        status, error = say(address, head(headers, body) + body)
        assert (status, error["code"], error["type"]) == (431, code, "invalid_request_error")
        assert "2000" in error["message"] or "4000" in error["message"] or "20" in error["message"]
    with httpx.Client(base_url=f"http://{address[0]}:{address[1]}", timeout=TIMEOUT) as http:
        assert http.post(CHAT, json=ASKED, headers={"X-Long": "x" * 1500}).status_code == 200


def test_what_is_no_http_is_told(address: tuple[str, int]) -> None:
    status, error = say(address, b"HELLO\r\n\r\n")
    assert (status, error["code"]) == (400, "invalid_request")


def test_slow_heads_and_bodies_are_not_waited_for(address: tuple[str, int]) -> None:
    for sent in (b"", b"POST /v1/chat", head([], b"x" * 1000), head([], b"x" * 1000) + b"{"):
        status, error = say(address, sent)
        assert (status, error["code"]) == (408, "request_timeout"), sent


def test_more_outputs_than_the_server_ever_takes_are_not_worth_a_retry(address: tuple[str, int]) -> None:
    with httpx.Client(base_url=f"http://{address[0]}:{address[1]}", timeout=TIMEOUT) as http:
        answer = http.post(CHAT, json={**ASKED, "n": 5})
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "limit_exceeded"


def test_a_request_that_takes_too_long_is_ended(llm: LLM) -> None:
    long = {**ASKED, "max_tokens": 1500, "ignore_eos": True}
    with served(llm, ServerSettings(request_seconds=0.05)) as hasty, hasty.http() as http:
        answer = http.post(CHAT, json=long)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "request_timeout")
        assert answer.headers["x-should-retry"] == "false"
        with http.stream("POST", CHAT, json={**long, "stream": True}) as stream:
            lines = [line for line in stream.iter_lines() if line]
        assert json.loads(lines[-1].removeprefix("data: "))["error"]["code"] == "request_timeout"
        assert eventually(http, lambda: hasty.service._num_open == 0)


@pytest.mark.parametrize("name", ["head_seconds", "body_seconds", "request_seconds", "send_seconds"])
def test_times_are_more_than_nothing(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        ServerSettings(**{name: 0})


class Resource:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


async def run_stream(receive: Any, send: Any, send_seconds: float = 60.0) -> bool:
    """Whether what the stream holds is given back."""
    held = Resource()
    stack = AsyncExitStack()
    stack.callback(held.close)

    async def events() -> AsyncGenerator[bytes, None]:
        async with stack:
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0)

    await EventStream(events(), stack, 10.0, send_seconds)({"type": "http"}, receive, send)
    return held.is_closed


async def forever(*_: object) -> Any:
    await asyncio.Event().wait()


async def gone() -> Any:
    return {"type": "http.disconnect"}


async def pause(*_: object) -> None:
    await asyncio.sleep(0)


def test_a_client_that_takes_nothing_is_gone() -> None:
    assert asyncio.run(run_stream(forever, forever, send_seconds=0.01))


def test_a_stream_that_nobody_asked_an_event_of_gives_back_what_it_holds() -> None:
    assert asyncio.run(run_stream(gone, pause))
