"""Which requests are asked again, and which answers are final."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from maskwright.server.batches.lines import BatchLine
from maskwright.server.batches.runner import Answer, Counts, Runner, ShuttingDown

USAGE = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def failure(status: int, code: str, retry_after: float | None = None) -> Answer:
    return Answer(status, "id", {"error": {"code": code, "message": "said"}}, retry_after)


class Server:
    """Answers what it was told to, request by request, and counts what runs at once."""

    def __init__(self, answers: dict[str, list[Answer]]) -> None:
        self.answers = answers
        self.asked = Counter[str]()
        self.slept: list[float] = []
        self.running = self.most = 0

    async def ask(self, line: BatchLine) -> Answer:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        place = self.asked[line.custom_id]
        self.asked[line.custom_id] += 1
        answers = self.answers.get(line.custom_id, [Answer(200, "id", USAGE)])
        return answers[min(place, len(answers) - 1)]

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def run(server: Server, ids: str, at_once: int = 2, retries: int = 2) -> tuple[Counts, dict[str, int]]:
    written: list[dict[str, Any]] = []
    counts = Counts(len(ids))
    runner = Runner(server.ask, written.append, counts, at_once=at_once, retries=retries, sleep=server.sleep)
    asyncio.run(runner.run(BatchLine(number, each, "/v1/completions", {}) for number, each in enumerate(ids, 1)))
    return counts, {record["custom_id"]: record["response"]["status_code"] for record in written}


def test_each_request_is_answered_once_with_so_many_at_a_time() -> None:
    server = Server({})
    counts, written = run(server, "abcdefg", at_once=3)
    assert written == dict.fromkeys("abcdefg", 200) and server.most == 3 and set(server.asked.values()) == {1}
    assert (counts.completed, counts.failed, counts.prompt_tokens, counts.output_tokens) == (7, 0, 21, 14)


def test_failures_of_the_server_are_tried_again_a_few_times() -> None:
    once = [failure(500, "generation_failed"), Answer(200, "id", USAGE)]
    server = Server({"a": once, "b": [failure(500, "compile_failed")]})
    counts, written = run(server, "abc")
    assert written == {"a": 200, "b": 500, "c": 200} and server.asked == {"a": 2, "b": 3, "c": 1}
    assert counts.retries == {"generation_failed": 1, "compile_failed": 2} and counts.errors == {"compile_failed": 1}
    assert counts.first_errors == {"compile_failed": "b: said"} and sorted(server.slept) == [1.0, 1.0, 2.0]


def test_what_would_fail_again_is_final() -> None:
    server = Server({"a": [failure(500, "constraint_limit")], "b": [failure(400, "invalid_value")], "c": [failure(504, "request_timeout")]})
    counts, written = run(server, "abc")
    assert written == {"a": 500, "b": 400, "c": 504} and set(server.asked.values()) == {1} and counts.failed == 3


def test_a_server_without_room_is_asked_until_it_has_some() -> None:
    full = [failure(429, "queue_full", 7.0)] * 20
    server = Server({"a": [*full, Answer(200, "id", USAGE)]})
    counts, written = run(server, "a", retries=0)
    assert written == {"a": 200} and server.slept == [7.0] * 20 and counts.retries == {"queue_full": 20}


def test_a_server_that_shuts_down_ends_the_batch_without_answers_that_are_none() -> None:
    with pytest.raises(ShuttingDown):
        run(Server({"c": [failure(503, "shutting_down")]}), "abcdef", at_once=1)


def test_what_writing_raises_is_raised() -> None:
    def full(record: dict[str, Any]) -> None:
        raise OSError(28, "no space left")

    runner = Runner(Server({}).ask, full, Counts(3), at_once=2)
    with pytest.raises(OSError, match="no space"):
        asyncio.run(runner.run(BatchLine(1, each, "/v1/completions", {}) for each in "abc"))
