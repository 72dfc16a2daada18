"""How far below a row's best token top-k and top-p reach, without sorting it, and what the filters leave of each chunk.

The read of the logits left two numbers for every group of 32 tokens: the best score and the sum of weights. From these follows
a bound that the threshold certainly does not lie beyond: k groups whose best tokens are within it hold k tokens within it; and of
a group's weight, what 31 tokens beyond the bound cannot make up lies within. Only groups that reach into the bound are read again
(50 of 4,096 for top-k 50), and the threshold is searched among their tokens in registers.

A flat row may have more of them than fit (`TILE` groups, 4,096 tokens). Then they are read several times: each round compares them
with three keys at once, until no more tokens are in question than fit; one more reading collects those. A round leaves a quarter of
the distance, or after `LINEAR` rounds of the range of keys, so there are at most LINEAR + 16 of them for each of top-k and top-p:

    readings of a row     1 of everything, 1 to weigh what is left, and for each filter 1, or rounds + 1 of a flat row
    131,072 logits        peaked (normal of deviation 4, top-p 0.9; top-k 50 of any): 1; normal of deviation 1: 4 or 5;
                          uniform: 3; top-k 5000: 9 to 11; all equal, the worst that was found: 20
"""

from __future__ import annotations

import triton
import triton.language as tl

from .chunks import kept_weights
from .scores import BEST, NEVER, WEIGHT, exponent, is_searched, least_weight, load_scores, scored_row

FARTHEST = tl.constexpr(0x7F7FFFFF)  # the largest finite distance: bits of fp32 >= 0 are ordered as int32
BEYOND = tl.constexpr(0x7F800000)  # infinity: tokens that may not be drawn
COARSE = tl.constexpr(1 << 18)  # a bound may be this imprecise, about 3 %
SLACK = tl.constexpr(1.00002)  # by which a bound is kept from failing for rounding
LINEAR = tl.constexpr(4)


@triton.jit
def distance_of(key):
    """fp32: the distance that has this key."""
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
def narrow(keys, gains, wanted, low, got_low, high):
    """The smallest key <= high within which there is what is wanted; the largest of all if there never is.

    keys, gains: of the tokens beyond `low`, and perhaps of others; within it there is got_low, which is not enough.
    """
    inside = (keys > low) & (keys <= high)
    gains = tl.where(inside, gains, 0.0)
    first, last = tl.min(tl.where(inside, keys, BEYOND), axis=0), tl.max(tl.where(inside, keys, -1), axis=0)
    while first < last:  # keys of tokens, so every round takes at least one out of question, with all that tie with it
        middle = first + (last - first) // 2
        got = got_low + tl.sum(tl.where(keys <= middle, gains, 0.0), axis=0)
        if got >= wanted:
            last = tl.max(tl.where(inside & (keys <= middle), keys, -1), axis=0)
        else:
            first = tl.min(tl.where(inside & (keys > middle), keys, BEYOND), axis=0)
    return last


