"""Attention over a paged KV cache in plain PyTorch, for a ragged batch of decodes and prefill chunks.

A block table lists the cache blocks of one sequence in order: token i lives in block table[i // block_size] at place
i % block_size. Tokens of all sequences are packed along one axis, rows that decode first, then those with few new tokens (drafts to
be checked, forced text, ends of prompts). Both share padded gathers and `scaled_dot_product_attention` calls: one for all on a GPU,
on a CPU one for as many rows as fit its cache (64 rows of 500 tokens: 27 instead of 107 ms a layer). Longer chunks of prompts,
whose lengths differ widely, go one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .attend import PLAIN, Attend, Scoring, Visible, fused

CPU_GATHER_BYTES = 1 << 20  # of keys, and as many of values, gathered at once
MAX_SHORT = 16  # new tokens of a sequence that is attended together with others
Span = tuple[int, int, Sequence[int]]  # of one sequence: tokens in the cache, new tokens, block table


@dataclass(frozen=True, slots=True)
class Chunks:
    """Positions fall into chunks of `size` tokens, and a query sees the tokens of its own only: Llama 4."""

    size: int


Window = int | Chunks | None  # how far back a query sees: that many tokens, itself included; its chunk; everything


class LayerShape(NamedTuple):
    """What the cache holds of one token in one layer. Without a width of their own values are the keys' first columns."""

    num_kv_heads: int
    key_dim: int
    value_dim: int


def kv_block_bytes(layers: Sequence[LayerShape], block_size: int, dtype: torch.dtype) -> int:
    """Memory that one block of the cache takes."""
    return block_size * dtype.itemsize * sum(heads * (key_dim + value_dim) for heads, key_dim, value_dim in layers)


@dataclass(frozen=True, slots=True)
class KVCache:
    """Keys and values of every layer, [num_blocks, block_size, num_kv_heads, head_dim] each.

    Layers may differ in heads and widths. Values of width 0 are not stored: they are the first columns of the keys (the
    latent cache of DeepSeek's attention). A contiguous cache is one whose blocks are as long as the longest sequence.
    Blocks are reused without being cleared. They start as zeros because masked places still meet a weight of 0: a
    NaN there would not vanish.
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @classmethod
    def allocate(
        cls, num_layers: int, shape: tuple[int, int, int, int], dtype: torch.dtype, device: torch.device
    ) -> KVCache:
        """Layers all alike: `shape` is [num_blocks, block_size, num_kv_heads, head_dim]."""
        num_blocks, block_size, num_kv_heads, head_dim = shape
        layers = [LayerShape(num_kv_heads, head_dim, head_dim)] * num_layers
        return cls.of_layers(layers, num_blocks, block_size, dtype, device)

    @classmethod
    def of_layers(
        cls, layers: Sequence[LayerShape], num_blocks: int, block_size: int, dtype: torch.dtype, device: torch.device
    ) -> KVCache:
        zeros = partial(_lazy_zeros if device.type == "cpu" else torch.zeros, dtype=dtype, device=device)
        keys = tuple(zeros((num_blocks, block_size, layer.num_kv_heads, layer.key_dim)) for layer in layers)
        values = tuple(zeros((num_blocks, block_size, layer.num_kv_heads, layer.value_dim)) for layer in layers)
        return cls(keys, values)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors; their first axis is the block."""
        return (*self.keys, *self.values)

    @property
    def block_size(self) -> int:
        return self.keys[0].shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.keys[0].dtype

    @property
    def device(self) -> torch.device:
        return self.keys[0].device

    @property
    def tokens_per_gather(self) -> int | None:
        """How many tokens' keys to gather at once; None = any number."""
        token_bytes = self.keys[0][0, 0].numel() * self.dtype.itemsize
        return CPU_GATHER_BYTES // token_bytes if self.device.type == "cpu" else None


class Padding(NamedTuple):
    """Sequences with several new tokens, padded to the same number."""

    width: int  # new tokens of each
    sources: Tensor  # int64 [sequences * width]: the token that stands at each place; a sequence's last one also behind it
    places: Tensor  # int64 [tokens]: where each token stands


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Tokens `start:stop` of the packed batch, of sequences that are attended together: one new token each, unless padded."""

    start: int
    stop: int
    max_context: int  # longest context among them, in tokens
    block_tables: Tensor  # int64 [sequences, ceil(max_context / block_size)], padded with block 0
    bias: Mapping[Window, Tensor | None]  # window -> float [sequences, 1, width, max_context]; None = every row sees all
    run: int | None = None  # where each row has one block, and these follow one another: the first of them
    padding: Padding | None = None


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """One sequence's chunk: rows `start:stop` of the packed batch continue a context of `num_past` tokens."""

    start: int
    stop: int
    num_past: int
    block_table: Tensor  # int64 [ceil((num_past + stop - start) / block_size)]
    bias: Mapping[Window, Tensor | None]  # window -> float [chunk, context]; None = plain causal
    run: int | None = None  # the block, where the sequence has only one


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Where this step's keys go and what each query sees; built once per step and shared by all layers."""

    slots: Tensor  # int64 [num_tokens]: block * block_size + place, for writing
    decodes: tuple[DecodeGroup, ...]  # these come first in the batch; those with few new tokens among them
    prefills: tuple[PrefillChunk, ...]
    attend: Attend = fused


