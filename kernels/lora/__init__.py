"""Low-rank adapters on top of a matrix product (LoRA, arXiv:2106.09685), one or none for each row of a batch.

y_i += B_s A_s x_i for each row i whose adapter s is in a slot; other rows stay as they are. The matrices of all slots are stacked.
A product that several projections share has a slice for each: its rows of A, and its rows of B, which read that part of the inner
vector alone. `reference.py` says what that means, one slot after another; `gpu/` has two grouped products in Triton, `shrink` and
`expand`: rows are sorted by slot, and a program multiplies a few rows of one slot. Which rows want which slot is found once a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..backend import Backend, uses_triton
from . import reference

__all__ = ["NO_ADAPTER", "LoraRows", "LoraStack", "add_lora", "rows_of"]

NO_ADAPTER = -1  # slot of a row without one


class LoraStack(NamedTuple):
    """The matrices of all slots for one product. What a slot has none for is zeros."""

    down: Tensor  # A [num_slots, num_slices * rank, in_features]
    up: Tensor  # B [num_slots, out_features, rank], times the scale of the adapter
    widths: tuple[int, ...]  # of the slices: together out_features

    @property
    def rank(self) -> int:
        return self.up.shape[2]

    @property
    def slices(self) -> list[tuple[int, int]]:
        """(first, behind the last) of each slice in out_features."""
        ends = list(accumulate(self.widths))
        return list(zip([0, *ends], ends, strict=False))


@dataclass(frozen=True, slots=True)
class LoraRows:
    """Which slot each row of a step wants, as a backend reads it."""

    slots: Tensor  # integers [num_rows]
    plan: Any  # `reference.Group`s, or with Triton `gpu.lora.SlotBlocks`
    uses_triton: bool


def rows_of(slots: Tensor, num_slots: int, *, backend: Backend = "auto", may_wait: bool = True) -> LoraRows:
    """slots: integers [num_rows] below num_slots, NO_ADAPTER or any other negative number for none.

    With Triton nothing is asked of the device, so that a CUDA graph can capture it; neither is it in PyTorch unless it `may_wait`.
    """
    if not uses_triton(backend, slots.device):
        groups = reference.groups_of(slots) if may_wait else reference.masks_of(slots, num_slots)
        return LoraRows(slots, groups, False)
    from .gpu.lora import blocks_of_slots

    return LoraRows(slots, blocks_of_slots(slots, num_slots), True)


def add_lora(y: Tensor, x: Tensor, stack: LoraStack, rows: LoraRows) -> Tensor:
    """y [num_rows, out_features], perhaps changed in place, with what the adapters of the rows of x [num_rows, in_features] add.

    Products are of the stack's dtype, summed in float32 on a GPU.
    """
    if len(x) != len(rows.slots) or len(y) != len(x):
        raise ValueError(f"{len(rows.slots)} rows have a slot, but x has {len(x)} and y {len(y)}")
    if not rows.uses_triton:
        return reference.add_lora(y, x, stack.down, stack.up, stack.slices, rows.plan)
    from .gpu.lora import launch

    return launch(y, x, stack.down, stack.up, stack.widths, rows.plan)


def empty_stack(
    num_slots: int, rank: int, in_features: int, widths: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> LoraStack:
    """A stack of slots that add nothing."""
    down = torch.zeros(num_slots, len(widths) * rank, in_features, dtype=dtype, device=device)
    return LoraStack(down, torch.zeros(num_slots, sum(widths), rank, dtype=dtype, device=device), widths)
