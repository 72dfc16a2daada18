"""What attention over a paged KV cache reads, the same for every implementation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0  # the largest number of e4m3
QUERY_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MAX_HEADS_PER_KV_HEAD = 128
MAX_HEAD_DIM = 256


class LayerCache(NamedTuple):
    """Keys and values of one layer, in blocks that sequences own. With fp8, a stored number times its scale is meant."""

    keys: Tensor  # [num_blocks, block_size, num_kv_heads, head_dim], the query's dtype or float8_e4m3fn
    values: Tensor  # like keys
    key_scale: Tensor | None = None  # float32 [1] or [num_kv_heads]; None = 1
    value_scale: Tensor | None = None


class PagedBatch(NamedTuple):
    """Which tokens belong together. The lengths are read on the device: a launch depends on the shapes alone."""

    block_tables: Tensor  # int32 [num_sequences, max_blocks]; token i lives in block table[i // block_size]
    context_lengths: Tensor  # int32 [num_sequences]: tokens in the cache, the queries' own included; 0 = nobody
    query_starts: Tensor  # int32 [num_sequences + 1]: the queries of sequence s are rows starts[s]:starts[s + 1]
    num_decodes: int = 0  # this many sequences come first and have one query each: row s is sequence s


class Scoring(NamedTuple):
    """How a query weighs keys: softmax of scale * <query, key>, perhaps capped, over what it sees."""

    scale: float
    window: int | None = None  # tokens a query sees, itself included; None = all before it
    soft_cap: float | None = None  # score -> soft_cap * tanh(score / soft_cap) (Gemma 2)
    sinks: Tensor | None = None  # float32 [num_heads]: one more score a head, whose value is 0 (gpt-oss)


def check_attention(query: Tensor, cache: LayerCache, batch: PagedBatch, scoring: Scoring) -> None:
    """Raises `ValueError` for what does not fit together or is not supported. Asks nothing of the device."""
    check_cache(cache, query.dtype)
    num_kv_heads, head_dim = cache.keys.shape[2:]
    if query.ndim != 3 or query.shape[1] % num_kv_heads or query.shape[2] != head_dim:
        raise ValueError(
            f"query must be [num_tokens, num_heads, {head_dim}] with a multiple of {num_kv_heads} heads, got {tuple(query.shape)}"
        )
    if query.stride(2) != 1:
        raise ValueError("query must be contiguous within a head; call contiguous() on it")
    if query.shape[1] // num_kv_heads > MAX_HEADS_PER_KV_HEAD:
        raise ValueError(f"at most {MAX_HEADS_PER_KV_HEAD} heads may share a KV head, got {query.shape[1] // num_kv_heads}")
    if head_dim > MAX_HEAD_DIM:
        raise ValueError(f"head_dim may be at most {MAX_HEAD_DIM}, got {head_dim}")
    check_batch(batch, len(query))
    if not scoring.scale > 0:
        raise ValueError(f"scale must be positive, got {scoring.scale}")
    if scoring.window is not None and scoring.window < 1:
        raise ValueError(f"window must be at least 1, got {scoring.window}; None is no window")
    if scoring.soft_cap is not None and scoring.soft_cap <= 0:
        raise ValueError(f"soft_cap must be positive, got {scoring.soft_cap}; None is no cap")
    if scoring.sinks is not None and (scoring.sinks.shape != query.shape[1:2] or scoring.sinks.dtype != torch.float32):
        raise ValueError(f"sinks must be float32 [{query.shape[1]}], got {scoring.sinks.dtype} {tuple(scoring.sinks.shape)}")


def check_cache(cache: LayerCache, dtype: torch.dtype) -> None:
    """Raises `ValueError` for a cache that queries of this dtype cannot attend to."""
    keys, values = cache.keys, cache.values
    if dtype not in QUERY_DTYPES:
        raise ValueError(f"attention is computed in float32, bfloat16 or float16, got {dtype}")
    if keys.dtype != values.dtype or keys.dtype not in (dtype, FP8):
        raise ValueError(f"the cache must hold {dtype}, like the query, or {FP8}, got {keys.dtype} and {values.dtype}")
    if keys.ndim != 4 or keys.shape != values.shape:
        raise ValueError(
            "keys and values must both be [num_blocks, block_size, num_kv_heads, head_dim], "
            f"got {tuple(keys.shape)} and {tuple(values.shape)}"
        )
    if keys.stride() != values.stride() or keys.stride(3) != 1:
        raise ValueError("keys and values must have the same strides and be contiguous within a head")
    for name, scale in (("key_scale", cache.key_scale), ("value_scale", cache.value_scale)):
        if scale is None:
            continue
        if keys.dtype != FP8:
            raise ValueError(f"{name} belongs to a cache of {FP8}; this one holds {keys.dtype}")
        if scale.dtype != torch.float32 or scale.shape not in ((1,), keys.shape[2:3]):
            raise ValueError(f"{name} must be float32 [1] or [{keys.shape[2]}], got {scale.dtype} {tuple(scale.shape)}")


def check_batch(batch: PagedBatch, num_tokens: int) -> None:
    """Raises `ValueError` for lengths, tables and starts that do not fit together or `num_tokens` queries."""
    num_sequences = len(batch.block_tables)
    if batch.context_lengths.shape != (num_sequences,):
        raise ValueError(f"context_lengths must be [{num_sequences}], got {tuple(batch.context_lengths.shape)}")
    if batch.query_starts.shape != (num_sequences + 1,):
        raise ValueError(f"query_starts must be [{num_sequences + 1}], got {tuple(batch.query_starts.shape)}")
    if not 0 <= batch.num_decodes <= min(num_sequences, num_tokens):
        raise ValueError(
            f"num_decodes must be in [0, {min(num_sequences, num_tokens)}] for {num_sequences} sequences "
            f"with {num_tokens} queries, got {batch.num_decodes}"
        )
    for name in ("block_tables", "context_lengths", "query_starts"):
        if getattr(batch, name).dtype not in (torch.int32, torch.int64):
            raise ValueError(f"{name} must be int32 or int64, got {getattr(batch, name).dtype}")
        if getattr(batch, name).stride(-1) != 1:
            raise ValueError(f"{name} must be contiguous; call contiguous() on it")
