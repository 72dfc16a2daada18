"""The step loop with the host beside the device: a step is launched before the tokens of the step before it are read.

    launch   plan step t + 1 and begin its forward pass; a token that was drawn in step t is fed to it on the device
    accept   read the tokens of step t, while the device computes: text, stops, constraint states, masks, events
    draw     sample step t + 1 from its logits, under the masks that are there by now

A row of step t + 1 whose sequence turned out to go on otherwise (it ended, its token was refused by the budget, forced text was
taken) is computed in vain and draws nothing. So every draw sees the same text, mask, penalties and random number as in the plain
loop (`plain_loop.py`), and gives the same token. Without overlap the three happen in the order launch, draw, accept.

What fails on the device fails late, when later work is under way already; so do logits that are NaN. So all of it is given up, and
the plain loop computes everything once more, from what the sequences have: it can tell whose fault it is, and whether it comes back
(`quarantine.py`).

Blocks that a sequence gives back while a row of it is under way are safe: the device works in order, so what that row writes is
overwritten before anybody reads it, and places behind the tokens that are known are never shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from ...kernels.to_device import to_device
from ..device.device_queue import DeviceQueue, Ticket
from ..device.profiling import span
from ..errors import InvalidLogits, StageFailure
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk, Scheduler
from ..steps.runner import ModelRunner
from ..steps.step_sampler import Drawn, SamplingInputs, StepSampler
from .slots import SlotTable

PATIENCE = 4  # steps in which a sequence may draw nothing because its mask is late; then the host makes its masks


@dataclass(slots=True, eq=False)
class Row:
    """A row of logits: those behind the first `length` tokens of a sequence."""

    sequence: Sequence
    slot: int
    length: int

    @property
    def is_current(self) -> bool:
        """The sequence has these tokens, and is to go on from there."""
        sequence = self.sequence
        return not sequence.is_finished and not sequence.num_expected and sequence.num_tokens == self.length


@dataclass(slots=True, eq=False)
class Flight:
    """A step that was launched."""

    chunks: list[Chunk[Sequence]]
    rows: list[Row]
    logits: Ticket[Any]
    drawing: list[int] = field(default_factory=list)  # rows that draw
    drawn: Ticket[Any] | None = None


class Masks(Protocol):
    """Where the masks of the rows come from."""

    may_be_late: bool  # a row may draw nothing because its mask is not there yet

    def look_ahead(self, sequences: list[Sequence]) -> None:
        """Prepare the next masks, and take at once what leaves no choice."""

    def sampling(self, rows: list[Row], drawing: list[int], sampling_inputs: SamplingInputs) -> Callable[[Tensor], tuple[Any, ...]]:
        """The device's work of a draw: from the logits of all rows to what `records` reads, of the rows that draw."""

    def records(self, rows: list[Row], read: Any) -> list[Drawn]:
        """What each row that drew has drawn, or why it has drawn nothing."""

    def hurry(self, slot: int) -> None:
        """See to it that this slot's row, which drew nothing several times, draws next time."""

    def release(self, slot: int) -> None:
        """Forget a slot in which there is no sequence any more."""


class Host(NamedTuple):
    """The engine's part of a step, the same as in the plain loop."""

    scheduler: Scheduler[Sequence]
    schedule: Callable[[], list[Chunk[Sequence]]]
    count_step: Callable[[list[Chunk[Sequence]]], None]
    take: Callable[[Sequence, Drawn], None]  # what was drawn for it, or why nothing was
    begin_anew: Callable[[Exception], None]  # all sequences, from what they have: nothing in the cache is to be trusted


class Device(NamedTuple):
    """What a pipeline needs of the device: its queue of work, the forward pass, the draw, and the tokens drawn last."""

    queue: DeviceQueue
    runner: ModelRunner
    sampler: StepSampler
    slots: SlotTable


