"""Bias, bans and penalties: the few scores of a row that differ from its logits, written down beside them."""

from __future__ import annotations

import triton
import triton.language as tl

from .chunks import num_bits
from .scores import FREE, HIGHEST, LOWEST, NEVER, scored_row


@triton.jit
def load_single(logits_row, tokens, is_entry):
    """fp32, finite: the logits of some tokens."""
    loaded = tl.load(logits_row + tokens, mask=is_entry, other=0.0).to(tl.float32)
    return tl.minimum(tl.maximum(loaded, LOWEST), HIGHEST)


@triton.jit
def mark(edited_row, tokens, is_entry):
    """Set the bits of these tokens."""
    tl.atomic_or(edited_row + tokens // 32, (1 << (tokens % 32)).to(tl.int32), mask=is_entry, sem="relaxed")


@triton.jit
def edit_kernel(
    scored, parameters, bias, history, overridden_out, num_words,
    BLOCK: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_HISTORY: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). Where bit t % 32 of edited[row, t // 32] is set afterwards, overlay[row, t] is the score of token t.

    Bits are read as int32 [.., num_words]; edited is zero before. bias, history: `TokenValues`. Banned tokens get -inf, unless bans
    cover all that the mask allows.
    """
    row = tl.program_id(0)
    of_row = scored_row(scored, row, HAS_MASKS, False)
    logits_row, edited_row, overlay_row = of_row.logits, of_row.edited, of_row.overlay
    mask_row, mask_id, vocab_size = of_row.mask, of_row.mask_id, scored.vocab_size
    if HAS_BIAS:
        bias_offsets, bias_tokens, bias_values = bias
        first, last = tl.load(bias_offsets + row), tl.load(bias_offsets + row + 1)
        num_banned = 0
        for start in range(first, last, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tokens = tl.load(bias_tokens + at, mask=at < last, other=0)
            banned = tl.load(bias_values + at, mask=at < last, other=0.0) == NEVER
            words = tl.load(mask_row + tokens // 32, mask=(at < last) & (tokens < tl.where(mask_id >= 0, vocab_size, 0)), other=0)
            words = tl.where(mask_id == FREE, -1, words)
            num_banned += tl.sum(tl.where(banned, (words >> (tokens % 32).to(tl.int32)) & 1, 0), axis=0)
        overridden = False
        if num_banned > 0:
            overridden = num_banned == count_masked(mask_row, mask_id, vocab_size, num_words, BLOCK)
        tl.store(overridden_out + row, overridden)
        for start in range(first, last, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tokens = tl.load(bias_tokens + at, mask=at < last, other=0)
            values = tl.load(bias_values + at, mask=at < last, other=0.0)
            logit = load_single(logits_row, tokens, at < last)
            banned = values == NEVER
            score = tl.minimum(tl.maximum(logit + tl.where(banned, 0.0, values), LOWEST), HIGHEST)
            score = tl.where(banned & (overridden == 0), NEVER, score)
            tl.store(overlay_row + tokens, score, mask=at < last)
            mark(edited_row, tokens, at < last)
        tl.debug_barrier()
    if HAS_HISTORY:
        history_offsets, history_tokens, history_counts = history
        first, last = tl.load(history_offsets + row), tl.load(history_offsets + row + 1)
        repetition, frequency = tl.load(parameters.repetition_penalty + row), tl.load(parameters.frequency_penalty + row)
        presence = tl.load(parameters.presence_penalty + row)
        for start in range(first, last, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tokens = tl.load(history_tokens + at, mask=at < last, other=0)
            counts = tl.load(history_counts + at, mask=at < last, other=0.0)
            score = load_single(logits_row, tokens, at < last)
            if HAS_BIAS:
                # Written by atomics above: read past the first cache, which may hold the line from before.
                words = tl.load(edited_row + tokens // 32, mask=at < last, other=0, cache_modifier=".cg")
                is_biased = ((words >> (tokens % 32).to(tl.int32)) & 1) != 0
                biased = tl.load(overlay_row + tokens, mask=(at < last) & is_biased, other=0.0, cache_modifier=".cg")
                score = tl.where(is_biased, biased, score)
            is_banned = score == NEVER
            score = tl.where(score > 0, tl.div_rn(score, repetition), score * repetition)
            score = score - frequency * counts - tl.where(counts > 0, presence, 0.0)
            score = tl.minimum(tl.maximum(score, LOWEST), HIGHEST)
            tl.store(overlay_row + tokens, tl.where(is_banned, NEVER, score), mask=at < last)
            if HAS_BIAS:
                tl.debug_barrier()  # a token's bit is read before it is set, for ids are distinct; this keeps blocks in order
            mark(edited_row, tokens, at < last)


@triton.jit
def count_masked(mask_row, mask_id, vocab_size, num_words, BLOCK: tl.constexpr):
    """Tokens that the mask allows."""
    number = vocab_size
    if mask_id != FREE:
        number = 0
        for start in range(0, tl.where(mask_id >= 0, num_words, 0), BLOCK):
            at = start + tl.arange(0, BLOCK)
            words = tl.load(mask_row + at, mask=at < num_words, other=0)
            left = tl.minimum(tl.maximum(vocab_size - at * 32, 0), 32)
            words = tl.where(left < 32, words & ((1 << tl.minimum(left, 31)) - 1), words)
            for shift in tl.static_range(0, 32, 8):
                number += tl.sum(num_bits((words >> shift) & 0xFF), axis=0)
    return number
