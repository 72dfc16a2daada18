"""Adapters one slot after another, each for the rows that want it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

Group = tuple[int, Tensor | None]  # (slot, who wants it: int64 rows, or bool [num_rows, 1]; None: all rows)


def groups_of(slots: Tensor) -> list[Group]:
    """The slots that some row wants, with their rows. Waits for the device."""
    found = slots.unique().tolist()
    if len(found) == 1:
        return [(found[0], None)] if found[0] >= 0 else []
    return [(slot, (slots == slot).nonzero()[:, 0]) for slot in found if slot >= 0]


def masks_of(slots: Tensor, num_slots: int) -> list[Group]:
    """All slots, each with a mask of the rows that want it: more is computed, and nothing is asked of the device."""
    return [(slot, (slots == slot)[:, None]) for slot in range(num_slots)]


def add_lora(
    y: Tensor, x: Tensor, down: Tensor, up: Tensor, slices: Sequence[tuple[int, int]], groups: Sequence[Group]
) -> Tensor:
    """`kernels.lora.add_lora`, group by group and slice by slice."""
    rank = up.shape[2]
    for slot, wanted in groups:
        is_mask = wanted is not None and wanted.dtype == torch.bool
        given = x if wanted is None or is_mask else x.index_select(0, wanted)
        inner = linear(given.to(down.dtype), down[slot])
        for number, (first, stop) in enumerate(slices):
            added = linear(inner[:, number * rank : (number + 1) * rank], up[slot, first:stop]).to(y.dtype)
            if wanted is None:
                y[:, first:stop] += added
            elif is_mask:
                y[:, first:stop] += added.masked_fill(~wanted, 0)
            else:
                y[wanted, first:stop] += added
    return y
