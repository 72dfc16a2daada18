"""The one read of the logits: what each chunk of a row holds, and again what is left of it after the filters."""

from __future__ import annotations

import triton
import triton.language as tl

from ...triton_support import LOG2_E
from .scores import (
    BEST,
    FREE,
    HIGHEST,
    LOWEST,
    MASKED_MAX,
    MASKED_SUM,
    MODEL_MAX,
    MODEL_SUM,
    NEVER,
    NUM_MASKED,
    WEIGHT,
    bits,
    edited_scores,
    exponent,
    is_searched,
    least_weight,
    load_mask,
    load_scores,
    row_start,
    scored_row,
)

FAR = tl.constexpr(60.0)  # farther than this below the model's best, exp would lose what the masked tokens add up to


@triton.jit
def chunk_statistics_kernel(
    scored, parameters, chunks, group_max, group_sum,
    CHUNK: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr, HAS_DRAWS: tl.constexpr, HAS_GROUPS: tl.constexpr,
    ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows, chunks). statistics[:, row, chunk] as `scores` lists them; for rows that are searched also group_max, group_sum
    [rows, chunks * CHUNK / 32]: of the scores of 32 neighbours, max and sum of exp((score - the chunk's max) / T)."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    UNITS: tl.constexpr = CHUNK // 8
    units = chunk * UNITS + tl.arange(0, UNITS)
    tokens = units[:, None] * 8 + tl.arange(0, 8)[None, :]
    vocab_size = scored.vocab_size
    logits_row = row_start(scored.logits, row, scored.logits_stride, ALIGNED)
    if ALIGNED:
        loaded = tl.load(logits_row + tokens, mask=(units * 8 < vocab_size)[:, None], other=NEVER)
    else:
        loaded = tl.load(logits_row + tokens, mask=tokens < vocab_size, other=NEVER)
    model = tl.maximum(loaded.to(tl.float32), LOWEST)  # NaN, too
    model_max = tl.max(model)
    num_tokens = tl.minimum(vocab_size - chunk * CHUNK, CHUNK)
    if (num_tokens < CHUNK) | (model_max > HIGHEST):
        model = tl.where(tokens < vocab_size, tl.minimum(model, HIGHEST), NEVER)
        model_max = tl.max(model)
    weights = tl.exp2((model - model_max) * LOG2_E)
    model_sum = tl.sum(weights)

    scores = model
    masked_max, masked_sum, num_masked = model_max, model_sum, num_tokens
    if HAS_MASKS:
        mask_id = tl.load(scored.mask_index + row)
        if mask_id != FREE:
            mask_row = scored.masks + tl.maximum(mask_id, 0).to(tl.int64) * scored.mask_stride
            words = load_mask(mask_row, mask_id, units, vocab_size, 8)
            words &= (1 << tl.minimum(tl.maximum(vocab_size - units * 8, 0), 8)) - 1
            num_masked = tl.sum(num_bits(words))
            if num_masked < num_tokens:  # many masks allow nearly everything or next to nothing: most chunks are whole or empty
                allowed = bits(words, 8)
                scores = tl.where(allowed, model, NEVER)
                masked_max, masked_sum = NEVER, 0.0
                if num_masked > 0:
                    masked_max = tl.max(scores)
                    if model_max - masked_max < FAR:
                        masked_sum = tl.sum(tl.where(allowed, weights, 0.0)) * tl.exp2((model_max - masked_max) * LOG2_E)
                    else:
                        masked_sum = tl.sum(tl.exp2((scores - masked_max) * LOG2_E))
    best = masked_max
    if HAS_EDITS:
        edited_row = scored.edited + row.to(tl.int64) * scored.edited_stride
        overlay_row = scored.overlay + row.to(tl.int64) * scored.overlay_stride
        scores = edited_scores(scores, scores > NEVER, edited_row, overlay_row, tokens, units, vocab_size, 8)
        best = tl.max(scores)

    weight = 0.0
    if HAS_DRAWS:
        temperature = tl.load(parameters.temperature + row)
        searched = False
        if HAS_GROUPS:
            top_k, top_p = tl.load(parameters.top_k + row), tl.load(parameters.top_p + row)
            searched = is_searched(temperature, top_k, top_p, vocab_size)
        if searched | (HAS_EDITS & (temperature > 0)) | ((temperature > 0) & (temperature != 1) & (num_masked > 0)):
            weights = tl.exp2((scores - tl.maximum(best, LOWEST)) * exponent(temperature))
            weight = tl.sum(weights)
            if HAS_GROUPS:
                if searched:
                    GROUPS: tl.constexpr = CHUNK // 32
                    groups = (row.to(tl.int64) * chunks.num_chunks + chunk) * GROUPS + tl.arange(0, GROUPS)
                    tl.store(group_max + groups, tl.max(tl.reshape(tl.max(scores, axis=1), (GROUPS, 4)), axis=1))
                    tl.store(group_sum + groups, tl.sum(tl.reshape(tl.sum(weights, axis=1), (GROUPS, 4)), axis=1))
        else:
            weight = masked_sum  # at temperature 1

    out = chunks.statistics + row * chunks.num_chunks + chunk
    tl.store(out + MODEL_MAX * chunks.plane, model_max)
    tl.store(out + MODEL_SUM * chunks.plane, model_sum)
    tl.store(out + MASKED_MAX * chunks.plane, masked_max)
    tl.store(out + MASKED_SUM * chunks.plane, masked_sum)
    tl.store(out + NUM_MASKED * chunks.plane, num_masked.to(tl.float32))
    tl.store(out + BEST * chunks.plane, best)
    tl.store(out + WEIGHT * chunks.plane, weight)


@triton.jit
def num_bits(words):
    """How many of the low 8 bits are set."""
    words = words - ((words >> 1) & 0x55)
    words = (words & 0x33) + ((words >> 2) & 0x33)
    return (words + (words >> 4)) & 0xF


@triton.jit
def kept_weights(scores, chunk_best, best, factor, limit, least):
    """exp((score - the chunk's best) / T) of tokens that survive the filters, 0 for others.

    A token survives at most `limit` below the row's best, and with at least the weight `least`, where the best's is 1.
    """
    distance = best - scores
    keep = (distance <= limit) & (tl.exp2(-distance * factor) >= least) & (scores > NEVER)
    return tl.where(keep, tl.exp2((scores - tl.maximum(chunk_best, LOWEST)) * factor), 0.0)


@triton.jit
def filtered_weight_kernel(
    scored, parameters, chunks,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows, chunks). Of rows whose filters need no search: replaces the weight of a chunk by what they leave of it.

    A chunk whose best token does not survive is not read. CHUNKS: a power of two >= num_chunks.
    """
    row, chunk = tl.program_id(0), tl.program_id(1)
    least, temperature = least_weight(parameters, row), tl.load(parameters.temperature + row)
    top_k, top_p = tl.load(parameters.top_k + row), tl.load(parameters.top_p + row)
    searched = is_searched(temperature, top_k, top_p, scored.vocab_size)
    if (temperature > 0) & (least > 0) & (searched == 0):
        factor = exponent(temperature)
        bests = chunks.statistics + BEST * chunks.plane + row * chunks.num_chunks
        at = tl.arange(0, CHUNKS)
        best = tl.max(tl.load(bests + at, mask=at < chunks.num_chunks, other=NEVER), axis=0)
        chunk_best = tl.load(bests + chunk)
        weight = 0.0
        if (chunk_best > NEVER) & (tl.exp2((chunk_best - best) * factor) >= least):
            UNITS: tl.constexpr = CHUNK // 8
            of_row = scored_row(scored, row, HAS_MASKS, ALIGNED)
            scores = load_scores(of_row, chunk * UNITS + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
            weight = tl.sum(kept_weights(scores, chunk_best, best, factor, float("inf"), least))
        tl.store(chunks.statistics + WEIGHT * chunks.plane + row * chunks.num_chunks + chunk, weight)
