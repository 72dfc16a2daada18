"""The sampler's kernels as `maskwright.kernels.aot` compiles them: the launches of a vocabulary of 131,072 or 151,936 tokens."""

from __future__ import annotations

from typing import Any

import torch

from ..aot import Variant
from .gpu.chunks import chunk_statistics_kernel, filtered_weight_kernel
from .gpu.draw import draw_kernel
from .gpu.edits import edit_kernel
from .gpu.launch import ENTRIES, TILE
from .gpu.leaders import leaders_kernel
from .gpu.programs import CANDIDATES, program_kernel
from .gpu.scores import STATISTICS_CHUNK, Chunks, Scored
from .gpu.thresholds import threshold_kernel, weigh_kernel
from .interface import TokenValues
from .parameters import DTYPES, ParameterArrays

CHUNKS, GROUPS = 32, 4096  # of 131,072 tokens
PER_THREAD = STATISTICS_CHUNK // (4 * 32)  # logits of a chunk that each thread of 4 warps handles


def scored_types(dtype: str, unit: str) -> dict[str, Any]:
    """Of the arguments that most kernels have. unit: what bits are read as, "*u8" or "*i32"."""
    strides = dict.fromkeys(("logits_stride", "mask_stride", "edited_stride", "overlay_stride"), "i32")
    scored = Scored(logits=dtype, masks=unit, mask_index="*i64", edited=unit, overlay="*fp32", **strides, vocab_size="i32")
    return {"scored": scored, "parameters": PARAMETER_TYPES, "chunks": Chunks("*fp32", "i32", "i32")}


PARAMETER_TYPES = ParameterArrays(*("*i32" if dtype == torch.int32 else "*fp32" for dtype in DTYPES.values()))
TOKEN_TYPES: Any = ("*i64", "*i64", "*fp32")  # of TokenValues
ROW_TYPES = {"seed": "*i64", "position": "*i64", "limits": "*fp32"}
GROUP_TYPES = {"group_max": "*fp32", "group_sum": "*fp32", "reached": "*i32"}
OUT_TYPES = {"token_out": "*i64", "logprob_out": "*fp32", "kept_mass_out": "*fp64", "num_allowed_out": "*i64", "share_out": "*fp32"}
ALIGNED = ("scored.logits", "scored.logits_stride", "scored.vocab_size")
MIXED = {"HAS_MASKS": True, "HAS_EDITS": True, "HAS_DRAWS": True, "HAS_GROUPS": True}  # a batch in which rows want everything
PLAIN = {"HAS_MASKS": True, "HAS_EDITS": False, "HAS_DRAWS": True, "HAS_GROUPS": False}  # constrained and free, no filters
GREEDY = {"HAS_MASKS": True, "HAS_EDITS": False, "HAS_DRAWS": False, "HAS_GROUPS": False}


def chunk_variant(name: str, dtype: str, flags: dict[str, bool], aligned: bool, max_registers: int) -> Variant:
    return Variant(
        name=f"chunk_statistics {name} {dtype.removeprefix('*')}{'' if aligned else ' unaligned'}",
        kernel=chunk_statistics_kernel,
        types={**scored_types(dtype, "*u8"), **ROW_TYPES, "group_max": "*fp32", "group_sum": "*fp32"},
        constants={"CHUNK": STATISTICS_CHUNK, **flags, "ALIGNED": aligned},
        aligned=ALIGNED if aligned else (),
        max_registers=max_registers,
        elements=PER_THREAD,
    )


def draw_variant(
    name: str, *, edits: bool, draws: bool, limits: bool, programs: bool = False, masks: bool = True, aligned: bool = True
) -> Variant:
    flags = {"HAS_MASKS": masks, "HAS_EDITS": edits, "HAS_DRAWS": draws, "HAS_LIMITS": limits, "ALIGNED": aligned}
    flags |= {"HAS_PROGRAMS": programs, "HAS_SHARES": programs}
    return Variant(
        name=f"draw {name} bf16",
        kernel=draw_kernel,
        types={**scored_types("*bf16", "*u8"), **ROW_TYPES, "shapes": "*fp32", **OUT_TYPES},
        constants={"CHUNK": STATISTICS_CHUNK, "CHUNKS": CHUNKS, **flags},
        aligned=ALIGNED if aligned else (),
        max_registers=160 if aligned and not programs else 255,  # one block a row: there are few of them
        max_stack=0 if aligned else 32,
        elements=PER_THREAD,
    )


def everything(aligned: bool) -> dict[str, bool]:
    """The switches of kernels that read scores: all on, or all off."""
    return {"HAS_MASKS": aligned, "HAS_EDITS": aligned, "ALIGNED": aligned}


