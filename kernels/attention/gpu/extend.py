"""Attention of chunks of queries that continue a cached context, all chunks in one launch, causal.

A program takes one tile of queries of one sequence, with all heads of one KV head packed into it, and walks the keys
that they see. Which sequence it serves, it finds from the lengths on the device, so the grid depends on the shapes
alone. Tiles late in the batch go first: within a sequence they are the long ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...triton_support import LOG2_E
from ..interface import FP8, LayerCache, PagedBatch, Scoring
from .arguments import HeadCache, Heads, PagedCache, heads_of, paged_cache_of
from .tiles import as_factor, attend_tile, cache_of_head, padded, places, precision_of, scale_stride, sequence_of


class Sequences(NamedTuple):
    """Whose queries are computed: those of `PagedBatch` behind the decodes, integers."""

    block_tables: Any  # [num_sequences, max_blocks]
    context_lengths: Any  # [num_sequences]
    query_starts: Any  # [num_sequences + 1], rows of the step


@triton.jit
def walk_tiles(
    query,
    cache: HeadCache,
    block_table,
    position,  # [M] of the queries in their sequence
    length,  # tokens in the cache
    first,  # token of tile 0
    start,  # tiles start:stop
    stop,
    window,  # or None
    scale,
    soft_cap,  # or None
    maximum,
    total,
    accumulator,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
    IS_MASKED: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """`attend_tile` over some tiles of keys, one after another: (maximum, total, accumulator) after them."""
    for index in range(start, stop):
        token = first + index * TILE + tl.arange(0, TILE)
        is_used = token < length
        offsets = places(block_table, token, is_used, cache, BLOCK_SIZE)
        is_seen = token[None, :] <= position[:, None]
        if window is not None:
            is_seen = is_seen & (token[None, :] > position[:, None] - window)
        maximum, total, accumulator = attend_tile(
            query, cache, offsets, is_used, is_seen, scale, soft_cap, maximum, total, accumulator,
            IS_MASKED, HEAD_DIM, PADDED_DIM, PRECISION,
        )  # fmt: skip
    return maximum, total, accumulator


@triton.jit(do_not_specialize=["num_sequences", "window", "table_stride", "key_scale_stride", "value_scale_stride"])
def extend_kernel(
    out: Heads,
    query: Heads,
    cache: PagedCache,
    sinks,  # float32 [num_heads], or None
    sequences: Sequences,
    num_sequences,
    scale,
    soft_cap,  # or None
    window,  # or None
    table_stride,
    key_scale_stride,
    value_scale_stride,
    GROUP: tl.constexpr,
    M: tl.constexpr,  # rows of a tile of queries: M // GROUP tokens, each with the GROUP heads of one KV head
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
    SEQUENCES: tl.constexpr,  # num_sequences or more, a power of two
    PRECISION: tl.constexpr,
):
    """Causal attention of one tile of queries.

    For the query at position p of sequence s, which is row r of the step, and its head h of KV head k, over the tokens t that it
    sees (t <= p, and t > p - window):

        weight(t) = exp(scale * <query[r, h], keys[t, k]>)                        (the product perhaps capped)
        out[r, h, :] = sum of weight(t) * values[t, k, :] / (sum of weight(t) + exp(sinks[h]))

    Launched by `extend_attention` with the grid (num_kv_heads, num_tiles); num_tiles is at least what the tokens need, and programs
    behind the last tile end at once.
    """
    kv_head = tl.program_id(0)
    QUERIES: tl.constexpr = M // GROUP
    numbers = tl.arange(0, SEQUENCES)
    exists = numbers < num_sequences
    starts = sequences.query_starts + numbers
    counts = tl.load(starts + 1, mask=exists, other=0) - tl.load(starts, mask=exists, other=0)
    query_tiles = tl.cdiv(counts.to(tl.int32), QUERIES)
    query_tile = tl.sum(query_tiles, 0) - 1 - tl.program_id(1)
    if query_tile < 0:
        return
    sequence, sequence_start = sequence_of(query_tiles, query_tile, SEQUENCES)
    row_start = tl.load(sequences.query_starts + sequence).to(tl.int32)
    count = tl.load(sequences.query_starts + sequence + 1).to(tl.int32) - row_start
    length = tl.load(sequences.context_lengths + sequence).to(tl.int32)

    lane = tl.arange(0, M)
    dim = tl.arange(0, PADDED_DIM)
    tile_query = (query_tile - sequence_start) * QUERIES
    in_sequence = tile_query + lane // GROUP
    head = kv_head * GROUP + lane % GROUP
    is_query = (lane < QUERIES * GROUP) & (in_sequence < count)
    is_real = is_query[:, None] & (dim < HEAD_DIM)[None, :]
    row = (row_start + in_sequence).to(tl.int64)
    source = query.data + (row * query.row_stride + head * query.head_stride)[:, None] + dim[None, :]
    tile = as_factor(tl.load(source, mask=is_real, other=0.0), cache.key)

    low = length - count + tile_query  # positions of the tile's queries: low to high
    high = tl.minimum(low + QUERIES, length) - 1
    first = 0 if window is None else tl.maximum(low - window + 1, 0)
    stop = tl.cdiv(high + 1 - first, TILE)
    # tiles [partial, full) are seen by every query
    partial = 0
    if window is not None:
        partial = tl.minimum(tl.cdiv(tl.maximum(high - window + 1 - first, 0), TILE), stop)
    full = tl.maximum((low + 1 - first) // TILE, partial)

    maximum = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    accumulator = tl.zeros((M, PADDED_DIM), tl.float32)
    block_table = sequences.block_tables + sequence.to(tl.int64) * table_stride
    head_cache = cache_of_head(cache, kv_head)
    if cache.key_scale is not None:
        scale *= tl.load(cache.key_scale + kv_head * key_scale_stride)
    position = length - count + in_sequence
    if window is not None:
        maximum, total, accumulator = walk_tiles(
            tile, head_cache, block_table, position, length, first, 0, partial, window, scale, soft_cap,
            maximum, total, accumulator, BLOCK_SIZE, TILE, True, HEAD_DIM, PADDED_DIM, PRECISION,
        )  # fmt: skip
    maximum, total, accumulator = walk_tiles(
        tile, head_cache, block_table, position, length, first, partial, full, window, scale, soft_cap,
        maximum, total, accumulator, BLOCK_SIZE, TILE, False, HEAD_DIM, PADDED_DIM, PRECISION,
    )  # fmt: skip
    maximum, total, accumulator = walk_tiles(
        tile, head_cache, block_table, position, length, first, full, stop, window, scale, soft_cap,
        maximum, total, accumulator, BLOCK_SIZE, TILE, True, HEAD_DIM, PADDED_DIM, PRECISION,
    )  # fmt: skip

    if sinks is not None:
        sink = tl.load(sinks + head) * LOG2_E
        new_maximum = tl.maximum(maximum, sink)
        decay = tl.exp2(maximum - new_maximum)
        total = total * decay + tl.exp2(sink - new_maximum)
        accumulator *= decay[:, None]
    result = accumulator / tl.where(total > 0.0, total, 1.0)[:, None]
    if cache.value_scale is not None:
        result *= tl.load(cache.value_scale + kv_head * value_scale_stride)
    target = out.data + (row * out.row_stride + head * out.head_stride)[:, None] + dim[None, :]
    tl.store(target, result.to(out.data.dtype.element_ty), mask=is_real)


class ExtendShape(NamedTuple):
    """How the work is cut."""

    rows: int  # of a tile of queries, heads included
    tile: int  # keys at a time
    num_warps: int
    num_stages: int


def extend_attention(
    query: Tensor,
    cache: LayerCache,
    batch: PagedBatch,
    scoring: Scoring,
    out: Tensor,
    *,
    shape: ExtendShape | None = None,
) -> None:
    """Fills the rows of out, like query [num_tokens, num_heads, head_dim], of all sequences behind the decodes.

    The arguments are checked. `shape` changes the result by rounding alone; None: what suits the head.
    """
    num_tokens, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = cache.keys.shape
    skipped = batch.num_decodes
    num_sequences = len(batch.block_tables) - skipped
    group = num_heads // num_kv_heads
    shape = shape or shape_of(query.dtype, cache.keys.dtype, group, head_dim)
    queries = shape.rows // group
    num_tiles = (num_tokens - skipped) // queries + num_sequences  # at least as many as there are
    extend_kernel[num_kv_heads, num_tiles](
        heads_of(out),
        heads_of(query),
        paged_cache_of(cache),
        scoring.sinks,
        Sequences(batch.block_tables[skipped:], batch.context_lengths[skipped:], batch.query_starts[skipped:]),
        num_sequences,
        scoring.scale,
        scoring.soft_cap,
        scoring.window,
        batch.block_tables.stride(0),
        scale_stride(cache.key_scale),
        scale_stride(cache.value_scale),
        **extend_constants(query.dtype, group, head_dim, block_size, num_sequences, shape),
        num_warps=shape.num_warps,
        num_stages=shape.num_stages,
        enable_fp_fusion=True,
    )


def extend_constants(
    dtype: torch.dtype, group: int, head_dim: int, block_size: int, num_sequences: int, shape: ExtendShape
) -> dict[str, Any]:
    return dict(
        GROUP=group,
        M=shape.rows,
        HEAD_DIM=head_dim,
        PADDED_DIM=padded(head_dim),
        BLOCK_SIZE=block_size,
        TILE=shape.tile,
        SEQUENCES=triton.next_power_of_2(num_sequences),
        PRECISION=precision_of(dtype),
    )


def shape_of(dtype: torch.dtype, cache_dtype: torch.dtype, group: int, head_dim: int) -> ExtendShape:
    """What fits into registers (sm_90; `variants.py` has it checked)."""
    is_large = head_dim > 128
    if dtype == torch.float32:
        return ExtendShape(rows=padded(group), tile=16 if is_large else 32, num_warps=8 if is_large else 4, num_stages=3)
    if is_large and cache_dtype == FP8:
        return ExtendShape(rows=max(64, padded(group)), tile=32, num_warps=8, num_stages=3)
    if is_large:
        return ExtendShape(rows=128, tile=32, num_warps=8, num_stages=3)
    return ExtendShape(rows=128, tile=64, num_warps=8, num_stages=5)
