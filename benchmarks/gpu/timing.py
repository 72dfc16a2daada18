"""Seconds of one call on the device, and what to compare them with."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch


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
        call()
        if self.device.type != "cuda":
            return statistics.median(self._once_on_cpu(call) for _ in range(self.repeats)), False
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


def copy_bandwidth(clock: Clock, num_bytes: int) -> float:
    """Bytes per second, read and written ones counted, of a copy that does not fit into any cache."""
    source = torch.empty(num_bytes, dtype=torch.uint8, device=clock.device)
    target = torch.empty_like(source)
    return 2 * num_bytes / clock.seconds(lambda: target.copy_(source))[0]


def machine(device: torch.device) -> dict[str, Any]:
    """What a result depends on."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    versions = {package: version(package) for package in ("torch", "triton", "xgrammar", "maskwright")}
    return {"device": name, "type": device.type, "cuda": torch.version.cuda, "python": platform.python_version(), **versions}


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
