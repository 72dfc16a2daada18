"""Many streams at once lose nothing, and what has ended leaves nothing behind. The long runs are in benchmarks/soak.py."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections import Counter
from typing import Any

import httpx

from maskwright import LLM
from maskwright.engine.requests.guide import Guide
from maskwright.engine.requests.sequence import Sequence
from maskwright.server.chat import ChatWriter
from maskwright.server.settings import ServerSettings
from maskwright.server.streams import EventStream
from maskwright.server.worker import Answers

from .serving import TIMEOUT, Served, served
from .test_reliability import eventually

CHAT = "/v1/chat/completions"
KINDS: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": 6, "ignore_eos": True}, r"(?s).*"),
    ({"max_tokens": 12, "regex": "[a-z]{4}"}, "[a-z]{4}"),
    ({"max_tokens": 12, "json_schema": {"type": "integer", "minimum": 0, "maximum": 99}}, "[0-9]{1,2}"),
    ({"max_tokens": 12, "guided_choice": ["yes", "no"]}, "yes|no"),
    ({"max_tokens": 12, "grammar": 'root ::= "(" [0-9] ")"'}, r"\([0-9]\)"),
]


async def ask_all(url: str, count: int) -> list[str]:
    """The texts of so many streams that are open together; fails where one does not end as it should."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT, limits=limits) as http:

        async def one(number: int) -> str:
            messages = [{"role": "user", "content": f"item {number}"}]
            body = {"messages": messages, "seed": number, "stream": True, **KINDS[number % len(KINDS)][0]}
            async with http.stream("POST", CHAT, json=body) as answer:
                lines = [line async for line in answer.aiter_lines() if line.startswith("data: ")]
            assert answer.status_code == 200 and lines[-1] == "data: [DONE]"
            chunks = [json.loads(line[6:]) for line in lines[:-1]]
            assert chunks[-1]["choices"][0]["finish_reason"] in ("stop", "length")
            return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)

        return await asyncio.gather(*(one(number) for number in range(count)))


def check(texts: list[str]) -> None:
    for number, text in enumerate(texts):
        assert re.fullmatch(KINDS[number % len(KINDS)][1], text), (number, text)


def is_idle(server: Served) -> bool:
    """Whether the server has done with all requests, a little later than their clients."""
    return server.service.worker.num_open == 0 and server.service._num_open == 0


def test_a_hundred_streams_at_once_lose_nothing(server: Served, http: httpx.Client) -> None:
    texts = asyncio.run(ask_all(server.url, 100))
    check(texts)
    assert eventually(http, lambda: is_idle(server))


def test_more_streams_than_places_wait_their_turn(llm: LLM) -> None:
    with served(llm, ServerSettings(max_open=30)) as small:
        texts = asyncio.run(ask_all(small.url, 30))
    check(texts)


def alive() -> Counter[str]:
    gc.collect()
    kinds = (Sequence, Guide, Answers, ChatWriter, EventStream)
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in kinds)


def test_what_has_ended_leaves_nothing_behind(llm: LLM, server: Served, http: httpx.Client) -> None:
    asyncio.run(ask_all(server.url, 20))
    assert http.get("/health").status_code == 200  # its connection is not what grows
    assert eventually(http, lambda: is_idle(server) and not alive()["EventStream"])
    before = alive()
    gc.collect()
    num_before = len(gc.get_objects())
    for _ in range(3):
        asyncio.run(ask_all(server.url, 20))
    assert eventually(http, lambda: is_idle(server) and alive() <= before + Counter({"Sequence": 1, "Guide": 1}))
    assert len(gc.get_objects()) - num_before < 300  # of 60 requests, with the same constraints
    engine = llm.driver._engine
    assert not engine.has_work and not llm.driver._pushed and not server.service.worker._readers
