"""Attention over a paged KV cache in plain PyTorch, for a ragged batch of decodes and prefill chunks.

A block table lists the cache blocks of one sequence in order: token i lives in block table[i // block_size] at place
i % block_size. Tokens of all sequences are packed along one axis, rows that decode first, then those with few new tokens (drafts to
be checked, forced text, ends of prompts). Both share padded gathers and `scaled_dot_product_attention` calls: one for all on a GPU,
on a CPU one for as many rows as fit its cache (64 rows of 500 tokens: 27 instead of 107 ms a layer). Longer chunks of prompts,
whose lengths differ widely, go one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..kv_cache.tensors import KVCache
from .decode_batch import DecodeBatch
from .methods import PLAIN, Attend, Scoring, Visible, fused

MAX_SHORT = 16  # new tokens of a sequence that is attended together with others
Positions = TypeVar("Positions", np.ndarray, Tensor)
Span = tuple[int, int, Sequence[int]]  # of one sequence: tokens in the cache, new tokens, block table


@dataclass(frozen=True, slots=True)
class Chunks:
    """Positions fall into chunks of `size` tokens, and a query sees the tokens of its own only: Llama 4."""

    size: int


Window = int | Chunks | None  # how far back a query sees: that many tokens, itself included; its chunk; everything


class LayerCall(NamedTuple):
    """What one layer computes attention of, beside its queries: keys, values and how they are scored."""

    layer: int
    value_dim: int
    window: Window = None
    scoring: Scoring = PLAIN
    sinks: Tensor | None = None  # [num_heads]: the score of one more key, whose value is zero


class Plan(Protocol):
    """Where a step's keys go and what each query sees; built once per step and shared by all layers."""

    @property
    def slots(self) -> Tensor:
        """int64 [num_tokens]: block * block_size + place, for writing; rows that pad have the cache's spare slot."""

    def attend(self, query: Tensor, cache: KVCache, call: LayerCall) -> Tensor:
        """query [num_tokens, num_heads, head_dim] to what is in the cache: [num_tokens, num_heads, value_dim].

        Query i sees the tokens up to its own, within its window.
        """


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
    block_tables: Tensor  # int64 [sequences, ceil(max_context / block_size)], each padded with its last block
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
    """A plan for plain PyTorch: keys and values are gathered, and `method` attends to them."""

    slots: Tensor
    decodes: tuple[DecodeGroup, ...]  # these come first in the batch; those with few new tokens among them
    prefills: tuple[PrefillChunk, ...]
    method: Attend = fused

    def attend(self, query: Tensor, cache: KVCache, call: LayerCall) -> Tensor:
        task = _LayerTask(cache, call, self.method)
        outputs = [_attend_decodes(query[group.start : group.stop], group, task) for group in self.decodes]
        outputs += [_attend_prefill(query[chunk.start : chunk.stop], chunk, task) for chunk in self.prefills]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def plan_attention(
    spans: Sequence[Span], cache: KVCache, windows: Iterable[Window], method: Attend = fused
) -> AttentionPlan:
    """Plan a step for sequences of which those with one new token come first. `windows`: all that layers will ask for."""
    num_decodes = count_decodes(spans)
    short = list(takewhile(lambda span: span[1] <= MAX_SHORT, spans[num_decodes:]))
    short = short if len(short) > 1 else []
    first_long = num_decodes + len(short)
    groups = [*_decode_groups(spans[:num_decodes], cache, windows), *_short_groups(short, num_decodes, cache, windows)]
    return AttentionPlan(
        slots=to_device(slots_of(spans, cache.block_size), cache.device),
        decodes=tuple(groups),
        prefills=tuple(_prefill_chunks(spans[first_long:], groups[-1].stop if groups else 0, cache, windows)),
        method=method,
    )


def plan_decode(batch: DecodeBatch, cache: KVCache, windows: Iterable[Window], method: Attend = fused) -> AttentionPlan:
    """Plan a decode step whose input is on the device: every row gathers all that its block table has room for."""
    position = torch.arange(batch.max_tokens, device=cache.device)
    last = batch.positions[:, None].clamp_min(0)  # a row that pads sees token 0 of some block: no NaN comes out
    bias: dict[Window, Tensor | None] = {}
    for window in windows:
        seen = (position <= last) & (position >= first_seen(last, window))
        unseen = torch.zeros(seen.shape, dtype=cache.dtype, device=cache.device)
        bias[window] = unseen.masked_fill_(~seen, float("-inf"))[:, None, None]
    tables = batch.block_tables.clamp_min(0).long()
    decodes = DecodeGroup(0, len(batch), batch.max_tokens, tables, bias)
    return AttentionPlan(slots_of_batch(batch, cache), (decodes,), (), method)


def slots_of_batch(batch: DecodeBatch, cache: KVCache) -> Tensor:
    """The cache slot of each row, int64 [n]; rows that pad have the spare one."""
    return torch.where(batch.slots < 0, cache.spare_slot, batch.slots).long()


