"""The embedded model, loaded once, behind a server with the default settings."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import openai
import pytest

from maskwright import LLM

from .serving import Served, served


@pytest.fixture(scope="session")
def llm() -> LLM:
    return LLM()


@pytest.fixture(scope="session")
def server(llm: LLM) -> Iterator[Served]:
    with served(llm) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Served) -> Iterator[openai.OpenAI]:
    with server.openai() as connected:
        yield connected


@pytest.fixture(scope="session")
def http(server: Served) -> Iterator[httpx.Client]:
    with server.http() as connected:
        yield connected
