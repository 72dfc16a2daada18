"""The batches of a server: one after another, some requests at a time, beside those of clients that wait."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import filterfalse
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from uuid import uuid4

from starlette.types import ASGIApp

from ..client import Caller
from ..errors import ApiError
from ..settings import ServerSettings
from .asking import asking
from .batch import ENDED, Batch, Status, save, saved_in
from .files import ANSWERS, Files
from .lines import BatchFileError, BatchLine, Bounds, checked_ids, id_digest, read_lines
from .results import ResultFile, results_in
from .runner import Answer, Counts, Runner, ShuttingDown, as_record

logger = logging.getLogger(__name__)


class Batches:
    """Belongs to the event loop, from `start` to `stop`. What has not ended by then goes on when a server is started again."""

    def __init__(self, folder: Path, settings: ServerSettings, now: Callable[[], float] = time.time) -> None:
        """folder: of this server alone."""
        self.files = Files(folder / "files", settings.max_files_bytes, now)
        self._folder, self._settings, self._now = folder / "batches", settings, now
        self._folder.mkdir(parents=True, exist_ok=True)
        self._batches = {batch.id: batch for batch in saved_in(self._folder)}
        self._waiting: asyncio.Queue[Batch] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._running: tuple[Batch, asyncio.Task[None]] | None = None

    def start(self, app: ASGIApp) -> None:
        """app: what answers the requests."""
        for batch in sorted(self._batches.values(), key=lambda batch: batch.created_at):
            if batch.status not in ENDED:
                self._waiting.put_nowait(batch)
        self._worker = asyncio.create_task(self._run_all(app))

    async def stop(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker

    def get(self, owner: str, batch_id: str) -> Batch:
        """A batch of this owner. Raises ApiError (404) for one that is not there, or is somebody else's."""
        found = self._batches.get(batch_id)
        if found is None or found.owner != owner:
            raise ApiError(404, f"there is no batch {batch_id!r} here", code="batch_not_found")
        return found

    def of(self, owner: str) -> list[Batch]:
        """All batches of an owner, the newest first."""
        found = [batch for batch in self._batches.values() if batch.owner == owner]
        return sorted(found, key=lambda batch: (batch.created_at, batch.id), reverse=True)

    def add(self, owner: str, endpoint: str, input_file_id: str, metadata: dict[str, str] | None) -> Batch:
        """A new batch. Raises ApiError when its file is not there, or too many batches wait."""
        self.files.get(owner, input_file_id, "input_file_id")
        num_open = sum(batch.status not in ENDED for batch in self._batches.values())
        if num_open >= self._settings.max_batches:
            message = f"{num_open} batches run or wait, and this server takes {self._settings.max_batches}; try again later"
            raise ApiError(429, message, code="queue_full", headers={"Retry-After": "60"})
        batch = Batch(f"batch_{uuid4().hex}", owner, endpoint, input_file_id, int(self._now()), metadata)
        self._batches[batch.id] = batch
        save(batch, self._folder)
        self._waiting.put_nowait(batch)
        return batch

    def cancel(self, batch: Batch) -> None:
        """End a batch: what is answered by then is kept. Raises ApiError (409) for one that has ended."""
        if batch.status in ENDED:
            raise ApiError(409, f"the batch has ended already: it is {batch.status}", code="batch_ended")
        if batch.status in ("cancelling", "finalizing"):
            return
        self._become(batch, "cancelling")
        if self._running is not None and self._running[0] is batch:
            self._running[1].cancel()
        elif not self._answers(batch).exists():
            self._become(batch, "cancelled")

    async def _run_all(self, app: ASGIApp) -> None:
        while True:
            batch = await self._waiting.get()
            task = asyncio.create_task(self._run(batch, app))
            self._running = batch, task
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:  # the server stops
                task.cancel()
                await asyncio.wait([task])
                raise
            finally:
                self._running = None
            if task.cancelled():
                self._become(batch, "cancelled")  # before anything was asked
            elif (error := task.exception()) is not None and not isinstance(error, ShuttingDown):
                logger.error("batch %s failed", batch.id, exc_info=error)
                self._fail(batch, [(0, None, "the batch failed inside the server; its log says why")])

    async def _run(self, batch: Batch, app: ASGIApp) -> None:
        if batch.status in ENDED:
            return
        try:
            source = self.files.path(self.files.get(batch.owner, batch.input_file_id))
            bounds = Bounds(self._settings.max_body_bytes, self._settings.max_batch_lines, (batch.endpoint,))
            requested = await asyncio.to_thread(checked_ids, source, bounds)
        except BatchFileError as error:
            self._fail(batch, [tuple(fault) for fault in error.faults])
            return
        except (ApiError, FileNotFoundError):
            self._fail(batch, [(0, None, f"the file {batch.input_file_id} was deleted")])
            return
        batch.total = len(requested)
        answers = self._answers(batch)
        with results_in(answers, requested) as results:
            if not batch.is_cancelling:
                self._become(batch, "in_progress")
            ending = await self._ask_all(batch, app, read_lines(source, bounds), results)
            if ending == "expired":
                _tell_expired(read_lines(source, bounds), results)
        self._become(batch, "finalizing")
        batch.output_file_id, batch.error_file_id = await asyncio.to_thread(self._split, batch, answers)
        self._become(batch, ending)
        answers.unlink(missing_ok=True)

    async def _ask_all(self, batch: Batch, app: ASGIApp, lines: Iterator[BatchLine], results: ResultFile) -> Status:
        """Ask what has no answer yet. Returns what the batch is then to be."""
        counts = Counts(batch.total, completed=len(results.answered) - results.num_failed, failed=results.num_failed)
        _count(batch, counts)
        if batch.is_cancelling:
            return "cancelled"
        seconds = batch.expires_at - self._now()
        if seconds <= 0:
            return "expired"
        caller = Caller(batch.owner, is_operator=not batch.owner)
        try:
            async with asyncio.timeout(seconds), asking(app, caller) as ask:
                runner = Runner(
                    ask, results.write, counts, at_once=self._settings.max_batch_requests, watch=partial(_count, batch)
                )
                await runner.run(filterfalse(lambda line: id_digest(line.custom_id) in results.answered, lines))
        except TimeoutError:
            return "expired"
        except asyncio.CancelledError:
            if not batch.is_cancelling:
                raise
            return "cancelled"
        return "completed"

    def _split(self, batch: Batch, answers: Path) -> tuple[str | None, str | None]:
        """(id of the file of answers, id of that of errors), None for one without a line."""
        with answers.open("rb") as lines, TemporaryFile() as good, TemporaryFile() as bad:
            for line in lines:
                response = json.loads(line)["response"]
                (good if response is not None and response["status_code"] == 200 else bad).write(line)
            return self._kept(batch, "output", good), self._kept(batch, "errors", bad)

    def _kept(self, batch: Batch, name: str, file: Any) -> str | None:
        if not file.tell():
            return None
        file.seek(0)
        return self.files.add(batch.owner, f"{batch.id}_{name}.jsonl", ANSWERS, file).id

    def _answers(self, batch: Batch) -> Path:
        """Where the answers are until the batch ends."""
        return self._folder / f"{batch.id}.answers"

    def _become(self, batch: Batch, status: Status) -> None:
        batch.become(status, self._now())
        save(batch, self._folder)

    def _fail(self, batch: Batch, faults: list[Any]) -> None:
        batch.faults = faults
        self._become(batch, "failed")


def _count(batch: Batch, counts: Counts) -> None:
    batch.completed, batch.failed = counts.completed, counts.failed


def _tell_expired(lines: Iterator[BatchLine], results: ResultFile) -> None:
    """Each request without an answer has one: that the time was over."""
    error = {"code": "batch_expired", "message": "the batch ended before this request was answered"}
    for line in lines:
        if id_digest(line.custom_id) not in results.answered:
            results.write(as_record(line, Answer(0, "", None)) | {"response": None, "error": error})
