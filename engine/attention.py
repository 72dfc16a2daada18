"""Attention over a paged KV cache in plain PyTorch, for a ragged batch of decodes and prefill chunks.

A block table lists the cache blocks of one sequence in order: token i lives in block table[i // block_size] at place
i % block_size. Tokens of all sequences are packed along one axis, rows that decode first. Decodes share one padded gather and one
`scaled_dot_product_attention`; prefill chunks, whose lengths differ widely, go one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


@dataclass(frozen=True, slots=True)
class KVCache:
    """Keys and values of every layer, [num_blocks, block_size, num_kv_heads, head_dim] each.

    Blocks are reused without being cleared. They start as zeros because masked places still meet a weight of 0: a
    NaN there would not vanish.
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @classmethod
    def allocate(
        cls, num_layers: int, shape: tuple[int, int, int, int], dtype: torch.dtype, device: torch.device
    ) -> KVCache:
        zeros = partial(_lazy_zeros if device.type == "cpu" else torch.zeros, shape, dtype=dtype, device=device)
        return cls(tuple(zeros() for _ in range(num_layers)), tuple(zeros() for _ in range(num_layers)))

    @property
    def block_size(self) -> int:
        return self.keys[0].shape[1]


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """One sequence's chunk: rows `start:stop` of the packed batch continue a context of `num_past` tokens."""

    start: int
    stop: int
    num_past: int
    block_table: Tensor  # int64 [ceil((num_past + stop - start) / block_size)]
    bias: Mapping[int | None, Tensor | None]  # window -> float [chunk, context]; None = plain causal


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Where this step's keys go and what each query sees; built once per step and shared by all layers."""

    slots: Tensor  # int64 [num_tokens]: block * block_size + place, for writing
    num_decodes: int  # rows 0..num_decodes are decodes, one token each
    block_tables: Tensor  # int64 [num_decodes, max_blocks], padded with block 0
    max_context: int  # longest context among the decodes, in tokens
    decode_bias: Mapping[int | None, Tensor | None]  # window -> float [num_decodes, 1, 1, max_context]; None = see all
    prefills: tuple[PrefillChunk, ...]


