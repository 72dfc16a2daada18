"""What ranks tell each other while they compute: sums, columns of one matrix, the numbers of one rank.

Over plain `torch.distributed`, NCCL between GPUs and gloo between processes of a CPU, in a group of its own: a program may use the
global one for itself. Ranks are processes of one machine, that meet through a file and talk over its loopback.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed
from torch import Tensor

from .ranks import Rank

PATIENCE = timedelta(minutes=10)  # for a rank that lives and does not come: loops may be compiled in its first step


class Peers:
    """The ranks of one model, as one of them sees them. Until it is connected, and where it is alone, it only gives back."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._group: torch.distributed.ProcessGroup | None = None

    def connect(self, meeting: Path, device: torch.device) -> None:
        """Meet the others, who all do this, through a file that is not there before. Waits for them."""
        store = torch.distributed.FileStore(str(meeting), self.rank.size)
        self.join(store, device)

    def join(self, store: torch.distributed.Store, device: torch.device) -> None:
        """Meet the others through a store that all of them have."""
        if device.type == "cuda":
            torch.cuda.set_device(device)
            self._group = torch.distributed.ProcessGroupNCCL(store, *self.rank, timeout=PATIENCE)  # type: ignore[call-overload]
            return
        kind = torch.distributed.ProcessGroupGloo
        options = kind._Options()
        options._timeout, options._devices = PATIENCE, [kind.create_device(hostname="127.0.0.1")]
        self._group = kind(store, *self.rank, options)

    def leave(self) -> None:
        """Let go of the others; who waits for them on a GPU waits no longer."""
        group, self._group = self._group, None
        if group is not None and hasattr(group, "abort"):
            group.abort()

    def sum(self, x: Tensor) -> Tensor:
        """The sum of all ranks' x, the same on all of them. May write into x."""
        if self._group is not None:
            x = x.contiguous()
            self._group.allreduce([x]).wait()
        return x

    def columns(self, x: Tensor, widths: Sequence[int]) -> Tensor:
        """On rank 0 all ranks' x [rows, its entry of `widths`] beside each other; elsewhere x."""
        if self._group is None:
            return x
        widest = max(widths)
        given = x.contiguous() if x.shape[1] == widest else torch.nn.functional.pad(x, (0, widest - x.shape[1]))
        if self.rank.number:
            self._group.gather([], [given]).wait()
            return x
        found = [torch.empty_like(given) for _ in widths]
        self._group.gather([found], [given]).wait()
        return torch.cat([part[:, :width] for part, width in zip(found, widths, strict=True)], dim=1)

    def of_first(self, x: Tensor) -> Tensor:
        """Rank 0's x, which all have in the same shape. Writes into x."""
        if self._group is not None:
            self._group.broadcast([x]).wait()
        return x
