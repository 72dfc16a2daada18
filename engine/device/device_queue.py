"""Work for the device, done in the order in which it was asked for, while the host goes on.

A GPU has such a queue: a stream. On a CPU the queue is one worker thread: PyTorch gives the interpreter back while it computes, and
so do compiled masks, so that the two overlap as far as cores allow. `InlineQueue` does everything at once: the same results, and
nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from .threads import use_threads

T = TypeVar("T")
Result = TypeVar("Result", covariant=True)
Tensors = TypeVar("Tensors", bound=tuple[Any, ...])


class Ticket(Protocol[Result]):
    """The promise of a result. `result` waits for the work and raises what it raised; submitting the work never raises."""

    def result(self) -> Result: ...


class Done(NamedTuple):
    """The ticket of work that is done."""

    value: Any

    def result(self) -> Any:
        return self.value


class Failed(NamedTuple):
    """The ticket of work that raised."""

    error: Exception

    def result(self) -> Any:
        raise self.error


class DeviceQueue(Protocol):
    """Runs work for one device in the order in which it is submitted."""

    def submit(self, work: Callable[[], T]) -> Ticket[T]:
        """Run `work` behind all that was submitted before.

        On a GPU, `result` returns before the GPU is done: its tensors may be passed on to other work, not read.
        """

    def fetch(self, work: Callable[[], Tensors]) -> Ticket[Tensors]:
        """Run work that gives a (named) tuple of tensors, and copy these to the host."""

    def wait(self) -> None:
        """Wait until all that was submitted is done."""


class InlineQueue:
    """Does all work at once. `threads`: how many CPU threads compute (None: as PyTorch is set)."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    @torch.inference_mode()
    def submit(self, work: Callable[[], T]) -> Ticket[T]:
        try:
            with use_threads(self._threads):
                return Done(work())
        except Exception as error:
            return Failed(error)

    def fetch(self, work: Callable[[], Tensors]) -> Ticket[Tensors]:
        return self.submit(work)

    def wait(self) -> None:
        return


class ThreadQueue:
    """One worker thread, which ends when the queue is dropped."""

    def __init__(self, threads: int | None = None) -> None:
        self._inline = InlineQueue(threads)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="maskwright-device")

    def submit(self, work: Callable[[], T]) -> Future[T]:
        return self._worker.submit(lambda: self._inline.submit(work).result())

    def fetch(self, work: Callable[[], Tensors]) -> Future[Tensors]:
        return self.submit(work)

    def wait(self) -> None:
        self._worker.submit(lambda: None).result()


class StreamQueue:
    """The current stream of a GPU."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    @torch.inference_mode()
    def submit(self, work: Callable[[], T]) -> Ticket[T]:
        try:
            return Done(work())
        except Exception as error:
            return Failed(error)

    def fetch(self, work: Callable[[], Tensors]) -> Ticket[Tensors]:
        done: Any = self.submit(lambda: Fetched(work(), self._device))
        copied: Ticket[Tensors] = done.value if isinstance(done, Done) else done
        return copied

    def wait(self) -> None:
        torch.cuda.synchronize(self._device)


class Fetched:
    """Tensors on their way to pinned host memory; `result` waits for these copies alone, not for what was launched after them."""

    def __init__(self, tensors: Any, device: torch.device) -> None:
        self._copies = [None if tensor is None else self._copy(tensor) for tensor in tensors]
        self._rebuild = type(tensors)
        self._copied = torch.cuda.Event()
        self._copied.record(torch.cuda.current_stream(device))

    def result(self) -> Any:
        self._copied.synchronize()
        return self._rebuild(*self._copies) if hasattr(self._rebuild, "_fields") else tuple(self._copies)

    @staticmethod
    def _copy(tensor: Tensor) -> Tensor:
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)


def queue_for(device: torch.device, overlaps: bool, threads: int | None = None) -> DeviceQueue:
    """The device's queue; without overlap on a CPU nothing needs a thread."""
    if device.type == "cuda":
        return StreamQueue(device)
    return ThreadQueue(threads) if overlaps else InlineQueue(threads)
