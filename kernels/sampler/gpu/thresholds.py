"""How far below the best token of a row top-k and top-p reach, found without sorting the row.

A threshold is the smallest distance within which there are k tokens (top-k), or tokens with the share p of the weight (top-p).
The maxima and sums of groups of 32 tokens bound it: k groups whose maxima lie within a distance hold at least k tokens within it.
So only groups that reach into the bound have to be read, which for most rows are few; among their tokens the threshold is found by
bisection. Where they are many, as in a row of nearly equal logits, they are read several times.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .scores import BEST, FREE, NEVER, exponent, is_filtered, load_scores, row_start

FARTHEST = tl.constexpr(0x7F7FFFFF)  # the largest finite distance: bits of fp32 >= 0 are ordered as int32
COARSE = tl.constexpr(1 << 18)  # a bound may be this imprecise, about 3 %
SLACK = tl.constexpr(1.00002)  # by which a bound is kept from failing for rounding


@triton.jit
def distance_of(key):
    return key.to(tl.float32, bitcast=True)


@triton.jit
def key_of(distance):
    """int32, ordered as distances >= 0 are."""
    return distance.to(tl.int32, bitcast=True)


@triton.jit
def bound_by_groups(keys, sums, factor, wanted, BY_COUNT: tl.constexpr):
    """A key within which there is certainly what is wanted: so many tokens, or so much weight. keys, sums: of the groups."""
    low, high = -1, tl.full((), FARTHEST, tl.int32)
    while high - low > COARSE:
        middle = low + (high - low) // 2
        reached = keys <= middle
        if BY_COUNT:
            got = tl.sum(tl.where(reached, 1.0, 0.0), axis=0)
        else:
            # Of the group's weight, what 31 tokens below the middle cannot make up; at least the best token's.
            others = 31 * tl.exp2(-distance_of(middle) * factor)
            got = tl.sum(tl.where(reached, tl.maximum(tl.exp2(-distance_of(keys) * factor), sums - others), 0.0), axis=0)
        if got >= wanted:
            high = middle
        else:
            low = middle
    return high


@triton.jit
def narrow(keys, weights, wanted, high, BY_COUNT: tl.constexpr):
    """(key, weight within it): the smallest key <= high within which there is what is wanted, or one with the same tokens."""
    within = keys <= high
    low, num_low, num_high = -1, 0, tl.sum(tl.where(within, 1, 0))
    weight_high = tl.sum(tl.where(within, weights, 0.0))
    while (high - low > 1) & (num_high - num_low > 1):
        middle = low + (high - low) // 2
        within = keys <= middle
        number, weight = tl.sum(tl.where(within, 1, 0)), tl.sum(tl.where(within, weights, 0.0))
        enough = (number >= wanted) if BY_COUNT else (weight >= wanted)
        if enough:
            high, num_high, weight_high = middle, number, weight
        else:
            low, num_low = middle, number
    return high, weight_high


@triton.jit
def load_tile(
    start, num_groups, reached_row, logits_row, mask_row, mask_id, edited_row, overlay_row, best, factor, vocab_size,
    TILE: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Keys int32 and weights fp32 [TILE, 32] of the tokens of some of the groups that reach into the bound."""
    at = start + tl.arange(0, TILE)
    groups = tl.load(reached_row + at, mask=at < num_groups, other=(vocab_size + 31) // 32)
    scores = load_scores(
        logits_row, mask_row, mask_id, edited_row, overlay_row, groups, vocab_size, 32, HAS_EDITS, ALIGNED
    )
    distance = best - scores
    return key_of(distance), tl.exp2(-distance * factor)


@triton.jit
def narrow_rows(
    wanted, high, num_groups, reached_row, logits_row, mask_row, mask_id, edited_row, overlay_row, best, factor, vocab_size,
    TILE: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr, BY_COUNT: tl.constexpr,
):  # fmt: skip
    """`narrow` over more tokens than fit into registers: each round reads them again, and tries three keys at once."""
    low, num_low, num_high, weight_high = -1, 0, num_groups * 32, 0.0
    while (high - low > 1) & (num_high - num_low > 1):
        step = tl.maximum((high - low) // 4, 1)
        first = low + step
        second = tl.minimum(first + step, high)
        third = tl.minimum(second + step, high)
        number_1, number_2, number_3, number_4 = 0, 0, 0, 0
        weight_1, weight_2, weight_3, weight_4 = 0.0, 0.0, 0.0, 0.0
        for start in range(0, num_groups, TILE):
            keys, weights = load_tile(
                start, num_groups, reached_row, logits_row, mask_row, mask_id, edited_row, overlay_row, best, factor, vocab_size,
                TILE, HAS_EDITS, ALIGNED,
            )  # fmt: skip
            number_1 += tl.sum(tl.where(keys <= first, 1, 0))
            number_2 += tl.sum(tl.where(keys <= second, 1, 0))
            number_3 += tl.sum(tl.where(keys <= third, 1, 0))
            number_4 += tl.sum(tl.where(keys <= high, 1, 0))
            weight_1 += tl.sum(tl.where(keys <= first, weights, 0.0))
            weight_2 += tl.sum(tl.where(keys <= second, weights, 0.0))
            weight_3 += tl.sum(tl.where(keys <= third, weights, 0.0))
            weight_4 += tl.sum(tl.where(keys <= high, weights, 0.0))
        got_1, got_2, got_3 = weight_1, weight_2, weight_3
        if BY_COUNT:
            got_1, got_2, got_3 = number_1 * 1.0, number_2 * 1.0, number_3 * 1.0
        if got_1 >= wanted:
            high, num_high, weight_high = first, number_1, weight_1
        elif got_2 >= wanted:
            low, num_low, high, num_high, weight_high = first, number_1, second, number_2, weight_2
        elif got_3 >= wanted:
            low, num_low, high, num_high, weight_high = second, number_2, third, number_3, weight_3
        else:
            low, num_low, num_high, weight_high = third, number_3, number_4, weight_4
    return high, weight_high


@triton.jit
def threshold_kernel(
    logits, mask_words, mask_index, edited, overlay, temperature, top_k, top_p, statistics, group_max, group_sum, reached, limits,
    logits_stride, mask_stride, edited_stride, overlay_stride, vocab_size, num_chunks, plane,
    CHUNK: tl.constexpr, GROUPS: tl.constexpr, TILE: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr,
    ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). limits[row]: a token stays if its score is at most this far below the row's best; inf: all stay.

    reached: scratch int32 [rows, groups]. GROUPS: a power of two >= the groups of a row. TILE: groups that fit into registers.
    """
    row = tl.program_id(0)
    row_temperature, row_top_k, row_top_p = tl.load(temperature + row), tl.load(top_k + row), tl.load(top_p + row)
    limit = float("inf")
    num_groups = num_chunks * (CHUNK // 32)
    if is_filtered(row_temperature, row_top_k, row_top_p, vocab_size):
        factor = exponent(row_temperature)
        group = tl.arange(0, GROUPS)
        is_group = group < num_groups
        groups_row = row.to(tl.int64) * num_groups
        maxima = tl.load(group_max + groups_row + group, mask=is_group, other=NEVER)
        best = tl.max(maxima, axis=0)
        if best > NEVER:
            chunk_best = tl.load(
                statistics + BEST * plane + row * num_chunks + group // (CHUNK // 32), mask=is_group, other=NEVER
            )
            keys = key_of(best - maxima)
            sums = tl.load(group_sum + groups_row + group, mask=is_group, other=0.0) * tl.exp2((chunk_best - best) * factor)
            by_count = (row_top_k > 0) & (row_top_k < vocab_size)
            wanted = row_top_p * tl.sum(sums, axis=0)
            if by_count:
                high = bound_by_groups(keys, sums, factor, row_top_k.to(tl.float32), True)
            else:
                high = bound_by_groups(keys, sums, factor, wanted * SLACK, False)
            is_reached = keys <= high
            position = tl.cumsum(tl.where(is_reached, 1, 0), axis=0) - 1
            num_reached = tl.sum(tl.where(is_reached, 1, 0), axis=0)
            reached_row = reached + groups_row
            tl.store(reached_row + position, group, mask=is_reached)
            tl.debug_barrier()

            mask_id = tl.load(mask_index + row) if HAS_MASKS else FREE
            logits_row = row_start(logits, row, logits_stride, ALIGNED)
            mask_row = mask_words + tl.maximum(mask_id, 0).to(tl.int64) * mask_stride
            edited_row = edited + row.to(tl.int64) * edited_stride
            overlay_row = overlay + row.to(tl.int64) * overlay_stride
            if num_reached <= TILE:
                tile_keys, tile_weights = load_tile(
                    0, num_reached, reached_row, logits_row, mask_row, mask_id, edited_row, overlay_row, best, factor, vocab_size,
                    TILE, HAS_EDITS, ALIGNED,
                )  # fmt: skip
                if by_count:
                    high, weight = narrow(tile_keys, tile_weights, row_top_k, high, True)
                    wanted = row_top_p * weight
                if row_top_p < 1:
                    high, _ = narrow(tile_keys, tile_weights, wanted, high, False)
            else:
                if by_count:
                    high, weight = narrow_rows(
                        row_top_k.to(tl.float32), high, num_reached, reached_row, logits_row, mask_row, mask_id, edited_row,
                        overlay_row, best, factor, vocab_size, TILE, HAS_EDITS, ALIGNED, True,
                    )  # fmt: skip
                    wanted = row_top_p * weight
                if row_top_p < 1:
                    high, _ = narrow_rows(
                        wanted, high, num_reached, reached_row, logits_row, mask_row, mask_id, edited_row,
                        overlay_row, best, factor, vocab_size, TILE, HAS_EDITS, ALIGNED, False,
                    )  # fmt: skip
            limit = distance_of(high)
    tl.store(limits + row, limit)
