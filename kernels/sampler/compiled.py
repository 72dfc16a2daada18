"""Draws by the compiled code of `kernels/cpu`: what `reference.py` gives, in a few passes over a row.

Only logits in float32 on a CPU. Tokens of rows with programs are drawn by the reference, and what is said of them comes from here.
Where few tokens may be drawn, these alone are looked at. Sums of weights are exact, and the exponential function is the library's
own on all processors: see the package. Log-probabilities may differ from the reference's in the last bits: they come of sums in
double precision.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..cpu.library import loaded
from . import reference
from .interface import MISSING, UNCONSTRAINED, Sampled, SamplerRows, TokenValues, check_arrays, slice_rows
from .parameters import ParameterArrays
from .programs import Code, Programs

NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "top_k")
LISTS = ("offsets", "bias_ids", "bias", "seen_offsets", "seen_ids", "seen_counts")
ADDRESSES = ("logits", "masks", *LISTS, *NUMBERS, "seed", "position", "given", "picked", "top_token", "top_logprob")
DRAW = -2  # in `given`: a token is to be drawn
PICKED = np.dtype({  # `Picked` of native/pick.c; `is_number`: no logit of the row is NaN
    "names": ["token", "num_allowed", "kept_mass", "logprob", "bans_overridden", "is_number"],
    "formats": [np.int64, np.int64, np.float64, np.float32, np.bool_, np.bool_],
    "offsets": [0, 8, 16, 24, 28, 29], "itemsize": 32,
})  # fmt: skip


ROW = struct.Struct("qqdf??2x")  # the same


class Picks(ctypes.Structure):
    """`Picks` of native/pick.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ADDRESSES),
        *((name, ctypes.c_int64) for name in ("num_rows", "stride", "vocab_size", "is_told", "num_top")),
    )


class Picked(NamedTuple):
    """What is drawn, on the host."""

    rows: NDArray[np.void]  # [rows] of PICKED
    top_token: Tensor | None  # int64 [rows, n], as in `Sampled`; None where nobody asks for some
    top_logprob: Tensor | None  # float32 [rows, n]


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
    if not is_covered(logits):
        return reference.sample(
            logits, rows, mask_rows, mask_index, vocab_size=vocab_size, num_top_logprobs=num_top_logprobs, is_told=is_told
        )
    check_arrays(logits, rows, mask_rows, mask_index, vocab_size)
    given, share = None, torch.empty((logits.shape[0], 0))
    if rows.programs is not None:
        given, share = _of_programs(logits, rows, rows.programs, mask_rows, mask_index, vocab_size)
    masks = [] if mask_rows is None or mask_index is None else _masks_of(mask_rows, mask_index)
    drawn, *tops = pick(
        logits, rows, masks, vocab_size=vocab_size, num_top_logprobs=num_top_logprobs, is_told=is_told, given=given
    )
    fields = {name: torch.from_numpy(np.ascontiguousarray(drawn[name])) for name in PICKED.names or () if name != "is_number"}
    none = (torch.empty((logits.shape[0], 0), dtype=dtype) for dtype in (torch.int64, torch.float32))
    top_token, top_logprob = (empty if top is None else top for top, empty in zip(tops, none, strict=True))
    return Sampled(**fields, top_token=top_token, top_logprob=top_logprob, share=share)


def pick(
    logits: Tensor,
    rows: SamplerRows,
    masks: Sequence[NDArray[np.uint32] | None],
    *,
    vocab_size: int,
    num_top_logprobs: int = 0,
    is_told: bool = True,
    given: Tensor | None = None,
) -> Picked:
    """`sample` of logits that it `is_covered`, all of whose arrays fit together. Raises MemoryError.

    masks: uint32 [words] of each row, None of one that may draw all; none at all where no row has one. given: int64 [rows], the
    tokens of rows that are drawn already, DRAW of others; needed for rows with programs.
    """
    found = loaded()
    assert found is not None, "`is_covered` was asked"
    count, num_top = logits.shape[0], min(num_top_logprobs, vocab_size) if is_told else 0
    picked = np.empty(count, PICKED)
    top_token = torch.empty((count, num_top), dtype=torch.int64) if num_top else None
    top_logprob = torch.empty((count, num_top)) if num_top else None
    kept = [None if mask is None else np.ascontiguousarray(mask) for mask in masks]
    addresses = (ctypes.c_void_p * count)(*(None if mask is None else mask.ctypes.data for mask in kept)) if kept else None
    picks = picks_of(rows, vocab_size, is_told=is_told)
    picks.logits, picks.stride, picks.given, picks.picked = logits.data_ptr(), logits.stride(0), _address(given), picked.ctypes.data
    picks.masks = None if addresses is None else ctypes.addressof(addresses)
    picks.top_token, picks.top_logprob, picks.num_top = _address(top_token), _address(top_logprob), num_top
    if found.maskwright_pick(ctypes.byref(picks), torch.get_num_threads()) != 0:
        raise MemoryError(f"no memory to draw from {vocab_size} tokens")
    return Picked(picked, top_token, top_logprob)


def picks_of(rows: SamplerRows, vocab_size: int, *, is_told: bool) -> Picks:
    """How C sees rows, whose memory is not kept by this, without masks; logits and where results go are to be set."""
    return Picks(
        None, None, *_lists(rows.bias), *_lists(rows.history), *_known.numbers(rows.parameters), rows.seed.data_ptr(),
        rows.position.data_ptr(), None, None, None, None, rows.seed.shape[0], 0, vocab_size, is_told, 0,
    )  # fmt: skip


class _Numbers(threading.local):
    """Where the numbers of a thread's last batch are, which stays the same for many steps."""

    parameters: ParameterArrays | None = None
    addresses: tuple[int, ...] = ()

    def numbers(self, parameters: ParameterArrays) -> tuple[int, ...]:
        """Addresses of NUMBERS."""
        if parameters is not self.parameters:
            self.parameters, self.addresses = parameters, tuple(getattr(parameters, name).data_ptr() for name in NUMBERS)
        return self.addresses


_known = _Numbers()


def is_covered(logits: Tensor) -> bool:
    """Whether compiled code reads these logits."""
    is_plain = logits.dtype == torch.float32 and logits.device.type == "cpu" and logits.ndim == 2 and logits.stride(-1) == 1
    return is_plain and loaded() is not None


def are_numbers(logits: Tensor, vocab_size: int) -> Tensor:
    """bool [rows]: none of the first `vocab_size` logits of the row is NaN."""
    if not is_covered(logits):
        return ~logits[:, :vocab_size].isnan().any(-1)
    found, result = loaded(), torch.empty(logits.shape[0], dtype=torch.bool)
    assert found is not None, "`is_covered` was asked"
    found.maskwright_are_numbers(logits.data_ptr(), logits.shape[0], logits.stride(0), vocab_size, result.data_ptr())
    return result


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _lists(values: TokenValues | None) -> tuple[int | None, ...]:
    return (None, None, None) if values is None else tuple(array.data_ptr() for array in values)


def _masks_of(mask_rows: Tensor, mask_index: Tensor) -> list[NDArray[np.uint32] | None]:
    """Of each row; of one whose mask is MISSING one that allows nothing."""
    pool, nothing = mask_rows.numpy().view(np.uint32), np.zeros(mask_rows.shape[1], np.uint32)
    return [None if place == UNCONSTRAINED else nothing if place == MISSING else pool[place] for place in mask_index.tolist()]


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
