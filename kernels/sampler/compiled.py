"""Draws by the compiled code of `kernels/cpu`: what `reference.py` gives, in a few passes over a row.

Only logits in float32 on a CPU. Programs, and the most probable tokens, are the reference's. Where few tokens may be drawn, these
alone are looked at. Sums of weights are exact, and the exponential function is the library's own on all processors: see the
package. Log-probabilities may differ from the reference's in the last bits: they come of sums in double precision.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from ..cpu.library import loaded
from . import reference
from .interface import Sampled, SamplerRows, TokenValues, check_arrays
from .programs import Code

LISTS = ("offsets", "bias_ids", "bias", "seen_offsets", "seen_ids", "seen_counts")
NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "top_k")
GIVEN = ("logits", "masks", "mask_of", *LISTS, *NUMBERS, "seed", "position")
MADE = ("token", "logprob", "kept_mass", "num_allowed", "bans_overridden")


class _Picks(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in (*GIVEN, *MADE)),
        *((name, ctypes.c_int64) for name in ("num_rows", "stride", "vocab_size", "is_told")),
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
    if found is None or rows.programs is not None or num_top_logprobs:
        expected = reference.sample(
            logits, rows, mask_rows, mask_index, vocab_size=vocab_size, num_top_logprobs=num_top_logprobs, is_told=is_told
        )
        if found is None:
            return expected
        drawn = _drawn(found, logits, rows, mask_rows, mask_index, vocab_size, is_told)
        return _with_reference(drawn, expected, rows)
    check_arrays(logits, rows, mask_rows, mask_index, vocab_size)
    return _drawn(found, logits, rows, mask_rows, mask_index, vocab_size, is_told)


def is_covered(logits: Tensor) -> bool:
    """Whether compiled code reads these logits."""
    return logits.dtype == torch.float32 and logits.device.type == "cpu" and logits.ndim == 2 and logits.stride(-1) == 1


def _drawn(
    found: ctypes.CDLL,
    logits: Tensor,
    rows: SamplerRows,
    mask_rows: Tensor | None,
    mask_index: Tensor | None,
    vocab_size: int,
    is_told: bool,
) -> Sampled:
    """What is drawn of rows without programs, and no top log-probabilities."""
    count = logits.shape[0]
    sampled = Sampled(
        token=torch.empty(count, dtype=torch.int64),
        logprob=torch.empty(count),
        kept_mass=torch.empty(count, dtype=torch.float64),
        num_allowed=torch.empty(count, dtype=torch.int64),
        bans_overridden=torch.empty(count, dtype=torch.bool),
        top_token=torch.empty((count, 0), dtype=torch.int64),
        top_logprob=torch.empty((count, 0)),
        share=torch.empty((count, 0)),
    )
    masks = None if mask_rows is None else mask_rows.contiguous()
    index = None if mask_index is None else mask_index.long().contiguous()
    numbers = [getattr(rows.parameters, name) for name in NUMBERS]
    given = (logits, masks, index, *_lists(rows.bias), *_lists(rows.history), *numbers, rows.seed, rows.position)
    arrays = [None if array is None else array.data_ptr() for array in (*given, *sampled[:5])]
    picks = _Picks(*arrays, count, logits.stride(0), vocab_size, is_told)
    if found.maskwright_pick(ctypes.byref(picks), torch.get_num_threads()) != 0:
        raise MemoryError(f"no memory to draw from {vocab_size} tokens")
    return sampled


def _lists(values: TokenValues | None) -> tuple[Tensor | None, ...]:
    return (None, None, None) if values is None else values


def _with_reference(drawn: Sampled, expected: Sampled, rows: SamplerRows) -> Sampled:
    """What compiled code does not make, from the reference; so no row depends on what others ask for."""
    has_program = torch.zeros_like(drawn.bans_overridden) if rows.programs is None else rows.programs.codes[:, 0] != Code.END
    own = {name: torch.where(has_program, getattr(expected, name), getattr(drawn, name)) for name in ("token", "logprob")}
    is_it = expected.top_token == own["token"][:, None]  # told by one number, whichever computed it
    top_logprob = torch.where(is_it, own["logprob"][:, None], expected.top_logprob)
    return drawn._replace(**own, top_token=expected.top_token, top_logprob=top_logprob, share=expected.share)
