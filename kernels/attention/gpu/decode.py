"""Attention of one query per sequence, with the work cut into equal shares, whatever the lengths.

Stream-K, as in LeanAttention (Sanovar et al. 2024, arXiv:2405.10480): for each KV head the tiles of all contexts stand
in one line, and every program takes an equal piece of it. One long context keeps the card as busy as many short ones,
padded rows cost nothing, and the grid depends on the card alone. A piece may hold the end of one context and the start
of the next: each part goes to a slot of its own, and a second kernel joins the parts of a row.

Slots: along the line, the next part belongs to the next program, the next row or both, so `program + row` is unique.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...triton_support import LOG2_E
from ..interface import LayerCache, Scoring
from .arguments import Heads, PagedCache, heads_of, paged_cache_of
from .tiles import (
    NO_WINDOW,
    as_factor,
    attend_tile,
    cache_of_head,
    padded,
    places,
    precision_of,
    scale_stride,
    sequence_of,
)

PARTS = 16  # that the joining kernel reads at once


class DecodeShape(NamedTuple):
    """How the work is cut: by rounding alone does it change the result."""

    tile: int  # tokens at a time
    num_warps: int
    num_stages: int  # of the pipeline: block ids are read one stage before what they point to
    programs: int  # that fit on one multiprocessor at once


class Parts(NamedTuple):
    """What the first kernel leaves for the second, float32, by slot."""

    weighted: Any  # [kv_heads, slots, GROUP, HEAD_DIM]: sums of weight * value, not yet divided by the sum of weights
    sums: Any  # [kv_heads, slots, GROUP]
    maxima: Any  # [kv_heads, slots, GROUP], in units of log2


@triton.jit
def tiles_of_rows(context_lengths, num_rows, window, TILE: tl.constexpr, ROWS: tl.constexpr):
    """[ROWS] int32: how many tiles each row attends to."""
    row = tl.arange(0, ROWS)
    length = tl.load(context_lengths + row, mask=row < num_rows, other=0).to(tl.int32)
    return tl.cdiv(tl.minimum(length, window), TILE)


@triton.jit
def share_of(tiles, num_programs):
    """Tiles per program."""
    return tl.maximum(tl.cdiv(tl.sum(tiles, 0), num_programs), 1)


@triton.jit(do_not_specialize=["num_rows", "window", "table_stride", "scale_stride"])
def attend_kernel(
    query: Heads,
    cache: PagedCache,
    block_tables,  # integers [num_rows, max_blocks]
    context_lengths,  # integers [num_rows]: tokens in the cache, 0 = nobody
    parts: Parts,
    num_rows,
    scale,
    soft_cap,  # or None
    window,
    table_stride,
    scale_stride,
    GROUP: tl.constexpr,
    PADDED_GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
    ROWS: tl.constexpr,  # num_rows or more, a power of two
    PRECISION: tl.constexpr,
):
    """Attention of the queries to what each program's piece of the line holds, not yet divided by the sum of weights.

    For a part of row r and the query of head h = kv_head * GROUP + g, over the tokens t of the part that row r sees:

        score(t) = scale * <query[r, h], keys[t, kv_head]> * log2(e)              (perhaps capped)
        maximum[slot, g] = max score(t);  sum[slot, g] = sum of 2 ** (score(t) - maximum)
        weighted[slot, g, :] = sum of 2 ** (score(t) - maximum) * values[t, kv_head, :]

    Launched by `decode_attention` with the grid (num_kv_heads, num_programs).
    """
    kv_head = tl.program_id(0)
    program = tl.program_id(1)
    num_programs = tl.num_programs(1)
    tiles = tiles_of_rows(context_lengths, num_rows, window, TILE, ROWS)
    share = share_of(tiles, num_programs)
    tile = program * share
    stop = tl.minimum(tile + share, tl.sum(tiles, 0))
    row, row_start = sequence_of(tiles, tile, ROWS)

    group = tl.arange(0, PADDED_GROUP)
    dim = tl.arange(0, PADDED_DIM)
    is_real = (group < GROUP)[:, None] & (dim < HEAD_DIM)[None, :]
    query_offset = (kv_head * GROUP + group)[:, None] * query.head_stride + dim[None, :]
    head_cache = cache_of_head(cache, kv_head)
    if cache.key_scale is not None:
        scale *= tl.load(cache.key_scale + kv_head * scale_stride)
    while tile < stop:
        length = tl.load(context_lengths + row).to(tl.int32)
        first = length - tl.minimum(length, window)  # token seen
        row_stop = row_start + tl.cdiv(length - first, TILE)
        part_stop = tl.minimum(stop, row_stop)
        row_query = tl.load(query.data + row.to(tl.int64) * query.row_stride + query_offset, mask=is_real, other=0.0)
        row_query = as_factor(row_query, cache.key)
        block_table = block_tables + row.to(tl.int64) * table_stride
        maximum = tl.full((PADDED_GROUP,), float("-inf"), tl.float32)
        total = tl.zeros((PADDED_GROUP,), tl.float32)
        accumulator = tl.zeros((PADDED_GROUP, PADDED_DIM), tl.float32)
        for index in range(tile - row_start, part_stop - row_start):
            token = first + index * TILE + tl.arange(0, TILE)
            is_used = token < length
            offsets = places(block_table, token, is_used, head_cache, BLOCK_SIZE)
            maximum, total, accumulator = attend_tile(
                row_query, head_cache, offsets, is_used, is_used[None, :], scale, soft_cap, maximum, total, accumulator,
                True, HEAD_DIM, PADDED_DIM, PRECISION,
            )  # fmt: skip
        slot = (kv_head * (num_programs + num_rows) + program + row) * GROUP + group
        tl.store(parts.maxima + slot, maximum, mask=group < GROUP)
        tl.store(parts.sums + slot, total, mask=group < GROUP)
        tl.store(parts.weighted + slot[:, None] * HEAD_DIM + dim[None, :], accumulator, mask=is_real)
        tile = part_stop
        row_start = row_stop
        row += 1


@triton.jit(do_not_specialize=["num_rows", "num_programs", "window", "scale_stride"])
def join_kernel(
    out: Heads,
    parts: Parts,
    value_scale,  # float32 [1] or [num_kv_heads], or None
    sinks,  # float32 [num_heads], or None
    context_lengths,
    num_rows,
    num_programs,  # of attend_kernel, for each KV head
    window,
    scale_stride,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    TILE: tl.constexpr,
    ROWS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """The output of one head of one row from its parts, which the programs wrote whose pieces of the line meet the row's.

        share(p) = 2 ** (maximum[p] - the greatest maximum)
        out[row, head, :] = sum over parts p of share(p) * weighted[p, :] / sum over parts p of share(p) * sum[p]

    A sink is one part more, whose value is 0. Launched by `decode_attention` with the grid (num_rows, num_heads).
    """
    row = tl.program_id(0)
    head = tl.program_id(1)
    kv_head = head // GROUP
    tiles = tiles_of_rows(context_lengths, num_rows, window, TILE, ROWS)
    share = share_of(tiles, num_programs)
    rows = tl.arange(0, ROWS)
    start = tl.sum(tl.where(rows < row, tiles, 0), 0)
    stop = tl.sum(tl.where(rows <= row, tiles, 0), 0)
    first = start // share
    last = tl.where(stop > start, tl.cdiv(stop, share), first)

    dim = tl.arange(0, PADDED_DIM)
    maximum = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    accumulator = tl.zeros((PADDED_DIM,), tl.float32)
    for begin in range(first, last, PARTS):
        program = begin + tl.arange(0, PARTS)
        is_part = program < last
        slot = (kv_head * (num_programs + num_rows) + program + row) * GROUP + head % GROUP
        maxima = tl.load(parts.maxima + slot, mask=is_part, other=float("-inf"))
        sums = tl.load(parts.sums + slot, mask=is_part, other=0.0)
        is_real = is_part[:, None] & (dim < HEAD_DIM)[None, :]
        found = tl.load(parts.weighted + slot[:, None] * HEAD_DIM + dim[None, :], mask=is_real, other=0.0)
        new_maximum = tl.maximum(maximum, tl.max(maxima, 0))
        weights = tl.exp2(maxima - new_maximum)
        decay = tl.exp2(maximum - new_maximum)
        total = total * decay + tl.sum(weights * sums, 0)
        accumulator = accumulator * decay + tl.sum(weights[:, None] * found, 0)
        maximum = new_maximum
    if sinks is not None:
        sink = tl.load(sinks + head) * LOG2_E
        new_maximum = tl.maximum(maximum, sink)
        decay = tl.exp2(maximum - new_maximum)
        total = total * decay + tl.exp2(sink - new_maximum)
        accumulator *= decay
    result = accumulator / tl.where(total > 0.0, total, 1.0)
    if value_scale is not None:
        result *= tl.load(value_scale + kv_head * scale_stride)
    offset = row.to(tl.int64) * out.row_stride + head * out.head_stride
    tl.store(out.data + offset + dim, result.to(out.data.dtype.element_ty), mask=dim < HEAD_DIM)


def decode_attention(
    query: Tensor,
    cache: LayerCache,
    block_tables: Tensor,
    context_lengths: Tensor,
    scoring: Scoring,
    out: Tensor,
    *,
    shape: DecodeShape | None = None,
    num_programs: int | None = None,
) -> None:
    """Fills out, like query [rows, num_heads, head_dim]. The arguments are checked and have as many rows.

    `shape` and `num_programs`, per KV head, change the result by rounding alone; None: what suits the card.
    """
    num_rows, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = cache.keys.shape
    group = num_heads // num_kv_heads
    shape = shape or shape_of(query.dtype, cache.keys.dtype, group, head_dim)
    num_programs = num_programs or max(1, processor_count(query.device) * shape.programs // num_kv_heads)
    slots = num_programs + num_rows
    weighted = query.new_empty(num_kv_heads, slots, group, head_dim, dtype=torch.float32)
    parts = Parts(weighted, *query.new_empty(2, num_kv_heads, slots, group, dtype=torch.float32))
    window = scoring.window or NO_WINDOW
    attend_kernel[num_kv_heads, num_programs](
        heads_of(query),
        paged_cache_of(cache),
        block_tables,
        context_lengths,
        parts,
        num_rows,
        scoring.scale,
        scoring.soft_cap,
        window,
        block_tables.stride(0),
        scale_stride(cache.key_scale),
        **attend_constants(query.dtype, group, head_dim, block_size, num_rows, shape.tile),
        num_warps=shape.num_warps,
        num_stages=shape.num_stages,
        enable_fp_fusion=True,
    )
    join_kernel[num_rows, num_heads](
        heads_of(out),
        parts,
        cache.value_scale,
        scoring.sinks,
        context_lengths,
        num_rows,
        num_programs,
        window,
        scale_stride(cache.value_scale),
        **join_constants(group, head_dim, num_rows, shape.tile),
        num_warps=2,
        enable_fp_fusion=True,
    )


def shape_of(dtype: torch.dtype, cache_dtype: torch.dtype, group: int, head_dim: int) -> DecodeShape:
    """A tile of 8192 keys' numbers. Registers allow the rest (sm_90; `variants.py` has them checked)."""
    tile = min(128, (4096 if dtype == torch.float32 else 8192) // padded(head_dim))
    if group > 16 or (dtype == torch.float32 and head_dim > 128):
        return DecodeShape(tile, num_warps=8, num_stages=5, programs=1)
    is_light = dtype == cache_dtype != torch.float32 and head_dim <= 128
    return DecodeShape(tile, num_warps=4, num_stages=5, programs=3 if is_light else 2)


def attend_constants(
    dtype: torch.dtype, group: int, head_dim: int, block_size: int, num_rows: int, tile: int
) -> dict[str, Any]:
    return dict(
        GROUP=group,
        PADDED_GROUP=padded(group),
        HEAD_DIM=head_dim,
        PADDED_DIM=padded(head_dim),
        BLOCK_SIZE=block_size,
        TILE=tile,
        ROWS=triton.next_power_of_2(num_rows),
        PRECISION=precision_of(dtype),
    )


def join_constants(group: int, head_dim: int, num_rows: int, tile: int) -> dict[str, Any]:
    return dict(
        GROUP=group,
        HEAD_DIM=head_dim,
        PADDED_DIM=padded(head_dim),
        TILE=tile,
        ROWS=triton.next_power_of_2(num_rows),
        PARTS=PARTS,
    )


@functools.cache
def processor_count(device: torch.device) -> int:
    """Multiprocessors of the card; under the interpreter as few as there are cores to think of."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 4