def plan_attention(
    spans: Sequence[Span], cache: KVCache, windows: frozenset[Window], attend: Attend = fused
) -> AttentionPlan:
    """Plan a step for sequences of which those with one new token come first."""
    num_decodes = sum(1 for _, num_new, _ in spans if num_new == 1)
    assert all(num_new == 1 for _, num_new, _ in spans[:num_decodes]), "decodes come first"
    short = list(takewhile(lambda span: span[1] <= MAX_SHORT, spans[num_decodes:]))
    short = short if len(short) > 1 else []
    first_long = num_decodes + len(short)
    groups = [*_decode_groups(spans[:num_decodes], cache, windows), *_short_groups(short, num_decodes, cache, windows)]
    return AttentionPlan(
        slots=_to_device(np.concatenate([_slots(*span, cache.block_size) for span in spans]), cache.device),
        decodes=tuple(groups),
        prefills=tuple(_prefill_chunks(spans[first_long:], groups[-1].stop if groups else 0, cache, windows)),
        attend=attend,
    )


def paged_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cache: KVCache,
    layer: int,
    plan: AttentionPlan,
    window: Window,
    *,
    scoring: Scoring = PLAIN,
    sinks: Tensor | None = None,
) -> Tensor:
    """Store this step's keys and values, then attend.

    query [num_tokens, num_heads, head_dim]; key [num_tokens, num_kv_heads, head_dim], both rotated already; value
    [num_tokens, num_kv_heads, value_dim], the first columns of key itself where the cache stores no values; sinks
    [num_heads]. Returns [num_tokens, num_heads, value_dim]. Query i sees the tokens up to its own, within its window.
    Modifies the layer's cache at `plan.slots`.
    """
    keys, values = cache.keys[layer], cache.values[layer]
    keys.view(-1, *keys.shape[2:]).index_copy_(0, plan.slots, key)
    if values.shape[-1]:
        values.view(-1, *values.shape[2:]).index_copy_(0, plan.slots, value)
    task = _LayerTask(keys, values, value.shape[-1], window, sinks, scoring, plan.attend)
    outputs = [_attend_decodes(query[group.start : group.stop], group, task) for group in plan.decodes]
    outputs += [_attend_prefill(query[chunk.start : chunk.stop], chunk, task) for chunk in plan.prefills]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


@dataclass(frozen=True, slots=True)
class _LayerTask:
    """What all groups and chunks of one layer share."""

    keys: Tensor
    values: Tensor
    value_dim: int
    window: Window
    sinks: Tensor | None
    scoring: Scoring
    attend: Attend

    def gather(self, tables: Tensor, num_tokens: int, run: int | None) -> tuple[Tensor, Tensor]:
        """Keys and values [num_rows, num_tokens, num_kv_heads, ...] of the blocks that `tables` lists; views of a run."""
        key = _gather(self.keys, tables, num_tokens, run)
        stored = self.values.shape[-1]
        return key, _gather(self.values, tables, num_tokens, run) if stored else key[..., : self.value_dim]

    def sinks_of(self, *shape: int) -> Tensor | None:
        return None if self.sinks is None else self.sinks.view(shape)


