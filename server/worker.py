"""The thread that steps the engine, and the way its news take to the coroutines that wait for them.

Nobody else touches the engine while it runs: what coroutines want of it (submit, cancel) is put into a queue, which the
thread empties before each step. So a request whose client has gone is out of the batch, and its blocks are free, before the
next step.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from queue import Empty, SimpleQueue

from ..driver import Driver
from ..engine.errors import InternalError
from ..engine.requests.output import Event
from ..engine.requests.request import Request
from ..engine.scheduling.statistics import EngineStatistics
from ..engine.search.searches import Search

logger = logging.getLogger(__name__)

Command = Callable[[], None]


class Answers:
    """The events of the requests of one client, in the order in which they come. Belongs to the event loop."""

    def __init__(self, num_requests: int) -> None:
        self._news: asyncio.Queue[tuple[int, Event] | Exception] = asyncio.Queue()
        self._num_open = num_requests
        self.request_ids: list[int] = []

    def __aiter__(self) -> Answers:
        return self

    async def __anext__(self) -> tuple[int, Event]:
        """(which request, its event). Raises the error that has stopped the engine."""
        if not self._num_open:
            raise StopAsyncIteration
        news = await self._news.get()
        if isinstance(news, Exception):
            raise news
        self._num_open -= news[1].is_final
        return news

    def put(self, news: tuple[int, Event] | Exception) -> None:
        self._news.put_nowait(news)


class EngineWorker:
    """Runs one engine for one event loop, from `start` to `stop`."""

    def __init__(self, driver: Driver, see_step: Callable[[int], object] = lambda _: None) -> None:
        """see_step: is told how many tokens each step has computed."""
        self._driver, self._see_step = driver, see_step
        self._commands: SimpleQueue[Command | None] = SimpleQueue()
        self._readers: dict[int, tuple[Answers, int]] = {}  # of requests that are not finished
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._ending: Exception | None = None  # the error with which all requests have been ended
        self.statistics: EngineStatistics = driver.statistics  # after the last step

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def num_open(self) -> int:
        """How many requests are not finished."""
        return len(self._readers)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Finish the step that is being computed, and no other."""
        self._commands.put(None)
        await asyncio.to_thread(self._thread.join)

    @asynccontextmanager
    async def submitted(self, requests: Sequence[Request], search: Search | None = None) -> AsyncIterator[Answers]:
        """A block in which all of some requests run; none of them runs behind it. Raises RequestError when one of them
        can never run. search: by which their outputs are found."""
        answers = Answers(len(requests))
        admitted: asyncio.Future[None] = self._loop.create_future()
        self._commands.put(partial(self._submit, requests, search, answers, admitted))
        try:
            await admitted
            yield answers
        finally:
            self._let_go(answers)

    async def forget_prefixes(self) -> None:
        """Empty the cache of prefixes, between two steps."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._commands.put(partial(self._forget, done))
        await done

    def end_all(self, error: Exception) -> None:
        """End all requests that are not finished, and those that are still to come; who waits for one is told this error."""
        self._ending = error
        self._fail(error)

    # ---- on the event loop

    def _admit(self, answers: Answers, admitted: asyncio.Future[None], ids: list[int], error: Exception | None) -> None:
        answers.request_ids = ids
        self._readers |= {request_id: (answers, index) for index, request_id in enumerate(ids)}
        if admitted.done():  # cancelled: its client has gone meanwhile
            self._let_go(answers)
        elif error is not None:
            admitted.set_exception(error)
        elif self._ending is not None:
            self._let_go(answers)
            admitted.set_exception(self._ending)
        else:
            admitted.set_result(None)

    def _deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            answers, index = self._readers.get(event.request_id, (None, 0))
            if answers is not None:
                answers.put((index, event))
            if event.is_final:
                self._readers.pop(event.request_id, None)

    def _fail(self, error: Exception) -> None:
        readers, self._readers = self._readers, {}
        for answers, _ in readers.values():
            answers.put(error)
        self._commands.put(partial(self._cancel, list(readers)))

    def _let_go(self, answers: Answers) -> None:
        unfinished = [request_id for request_id in answers.request_ids if self._readers.pop(request_id, None) is not None]
        if unfinished:
            self._commands.put(partial(self._cancel, unfinished))

    # ---- in the thread

    def _run(self) -> None:
        while True:
            try:
                if not self._obey():
                    return
                self._step()
            except Exception as error:  # the engine contains what one request does; this is a defect of ours
                logger.exception("the engine failed; all requests that were running have failed with it")
                self._tell(self._fail, InternalError(f"the engine failed: {error}"))

    def _obey(self) -> bool:
        """Do what is asked for, and wait for that while there is nothing to compute. False: the thread was asked to
        stop."""
        is_idle = not self._driver.has_work
        while True:
            try:
                command = self._commands.get(block=is_idle)
            except Empty:
                return True
            if command is None:
                return False
            command()  # contains what it raises
            is_idle = False

    def _step(self) -> None:
        num_before = self.statistics.num_computed_tokens
        events = self._driver.step()
        self.statistics = self._driver.statistics
        if num_computed := self.statistics.num_computed_tokens - num_before:
            self._see_step(num_computed)
        if events:
            self._tell(self._deliver, events)

    def _submit(
        self, requests: Sequence[Request], search: Search | None, answers: Answers, admitted: asyncio.Future[None]
    ) -> None:
        ids, failed = list[int](), None
        try:
            ids = self._driver.submit(requests, pushed=True, search=search)
        except Exception as error:
            failed = error
        self._tell(self._admit, answers, admitted, ids, failed)

    def _forget(self, done: asyncio.Future[None]) -> None:
        failed: Exception | None = None
        try:
            self._driver.forget_prefixes()
        except Exception as error:
            failed = error
        self.statistics = self._driver.statistics
        self._tell(_settle, done, failed)

    def _cancel(self, request_ids: Sequence[int]) -> None:
        for request_id in request_ids:
            try:
                self._driver.cancel(request_id)
            except Exception:
                logger.exception("request %d could not be cancelled", request_id)
        self.statistics = self._driver.statistics

    def _tell(self, action: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(action, *arguments)
        except RuntimeError:  # the loop is closed: nobody waits any more
            logger.debug("news after the end of the event loop")


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():  # nobody waits any more
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(None)
