"""Arguments of kernels that belong together, as named tuples: a kernel under @triton.jit reads their members by name.

A member is a tensor or a number where a kernel is launched, a pointer or a scalar inside the kernel, and the name of a type where a
kernel is compiled ahead of time. None is a member that is not there; a kernel can ask for that at compile time. Triton specialises
every number in a tuple for 1 and for multiples of 16, whatever `do_not_specialize` says. So numbers that change from launch to
launch are arguments of their own. No member may be called `values` or `type`: Triton's tuples have attributes of these names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from ..interface import LayerCache


class Heads(NamedTuple):
    """Queries, keys, values or outputs of a step: [num_tokens, num_heads, head_dim], contiguous within a head."""

    data: Any
    row_stride: Any  # numbers from one token to the next
    head_stride: Any  # numbers from one head to the next


class PagedCache(NamedTuple):
    """A `LayerCache`: keys and values [num_blocks, block_size, num_kv_heads, head_dim] with equal strides."""

    key: Any
    value: Any
    key_scale: Any  # float32 [1] or [num_kv_heads], or None
    value_scale: Any
    block_stride: Any  # numbers from one block to the next, from one token of a block to the next, from one KV head to the next
    place_stride: Any
    kv_head_stride: Any


class HeadCache(NamedTuple):
    """What a `PagedCache` holds of one KV head."""

    key: Any  # pointer to the head's first number
    value: Any
    block_stride: Any
    place_stride: Any


def heads_of(tensor: Tensor) -> Heads:
    return Heads(tensor, *tensor.stride()[:2])


def paged_cache_of(cache: LayerCache) -> PagedCache:
    return PagedCache(*cache, *cache.keys.stride()[:3])