def plan_attention(
    chunks: Sequence[tuple[int, int, Sequence[int]]],
    block_size: int,
    windows: frozenset[int | None],
    dtype: torch.dtype,
    device: torch.device,
) -> AttentionPlan:
    """Plan a step from (num_past, num_new, block_table) per sequence; all decodes (num_new == 1) come first."""
    num_decodes = sum(1 for _, num_new, _ in chunks if num_new == 1)
    assert all(num_new == 1 for _, num_new, _ in chunks[:num_decodes]), "decodes come first"
    to_device = partial(_to_device, device=device)
    contexts = np.array([num_past + 1 for num_past, _, _ in chunks[:num_decodes]], dtype=np.int64)
    tables = [table[: -(-context // block_size)] for context, (_, _, table) in zip(contexts, chunks, strict=False)]
    return AttentionPlan(
        slots=to_device(_slots(chunks, block_size)),
        num_decodes=num_decodes,
        block_tables=to_device(_padded(tables)),
        max_context=int(contexts.max(initial=0)),
        decode_bias={window: _decode_bias(contexts, window, dtype, device) for window in windows},
        prefills=tuple(_prefill_chunks(chunks, num_decodes, block_size, windows, dtype, device)),
    )


def paged_attention(
    query: Tensor, key: Tensor, value: Tensor, cache: KVCache, layer: int, plan: AttentionPlan, window: int | None
) -> Tensor:
    """Store this step's keys and values, then attend.

    query [num_tokens, num_heads, head_dim]; key, value [num_tokens, num_kv_heads, head_dim], rotated already.
    Returns [num_tokens, num_heads, head_dim]. Query i sees the tokens up to its own, the last `window` of them if given.
    Modifies the layer's cache at `plan.slots`.
    """
    keys, values = cache.keys[layer], cache.values[layer]
    keys.view(-1, *keys.shape[2:]).index_copy_(0, plan.slots, key)
    values.view(-1, *values.shape[2:]).index_copy_(0, plan.slots, value)
    outputs = [_attend_decodes(query[: plan.num_decodes], keys, values, plan, window)] if plan.num_decodes else []
    outputs += [
        _attend_prefill(query[chunk.start : chunk.stop], keys, values, chunk, window) for chunk in plan.prefills
    ]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def _attend_decodes(query: Tensor, keys: Tensor, values: Tensor, plan: AttentionPlan, window: int | None) -> Tensor:
    """All rows in one call; the queries that share a key-value head take the place of query positions."""
    num_rows, num_heads, head_dim = query.shape
    num_kv_heads = keys.shape[2]
    grouped = query.view(num_rows, num_kv_heads, num_heads // num_kv_heads, head_dim)
    key = _gather(keys, plan.block_tables, plan.max_context).transpose(1, 2)  # [rows, kv_heads, context, head_dim]
    value = _gather(values, plan.block_tables, plan.max_context).transpose(1, 2)
    bias = plan.decode_bias[window]
    if bias is not None:
        bias = bias.expand(-1, -1, grouped.shape[2], -1)
    return scaled_dot_product_attention(grouped, key, value, attn_mask=bias).reshape(num_rows, num_heads, head_dim)


def _attend_prefill(query: Tensor, keys: Tensor, values: Tensor, chunk: PrefillChunk, window: int | None) -> Tensor:
    """One sequence; key-value heads are the batch axis, so sharing them among queries needs no copy."""
    num_new, num_heads, head_dim = query.shape
    num_kv_heads = keys.shape[2]
    shared = (num_kv_heads, num_heads // num_kv_heads, -1, head_dim)
    context = chunk.num_past + num_new
    key = _gather(keys, chunk.block_table[None], context)[0].transpose(0, 1)[:, None].expand(shared)
    value = _gather(values, chunk.block_table[None], context)[0].transpose(0, 1)[:, None].expand(shared)
    grouped = query.view(num_new, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3)  # [kv_heads, group, chunk, head_dim]
    bias = chunk.bias[window]
    attended = scaled_dot_product_attention(grouped, key, value, attn_mask=bias, is_causal=bias is None)
    return attended.permute(2, 0, 1, 3).reshape(num_new, num_heads, head_dim)


def _gather(blocks: Tensor, tables: Tensor, num_tokens: int) -> Tensor:
    """[num_rows, num_tokens, num_kv_heads, head_dim] from the blocks that `tables` [num_rows, num_blocks] lists."""
    num_rows, num_blocks = tables.shape
    found = blocks.flatten(1).index_select(0, tables.flatten())  # whole blocks are long runs: fast to copy
    return found.view(num_rows, num_blocks * blocks.shape[1], *blocks.shape[2:])[:, :num_tokens]


def _decode_bias(contexts: np.ndarray, window: int | None, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    if contexts.size == 0:
        return None
    longest = int(contexts.max())
    if contexts.min() == longest and (window is None or longest <= window):
        return None
    position = np.arange(longest)
    visible = position < contexts[:, None]
    if window is not None:
        visible &= position >= contexts[:, None] - window
    return _bias(visible[:, None, None, :], dtype, device)


def _prefill_bias(
    num_past: int, num_new: int, window: int | None, dtype: torch.dtype, device: torch.device
) -> Tensor | None:
    context = num_past + num_new
    if num_past == 0 and (window is None or context <= window):
        return None
    query, key = np.arange(num_past, context)[:, None], np.arange(context)
    visible = key <= query
    if window is not None:
        visible &= key > query - window
    return _bias(visible, dtype, device)


def _bias(visible: np.ndarray, dtype: torch.dtype, device: torch.device) -> Tensor:
    bias = torch.from_numpy(np.where(visible, np.float32(0), np.float32("-inf")))
    return bias.to(device, dtype, non_blocking=True)


def _prefill_chunks(
    chunks: Sequence[tuple[int, int, Sequence[int]]],
    num_decodes: int,
    block_size: int,
    windows: frozenset[int | None],
    dtype: torch.dtype,
    device: torch.device,
) -> list[PrefillChunk]:
    planned, start = [], num_decodes
    for num_past, num_new, table in chunks[num_decodes:]:
        used = np.array(table[: -(-(num_past + num_new) // block_size)], dtype=np.int64)
        bias = {window: _prefill_bias(num_past, num_new, window, dtype, device) for window in windows}
        planned.append(PrefillChunk(start, start + num_new, num_past, _to_device(used, device), bias))
        start += num_new
    return planned


def _slots(chunks: Sequence[tuple[int, int, Sequence[int]]], block_size: int) -> np.ndarray:
    return np.concatenate([_slots_of(*chunk, block_size) for chunk in chunks])


def _slots_of(num_past: int, num_new: int, table: Sequence[int], block_size: int) -> np.ndarray:
    if num_new == 1:
        return np.array([table[num_past // block_size] * block_size + num_past % block_size], dtype=np.int64)
    position = np.arange(num_past, num_past + num_new)
    return np.array(table, dtype=np.int64)[position // block_size] * block_size + position % block_size


def _padded(tables: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.zeros((len(tables), max(map(len, tables), default=0)), dtype=np.int64)
    for row, table in enumerate(tables):
        padded[row, : len(table)] = table
    return padded


def _to_device(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)


def _lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros whose memory pages are taken at the first write: a generous cache costs a small run nothing."""
    itemsize = torch.empty((), dtype=dtype).element_size()
    raw = np.zeros(int(np.prod(shape)) * itemsize, dtype=np.uint8)
    return torch.from_numpy(raw).to(device).view(dtype).view(shape)
