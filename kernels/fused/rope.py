"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), and the step's keys and values put in the cache."""

from __future__ import annotations

import torch
from torch import Tensor

from ..attention.interface import FP8, FP8_MAX, LayerCache, check_cache
from ..backend import Backend, uses_triton
from .interface import HeadNorm, Rotation


def rotate_and_cache(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rotation: Rotation,
    cache: LayerCache,
    slots: Tensor,
    *,
    norm: HeadNorm | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """The queries, normalised if asked and rotated: a new tensor [num_tokens, num_heads, head_dim].

    query: [num_tokens, num_heads, head_dim]; key, value: [num_tokens, num_kv_heads, head_dim]; parts of one array are welcome.
    slots: int32 or int64 [num_tokens], block * block_size + place, where the cache takes each token's key, turned as well, and
    value; nothing is written for a negative slot. An fp8 cache takes them divided by its scales, within its range.
    """
    check_rotation(query, key, value, rotation, cache, slots, norm)
    if not uses_triton(backend, query.device):
        return rotate_and_cache_reference(query, key, value, rotation, cache, slots, norm)
    from .gpu.rope import launch_rotate_and_cache

    return launch_rotate_and_cache(query, key, value, rotation, cache, slots, norm)


def rotate_and_cache_reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rotation: Rotation,
    cache: LayerCache,
    slots: Tensor,
    norm: HeadNorm | None,
) -> Tensor:
    query, turned, value = query.float(), key.float(), value.float()
    if norm is not None:
        query, turned = normalised(query, norm.query_weight, norm), normalised(turned, norm.key_weight, norm)
    block_size = cache.keys.shape[1]
    is_kept = slots >= 0
    block, place = slots[is_kept] // block_size, slots[is_kept] % block_size
    put(cache.keys, block, place, stored(rotated(turned, rotation)[is_kept], cache.keys.dtype, cache.key_scale))
    put(cache.values, block, place, stored(value[is_kept], cache.values.dtype, cache.value_scale))
    return rotated(query, rotation).to(key.dtype)


def normalised(heads: Tensor, weight: Tensor, norm: HeadNorm) -> Tensor:
    return heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + norm.eps) * (weight.float() + norm.weight_offset)


def rotated(heads: Tensor, rotation: Rotation) -> Tensor:
    cosine, sine = rotation.cosine.float()[:, None], rotation.sine.float()[:, None]
    half = cosine.shape[-1]
    turning, staying = heads[..., : 2 * half], heads[..., 2 * half :]
    first, second = (turning[..., 0::2], turning[..., 1::2]) if rotation.is_interleaved else turning.chunk(2, dim=-1)
    turned = first * cosine - second * sine, second * cosine + first * sine
    joined = torch.stack(turned, dim=-1).flatten(-2) if rotation.is_interleaved else torch.cat(turned, dim=-1)
    return torch.cat([joined, staying], dim=-1)


def stored(heads: Tensor, dtype: torch.dtype, scale: Tensor | None) -> Tensor:
    if scale is not None:
        heads = heads / scale[:, None]
    return heads.clamp(-FP8_MAX, FP8_MAX).to(dtype) if dtype == FP8 else heads.to(dtype)


def put(array: Tensor, block: Tensor, place: Tensor, heads: Tensor) -> None:
    if array.dtype == FP8:  # torch cannot index fp8 on a CPU
        array, heads = array.view(torch.uint8), heads.view(torch.uint8)
    array[block, place] = heads


def check_rotation(
    query: Tensor, key: Tensor, value: Tensor, rotation: Rotation, cache: LayerCache, slots: Tensor, norm: HeadNorm | None
) -> None:
    """Raises `ValueError` for arrays that do not fit together."""
    check_cache(cache, query.dtype)
    num_tokens, num_kv_heads, head_dim = len(query), *cache.keys.shape[2:]
    if query.ndim != 3 or query.shape[1] % num_kv_heads or query.shape[2] != head_dim:
        raise ValueError(
            f"query must be [num_tokens, num_heads, {head_dim}] with a multiple of {num_kv_heads} heads, got {tuple(query.shape)}"
        )
    for name, heads in (("query", query), ("key", key), ("value", value)):
        if name != "query" and heads.shape != (num_tokens, num_kv_heads, head_dim):
            raise ValueError(f"{name} must be [{num_tokens}, {num_kv_heads}, {head_dim}], got {tuple(heads.shape)}")
        if heads.dtype != query.dtype or heads.stride(2) != 1:
            raise ValueError(f"{name} must be {query.dtype}, like the query, and contiguous within a head, got {heads.dtype}")
    for name, angle in (("cosine", rotation.cosine), ("sine", rotation.sine)):
        if angle.ndim != 2 or len(angle) != num_tokens or 2 * angle.shape[1] > head_dim or not angle.is_contiguous():
            raise ValueError(
                f"{name} must be contiguous [{num_tokens}, half of what turns, at most {head_dim // 2}], "
                f"got {tuple(angle.shape)}"
            )
    if rotation.cosine.shape != rotation.sine.shape or rotation.cosine.dtype != rotation.sine.dtype:
        raise ValueError("cosine and sine must have the same shape and dtype")
    if slots.shape != (num_tokens,) or slots.dtype not in (torch.int32, torch.int64) or not slots.is_contiguous():
        raise ValueError(f"slots must be contiguous int32 or int64 [{num_tokens}], got {slots.dtype} {tuple(slots.shape)}")
    for name, weight in () if norm is None else (("query_weight", norm.query_weight), ("key_weight", norm.key_weight)):
        if weight.shape != (head_dim,) or not weight.is_contiguous():
            raise ValueError(f"{name} must be contiguous [{head_dim}], got {tuple(weight.shape)}")