class Pipeline:
    """Steps in three parts: launch, accept, draw. overlaps: a step is launched before the tokens of the one before are read."""

    def __init__(self, host: Host, device: Device, masks: Masks, *, overlaps: bool) -> None:
        self._host, self._masks, self._overlaps = host, masks, overlaps
        self._queue, self._runner, self._sampler, self._slots = device
        self._flight: Flight | None = None  # the tokens of which are not read yet
        self._stalls: dict[int, int] = {}  # of a slot

    def step(self) -> None:
        """Compute a step, and read the tokens of one."""
        before, flight = self._flight, self._launch()
        self._flight = flight
        if self._overlaps and before is not None:
            self._accept(before)
            flight = self._flight  # given up, if the step before it failed
        if flight is not None:
            self._draw(flight)
        if not self._overlaps:
            self.settle()

    def settle(self) -> bool:
        """Read what is still under way: from here on, all that was drawn is in the sequences. False if that failed."""
        flight, self._flight = self._flight, None
        return flight is None or self._accept(flight)

    def abandon(self) -> None:
        """All sequences begin anew: what is under way is worth nothing."""
        self._flight = None
        self._queue.wait()
        for slot in self._slots.free_all_but(()):
            self._masks.release(slot)
        self._stalls.clear()

    # ---- launch

    def _launch(self) -> Flight | None:
        with span("plan"):
            chunks = self._host.schedule()
        return self._launch_step(chunks)

    def _launch_step(self, chunks: list[Chunk[Sequence]]) -> Flight | None:
        transfers = self._host.scheduler.space.take_transfers()
        if not chunks and not transfers:
            return None
        self._free_slots()
        try:
            forward = self._forward(chunks, transfers)
        except Exception as error:
            forward = partial(_raise, error)
        logits = self._queue.submit(forward)
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        self._host.count_step(chunks)
        done = [chunk.sequence for chunk in chunks if chunk.sequence.num_computed == chunk.sequence.num_tokens]
        return Flight(chunks, [Row(sequence, self._slots.of(sequence), sequence.num_tokens) for sequence in done], logits)

    def _forward(self, chunks: list[Chunk[Sequence]], transfers: list[Any]) -> Callable[[], Tensor]:
        """The device's work of a forward pass."""
        runner, slots = self._runner, self._slots
        batch = runner.pack(chunks) if chunks else None
        fed = _fed_on_device(chunks, slots)

        def work() -> Tensor:
            if transfers:
                runner.move_blocks(transfers)
            if batch is None:
                return torch.empty(0)
            if fed is not None:
                slots.feed(batch.token_ids, *fed)
            with span("forward"):
                return runner.compute(batch)

        return work

    def _free_slots(self) -> None:
        for slot in self._slots.free_all_but(self._host.scheduler.running):
            self._masks.release(slot)
            self._stalls.pop(slot, None)

    # ---- draw

    def _draw(self, flight: Flight) -> None:
        rows = flight.rows
        flight.drawing = [place for place, row in enumerate(rows) if row.is_current]
        if not flight.drawing:
            return
        sequences = [rows[place].sequence for place in flight.drawing]
        try:
            sample = self._masks.sampling(rows, flight.drawing, self._sampler.sampling_inputs(sequences))
        except Exception as error:
            self._host.begin_anew(error)
            return
        flight.drawn = self._queue.fetch(partial(_drawn, sample, flight))
        for sequence in sequences:
            sequence.num_expected = 1

    # ---- accept

    def _accept(self, flight: Flight) -> bool:
        """Read what was drawn, and let the sequences go on with it. False if the step failed, and was given up."""
        drew = [flight.rows[place] for place in flight.drawing]
        try:
            flight.logits.result()
            drawn = [] if flight.drawn is None else self._masks.records(drew, flight.drawn.result())
            self._refuse_invalid(drew, drawn)
        except Exception as error:
            self._host.begin_anew(error)
            return False
        for row in drew:
            row.sequence.num_expected = 0
        told = [(row, each) for row, each in zip(drew, drawn, strict=True) if self._has_drawn(row, each) or self._is_stuck(row)]
        with span("accept"):
            for row, each in told:
                self._host.take(row.sequence, each)
            self._masks.look_ahead([row.sequence for row, _ in told])
        current = {row.sequence.request_id for row in self._flight.rows if row.is_current} if self._flight else set()
        for row in drew:
            if row.sequence.request_id not in current:
                _feed_last_again(row.sequence)
        return True

    def _refuse_invalid(self, rows: list[Row], drawn: list[Drawn]) -> None:
        """Raises InvalidLogits where logits were NaN; what is in the cache of such a row would harm whoever comes there next."""
        invalid = [(row.sequence, each) for row, each in zip(rows, drawn, strict=True) if isinstance(each, InvalidLogits)]
        if not invalid:
            return
        space = self._host.scheduler.space
        for sequence, _ in invalid:
            space.wipe(sequence)
            space.release(sequence)  # so that the last one that shares a block clears it
        raise invalid[0][1]

    def _has_drawn(self, row: Row, drawn: Drawn) -> bool:
        if isinstance(drawn, TokenRecord):
            self._stalls.pop(row.slot, None)
        return isinstance(drawn, TokenRecord | StageFailure)  # waiting helps neither

    def _is_stuck(self, row: Row) -> bool:
        """Whether a row that drew nothing has to be told so; a few times it may wait for its mask."""
        if not self._masks.may_be_late:
            return True
        stalls = self._stalls[row.slot] = self._stalls.get(row.slot, 0) + 1
        if stalls == PATIENCE:
            self._masks.hurry(row.slot)
        return stalls > 2 * PATIENCE


def _drawn(sample: Callable[[Tensor], tuple[Any, ...]], flight: Flight) -> tuple[Any, ...]:
    """The device's work of a draw."""
    logits = flight.logits.result()
    with span("sample"):
        return sample(logits)


def _raise(error: Exception) -> Any:
    raise error


def _fed_on_device(chunks: list[Chunk[Sequence]], slots: SlotTable) -> tuple[Tensor, Tensor] | None:
    """(places in the packed batch, slots): where the last token of a sequence is known to the device only."""
    ends = np.cumsum([chunk.width for chunk in chunks])
    fed = [
        (end - 1, slots.of(chunk.sequence))
        for chunk, end in zip(chunks, ends.tolist(), strict=True)
        if chunk.sequence.num_computed + chunk.num_tokens > len(chunk.sequence.token_ids)
    ]
    if not fed:
        return None
    places, of_slots = to_device(np.array(fed, np.int64).T, slots.device)
    return places, of_slots


def _feed_last_again(sequence: Sequence) -> None:
    """Where nothing under way goes on from the last token, the next step has to read it (again)."""
    if not sequence.is_finished:
        sequence.num_computed = min(sequence.num_computed, sequence.num_tokens - 1)
