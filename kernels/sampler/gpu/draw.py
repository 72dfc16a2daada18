"""From the statistics of a row's chunks to its token: pick a chunk, read it again, pick in it."""

from __future__ import annotations

import triton
import triton.language as tl

from ...triton_support import LOG2_E
from .chunks import kept_weights
from .programs import depths_of, load_shape
from .scores import (
    BEST,
    LOWEST,
    MASKED_MAX,
    MASKED_SUM,
    MODEL_MAX,
    MODEL_SUM,
    NEVER,
    NUM_MASKED,
    WEIGHT,
    exponent,
    least_weight,
    load_logits,
    load_scores,
    scored_row,
)
from .uniform import uniform

FRACTION = tl.constexpr(float(1 << 40))  # weights are added up as multiples of 1 / FRACTION of the best token's: exact in any order
NO_CHUNK = tl.constexpr(1 << 30)


@triton.jit
def total_and_max(maxima, sums):
    """(fp64 sum relative to the maximum, maximum) of chunks that have sums relative to their own maxima."""
    highest = tl.max(maxima, axis=0)
    scale = tl.exp((maxima - tl.where(highest > NEVER, highest, 0.0)).to(tl.float64))
    return tl.sum(sums.to(tl.float64) * scale, axis=0), highest


@triton.jit
def draw_kernel(
    scored, parameters, seed, position, limits, shapes, chunks, token_out, logprob_out, kept_mass_out, num_allowed_out, share_out,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr, HAS_DRAWS: tl.constexpr,
    HAS_LIMITS: tl.constexpr, HAS_PROGRAMS: tl.constexpr, HAS_SHARES: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). The fields of `Sampled` from the chunk statistics. CHUNKS: a power of two >= num_chunks. shapes: of rows that
    have programs, with HAS_PROGRAMS."""
    row = tl.program_id(0)
    numbers, plane = tl.arange(0, CHUNKS), chunks.plane
    is_chunk = numbers < chunks.num_chunks
    planes = chunks.statistics + row * chunks.num_chunks + numbers
    model_max = tl.load(planes + MODEL_MAX * plane, mask=is_chunk, other=NEVER)
    model_total, model_best = total_and_max(model_max, tl.load(planes + MODEL_SUM * plane, mask=is_chunk, other=0.0))
    masked_max = tl.load(planes + MASKED_MAX * plane, mask=is_chunk, other=NEVER)
    masked_total, masked_best = total_and_max(masked_max, tl.load(planes + MASKED_SUM * plane, mask=is_chunk, other=0.0))
    num_masked = tl.sum(tl.load(planes + NUM_MASKED * plane, mask=is_chunk, other=0.0), axis=0)
    tl.store(num_allowed_out + row, num_masked.to(tl.int64))

    bests = tl.load(planes + BEST * plane, mask=is_chunk, other=NEVER)
    best = tl.max(bests, axis=0)
    token = tl.full((), -1, tl.int64)
    logprob = float("nan")
    share = float("nan")
    if best > NEVER:
        chunk = tl.min(tl.where(bests == best, numbers, NO_CHUNK), axis=0)  # the first of equals
        is_drawn = False
        factor, target, width, total = 1.0, tl.full((), 0, tl.int64), tl.full((), 1, tl.int64), tl.full((), 1, tl.int64)
        if HAS_DRAWS:
            temperature = tl.load(parameters.temperature + row)
            is_drawn = temperature > 0
            if is_drawn:
                factor = exponent(temperature)
                scale = tl.exp2((bests - best) * factor).to(tl.float64) * FRACTION
                if HAS_PROGRAMS:
                    has_program, shape = load_shape(shapes, row)
                    scale = tl.where(has_program, FRACTION, scale)  # they weigh by the row's nearest token already
                widths = (tl.load(planes + WEIGHT * plane, mask=is_chunk, other=0.0).to(tl.float64) * scale).to(tl.int64)
                ends = tl.cumsum(widths, axis=0)
                total = tl.sum(widths, axis=0)
                random = uniform(tl.load(seed + row), tl.load(position + row))
                target = tl.minimum((random * total.to(tl.float64)).to(tl.int64), total - 1)
                chunk = tl.min(tl.where(ends > target, numbers, NO_CHUNK), axis=0)
                width = tl.sum(tl.where(numbers == chunk, widths, 0), axis=0)
                target -= tl.sum(tl.where(numbers == chunk, ends, 0), axis=0) - width

        UNITS: tl.constexpr = CHUNK // 8
        units = chunk * UNITS + tl.arange(0, UNITS)
        tokens = units[:, None] * 8 + tl.arange(0, 8)[None, :]
        of_row = scored_row(scored, row, HAS_MASKS, ALIGNED)
        scores = load_scores(of_row, units, 8, HAS_EDITS, ALIGNED)
        place = tl.min(tl.where(scores == best, tokens, NO_CHUNK))
        if HAS_DRAWS:
            if is_drawn:
                limit = tl.load(limits + row) if HAS_LIMITS else float("inf")
                least = least_weight(parameters, row) if HAS_LIMITS else 0.0
                chunk_best = tl.max(scores)
                weights = kept_weights(scores, chunk_best, best, factor, limit, least)
                if HAS_PROGRAMS:
                    has_program, shape = load_shape(shapes, row)
                    kept, depths = depths_of(scores, best, shape)
                    exponents = tl.where(kept, -depths * LOG2_E, NEVER)
                    weights = tl.where(has_program, tl.exp2(exponents - tl.maximum(tl.max(exponents), LOWEST)), weights)
                weights = weights.to(tl.float64)
                place = place_in_chunk((weights * FRACTION).to(tl.int64), target, width, UNITS) + chunk * CHUNK
                if HAS_SHARES:
                    own = tl.max(tl.where(tokens == place, exponents, NEVER))
                    drawn_with = (tl.exp2(own).to(tl.float64) * FRACTION / total.to(tl.float64)).to(tl.float32)
                    share = tl.where(has_program, drawn_with, share)
        token = place.to(tl.int64)
        at = place + tl.zeros((1,), tl.int32)
        chosen = load_logits(of_row.logits, at[:, None], at, scored.vocab_size, 1, False)
        logprob = ((tl.max(chosen) - model_best).to(tl.float64) - tl.log(model_total)).to(tl.float32)
    tl.store(token_out + row, token)
    tl.store(logprob_out + row, logprob)
    if HAS_SHARES:
        tl.store(share_out + row, share)
    # last, since a division of fp64 is a call, around which everything that is still needed is spilled
    kept_mass = masked_total / model_total * tl.exp((masked_best - model_best).to(tl.float64))
    tl.store(kept_mass_out + row, kept_mass)


@triton.jit
def place_in_chunk(weights, target, width, UNITS: tl.constexpr):
    """int32 index of the first token at which the running sum of weights int64 [UNITS, 8] exceeds target / width of their total."""
    unit_sums = tl.sum(weights, axis=1)
    unit_ends = tl.cumsum(unit_sums, axis=0)
    total = tl.sum(unit_sums, axis=0)
    wanted = tl.minimum((target.to(tl.float64) / width.to(tl.float64) * total.to(tl.float64)).to(tl.int64), total - 1)
    units = tl.arange(0, UNITS)
    unit = tl.min(tl.where(unit_ends > wanted, units, UNITS - 1), axis=0)
    wanted -= tl.sum(tl.where(units == unit, unit_ends - unit_sums, 0), axis=0)
    inside = tl.sum(tl.where((units == unit)[:, None], weights, 0), axis=0)
    return unit * 8 + tl.min(tl.where(tl.cumsum(inside, axis=0) > wanted, tl.arange(0, 8), 7), axis=0)
