"""A server in this process, on loopback, as uvicorn runs it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import uvicorn

from maskwright import LLM
from maskwright.server.app import create_app
from maskwright.server.service import Service
from maskwright.server.settings import ServerSettings

TIMEOUT = 120.0  # seconds; the machine may be busy


class Served:
    """A server that runs, and clients of it."""

    def __init__(self, service: Service, url: str) -> None:
        self.service, self.url = service, url

    def openai(self, key: str = "none") -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=TIMEOUT)

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=TIMEOUT)


@contextlib.contextmanager
def served(llm: LLM, settings: ServerSettings | None = None, tracer_provider: Any | None = None) -> Iterator[Served]:
    app = create_app(llm, settings, tracer_provider=tracer_provider)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=60))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=url, timeout=TIMEOUT, transport=httpx.HTTPTransport(retries=5)) as client:
            assert client.get("/ready").status_code == 200
        yield Served(app.state.service, url)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
