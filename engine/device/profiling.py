"""A switch for torch.profiler: what runs inside is written to a folder, as a trace and as a table.

The parts of a step are named (`span`): in the trace, and as NVTX ranges on a GPU, where Nsight Systems shows them. Where nothing is
profiled a span costs one look at a flag.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig

from ...foundation.errors import UsageError

TRACE, TABLE = "trace.json", "operators.txt"
_NOTHING: AbstractContextManager[None] = nullcontext()
_is_on = False


def span(name: str) -> AbstractContextManager[None]:
    """A part of a step, by name, while something is profiled."""
    return _span(f"maskwright: {name}") if _is_on else _NOTHING


@contextmanager
def _span(name: str) -> Iterator[None]:
    is_on_gpu = torch.cuda.is_available()
    if is_on_gpu:
        torch.cuda.nvtx.range_push(name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if is_on_gpu:
            torch.cuda.nvtx.range_pop()


@contextmanager
def profiled(folder: Path | None) -> Iterator[None]:
    """Profile what runs inside, in all threads, on the CPU and a GPU if there is one; None profiles nothing.

    Writes `trace.json`, Chrome's format, to be opened in a browser at ui.perfetto.dev, and `operators.txt`, operators by the time
    they took.

    Raises UsageError, before anything runs, where there can be no such folder, and where something is being profiled already.
    """
    global _is_on
    if folder is None:
        yield
        return
    if _is_on:
        raise UsageError("something is being profiled already: one profile at a time")
    _make(folder)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    what: dict[str, Any] = {"profile_memory": True, "record_shapes": True}
    what["experimental_config"] = _ExperimentalConfig(profile_all_threads=True)
    profile = torch.profiler.profile(activities=activities, **what)
    profile.start()
    _is_on = True
    try:
        yield
    finally:  # an interrupt, too, ends a server that is being profiled
        _is_on = False
        profile.stop()
        profile.export_chrome_trace(str(folder / TRACE))
        order = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        (folder / TABLE).write_text(profile.key_averages().table(sort_by=order, row_limit=40))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (TRACE, TABLE):
            (folder / name).open("ab").close()
    except OSError as error:
        raise UsageError(f"nothing can be written to the profile's folder {folder}: {error.strerror or error}") from None
