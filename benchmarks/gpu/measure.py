"""What the GPU benchmarks share: times of launches, the card's copy bandwidth, and results with where they come from."""

from __future__ import annotations

import datetime
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parents[1] / "results"


def seconds_per_call(calls: Sequence[Callable[[], object]], device: torch.device, repeats: int = 20) -> float:
    """Median over `repeats` of the time of all calls, one after the other, over their number.

    Pass calls on as many different inputs as overflow the card's cache. On CUDA they are replayed from a graph, so that
    launches cost what they cost in an engine.
    """
    if device.type != "cuda":
        return statistics.median(elapsed(lambda: [call() for call in calls]) for _ in range(repeats)) / len(calls)
    for call in calls:  # compiles
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [call() for call in calls]
    graph.replay()
    times = [graph_seconds(graph) for _ in range(repeats)]
    del kept
    return statistics.median(times) / len(calls)


def graph_seconds(graph: torch.cuda.CUDAGraph) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def elapsed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def copy_bandwidth(device: torch.device, num_bytes: int = 1 << 30) -> float:
    """Bytes per second of a copy on the device, read and write both counted."""
    source = torch.randint(256, (num_bytes,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * num_bytes / seconds_per_call([lambda: target.copy_(source)] * 4, device)


def machine(device: torch.device) -> dict[str, Any]:
    """What a result depends on."""
    is_cuda = device.type == "cuda"
    packages = ("torch", "triton", "xgrammar", "flashinfer-python", "maskwright")
    return {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name(device) if is_cuda else platform.processor() or "cpu",
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def results_path(name: str, machine: dict[str, Any]) -> Path:
    """Beside the other results."""
    return RESULTS / f"{name}-{machine['device'].lower().replace(' ', '-')}-{machine['date']}.json"


def keep(results: dict[str, Any], out: Path) -> None:
    """Writes results as JSON."""
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
