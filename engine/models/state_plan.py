"""Which states a step reads and writes: models that keep a state of fixed size per sequence instead of keys and values per token.

States live in a pool with one slot for each block of the cache, and such a model's blocks are as long as its longest
sequence: a sequence has one block, hence one slot. A slot holds the state after the last token and the one before it, since
the engine may ask for the last token once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..attention.paged import Span
from ..errors import InternalError


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows `start:stop` of the packed batch, all of a span but its last token."""

    start: int
    stop: int
    slot: int
    source: int | None  # the place it continues; None = from nothing
    target: int


@dataclass(frozen=True, slots=True)
class StatePlan:
    scans: tuple[Scan, ...]
    fresh: Tensor  # int64 [num_fresh]: slots whose place 0 is the empty state
    rows: Tensor  # int64 [num_sequences]: the last token of every span
    slots: Tensor
    sources: Tensor  # the places that the step reads
    targets: Tensor  # and writes


def plan_states(spans: Sequence[Span], lengths: np.ndarray, device: torch.device) -> StatePlan:
    """Plan a step and note in `lengths`, int64 [num_slots, 2], what it will leave behind.

    Each sequence has one block, which is its slot. `lengths` says how many tokens of it the state at each place is behind.
    Raises InternalError when a sequence is to go on from where no state is kept.
    """
    scans, fresh, steps, start = [], [], [], 0
    for num_past, num_new, table in spans:
        slot, stop = table[0], start + num_new
        source = _place(lengths, slot, num_past)
        if num_new > 1:
            scans.append(Scan(start, stop - 1, slot, source, target := 0 if source is None else 1 - source))
            source = target
        elif source is None:
            fresh.append(slot)
            source = 0
        steps.append((stop - 1, slot, source, 1 - source))
        total = num_past + num_new
        lengths[slot, source], lengths[slot, 1 - source] = total - 1, total
        start = stop
    rows, slots, sources, targets = (_index(column, device) for column in zip(*steps, strict=True))
    return StatePlan(tuple(scans), _index(fresh, device), rows, slots, sources, targets)


def _place(lengths: np.ndarray, slot: int, num_tokens: int) -> int | None:
    """The place, 0 or 1, of the state after `num_tokens` tokens, None for no tokens. Raises InternalError if it is at neither."""
    if num_tokens == 0:
        return None
    for place in (0, 1):
        if lengths[slot, place] == num_tokens:
            return place
    held = ", ".join(map(str, lengths[slot]))
    raise InternalError(f"no state after {num_tokens} tokens in slot {slot}; it holds those after {held}")


def _index(numbers: Sequence[int], device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64).to(device, non_blocking=True)
