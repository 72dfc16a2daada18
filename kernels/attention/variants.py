"""Launches of the attention kernels that are compiled ahead of time (see `kernels/aot.py`)."""

from __future__ import annotations

import torch

from ..aot import Variant
from .gpu.decode import DecodeShape, attend_constants, attend_kernel, join_constants, join_kernel
from .gpu.decode import shape_of as decode_shape_of
from .gpu.extend import ExtendShape, extend_constants, extend_kernel
from .gpu.extend import shape_of as extend_shape_of
from .interface import FP8

POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.float16: "*fp16", FP8: "*fp8e4nv"}
REGISTERS = 65536  # of one multiprocessor
SHARED = 227 * 1024  # bytes of one multiprocessor; every program takes 1 KB more than it asks for
STRIDES = ("block_stride", "place_stride", "kv_head_stride", "query_row_stride", "query_head_stride")


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
    arrays = dict(query=POINTERS[dtype], keys=POINTERS[cache_dtype], values=POINTERS[cache_dtype], key_scale="*fp32")
    arrays |= dict(block_tables="*i32", context_lengths="*i32", part_values="*fp32", part_sums="*fp32", part_maxima="*fp32")
    numbers = dict.fromkeys(("num_rows", "window", "table_stride", "scale_stride", *STRIDES), "i32")
    numbers |= dict(scale="fp32", soft_cap="fp32")
    return Variant(
        name=f"decode {name_of(dtype)} cache {name_of(cache_dtype)} head {head_dim} group {group} block {block_size}"
        + " capped" * has_soft_cap,
        kernel=attend_kernel,
        types=arrays | numbers,
        constants=attend_constants(dtype, group, head_dim, block_size, 64, shape.tile)
        | dict(HAS_SOFT_CAP=has_soft_cap, HAS_SCALE=cache_dtype == FP8),
        aligned=(*arrays, *STRIDES),
        num_warps=shape.num_warps,
        num_stages=shape.num_stages,
        fuse=True,
        max_registers=REGISTERS // (shape.programs * shape.num_warps * 32) // 8 * 8,
        max_shared=SHARED // shape.programs - 1024,
        required=("LDGSTS", "HMMA" if group <= 32 else "HGMMA"),
        elements=shape.tile,
    )


def join_variant(head_dim: int, group: int, *, has_scale: bool = False, has_sinks: bool = True) -> Variant:
    parts = dict.fromkeys(("part_values", "part_sums", "part_maxima", "value_scale", "sinks"), "*fp32")
    strides = ("out_row_stride", "out_head_stride")
    numbers = dict.fromkeys(("num_rows", "num_programs", "window", "scale_stride", *strides), "i32")
    return Variant(
        name=f"join head {head_dim} group {group}" + " scaled" * has_scale + " sinks" * has_sinks,
        kernel=join_kernel,
        types=dict(out="*bf16", context_lengths="*i32") | parts | numbers,
        constants=join_constants(group, head_dim, 64, 64) | dict(HAS_SCALE=has_scale, HAS_SINKS=has_sinks),
        aligned=("out", "context_lengths", *parts, *strides),
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
    is_scaled = cache_dtype == FP8
    arrays = dict(out=POINTERS[dtype], query=POINTERS[dtype], keys=POINTERS[cache_dtype], values=POINTERS[cache_dtype])
    arrays |= dict.fromkeys(("key_scale", "value_scale", "sinks"), "*fp32")
    arrays |= dict.fromkeys(("block_tables", "context_lengths", "query_starts"), "*i32")
    strides = (*STRIDES, "out_row_stride", "out_head_stride")
    numbers = dict.fromkeys(("num_sequences", "window", "table_stride", *strides), "i32")
    numbers |= dict.fromkeys(("key_scale_stride", "value_scale_stride"), "i32")
    numbers |= dict(scale="fp32", soft_cap="fp32")
    return Variant(
        name=f"extend {name_of(dtype)} cache {name_of(cache_dtype)} head {head_dim} group {group} block {block_size}"
        + " window" * has_window
        + " capped" * has_soft_cap
        + " sinks" * has_sinks,
        kernel=extend_kernel,
        types=arrays | numbers,
        constants=extend_constants(dtype, group, head_dim, block_size, 16, shape)
        | dict(HAS_SOFT_CAP=has_soft_cap, HAS_WINDOW=has_window, HAS_SINKS=has_sinks)
        | dict(HAS_KEY_SCALE=is_scaled, HAS_VALUE_SCALE=is_scaled),
        aligned=(*arrays, *strides),
        num_warps=shape.num_warps,
        num_stages=shape.num_stages,
        fuse=True,
        max_registers=REGISTERS // (shape.num_warps * 32),
        max_shared=SHARED - 1024,
        required=("LDGSTS", "HMMA" if dtype == torch.float32 else "HGMMA"),
        elements=shape.tile,
    )


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