def count_decodes(spans: Sequence[Span]) -> int:
    """How many sequences have one new token; these come first."""
    num_decodes = sum(1 for _, num_new, _ in spans if num_new == 1)
    assert all(num_new == 1 for _, num_new, _ in spans[:num_decodes]), "decodes come first"
    return num_decodes


def paged_attention(
    query: Tensor, key: Tensor, value: Tensor, cache: KVCache, plan: Plan, call: LayerCall
) -> Tensor:
    """Store this step's keys and values, then attend.

    query [num_tokens, num_heads, head_dim]; key [num_tokens, num_kv_heads, head_dim], both rotated already; value
    [num_tokens, num_kv_heads, value_dim], the first columns of key itself where the cache stores no values.
    Returns [num_tokens, num_heads, value_dim]. Modifies the layer's cache at `plan.slots`.
    """
    cache.write(call.layer, plan.slots, key, value)
    return plan.attend(query, cache, call)


@dataclass(frozen=True, slots=True)
class _LayerTask:
    """What all groups and chunks of one layer share."""

    cache: KVCache
    call: LayerCall
    method: Attend

    @property
    def num_kv_heads(self) -> int:
        return self.cache.keys[self.call.layer].shape[2]

    def gather(self, tables: Tensor, num_tokens: int, run: int | None) -> tuple[Tensor, Tensor]:
        """Keys and values [num_rows, num_tokens, num_kv_heads, ...] of the blocks that `tables` lists; views of a run."""
        keys, values = self.cache.keys[self.call.layer], self.cache.values[self.call.layer]
        key = self.cache.gather(keys, tables, num_tokens, run)
        if values.shape[-1]:
            return key, self.cache.gather(values, tables, num_tokens, run)
        return key, key[..., : self.call.value_dim]

    def sinks_of(self, *shape: int) -> Tensor | None:
        return None if self.call.sinks is None else self.call.sinks.view(shape)


