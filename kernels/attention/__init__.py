"""Attention over a paged KV cache, for decodes and chunks of prompts in one call.

`interface` has the arrays, `reference` the operation in plain PyTorch, `gpu/` the kernels. All of them mean this:

    for s in range(num_sequences):
        length, start, stop = context_lengths[s], query_starts[s], query_starts[s + 1]
        for row in range(start, stop):                                # the queries are the last tokens of the context
            position = length - stop + row
            first = max(0, position - window + 1) if window else 0
            for head in range(num_heads):
                kv_head = head // (num_heads // num_kv_heads)
                for i in range(first, position + 1):
                    block, place = block_tables[s, i // block_size], i % block_size
                    score[i] = scale * <query[row, head], keys[block, place, kv_head] * key_scale[kv_head]>
                    if soft_cap: score[i] = soft_cap * tanh(score[i] / soft_cap)
                total = sum(exp(score)) + (exp(sinks[head]) if sinks else 0)
                out[row, head] = sum(exp(score[i]) / total * values[block, place, kv_head] * value_scale[kv_head])

A context of length 0 gives zeros. Rows of `out` that belong to no sequence are left as they are. Nothing else of the cache
is read: what lies behind a context, or before its window, may be NaN, and its entry in the block table may be anything.
Products are of the query's dtype and summed in fp32; with an fp8 cache a 16-bit query counts as fp16.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..backend import Backend, uses_triton
from . import reference
from .interface import FP8, LayerCache, PagedBatch, Scoring, check_attention

__all__ = ["FP8", "LayerCache", "PagedBatch", "Scoring", "paged_attention"]


def paged_attention(
    query: Tensor,
    cache: LayerCache,
    batch: PagedBatch,
    scoring: Scoring,
    *,
    out: Tensor | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """Attention as the package docstring defines it, in `out` or a new tensor like query: [num_tokens, num_heads, head_dim].

    query: fp32, bf16 or fp16. The keys and values of the queries' own tokens must be in the cache already. Raises `ValueError`
    for arrays that do not fit together. On a GPU nothing is asked of the device: the call can be captured in a CUDA graph, and
    replayed for other lengths, tables and query starts of the same shapes.
    """
    if not uses_triton(backend, query.device):
        return reference.paged_attention(query, cache, batch, scoring, out=out)
    from .gpu import decode, extend

    check_attention(query, cache, batch, scoring)
    out = torch.empty_like(query) if out is None else out
    rows = slice(0, batch.num_decodes)
    if batch.num_decodes:
        decode.decode_attention(
            query[rows], cache, batch.block_tables[rows], batch.context_lengths[rows], scoring, out[rows]
        )
    if batch.num_decodes < len(batch.block_tables):
        extend.extend_attention(query, cache, batch, scoring, out)
    return out
