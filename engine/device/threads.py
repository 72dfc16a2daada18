"""The number of CPU threads that a step uses.

PyTorch splits every operation over its threads and waits for the slowest. Operations of a small model take some ten
microseconds; where another program uses a core, each may wait milliseconds for its turn. Measured with 4.5 million parameters
beside one busy program on two cores: 4 ms a step with one thread, 150 ms with two (`benchmarks/constrained_decode.py --threads`).
That was with threads that wait by spinning; `maskwright/__init__.py` has OpenMP's wait passively, unless the user has said how.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

SMALL_MODEL_BYTES = 128 << 20  # of weights in memory


def threads_for(wanted: int | None, weight_bytes: int, is_compiled: bool = False) -> int | None:
    """As wanted, else one for a small model, and PyTorch's own choice (None) for others as far as there are cores for it.

    `is_compiled`: products are those of `kernels/cpu`, whose pool gives way to a neighbour: small models gain from it, too.
    """
    if wanted is not None:
        return wanted
    if weight_bytes <= SMALL_MODEL_BYTES and not is_compiled:
        return 1
    chosen = torch.get_num_threads()
    usable = max(int(usable_cores()), 1)
    return usable if usable < chosen else None


def usable_cores(quota_file: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """Cores that this process may use: those of its affinity, and of these what a container's quota leaves."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    with suppress(OSError, ValueError):
        quota, period = quota_file.read_text().split()
        return min(cores, int(quota) / int(period))
    return cores


def threads_used(count: int | None) -> int:
    """How many threads PyTorch runs with inside of `use_threads`."""
    return torch.get_num_threads() if count is None else count


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """PyTorch runs with `count` threads inside, and as before outside; None changes nothing."""
    before = torch.get_num_threads()
    if count is None or count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
