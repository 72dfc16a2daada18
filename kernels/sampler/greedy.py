"""Rows that take the most probable token, by the compiled code of `kernels/cpu`: what `reference.py` gives, in two passes a row.

Only logits in float32 on a CPU, without penalties, draws and top log-probabilities; all else is left to the reference. Tokens are
the same. Log-probabilities may differ in the last bits: they come of sums in double precision, in an order of their own.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from ..cpu.library import loaded
from . import reference
from .interface import Sampled, SamplerRows, Stages, check_arrays

KNOWN = frozenset({"parameters", "seed", "position", "stages", "bias"})  # of SamplerRows: what greedy rows look at, or need not
GIVEN = ("logits", "masks", "mask_of", "offsets", "bias_ids", "bias")
MADE = ("token", "logprob", "kept_mass", "num_allowed", "bans_overridden")


class _Picks(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in (*GIVEN, *MADE)),
        *((name, ctypes.c_int64) for name in ("num_rows", "stride", "vocab_size")),
    )


def sample(
    logits: Tensor,
    rows: SamplerRows,
    mask_rows: Tensor | None = None,
    mask_index: Tensor | None = None,
    *,
    vocab_size: int,
    num_top_logprobs: int = 0,
) -> Sampled:
    """`reference.sample`, whichever computes it. Raises MemoryError."""
    found = loaded() if is_covered(logits, rows, num_top_logprobs) else None
    if found is None:
        return reference.sample(logits, rows, mask_rows, mask_index, vocab_size=vocab_size, num_top_logprobs=num_top_logprobs)
    check_arrays(logits, rows, mask_rows, mask_index, vocab_size)
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
    bias = (None, None, None) if rows.bias is None else tuple(rows.bias)
    arrays = (logits, masks, index, *bias, *sampled[:5])
    picks = _Picks(*(None if array is None else array.data_ptr() for array in arrays), count, logits.stride(0), vocab_size)
    if found.maskwright_pick(ctypes.byref(picks)) != 0:
        raise MemoryError(f"no memory to draw from {vocab_size} tokens")
    return sampled


def is_covered(logits: Tensor, rows: SamplerRows, num_top_logprobs: int) -> bool:
    """Whether these rows are drawn by compiled code."""
    has_others = any(getattr(rows, name) is not None for name in rows._fields if name not in KNOWN)
    is_greedy = rows.stages == Stages(any_draw=False) and not has_others
    is_float = logits.dtype == torch.float32 and logits.device.type == "cpu" and logits.ndim == 2 and logits.stride(-1) == 1
    return is_greedy and is_float and num_top_logprobs == 0
