"""Requests of a batch, some at a time, until each has an answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from .lines import BatchLine

RETRIED = frozenset({"compile_failed", "generation_failed", "internal_error"})  # codes of errors that may not come again
RETRY_SECONDS = 1.0  # before the second try; twice as long before each one after it
MOST_RETRY_SECONDS = 30.0
Sleep = Callable[[float], Awaitable[object]]


class Answer(NamedTuple):
    """What a request was answered."""

    status: int
    request_id: str
    body: Any  # as JSON
    retry_after: float | None = None  # seconds

    @property
    def error_code(self) -> str | None:
        return self._error("code")

    @property
    def error_message(self) -> str | None:
        return self._error("message")

    def _error(self, member: str) -> str | None:
        error = self.body.get("error") if isinstance(self.body, Mapping) else None
        return error.get(member) if isinstance(error, Mapping) else None


class ShuttingDown(Exception):
    """Who answers has stopped. Requests without an answer are as if they had not been asked."""


class Ask(Protocol):
    """Sends one request and waits for its answer."""

    async def __call__(self, line: BatchLine, /) -> Answer: ...


@dataclass(slots=True)
class Counts:
    """How far a batch is."""

    total: int  # requests
    completed: int = 0  # answered without an error
    failed: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # of answers, by code
    first_errors: dict[str, str] = field(default_factory=dict)  # by code: which request had it first, and what it said
    retries: Counter[str] = field(default_factory=Counter)  # by the code of the error before

    @property
    def answered(self) -> int:
        return self.completed + self.failed

    def add(self, line: BatchLine, answer: Answer) -> None:
        if answer.status == 200:
            self.completed += 1
        else:
            self.failed += 1
            code = answer.error_code or f"status {answer.status}"
            self.errors[code] += 1
            self.first_errors.setdefault(code, f"{line.custom_id}: {answer.error_message}")
        usage = answer.body.get("usage") if isinstance(answer.body, Mapping) else None
        if isinstance(usage, Mapping):  # the names of the endpoints differ
            self.prompt_tokens += usage.get("prompt_tokens") or usage.get("input_tokens") or 0
            self.output_tokens += usage.get("completion_tokens") or usage.get("output_tokens") or 0


class Runner:
    """Asks the requests of one batch, `at_once` of them at a time; each answer is written as soon as it is there."""

    def __init__(
        self,
        ask: Ask,
        write: Callable[[dict[str, Any]], None],
        counts: Counts,
        *,
        at_once: int,
        retries: int = 2,
        watch: Callable[[Counts], None] = lambda _: None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """retries: of a request that fails by no fault of its own. watch: is told after every answer."""
        self._ask, self._write, self._counts = ask, write, counts
        self._at_once, self._retries, self._watch, self._sleep = at_once, retries, watch, sleep

    async def run(self, lines: Iterator[BatchLine]) -> None:
        """Answer all lines. Raises ShuttingDown, or what writing raises, after the requests under way have been left."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._at_once):
                    tasks.create_task(self._answer_all(lines))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _answer_all(self, lines: Iterator[BatchLine]) -> None:
        for line in lines:  # which all tasks share
            answer = await self._final_answer(line)
            self._write(as_record(line, answer))
            self._counts.add(line, answer)
            self._watch(self._counts)

    async def _final_answer(self, line: BatchLine) -> Answer:
        num_retries, seconds = 0, RETRY_SECONDS
        while True:
            answer = await self._ask(line)
            code = answer.error_code
            if answer.status == 503:
                raise ShuttingDown(code)
            if answer.status != 429:
                if code not in RETRIED or num_retries == self._retries:
                    return answer
                num_retries += 1
            self._counts.retries[code or f"status {answer.status}"] += 1
            await self._sleep(answer.retry_after or seconds)
            seconds = min(2 * seconds, MOST_RETRY_SECONDS)


def as_record(line: BatchLine, answer: Answer) -> dict[str, Any]:
    """A line of the file of answers."""
    response = {"status_code": answer.status, "request_id": answer.request_id, "body": answer.body}
    return {"id": f"batch_req_{uuid4().hex}", "custom_id": line.custom_id, "response": response, "error": None}
