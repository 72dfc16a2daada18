"""Paged attention in plain PyTorch, one sequence after the other, in fp32: the truth for the kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from .interface import LayerCache, PagedBatch, Scoring, check_attention


def paged_attention(
    query: Tensor, cache: LayerCache, batch: PagedBatch, scoring: Scoring, *, out: Tensor | None = None
) -> Tensor:
    """`kernels.attention.paged_attention` in plain PyTorch, one sequence after another.

    query: [num_tokens, num_heads, head_dim] fp32, bf16 or fp16; heads of one KV head are neighbours.
    out: like query, filled and returned; rows that belong to no sequence are left as they are. None: a new tensor.
    """
    check_attention(query, cache, batch, scoring)
    out = torch.zeros_like(query) if out is None else out
    starts = batch.query_starts.tolist()
    for sequence, context_length in enumerate(batch.context_lengths.tolist()):
        start, stop = starts[sequence : sequence + 2]
        if context_length == 0:
            out[start:stop] = 0
        elif start < stop:
            position = torch.arange(context_length - (stop - start), context_length, device=query.device)
            token = seen_by_any(position, scoring.window)
            keys, values = gather(cache, batch.block_tables[sequence], token)
            seen = visible(position, token, scoring.window)
            out[start:stop] = attend(query[start:stop].float(), keys, values, seen, scoring).to(out.dtype)
    return out


def seen_by_any(position: Tensor, window: int | None) -> Tensor:
    """[num_keys]: the tokens that a query at one of the positions sees; what is before a window may be gone."""
    first = 0 if window is None else max(0, int(position[0]) - window + 1)
    return torch.arange(first, int(position[-1]) + 1, device=position.device)


def visible(position: Tensor, token: Tensor, window: int | None) -> Tensor:
    """[num_queries, num_keys] bool: a query sees tokens up to its own, the last `window` of them if given."""
    seen = token <= position[:, None]
    return seen if window is None else seen & (token > position[:, None] - window)


def gather(cache: LayerCache, block_table: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values of some tokens of one sequence, each float32 [num_keys, num_kv_heads, head_dim]."""
    block_size, num_kv_heads = cache.keys.shape[1:3]
    block, place = block_table[token // block_size].long(), token % block_size
    keys, values = cache.keys[block, place].float(), cache.values[block, place].float()
    if cache.key_scale is not None:
        keys = keys * cache.key_scale.expand(num_kv_heads)[:, None]
    if cache.value_scale is not None:
        values = values * cache.value_scale.expand(num_kv_heads)[:, None]
    return keys, values


def attend(query: Tensor, keys: Tensor, values: Tensor, seen: Tensor, scoring: Scoring) -> Tensor:
    """[num_queries, num_heads, head_dim]."""
    num_heads, num_kv_heads = query.shape[1], keys.shape[1]
    keys = keys.repeat_interleave(num_heads // num_kv_heads, dim=1)
    values = values.repeat_interleave(num_heads // num_kv_heads, dim=1)
    scores = torch.einsum("qhd,khd->hqk", query, keys) * scoring.scale
    if scoring.soft_cap is not None:
        scores = scoring.soft_cap * torch.tanh(scores / scoring.soft_cap)
    scores = scores.masked_fill(~seen, float("-inf"))
    if scoring.sinks is not None:
        scores = torch.cat([scores, scoring.sinks[:, None, None].expand(-1, len(query), 1)], dim=-1)
    weights = scores.softmax(-1)[:, :, : len(keys)]
    return torch.einsum("hqk,khd->qhd", weights, values)
