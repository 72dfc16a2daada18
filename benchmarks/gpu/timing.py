"""Seconds of one call whose inputs lie in no cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from cases import Case, Line


@dataclass
class Clock:
    """Times calls on one device: on CUDA by events, replayed from a graph, with caches flushed in between."""

    device: torch.device
    repeats: int

    def __post_init__(self) -> None:
        flushed = 1 << 28 if self.device.type == "cuda" else 0  # bytes, several times the last cache
        self._flush = torch.empty(flushed, dtype=torch.uint8, device=self.device)

    def seconds(self, call: Callable[[], Any]) -> tuple[float, bool]:
        """(median seconds, whether a CUDA graph was replayed; a call that waits for the device cannot be captured)."""
        if self.device.type != "cuda":
            return statistics.median(self._once_on_cpu(call) for _ in range(self.repeats)), False
        call()
        replay, captured = self._captured(call)
        return statistics.median(self._once_on_cuda(replay) for _ in range(self.repeats)), captured

    def _captured(self, call: Callable[[], Any]) -> tuple[Callable[[], Any], bool]:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                call()
        except RuntimeError:
            torch.cuda.synchronize()
            return call, False
        return graph.replay, True

    def _once_on_cuda(self, call: Callable[[], Any]) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flush.zero_()
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1000

    def _once_on_cpu(self, call: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun


def timed(what: Line, make: Callable[[], Callable[[], Any]], clock: Clock) -> Case:
    """The case of one call, which `make` prepares."""

    def measure() -> Iterator[Line]:
        seconds, captured = clock.seconds(make())
        yield {"us": seconds * 1e6, "graph": captured}

    return Case(what, measure)
