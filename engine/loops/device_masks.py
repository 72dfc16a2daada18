"""Masks on the device: constraint states advance there, and the sampler reads mask rows by their numbers.

The host follows each sequence too, one dictionary look-up a token, for it has to know where an output ends. It writes to a slot
only when it knows more than the device: a sequence is new in the batch, forced text was taken, a state or transition is met for the
first time (the device says so), or tokens become few, and the mask depends on how many are left. All of this is sent while the next
forward pass computes, and takes effect before its logits are sampled.

On the host stay sequences whose masks are not their constraint's alone (`has_masks_of_its_own`), those in which a loop is being
ended, as long as it is, and those of which the device's tables cannot hold what they need: a row of the mask pool is theirs, and
the host writes their mask into it at every step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.automaton.interface import Flag
from ...kernels.sampler.interface import NO_TOKEN, UNCONSTRAINED
from ...kernels.to_device import to_device
from ..device_constraints.automata import DeviceAutomata
from ..requests.guide import Guide
from ..requests.output import TokenRecord
from ..requests.request import Constraint
from ..requests.sequence import Sequence
from ..steps.step_sampler import Drawn, SamplingInputs, StepSampler, records
from .device_readings import Read
from .pipeline import Row
from .slots import SlotTable

logger = logging.getLogger(__name__)

ADVANCES = -3  # of a row: its mask is where the device says


class Known(NamedTuple):
    """What the device knows of a slot: this sequence, up to `length` tokens, and perhaps one token more."""

    request_id: int
    length: int
    drawn: int = NO_TOKEN

    def covers(self, sequence: Sequence) -> bool:
        """The device knows all that the host knows."""
        ahead = sequence.num_tokens - self.length
        is_taken = ahead == 1 and self.drawn == sequence.token_ids[-1]
        return self.request_id == sequence.request_id and (ahead == 0 or is_taken)


NOWHERE = Known(-1, 0)  # the registers do not tell where the slot is: it is to be placed anew


class DeviceMasks:
    """look_ahead: a `LookAhead`, which needs the masks on the host only to see what is forced, and what is complete."""

    may_be_late = True

    def __init__(
        self,
        sampler: StepSampler,
        slots: SlotTable,
        automata: DeviceAutomata,
        look_ahead: Callable[..., None],
    ) -> None:
        self._sampler, self._slots, self._automata, self._look_ahead = sampler, slots, automata, look_ahead
        self._offered = torch.full((slots.num_slots,), NO_TOKEN, dtype=torch.int64, device=slots.device)
        self._known: dict[int, Known] = {}  # of a slot whose state advances on the device
        self._tight: dict[int, int] = {}  # tokens left for which a slot's own mask row was written
        self._on_host: set[int] = set()  # slots that the tables have no room for

    def sampling(self, rows: list[Row], drawing: list[int], sampling_inputs: SamplingInputs) -> Callable[[Tensor], Read]:
        chosen = [rows[place] for place in drawing]
        where = self._to_device([self._mask_of(row) for row in chosen], np.int32)
        has_news = self._automata.send()
        picked = None if len(drawing) == len(rows) else self._to_device(drawing)
        of_slots = self._to_device([row.slot for row in chosen])
        return lambda logits: self._step(
            logits if picked is None else logits.index_select(0, picked), sampling_inputs, where, of_slots, has_news
        )

    def records(self, rows: list[Row], read: Read) -> list[Drawn]:
        drawn = records([row.sequence for row in rows], read.sampled)
        for row, record, registers in zip(rows, drawn, read.registers, strict=True):
            if row.slot in self._known:
                token = record.token_id if isinstance(record, TokenRecord) else NO_TOKEN
                self._known[row.slot] = Known(row.sequence.request_id, row.length, token)
                self._learn(row.slot, *registers)
        return drawn

    def hurry(self, slot: int) -> None:
        """Let the host make this row's masks: the tables have no room for what this row and all others need."""
        self._leave_to_host(slot, "it waited too long")

    # ---- several steps a visit (`multi_step.py`)

    def is_on_host(self, slot: int) -> bool:
        return slot in self._on_host

    def seat(self, rows: list[Row]) -> bool:
        """See to it that the states of all rows, also of free ones, advance on the device; False where they cannot."""
        return all(self._place(row) for row in rows)

    def send(self) -> bool:
        """Send what the host has written to slots and tables. Returns whether there was anything."""
        return self._automata.send()

    def steps(self, rows: list[Row], read: Read) -> Iterator[list[Drawn]]:
        """What the rows have drawn, step by step."""
        sequences = [row.sequence for row in rows]
        for step in range(len(read.token)):
            yield records(sequences, read.of_step(step))

    def follow(self, rows: list[Row], read: Read) -> bool:
        """All of that was taken: find out what waiting rows wait for. Returns whether some have to be seated again."""
        for row, registers in zip(rows, read.registers, strict=True):
            if not row.sequence.is_finished:
                self._known[row.slot] = Known(row.sequence.request_id, len(row.sequence.token_ids))
                self._learn(row.slot, *registers)
        return any(self._known.get(row.slot) is NOWHERE for row in rows)

    def look_at_ends(self, sequences: list[Sequence]) -> None:
        """End what is complete; what is forced is being drawn on the device."""
        self._look_ahead(sequences, False)

    def look_ahead(self, sequences: list[Sequence]) -> None:
        self._look_ahead(sequences)

    def release(self, slot: int) -> None:
        self._vacate(slot)
        self._on_host.discard(slot)

    # ---- the device's work

    def _step(self, logits: Tensor, sampling_inputs: SamplingInputs, where: Tensor, of_slots: Tensor, has_news: bool) -> Read:
        automata = self._automata
        if has_news:
            automata.settle()
        slots = automata.slots
        mask_index = torch.where(where == ADVANCES, slots.mask_index[of_slots], where)
        sampled = self._sampler.sample(logits, sampling_inputs, automata.mask_rows, mask_index)
        self._slots.keep(of_slots, sampled.token)
        self._offered.fill_(NO_TOKEN).index_copy_(0, of_slots, sampled.token.clamp_min(NO_TOKEN))
        automata.step(self._offered)
        automata.mark()
        return Read(*sampled, slots.state[of_slots], slots.pending[of_slots], slots.flags[of_slots])

    # ---- the host's

    def _mask_of(self, row: Row) -> int:
        """Where the sampler finds the mask: a row of the pool, UNCONSTRAINED, or where the device says."""
        guide, slot = row.sequence.guide, row.slot
        if guide is None:
            return UNCONSTRAINED
        if guide.is_steered:
            self._vacate(slot)
            self._automata.write_row(slot, guide.mask)
            return slot
        if slot in self._on_host or guide.has_masks_of_its_own or not self._place(row):
            self._automata.write_row(slot, guide.mask)
            return slot
        if guide.is_narrowed and self._tight.get(slot) != guide.num_left:
            self._automata.write_tight(slot, guide.mask, guide.num_left)
            self._tight[slot] = guide.num_left
        return ADVANCES

    def _place(self, row: Row) -> bool:
        """See to it that the device knows what the host knows; False where the tables cannot hold it."""
        sequence, known = row.sequence, self._known.get(row.slot)
        if known is None or not known.covers(sequence):
            constraint, state, refused = _at(sequence.guide)
            left, sampling = sequence.max_tokens - len(sequence.records), sequence.sampling
            registers = {"left": left, "draw": sampling.draw_index, "taken": sampling.position}
            try:
                self._automata.place(row.slot, constraint, state, refused=refused, **registers)
            except Exception as error:
                self._leave_to_host(row.slot, error)
                return False
            self._tight.pop(row.slot, None)
        self._known[row.slot] = Known(sequence.request_id, sequence.num_tokens)
        return True

    def _vacate(self, slot: int) -> None:
        """The device knows nothing of this slot any more."""
        if self._known.pop(slot, None) is not None:
            self._automata.vacate(slot)
        self._tight.pop(slot, None)

    def _learn(self, slot: int, state: int, pending: int, flags: int) -> None:
        if flags & Flag.COUNTED:
            self._known[slot] = NOWHERE
        try:
            self._automata.learn(state, pending, flags)
        except Exception as error:
            self._leave_to_host(slot, error)

    def _leave_to_host(self, slot: int, error: Exception | str) -> None:
        """Let the host make the masks of this slot: the tables cannot hold them, or its constraint cannot list its states."""
        logger.info("slot %d: its masks are made on the host (%s)", slot, error)
        self.release(slot)
        self._on_host.add(slot)

    def _to_device(self, numbers: list[int], dtype: type = np.int64) -> Tensor:
        return to_device(np.array(numbers, dtype), self._slots.device)


def _at(guide: Guide | None) -> tuple[Constraint | None, Any, bool]:
    """(constraint, state in it, whether its last draw led too far)"""
    return (None, None, False) if guide is None else (guide.constraint, guide.state, guide.is_tight)
