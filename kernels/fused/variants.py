"""Launches of the fused kernels that are compiled ahead of time (see `kernels/aot.py`)."""

from __future__ import annotations

from typing import Any

from ..aot import Variant, all_members
from ..attention.gpu.arguments import Heads, PagedCache
from .gpu import embedding, gated_activation, rms_norm, rope
from .interface import HeadNorm


def norm_variant(width: int, *, has_residual: bool, has_weight: bool = True) -> Variant:
    arrays = dict.fromkeys(("out", "total_out", "hidden", "residual", "weight"), "*bf16")
    absent = {} if has_residual else dict(total_out=None, residual=None)
    absent |= {} if has_weight else dict(weight=None)
    return Variant(
        name=f"rms_norm {width}" + " residual" * has_residual + " unweighted" * (not has_weight),
        kernel=rms_norm.rms_norm_kernel,
        types=arrays | dict(eps="fp32", weight_offset="fp32", row_stride="i32", width="i32"),
        constants=dict(BLOCK=width) | absent,
        aligned=[name for name in (*arrays, "row_stride", "width") if name not in absent],
        num_warps=rms_norm.warps_for(width),
        fuse=True,
        elements=16,
    )


def gate_variant(activation: str) -> Variant:
    return Variant(
        name=f"gated_activation {activation}",
        kernel=gated_activation.gated_activation_kernel,
        types=dict(out="*bf16", gate_up="*bf16", row_stride="i32", width="i32"),
        constants=dict(ACTIVATION=activation, BLOCK=gated_activation.BLOCK),
        aligned=("out", "gate_up", "row_stride", "width"),
        fuse=True,
        max_registers=64,
        elements=gated_activation.BLOCK // 128,
    )


def embedding_variant() -> Variant:
    return Variant(
        name="embedding",
        kernel=embedding.embedding_kernel,
        types=dict(out="*bf16", token_ids="*i64", table="*bf16", scale="fp32", row_stride="i32", width="i32"),
        constants=dict(BLOCK=embedding.BLOCK),
        aligned=("out", "token_ids", "table", "row_stride", "width"),
        max_registers=40,
        elements=embedding.BLOCK // 128,
    )


def rotation_variant(head_dim: int, group: int, *, rotary: int, is_fp8: bool, has_norm: bool) -> Variant:
    cached, scale = ("*fp8e4nv", "*fp32") if is_fp8 else ("*bf16", "constexpr")
    arrays: dict[str, Any] = dict.fromkeys(("query", "key", "value"), Heads("*bf16", "i32", "i32"))
    arrays |= dict(cache=PagedCache(cached, cached, scale, scale, "i32", "i32", "i32"))
    arrays |= dict(out="*bf16", slots="*i64", cosine="*fp32", sine="*fp32")
    absent: dict[str, None] = {} if is_fp8 else {"cache.key_scale": None, "cache.value_scale": None}
    absent |= {} if has_norm else {"norm": None}
    weights = ["norm.query_weight", "norm.key_weight"] if has_norm else []
    return Variant(
        name=f"rotate_and_cache head {head_dim} group {group} rotary {rotary}"
        + " interleaved" * (rotary < head_dim)
        + " fp8" * is_fp8
        + " norm" * has_norm,
        kernel=rope.rotate_and_cache_kernel,
        types=arrays
        | dict(norm=HeadNorm("*bf16", "*bf16", "fp32", "fp32"))  # type: ignore[arg-type]
        | dict.fromkeys(("key_scale_stride", "value_scale_stride"), "i32"),
        constants=rope.rotation_constants(group, head_dim, rotary, 16, rotary < head_dim) | absent,
        aligned=all_members(arrays, absent) + weights,
        num_warps=rope.warps_for(group, head_dim),
        fuse=True,
        max_registers=128,
    )


VARIANTS = [
    norm_variant(4096, has_residual=False),
    norm_variant(4096, has_residual=False, has_weight=False),
    norm_variant(4096, has_residual=True),
    norm_variant(16384, has_residual=True),
    gate_variant("silu"),
    gate_variant("gelu"),
    gate_variant("gelu_tanh"),
    embedding_variant(),
    rotation_variant(128, 4, rotary=128, is_fp8=False, has_norm=False),
    rotation_variant(128, 2, rotary=128, is_fp8=True, has_norm=True),
    rotation_variant(128, 16, rotary=64, is_fp8=False, has_norm=False),
]
