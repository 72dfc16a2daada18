"""Launches of the attention kernels that are compiled ahead of time (see `kernels/aot.py`)."""

from __future__ import annotations

import torch

from ..aot import Variant, all_members
from .gpu.arguments import Heads, PagedCache
from .gpu.decode import DecodeShape, Parts, attend_constants, attend_kernel, join_constants, join_kernel
from .gpu.decode import shape_of as decode_shape_of
from .gpu.extend import ExtendShape, Sequences, extend_constants, extend_kernel
from .gpu.extend import shape_of as extend_shape_of
from .interface import FP8

POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16", FP8: "*fp8e4nv"}
REGISTERS = 65536  # of one multiprocessor
SHARED = 227 * 1024  # bytes of one multiprocessor; every program takes 1 KB more than it asks for


def attend_variant(
    dtype: torch.dtype,
    cache_dtype: torch.dtype,
    head_dim: int,
    group: int,
    *,
    block_size: int = 16,
    has_soft_cap: bool = False,
    shape: DecodeShape | None = None,
) -> Variant:
    shape = shape or decode_shape_of(dtype, cache_dtype, group, head_dim)
    arrays = dict(block_tables="*i32", context_lengths="*i32", parts=Parts("*fp32", "*fp32", "*fp32"))
    arrays |= dict(query=heads(dtype), cache=paged_cache(cache_dtype))
    absent = absent_scales(cache_dtype) | ({} if has_soft_cap else {"soft_cap": None})
    return Variant(
        name=f"decode {name_of(dtype)} cache {name_of(cache_dtype)} head {head_dim} group {group} block {block_size}"
        + " capped" * has_soft_cap,
        kernel=attend_kernel,
        types=arrays
        | dict.fromkeys(("num_rows", "window", "table_stride", "scale_stride"), "i32")
        | dict(scale="fp32", soft_cap="fp32"),
        constants=attend_constants(dtype, group, head_dim, block_size, 64, shape.tile) | absent,
        aligned=all_members(arrays, absent),
        num_warps=shape.num_warps,
        num_stages=shape.num_stages,
        fuse=True,
        max_registers=REGISTERS // (shape.programs * shape.num_warps * 32) // 8 * 8,
        max_shared=SHARED // shape.programs - 1024,
        required=("LDGSTS", "HMMA" if group <= 32 else "HGMMA"),
        elements=shape.tile,
    )


def join_variant(head_dim: int, group: int, *, has_scale: bool = False, has_sinks: bool = True) -> Variant:
    arrays = dict(out=heads(torch.bfloat16), parts=Parts("*fp32", "*fp32", "*fp32"), context_lengths="*i32")
    arrays |= dict(value_scale="*fp32", sinks="*fp32")
    absent = ({} if has_scale else {"value_scale": None}) | ({} if has_sinks else {"sinks": None})
    return Variant(
        name=f"join head {head_dim} group {group}" + " scaled" * has_scale + " sinks" * has_sinks,
        kernel=join_kernel,
        types=arrays | dict.fromkeys(("num_rows", "num_programs", "window", "scale_stride"), "i32"),
        constants=join_constants(group, head_dim, 64, 64) | absent,
        aligned=all_members(arrays, absent),
        num_warps=2,
        fuse=True,
    )


def extend_variant(
    dtype: torch.dtype,
    cache_dtype: torch.dtype,
    head_dim: int,
    group: int,
    *,
    block_size: int = 16,
    has_window: bool = False,
    has_soft_cap: bool = False,
    has_sinks: bool = False,
    shape: ExtendShape | None = None,
) -> Variant:
    shape = shape or extend_shape_of(dtype, cache_dtype, group, head_dim)
    arrays = dict(out=heads(dtype), query=heads(dtype), cache=paged_cache(cache_dtype), sinks="*fp32")
    arrays |= dict(sequences=Sequences("*i32", "*i32", "*i32"))
    numbers = ("num_sequences", "window", "table_stride", "key_scale_stride", "value_scale_stride")
    is_given = dict(window=has_window, soft_cap=has_soft_cap, sinks=has_sinks)
    absent = absent_scales(cache_dtype) | {name: None for name, is_there in is_given.items() if not is_there}
    return Variant(
        name=f"extend {name_of(dtype)} cache {name_of(cache_dtype)} head {head_dim} group {group} block {block_size}"
        + " window" * has_window
        + " capped" * has_soft_cap
        + " sinks" * has_sinks,
        kernel=extend_kernel,
        types=arrays | dict.fromkeys(numbers, "i32") | dict(scale="fp32", soft_cap="fp32"),
        constants=extend_constants(dtype, group, head_dim, block_size, 16, shape) | absent,
        aligned=all_members(arrays, absent),
        num_warps=shape.num_warps,
        num_stages=shape.num_stages,
        fuse=True,
        max_registers=REGISTERS // (shape.num_warps * 32),
        max_shared=SHARED - 1024,
        required=("LDGSTS", "HMMA" if dtype == torch.float32 else "HGMMA"),
        elements=shape.tile,
    )


def heads(dtype: torch.dtype) -> Heads:
    return Heads(POINTERS[dtype], "i32", "i32")


def paged_cache(dtype: torch.dtype) -> PagedCache:
    """The types of a cache of this dtype, with the scales that one of fp8 has."""
    scale = "*fp32" if dtype == FP8 else "constexpr"
    return PagedCache(POINTERS[dtype], POINTERS[dtype], scale, scale, "i32", "i32", "i32")


def absent_scales(cache_dtype: torch.dtype) -> dict[str, None]:
    return {} if cache_dtype == FP8 else {"cache.key_scale": None, "cache.value_scale": None}


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


_BF16, _FP16, _FP32 = torch.bfloat16, torch.float16, torch.float32
VARIANTS = [
    attend_variant(_BF16, _BF16, 64, 8),
    attend_variant(_BF16, _BF16, 128, 1),
    attend_variant(_BF16, _BF16, 128, 4),
    attend_variant(_FP16, _FP16, 128, 8, block_size=13, has_soft_cap=True),
    attend_variant(_BF16, _BF16, 256, 2),
    attend_variant(_BF16, _BF16, 128, 32),
    attend_variant(_BF16, FP8, 64, 8),
    attend_variant(_BF16, FP8, 128, 4),
    attend_variant(_BF16, FP8, 256, 2),
    attend_variant(_FP32, _FP32, 128, 4),
    join_variant(128, 4),
    join_variant(128, 4, has_scale=True, has_sinks=False),
    extend_variant(_BF16, _BF16, 64, 8, has_window=True, has_sinks=True),
    extend_variant(_BF16, _BF16, 128, 4),
    extend_variant(_BF16, _BF16, 128, 4, block_size=13, has_window=True, has_soft_cap=True),
    extend_variant(_BF16, _BF16, 256, 2),
    extend_variant(_BF16, FP8, 128, 4),
    extend_variant(_BF16, FP8, 256, 2),
    extend_variant(_FP32, _FP32, 128, 4),
]
