"""What a step of a model takes on this machine: a constant, and so much for each token in it.

Steps of several sizes are timed, prompts of 8 to 256 tokens alone and batches of 1 to 32 that decode, and a line is fitted through
their medians (least squares of relative errors).
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from maskwright import LLM, SamplingParams
from maskwright.engine.requests.request import Request

PROMPTS, BATCHES, ROUNDS, STEPS = (8, 32, 128, 256), (1, 4, 16, 32), 5, 12


def measured(model: str) -> dict[str, Any]:
    """{"step_ms", "token_us"}, the medians that they are fitted to, and where they were measured."""
    llm = LLM(model, threads=1, prefix_cache=False)
    steps = [(count, _prefill_seconds(llm, count)) for count in PROMPTS]
    steps += [(count, _decode_seconds(llm, count)) for count in BATCHES]
    tokens, seconds = np.array([each[0] for each in steps], float), np.array([each[1] for each in steps])
    terms = np.stack([1 / seconds, tokens / seconds], axis=1)
    (constant, slope), *_ = np.linalg.lstsq(terms, np.ones(len(steps)), rcond=None)
    constant, slope = max(float(constant), 0.0), float(slope)
    return {
        "step_ms": round(constant * 1e3, 4),
        "token_us": round(slope * 1e6, 2),
        "steps": [
            {"tokens": count, "ms": round(took * 1e3, 3), "fitted": round((constant + slope * count) * 1e3, 3)}
            for count, took in steps
        ],
        "model": Path(model).name,
        "device": str(llm.config.device),
        "threads": 1,
        "machine": _processor(),
        "cores": os.cpu_count(),
        "load average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def _prefill_seconds(llm: LLM, num_tokens: int) -> float:
    """The median time of a step that computes a prompt."""
    return median(_step_seconds(llm, [_request(num_tokens, 1)], skipped=0)[0] for _ in range(ROUNDS))


def _decode_seconds(llm: LLM, batch: int) -> float:
    """The median time of a step in which so many sequences decode."""
    return median(_step_seconds(llm, [_request(4, STEPS) for _ in range(batch)], skipped=2))


def _request(num_tokens: int, num_outputs: int) -> Request:
    sampling = SamplingParams(max_tokens=num_outputs, ignore_eos=True, temperature=0.0)
    return Request(prompt_token_ids=tuple(range(300, 300 + num_tokens)), sampling=sampling)


def _step_seconds(llm: LLM, requests: list[Request], skipped: int) -> list[float]:
    """Of each step until all have ended, without the first few."""
    llm.driver.submit(requests, pushed=True)
    times = list[float]()
    while llm.driver.has_work:
        started = time.perf_counter()
        llm.driver.step()
        times.append(time.perf_counter() - started)
    return times[skipped:-1] if skipped else times


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
