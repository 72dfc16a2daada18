"""A switch for torch.profiler: what runs inside is written to a folder, as a trace and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

TRACE, TABLE = "trace.json", "operators.txt"


@contextmanager
def profiled(folder: Path | None) -> Iterator[None]:
    """Profile what runs inside, on the CPU and a GPU if there is one; None profiles nothing.

    Writes `trace.json`, to be opened in a browser at ui.perfetto.dev, and `operators.txt`, operators by the time they took.
    """
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, profile_memory=True, record_shapes=True) as profile:
        yield
    profile.export_chrome_trace(str(folder / TRACE))
    order = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    (folder / TABLE).write_text(profile.key_averages().table(sort_by=order, row_limit=40))
