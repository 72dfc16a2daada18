"""The device automaton's kernels as `maskwright.kernels.aot` compiles them."""

from __future__ import annotations

from ..aot import Variant
from .gpu import BLOCK, TOKENS, advance_kernel, mask_rows_kernel

VARIANTS = [
    Variant(
        name="advance",
        kernel=advance_kernel,
        types={
            "token_in": "*i64", "state_in": "*i32", "pending_in": "*i64", "mask_index": "*i32", "left_in": "*i32",
            "tight_in": "*i32", "tight_row": "*i32", "draw_in": "*i64", "count_in": "*i32", "output": "*i64", "flags_in": "*i32",
            "room_in": "*i32", "more_in": "*i32",
            "row_of": "*i32", "needed": "*i32", "facts_of": "*i32", "default": "*i32", "partition": "*i32", "ladder_start": "*i32",
            "classes": "*u8", "ladder": "*i32", "keys": "*i64", "targets": "*i32",
            "stands": "*i32", "room_of": "*i32", "more_of": "*i32", "reach_of": "*i32", "length": "*i32",
            "num_slots": "i32", "capacity": "i32", "vocab_size": "i32", "places": "i32",
        },
        constants={"BLOCK": BLOCK},
        num_warps=1,
    ),
    Variant(
        name="mask_rows",
        kernel=mask_rows_kernel,
        types={
            "states": "*i32", "transitions": "*i32", "byte_class": "*u8", "accepting": "*i32", "token_bytes": "*u8",
            "token_start": "*i32", "end_row": "*i32", "out": "*i32", "vocab_size": "i32", "num_classes": "i32", "out_stride": "i32",
        },
        constants={"BLOCK": TOKENS},
        elements=TOKENS // 128,
    ),
]