@triton.jit
def load_tile(of_row, start, num_groups, reached_row, TILE: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr):
    """Groups [TILE] and scores fp32 [TILE, 32] of the tokens of some of the groups that reach into the bound."""
    at = start + tl.arange(0, TILE)
    groups = tl.load(reached_row + at, mask=at < num_groups, other=(of_row.vocab_size + 31) // 32)
    return groups, load_scores(of_row, groups, 32, HAS_EDITS, ALIGNED)


@triton.jit
def search(
    of_row, wanted, high, num_groups, reached_row, candidates_row, best, factor, by_count,
    TILE: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """(key, weight within it): the smallest key <= high within which these groups hold so many tokens, or so much weight."""
    ROOM: tl.constexpr = TILE * 32
    low, got_low, weight_low, weight_high, num_found = -1, 0.0, 0.0, 0.0, 0
    if num_groups <= TILE:
        _, scores = load_tile(of_row, 0, num_groups, reached_row, TILE, HAS_EDITS, ALIGNED)
        keys = tl.reshape(key_of(best - scores), (ROOM,))
    else:
        num_low, num_high, rounds = 0, num_groups * 32, 0
        while (num_high - num_low > ROOM) & (high - low > 1):
            first, second, third = keys_between(low, high, rounds)
            number_1 = tl.zeros((TILE,), tl.int32)
            number_2, number_3 = number_1, number_1
            weight_1 = tl.zeros((TILE,), tl.float32)
            weight_2, weight_3 = weight_1, weight_1
            for start in range(0, num_groups, TILE):
                _, scores = load_tile(of_row, start, num_groups, reached_row, TILE, HAS_EDITS, ALIGNED)
                keys = key_of(best - scores)
                number_1 += tl.sum(tl.where(keys <= first, 1, 0), axis=1)
                number_2 += tl.sum(tl.where(keys <= second, 1, 0), axis=1)
                number_3 += tl.sum(tl.where(keys <= third, 1, 0), axis=1)
                weights = tl.exp2((scores - best) * factor)
                weight_1 += tl.sum(tl.where(keys <= first, weights, 0.0), axis=1)
                weight_2 += tl.sum(tl.where(keys <= second, weights, 0.0), axis=1)
                weight_3 += tl.sum(tl.where(keys <= third, weights, 0.0), axis=1)
            num_1, num_2, num_3 = tl.sum(number_1, axis=0), tl.sum(number_2, axis=0), tl.sum(number_3, axis=0)
            if tl.where(by_count, num_1 * 1.0, tl.sum(weight_1, axis=0)) >= wanted:
                high, num_high = first, num_1
            elif tl.where(by_count, num_2 * 1.0, tl.sum(weight_2, axis=0)) >= wanted:
                low, num_low, high, num_high = first, num_1, second, num_2
            elif tl.where(by_count, num_3 * 1.0, tl.sum(weight_3, axis=0)) >= wanted:
                low, num_low, high, num_high = second, num_2, third, num_3
            else:
                low, num_low = third, num_3
            rounds += 1

        tl.debug_barrier()  # who still reads what an earlier search has found
        lighter, within = tl.zeros((TILE,), tl.float32), tl.zeros((TILE,), tl.float32)
        for start in range(0, num_groups, TILE):
            _, scores = load_tile(of_row, start, num_groups, reached_row, TILE, HAS_EDITS, ALIGNED)
            keys, weights = key_of(best - scores), tl.exp2((scores - best) * factor)
            lighter += tl.sum(tl.where(keys <= low, weights, 0.0), axis=1)
            within += tl.sum(tl.where(keys <= high, weights, 0.0), axis=1)
            keys = tl.reshape(keys, (ROOM,))
            is_found = (keys > low) & (keys <= high)
            place = num_found + tl.cumsum(tl.where(is_found, 1, 0), axis=0) - 1
            tl.store(candidates_row + place, keys, mask=is_found & (place < ROOM))  # more of them are all alike
            num_found += tl.sum(tl.where(is_found, 1, 0), axis=0)
        weight_low, weight_high = tl.sum(lighter, axis=0), tl.sum(within, axis=0)
        got_low = tl.where(by_count, num_low * 1.0, weight_low)
        tl.debug_barrier()
        at = tl.arange(0, ROOM)
        keys = tl.load(candidates_row + at, mask=at < num_found, other=BEYOND)
    weights = tl.exp2(-distance_of(keys) * factor)
    key = narrow(keys, tl.where(by_count, 1.0, weights), wanted, low, got_low, high)
    weight = weight_low + tl.sum(tl.where((keys > low) & (keys <= key), weights, 0.0), axis=0)
    return key, tl.where(num_found > ROOM, weight_high, weight)


@triton.jit
def keys_between(low, high, rounds):
    """Three keys, low < first <= second <= third <= high: at first at a quarter of the distance each, then of the keys."""
    step = tl.maximum((high - low) // 4, 1)
    nearest = distance_of(tl.maximum(low, 0))
    quarter = (distance_of(high) - nearest) * 0.25
    is_linear = rounds < LINEAR
    first = tl.where(is_linear, key_of(nearest + quarter), low + step)
    second = tl.where(is_linear, key_of(nearest + 2 * quarter), low + 2 * step)
    third = tl.where(is_linear, key_of(nearest + 3 * quarter), low + 3 * step)
    first = tl.minimum(tl.maximum(first, low + 1), high)
    second = tl.minimum(tl.maximum(second, first), high)
    return first, second, tl.minimum(tl.maximum(third, second), high)


@triton.jit
def threshold_kernel(
    scored, parameters, chunks, group_max, group_sum, reached, candidates, limits,
    CHUNK: tl.constexpr, GROUPS: tl.constexpr, TILE: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr,
    ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). limits[row]: a token stays if its score is at most this far below the row's best; inf: all stay.

    reached: int32 [rows, 1 + groups], the number of groups that reach into the bound, and which; group_sum: zeros then. Both only
    of rows that are searched. candidates: scratch int32 [rows, TILE * 32]. GROUPS: a power of two >= the groups of a row. TILE:
    groups that fit into registers.
    """
    row = tl.program_id(0)
    temperature = tl.load(parameters.temperature + row)
    top_k, top_p = tl.load(parameters.top_k + row), tl.load(parameters.top_p + row)
    limit = float("inf")
    num_groups = chunks.num_chunks * (CHUNK // 32)
    if is_searched(temperature, top_k, top_p, scored.vocab_size):
        factor = exponent(temperature)
        group = tl.arange(0, GROUPS)
        is_group = group < num_groups
        groups_row = row.to(tl.int64) * num_groups
        maxima = tl.load(group_max + groups_row + group, mask=is_group, other=NEVER)
        best = tl.max(maxima, axis=0)
        if best > NEVER:
            chunk_bests = chunks.statistics + BEST * chunks.plane + row * chunks.num_chunks
            chunk_best = tl.load(chunk_bests + group // (CHUNK // 32), mask=is_group, other=NEVER)
            keys = key_of(best - maxima)
            sums = tl.load(group_sum + groups_row + group, mask=is_group, other=0.0) * tl.exp2((chunk_best - best) * factor)
            by_count = (top_k > 0) & (top_k < scored.vocab_size)
            wanted = top_p * tl.sum(sums, axis=0)
            if by_count:
                high = bound_by_groups(keys, sums, factor, top_k.to(tl.float32), True)
            else:
                high = bound_by_groups(keys, sums, factor, wanted * SLACK, False)
            is_reached = keys <= high
            position = tl.cumsum(tl.where(is_reached, 1, 0), axis=0) - 1
            num_reached = tl.sum(tl.where(is_reached, 1, 0), axis=0)
            reached_row = reached + groups_row + row + 1
            tl.store(reached_row - 1, num_reached)
            tl.store(reached_row + position, group, mask=is_reached)
            tl.store(group_sum + groups_row + group, tl.zeros((GROUPS,), tl.float32), mask=is_group)  # for `weigh_kernel`
            tl.debug_barrier()

            of_row = scored_row(scored, row, HAS_MASKS, ALIGNED)
            candidates_row = candidates + row * (TILE * 32)
            wanted = tl.where(by_count, top_k.to(tl.float32), wanted)
            for stage in range(tl.where(by_count, 0, 1), tl.where(top_p < 1, 2, 1)):  # top-k, then top-p of what that leaves
                high, weight = search(
                    of_row, wanted, high, num_reached, reached_row, candidates_row, best, factor, stage == 0,
                    TILE, HAS_EDITS, ALIGNED,
                )  # fmt: skip
                wanted = top_p * weight
            limit = distance_of(high)
    tl.store(limits + row, limit)


@triton.jit
def weigh_kernel(
    scored, parameters, chunks, group_sum, reached, limits,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr,
    ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). Of rows whose limit was searched: replaces the weight of every chunk by what all filters leave.

    Reads only what `threshold_kernel` has found to reach into the bound. CHUNKS: a power of two >= num_chunks.
    """
    row = tl.program_id(0)
    temperature = tl.load(parameters.temperature + row)
    top_k, top_p = tl.load(parameters.top_k + row), tl.load(parameters.top_p + row)
    numbers = tl.arange(0, CHUNKS)
    is_chunk = numbers < chunks.num_chunks
    chunk_bests = chunks.statistics + BEST * chunks.plane + row * chunks.num_chunks
    best = tl.max(tl.load(chunk_bests + numbers, mask=is_chunk, other=NEVER), axis=0)
    if is_searched(temperature, top_k, top_p, scored.vocab_size) & (best > NEVER):
        PER_CHUNK: tl.constexpr = CHUNK // 32
        num_groups = chunks.num_chunks * PER_CHUNK
        limit, least, factor = tl.load(limits + row), least_weight(parameters, row), exponent(temperature)
        of_row = scored_row(scored, row, HAS_MASKS, ALIGNED)
        group_sum_row = group_sum + row.to(tl.int64) * num_groups
        reached_row = reached + row.to(tl.int64) * (num_groups + 1) + 1
        num_reached = tl.load(reached_row - 1)
        for start in range(0, num_reached, TILE):
            groups, scores = load_tile(of_row, start, num_reached, reached_row, TILE, HAS_EDITS, ALIGNED)
            is_group = start + tl.arange(0, TILE) < num_reached
            chunk_best = tl.load(chunk_bests + groups // PER_CHUNK, mask=is_group, other=NEVER)
            kept = kept_weights(scores, chunk_best[:, None], best, factor, limit, least)
            tl.store(group_sum_row + groups, tl.sum(kept, axis=1), mask=is_group)
        tl.debug_barrier()
        at = numbers[:, None] * PER_CHUNK + tl.arange(0, PER_CHUNK)[None, :]
        sums = tl.load(group_sum_row + at, mask=is_chunk[:, None], other=0.0)
        tl.store(chunks.statistics + WEIGHT * chunks.plane + row * chunks.num_chunks + numbers, tl.sum(sums, axis=1), mask=is_chunk)
