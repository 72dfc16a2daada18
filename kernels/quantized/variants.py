"""Launches of the products with packed matrices that are compiled ahead of time (see `kernels/aot.py`)."""

from __future__ import annotations

from typing import Any

from ..aot import Variant, all_members
from ..moe.variants import BLOCKS
from .blocks import BLOCK_TYPES
from .codes import CODE_TYPES
from .gpu.block_tiles import RUNS
from .gpu.product import BLOCK_N, FAR, blocks_kernel, blocks_tile, codes_kernel, codes_tile, tile_of, values_kind
from .gpu.rounded import BLOCK_K, ROUND_BLOCK, round_kernel, rounded_kernel
from .rounding import EPSILON

MAX_REGISTERS = {16: 176, 64: 224, 128: 224}  # by the rows of x of a program
MAX_SHARED = 100 * 1024  # bytes; two programs on a multiprocessor
SIZES = {"num_rows": "i32", "matrix_rows": "i32", "num_columns": "i32", "chunk": "i32"}
DIVISIBLE = ("matrix_rows", "num_columns", "chunk")  # by 16


def blocks_variant(kind: str, num_rows: int, *, is_stack: bool = False) -> Variant:
    tile = blocks_tile(kind, num_rows)
    arrays: dict[str, Any] = {"x": "*bf16", "data": "*u8"}
    arrays |= {"blocks": BLOCKS, "out": "*fp32"} if is_stack else {"out": "*bf16"}
    return Variant(
        name=f"blocks bf16 {kind} {tile.block_m} rows" + " of experts" * is_stack,
        kernel=blocks_kernel,
        types={**arrays, "x_stride": "i32", "row_bytes": "i32", **SIZES},
        constants={
            **({} if is_stack else {"blocks": None}), "KIND": kind, "RUN": RUNS[kind],
            "BLOCK_M": tile.block_m, "BLOCK_N": BLOCK_N, "BLOCK_K": tile.block_k,
        },
        aligned=[*all_members(arrays), "x_stride", "row_bytes", *DIVISIBLE],
        num_warps=tile.num_warps,
        fuse=True,
        max_registers=MAX_REGISTERS[tile.block_m],
        max_shared=MAX_SHARED,
        required=("HGMMA",),
        elements=BLOCK_N * tile.block_k // (32 * tile.num_warps),
    )  # fmt: skip


def codes_variant(
    name: str, num_rows: int, width: int, *, has_zeros: bool = False, has_float8: bool = True, is_stack: bool = False
) -> Variant:
    """width: columns with a scale; FAR: all."""
    kind, values = CODE_TYPES[name], values_kind(name)
    values = values if has_float8 else "float8 bits"
    tile = codes_tile(kind, num_rows)
    arrays: dict[str, Any] = {"x": "*bf16", "data": "*u8", "scales": "*fp16", "zeros": "*u8", "table": "*fp32"}
    arrays |= {"blocks": BLOCKS, "out": "*fp32"} if is_stack else {"out": "*bf16"}
    absent: dict[str, None] = {} if values == "table" else {"table": None}
    absent |= {} if has_zeros else {"zeros": None}
    absent |= {} if is_stack else {"blocks": None}
    shapes = {"x_stride": "i32", "row_bytes": "i32", "scale_stride": "i32", "height": "i32", "width": "i32"}
    return Variant(
        name=f"codes bf16 {name} {'of a row' if width == FAR else width} {tile.block_m} rows" + " zeros" * has_zeros
        + " by bits" * (not has_float8) + " of experts" * is_stack,
        kernel=codes_kernel,
        types={**arrays, **shapes, **SIZES},
        constants={
            **absent, "height": 1, "BITS": kind.bits, "VALUES": values, "MIDDLE": kind.middle,
            "GROUP": min(width & -width, tile.block_k), "BLOCK_M": tile.block_m, "BLOCK_N": BLOCK_N, "BLOCK_K": tile.block_k,
        },
        aligned=[*all_members(arrays, absent), "x_stride", "row_bytes", "width", *DIVISIBLE],
        num_warps=tile.num_warps,
        fuse=True,
        max_registers=MAX_REGISTERS[tile.block_m] if kind.bits in (2, 4, 8) else 255,
        max_shared=MAX_SHARED,
        required=("HGMMA",),
        elements=BLOCK_N * tile.block_k // (32 * tile.num_warps),
    )  # fmt: skip


