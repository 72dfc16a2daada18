"""Tasks in processes of their own, each within a limit of processor time, so that a crash or a hang costs one task."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

PATIENCE = 5  # times the limit in wall time (plus a fixed share), after which a process is killed


class TimeUp(BaseException):
    """The task has used its processor time. No `Exception`: nobody in between may swallow it."""


@dataclass(frozen=True)
class Failure:
    """A task without a result: `kind` is "timed out", "hung" or "crashed"."""

    kind: str
    reason: str


@dataclass
class _Worker:
    process: multiprocessing.process.BaseProcess
    pipe: Connection
    task: int = -1  # index of the task at hand; -1 when idle
    begun: float = 0.0


def run_all(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, seconds: float) -> Iterator[tuple[int, Any]]:
    """(index, result or `Failure`) of every task, in order of completion. Processes are forked: what `work` refers to is shared."""
    context = multiprocessing.get_context("fork")
    wall = seconds * PATIENCE + 20
    waiting = list(range(len(tasks) - 1, -1, -1))
    workers = [_start(context, work, seconds) for _ in range(min(jobs, len(tasks)))]
    try:
        while waiting or any(worker.task >= 0 for worker in workers):
            for worker in workers:
                if worker.task < 0 and waiting:
                    worker.task, worker.begun = waiting.pop(), time.monotonic()
                    worker.pipe.send(tasks[worker.task])
            wait([worker.pipe for worker in workers if worker.task >= 0], timeout=1)
            for at, worker in enumerate(workers):
                if worker.task < 0:
                    continue
                result = _result(worker, wall)
                if result is None:
                    continue
                yield worker.task, result
                worker.task = -1
                if isinstance(
                    result, Failure
                ):  # what was interrupted may be half done: the next task gets a fresh process
                    _stop(worker)
                    workers[at] = _start(context, work, seconds)
    finally:
        for worker in workers:
            _stop(worker)


def _result(worker: _Worker, wall: float) -> Any:
    """What the worker has sent; a `Failure` when it died or hangs in code that heeds no signal; None when it is still busy."""
    try:
        if worker.pipe.poll():
            return worker.pipe.recv()
    except EOFError:
        worker.process.join(10)
        return Failure("crashed", f"the process ended with code {worker.process.exitcode}")
    return Failure("hung", f"no answer in {wall:.0f} s") if time.monotonic() - worker.begun > wall else None


def _start(context: Any, work: Callable[[Any], Any], seconds: float) -> _Worker:
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work, seconds), daemon=True)
    process.start()
    there.close()
    return _Worker(process, here)


def _stop(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _serve(pipe: Connection, work: Callable[[Any], Any], seconds: float) -> None:
    signal.signal(signal.SIGPROF, _time_up)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries that warn about every schema
    parent = os.getppid()
    while os.getppid() == parent:
        if pipe.poll(5):
            pipe.send(_limited(work, pipe.recv(), seconds))


def _limited(work: Callable[[Any], Any], task: Any, seconds: float) -> Any:
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            return work(task)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TimeUp:
        return Failure("timed out", f"over {seconds:g} s of processor time")
    except MemoryError as error:
        return Failure("crashed", f"MemoryError: {error}")


def _time_up(signal_number: int, frame: FrameType | None) -> None:
    raise TimeUp
