"""Plans for the kernels of `kernels/attention`: which batch of sequences each layer sees, and which layers they do not cover.

A layer is covered when its keys and values are alike and heads at most 256 wide, and when its chunks of attention (Llama 4) are
whole blocks: a chunk is then a sequence of its own, whose block table begins at the chunk. Other layers (DeepSeek's latent
attention, 576 wide) are computed in plain PyTorch, by the plan of `paged.py`, which is made only if there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor

from ...kernels import attention as kernels
from ...kernels.attention import LayerCache, PagedBatch
from ...kernels.attention.interface import MAX_HEAD_DIM
from ...kernels.cpu import between
from ..kv_cache.tensors import KVCache
from .decode_batch import DecodeBatch
from .methods import Attend, fused
from .paged import (
    MAX_SHORT,
    AttentionPlan,
    Chunks,
    LayerCall,
    Plan,
    Span,
    Window,
    count_decodes,
    padded_tables,
    plan_attention,
    plan_decode,
    slots_of,
    slots_of_batch,
    to_device,
)


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """A plan for the kernels, and one for what they do not cover."""

    slots: Tensor
    batches: Mapping[Chunks | None, PagedBatch]  # None: whole sequences; else their chunks of that size
    plain: AttentionPlan | None

    def attend(self, query: Tensor, cache: KVCache, call: LayerCall) -> Tensor:
        window = call.window
        if not covers(cache, call.layer, window):
            assert self.plain is not None, "the windows that layers ask for are not those of the plan"
            return self.plain.attend(query, cache, call)
        scoring = kernels.Scoring(
            scale=query.shape[-1] ** -0.5 if call.scoring.scale is None else call.scoring.scale,
            window=window if isinstance(window, int) else None,
            soft_cap=call.scoring.softcap,
            sinks=None if call.sinks is None else call.sinks.float(),
        )
        batch = self.batches[window if isinstance(window, Chunks) else None]
        return kernels.paged_attention(query, layer_cache(cache, call.layer), batch, scoring, backend="triton")


class CompiledPlan:
    """A plan for the compiled code of `kernels/cpu`, which attends sequences with few new tokens: each token is a row that sees
    those before it. For longer chunks, and for layers that it does not cover, there are plans for plain PyTorch, made when they
    are first asked for."""

    def __init__(self, spans: Sequence[Span], cache: KVCache, windows: Iterable[Window]) -> None:
        self._spans, self._cache, self._windows = spans, cache, tuple(windows)
        short = few_new(spans)
        counts = [num_new for _, num_new, _ in short]
        lengths = np.concatenate([np.arange(past + 1, past + new + 1, dtype=np.int64) for past, new, _ in short])
        self.num_short, self.num_rows, self.max_tokens = len(short), len(lengths), int(lengths.max())
        tables = padded_tables(short, self.max_tokens, cache.block_size)
        tables = tables if len(lengths) == len(short) else tables.repeat(counts, axis=0)
        self.tables, self.lengths = torch.from_numpy(tables), torch.from_numpy(lengths)
        self.slots = torch.from_numpy(slots_of(spans, cache.block_size))

    @property
    def is_whole(self) -> bool:
        """Every sequence has few new tokens."""
        return self.num_short == len(self._spans)

    def attend(self, query: Tensor, cache: KVCache, call: LayerCall) -> Tensor:
        if not (covers_compiled(cache, call) and query.dtype == torch.float32):
            return self._plain.attend(query, cache, call)
        scale = query.shape[-1] ** -0.5 if call.scoring.scale is None else call.scoring.scale
        memory, window = (cache.keys[call.layer], cache.values[call.layer]), call.window if isinstance(call.window, int) else None
        short = between.attend(query[: self.num_rows], memory, self.tables, self.lengths, self.max_tokens, scale, window)
        return short if self.is_whole else torch.cat((short, self._rest.attend(query[self.num_rows :], cache, call)))

    @cached_property
    def _plain(self) -> AttentionPlan:
        return plan_attention(self._spans, self._cache, self._windows)

    @cached_property
    def _rest(self) -> AttentionPlan:
        return plan_attention(self._spans[self.num_short :], self._cache, self._windows)


def few_new(spans: Sequence[Span]) -> list[Span]:
    """The sequences with few new tokens that come before all others."""
    return list(takewhile(lambda span: span[1] <= MAX_SHORT, spans))


def covers_compiled(cache: KVCache, call: LayerCall) -> bool:
    """Whether compiled code attends to this layer of the cache."""
    keys, values = cache.keys[call.layer], cache.values[call.layer]
    is_plain = call.sinks is None and call.scoring.softcap is None and not isinstance(call.window, Chunks)
    is_stored = cache.dtype == torch.float32 and keys.dtype == values.dtype and keys.dtype in between.CACHES
    return is_plain and is_stored and keys.shape == values.shape and between.fits(keys.shape[-1])


def covers(cache: KVCache, layer: int, window: Window) -> bool:
    """Whether the kernels attend to this layer of the cache, see above."""
    keys, values = cache.keys[layer], cache.values[layer]
    is_whole = not isinstance(window, Chunks) or window.size % cache.block_size == 0
    return is_whole and keys.shape == values.shape and keys.shape[-1] <= MAX_HEAD_DIM


def layer_cache(cache: KVCache, layer: int) -> LayerCache:
    return LayerCache(cache.keys[layer], cache.values[layer])


def step_plan(
    spans: Sequence[Span],
    cache: KVCache,
    windows: Iterable[Window],
    method: Attend,
    uses_triton: bool,
    is_compiled: bool = False,
) -> Plan:
    """How a step attends: by the kernels where Triton is used and the method is `fused`, else in plain PyTorch.

    `is_compiled`: sequences with few new tokens by the compiled code of `kernels/cpu`, where it covers a layer and the method is
    `fused`.
    """
    windows = set(windows)
    if not uses_triton or method is not fused or not _covers_any(cache, windows):
        if is_compiled and method is fused and few_new(spans):
            return CompiledPlan(spans, cache, windows)
        return plan_attention(spans, cache, windows, method)
    plain = None if _covers_all(cache, windows) else plan_attention(spans, cache, windows, method)
    slots = plain.slots if plain else to_device(slots_of(spans, cache.block_size), cache.device)
    num_decodes = count_decodes(spans)
    batches = {
        chunks: _paged_batch(_pieces(spans, chunks, cache.block_size), num_decodes, cache)
        for chunks in _chunk_sizes(cache, windows)
    }
    return KernelPlan(slots, batches, plain)


def decode_plan(
    batch: DecodeBatch, cache: KVCache, windows: Iterable[Window], method: Attend, uses_triton: bool
) -> Plan:
    """`step_plan` for a decode step whose input is on the device. It asks nothing of the device."""
    windows = set(windows)
    if not uses_triton or method is not fused or not _covers_any(cache, windows):
        return plan_decode(batch, cache, windows, method)
    plain = None if _covers_all(cache, windows) else plan_decode(batch, cache, windows, method)
    slots = plain.slots if plain else slots_of_batch(batch, cache)
    batches = {chunks: _decoding(batch, chunks) for chunks in _chunk_sizes(cache, windows)}
    return KernelPlan(slots, batches, plain)


def _covers_any(cache: KVCache, windows: set[Window]) -> bool:
    return any(covers(cache, layer, window) for layer in range(len(cache.keys)) for window in windows)


def _covers_all(cache: KVCache, windows: set[Window]) -> bool:
    return all(covers(cache, layer, window) for layer in range(len(cache.keys)) for window in windows)


def _chunk_sizes(cache: KVCache, windows: set[Window]) -> set[Chunks | None]:
    covered = (window for window in windows if _covers_any(cache, {window}))
    return {window if isinstance(window, Chunks) else None for window in covered}


def _pieces(spans: Sequence[Span], chunks: Chunks | None, block_size: int) -> Sequence[Span]:
    """Spans cut where a chunk begins; each piece counts, and lists blocks, from there."""
    if chunks is None:
        return spans
    pieces = []
    for past, new, table in spans:
        first, stop = past, past + new
        while first < stop:
            begin = first // chunks.size * chunks.size
            end = min(stop, begin + chunks.size)
            pieces.append((first - begin, end - first, table[begin // block_size : -(-end // block_size)]))
            first = end
    return pieces


def _paged_batch(spans: Sequence[Span], num_decodes: int, cache: KVCache) -> PagedBatch:
    """The `PagedBatch` of these spans: lengths, query starts and block tables go to the device in one copy."""
    num_past, num_new, tables = zip(*spans, strict=True)
    lengths = np.array(num_past) + np.array(num_new)
    used = -(-lengths // cache.block_size)
    num_spans, width = len(spans), int(used.max())
    packed = np.zeros(num_spans * (width + 2) + 1, dtype=np.int32)
    packed[:num_spans] = lengths
    packed[num_spans + 1 : 2 * num_spans + 1] = np.cumsum(num_new)
    for row, (table, count) in enumerate(zip(tables, used.tolist(), strict=True)):
        start = 2 * num_spans + 1 + row * width
        packed[start : start + count] = table[:count]
    sent = to_device(packed, cache.device)
    block_tables = sent[2 * num_spans + 1 :].view(num_spans, width)
    return PagedBatch(block_tables, sent[:num_spans], sent[num_spans : 2 * num_spans + 1], num_decodes)


def _decoding(batch: DecodeBatch, chunks: Chunks | None) -> PagedBatch:
    if chunks is None:
        return PagedBatch(batch.block_tables, batch.context_lengths, batch.query_starts, len(batch))
    per_chunk, width = chunks.size // batch.block_size, batch.block_tables.shape[1]
    position = batch.positions.clamp_min(0)
    columns = (position // chunks.size * per_chunk)[:, None] + torch.arange(min(per_chunk, width), device=position.device)
    tables = batch.block_tables.gather(1, columns.clamp_max(width - 1))
    lengths = torch.where(batch.context_lengths > 0, position % chunks.size + 1, 0).to(torch.int32)
    return PagedBatch(tables, lengths, batch.query_starts, len(batch))
