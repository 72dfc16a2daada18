"""Slots of adapters on the device: the matrices of all that are loaded, stacked for each linear layer, and who wants which now.

A layer that no adapter adds to has no stack, and costs nothing. Stacks have room for a power of two of slots and for the highest
rank so far; when that is too little they are made anew, which `version` counts: what was captured before reads the old ones.

Called between steps, by the thread that steps, but for `apply`, which is part of the device's work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels.backend import Backend, uses_triton
from ...kernels.lora import LoraRows, LoraStack, empty_stack, rows_of
from ..errors import AdapterError
from .adapter import Adapter, LowRank
from .modules import Place

LEAST_RANK = 16  # of a stack that Triton multiplies by


@dataclass(slots=True)
class Adapted:
    """What the adapters of one linear layer are, for the object that computes it."""

    in_features: int
    widths: tuple[int, ...]
    stack: LoraStack | None = None


@dataclass(slots=True)
class StepRows:
    """Who wants which slot in the step that is computed; None: nobody wants any."""

    tokens: LoraRows | None = None  # rows of all layers but the head
    logits: LoraRows | None = None  # rows of the head


class AdapterSlots:
    """The slots of one model, which tells its linear layers when it is built (`linears.py`)."""

    def __init__(self, max_adapters: int, dtype: torch.dtype, device: torch.device, backend: Backend = "auto") -> None:
        self.max_adapters, self.dtype, self.device, self.backend = max_adapters, dtype, device, backend
        self._layers: dict[str, Adapted] = {}
        self._head: Adapted | None = None
        self.rows = StepRows()
        self.version = 0
        self._held: dict[int, Adapter] = {}
        self._num_slots, self._rank = 0, 0  # that stacks have room for

    @property
    def num_bytes(self) -> int:
        stacks = [layer.stack for layer in self._layers.values() if layer.stack is not None]
        return sum(stack.down.nbytes + stack.up.nbytes for stack in stacks)

    def add_layer(self, name: str, layer: Adapted, *, is_head: bool) -> None:
        """Know a linear layer that adapters may add to. Of a head the rows are those whose logits are wanted."""
        self._layers[name] = layer
        if is_head:
            self._head = layer

    # ---- what is loaded

    @torch.inference_mode()
    def load(self, adapter: Adapter) -> int:
        """Put an adapter into a free slot and return its number. Raises AdapterError where there is no room, unchanged."""
        slot = next((number for number in range(self.max_adapters) if number not in self._held), None)
        if slot is None:
            raise AdapterError(f"{adapter.path}: {len(self._held)} adapters are loaded, and max_adapters is {self.max_adapters}")
        prepared = {place: self._prepared(adapter, place, part) for place, part in adapter.parts.items()}
        least = LEAST_RANK if uses_triton(self.backend, self.device) else 1
        room = (max(self._num_slots, 1 << slot.bit_length()), max(self._rank, _power_of_two(max(adapter.rank, least))))
        try:
            stacks = self._with_room(*room, {place.linear for place in adapter.parts})
        except torch.OutOfMemoryError:
            advice = "lower kv_memory_fraction, or name it when the engine starts"
            raise AdapterError(f"{adapter.path}: no memory for it on {self.device}; {advice}") from None
        for name, stack in stacks.items():
            self._write(name, stack, slot, prepared)
        self.version += any(stack is not self._layers[name].stack for name, stack in stacks.items())
        for name, stack in stacks.items():
            self._layers[name].stack = stack
        self._num_slots, self._rank = room
        self._held[slot] = adapter
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # the next step may be on another stream than this thread's
        return slot

    def free(self, slot: int) -> None:
        """Give a slot back that no row wants any more. With the last one the memory goes."""
        del self._held[slot]
        if not self._held:
            self._num_slots = self._rank = 0
            self.version += 1
            for layer in self._layers.values():
                layer.stack = None

    # ---- who wants what

    @contextmanager
    def applied(self, tokens: Tensor | None, logit_rows: Tensor | None = None) -> Iterator[None]:
        """A block in which layers add what the rows of a step want.

        tokens: the slot of each row, integers [num_tokens], negative for none; None: no row wants any. logit_rows: int64, the rows
        that the head gets; None: all, and the step may be captured, so that nothing is asked of the device.
        """
        if tokens is None or not self._num_slots:
            yield
            return
        wanted = rows_of(tokens, self._num_slots, backend=self.backend, may_wait=logit_rows is not None)
        of_head = wanted if logit_rows is None else None
        if logit_rows is not None and self._head is not None and self._head.stack is not None:
            of_head = rows_of(tokens.index_select(0, logit_rows), self._num_slots, backend=self.backend)
        self.rows = StepRows(wanted, of_head)
        try:
            yield
        finally:
            self.rows = StepRows()

    # ---- inside

    def _prepared(self, adapter: Adapter, place: Place, part: LowRank) -> LowRank:
        """The matrices in our dtype, with the scale in the second."""
        down, up = part.down.to(self.dtype), (part.up.float() * part.scale).to(self.dtype)
        if not (torch.isfinite(down).all() and torch.isfinite(up).all()):
            kind = str(self.dtype).removeprefix("torch.")
            raise AdapterError(f"{adapter.path}: what it adds to {place.linear} is too large for {kind}")
        return LowRank(down, up, 1.0)

    def _with_room(self, num_slots: int, rank: int, touched: set[str]) -> dict[str, LoraStack]:
        """The stack of every layer that has, or is to have, one: that of now where it has the room."""
        made: dict[str, LoraStack] = {}
        for name, layer in self._layers.items():
            if layer.stack is not None and (num_slots, rank) == (self._num_slots, self._rank):
                made[name] = layer.stack
            elif layer.stack is not None or name in touched:
                made[name] = self._grown(layer, num_slots, rank)
        return made

    def _grown(self, layer: Adapted, num_slots: int, rank: int) -> LoraStack:
        grown = empty_stack(num_slots, rank, layer.in_features, layer.widths, self.dtype, self.device)
        if layer.stack is not None:
            before, old = layer.stack, layer.stack.rank
            count, num_slices = len(before.up), len(layer.widths)
            shape = (num_slices, -1, layer.in_features)
            grown.down.unflatten(1, shape[:2])[:count, :, :old] = before.down.unflatten(1, shape[:2])
            grown.up[:count, :, :old] = before.up
        return grown

    def _write(self, name: str, stack: LoraStack, slot: int, parts: Mapping[Place, LowRank]) -> None:
        """All that a slot has for one layer; zeros where it has nothing."""
        stack.down[slot].zero_()
        stack.up[slot].zero_()
        for number, (first, stop) in enumerate(stack.slices):
            part = parts.get(Place(name, number))
            if part is not None:
                begin = number * stack.rank
                stack.down[slot, begin : begin + part.rank] = part.down.to(self.device)
                stack.up[slot, first:stop, : part.rank] = part.up.to(self.device)


def _power_of_two(number: int) -> int:
    """The smallest one that is not less."""
    return 1 << (number - 1).bit_length()