def _attend_decodes(query: Tensor, group: DecodeGroup, task: _LayerTask) -> Tensor:
    """Attend all rows in one call: the query heads that share a key-value head take the place of query positions."""
    if group.padding is not None:
        return _attend_padded(query, group, group.padding, task)
    num_rows, num_heads, head_dim = query.shape
    num_kv_heads = task.num_kv_heads
    grouped = query.view(num_rows, num_kv_heads, num_heads // num_kv_heads, head_dim)
    key, value = (kv.transpose(1, 2) for kv in task.gather(group.block_tables, group.max_context, group.run))
    bias = group.bias[task.call.window]  # key, value: [rows, kv_heads, context, ...]
    if bias is not None:
        bias = bias.expand(-1, -1, grouped.shape[2], -1)
    sinks = task.sinks_of(1, num_kv_heads, -1, 1)
    attended = task.method(grouped, key, value, Visible(bias), sinks, task.call.scoring)
    return attended.reshape(num_rows, num_heads, task.call.value_dim)


def _attend_padded(query: Tensor, group: DecodeGroup, padding: Padding, task: _LayerTask) -> Tensor:
    """`_attend_decodes` for rows of `width` queries each: [rows, kv_heads, heads * width, ...], heads outside positions."""
    num_heads, head_dim = query.shape[1:]
    num_kv_heads, width = task.num_kv_heads, padding.width
    heads = num_heads // num_kv_heads
    padded = query.index_select(0, padding.sources).view(-1, width, num_kv_heads, heads, head_dim)
    grouped = padded.permute(0, 2, 3, 1, 4).flatten(2, 3)
    key, value = (kv.transpose(1, 2) for kv in task.gather(group.block_tables, group.max_context, group.run))
    bias = group.bias[task.call.window]
    if bias is not None:
        bias = bias[:, :, None].expand(-1, -1, heads, -1, -1).flatten(2, 3)
    sinks = task.sinks_of(1, num_kv_heads, heads, 1, 1)
    if sinks is not None:
        sinks = sinks.expand(-1, -1, -1, width, -1).flatten(2, 3)
    attended = task.method(grouped, key, value, Visible(bias), sinks, task.call.scoring)
    unpadded = attended.unflatten(2, (heads, width)).permute(0, 3, 1, 2, 4).reshape(-1, num_heads, task.call.value_dim)
    return unpadded.index_select(0, padding.places)


def _attend_prefill(query: Tensor, chunk: PrefillChunk, task: _LayerTask) -> Tensor:
    """Attend one sequence's chunk. Key-value heads are the batch axis, so that queries share them without a copy."""
    num_new, num_heads, head_dim = query.shape
    num_kv_heads = task.num_kv_heads
    shared = (num_kv_heads, num_heads // num_kv_heads, -1, -1)
    gathered = task.gather(chunk.block_table[None], chunk.num_past + num_new, chunk.run)
    key, value = (kv[0].transpose(0, 1)[:, None].expand(shared) for kv in gathered)
    grouped = query.view(num_new, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3)  # [kv_heads, group, chunk, head_dim]
    bias = chunk.bias[task.call.window]
    sinks = task.sinks_of(num_kv_heads, -1, 1, 1)
    attended = task.method(grouped, key, value, Visible(bias, is_causal=bias is None), sinks, task.call.scoring)
    return attended.permute(2, 0, 1, 3).reshape(num_new, num_heads, task.call.value_dim)


def _decode_groups(spans: Sequence[Span], cache: KVCache, windows: Iterable[Window]) -> Iterator[DecodeGroup]:
    contexts = np.array([num_past + 1 for num_past, _, _ in spans], dtype=np.int64)
    for start, stop in _cuts(contexts.tolist(), cache.tokens_per_gather):
        members = contexts[start:stop]
        longest = int(members.max())
        tables = padded_tables(spans[start:stop], longest, cache.block_size)
        bias = {window: _decode_bias(members, window, cache) for window in windows}
        yield DecodeGroup(start, stop, longest, to_device(tables, cache.device), bias, _run(tables))


def _short_groups(
    spans: Sequence[Span], first_token: int, cache: KVCache, windows: Iterable[Window]
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
            to_device((begins[:, None] + offset).ravel(), cache.device),
            to_device(np.flatnonzero(is_token.ravel()), cache.device),
        )
        tables = padded_tables(members, longest, cache.block_size)
        bias = {window: _short_bias(past[:, None] + offset, longest, window, cache) for window in windows}
        last_token = first_token + int(new.sum())
        yield DecodeGroup(first_token, last_token, longest, to_device(tables, cache.device), bias, _run(tables), padding)
        first_token = last_token


def padded_tables(spans: Sequence[Span], longest: int, block_size: int) -> np.ndarray:
    """int64 [sequences, blocks of the longest]. A row pads with its own last block: what others hold may be NaN, also times 0."""
    tables = np.empty((len(spans), -(-longest // block_size)), dtype=np.int64)
    for row, (_, _, table) in enumerate(spans):
        used = table[: tables.shape[1]]
        tables[row, : len(used)], tables[row, len(used) :] = used, used[-1]
    return tables


def _short_bias(positions: np.ndarray, longest: int, window: Window, cache: KVCache) -> Tensor:
    """positions [sequences, width] of the queries -> [sequences, 1, width, longest]."""
    key, first = np.arange(longest), first_seen(positions, window)
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
    spans: Sequence[Span], start: int, cache: KVCache, windows: Iterable[Window]
) -> Iterator[PrefillChunk]:
    for num_past, num_new, table in spans:
        used = np.array(table[: -(-(num_past + num_new) // cache.block_size)], dtype=np.int64)
        bias = {window: _prefill_bias(num_past, num_new, window, cache) for window in windows}
        yield PrefillChunk(start, start + num_new, num_past, to_device(used, cache.device), bias, _run(used[None]))
        start += num_new


def _decode_bias(contexts: np.ndarray, window: Window, cache: KVCache) -> Tensor | None:
    longest = int(contexts.max())
    first = first_seen(contexts - 1, window)
    if contexts.min() == longest and not first.any():
        return None
    position = np.arange(longest)
    visible = (position < contexts[:, None]) & (position >= first[:, None])
    return _bias(visible[:, None, None, :], cache)


def _prefill_bias(num_past: int, num_new: int, window: Window, cache: KVCache) -> Tensor | None:
    context = num_past + num_new
    query, key = np.arange(num_past, context), np.arange(context)
    first = first_seen(query, window)
    if num_past == 0 and not first.any():
        return None
    visible = (key <= query[:, None]) & (key >= first[:, None])
    return _bias(visible, cache)


def first_seen(positions: Positions, window: Window) -> Positions:
    """The first position that a query at each of `positions` sees."""
    if window is None:
        return positions * 0
    if isinstance(window, Chunks):
        return positions // window.size * window.size
    return (positions - window + 1).clip(0)


def _bias(visible: np.ndarray, cache: KVCache) -> Tensor:
    """0 where visible, -inf elsewhere: added to the scores."""
    return to_device(np.where(visible, np.float32(0), np.float32("-inf")), cache.device).to(cache.dtype)


def slots_of(spans: Sequence[Span], block_size: int) -> np.ndarray:
    """Where the new tokens of all sequences go, int64 [num_tokens]."""
    slots: list[int] = []
    for num_past, num_new, table in spans:
        if num_new == 1:
            slots.append(table[num_past // block_size] * block_size + num_past % block_size)
        else:
            position = np.arange(num_past, num_past + num_new)
            slots += (np.array(table, dtype=np.int64)[position // block_size] * block_size + position % block_size).tolist()
    return np.array(slots, dtype=np.int64)


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """The host does not wait for the copy; what it reads from is kept until it is done."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