def rounded_variant(name: str, num_rows: int, width: int, *, has_zeros: bool = False) -> Variant:
    """width: columns with a scale, of weights and inputs alike; FAR: all."""
    tile, is_float = tile_of(num_rows, BLOCK_K, BLOCK_K), name == "float8"
    given = {"codes": "*u8" if is_float else "*i8", "x_scales": "*fp32", "x_zeros": "*fp32"}
    arrays = {**given, "data": "*u8", "scales": "*fp32", "out": "*bf16"}
    absent = {} if has_zeros else {"x_zeros": None}
    shapes = ("x_groups", "x_width", "row_bytes", "scale_stride", "height", "width")
    is_grouped = width < FAR
    return Variant(
        name=f"rounded {name} {width if is_grouped else 'of a row'} {tile.block_m} rows" + " zeros" * has_zeros,
        kernel=rounded_kernel,
        types={**arrays, **dict.fromkeys(shapes, "i32"), **SIZES},
        constants={
            **absent, "VALUES": values_kind(name), "IS_GROUPED": is_grouped, "BLOCK_M": tile.block_m, "BLOCK_N": BLOCK_N,
            "BLOCK_K": BLOCK_K,
        },
        aligned=[*all_members(arrays, absent), "x_width", "row_bytes", "width", *DIVISIBLE],
        num_warps=tile.num_warps,
        fuse=True,
        max_registers=MAX_REGISTERS[tile.block_m],
        max_shared=MAX_SHARED,
        required=("QGMMA" if is_float else "IGMMA",),
        elements=BLOCK_N * BLOCK_K // (32 * tile.num_warps),
    )  # fmt: skip


def round_variant(grid: str, *, is_fixed: bool = False, has_zeros: bool = False) -> Variant:
    arrays = {"x": "*bf16", "codes": "*i8" if grid == "int8" else "*fp8e4nv", "scales": "*fp32", "zeros": "*fp32"}
    arrays |= {"fixed_scale": "*fp32", "fixed_zero": "*fp32"}
    absent: dict[str, None] = {} if has_zeros else {"zeros": None, "fixed_zero": None}
    absent |= {} if is_fixed else {"fixed_scale": None, "fixed_zero": None}
    least, most = (-128.0, 127.0) if grid == "int8" else (-448.0, 448.0)
    return Variant(
        name=f"round {grid}" + " fixed" * is_fixed + " zeros" * has_zeros,
        kernel=round_kernel,
        types={**arrays, "x_stride": "i32", "num_columns": "i32", "width": "i32", "ceiling": "fp32"},
        constants={**absent, "LEAST": least, "MOST": most, "EPS": EPSILON, "BLOCK": ROUND_BLOCK},
        aligned=[*all_members(arrays, absent), "x_stride", "num_columns", "width"],
        elements=ROUND_BLOCK // 128,
    )


VARIANTS = [
    *(blocks_variant(kind, 16) for kind in BLOCK_TYPES),
    *(blocks_variant(kind, num_rows) for kind in ("Q4_0", "Q4_K", "Q6_K", "Q8_0") for num_rows in (64, 128)),
    *(blocks_variant("Q4_K", num_rows, is_stack=True) for num_rows in (16, 64)),
    codes_variant("uint4", 16, 128),
    codes_variant("uint4", 16, 128, has_zeros=True),
    codes_variant("uint4", 64, 128, has_zeros=True),
    codes_variant("uint4", 16, 32, is_stack=True),
    codes_variant("float8", 64, FAR, is_stack=True),
    codes_variant("uint4", 128, 32),
    codes_variant("uint2", 16, 64, has_zeros=True),
    codes_variant("uint3", 16, 64, has_zeros=True),
    codes_variant("uint8", 16, FAR),
    codes_variant("int8", 128, FAR),
    codes_variant("float8", 16, 128),
    codes_variant("float8", 16, FAR, has_float8=False),
    codes_variant("float4", 16, 32),
    codes_variant("nf4", 16, 64),
    codes_variant("nf4", 64, 64),
    *(rounded_variant("float8", num_rows, width) for num_rows in (16, 128) for width in (FAR, 128)),
    rounded_variant("int8", 16, FAR),
    rounded_variant("int8", 64, FAR, has_zeros=True),
    rounded_variant("uint8", 128, 128, has_zeros=True),
    round_variant("float8"),
    round_variant("float8", is_fixed=True),
    round_variant("int8", has_zeros=True),
    round_variant("int8", is_fixed=True, has_zeros=True),
]
