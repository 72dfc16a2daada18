"""Who asks for a constraint gets it: at once what is known, be it compiled or refused, and else from the lanes, once for all who
ask for it. A compile that nobody waits for any more is ended."""

from __future__ import annotations

import asyncio
import math
import pickle
import time
from dataclasses import dataclass, field

from ...constraints import Compiler, Constraint, ConstraintError, Source
from ..errors import ApiError
from ..metrics import Metrics
from .lanes import Lanes
from .refusals import Refusals


@dataclass(eq=False)
class Job:
    """A source that is being compiled, for a number of requests, the first of which was this client's."""

    source: Source
    data: bytes  # pickled
    client: str
    result: asyncio.Future[Constraint]
    num_waiting: int = 0
    task: asyncio.Task[None] = field(init=False)


class ConstraintCompiler:
    """Compiles constraints for one event loop, from `start` to `stop`."""

    def __init__(self, compiler: Compiler, lanes: Lanes, metrics: Metrics, max_jobs: int) -> None:
        """max_jobs: sources that are being compiled or wait for it, at most."""
        self._compiler, self._lanes, self._metrics, self._max_jobs = compiler, lanes, metrics, max_jobs
        self._jobs: dict[Source, Job] = {}
        self._refusals = Refusals()

    def start(self) -> None:
        self._lanes.start()

    async def stop(self) -> None:
        tasks = [job.task for job in self._jobs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._lanes.stop()

    def end_all(self, error: ApiError) -> None:
        """End all that is being compiled or waits for it; who waits for one is told this error."""
        for job in list(self._jobs.values()):
            self._drop(job, error)

    async def compile(self, source: Source, client: str = "") -> Constraint:
        """The compiled constraint. Raises ConstraintError; ApiError when too many wait, or the process that compiles it breaks."""
        self._metrics.constraint_queries.inc()
        if self._compiler.knows(source):
            self._metrics.constraint_hits.inc()
            return self._compiler.compile(source)
        refusal = self._refusals.error_of(source)
        if refusal is not None:
            self._metrics.constraint_errors.inc()
            raise refusal
        job = self._jobs.get(source)
        if job is None:
            job = self._begun(source, client)
        else:
            self._metrics.constraint_hits.inc()
        job.num_waiting += 1
        try:
            return await asyncio.shield(job.result)  # one client that goes does not take the others' constraint with it
        finally:
            job.num_waiting -= 1
            if not job.num_waiting and not job.result.done():
                self._drop(job)

    def _begun(self, source: Source, client: str) -> Job:
        data = pickle.dumps(source)
        self._make_room(client)
        loop = asyncio.get_running_loop()
        job = self._jobs[source] = Job(source, data, client, loop.create_future())
        job.result.add_done_callback(lambda result: result.cancelled() or result.exception())  # perhaps nobody waits any more
        job.task = loop.create_task(self._run(job))
        return job

    def _make_room(self, client: str) -> None:
        """Of as many jobs as there may be, refuse the last one of the client who has most: this one (ApiError), or another."""
        if len(self._jobs) < self._max_jobs:
            return
        jobs: dict[str, list[Job]] = {}
        for job in self._jobs.values():
            jobs.setdefault(job.client, []).append(job)
        most = max(jobs.values(), key=len)
        if len(most) <= len(jobs.get(client, ())) + 1:
            raise self.full()
        self._drop(most[-1], self.full())

    def full(self) -> ApiError:
        """What one is refused with who is too many."""
        message = f"{self._max_jobs} constraints are being compiled or wait for that (limit max_compiles); try again later"
        seconds = math.ceil(self._compiler.limits.seconds)
        return ApiError(429, message, code="compile_queue_full", headers={"Retry-After": f"{max(seconds, 1)}"})

    def _drop(self, job: Job, error: ApiError | None = None) -> None:
        """End a compile. Whoever waits for it is told the error."""
        del self._jobs[job.source]
        _settle(job, error)
        job.task.cancel()

    async def _run(self, job: Job) -> None:
        begun, outcome = time.perf_counter(), "cancelled"
        result: Constraint | Exception | None = None
        try:
            handover = await self._lanes.compile(job.data, job.client)
            result = await asyncio.to_thread(self._compiler.take_over, job.source, handover)
            outcome = "compiled"
        except ConstraintError as error:
            outcome, result = "refused", error
            self._refusals.add(job.source, error, len(job.data))
            self._metrics.constraint_errors.inc()
        except Exception as error:
            outcome, result = "failed", error
        finally:
            if self._jobs.get(job.source) is job:
                del self._jobs[job.source]
            _settle(job, result)
            del job.task  # what it has raised knows this frame, and it the job: large garbage that only the collector would find
            self._metrics.compiled(outcome, time.perf_counter() - begun)


def _settle(job: Job, result: Constraint | Exception | None) -> None:
    """Tell those who wait what became of a job: None when it was given up."""
    if job.result.done():
        return
    if isinstance(result, Exception):
        job.result.set_exception(result)
    elif result is None:
        job.result.cancel()
    else:
        job.result.set_result(result)
