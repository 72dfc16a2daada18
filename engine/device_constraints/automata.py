"""Where the sequences of a batch are in their constraints, on the device.

`slots` and `mask_rows` are what the sampler reads: `slots.mask_index`, and `slots.draw` as the numbers of the draws. A step of a
batch is

    automata.join()                    # what `resolve` sent is there from here on
    sampled = sample(logits, rows._replace(position=automata.slots.draw), automata.mask_rows, automata.slots.mask_index, ...)
    automata.step(sampled.token)       # nothing for the host to do, so forward pass to step fit into a CUDA graph
    automata.resolve()                 # the host finds out what the device did not know, and sends it beside the next forward pass

A slot that waits for the host draws nothing (NO_TOKEN) and goes on in a later step, from the same random number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.automaton.backend import choose_operations
from ...kernels.automaton.interface import FREE, IDLE, REDRAW, Flag, Slots, Tables, new_slots
from ...kernels.backend import Backend
from ...kernels.sampler.interface import MISSING, NO_TOKEN, UNCONSTRAINED
from ..device.device_queue import DeviceQueue, InlineQueue
from ..device.uploads import Uploads
from ..errors import InternalError
from ..requests.request import Constraint
from .mask_pool import MaskPool
from .state_tables import Capacity, Entry, Full, StateTables


def registers(entry: Entry, mask_index: int, left: int, draw: int, taken: int, flags: int) -> dict[str, int]:
    """What `Slots` holds of a sequence for which nothing waits, but for its tokens."""
    return {
        "state": entry.state, "pending": NO_TOKEN, "mask_index": mask_index, "left": left, "tight": -1, "draw": draw,
        "taken": taken, "flags": flags, "room": entry.room, "more": entry.more,
    }  # fmt: skip


def begin(slots: Slots, slot: int, entry: Entry, left: int, draw: int) -> None:
    """Write the registers of a new sequence."""
    start, flags = UNCONSTRAINED if entry.state == FREE else MISSING, int(Flag.DONE) if entry.state == IDLE else 0
    for name, value in registers(entry, start, left, draw, 0, flags).items():
        getattr(slots, name)[slot] = value
    slots.output[slot] = NO_TOKEN


def tokens_taken(slots: Slots, slot: int) -> list[int]:
    """The last tokens of a sequence, as many as `slots.output` has room for."""
    count, capacity = int(slots.taken[slot]), slots.output.shape[1]
    row = slots.output[slot].tolist()
    return [row[place % capacity] for place in range(max(0, count - capacity), count)]


@dataclass(slots=True)
class Followed:
    """Where a sequence is after `count` tokens."""

    constraint: Constraint
    state: Any
    count: int = 0


class DeviceAutomata:
    """States advance where the logits are. The host learns of a state when a sequence gets there for the first time."""

    def __init__(
        self,
        num_slots: int,
        vocab_size: int,
        device: torch.device,
        *,
        capacity: Capacity | None = None,
        outputs: int = 64,
        backend: Backend = "auto",
        queue: DeviceQueue | None = None,
    ) -> None:
        """outputs: how many tokens a slot can take before the host must have read them; queue: what steps are submitted to."""
        capacity, self._queue = capacity or Capacity(), queue or InlineQueue()
        self._operations = choose_operations(device, backend)
        self._uploads = Uploads(device, self._queue.submit)
        words = -(-vocab_size // 32)
        self._pool = MaskPool(rows=capacity.rows, reserved=num_slots, words=words, uploads=self._uploads)
        self._states = StateTables(capacity, vocab_size, self._pool, self._uploads, self._operations)
        self.slots = new_slots(num_slots, outputs, device)
        self.mask_rows = self._pool.rows
        self._nothing = torch.full_like(self.slots.pending, NO_TOKEN)
        self._at: dict[int, Followed] = {}

    # ---- for a host that follows the sequences itself (`device_masks.py`): all of this is sent, and takes effect at `settle`

    def place(
        self, slot: int, constraint: Constraint | None, state: Any, *, left: int, draw: int, taken: int, refused: bool = False
    ) -> None:
        """The sequence in this slot has taken `taken` tokens and is in this state; refused: its last draw led too far.

        Raises InternalError when the tables have no room, and whatever the constraint raises.
        """
        entry = Entry(FREE) if constraint is None else self._with_room(lambda: self._states.enter(constraint, state, left))
        self._write(slot, entry, left, draw, taken, Flag.REFUSED if refused else Flag(0))

    def vacate(self, slot: int) -> None:
        self._write(slot, Entry(IDLE), 0, 0, 0, Flag.DONE)

    def learn(self, state: int, pending: int, flags: int) -> None:
        """Find out what a slot with these registers waits for, unless it is to be placed anew (COUNTED). Raises like `place`."""
        if flags & Flag.NO_TRANSITION:
            self._with_room(lambda: self._states.learn_transition(state, pending))
        elif flags & Flag.NO_ROW:
            self._with_room(lambda: self._states.learn(state))

    def write_row(self, slot: int, mask: NDArray[np.uint32]) -> None:
        """The slot's own mask row, number `slot`."""
        self._uploads.write_row(self.mask_rows, slot, mask.view(np.int32))

    def write_tight(self, slot: int, mask: NDArray[np.uint32], left: int) -> None:
        """The slot's own mask row, for when so many tokens are left."""
        self.write_row(slot, mask)
        self._uploads.write(self.slots.tight, slot, left)

    def send(self) -> bool:
        """Send all this. Returns whether there was anything to send."""
        return self._uploads.send()

    def settle(self) -> None:
        """Let what was sent take effect: a step without tokens. This is work for the device."""
        self.join()
        self._nothing.fill_(NO_TOKEN)
        self.step(self._nothing)

    def mark(self) -> None:
        """Note, after a step, that what is launched now does not read the tables before the next `settle`; work for the device."""
        self._uploads.mark()

    def _write(self, slot: int, entry: Entry, left: int, draw: int, taken: int, flags: Flag) -> None:
        for name, value in registers(entry, MISSING, left, draw, taken, int(flags)).items():
            self._uploads.write(getattr(self.slots, name), slot, value)

    @property
    def tables(self) -> Tables:
        """What the device knows of states."""
        return self._states.tables

    @property
    def num_states(self) -> int:
        """States that have a number on the device."""
        return self._states.num_states

    @property
    def num_rows(self) -> int:
        """Rows of the mask pool in use."""
        return len(self._pool)

    # ---- for a host that reads the slots

    def attach(self, slot: int, constraint: Constraint | None, *, left: int, draw: int = 0) -> None:
        """A sequence begins in this slot. left: tokens it may take; draw: the number of its first draw."""
        self._at.pop(slot, None)
        if constraint is None:
            begin(self.slots, slot, Entry(FREE), left, draw)
            return
        start = constraint.start()
        entry = self._with_room(lambda: self._states.enter(constraint, start, left))
        self._uploads.send()
        self.join()
        begin(self.slots, slot, entry, left, draw)
        self._at[slot] = Followed(constraint, start)
        self.step(self._nothing)
        self.resolve()
        self.join()
        self.step(self._nothing)

    def detach(self, slot: int) -> None:
        """The slot is free again."""
        self._at.pop(slot, None)
        begin(self.slots, slot, Entry(IDLE), 0, 0)

    def join(self) -> None:
        """What was sent is there for whatever is launched on the current stream from now on."""
        self._uploads.join()

    def step(self, token: Tensor) -> None:
        """Every slot takes its token. token: [slots] int64, NO_TOKEN where none was drawn."""
        self._operations.advance(token, self.slots, self._states.tables)

    def resolve(self) -> list[bool]:
        """Read the flags, which waits for the step; find out what is missing, and send it."""
        flags = self.slots.flags.tolist()
        self._follow()
        if any(flag & (Flag.NO_TRANSITION | Flag.NO_ROW | Flag.TIGHT | Flag.COUNTED) and not flag & Flag.DONE for flag in flags):
            state, pending, left = (field.tolist() for field in (self.slots.state, self.slots.pending, self.slots.left))
            tight = self.slots.tight.tolist()
            for slot, flag in enumerate(flags):
                if flag & Flag.COUNTED:
                    self._take(slot, pending[slot], left[slot])
                elif flag & (Flag.NO_TRANSITION | Flag.NO_ROW):
                    self.learn(state[slot], pending[slot], flag)
                elif flag & Flag.TIGHT and not flag & Flag.DONE and tight[slot] != left[slot]:
                    at = self._at[slot]
                    self.write_tight(slot, at.constraint.mask(at.state, budget=left[slot]), left[slot])
            self._uploads.send()
        return [bool(flag & Flag.DONE) for flag in flags]

    def tokens(self, slot: int) -> list[int]:
        """The last tokens taken, as many as `slots.output` has room for."""
        return tokens_taken(self.slots, slot)

    def _follow(self) -> None:
        """Read which tokens were taken: a state that stands for others does not say in which of them a sequence is."""
        taken = self.slots.taken.tolist()
        if all(taken[slot] == at.count for slot, at in self._at.items()):
            return
        output = self.slots.output.tolist()
        for slot, at in self._at.items():
            for number in range(at.count, taken[slot]):
                at.state = at.constraint.advance(at.state, output[slot][number % len(output[slot])])
            at.count = taken[slot]

    def _take(self, slot: int, token_id: int, left: int) -> None:
        """Take the slot's pending token on the host: the registers do not tell where it leads."""
        at, slots = self._at[slot], self.slots
        after = at.constraint.advance(at.state, token_id)
        if after is None:
            raise InternalError(f"token {token_id} was drawn, but the constraint does not accept it")
        if at.constraint.min_tokens(after) > left - 1:
            draw = int(slots.draw[slot]) + REDRAW
            self.place(slot, at.constraint, at.state, left=left, draw=draw, taken=at.count, refused=True)
            return
        capacity = slots.output.shape[1]
        self._uploads.write(slots.output.view(-1), slot * capacity + at.count % capacity, token_id)
        at.state, at.count = after, at.count + 1
        self.place(slot, at.constraint, after, left=left - 1, draw=at.count, taken=at.count)

    def _with_room(self, work: Any) -> Any:
        """Do `work`, if need be a second time after forgetting everything that no slot holds."""
        try:
            return work()
        except Full:
            self._uploads.send()
            self.join()
            self._queue.wait()
            self._states.forget_all_but({state for state in self.slots.state.tolist() if state >= 0})
            self.slots.mask_index.masked_fill_(self.slots.state >= 0, MISSING)  # the places of rows are used anew
        try:
            return work()
        except Full as full:
            raise InternalError(f"the device automaton has no room for what the sequences of one batch need: {full}") from None
