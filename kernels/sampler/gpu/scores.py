"""Logits, mask bits and scores of a block of tokens, as every kernel of the sampler reads them.

A block is [UNITS, WIDTH]: units of WIDTH neighbouring tokens. A unit of 8 has one byte of the mask, a unit of 32 one word, so a
mask is loaded once per unit; a unit of 8 aligned logits is one or two 16-byte loads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from ...triton_support import LOG2_E
from ..interface import UNCONSTRAINED

STATISTICS_CHUNK = 4096  # tokens whose statistics are kept together; a draw depends on it, so it is the same on every device
UNIT = 8  # tokens of one byte of a mask
GROUP = 32  # tokens of one word of a mask; rows that filter keep the maximum and the sum of each
NEVER = tl.constexpr(float("-inf"))  # the score of a token that may not be drawn
LOWEST = tl.constexpr(-3.4028234663852886e38)
HIGHEST = tl.constexpr(3.4028234663852886e38)
FREE = tl.constexpr(UNCONSTRAINED)

# Planes of the chunk statistics, fp32 [PLANES, rows, chunks]. Sums are relative to the maximum before them.
MODEL_MAX, MODEL_SUM = tl.constexpr(0), tl.constexpr(1)  # of the logits: max, sum of exp(logit - max)
MASKED_MAX, MASKED_SUM = tl.constexpr(2), tl.constexpr(3)  # the same over tokens that the mask allows
NUM_MASKED = tl.constexpr(4)  # tokens that the mask allows
BEST, WEIGHT = tl.constexpr(5), tl.constexpr(6)  # of the scores of tokens that may be drawn: max, sum of exp((score - max) / T)
PLANES = 7


class Scored(NamedTuple):
    """What scores are made of, as kernels take it. A unit of bits is a byte or a word: the kernel's choice."""

    logits: Any  # fp32, bf16 or fp16 [rows, head width]
    masks: Any  # uint8 or int32 [pool, units]
    mask_index: Any  # [rows]: row of the pool, UNCONSTRAINED or MISSING
    edited: Any  # as masks [rows, units]: tokens whose bit is set have their score in the overlay
    overlay: Any  # fp32 [rows, vocab_size]
    logits_stride: Any  # from row to row, in elements
    mask_stride: Any
    edited_stride: Any
    overlay_stride: Any
    vocab_size: Any


class ScoredRow(NamedTuple):
    """What `Scored` holds of one row: where the row begins in each array, and its place in the pool of masks."""

    logits: Any
    mask: Any
    mask_id: Any
    edited: Any
    overlay: Any
    vocab_size: Any


class Chunks(NamedTuple):
    """The chunk statistics, as kernels take them."""

    statistics: Any  # fp32 [PLANES, rows, num_chunks]
    num_chunks: Any
    plane: Any  # elements of a plane


@triton.jit
def scored_row(scored, row, HAS_MASKS: tl.constexpr, ALIGNED: tl.constexpr):
    """`ScoredRow` of a row of `Scored`."""
    mask_id = tl.load(scored.mask_index + row) if HAS_MASKS else FREE
    return ScoredRow(
        logits=row_start(scored.logits, row, scored.logits_stride, ALIGNED),
        mask=scored.masks + tl.maximum(mask_id, 0).to(tl.int64) * scored.mask_stride,
        mask_id=mask_id,
        edited=scored.edited + row.to(tl.int64) * scored.edited_stride,
        overlay=scored.overlay + row.to(tl.int64) * scored.overlay_stride,
        vocab_size=scored.vocab_size,
    )


@triton.jit
def load_logits(logits_row, tokens, units, vocab_size, WIDTH: tl.constexpr, ALIGNED: tl.constexpr):
    """fp32 [UNITS, WIDTH]: finite, NaN and -inf being the lowest number; -inf outside the vocabulary.

    Aligned: a whole unit is loaded where any token of it is in the vocabulary; 16 aligned bytes never cross a page.
    """
    in_vocab = tokens < vocab_size
    if ALIGNED:
        loaded = tl.load(logits_row + tokens, mask=(units * WIDTH < vocab_size)[:, None], other=0.0)
    else:
        loaded = tl.load(logits_row + tokens, mask=in_vocab, other=0.0)
    finite = tl.minimum(tl.maximum(loaded.to(tl.float32), LOWEST), HIGHEST)
    return tl.where(in_vocab, finite, NEVER)


@triton.jit
def row_start(array, row, stride, ALIGNED: tl.constexpr):
    """Pointer to a row; told to the compiler to be a multiple of 8 elements if it is."""
    if ALIGNED:
        stride = stride // 8 * 8
    return array + row.to(tl.int64) * stride


@triton.jit
def load_mask(mask_row, mask_id, units, vocab_size, WIDTH: tl.constexpr):
    """int32 [UNITS]: the mask of each unit, one bit a token. Bits outside the vocabulary say nothing."""
    masked_tokens = tl.where(mask_id >= 0, vocab_size, 0)
    loaded = tl.load(mask_row + units, mask=units * WIDTH < masked_tokens, other=0).to(tl.int32)
    return tl.where(mask_id == FREE, -1, loaded)


@triton.jit
def bits(words, WIDTH: tl.constexpr):
    """bool [UNITS, WIDTH] of int32 [UNITS]."""
    return ((words[:, None] >> tl.arange(0, WIDTH)[None, :]) & 1) != 0


@triton.jit
def edited_scores(scores, allowed, edited_row, overlay_row, tokens, units, vocab_size, WIDTH: tl.constexpr):
    """The scores with those replaced that bias, bans and penalties changed: `edits.py` wrote them down."""
    words = tl.load(edited_row + units, mask=units * WIDTH < vocab_size, other=0).to(tl.int32)
    if tl.max(tl.where(words != 0, 1, 0), axis=0) != 0:
        is_edited = bits(words, WIDTH) & allowed
        scores = tl.where(is_edited, tl.load(overlay_row + tokens, mask=is_edited, other=0.0), scores)
    return scores


@triton.jit
def load_scores(of_row, units, WIDTH: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr):
    """fp32 [UNITS, WIDTH]: what is drawn from, -inf for tokens that may not be. of_row: `ScoredRow`."""
    tokens = units[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    logits = load_logits(of_row.logits, tokens, units, of_row.vocab_size, WIDTH, ALIGNED)
    words = load_mask(of_row.mask, of_row.mask_id, units, of_row.vocab_size, WIDTH)
    allowed = bits(words, WIDTH) & (tokens < of_row.vocab_size)
    scores = tl.where(allowed, logits, NEVER)
    if HAS_EDITS:
        scores = edited_scores(scores, allowed, of_row.edited, of_row.overlay, tokens, units, of_row.vocab_size, WIDTH)
    return scores


@triton.jit
def exponent(temperature):
    """The factor f with exp(x / temperature) = exp2(f * x); finite also for the smallest temperatures."""
    return tl.minimum(LOG2_E / tl.where(temperature > 0, temperature, 1.0), HIGHEST)


@triton.jit
def is_searched(temperature, top_k, top_p, vocab_size):
    """Whether the row's threshold has to be searched for: that of top-k and top-p is not known before."""
    return (temperature > 0) & (((top_k > 0) & (top_k < vocab_size)) | (top_p < 1))


@triton.jit
def least_weight(parameters, row):
    """The weight that a token needs to stay, where the best token's is 1: the most that a filter asks for, 0 if none does."""
    return tl.load(parameters.min_p + row)
