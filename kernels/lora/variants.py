"""Launches of the two products of adapters that are compiled ahead of time (see `kernels/aot.py`)."""

from __future__ import annotations

from ..aot import Variant, all_members
from ..moe.variants import BLOCKS, product
from .gpu.lora import BLOCK_K, BLOCK_N, SPLITS, expand_kernel, shrink_kernel, warps_of

MAX_SHARED = 100 * 1024  # bytes; two programs on a multiprocessor


def shrink_variant(block_m: int, rank: int) -> Variant:
    arrays = {"x": "*bf16", "down": "*bf16", "blocks": BLOCKS, "inner": "*fp32"}
    sizes = {"x_stride": "i32", "in_features": "i32", "chunk": "i32"}
    counts = {"num_rows": "i32", "num_slots": "i32", "num_slices": "i32"}
    return Variant(
        name=f"shrink bf16 {block_m} rows rank {rank}",
        kernel=shrink_kernel,
        types={**arrays, **sizes, **counts},
        constants={"RANK": rank, "BLOCK_M": block_m, "BLOCK_K": BLOCK_K},
        aligned=all_members(arrays | sizes),
        fuse=True,
        max_registers=168,
        max_shared=MAX_SHARED,
        required=(product(block_m),),
        elements=max(block_m * rank // 128, 1),
    )


def expand_variant(block_m: int, rank: int) -> Variant:
    arrays = {"inner": "*fp32", "up": "*bf16", "blocks": BLOCKS, "starts": "*i32", "y": "*bf16"}
    counts = {"num_rows": "i32", "num_slots": "i32", "num_slices": "i32"}
    return Variant(
        name=f"expand bf16 {block_m} rows rank {rank}",
        kernel=expand_kernel,
        types={**arrays, "out_features": "i32", **counts},
        constants={"SPLITS": SPLITS, "RANK": rank, "BLOCK_M": block_m, "BLOCK_N": BLOCK_N},
        aligned=[*all_members(arrays), "out_features"],
        num_warps=warps_of(block_m),
        fuse=True,
        max_registers=168,
        max_shared=MAX_SHARED,
        required=(product(block_m),),
        elements=block_m * BLOCK_N // (32 * warps_of(block_m)),
    )


TILES = ((16, 16), (16, 64), (64, 16), (64, 64))  # (rows, rank)
VARIANTS = [make(*tile) for make in (shrink_variant, expand_variant) for tile in TILES]
