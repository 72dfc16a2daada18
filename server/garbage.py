"""When circular garbage is looked for: while nobody asks for anything, nor waits for what is compiled.

A full collection holds the interpreter while it looks at every object that is alive, 50 ms with fifty large schemas that wait to
be compiled, and Python begins one wherever an object happens to be made: in the middle of a step, or of somebody's answer. So those
are left to this, and Python's own come only when very much has been made since. Young objects are collected as always.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress

REST_SECONDS = 30.0  # from one full collection to the next, at least
MOST_SECONDS = 300.0  # after which one comes although something is generated
LOOK_SECONDS = 0.25
RARELY = 1000  # collections of younger objects before Python begins a full one by itself; 10 is its own


class Garbage:
    """Begins full collections for one event loop, from `start` to `stop`, when nobody has asked for anything for a while."""

    def __init__(
        self,
        num_asked: Callable[[], int | None],
        collect: Callable[[], object] = gc.collect,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """num_asked: how many requests there have been so far; None while one is open."""
        self._num_asked, self._collect, self._now = num_asked, collect, now
        self._last, self._num_before = now(), num_asked()
        self._thresholds = gc.get_threshold()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """What is there now is not looked at again until `stop`: it stays."""
        self._thresholds = gc.get_threshold()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*self._thresholds[:2], RARELY)
        self._last = self._now()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def look(self) -> None:
        """Collect, if it is time: when nobody has asked since the last look, so that a pause between two requests is none."""
        num_before, self._num_before = self._num_before, self._num_asked()
        is_idle = self._num_before is not None and self._num_before == num_before
        seconds = self._now() - self._last
        if seconds >= MOST_SECONDS or (seconds >= REST_SECONDS and is_idle):
            self._collect()
            self._last = self._now()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()
