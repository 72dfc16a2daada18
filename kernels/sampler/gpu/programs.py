"""Programs of stages: what each row keeps, and how heavy that is, in one kernel with a block for each row that has a program.

`shaping.py` says what the stages mean, and in which terms: of a row's tokens an interval of distances is kept, `near` to `far`
below the best one, and a polynomial gives their depths. A stage reads the row as often as it has sums to find: once or twice, or
where it searches for a share or a number of tokens about twenty times. The kernels for plain filters are faster
(`thresholds.py`), so rows without a program never come here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from ...triton_support import LOG2_E
from .. import shaping
from ..programs import NUM_VALUES as VALUES_OF_A_STEP
from ..programs import Code
from .scores import BEST, HIGHEST, NEVER, WEIGHT, load_scores, scored_row
from .thresholds import BEYOND, FARTHEST, distance_of, key_of
from .uniform import uniform

NUM_VALUES = tl.constexpr(VALUES_OF_A_STEP)
TEMPERATURE, SMOOTHING = tl.constexpr(int(Code.TEMPERATURE)), tl.constexpr(int(Code.SMOOTHING))
TOP_N_SIGMA, TOP_K, TOP_P = tl.constexpr(int(Code.TOP_N_SIGMA)), tl.constexpr(int(Code.TOP_K)), tl.constexpr(int(Code.TOP_P))
TYPICAL_P, TOP_A, MIN_P = tl.constexpr(int(Code.TYPICAL_P)), tl.constexpr(int(Code.TOP_A)), tl.constexpr(int(Code.MIN_P))
XTC, MIROSTAT_1 = tl.constexpr(int(Code.XTC)), tl.constexpr(int(Code.MIROSTAT_1))
MIROSTAT_2 = tl.constexpr(int(Code.MIROSTAT_2))
XTC_STREAM = tl.constexpr(shaping.XTC_STREAM)
CUT, DEEPEST, NOT_A_LOGIT = tl.constexpr(shaping.FARTHEST), tl.constexpr(shaping.DEEPEST), tl.constexpr(shaping.NOT_A_LOGIT)
ESTIMATED_FROM = tl.constexpr(shaping.ESTIMATED_FROM)
LEAST_TEMPERATURE, NEARLY_ONE = tl.constexpr(shaping.LEAST_TEMPERATURE), tl.constexpr(shaping.NEARLY_ONE)
LN_2 = tl.constexpr(0.6931471805599453)
SHAPE_SIZE = 8  # float32 of a row's shape: whether it has one, near, far, base, c1, c2, c3, and the depth of the nearest token
STRIDE = tl.constexpr(SHAPE_SIZE)
CANDIDATES = 128  # at least ESTIMATED_FROM


class Shape(NamedTuple):
    """Scalars, as in `shaping.Shape`; `origin` is the depth of the nearest token."""

    near: Any
    far: Any
    base: Any
    c1: Any
    c2: Any
    c3: Any
    origin: Any


@triton.jit
def polynomial(distances, base, c1, c2, c3):
    """float32 depths, as each operation rounds."""
    x = tl.minimum(tl.maximum(distances - base, 0.0), CUT)
    return tl.minimum(((x * c3 + c2) * x + c1) * x, DEEPEST)


@triton.jit
def make_shape(near, far, base, c1, c2, c3):
    """`Shape` with its origin."""
    return Shape(near, far, base, c1, c2, c3, polynomial(near, base, c1, c2, c3))


@triton.jit
def load_shape(shapes, row):
    """(whether the row has a program, `Shape`)."""
    at = shapes + row * STRIDE
    near, far, base = tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)
    shape = Shape(near, far, base, tl.load(at + 4), tl.load(at + 5), tl.load(at + 6), tl.load(at + 7))
    return tl.load(at) != 0, shape


@triton.jit
def depths_of(scores, best, shape):
    """(bool, float32): which tokens are kept, and their depths below the nearest one."""
    distances = best - scores
    kept = (scores > NEVER) & (distances >= shape.near) & (distances <= shape.far)
    return kept, tl.maximum(polynomial(distances, shape.base, shape.c1, shape.c2, shape.c3) - shape.origin, 0.0)


@triton.jit
def weights_of(kept, depths):
    return tl.where(kept, tl.exp2(-depths * LOG2_E), 0.0)


@triton.jit
def measure(of_row, best, shape, UNITS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr):
    """(tokens, weight, sum of weight * depth) of what is kept."""
    numbers, sums, moments = tl.zeros((UNITS,), tl.float32), tl.zeros((UNITS,), tl.float32), tl.zeros((UNITS,), tl.float32)
    for start in range(0, of_row.vocab_size, UNITS * 8):
        scores = load_scores(of_row, start // 8 + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
        kept, depths = depths_of(scores, best, shape)
        weights = weights_of(kept, depths)
        numbers += tl.sum(tl.where(kept, 1.0, 0.0), axis=1)
        sums += tl.sum(weights, axis=1)
        moments += tl.sum(tl.where(weights > 0, weights * depths, 0.0), axis=1)
    return tl.sum(numbers, axis=0), tl.sum(sums, axis=0), tl.sum(moments, axis=0)


@triton.jit
def spread(of_row, best, shape, mean, UNITS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr):
    """(tokens, sum of depth - mean, sum of its square) of what is kept and has a logit."""
    numbers, sums, squares = tl.zeros((UNITS,), tl.float32), tl.zeros((UNITS,), tl.float32), tl.zeros((UNITS,), tl.float32)
    for start in range(0, of_row.vocab_size, UNITS * 8):
        scores = load_scores(of_row, start // 8 + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
        kept, depths = depths_of(scores, best, shape)
        kept = kept & (best - scores < NOT_A_LOGIT)
        off = tl.where(kept, depths - mean, 0.0)
        numbers += tl.sum(tl.where(kept, 1.0, 0.0), axis=1)
        sums += tl.sum(off, axis=1)
        squares += tl.sum(off * off, axis=1)
    return tl.sum(numbers, axis=0), tl.sum(sums, axis=0), tl.sum(squares, axis=0)


@triton.jit
def farthest_within(of_row, best, shape, limit, UNITS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr):
    """The largest distance of a kept token that is at most so deep; the nearest token's if none is."""
    farthest = tl.zeros((UNITS,), tl.float32) + shape.near
    for start in range(0, of_row.vocab_size, UNITS * 8):
        scores = load_scores(of_row, start // 8 + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
        kept, depths = depths_of(scores, best, shape)
        farthest = tl.maximum(farthest, tl.max(tl.where(kept & (depths <= limit), best - scores, 0.0), axis=1))
    return tl.max(farthest, axis=0)


@triton.jit
def search(
    of_row, best, shape, wanted, mean, by_count, by_deviation,
    UNITS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """The smallest distance, or deviation of depth from `mean`, within which there are so many kept tokens, or so much weight."""
    low, high = -1, tl.full((), FARTHEST, tl.int32)
    while high - low > 1:
        middle = low + (high - low) // 2
        gains = tl.zeros((UNITS,), tl.float32)
        below, above = tl.zeros((UNITS,), tl.int32) - 1, tl.zeros((UNITS,), tl.int32) + BEYOND
        for start in range(0, of_row.vocab_size, UNITS * 8):
            scores = load_scores(of_row, start // 8 + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
            kept, depths = depths_of(scores, best, shape)
            keys = key_of(tl.where(by_deviation, tl.abs(depths - mean), best - scores))
            is_within = kept & (keys <= middle)
            gains += tl.sum(tl.where(is_within, tl.where(by_count, 1.0, weights_of(kept, depths)), 0.0), axis=1)
            below = tl.maximum(below, tl.max(tl.where(is_within, keys, -1), axis=1))
            above = tl.minimum(above, tl.min(tl.where(kept & (keys > middle), keys, BEYOND), axis=1))
        if tl.sum(gains, axis=0) >= wanted:
            high = tl.max(below, axis=0)  # keys of tokens, so every round takes at least one out of question
        else:
            low = tl.minimum(tl.min(above, axis=0) - 1, high)
    return distance_of(high)


@triton.jit
def ends_of_deviation(of_row, best, shape, mean, limit, UNITS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr):
    """(smallest, largest) distance of kept tokens whose depth deviates from `mean` by at most `limit`."""
    nearest, farthest = tl.zeros((UNITS,), tl.float32) + HIGHEST, tl.zeros((UNITS,), tl.float32)
    for start in range(0, of_row.vocab_size, UNITS * 8):
        scores = load_scores(of_row, start // 8 + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
        kept, depths = depths_of(scores, best, shape)
        kept = kept & (tl.abs(depths - mean) <= limit)
        nearest = tl.minimum(nearest, tl.min(tl.where(kept, best - scores, HIGHEST), axis=1))
        farthest = tl.maximum(farthest, tl.max(tl.where(kept, best - scores, 0.0), axis=1))
    return tl.min(nearest, axis=0), tl.max(farthest, axis=0)


@triton.jit
def zipf_exponent(
    of_row, best, shape, count, candidates_row,
    UNITS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """Mirostat's estimate from the `count` most probable tokens, 2 to ROOM of them."""
    last = search(of_row, best, shape, count.to(tl.float32), 0.0, True, False, UNITS, HAS_EDITS, ALIGNED)
    num_found = 0
    tl.debug_barrier()
    for start in range(0, of_row.vocab_size, UNITS * 8):
        scores = load_scores(of_row, start // 8 + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
        kept, depths = depths_of(scores, best, shape)
        is_found = tl.reshape(kept & (best - scores < last), (UNITS * 8,))
        place = num_found + tl.cumsum(tl.where(is_found, 1, 0), axis=0) - 1
        tl.store(candidates_row + place, tl.reshape(depths, (UNITS * 8,)), mask=is_found & (place < ROOM))
        num_found += tl.sum(tl.where(is_found, 1, 0), axis=0)
    tl.debug_barrier()
    at = tl.arange(0, ROOM)
    deepest = polynomial(last, shape.base, shape.c1, shape.c2, shape.c3) - shape.origin  # of those that tie for the last places
    depths = tl.load(candidates_row + at, mask=at < num_found, other=0.0)
    depths = tl.where(at < num_found, depths, deepest)
    # By parts: a token of rank r has the factor step(r - 1) - step(r) in the sum of step(r) * (depth of rank r + 1 - that of r).
    others = tl.load(candidates_row + at, mask=at < num_found, other=0.0)
    others = tl.where(at < num_found, others, deepest)
    is_before = (others[None, :] < depths[:, None]) | ((others[None, :] == depths[:, None]) & (at[None, :] < at[:, None]))
    ranks = tl.sum(tl.where(is_before, 1, 0), axis=1)
    factors = tl.where(ranks > 0, zipf_step(ranks - 1), 0.0) - tl.where(ranks < count - 1, zipf_step(ranks), 0.0)
    total = tl.sum(tl.where(ranks < count, factors * depths, 0.0), axis=0)
    steps = zipf_step(at)
    return total / tl.sum(tl.where(at < count - 1, steps * steps, 0.0), axis=0)


@triton.jit
def zipf_step(rank):
    """The logarithm by which a Zipf distribution of exponent 1 falls behind a rank, from 0."""
    place = tl.maximum(rank, 0).to(tl.float32) + 1.0
    return tl.log((place + 1.0) / place)


@triton.jit
def mirostat_count(exponent, aim, vocab_size):
    """float32: `shaping.mirostat_count`."""
    excess = exponent - 1.0
    size = tl.maximum(excess - excess + vocab_size, 2.0)
    is_one = tl.abs(excess) <= NEARLY_ONE
    excess = tl.where(is_one, 1.0, excess)
    ratio = tl.where(is_one, 1.0 / tl.log(size), excess / (1.0 - tl.exp2(-excess * tl.log2(size))))
    power = (aim + tl.log2(ratio)) / tl.maximum(exponent, NEARLY_ONE)
    return tl.floor(tl.exp2(tl.minimum(tl.maximum(power, 0.0), 24.0)))


@triton.jit
def program_kernel(
    scored, chunks, seed, position, codes, values, num_steps, shapes, candidates,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, HAS_MASKS: tl.constexpr, HAS_EDITS: tl.constexpr, ALIGNED: tl.constexpr,
    ROOM: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). shapes[row, 0] says whether the row has a program; if so, the others are its shape, and its chunks weigh what
    that leaves, where the nearest token weighs 1.

    codes: int32 [rows, num_steps]; values: float32 [rows, num_steps, 3]; candidates: scratch float32 [rows, ROOM]. CHUNKS: a power
    of two >= num_chunks.
    """
    row = tl.program_id(0)
    UNITS: tl.constexpr = CHUNK // 8
    numbers = tl.arange(0, CHUNKS)
    chunk_bests = chunks.statistics + BEST * chunks.plane + row * chunks.num_chunks
    best = tl.max(tl.load(chunk_bests + numbers, mask=numbers < chunks.num_chunks, other=NEVER), axis=0)
    chunk_weights = chunks.statistics + WEIGHT * chunks.plane + row * chunks.num_chunks
    has_program = (tl.load(codes + row * num_steps) != 0) & (best > NEVER)
    out = shapes + row * STRIDE
    tl.store(out, tl.where(has_program, 1.0, 0.0))
    if has_program:
        of_row = scored_row(scored, row, HAS_MASKS, ALIGNED)
        near, far, base = best - best, best - best + HIGHEST, best - best
        c1, c2, c3 = near + 1.0, near, near
        for number in range(num_steps):
            code = tl.load(codes + row * num_steps + number)
            at = values + (row * num_steps + number) * NUM_VALUES
            first, second, third = tl.load(at), tl.load(at + 1), tl.load(at + 2)
            shape = make_shape(near, far, base, c1, c2, c3)
            if code == TEMPERATURE:
                temperature = first
                if second > 0:
                    count, total, moment = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                    if count > 1:
                        entropy = tl.log(total) + moment / total
                        relative = tl.minimum(tl.maximum(entropy / tl.log(count), 0.0), 1.0)
                        power = tl.where(relative > 0, tl.exp2(third * tl.log2(tl.maximum(relative, 1e-30))), 0.0)
                        power = tl.where(third > 0, power, 1.0)
                        least = tl.maximum(first - second, 0.0)
                        temperature = least + (first + second - least) * power
                divisor = tl.maximum(temperature, LEAST_TEMPERATURE)
                c1 = tl.minimum(tl.div_rn(c1, divisor), HIGHEST)
                c2 = tl.minimum(tl.div_rn(c2, divisor), HIGHEST)
                c3 = tl.minimum(tl.div_rn(c3, divisor), HIGHEST)
            elif code == SMOOTHING:
                base = near
                c2 = tl.minimum((3.0 - second) / 2.0 * first * c1 * c1, HIGHEST)
                c3 = tl.minimum((second - 1.0) / 2.0 * first * c1 * c1 * c1, HIGHEST)
                c1 = near - near
            elif code == TOP_N_SIGMA:
                count, total, _ = spread(of_row, best, shape, 0.0, UNITS, HAS_EDITS, ALIGNED)
                mean = total / count
                count, total, squares = spread(of_row, best, shape, mean, UNITS, HAS_EDITS, ALIGNED)
                deviation = tl.sqrt(tl.maximum(squares / count - (total / count) * (total / count), 0.0))
                far = farthest_within(of_row, best, shape, first * deviation, UNITS, HAS_EDITS, ALIGNED)
            elif code == TOP_K:
                far = tl.minimum(far, search(of_row, best, shape, first, 0.0, True, False, UNITS, HAS_EDITS, ALIGNED))
            elif code == TOP_P:
                _, total, _ = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                far = tl.minimum(far, search(of_row, best, shape, first * total, 0.0, False, False, UNITS, HAS_EDITS, ALIGNED))
            elif code == TYPICAL_P:
                _, total, moment = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                mean = moment / total
                limit = search(of_row, best, shape, first * total, mean, False, True, UNITS, HAS_EDITS, ALIGNED)
                near, far = ends_of_deviation(of_row, best, shape, mean, limit, UNITS, HAS_EDITS, ALIGNED)
                base = tl.where((c2 == 0) & (c3 == 0), near, base)
            elif code == TOP_A:
                _, total, _ = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                far = farthest_within(of_row, best, shape, tl.maximum(tl.log(total / first), 0.0), UNITS, HAS_EDITS, ALIGNED)
            elif code == MIN_P:
                far = farthest_within(of_row, best, shape, -tl.log(first), UNITS, HAS_EDITS, ALIGNED)
            elif code == XTC:
                coin = uniform(tl.load(seed + row) ^ XTC_STREAM, tl.load(position + row))
                if coin < first.to(tl.float64):
                    _, total, _ = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                    near = farthest_within(of_row, best, shape, -tl.log(second * total), UNITS, HAS_EDITS, ALIGNED)
                    base = tl.where((c2 == 0) & (c3 == 0), near, base)
            elif code == MIROSTAT_1:
                count, _, _ = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                if count > 1:
                    num_read = tl.minimum(count, ESTIMATED_FROM).to(tl.int32)
                    own = candidates + row * ROOM
                    exponent = zipf_exponent(of_row, best, shape, num_read, own, UNITS, HAS_EDITS, ALIGNED, ROOM)
                    wanted = mirostat_count(exponent, first, scored.vocab_size)
                    far = tl.minimum(far, search(of_row, best, shape, wanted, 0.0, True, False, UNITS, HAS_EDITS, ALIGNED))
            elif code == MIROSTAT_2:
                _, total, _ = measure(of_row, best, shape, UNITS, HAS_EDITS, ALIGNED)
                limit = tl.maximum(first * LN_2 - tl.log(total), 0.0)
                far = farthest_within(of_row, best, shape, limit, UNITS, HAS_EDITS, ALIGNED)

        shape = make_shape(near, far, base, c1, c2, c3)
        tl.store(out + 1, near)
        tl.store(out + 2, far)
        tl.store(out + 3, base)
        tl.store(out + 4, c1)
        tl.store(out + 5, c2)
        tl.store(out + 6, c3)
        tl.store(out + 7, shape.origin)
        for chunk in range(chunks.num_chunks):
            scores = load_scores(of_row, chunk * UNITS + tl.arange(0, UNITS), 8, HAS_EDITS, ALIGNED)
            kept, depths = depths_of(scores, best, shape)
            tl.store(chunk_weights + chunk, tl.sum(weights_of(kept, depths)))
