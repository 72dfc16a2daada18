"""The slow twin of `DeviceAutomata`: where sequences are in their constraints, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskwright.engine.device_constraints.automata import begin, tokens_taken
from maskwright.engine.device_constraints.state_tables import Entry
from maskwright.engine.errors import InternalError
from maskwright.engine.requests.request import Constraint
from maskwright.kernels.automaton.interface import FREE, IDLE, NEAR, REDRAW, Flag, new_slots
from maskwright.kernels.sampler.interface import MISSING, NO_TOKEN, UNCONSTRAINED


class HostAutomata:
    """Takes the same tokens from the same draws: after every step it reads them, asks the constraints, and writes masks."""

    def __init__(self, num_slots: int, vocab_size: int, device: torch.device, *, outputs: int = 64) -> None:
        self.slots = new_slots(num_slots, outputs, device)
        self.mask_rows = torch.zeros(num_slots, -(-vocab_size // 32), dtype=torch.int32, device=device)
        self._at: dict[int, tuple[Constraint, Any]] = {}

    def attach(self, slot: int, constraint: Constraint | None, *, left: int, draw: int = 0) -> None:
        self._at.pop(slot, None)
        if constraint is not None:
            self._at[slot] = constraint, constraint.start()
        begin(self.slots, slot, Entry(FREE if constraint is None else 0), left, draw)
        self._install(slot, refused=False)

    def detach(self, slot: int) -> None:
        self._at.pop(slot, None)
        begin(self.slots, slot, Entry(IDLE), 0, 0)

    def step(self, token: Tensor) -> None:
        done, idle = (self.slots.flags & Flag.DONE).tolist(), (self.slots.state == IDLE).tolist()
        for slot, token_id in enumerate(token.tolist()):
            if token_id != NO_TOKEN and not done[slot] and not idle[slot]:
                self._take(slot, token_id)

    def join(self) -> None:
        """Nothing is sent, so nothing has to be waited for."""

    def resolve(self) -> list[bool]:
        return [bool(done) for done in (self.slots.flags & Flag.DONE).tolist()]

    def tokens(self, slot: int) -> list[int]:
        return tokens_taken(self.slots, slot)

    def _take(self, slot: int, token_id: int) -> None:
        slots, left = self.slots, int(self.slots.left[slot])
        if slot in self._at:
            constraint, state = self._at[slot]
            after = constraint.advance(state, token_id)
            if after is None:
                raise InternalError(f"token {token_id} was drawn, but the constraint does not accept it")
            if token_id in constraint.vocabulary.eos_token_ids:
                slots.flags[slot], slots.mask_index[slot] = int(Flag.DONE), MISSING
                return
            if constraint.min_tokens(after) > left - 1:
                slots.draw[slot] += REDRAW
                self._install(slot, refused=True)
                return
            self._at[slot] = constraint, after
        count = int(slots.taken[slot])
        slots.output[slot, count % slots.output.shape[1]] = token_id
        slots.taken[slot], slots.left[slot], slots.draw[slot] = count + 1, left - 1, count + 1
        self._install(slot, refused=False)

    def _install(self, slot: int, *, refused: bool) -> None:
        """The mask of the next token, or the end."""
        slots, left = self.slots, int(self.slots.left[slot])
        is_done = left <= 0
        if slot in self._at:
            constraint, state = self._at[slot]
            mask = constraint.mask(state)
            end_ids = constraint.vocabulary.eos_token_ids
            is_done |= constraint.is_accepting(state) and int(np.bitwise_count(mask).sum()) == len(end_ids)
            if not is_done:
                if refused or left <= constraint.min_tokens(state) + NEAR:
                    mask = constraint.mask(state, budget=left)
                self.mask_rows[slot] = torch.from_numpy(mask.view(np.int32).copy())
        slots.mask_index[slot] = MISSING if is_done else slot if slot in self._at else UNCONSTRAINED
        slots.flags[slot] = int(Flag.DONE) if is_done else 0
