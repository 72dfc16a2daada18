"""The device automaton's kernels as `maskwright.kernels.aot` compiles them."""

from __future__ import annotations

from ..aot import Variant
from .gpu import BLOCK, TOKENS, advance_kernel, ban_kernel, mask_rows_kernel
from .interface import Slots, Tables

INT32 = "*i32"
SLOTS = Slots(**dict.fromkeys(Slots._fields, INT32) | dict.fromkeys(("pending", "draw", "output"), "*i64"))  # type: ignore[arg-type]
TABLES = Tables(**dict.fromkeys(Tables._fields, INT32) | {"classes": "*u8", "keys": "*i64"})  # type: ignore[arg-type]

VARIANTS = [
    Variant(
        name="advance",
        kernel=advance_kernel,
        types={
            "token": "*i64", "slots": SLOTS, "tables": TABLES,
            "num_slots": "i32", "capacity": "i32", "vocab_size": "i32", "places": "i32",
        },
        constants={"BLOCK": BLOCK},
        num_warps=1,
    ),
    *(
        Variant(
            name=f"ban {logits}",
            kernel=ban_kernel,
            types={
                "logits": f"*{logits}", "mask_rows": "*i32", "mask_index": "*i32", "width": "i32", "words": "i32",
                "logits_stride": "i32", "rows_stride": "i32",
            },
            constants={"BLOCK": TOKENS},
            elements=TOKENS // 128,
        )
        for logits in ("fp32", "bf16", "fp16")
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