VARIANTS = [
    chunk_variant("greedy", "*bf16", GREEDY, True, 120),
    chunk_variant("plain", "*bf16", PLAIN, True, 120),
    chunk_variant("plain", "*fp32", PLAIN, True, 120),
    chunk_variant("mixed", "*bf16", MIXED, True, 120),
    chunk_variant("mixed", "*fp16", MIXED, False, 176),
    chunk_variant("free", "*bf16", dict.fromkeys(MIXED, False), True, 120),
    *(
        Variant(
            name=f"filtered_weight bf16{'' if aligned else ' unaligned, no masks, no edits'}",
            kernel=filtered_weight_kernel,
            types={**scored_types("*bf16", "*u8"), **ROW_TYPES},
            constants={"CHUNK": STATISTICS_CHUNK, "CHUNKS": CHUNKS, **everything(aligned)},
            aligned=ALIGNED if aligned else (),
            max_registers=128 if aligned else 168,
            elements=PER_THREAD,
        )
        for aligned in (True, False)
    ),
    *(
        Variant(
            name=f"threshold bf16, {groups * 32} tokens{'' if aligned else ', unaligned, no masks, no edits'}",
            kernel=threshold_kernel,
            types={**scored_types("*bf16", "*i32"), **ROW_TYPES, **GROUP_TYPES, "candidates": "*i32"},
            constants={"CHUNK": STATISTICS_CHUNK, "GROUPS": groups, "TILE": TILE, **everything(aligned)},
            aligned=ALIGNED if aligned else (),
            num_warps=16,
            max_stack=48,  # numbers that are the same for all threads, kept around the loops
        )
        for groups, aligned in ((GROUPS, True), (2 * GROUPS, True), (GROUPS, False))
    ),
    *(
        Variant(
            name=f"weigh bf16{'' if aligned else ' unaligned, no masks, no edits'}",
            kernel=weigh_kernel,
            types={**scored_types("*bf16", "*i32"), **ROW_TYPES, **GROUP_TYPES},
            constants={"CHUNK": STATISTICS_CHUNK, "CHUNKS": CHUNKS, "TILE": TILE, **everything(aligned)},
            aligned=ALIGNED if aligned else (),
            num_warps=16,
        )
        for aligned in (True, False)
    ),
    draw_variant("greedy", edits=False, draws=False, limits=False),
    draw_variant("plain", edits=False, draws=True, limits=False),
    draw_variant("mixed", edits=True, draws=True, limits=True),
    draw_variant("programs", edits=True, draws=True, limits=True, programs=True),
    *(
        Variant(
            name=f"programs bf16{'' if aligned else ' unaligned, no masks, no edits'}",
            kernel=program_kernel,
            types={
                **scored_types("*bf16", "*u8"), **ROW_TYPES, "codes": "*i32", "values": "*fp32", "num_steps": "i32",
                "shapes": "*fp32", "candidates": "*fp32",
            },
            constants={"CHUNK": STATISTICS_CHUNK, "CHUNKS": CHUNKS, "ROOM": CANDIDATES, **everything(aligned)},
            aligned=ALIGNED if aligned else (),
            num_warps=16,
            max_stack=320,  # what a stage does not need while it reads the row
        )
        for aligned in (True, False)
    ),
    draw_variant("free unaligned", edits=False, draws=True, limits=False, masks=False, aligned=False),
    *(
        Variant(
            name="edit bf16" + " masks" * masks + " bias" * bias + " history" * history,
            kernel=edit_kernel,
            types={
                **scored_types("*bf16", "*i32"), **ROW_TYPES, "overridden_out": "*i1", "num_words": "i32",
                "bias": TokenValues(*TOKEN_TYPES), "history": TokenValues(*TOKEN_TYPES),
            },
            constants={"BLOCK": ENTRIES, "HAS_MASKS": masks, "HAS_BIAS": bias, "HAS_HISTORY": history},
        )
        for masks, bias, history in ((True, True, True), (False, True, False), (False, False, True))
    ),
    *(
        Variant(
            name=f"leaders bf16{'' if aligned else ' unaligned'}",
            kernel=leaders_kernel,
            types={**scored_types("*bf16", "*u8"), **OUT_TYPES, "count": "i32"},
            constants={"CHUNK": STATISTICS_CHUNK, "CHUNKS": CHUNKS, "ALIGNED": aligned},
            aligned=ALIGNED if aligned else (),
            max_registers=128 if aligned else 168,
            elements=PER_THREAD,
        )
        for aligned in (True, False)
    ),
]
