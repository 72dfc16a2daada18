"""One sampling of a batch: the launches, and the scratch memory between them.

    edits       the scores that bias, bans and penalties change             only if the batch has some
    chunks      one read of the logits: what each chunk of a row holds      greedy and unfiltered rows need no more
    thresholds  how far top-k and top-p reach; what that leaves of chunks   only for rows that have them
    chunks      what the other filters leave of each chunk they reach       only for rows that have them alone
    programs    what stages of an order of their own leave of each chunk    only for rows that have a program
    draw        a chunk, then a token in it, and what the model thought

Nothing here waits for the device, if `rows.stages` is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from ..interface import Sampled, SamplerRows, Stages, TokenValues, check_arrays
from ..reference import find_stages
from .chunks import chunk_statistics_kernel, filtered_weight_kernel
from .draw import draw_kernel
from .edits import edit_kernel
from .leaders import leaders_kernel
from .programs import CANDIDATES, SHAPE_SIZE, program_kernel
from .scores import GROUP, PLANES, STATISTICS_CHUNK, UNIT, Chunks, Scored
from .thresholds import threshold_kernel, weigh_kernel

TILE = 128  # groups of 32 tokens that a threshold is searched in without reading them again; 256 spill registers
ENTRIES = 128  # of bias and history, handled together
SEARCHED = {"top_k", "top_p"}  # filters whose threshold is searched for; what the others ask for is known (`scores.least_weight`)
EXACT = {"enable_fp_fusion": False}  # what a product and a sum make must not depend on the kernel they are in


@dataclass(frozen=True)
class Arrays:
    """What the kernels of one sampling share."""

    logits: Tensor  # [rows, head width], unit column stride
    rows: SamplerRows
    stages: Stages
    mask_rows: Tensor  # int32 [pool, words]
    mask_index: Tensor  # [rows]
    has_masks: bool
    edited: Tensor  # int32 [rows, words]: whose bits are set have their score in the overlay
    overlay: Tensor  # fp32 [rows, vocab_size], uninitialised elsewhere
    has_edits: bool
    vocab_size: int
    num_chunks: int
    statistics: Tensor  # fp32 [PLANES, rows, chunks]

    @property
    def has_filters(self) -> bool:
        """Whether some row that draws has a filter."""
        return self.stages.any_draw and bool(self.stages.filters)

    @property
    def has_searches(self) -> bool:
        """Whether some row that draws has a filter whose threshold is searched for."""
        return self.stages.any_draw and not SEARCHED.isdisjoint(self.stages.filters)

    @property
    def is_aligned(self) -> bool:
        """Whether units of 8 logits can be loaded at once."""
        return self.logits.stride(0) % UNIT == 0 and self.logits.data_ptr() % 16 == 0

    def scored(self, unit: torch.dtype) -> Scored:
        """unit: what bits are read as, uint8 or int32."""
        per_word = 4 // unit.itemsize
        return Scored(
            logits=self.logits,
            masks=self.mask_rows.view(unit),
            mask_index=self.mask_index,
            edited=self.edited.view(unit),
            overlay=self.overlay,
            logits_stride=self.logits.stride(0),
            mask_stride=self.mask_rows.stride(0) * per_word,
            edited_stride=self.edited.stride(0) * per_word,
            overlay_stride=self.overlay.stride(0),
            vocab_size=self.vocab_size,
        )

    @property
    def chunks(self) -> Chunks:
        """The statistics with their sizes."""
        return Chunks(self.statistics, self.num_chunks, self.statistics.stride(0))


def sample(
    logits: Tensor,
    rows: SamplerRows,
    mask_rows: Tensor | None = None,
    mask_index: Tensor | None = None,
    *,
    vocab_size: int,
    num_top_logprobs: int = 0,
    is_told: bool = True,  # it always is: that costs nothing here
) -> Sampled:
    """Draws one token per row; `reference.sample` has the arguments. Rows of logits may be strided; columns cost a copy."""
    check_arrays(logits, rows, mask_rows, mask_index, vocab_size)
    num_rows, device, stages = logits.shape[0], logits.device, rows.stages or find_stages(rows)
    sampled = Sampled(
        token=torch.empty(num_rows, dtype=torch.int64, device=device),
        logprob=torch.empty(num_rows, dtype=torch.float32, device=device),
        kept_mass=torch.empty(num_rows, dtype=torch.float64, device=device),
        num_allowed=torch.empty(num_rows, dtype=torch.int64, device=device),
        bans_overridden=torch.zeros(num_rows, dtype=torch.bool, device=device),
        top_token=torch.empty(num_rows, min(num_top_logprobs, vocab_size), dtype=torch.int64, device=device),
        top_logprob=torch.empty(num_rows, min(num_top_logprobs, vocab_size), dtype=torch.float32, device=device),
        share=torch.empty(num_rows, int(stages.wants_share), dtype=torch.float32, device=device),
    )
    if num_rows == 0:
        return sampled
    arrays = prepare(logits, rows, stages, mask_rows, mask_index, vocab_size)
    with torch.cuda.device_of(logits):
        if arrays.has_edits:
            edit(arrays, sampled.bans_overridden)
        groups = read_chunks(arrays)
        limits = filter_chunks(arrays, groups) if arrays.has_filters else None
        shapes = run_programs(arrays) if rows.programs is not None and stages.any_draw else None
        draw(arrays, limits, shapes, sampled)
        if sampled.top_token.shape[1]:
            rank(arrays, sampled)
    return sampled


def prepare(
    logits: Tensor, rows: SamplerRows, stages: Stages, mask_rows: Tensor | None, mask_index: Tensor | None, vocab_size: int
) -> Arrays:
    """The arrays of one sampling, with memory for the statistics and, where scores are edited, for the overlay."""
    num_rows, num_chunks, words = logits.shape[0], triton.cdiv(vocab_size, STATISTICS_CHUNK), triton.cdiv(vocab_size, 32)
    nothing = torch.empty(1, 1, dtype=torch.int32, device=logits.device)
    has_edits = any(lists is not None and len(lists.values) for lists in (rows.bias, rows.history))
    if has_edits:
        edited = torch.zeros(num_rows, words, dtype=torch.int32, device=logits.device)
        overlay = torch.empty(num_rows, vocab_size, dtype=torch.float32, device=logits.device)
    else:
        edited, overlay = nothing, nothing.view(torch.float32)
    if mask_rows is not None and mask_rows.stride(1) != 1:
        mask_rows = mask_rows.contiguous()
    return Arrays(
        logits=logits if logits.stride(1) == 1 else logits.contiguous(),
        rows=rows,
        stages=stages,
        mask_rows=nothing if mask_rows is None else mask_rows.view(torch.int32),
        mask_index=nothing if mask_index is None else mask_index,
        has_masks=mask_rows is not None,
        edited=edited,
        overlay=overlay,
        has_edits=has_edits,
        vocab_size=vocab_size,
        num_chunks=num_chunks,
        statistics=torch.empty(PLANES, num_rows, num_chunks, dtype=torch.float32, device=logits.device),
    )


def edit(arrays: Arrays, bans_overridden: Tensor) -> None:
    """Writes the scores that bias, bans and penalties change into the overlay."""
    rows, none = arrays.rows, arrays.statistics
    bias, history = (lists or TokenValues(none, none, none) for lists in (rows.bias, rows.history))
    edit_kernel[(len(arrays.logits),)](
        arrays.scored(torch.int32), rows.parameters, bias, history, bans_overridden, arrays.edited.shape[1],
        BLOCK=ENTRIES, HAS_MASKS=arrays.has_masks, HAS_BIAS=rows.bias is not None, HAS_HISTORY=rows.history is not None,
        num_warps=4, **EXACT,
    )  # fmt: skip


def read_chunks(arrays: Arrays) -> tuple[Tensor, Tensor]:
    """The chunk statistics; (max, sum) of each group of tokens [rows, groups], written only for rows that are searched."""
    num_groups = arrays.num_chunks * STATISTICS_CHUNK // GROUP if arrays.has_searches else 1
    group_max, group_sum = torch.empty(2, len(arrays.logits), num_groups, dtype=torch.float32, device=arrays.logits.device)
    chunk_statistics_kernel[(len(arrays.logits), arrays.num_chunks)](
        arrays.scored(torch.uint8), arrays.rows.parameters, arrays.chunks, group_max, group_sum,
        CHUNK=STATISTICS_CHUNK, HAS_MASKS=arrays.has_masks, HAS_EDITS=arrays.has_edits, HAS_DRAWS=arrays.stages.any_draw,
        HAS_GROUPS=arrays.has_searches, ALIGNED=arrays.is_aligned, num_warps=4, **EXACT,
    )  # fmt: skip
    return group_max, group_sum


def filter_chunks(arrays: Arrays, groups: tuple[Tensor, Tensor]) -> Tensor:
    """fp32 [rows]: how far below the best token one may be. Chunks weigh what the filters leave of them from then on."""
    parameters, chunks, num_rows, device = arrays.rows.parameters, arrays.chunks, len(arrays.logits), arrays.logits.device
    limits = torch.full((num_rows,), float("inf"), device=device)
    common = {"HAS_MASKS": arrays.has_masks, "HAS_EDITS": arrays.has_edits, "ALIGNED": arrays.is_aligned, **EXACT}
    if arrays.has_searches:
        num_groups = groups[0].shape[1]
        reached, candidates = (
            torch.empty(num_rows, size, dtype=torch.int32, device=device) for size in (1 + num_groups, TILE * GROUP)
        )
        threshold_kernel[(num_rows,)](
            arrays.scored(torch.int32), parameters, chunks, *groups, reached, candidates, limits,
            CHUNK=STATISTICS_CHUNK, GROUPS=triton.next_power_of_2(num_groups), TILE=TILE, num_warps=16, **common,
        )  # fmt: skip
        weigh_kernel[(num_rows,)](
            arrays.scored(torch.int32), parameters, chunks, groups[1], reached, limits,
            CHUNK=STATISTICS_CHUNK, CHUNKS=triton.next_power_of_2(arrays.num_chunks), TILE=TILE, num_warps=16, **common,
        )  # fmt: skip
    if arrays.stages.filters - SEARCHED:
        filtered_weight_kernel[(num_rows, arrays.num_chunks)](
            arrays.scored(torch.uint8), parameters, chunks,
            CHUNK=STATISTICS_CHUNK, CHUNKS=triton.next_power_of_2(arrays.num_chunks), num_warps=4, **common,
        )  # fmt: skip
    return limits


def run_programs(arrays: Arrays) -> Tensor:
    """float32 [rows, SHAPE_SIZE]: what programs keep, and how heavy it is. Chunks of their rows weigh what is left from then on."""
    rows, num_rows, device = arrays.rows, len(arrays.logits), arrays.logits.device
    assert rows.programs is not None
    codes, values = rows.programs
    shapes, candidates = (torch.empty(num_rows, size, dtype=torch.float32, device=device) for size in (SHAPE_SIZE, CANDIDATES))
    program_kernel[(num_rows,)](
        arrays.scored(torch.uint8), arrays.chunks, rows.seed, rows.position, codes, values, codes.shape[1], shapes, candidates,
        CHUNK=STATISTICS_CHUNK, CHUNKS=triton.next_power_of_2(arrays.num_chunks), HAS_MASKS=arrays.has_masks,
        HAS_EDITS=arrays.has_edits, ALIGNED=arrays.is_aligned, ROOM=CANDIDATES, num_warps=16, **EXACT,
    )  # fmt: skip
    return shapes


def draw(arrays: Arrays, limits: Tensor | None, shapes: Tensor | None, sampled: Sampled) -> None:
    """Writes all of `sampled` but the most probable tokens and whether bans were overridden. shapes: of rows that have programs."""
    rows = arrays.rows
    draw_kernel[(len(arrays.logits),)](
        arrays.scored(torch.uint8), rows.parameters, rows.seed, rows.position,
        arrays.statistics if limits is None else limits, arrays.statistics if shapes is None else shapes, arrays.chunks,
        sampled.token, sampled.logprob, sampled.kept_mass, sampled.num_allowed, sampled.share,
        CHUNK=STATISTICS_CHUNK, CHUNKS=triton.next_power_of_2(arrays.num_chunks), HAS_MASKS=arrays.has_masks,
        HAS_EDITS=arrays.has_edits, HAS_DRAWS=arrays.stages.any_draw, HAS_LIMITS=limits is not None,
        ALIGNED=arrays.is_aligned, HAS_PROGRAMS=shapes is not None,
        HAS_SHARES=shapes is not None and arrays.stages.wants_share, num_warps=4, **EXACT,
    )  # fmt: skip


def rank(arrays: Arrays, sampled: Sampled) -> None:
    """Writes the most probable tokens."""
    leaders_kernel[(len(arrays.logits),)](
        arrays.scored(torch.uint8), arrays.chunks, sampled.top_token, sampled.top_logprob, sampled.top_token.shape[1],
        CHUNK=STATISTICS_CHUNK, CHUNKS=triton.next_power_of_2(arrays.num_chunks), ALIGNED=arrays.is_aligned, num_warps=4, **EXACT,
    )  # fmt: skip
