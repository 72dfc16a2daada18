"""Adapters one slot after another, each for the rows that want it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import linear

Group = tuple[int, Tensor | None]  # (slot, int64 rows that want it; None: all rows)


def groups_of(slots: Tensor) -> list[Group]:
    """The slots that some row wants, with their rows. Waits for the device."""
    found = slots.unique().tolist()
    if len(found) == 1:
        return [(found[0], None)] if found[0] >= 0 else []
    return [(slot, (slots == slot).nonzero()[:, 0]) for slot in found if slot >= 0]


def add_lora(
    y: Tensor, x: Tensor, down: Tensor, up: Tensor, slices: Sequence[tuple[int, int]], groups: Sequence[Group]
) -> Tensor:
    """`kernels.lora.add_lora`, group by group and slice by slice."""
    rank = up.shape[2]
    for slot, places in groups:
        given = (x if places is None else x.index_select(0, places)).to(down.dtype)
        inner = linear(given, down[slot])
        for number, (first, stop) in enumerate(slices):
            added = linear(inner[:, number * rank : (number + 1) * rank], up[slot, first:stop]).to(y.dtype)
            if places is None:
                y[:, first:stop] += added
            else:
                y[places, first:stop] += added
    return y
