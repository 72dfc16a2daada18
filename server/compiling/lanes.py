"""Where sources are compiled: in a quick lane first, and in a slow one what takes longer.

The quick lane takes the shorter sources first. What is not compiled in QUICK_SECONDS is taken out of it, unless it had less than
STARVED_SECONDS of the processor, as on a busy machine: then it has PATIENCE_SECONDS. It goes on in the slow lane, behind everybody
else on the machine, in turns of SLICE_SECONDS: a turn of one client, then one of another. A client has one source at a time in the
slow lane, and all together have MAX_BEGUN, because what is begun holds memory between its turns. While a client has had one that
proved slow within MEMORY_SECONDS, others of at least half its length go there at once: many like it do not hold the quick lane up
one by one. What went there by its looks proves nothing, or one accident would keep all that a client sends there for good.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ...constraints import Limits, Vocabulary
from ...constraints.runtime.loading import Handover
from .fair_queue import FairQueue
from .processes import CompileProcess, ForkServer, died
from .standing_still import StandingStill

logger = logging.getLogger(__name__)

T = TypeVar("T")
QUICK_SECONDS = 0.08
STARVED_SECONDS = QUICK_SECONDS / 2
PATIENCE_SECONDS = 10 * QUICK_SECONDS
MEMORY_SECONDS = 2.0
SLICE_SECONDS = 0.5
MAX_BEGUN = 4  # sources in the slow lane that have a process
NUM_AHEAD = 2  # sources of a client in the slow lane, with which it is busy until others are there: one compiles, one waits
FEW_CORES = 4  # of a machine on which slow compiles stand in others' way
MAX_ASKED = 256  # of one process: what it has learned of the vocabulary does not grow for ever
BYTES_A_SECOND = 1000  # a source that is so much longer than another one counts as one that came a second later
MOST_SECONDS_LATER = 60.0


class Lanes:
    """Compiles pickled sources, from `start` to `stop`, for one event loop. Cancelling a compile ends its process."""

    def __init__(self, vocabulary: Vocabulary, limits: Limits, num_processes: int, memory_bytes: int) -> None:
        """num_processes: that compile at the same time, in each lane. memory_bytes: that each may hold."""
        self._limits, self._memory_bytes = limits, memory_bytes
        self._fork_server = ForkServer(vocabulary, limits, memory_bytes)
        self._threads = ThreadPoolExecutor(2 + 2 * num_processes, thread_name_prefix="compile")
        self._quick, self._begun, self._slices = FairQueue(num_processes), FairQueue(MAX_BEGUN), FairQueue(num_processes)
        self._slow_clients: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._numbers = count()
        self._idle: list[CompileProcess] = []
        self._proven: list[tuple[str, int, float]] = []  # clients, the lengths of what proved slow, and until when that counts
        self._num_slow: Counter[str] = Counter()  # sources in the slow lane, by client
        self.still = StandingStill((os.cpu_count() or 1) <= FEW_CORES)

    @property
    def num_slow(self) -> int:
        """Sources in the slow lane."""
        return self._num_slow.total()

    @property
    def num_waiting(self) -> int:
        """Sources that wait for their turn in the quick lane."""
        return self._quick.num_waiting

    def is_slow(self, client: str) -> bool:
        """Whether something of this client is in the slow lane."""
        return client in self._num_slow

    def has_enough(self, client: str, num_bytes: int) -> bool:
        """Whether so long a source of this client would go to the slow lane, and wait there behind others of it."""
        return self._num_slow[client] >= NUM_AHEAD and self._looks_slow(num_bytes, client)

    def start(self) -> None:
        """Make ready, in a thread; what is asked for meanwhile waits."""
        self._threads.submit(self._fork_server.start).add_done_callback(self._tell_failure)

    def _tell_failure(self, starting: Future[None]) -> None:
        if starting.cancelled() or self._fork_server.is_closed:
            return
        if (error := starting.exception()) is not None:
            logger.error("no constraint can be compiled yet: %s", error)

    async def stop(self) -> None:
        await asyncio.to_thread(self._fork_server.close)
        self._threads.shutdown(wait=False, cancel_futures=True)
        while self._idle:
            self._idle.pop().close()

    async def compile(self, source: bytes, client: str) -> Handover:
        """What a source is compiled to. Raises ConstraintError; ApiError when the process breaks."""
        process: CompileProcess | None = None
        rank = asyncio.get_running_loop().time() + min(len(source) / BYTES_A_SECOND, MOST_SECONDS_LATER)
        try:
            async with self._quick.turn(client, rank):
                if not self._looks_slow(len(source), client):
                    process = await self._asked(source)
                    if await self._answers_quickly(process):
                        answer = await self._answer(process)
                        if process.num_asked < MAX_ASKED and not process.is_ended:
                            self._idle.append(process)
                            process = None
                        return _checked(answer)
                    process.pause()
                    self._note(process, source, client)
            self._num_slow[client] += 1
            try:
                kept, process = process, None
                return _checked(await self._compile_slowly(source, client, kept))
            finally:
                self._num_slow[client] -= 1
                if not self._num_slow[client]:
                    del self._num_slow[client]
        finally:
            if process is not None:
                self._end(process)

    async def _answers_quickly(self, process: CompileProcess) -> bool:
        """Whether a process answers while it is in the quick lane. That it had to wait for a processor is not held against it."""
        now = asyncio.get_running_loop().time
        end = now() + PATIENCE_SECONDS
        while not await process.answers_within(QUICK_SECONDS):
            if not _is_starved(process) or now() >= end:
                return False
        return True

    def _looks_slow(self, num_bytes: int, client: str) -> bool:
        now = asyncio.get_running_loop().time()
        return any(one == client and now < until and 2 * num_bytes >= length for one, length, until in self._proven)

    def _note(self, process: CompileProcess, source: bytes, client: str) -> None:
        """Remember of a client that this source is slow, if that is not for want of a processor."""
        if not _is_starved(process):
            now = asyncio.get_running_loop().time()
            self._proven = [known for known in self._proven if now < known[2]]
            self._proven.append((client, len(source), now + MEMORY_SECONDS))

    async def _compile_slowly(self, source: bytes, client: str, process: CompileProcess | None) -> Handover | Exception:
        """process: which has begun, and is paused."""
        number, own = next(self._numbers), self._slow_clients.setdefault(client, asyncio.Lock())
        try:
            if process is not None and (own.locked() or not self._begun.has_free):
                self._end(process)
                process = None
            async with own, self._begun.turn(client, number):
                while True:
                    async with self._slices.turn(client, number):
                        if process is None:
                            process = await self._asked(source)
                        process.slow_down()
                        with self.still.running(process):
                            if await process.answers_within(SLICE_SECONDS):
                                return await self._answer(process)
                        self._note(process, source, client)
        finally:
            if process is not None:
                self._end(process)

    async def _asked(self, source: bytes) -> CompileProcess:
        """A process that compiles a source."""
        process = self._taken() or await self._forked()
        if not self._idle:
            self._threads.submit(self._fork_server.fork).add_done_callback(self._keep_spare)
        try:
            await self._in_thread(process.ask, source)
        except BaseException:
            self._end(process)
            raise
        return process

    def _keep_spare(self, forking: Future[CompileProcess]) -> None:
        """The next one is there before it is asked for, if this one is not given back."""
        if not forking.cancelled() and forking.exception() is None:
            self._idle.append(forking.result())

    def _taken(self) -> CompileProcess | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_idle:
                return process
            self._end(process)
        return None

    async def _forked(self) -> CompileProcess:
        forking = self._threads.submit(self._fork_server.fork)
        try:
            return await asyncio.wrap_future(forking)
        except asyncio.CancelledError:
            forking.add_done_callback(self._end_forked)
            raise

    def _end_forked(self, forking: Future[CompileProcess]) -> None:
        """End a process for which nobody waits any more."""
        if not forking.cancelled() and forking.exception() is None:
            self._fork_server.end(forking.result())

    async def _answer(self, process: CompileProcess) -> Handover | Exception:
        try:
            return await self._in_thread(process.answer)
        except EOFError:
            return died(await self._in_thread(self._fork_server.end, process), self._limits, self._memory_bytes)

    def _end(self, process: CompileProcess) -> None:
        process.kill()
        self._threads.submit(self._fork_server.end, process)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


def _is_starved(process: CompileProcess) -> bool:
    return process.seconds_used < STARVED_SECONDS


def _checked(answer: Handover | Exception) -> Handover:
    if isinstance(answer, Exception):
        raise answer
    return answer
