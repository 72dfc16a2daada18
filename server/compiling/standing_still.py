"""What is compiled slowly stands still while others are answered, never for longer than it has run.

On a machine of few cores it takes from an answer what neither niceness nor a policy gives back: the caches, the bandwidth of the
memory, and the core that a thread wakes up on. A process that goes on has a core at once, for a tick of the system's clock (4 ms)
and longer, whatever its niceness; so it stands still until the end of an answer is on its way, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

MOST_SECONDS = 0.1  # that it stands still at once
LEAST_SECONDS = 0.005  # of credit, below which stopping it is not worth the while
LAST_SECONDS = 0.005  # behind the last answer: what is written, closed and read on the other side comes before


class Pausing(Protocol):
    """A process that can be stopped."""

    def pause(self) -> None: ...
    def go_on(self) -> None: ...


class StandingStill:
    """The processes that compile slowly now. Each second that they run is a second's credit to stand still, of which MOST_SECONDS
    are kept, so over a long time they have half of it or more. Belongs to an event loop."""

    def __init__(self, is_on: bool = True) -> None:
        """is_on: False where cores are many, and they stand in nobody's way."""
        self._is_on = is_on
        self._running: set[Pausing] = set()
        self._is_wanted = self._is_still = False
        self._credit, self._since = MOST_SECONDS, 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None  # of being wanted

    def want(self, is_wanted: bool) -> None:
        """Whether others are answered, from now on."""
        if not self._is_on:
            return
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if is_wanted:
            self._set(True)
        elif self._is_wanted:
            self._end = asyncio.get_running_loop().call_later(LAST_SECONDS, partial(self._set, False))

    @contextmanager
    def running(self, process: Pausing) -> Iterator[None]:
        """A block in which a process runs, but for the time that it stands still. Behind it, it is paused."""
        self._running.add(process)
        self._look()
        if self._is_still:
            process.pause()
        else:
            process.go_on()
        try:
            yield
        finally:
            self._running.discard(process)
            process.pause()
            self._look()

    def _set(self, is_wanted: bool) -> None:
        if is_wanted != self._is_wanted:
            self._is_wanted = is_wanted
            self._look()

    def _look(self) -> None:
        """Reckon up, stop the processes or let them go on, and look again when credit is used up or full."""
        loop = asyncio.get_running_loop()
        passed, self._since = loop.time() - self._since, loop.time()
        self._credit = self._credit - passed if self._is_still else min(self._credit + passed, MOST_SECONDS)
        may_be_still = self._is_wanted and bool(self._running)
        is_still = may_be_still and self._credit > (0.0 if self._is_still else LEAST_SECONDS)
        if is_still != self._is_still:
            self._is_still = is_still
            for process in self._running:
                if is_still:
                    process.pause()
                else:
                    process.go_on()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if may_be_still:
            self._timer = loop.call_later(self._credit if is_still else MOST_SECONDS - self._credit, self._look)
