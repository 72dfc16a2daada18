"""Launches of the grouped products that are compiled ahead of time (see `kernels/aot.py`)."""

from __future__ import annotations

from ..aot import Variant, all_members
from .gpu.experts import BLOCK_K, BLOCK_N, Blocks, down_kernel, up_kernel

BLOCKS = Blocks("*i64", "*i64", "*i64", "*i64")  # type: ignore[arg-type]
SIZES = {"hidden_size": "i32", "size": "i32"}
MAX_SHARED = 75 * 1024  # bytes; three programs on a multiprocessor


def up_variant(block_m: int, activation: str, *, scales_input: bool = False) -> Variant:
    arrays = {"hidden": "*bf16", "gate_up": "*bf16", "weights": "*fp32", "blocks": BLOCKS, "inner": "*bf16"}
    return Variant(
        name=f"up bf16 {block_m} rows {activation}" + " scaled" * scales_input,
        kernel=up_kernel,
        types={**arrays, **SIZES, "per_token": "i32"},
        constants={**tile(block_m), "ACTIVATION": activation, "SCALES_INPUT": scales_input},
        aligned=all_members(arrays | SIZES),
        fuse=True,
        max_registers=168,
        max_shared=MAX_SHARED,
        required=(product(block_m),),
        elements=block_m * BLOCK_N // 128,
    )


def down_variant(block_m: int, *, scales_input: bool = False) -> Variant:
    arrays = {"inner": "*bf16", "down": "*bf16", "weights": "*fp32", "blocks": BLOCKS, "output": "*fp32"}
    return Variant(
        name=f"down bf16 {block_m} rows" + " scaled before" * scales_input,
        kernel=down_kernel,
        types={**arrays, **SIZES},
        constants={**tile(block_m), "SCALES_INPUT": scales_input},
        aligned=all_members(arrays | SIZES),
        fuse=True,
        max_registers=168,
        max_shared=MAX_SHARED,
        required=(product(block_m),),
        elements=block_m * BLOCK_N // 128,
    )


def tile(block_m: int) -> dict[str, int]:
    return {"BLOCK_M": block_m, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}


def product(block_m: int) -> str:
    """Hopper's own product takes 64 rows; fewer go through Ampere's."""
    return "HGMMA" if block_m >= 64 else "HMMA"


VARIANTS = [
    up_variant(16, "silu"),
    up_variant(64, "silu"),
    up_variant(64, "gelu", scales_input=True),
    down_variant(16),
    down_variant(64),
    down_variant(64, scales_input=True),
]
