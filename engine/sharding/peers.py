"""What ranks tell each other while they compute: sums, columns of one matrix, the numbers of one rank.

Over plain `torch.distributed`, NCCL between GPUs and gloo between processes of a CPU, in a group of its own: a program may use the
global one for itself. Ranks are processes of one machine, that meet through a file and talk over its loopback.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from .progress import Progress
from .ranks import Rank

DISTRIBUTED: Any = torch.distributed  # whose groups and stores have no types
PATIENCE = timedelta(minutes=10)  # of the library; long before, rank 0 has ended a rank that does not come (`parallel/patience.py`)


class Peers:
    """The ranks of one model, as one of them sees them. Until it is connected, and where it is alone, it only gives back."""

    def __init__(self, rank: Rank) -> None:
        self.rank, self.progress = rank, Progress()
        self._group: Any = None
        self._is_on_gpu = False

    def connect(self, meeting: Path, device: torch.device, seconds: float) -> None:
        """Meet the others, who all do this now, through a file that is not there before. Waits for them, for so many seconds."""
        store = DISTRIBUTED.FileStore(str(meeting), self.rank.size)
        store.set_timeout(timedelta(seconds=seconds))
        with self.progress.waiting():
            self.join(store, device)

    def join(self, store: Any, device: torch.device) -> None:
        """Meet the others through a store that all of them have."""
        kind = DISTRIBUTED.ProcessGroupNCCL if device.type == "cuda" else DISTRIBUTED.ProcessGroupGloo
        options = kind.Options() if device.type == "cuda" else kind._Options()
        options._timeout = PATIENCE
        if device.type == "cuda":
            torch.cuda.set_device(device)
        else:
            options._devices = [kind.create_device(hostname="127.0.0.1")]
        self._group, self._is_on_gpu = kind(store, *self.rank, options), device.type == "cuda"

    def leave(self) -> None:
        """Give up on the others, from any thread: on a GPU who waits for them waits no longer. On a CPU their end does that."""
        if self._group is not None and self._is_on_gpu:
            self._group.abort()

    def sum(self, x: Tensor) -> Tensor:
        """The sum of all ranks' x, the same on all of them. May write into x."""
        if self._group is not None:
            x = x.contiguous()
            with self.progress.waiting():
                self._group.allreduce([x]).wait()
        return x

    def columns(self, x: Tensor, widths: Sequence[int]) -> Tensor:
        """On rank 0 all ranks' x [rows, its entry of `widths`] beside each other; elsewhere x."""
        if self._group is None:
            return x
        widest = max(widths)
        given = x.contiguous() if x.shape[1] == widest else torch.nn.functional.pad(x, (0, widest - x.shape[1]))
        found = [] if self.rank.number else [torch.empty_like(given) for _ in widths]
        with self.progress.waiting():
            self._group.gather([found] if found else [], [given]).wait()
        if not found:
            return x
        return torch.cat([part[:, :width] for part, width in zip(found, widths, strict=True)], dim=1)

    def of_first(self, x: Tensor) -> Tensor:
        """Rank 0's x, which all have in the same shape. Writes into x."""
        if self._group is not None:
            with self.progress.waiting():
                self._group.broadcast([x]).wait()
        return x
