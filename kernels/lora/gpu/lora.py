"""Two grouped products: shrink, x A^T into a short inner vector for each row, and expand, which adds (inner) B^T to y.

Rows are sorted by slot and cut into blocks of BLOCK_M that never mix slots; the grid has room for the worst case, and programs
without a block, or with one of rows that want no adapter, end at once. Shrinking cuts the long axis into SPLITS parts, so that a
step of a few rows fills a GPU; their sums are kept apart and added in one order, so that a row's do not depend on its neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...moe.gpu.experts import Blocks, blocks_of
from ...triton_support import dot

BLOCK_N, BLOCK_K = 64, 64
SPLITS = 8
LEAST_RANK = 16  # what a product of tiles takes at least


class SlotBlocks(NamedTuple):
    """Blocks of rows by slot, where the last "expert" is that of rows without an adapter."""

    blocks: Blocks
    block_m: int


@triton.jit
def shrink_kernel(
    x,  # [num_rows, in_features], rows x_stride apart
    down,  # [num_slots, num_slices * RANK, in_features]
    blocks: Blocks,
    inner,  # float32 [SPLITS, num_rows, num_slices * RANK]
    x_stride,
    in_features,
    num_rows,
    num_slots,
    num_slices,
    chunk,  # of in_features for each split, a multiple of BLOCK_K
    RANK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """inner[split, row, r] = the part of <x_row, down_r> that falls to the split, for a block of rows and the RANK rows of a slice.

    Launched by `launch` with the grid (number of blocks, num_slices, SPLITS).
    """
    block, part, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot, first, stop = tl.load(blocks.expert + block), tl.load(blocks.first + block), tl.load(blocks.stop + block)
    if (first < stop) & (slot < num_slots):
        place = first + tl.arange(0, BLOCK_M)
        is_row = place < stop
        row = tl.load(blocks.pairs + place, mask=is_row, other=0)
        r = part * RANK + tl.arange(0, RANK)
        width = num_slices * RANK
        x_row = x + row[:, None] * x_stride
        down_row = down + (slot * width + r)[None, :] * in_features
        total = tl.zeros((BLOCK_M, RANK), tl.float32)
        for start in range(split * chunk, tl.minimum((split + 1) * chunk, in_features), BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            inside = k < in_features
            given = tl.load(x_row + k[None, :], mask=is_row[:, None] & inside[None, :], other=0.0)
            weight = tl.load(down_row + k[:, None], mask=inside[:, None], other=0.0)
            total = dot(given.to(down.dtype.element_ty), weight, total)
        target = inner + (split.to(tl.int64) * num_rows + row)[:, None] * width + r[None, :]
        tl.store(target, total, mask=is_row[:, None])


@triton.jit
def expand_kernel(
    inner,  # float32 [SPLITS, num_rows, num_slices * RANK]
    up,  # [num_slots, out_features, RANK]
    blocks: Blocks,
    starts,  # int32 [num_slices + 1]: where slices begin in out_features
    y,  # [num_rows, out_features]
    out_features,
    num_rows,
    num_slots,
    num_slices,
    SPLITS: tl.constexpr,
    RANK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """y[row, n] += <inner of the row in n's slice, up_n>, for a block of rows and BLOCK_N columns n of one slice.

    Launched by `launch` with the grid (number of blocks, num_slices, width of the widest slice / BLOCK_N).
    """
    block, part = tl.program_id(0), tl.program_id(1)
    slot, first, stop = tl.load(blocks.expert + block), tl.load(blocks.first + block), tl.load(blocks.stop + block)
    column = tl.load(starts + part) + tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    end = tl.load(starts + part + 1)
    if (first < stop) & (slot < num_slots):
        place = first + tl.arange(0, BLOCK_M)
        is_row = place < stop
        row = tl.load(blocks.pairs + place, mask=is_row, other=0)
        is_column = column < end
        r = tl.arange(0, RANK)
        width = num_slices * RANK
        source = inner + row[:, None] * width + part * RANK + r[None, :]
        short = tl.zeros((BLOCK_M, RANK), tl.float32)
        for split in range(SPLITS):
            short += tl.load(source + split * num_rows.to(tl.int64) * width, mask=is_row[:, None], other=0.0)
        up_row = up + (slot * out_features + column)[None, :] * RANK
        weight = tl.load(up_row + r[:, None], mask=is_column[None, :], other=0.0)
        added = dot(short.to(up.dtype.element_ty), weight, tl.zeros((BLOCK_M, BLOCK_N), tl.float32))
        target = y + row[:, None] * out_features + column[None, :]
        is_there = is_row[:, None] & is_column[None, :]
        before = tl.load(target, mask=is_there, other=0.0).to(tl.float32)
        tl.store(target, (before + added).to(y.dtype.element_ty), mask=is_there)


def blocks_of_slots(slots: Tensor, num_slots: int) -> SlotBlocks:
    """The rows by slot, as blocks; asks nothing of the device."""
    block_m = 16 if len(slots) <= 16 * num_slots else 64
    wanted = torch.where(slots < 0, num_slots, slots).long()
    return SlotBlocks(blocks_of(wanted[:, None], num_slots + 1, block_m), block_m)


def warps_of(block_m: int) -> int:
    """Of a program of `expand_kernel`, whose tile of y would not fit into the registers of four."""
    return 8 if block_m > 16 else 4


def launch(y: Tensor, x: Tensor, down: Tensor, up: Tensor, widths: tuple[int, ...], rows: SlotBlocks) -> Tensor:
    """`kernels.lora.add_lora` by shrink and expand."""
    blocks, block_m = rows
    x = x if x.stride(1) == 1 else x.contiguous()
    y = y if y.is_contiguous() else y.contiguous()
    (num_rows, in_features), (num_slots, out_features, rank) = x.shape, up.shape
    num_slices, num_blocks = len(widths), len(blocks.expert)
    chunk = triton.cdiv(triton.cdiv(in_features, SPLITS), BLOCK_K) * BLOCK_K
    inner = torch.empty((SPLITS, num_rows, num_slices * rank), dtype=torch.float32, device=x.device)
    shrink_kernel[(num_blocks, num_slices, SPLITS)](
        x, down, blocks, inner, x.stride(0), in_features, num_rows, num_slots, num_slices, chunk,
        RANK=rank, BLOCK_M=block_m, BLOCK_K=BLOCK_K,
    )  # fmt: skip
    expand_kernel[(num_blocks, num_slices, triton.cdiv(max(widths), BLOCK_N))](
        inner, up, blocks, _starts(widths, x.device), y, out_features, num_rows, num_slots, num_slices,
        SPLITS=SPLITS, RANK=rank, BLOCK_M=block_m, BLOCK_N=BLOCK_N, num_warps=warps_of(block_m),
    )  # fmt: skip
    return y


_known_starts: dict[tuple[tuple[int, ...], torch.device], Tensor] = {}


def _starts(widths: tuple[int, ...], device: torch.device) -> Tensor:
    """Where slices begin, int32 [num_slices + 1]; kept, since a captured step may copy nothing from the host."""
    key = (widths, device)
    if key not in _known_starts:
        ends = torch.tensor((0, *widths), dtype=torch.int32).cumsum(0, dtype=torch.int32)
        _known_starts[key] = ends.to(device)
    return _known_starts[key]
