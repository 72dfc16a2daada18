"""Writes to arrays on the device, collected on the host and sent together, on a stream of their own where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor


def _at_once(work: Callable[[], None]) -> None:
    work()


class Uploads:
    """`write` collects, `send` sends, `join` makes the current stream wait for what was sent. Nothing waits on the host.

    What is sent becomes visible in the order of the writes; a later write to the same place wins. On a CPU, where no streams are,
    the copies are work for `submit`, in order with all other work.
    """

    def __init__(self, device: torch.device, submit: Callable[[Callable[[], None]], object] = _at_once) -> None:
        self.device, self._submit = device, submit
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._sent = torch.cuda.Event() if device.type == "cuda" else None
        self._single: dict[int, tuple[Tensor, dict[int, int]]] = {}
        self._rows: list[tuple[Tensor, int, Tensor]] = []
        self._work: list[Callable[[], None]] = []
        self._held: list[Callable[[], None]] = []  # work under way, and with it the arrays that it reads
        self._staged: list[Tensor] = []  # host memory that copies under way read from
        self._read: torch.cuda.Event | None = None  # after the last step that reads what is written here

    def write(self, array: Tensor, place: int, value: int) -> None:
        """array[place] = value"""
        self._single.setdefault(id(array), (array, {}))[1][place] = value

    def write_row(self, array: Tensor, row: int, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
        """array[row, :len(values)] = values, or array[row : row + len(values)] = values if it has one dimension."""
        self._rows.append((array, row, torch.from_numpy(np.array(values))))

    def do(self, work: Callable[[], None]) -> None:
        """Collect work that writes to device arrays itself; it runs before the writes that are sent with it."""
        self._work.append(work)

    def mark(self) -> None:
        """What is launched on the current stream from now on, until `join`, does not read what is written: so `send` waits only
        for what was launched before."""
        if self._stream is not None:
            self._read = torch.cuda.Event()
            self._read.record(torch.cuda.current_stream(self.device))

    def send(self) -> bool:
        """Send what was collected. Returns whether there was anything."""
        if not self._rows and not self._single and not self._work:
            return False
        rows, single, work = self._rows, list(self._single.values()), self._work
        if self._stream is None:
            self._submit(lambda: self._copy(rows, single, work))
        else:
            assert self._sent is not None
            if self._read is None:
                self._stream.wait_stream(torch.cuda.current_stream(self.device))  # a step that reads what is overwritten is done
            else:
                self._stream.wait_event(self._read)
            self._staged, self._held = [], work
            with torch.cuda.stream(self._stream):
                self._copy(rows, single, work)
                self._sent.record(self._stream)
        self._rows, self._single, self._work = [], {}, []
        return True

    def join(self) -> None:
        """Let what is launched on the current stream from now on see what was sent."""
        self._read = None
        if self._sent is not None:
            torch.cuda.current_stream(self.device).wait_event(self._sent)

    def _copy(
        self,
        rows: Sequence[tuple[Tensor, int, Tensor]],
        single: Sequence[tuple[Tensor, dict[int, int]]],
        work: Sequence[Callable[[], None]],
    ) -> None:
        for each in work:
            each()
        for array, row, values in rows:
            there = self._to_device(values)
            (array[row] if array.ndim == 2 else array[row:])[: len(values)].copy_(there, non_blocking=True)
        for array, entries in single:
            places = self._to_device(torch.tensor(list(entries)))
            array.index_copy_(0, places, self._to_device(torch.tensor(list(entries.values()), dtype=array.dtype)))

    def _to_device(self, values: Tensor) -> Tensor:
        if self._stream is None:
            return values
        pinned = values.pin_memory()
        self._staged.append(pinned)
        return pinned.to(self.device, non_blocking=True)
