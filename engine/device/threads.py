"""The number of CPU threads that a step uses.

PyTorch splits every operation over its threads and waits for the slowest. Operations of a small model take some ten
microseconds; where another program uses a core, each may wait milliseconds for its turn. Measured with 4.5 million parameters
beside one busy program on two cores: 4 ms a step with one thread, 150 ms with two (`benchmarks/constrained_decode.py --threads`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL_MODEL_BYTES = 128 << 20  # of weights in memory


def threads_for(wanted: int | None, weight_bytes: int) -> int | None:
    """As wanted, else one for a small model and PyTorch's own choice (None) for others."""
    if wanted is None and weight_bytes <= SMALL_MODEL_BYTES:
        return 1
    return wanted


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
