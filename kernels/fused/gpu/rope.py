"""Rotation and cache write, one program per token and KV head: the queries that share it, its key, its value."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ...attention.gpu.arguments import Heads, PagedCache, heads_of, paged_cache_of
from ...attention.gpu.tiles import scale_stride
from ...attention.interface import LayerCache
from ...triton_support import INTERPRETED, rounded_to_fp8
from ..interface import HeadNorm, Rotation


@triton.jit
def turn(
    heads,  # pointers to the first number of each head: [H, 1]
    is_head,  # [H, 1] bool
    cosine,  # [1, HALF]
    sine,
    weight,  # pointer, or None for no norm
    norm: HeadNorm,  # or None
    HEAD_DIM: tl.constexpr,
    ROTARY: tl.constexpr,
    PADDED_HALF: tl.constexpr,
    PADDED_REST: tl.constexpr,
    IS_INTERLEAVED: tl.constexpr,
):
    """(first of each pair, second of each pair, what stays), normalised and turned, and their places in a head."""
    pair = tl.arange(0, PADDED_HALF)
    low = (2 * pair if IS_INTERLEAVED else pair)[None, :]
    high = low + 1 if IS_INTERLEAVED else low + ROTARY // 2
    rest = ROTARY + tl.arange(0, PADDED_REST)[None, :]
    is_pair = is_head & (pair < ROTARY // 2)[None, :]
    is_rest = is_head & (rest < HEAD_DIM)
    first = tl.load(heads + low, mask=is_pair, other=0.0).to(tl.float32)
    second = tl.load(heads + high, mask=is_pair, other=0.0).to(tl.float32)
    staying = tl.load(heads + rest, mask=is_rest, other=0.0).to(tl.float32)
    if weight is not None:
        squares = tl.sum(first * first + second * second, 1) + tl.sum(staying * staying, 1)
        factor = tl.rsqrt(squares / HEAD_DIM + norm.eps)[:, None]
        first *= factor * (tl.load(weight + low, mask=is_pair, other=0.0).to(tl.float32) + norm.weight_offset)
        second *= factor * (tl.load(weight + high, mask=is_pair, other=0.0).to(tl.float32) + norm.weight_offset)
        staying *= factor * (tl.load(weight + rest, mask=is_rest, other=0.0).to(tl.float32) + norm.weight_offset)
    return first * cosine - second * sine, second * cosine + first * sine, staying, low, high, rest, is_pair, is_rest


@triton.jit
def store_number(pointers, numbers, scale, mask):
    """What the cache keeps: numbers over scale, if there is one, in its dtype; fp8 within its range."""
    if scale is not None:
        numbers = tl.math.div_rn(numbers, scale)
    if pointers.dtype.element_ty == tl.float8e4nv:
        numbers = tl.clamp(numbers, -448.0, 448.0, propagate_nan=tl.PropagateNan.ALL)
        if INTERPRETED:
            numbers = rounded_to_fp8(numbers)
    tl.store(pointers, numbers.to(pointers.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["key_scale_stride", "value_scale_stride"])
def rotate_and_cache_kernel(
    out,  # [num_tokens, num_heads, HEAD_DIM], contiguous
    query: Heads,
    key: Heads,
    value: Heads,
    cache: PagedCache,
    slots,  # integers [num_tokens]: block * BLOCK_SIZE + place, negative = nothing is written
    cosine,  # [num_tokens, ROTARY / 2], contiguous
    sine,
    norm: HeadNorm,  # or None
    key_scale_stride,
    value_scale_stride,
    GROUP: tl.constexpr,
    PADDED_GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    ROTARY: tl.constexpr,
    PADDED_HALF: tl.constexpr,
    PADDED_REST: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    IS_INTERLEAVED: tl.constexpr,
):
    """One token's queries of one KV head, normalised and turned, and its key, likewise, and value put into the cache.

    For token r, KV head k, and each query head h = k * GROUP + g of that KV head, with place = slots[r]:

        out[r, h, :]        = turn(query[r, h] * query_weight / rms(query[r, h]))
        keys[place, k, :]   = turn(key[r, k] * key_weight / rms(key[r, k])) / key_scale[k]
        values[place, k, :] = value[r, k, :] / value_scale[k]

    turn takes each pair (a, b) of the first ROTARY numbers, with the token's angle of that pair, to
    (a cos - b sin, b cos + a sin). Without norm, or scales, those factors are 1. Launched by `launch_rotate_and_cache` with the
    grid (num_tokens, num_kv_heads).
    """
    row = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    pair = tl.arange(0, PADDED_HALF)[None, :]
    is_angle = pair < ROTARY // 2
    row_cosine = tl.load(cosine + row * (ROTARY // 2) + pair, mask=is_angle, other=1.0).to(tl.float32)
    row_sine = tl.load(sine + row * (ROTARY // 2) + pair, mask=is_angle, other=0.0).to(tl.float32)

    group = tl.arange(0, PADDED_GROUP)[:, None]
    head = kv_head * GROUP + group
    first, second, staying, low, high, rest, is_pair, is_rest = turn(
        query.data + row * query.row_stride + head * query.head_stride, group < GROUP, row_cosine, row_sine,
        None if norm is None else norm.query_weight, norm, HEAD_DIM, ROTARY, PADDED_HALF, PADDED_REST, IS_INTERLEAVED,
    )  # fmt: skip
    target = out + (row * tl.num_programs(1) * GROUP + head) * HEAD_DIM
    tl.store(target + low, first.to(out.dtype.element_ty), mask=is_pair)
    tl.store(target + high, second.to(out.dtype.element_ty), mask=is_pair)
    tl.store(target + rest, staying.to(out.dtype.element_ty), mask=is_rest)

    slot = tl.load(slots + row).to(tl.int64)
    one = tl.zeros((1, 1), tl.int32)
    first, second, staying, low, high, rest, is_pair, is_rest = turn(
        key.data + row * key.row_stride + kv_head * key.head_stride + one, one < tl.where(slot >= 0, 1, 0), row_cosine, row_sine,
        None if norm is None else norm.key_weight, norm, HEAD_DIM, ROTARY, PADDED_HALF, PADDED_REST, IS_INTERLEAVED,
    )  # fmt: skip
    place = (slot // BLOCK_SIZE) * cache.block_stride + (slot % BLOCK_SIZE) * cache.place_stride + kv_head * cache.kv_head_stride
    scale = None if cache.key_scale is None else tl.load(cache.key_scale + kv_head * key_scale_stride)
    store_number(cache.key + place + low, first, scale, is_pair)
    store_number(cache.key + place + high, second, scale, is_pair)
    store_number(cache.key + place + rest, staying, scale, is_rest)

    dim = tl.arange(0, PADDED_DIM)
    is_real = dim < tl.where(slot >= 0, HEAD_DIM, 0)
    source = value.data + row * value.row_stride + kv_head * value.head_stride
    number = tl.load(source + dim, mask=is_real, other=0.0).to(tl.float32)
    scale = None if cache.value_scale is None else tl.load(cache.value_scale + kv_head * value_scale_stride)
    store_number(cache.value + place + dim, number, scale, is_real)


def launch_rotate_and_cache(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rotation: Rotation,
    cache: LayerCache,
    slots: Tensor,
    norm: HeadNorm | None,
) -> Tensor:
    """`rotate_and_cache` in one launch. The arguments are checked."""
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    group, rotary = num_heads // num_kv_heads, 2 * rotation.cosine.shape[1]
    out = query.new_empty(query.shape)
    if not num_tokens:
        return out
    rotate_and_cache_kernel[num_tokens, num_kv_heads](
        out,
        heads_of(query),
        heads_of(key),
        heads_of(value),
        paged_cache_of(cache),
        slots,
        rotation.cosine,
        rotation.sine,
        norm,
        scale_stride(cache.key_scale),
        scale_stride(cache.value_scale),
        **rotation_constants(group, head_dim, rotary, cache.keys.shape[1], rotation.is_interleaved),
        num_warps=warps_for(group, head_dim),
        enable_fp_fusion=True,
    )
    return out


def warps_for(group: int, head_dim: int) -> int:
    """One warp for up to 512 numbers of queries, four for more."""
    return 1 if group * head_dim <= 512 else 4


def rotation_constants(group: int, head_dim: int, rotary: int, block_size: int, is_interleaved: bool) -> dict[str, int]:
    return dict(
        GROUP=group,
        PADDED_GROUP=triton.next_power_of_2(group),
        HEAD_DIM=head_dim,
        PADDED_DIM=triton.next_power_of_2(head_dim),
        ROTARY=rotary,
        PADDED_HALF=triton.next_power_of_2(max(rotary // 2, 1)),
        PADDED_REST=triton.next_power_of_2(max(head_dim - rotary, 1)),
        BLOCK_SIZE=block_size,
        IS_INTERLEAVED=is_interleaved,
    )
