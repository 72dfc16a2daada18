"""Steps captured once and replayed: a GPU launches all kernels of a decode step with one call of the host."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

import torch

from .errors import ConfigError


class Replay(Protocol):
    """A captured step."""

    def replay(self) -> None: ...


class Capture(Protocol):
    """Records what `step` does on the device, without doing it. `step` reads and writes the same addresses whenever it is called,
    and nothing in it waits for the device."""

    def __call__(self, step: Callable[[], None]) -> Replay: ...


class CudaCapture:
    """All graphs share one pool of memory for what steps allocate: they never run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._pool = device, torch.cuda.graph_pool_handle()

    def __call__(self, step: Callable[[], None]) -> Replay:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device), torch.cuda.graph(graph, pool=self._pool):
            step()
        return graph


class StepGraphs:
    """One captured step for each key. The first step of a key runs as it is, which compiles its kernels; the second is captured."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._replays: dict[Hashable, Replay | None] = {}

    def __len__(self) -> int:
        return sum(replay is not None for replay in self._replays.values())

    def run(self, key: Hashable, step: Callable[[], None]) -> None:
        """Do `step`, or what was captured of the first one with this key."""
        if key not in self._replays:
            self._replays[key] = None
            step()
            return
        replay = self._replays[key]
        if replay is None:
            replay = self._replays[key] = self._capture(step)
        replay.replay()


def capture_for(device: torch.device) -> Capture:
    """Raises ConfigError where nothing can be captured."""
    if device.type != "cuda":
        raise ConfigError(f'cuda_graphs=True needs a GPU; this engine computes on "{device.type}"')
    return CudaCapture(device)