def _attend_decodes(query: Tensor, group: DecodeGroup, task: _LayerTask) -> Tensor:
    """All rows in one call; the queries that share a key-value head take the place of query positions."""
    if group.padding is not None:
        return _attend_padded(query, group, group.padding, task)
    num_rows, num_heads, head_dim = query.shape
    num_kv_heads = task.keys.shape[2]
    grouped = query.view(num_rows, num_kv_heads, num_heads // num_kv_heads, head_dim)
    key, value = (kv.transpose(1, 2) for kv in task.gather(group.block_tables, group.max_context, group.run))
    bias = group.bias[task.window]  # key, value: [rows, kv_heads, context, ...]
    if bias is not None:
        bias = bias.expand(-1, -1, grouped.shape[2], -1)
    sinks = task.sinks_of(1, num_kv_heads, -1, 1)
    attended = task.attend(grouped, key, value, Visible(bias), sinks, task.scoring)
    return attended.reshape(num_rows, num_heads, task.value_dim)


def _attend_padded(query: Tensor, group: DecodeGroup, padding: Padding, task: _LayerTask) -> Tensor:
    """The same with `width` positions for each query head, heads outside positions: [rows, kv_heads, heads * width, ...]."""
    num_heads, head_dim = query.shape[1:]
    num_kv_heads, width = task.keys.shape[2], padding.width
    heads = num_heads // num_kv_heads
    padded = query.index_select(0, padding.sources).view(-1, width, num_kv_heads, heads, head_dim)
    grouped = padded.permute(0, 2, 3, 1, 4).flatten(2, 3)
    key, value = (kv.transpose(1, 2) for kv in task.gather(group.block_tables, group.max_context, group.run))
    bias = group.bias[task.window]
    if bias is not None:
        bias = bias[:, :, None].expand(-1, -1, heads, -1, -1).flatten(2, 3)
    sinks = task.sinks_of(1, num_kv_heads, heads, 1, 1)
    if sinks is not None:
        sinks = sinks.expand(-1, -1, -1, width, -1).flatten(2, 3)
    attended = task.attend(grouped, key, value, Visible(bias), sinks, task.scoring)
    unpadded = attended.unflatten(2, (heads, width)).permute(0, 3, 1, 2, 4).reshape(-1, num_heads, task.value_dim)
    return unpadded.index_select(0, padding.places)


def _attend_prefill(query: Tensor, chunk: PrefillChunk, task: _LayerTask) -> Tensor:
    """One sequence; key-value heads are the batch axis, so sharing them among queries needs no copy."""
    num_new, num_heads, head_dim = query.shape
    num_kv_heads = task.keys.shape[2]
    shared = (num_kv_heads, num_heads // num_kv_heads, -1, -1)
    gathered = task.gather(chunk.block_table[None], chunk.num_past + num_new, chunk.run)
    key, value = (kv[0].transpose(0, 1)[:, None].expand(shared) for kv in gathered)
    grouped = query.view(num_new, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3)  # [kv_heads, group, chunk, head_dim]
    bias = chunk.bias[task.window]
    sinks = task.sinks_of(num_kv_heads, -1, 1, 1)
    attended = task.attend(grouped, key, value, Visible(bias, is_causal=bias is None), sinks, task.scoring)
    return attended.permute(2, 0, 1, 3).reshape(num_new, num_heads, task.value_dim)


def _gather(blocks: Tensor, tables: Tensor, num_tokens: int, run: int | None) -> Tensor:
    """[num_rows, num_tokens, num_kv_heads, head_dim] from the blocks that `tables` [num_rows, num_blocks] lists.

    A contiguous cache has one block for each sequence: nothing beyond `num_tokens` is copied, and nothing at all of a run.
    """
    num_rows, num_blocks = tables.shape
    if run is not None:
        return blocks[run : run + num_rows, :num_tokens]
    if num_blocks == 1:
        return blocks[:, :num_tokens].index_select(0, tables[:, 0])
    found = blocks.flatten(1).index_select(0, tables.flatten())  # whole blocks are long runs: fast to copy
    return found.view(num_rows, num_blocks * blocks.shape[1], *blocks.shape[2:])[:, :num_tokens]


def _decode_groups(spans: Sequence[Span], cache: KVCache, windows: frozenset[Window]) -> Iterator[DecodeGroup]:
    contexts = np.array([num_past + 1 for num_past, _, _ in spans], dtype=np.int64)
    for start, stop in _cuts(contexts.tolist(), cache.tokens_per_gather):
        members = contexts[start:stop]
        longest = int(members.max())
        tables = _padded_tables(spans[start:stop], longest, cache.block_size)
        bias = {window: _decode_bias(members, window, cache) for window in windows}
        yield DecodeGroup(start, stop, longest, _to_device(tables, cache.device), bias, _run(tables))


def _short_groups(
    spans: Sequence[Span], first_token: int, cache: KVCache, windows: frozenset[Window]
) -> Iterator[DecodeGroup]:
    """Groups of sequences with a few new tokens each; `first_token` is where the first of them stands in the batch."""
    contexts = [num_past + num_new for num_past, num_new, _ in spans]
    for start, stop in _cuts(contexts, cache.tokens_per_gather):
        members, longest = spans[start:stop], max(contexts[start:stop])
        past, new = (np.array([span[part] for span in members]) for part in (0, 1))
        offset = np.minimum(np.arange(new.max()), new[:, None] - 1)  # [sequences, width]
        begins = np.cumsum(new) - new
        is_token = np.arange(new.max()) < new[:, None]
        padding = Padding(
            int(new.max()),
            _to_device((begins[:, None] + offset).ravel(), cache.device),
            _to_device(np.flatnonzero(is_token.ravel()), cache.device),
        )
        tables = _padded_tables(members, longest, cache.block_size)
        bias = {window: _short_bias(past[:, None] + offset, longest, window, cache) for window in windows}
        last_token = first_token + int(new.sum())
        yield DecodeGroup(first_token, last_token, longest, _to_device(tables, cache.device), bias, _run(tables), padding)
        first_token = last_token


def _padded_tables(spans: Sequence[Span], longest: int, block_size: int) -> np.ndarray:
    """int64 [sequences, blocks of the longest]."""
    tables = np.zeros((len(spans), -(-longest // block_size)), dtype=np.int64)
    for row, (_, _, table) in enumerate(spans):
        used = table[: tables.shape[1]]
        tables[row, : len(used)] = used
    return tables


def _short_bias(positions: np.ndarray, longest: int, window: Window, cache: KVCache) -> Tensor:
    """positions [sequences, width] of the queries -> [sequences, 1, width, longest]."""
    key, first = np.arange(longest), _first_visible(positions, window)
    visible = (key <= positions[..., None]) & (key >= first[..., None])
    return _bias(visible[:, None], cache)


def _run(tables: np.ndarray) -> int | None:
    """The first of the rows' blocks, where each row has one and they follow one another."""
    if tables.shape[1] != 1 or (np.diff(tables[:, 0]) != 1).any():
        return None
    return int(tables[0, 0])


def _cuts(contexts: Sequence[int], limit: int | None) -> Iterator[tuple[int, int]]:
    """Split rows into runs whose padded contexts together stay within `limit` tokens, at least one row each."""
    start, longest = 0, 0
    for row, context in enumerate(contexts):
        longest = max(longest, context)
        if limit is not None and row > start and longest * (row + 1 - start) > limit:
            yield start, row
            start, longest = row, context
    if contexts:
        yield start, len(contexts)


def _prefill_chunks(
    spans: Sequence[Span], start: int, cache: KVCache, windows: frozenset[Window]
) -> Iterator[PrefillChunk]:
    for num_past, num_new, table in spans:
        used = np.array(table[: -(-(num_past + num_new) // cache.block_size)], dtype=np.int64)
        bias = {window: _prefill_bias(num_past, num_new, window, cache) for window in windows}
        yield PrefillChunk(start, start + num_new, num_past, _to_device(used, cache.device), bias, _run(used[None]))
        start += num_new


def _decode_bias(contexts: np.ndarray, window: Window, cache: KVCache) -> Tensor | None:
    longest = int(contexts.max())
    first = _first_visible(contexts - 1, window)
    if contexts.min() == longest and not first.any():
        return None
    position = np.arange(longest)
    visible = (position < contexts[:, None]) & (position >= first[:, None])
    return _bias(visible[:, None, None, :], cache)


def _prefill_bias(num_past: int, num_new: int, window: Window, cache: KVCache) -> Tensor | None:
    context = num_past + num_new
    query, key = np.arange(num_past, context), np.arange(context)
    first = _first_visible(query, window)
    if num_past == 0 and not first.any():
        return None
    visible = (key <= query[:, None]) & (key >= first[:, None])
    return _bias(visible, cache)


def _first_visible(positions: np.ndarray, window: Window) -> np.ndarray:
    """The first position that a query at each of `positions` sees."""
    if window is None:
        return np.zeros_like(positions)
    if isinstance(window, Chunks):
        return positions // window.size * window.size
    return np.maximum(positions - window + 1, 0)


def _bias(visible: np.ndarray, cache: KVCache) -> Tensor:
    """0 where visible, -inf elsewhere: added to the scores."""
    bias = torch.from_numpy(np.where(visible, np.float32(0), np.float32("-inf")))
    return bias.to(cache.device, cache.dtype, non_blocking=True)


def _slots(num_past: int, num_new: int, table: Sequence[int], block_size: int) -> np.ndarray:
    """Where the new tokens of one sequence go, int64 [num_new]."""
    if num_new == 1:
        return np.array([table[num_past // block_size] * block_size + num_past % block_size], dtype=np.int64)
    position = np.arange(num_past, num_past + num_new)
    return np.array(table, dtype=np.int64)[position // block_size] * block_size + position % block_size


def _to_device(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)


def _lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros whose memory pages are taken at the first write: a generous cache costs a small run nothing."""
    itemsize = torch.empty((), dtype=dtype).element_size()
    if 0 in shape:
        return torch.zeros(shape, dtype=dtype, device=device)
    raw = np.zeros(int(np.prod(shape)) * itemsize, dtype=np.uint8)
    return torch.from_numpy(raw).to(device).view(dtype).view(shape)
