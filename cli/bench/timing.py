"""Requests in the engine of a loaded model, and when each of their tokens came."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

import numpy as np

from ...errors import UsageError
from ...llm import LLM
from ...planning import Plan
from ...sampling import SamplingParams

WARM_TOKENS = 2


@dataclass(slots=True)
class Timeline:
    """One request. Times in seconds of the clock, one for each token."""

    begun: float
    times: list[float] = field(default_factory=list)
    ended: float = 0.0

    @property
    def first(self) -> float:
        return (self.times[0] if self.times else self.ended) - self.begun

    @property
    def gaps(self) -> list[float]:
        """Between one step that gave tokens and the next."""
        stamps = sorted(set(self.times))
        return [after - before for before, after in pairwise(stamps)]


def timed(llm: LLM, plans: Sequence[Plan]) -> list[Timeline]:
    """Run all plans at once. Raises UsageError where one ends with an error."""
    requests = [request for plan in plans for request in plan.requests]
    begun = perf_counter()
    timelines = dict(zip(llm.driver.submit(requests, pushed=True), (Timeline(begun) for _ in requests), strict=True))
    running = set(timelines)
    try:
        while running:
            for event in llm.driver.step():
                timeline, now = timelines[event.request_id], perf_counter()
                timeline.times += [now] * len(event.tokens)
                if event.output is not None:
                    timeline.ended = now
                    running.discard(event.request_id)
                    if event.output.error is not None:
                        raise UsageError(f"a request of the benchmark failed: {event.output.error}")
    finally:
        for request_id in running:
            llm.driver.cancel(request_id)
    return list(timelines.values())


def prompts(llm: LLM, count: int, length: int, seed: int) -> list[list[int]]:
    """Prompts of random tokens that are text, no two alike, so that no beginning is known: those of another count or length begin
    otherwise, too."""
    chance = random.Random(f"{count} {length} {seed}")
    text = [token for token, spelling in enumerate(llm.vocabulary.text_tokens) if spelling is not None]
    return [[chance.choice(text) for _ in range(length)] for _ in range(count)]


def plans_of(llm: LLM, texts: Sequence[Sequence[int]], num_tokens: int, temperature: float) -> list[Plan]:
    """Requests for exactly so many tokens of free text."""
    sampling = SamplingParams(temperature=temperature, max_tokens=num_tokens, ignore_eos=True, seed=0)
    return [llm.planner.plan_tokens(text, sampling) for text in texts]


def check_room(llm: LLM, num_tokens: int) -> None:
    """Raises UsageError for requests that are longer than the model."""
    if (longest := llm.config.max_model_len or 0) < num_tokens:
        raise UsageError(f"requests of {num_tokens} tokens are longer than max_model_len, {longest}: make one fit the other")


def warm_up(llm: LLM, length: int, temperature: float) -> None:
    """Run what is set up at the first call."""
    timed(llm, plans_of(llm, prompts(llm, 2, length, -1), WARM_TOKENS, temperature))


def percentiles(name: str, seconds: Sequence[float], unit: str = "ms") -> dict[str, float]:
    """The median and the 99th percentile, as figures."""
    scale = {"ms": 1e3, "us": 1e6}[unit]
    if not len(seconds):
        return {}
    return {f"{name}_p{q}_{unit}": float(np.percentile(seconds, q)) * scale for q in (50, 99)}
