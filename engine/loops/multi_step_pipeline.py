"""The pipeline where the host visits the device every few steps only, as long as no row needs it (`multi_step.py`).

While all rows go on, a visit is launched before the one before it is read. Then the host does not know yet how many tokens each row
has: what it counts (`num_expected`, and with it `num_computed` and blocks) is the most that there can be, until the visit is read.
"""

from __future__ import annotations

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from typing import Any

from ..device.device_queue import Ticket
from ..device.profiling import span
from ..errors import InternalError
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk
from ..steps.step_sampler import Drawn
from .device_masks import DeviceMasks
from .device_readings import Read
from .multi_step import MultiStep, Start, needs_host
from .pipeline import Device, Flight, Host, Pipeline, Row


@dataclass(slots=True, eq=False)
class Visit(Flight):
    """Several steps of the same rows that were launched."""

    num_steps: int = 0
    steps: Ticket[Read] | None = None


class MultiStepPipeline(Pipeline):
    """Launches several steps at once where no row needs the host, and single steps like `Pipeline` elsewhere."""

    def __init__(self, host: Host, device: Device, masks: DeviceMasks, visits: MultiStep, *, overlaps: bool) -> None:
        super().__init__(host, device, masks, overlaps=overlaps)
        self._device_masks, self._visits = masks, visits
        self._has_waiting_rows = False  # some row of the visit that was read last waits for the host

    def step(self) -> None:
        before = self._flight
        if before is not None and not self._may_follow(before) and not self.settle():
            return  # the plain loop goes on from here
        super().step()

    def _may_follow(self, before: Flight) -> bool:
        """Whether the next step may be launched before this one is read: a step after a step, a visit after a visit of the same."""
        if isinstance(before, Visit):
            running = self._host.scheduler.running
            same = [row.sequence for row in before.rows] == running
            return same and not self._has_waiting_rows and self._num_steps() == before.num_steps
        return not self._num_steps()

    def _num_steps(self) -> int:
        """How many steps a visit of all running sequences may have; 0 where only a single step will do."""
        scheduler = self._host.scheduler
        running, space = scheduler.running, scheduler.space
        if scheduler.waiting or not running or any(map(_is_single, running)):
            return 0
        if any(self._device_masks.is_on_host(self._slots.of(sequence)) for sequence in running):
            return 0
        longest = max(sequence.num_draftable + 1 - sequence.num_expected for sequence in running)
        num_steps = _num_before_loops(running, min(self._visits.num_steps, longest))
        missing = sum(space.num_missing(sequence, sequence.num_tokens + num_steps) for sequence in running)
        return num_steps if num_steps > 0 and missing <= space.pool.num_free else 0

    # ---- launch

    def _launch(self) -> Flight | None:
        before, num_steps = self._flight, self._num_steps()
        if not num_steps:
            return super()._launch()
        chunks = self._host.schedule()
        assert all(chunk.completes and chunk.num_tokens == 1 for chunk in chunks), "all that run decode"
        self._free_slots()
        rows = [Row(chunk.sequence, self._slots.of(chunk.sequence), chunk.sequence.num_tokens) for chunk in chunks]
        continues = isinstance(before, Visit)
        self._has_waiting_rows &= continues
        if not continues and not self._device_masks.seat(rows):
            return self._launch_step(chunks)
        return self._launch_visit(chunks, rows, num_steps, continues=continues)

    def _launch_visit(self, chunks: list[Chunk[Sequence]], rows: list[Row], num_steps: int, *, continues: bool) -> Flight | None:
        sequences, space = [row.sequence for row in rows], self._host.scheduler.space
        for sequence in sequences:
            space.grow(sequence, sequence.num_tokens + num_steps)  # the last step says already where the next token goes
        transfers, runner = space.take_transfers(), self._runner
        start = Start(
            [] if continues else [sequence.token_ids[-1] for sequence in sequences],
            [sequence.num_computed for sequence in sequences],
            [list(sequence.block_table) for sequence in sequences],
            [sequence.adapter_slot for sequence in sequences],
        )
        has_news = self._device_masks.send()
        visit = self._visits.work(sequences, start, num_steps, continues=continues, has_news=has_news)

        def work() -> Read:
            if transfers:
                runner.move_blocks(transfers)
            with span("visit"):
                return visit()

        steps = self._queue.fetch(work)
        for sequence in sequences:
            sequence.num_expected += num_steps
            sequence.num_computed += num_steps
        for _ in range(num_steps):
            self._host.count_step(chunks)
        return Visit(chunks, rows, steps, num_steps=num_steps, steps=steps)

    def _draw(self, flight: Flight) -> None:
        if not isinstance(flight, Visit):
            super()._draw(flight)

    # ---- accept

    def _accept(self, flight: Flight) -> bool:
        if not isinstance(flight, Visit) or flight.steps is None:
            return super()._accept(flight)
        try:
            steps = flight.steps.result()
            drawn = list(self._device_masks.steps(flight.rows, steps))
            for of_step in drawn:
                self._refuse_invalid(flight.rows, of_step)
        except Exception as error:
            self._host.begin_anew(error)
            return False
        lengths = [len(row.sequence.token_ids) for row in flight.rows]
        for row in flight.rows:
            row.sequence.num_expected -= flight.num_steps
        for of_step in drawn:
            self._take(flight.rows, of_step)
        self._note(flight.rows, lengths, flight.num_steps)
        self._has_waiting_rows |= self._device_masks.follow(flight.rows, steps)
        self._go_on([row.sequence for row in flight.rows if not row.sequence.is_finished])
        return True

    def _take(self, rows: list[Row], drawn: Sequence_[Drawn]) -> None:
        """One token of each row that drew one."""
        for row, record in zip(rows, drawn, strict=True):
            if isinstance(record, TokenRecord) and not row.sequence.is_finished:
                row.sequence.num_computed = len(row.sequence.token_ids)  # the last one was read for this draw
                self._host.take(row.sequence, record)

    def _note(self, rows: list[Row], lengths: list[int], num_steps: int) -> None:
        """Note which rows drew nothing; they may wait for the host, but not for ever."""
        self._has_waiting_rows = False
        for row, length in zip(rows, lengths, strict=True):
            num_taken = len(row.sequence.token_ids) - length
            self._has_waiting_rows |= num_taken < num_steps and not row.sequence.is_finished
            if row.sequence.is_finished or num_taken:
                self._stalls.pop(row.slot, None)
            elif self._is_stuck(row):
                self._host.take(row.sequence, InternalError("its next mask did not come"))

    def _go_on(self, sequences: list[Sequence]) -> None:
        """Look ahead. Where nothing is under way, what leaves no choice is taken at once; else the device is drawing it."""
        for sequence in sequences:
            sequence.num_computed = len(sequence.token_ids) - 1
        if self._flight is None:
            self._masks.look_ahead(sequences)
            return
        self._device_masks.look_at_ends(sequences)
        for sequence in sequences:
            sequence.num_computed = sequence.num_tokens - 1


def _num_before_loops(sequences: Sequence_[Sequence], num_steps: int) -> int:
    """How many of these steps may come before a loop is seen, from when on only the host knows the masks."""
    guides = [(sequence.guide, sequence.num_expected) for sequence in sequences if sequence.guide is not None]
    while num_steps and not all(guide.is_idle_for(num_expected + num_steps - 1) for guide, num_expected in guides):
        num_steps -= 1
    return num_steps


def _is_single(sequence: Any) -> bool:
    return sequence.num_tokens - sequence.num_computed != 1 or needs_host(sequence)
