"""The arrays a sampler reads and the arrays it gives back, the same for every implementation."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .parameters import ParameterArrays
from .programs import Programs

UNCONSTRAINED = -1  # in mask_index: this row may draw every token
MISSING = -2  # in mask_index: the mask of this row is not there yet; nothing is drawn
NO_TOKEN = -1  # in Sampled.token: the mask of this row allows nothing, so nothing was drawn


class TokenValues(NamedTuple):
    """One short list of (token id, value) per row, stored one after the other (CSR). Ids are distinct within a row."""

    offsets: Tensor  # [rows + 1] int64, entries of row r are offsets[r]:offsets[r + 1]
    token_ids: Tensor  # [entries] int64, in [0, vocab_size)
    values: Tensor  # [entries] float32


class Stages(NamedTuple):
    """What the host knows about the whole batch, so that no stage has to ask the device whether it is needed."""

    any_draw: bool = True  # some row has temperature > 0
    filters: frozenset[str] = frozenset()  # those of the table that some row uses
    max_top_k: int = 0
    wants_share: bool = False  # of some row it matters how probable its token was when it was drawn


class SamplerRows(NamedTuple):
    """How each row is sampled."""

    parameters: ParameterArrays  # [rows] each, float32 or int32: the numbers that `parameters.py` lists
    seed: Tensor  # [rows] int64, the 64 bits of an unsigned seed
    position: Tensor  # [rows] int64, number of this draw among those with this seed
    stages: Stages | None = None  # None: found out from the arrays, which waits for the device
    bias: TokenValues | None = None  # added to the logit; -inf bans the token
    history: TokenValues | None = None  # tokens seen so far and how often in the output; 0 = in the prompt only
    programs: Programs | None = None  # of rows whose stages are not the plain ones; such a row has its filters in its program alone


class Sampled(NamedTuple):
    """One row of each per row of logits. Log-probabilities are of the model: log-softmax of the logits as given, over
    the vocabulary, before mask, bias, penalties and temperature."""

    token: Tensor  # [rows] int64, or NO_TOKEN
    logprob: Tensor  # [rows] float32 of the token drawn; NaN for NO_TOKEN
    kept_mass: Tensor  # [rows] float64, the model's probability of the tokens the mask allows; 1 if unconstrained
    num_allowed: Tensor  # [rows] int64, tokens the mask allows
    bans_overridden: Tensor  # [rows] bool, bans covered every allowed token and were ignored
    top_token: Tensor  # [rows, n] int64, most probable tokens of the model first, lower id first on ties
    top_logprob: Tensor  # [rows, n] float32
    share: Tensor  # [rows, 1] float32, the probability of the draw of a row with a program; [rows, 0] if nobody wants it


def slice_rows(rows: SamplerRows, block: slice) -> SamplerRows:
    """The parameters of some of the rows."""
    return SamplerRows(*(slice_field(value, block) for value in rows))


def slice_field(value: Any, block: slice) -> Any:
    if isinstance(value, Tensor):
        return value[block]
    if isinstance(value, ParameterArrays | Programs):
        return type(value)(*(array[block] for array in value))
    return slice_lists(value, block) if isinstance(value, TokenValues) else value


def slice_lists(lists: TokenValues, block: slice) -> TokenValues:
    offsets = lists.offsets[block.start : block.stop + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    return TokenValues(offsets - first, lists.token_ids[first:last], lists.values[first:last])


def check_arrays(
    logits: Tensor, rows: SamplerRows, mask_rows: Tensor | None, mask_index: Tensor | None, vocab_size: int
) -> None:
    """Raises `ValueError` for arrays whose shapes do not fit together."""
    num_rows, head_width = logits.shape
    if not 0 < vocab_size <= head_width:
        raise ValueError(f"vocab_size must be in [1, {head_width}], the width of the logits, got {vocab_size}")
    if logits.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise ValueError(f"logits must be float32, bfloat16 or float16, got {logits.dtype}")
    for value in (*rows.parameters, rows.seed, rows.position):
        if value.ndim != 1 or value.shape[0] != num_rows:
            _refuse_row_shapes(rows, num_rows)
    for name, lists in (("bias", rows.bias), ("history", rows.history)):
        if lists is not None and lists.offsets.shape != (num_rows + 1,):
            raise ValueError(f"{name}.offsets must have shape ({num_rows + 1},), got {tuple(lists.offsets.shape)}")
    if rows.programs is not None and not num_rows == len(rows.programs.codes) == len(rows.programs.values):
        raise ValueError(f"programs must have {num_rows} rows, one per row of logits, got {len(rows.programs.codes)}")
    if (mask_rows is None) != (mask_index is None):
        raise ValueError("mask_rows and mask_index must be given together")
    if mask_rows is not None and mask_index is not None:
        check_masks(mask_rows, mask_index, num_rows, vocab_size)


def _refuse_row_shapes(rows: SamplerRows, num_rows: int) -> None:
    for name, value in (rows.parameters._asdict() | {"seed": rows.seed, "position": rows.position}).items():
        if value.shape != (num_rows,):
            raise ValueError(f"{name} must have shape ({num_rows},), one per row of logits, got {tuple(value.shape)}")


def check_masks(mask_rows: Tensor, mask_index: Tensor, num_rows: int, vocab_size: int) -> None:
    words = -(-vocab_size // 32)
    if mask_rows.ndim != 2 or mask_rows.shape[1] != words:
        raise ValueError(f"mask_rows must be [pool, {words}] for {vocab_size} tokens, got {tuple(mask_rows.shape)}")
    if mask_rows.dtype not in (torch.int32, torch.uint32):
        raise ValueError(f"mask_rows must be int32 or uint32, got {mask_rows.dtype}")
    if mask_index.shape != (num_rows,):
        raise ValueError(f"mask_index must have shape ({num_rows},), got {tuple(mask_index.shape)}")
