"""What both attention kernels do with one tile of keys (FlashAttention: Dao et al. 2022, arXiv:2205.14135)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...triton_support import INTERPRETED, LOG2_E
from .arguments import HeadCache, PagedCache

NO_WINDOW = 2**31 - 1  # a window that every context fits into


@triton.jit
def sequence_of(work, item, SEQUENCES: tl.constexpr):
    """(sequence, its first item) that work item `item` belongs to, when sequence s has work[s] items: [SEQUENCES] int32."""
    sequence = tl.arange(0, SEQUENCES)
    ends = tl.cumsum(work, 0)
    found = tl.sum((ends <= item).to(tl.int32), 0)
    return found, tl.sum(tl.where(sequence < found, work, 0), 0)


@triton.jit
def places(block_table, token, is_used, cache: HeadCache, BLOCK_SIZE: tl.constexpr):
    """[TILE] int64: where the cache keeps each token. 64 bits: a cache has more than 2**31 numbers."""
    block = tl.load(block_table + token // BLOCK_SIZE, mask=is_used, other=0).to(tl.int64)
    return block * cache.block_stride + (token % BLOCK_SIZE).to(tl.int64) * cache.place_stride


@triton.jit
def cache_of_head(cache: PagedCache, kv_head):
    """The `HeadCache` of one KV head."""
    start = kv_head * cache.kv_head_stride
    return HeadCache(cache.key + start, cache.value + start, cache.block_stride, cache.place_stride)


@triton.jit
def as_factor(query, cache):
    """The query in the type in which it is multiplied with keys of the cache: fp16 holds every number of e4m3."""
    if cache.dtype.element_ty == tl.float8e4nv and query.dtype != tl.float32:
        return query.to(tl.float16)
    else:
        return query


@triton.jit
def product(left, right, PRECISION: tl.constexpr):
    """left @ right in fp32. left: [m, k], right: [k, n], fp16, bf16 or fp32."""
    if INTERPRETED:  # it keeps bf16 as 16 bits of integer and would multiply those
        return tl.dot(left.to(tl.float32), right.to(tl.float32))
    else:
        return tl.dot(left, right, input_precision=PRECISION)


@triton.jit
def scores_of(products, scale, soft_cap):
    """(scores, what to multiply them by to have them in units of log2). tanh(x) is 2 * sigmoid(2 * x) - 1."""
    if soft_cap is not None:
        return 2.0 * tl.sigmoid(products * (2.0 * scale / soft_cap)) - 1.0, soft_cap * LOG2_E
    else:
        return products, scale * LOG2_E


@triton.jit
def attend_tile(
    query,  # [M, D]
    cache: HeadCache,
    offsets,  # [N] int64, of the tile's tokens
    is_used,  # [N] bool: the tokens that exist; nothing else is read
    is_seen,  # [M, N] or [1, N] bool
    scale,
    soft_cap,  # or None
    maximum,  # [M] of scores so far
    total,  # [M] sum of exp2(score - maximum)
    accumulator,  # [M, D] sum of exp2(score - maximum) * value
    IS_MASKED: tl.constexpr,  # False: all is used and seen
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One step of the online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867)."""
    dim = tl.arange(0, PADDED_DIM)
    elements = offsets[:, None] + dim[None, :]
    if IS_MASKED or PADDED_DIM != HEAD_DIM:
        is_real = is_used[:, None] & (dim < HEAD_DIM)[None, :]
        keys = tl.load(cache.key + elements, mask=is_real, other=0.0)
        values = tl.load(cache.value + elements, mask=is_real, other=0.0)
    else:
        keys = tl.load(cache.key + elements)
        values = tl.load(cache.value + elements)
    products = product(query, tl.trans(keys.to(query.dtype)), PRECISION)
    scores, unit = scores_of(products, scale, soft_cap)
    if IS_MASKED:
        scores = tl.where(is_seen, scores, float("-inf"))
    new_maximum = tl.maximum(maximum, tl.max(scores, 1) * unit)
    reference = tl.where(new_maximum == float("-inf"), 0.0, new_maximum)  # a query may have seen nothing yet
    weights = tl.exp2(scores * unit - reference[:, None])
    decay = tl.exp2(maximum - reference)
    accumulator = accumulator * decay[:, None] + product(weights.to(query.dtype), values.to(query.dtype), PRECISION)
    return new_maximum, total * decay + tl.sum(weights, 1), accumulator


def precision_of(dtype: torch.dtype) -> str:
    """How the matrix units multiply: fp32 as three products of tf32, which is as exact as fp32 but for the last bits."""
    return "tf32x3" if dtype == torch.float32 else "tf32"


def padded(size: int) -> int:
    """The block that holds this many numbers: a power of two, and no less than the matrix units take."""
    return max(16, triton.next_power_of_2(size))


def scale_stride(scale: Tensor | None) -> int:
    """From one KV head's scale to the next: one scale may serve all."""
    return 0 if scale is None or len(scale) == 1 else scale.stride(0)
