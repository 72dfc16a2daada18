"""Draws by the compiled code of `kernels/cpu`: what `reference.py` gives, in a few passes over a row.

Only logits in float32 on a CPU. Tokens of rows with programs are drawn by the reference, and what is said of them comes from here.
Where few tokens may be drawn, these alone are looked at. Sums of weights are exact, and the exponential function is the library's
own on all processors: see the package. Log-probabilities may differ from the reference's in the last bits: they come of sums in
double precision.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import groupby

import torch
from torch import Tensor

from ..cpu.library import loaded
from . import reference
from .interface import Sampled, SamplerRows, TokenValues, check_arrays, slice_rows
from .programs import Code, Programs

LISTS = ("offsets", "bias_ids", "bias", "seen_offsets", "seen_ids", "seen_counts")
NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "top_k")
GIVEN = ("logits", "masks", "mask_of", *LISTS, *NUMBERS, "seed", "position", "given")
MADE = ("token", "logprob", "kept_mass", "num_allowed", "bans_overridden", "top_token", "top_logprob")
DRAW = -2  # in `given`: a token is to be drawn


class _Picks(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in (*GIVEN, *MADE)),
        *((name, ctypes.c_int64) for name in ("num_rows", "stride", "vocab_size", "is_told", "num_top")),
    )


def sample(
    logits: Tensor,
    rows: SamplerRows,
    mask_rows: Tensor | None = None,
    mask_index: Tensor | None = None,
    *,
    vocab_size: int,
    num_top_logprobs: int = 0,
    is_told: bool = True,
) -> Sampled:
    """`reference.sample`, whichever computes it. Raises MemoryError."""
    found = loaded() if is_covered(logits) else None
    if found is None:
        return reference.sample(
            logits, rows, mask_rows, mask_index, vocab_size=vocab_size, num_top_logprobs=num_top_logprobs, is_told=is_told
        )
    check_arrays(logits, rows, mask_rows, mask_index, vocab_size)
    count, num_top = logits.shape[0], min(num_top_logprobs, vocab_size) if is_told else 0
    given, share = (None, torch.empty((count, 0))) if rows.programs is None else _of_programs(
        logits, rows, rows.programs, mask_rows, mask_index, vocab_size
    )
    sampled = Sampled(
        token=torch.empty(count, dtype=torch.int64),
        logprob=torch.empty(count),
        kept_mass=torch.empty(count, dtype=torch.float64),
        num_allowed=torch.empty(count, dtype=torch.int64),
        bans_overridden=torch.empty(count, dtype=torch.bool),
        top_token=torch.empty((count, num_top), dtype=torch.int64),
        top_logprob=torch.empty((count, num_top)),
        share=share,
    )
    masks = None if mask_rows is None else mask_rows.contiguous()
    index = None if mask_index is None else mask_index.long().contiguous()
    numbers = [getattr(rows.parameters, name) for name in NUMBERS]
    read = (logits, masks, index, *_lists(rows.bias), *_lists(rows.history), *numbers, rows.seed, rows.position, given)
    arrays = [None if array is None else array.data_ptr() for array in (*read, *sampled[:-1])]
    picks = _Picks(*arrays, count, logits.stride(0), vocab_size, is_told, num_top)
    if found.maskwright_pick(ctypes.byref(picks), torch.get_num_threads()) != 0:
        raise MemoryError(f"no memory to draw from {vocab_size} tokens")
    return sampled


def are_numbers(logits: Tensor, vocab_size: int) -> Tensor:
    """bool [rows]: none of the first `vocab_size` logits of the row is NaN."""
    found = loaded() if is_covered(logits) else None
    if found is None:
        return ~logits[:, :vocab_size].isnan().any(-1)
    result = torch.empty(logits.shape[0], dtype=torch.bool)
    found.maskwright_are_numbers(logits.data_ptr(), logits.shape[0], logits.stride(0), vocab_size, result.data_ptr())
    return result


def is_covered(logits: Tensor) -> bool:
    """Whether compiled code reads these logits."""
    return logits.dtype == torch.float32 and logits.device.type == "cpu" and logits.ndim == 2 and logits.stride(-1) == 1


def _lists(values: TokenValues | None) -> tuple[Tensor | None, ...]:
    return (None, None, None) if values is None else values


def _of_programs(
    logits: Tensor, rows: SamplerRows, programs: Programs, mask_rows: Tensor | None, mask_index: Tensor | None, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """(int64 [rows]: the token of each row that has a program, DRAW of others; `Sampled.share`), by the reference."""
    count, wants_share = logits.shape[0], rows.stages is None or rows.stages.wants_share
    token, share = torch.full((count,), DRAW), torch.full((count, int(wants_share)), float("nan"))
    for block in _runs((programs.codes[:, 0] != Code.END).tolist()):
        index = reference.index_of(mask_index, block)
        drawn = reference.sample(logits[block], slice_rows(rows, block), mask_rows, index, vocab_size=vocab_size, is_told=False)
        token[block], share[block] = drawn.token, drawn.share
    return token, share


def _runs(are_wanted: list[bool]) -> Iterator[slice]:
    """Where wanted rows stand, side by side."""
    begin = 0
    for is_wanted, members in groupby(are_wanted):
        end = begin + len(list(members))
        if is_wanted:
            yield slice(begin, end)
        begin = end
