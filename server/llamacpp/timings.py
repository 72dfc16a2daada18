"""How long reading a prompt and writing its output took, in llama.cpp's form."""

from __future__ import annotations

import time
from typing import Any

from ...engine.requests.output import Event, RequestOutput

LEAST_MS = 1e-3  # that something took, so that it has a speed


class Timer:
    """Sees the events of one output."""

    def __init__(self) -> None:
        self._first: float | None = None  # seconds of the clock of steps, when the first token was there, and the last
        self._last = 0.0
        self._num_tokens = 0

    def see(self, event: Event) -> None:
        if event.tokens:
            self._last = time.perf_counter()
            self._first = self._last if self._first is None else self._first
            self._num_tokens += len(event.tokens)

    def so_far(self) -> dict[str, Any]:
        """The timings of the output alone: when its prompt was begun is known at its end."""
        first = self._last if self._first is None else self._first
        return _speed("predicted", self._num_tokens, self._last - first)

    def final(self, output: RequestOutput) -> dict[str, Any]:
        """The timings of prompt and output. Of the prompt those from the first step that computed it to the first token."""
        cached = output.num_cached_tokens
        told: dict[str, Any] = {"cache_n": cached}
        if output.scheduled_at is not None:
            until = time.perf_counter() if self._first is None else self._first
            told |= _speed("prompt", output.num_prompt_tokens - cached, max(until - output.scheduled_at, 0.0))
        told |= self.so_far()
        if output.num_drafted_tokens:
            told |= {"draft_n": output.num_drafted_tokens, "draft_n_accepted": output.num_accepted_tokens}
        return told


def _speed(what: str, count: int, seconds: float) -> dict[str, Any]:
    milliseconds = round(seconds * 1e3, 3)
    speed = {f"{what}_n": count, f"{what}_ms": milliseconds}
    if not count:
        return speed
    taken = max(milliseconds, LEAST_MS)
    return speed | {f"{what}_per_token_ms": taken / count, f"{what}_per_second": 1e3 * count / taken}
