"""Steps captured once and replayed: a GPU launches all kernels of a decode step with one call of the host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Protocol

import torch

from ..errors import ConfigError

logger = logging.getLogger(__name__)


class Replay(Protocol):
    """A captured step."""

    def replay(self) -> None: ...


class Capture(Protocol):
    """Records what `step` does on the device, without doing it. `step` reads and writes the same addresses whenever it is called,
    and nothing in it waits for the device."""

    def __call__(self, step: Callable[[], None]) -> Replay: ...


class CudaCapture:
    """Captures steps in CUDA graphs, which share one pool of memory for what steps allocate: they never run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._pool = device, torch.cuda.graph_pool_handle()

    def __call__(self, step: Callable[[], None]) -> Replay:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device), torch.cuda.graph(graph, pool=self._pool):
            step()
        return graph


class StepGraphs:
    """One captured step for each key. The first step of a key runs as it is, which compiles its kernels; the second is captured.

    What cannot be captured (a model part that asks the device, memory that is not there) runs as it is, and the log says why.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._replays: dict[Hashable, Replay] = {}
        self._seen: set[Hashable] = set()  # done once
        self._failed: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._replays)

    def run(self, key: Hashable, step: Callable[[], None]) -> None:
        """Do `step`, or what was captured of the first one with this key."""
        replay = self._replays.get(key) or self._new_replay(key, step)
        if replay is None:
            step()
        else:
            replay.replay()

    def _new_replay(self, key: Hashable, step: Callable[[], None]) -> Replay | None:
        if key not in self._seen:
            self._seen.add(key)
            return None
        if key in self._failed:
            return None
        try:
            self._replays[key] = self._capture(step)
        except Exception as error:
            self._failed.add(key)
            logger.warning("decode steps %s are not captured: %s", key, error)
        return self._replays.get(key)


def capture_for(device: torch.device) -> Capture:
    """Raises ConfigError where nothing can be captured."""
    if device.type != "cuda":
        raise ConfigError(f'cuda_graphs=True needs a GPU; this engine computes on "{device.type}"')
    return CudaCapture(device)
