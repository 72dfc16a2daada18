"""The sampler's kernels as `maskwright.kernels.aot` compiles them: the launches of a vocabulary of 131,072 or 151,936 tokens."""

from __future__ import annotations

from ..aot import Variant
from .gpu.chunks import chunk_statistics_kernel, filtered_weight_kernel
from .gpu.draw import draw_kernel
from .gpu.edits import edit_kernel
from .gpu.launch import ENTRIES, TILE
from .gpu.leaders import leaders_kernel
from .gpu.scores import CHUNK
from .gpu.thresholds import threshold_kernel

CHUNKS, GROUPS = 32, 4096  # of 131,072 tokens
PER_THREAD = CHUNK // (4 * 32)  # logits of a chunk that each thread of 4 warps handles


def scored_types(dtype: str, unit: str) -> dict[str, str]:
    """Of the arguments that say what scores are made of."""
    mask = "mask_bytes" if unit == "*u8" else "mask_words"
    sizes = ("logits_stride", "mask_stride", "edited_stride", "overlay_stride", "vocab_size", "num_chunks", "plane")
    pointers = {"logits": dtype, mask: unit, "mask_index": "*i64", "edited": unit, "overlay": "*fp32"}
    return {**pointers, **dict.fromkeys(sizes, "i32"), "statistics": "*fp32"}


ROW_TYPES = {
    "temperature": "*fp32", "top_k": "*i32", "top_p": "*fp32", "min_p": "*fp32", "seed": "*i64", "position": "*i64",
    "repetition_penalty": "*fp32", "presence_penalty": "*fp32", "frequency_penalty": "*fp32", "limits": "*fp32",
}  # fmt: skip
OUT_TYPES = {"token_out": "*i64", "logprob_out": "*fp32", "kept_mass_out": "*fp64", "num_allowed_out": "*i64"}
ALIGNED = ("logits", "logits_stride", "vocab_size")
MIXED = {"HAS_MASKS": True, "HAS_EDITS": True, "HAS_DRAWS": True, "HAS_GROUPS": True}  # a batch in which rows want everything
PLAIN = {"HAS_MASKS": True, "HAS_EDITS": False, "HAS_DRAWS": True, "HAS_GROUPS": False}  # constrained and free, no filters
GREEDY = {"HAS_MASKS": True, "HAS_EDITS": False, "HAS_DRAWS": False, "HAS_GROUPS": False}


def chunk_variant(name: str, dtype: str, flags: dict[str, bool], aligned: bool, max_registers: int) -> Variant:
    return Variant(
        name=f"chunk_statistics {name} {dtype.removeprefix('*')}{'' if aligned else ' unaligned'}",
        kernel=chunk_statistics_kernel,
        types={**scored_types(dtype, "*u8"), **ROW_TYPES, "group_max": "*fp32", "group_sum": "*fp32"},
        constants={"CHUNK": CHUNK, **flags, "ALIGNED": aligned},
        aligned=ALIGNED if aligned else (),
        max_registers=max_registers,
        elements=PER_THREAD,
    )


def draw_variant(name: str, *, edits: bool, draws: bool, limits: bool) -> Variant:
    flags = {"HAS_MASKS": True, "HAS_EDITS": edits, "HAS_DRAWS": draws, "HAS_LIMITS": limits, "ALIGNED": True}
    return Variant(
        name=f"draw {name} bf16",
        kernel=draw_kernel,
        types={**scored_types("*bf16", "*u8"), **ROW_TYPES, **OUT_TYPES},
        constants={"CHUNK": CHUNK, "CHUNKS": CHUNKS, **flags},
        aligned=ALIGNED,
        max_registers=160,  # one block a row: there are few of them
        elements=PER_THREAD,
    )


VARIANTS = [
    chunk_variant("greedy", "*bf16", GREEDY, True, 120),
    chunk_variant("plain", "*bf16", PLAIN, True, 120),
    chunk_variant("plain", "*fp32", PLAIN, True, 120),
    chunk_variant("mixed", "*bf16", MIXED, True, 120),
    chunk_variant("mixed", "*fp16", MIXED, False, 176),
    Variant(
        name="filtered_weight bf16",
        kernel=filtered_weight_kernel,
        types={**scored_types("*bf16", "*u8"), **ROW_TYPES},
        constants={"CHUNK": CHUNK, "CHUNKS": CHUNKS, "HAS_MASKS": True, "HAS_EDITS": True, "ALIGNED": True},
        aligned=ALIGNED,
        elements=PER_THREAD,
    ),
    *(
        Variant(
            name=f"threshold bf16, {groups * 32} tokens",
            kernel=threshold_kernel,
            types={
                **scored_types("*bf16", "*i32"), **ROW_TYPES, "group_max": "*fp32", "group_sum": "*fp32", "reached": "*i32",
            },
            constants={"CHUNK": CHUNK, "GROUPS": groups, "TILE": TILE, "HAS_MASKS": True, "HAS_EDITS": True, "ALIGNED": True},
            aligned=ALIGNED,
            num_warps=16,
        )
        for groups in (GROUPS, 2 * GROUPS)
    ),
    draw_variant("greedy", edits=False, draws=False, limits=False),
    draw_variant("plain", edits=False, draws=True, limits=False),
    draw_variant("mixed", edits=True, draws=True, limits=True),
    Variant(
        name="edit bf16",
        kernel=edit_kernel,
        types={
            **scored_types("*bf16", "*i32"), **ROW_TYPES, "overridden_out": "*i1", "num_words": "i32",
            "bias_offsets": "*i64", "bias_tokens": "*i64", "bias_values": "*fp32",
            "history_offsets": "*i64", "history_tokens": "*i64", "history_counts": "*fp32",
        },
        constants={"BLOCK": ENTRIES, "HAS_MASKS": True, "HAS_BIAS": True, "HAS_HISTORY": True},
    ),
    Variant(
        name="leaders bf16",
        kernel=leaders_kernel,
        types={**scored_types("*bf16", "*u8"), **OUT_TYPES, "count": "i32"},
        constants={"CHUNK": CHUNK, "CHUNKS": CHUNKS, "ALIGNED": True},
        aligned=ALIGNED,
        elements=PER_THREAD,
    ),
]
