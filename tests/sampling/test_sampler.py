"""The reference sampler against its twin, row by row, and against the promises that every sampler must keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.kernels.sampler import reference
from maskwright.kernels.sampler.interface import MISSING, NO_TOKEN, Sampled, Stages
from maskwright.kernels.sampler.parameters import FILTERS
from maskwright.kernels.sampler.reference import inverse_cdf, sample
from maskwright.kernels.sampler.uniform import uniform

from . import naive
from .arrays import as_float32, pack_masks, sampler_rows
from .naive import Row
from .twin import EPSILON, big_batch, check_against_twin, chi_square, laid_out, random_row, run

# ---- against the twin


@given(st.integers(0, 2**32 - 1), st.integers(1, 100), st.integers(1, 6))
def test_agrees_with_the_twin(seed: int, vocab_size: int, num_rows: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, vocab_size) for _ in range(num_rows)]
    num_top = min(3, vocab_size)
    check_against_twin(rows, run(rows, vocab_size, num_top=num_top), num_top)


@pytest.mark.parametrize("vocab_size", [1023, 1024, 1025, 2050])
def test_agrees_with_the_twin_around_chunk_borders(vocab_size: int) -> None:
    rng = np.random.default_rng(vocab_size)
    rows = [random_row(rng, vocab_size) for _ in range(6)]
    check_against_twin(rows, run(rows, vocab_size, num_top=5), 5)


def test_top_p_that_needs_more_than_the_most_probable_thousand() -> None:
    logits = [-t / 1400 for t in range(1400)]
    rows = [Row(logits, set(range(1400)), top_p=as_float32(0.9), seed=seed) for seed in range(4)]
    check_against_twin(rows, run(rows, 1400), 0)


# ---- the random numbers


def test_uniform_is_splitmix64_of_the_mixed_seed() -> None:
    seeds = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 0x123456789ABCDEF]
    positions = [0, 1, 7, 100_000, 2**31, 2**40]
    got = uniform(torch.from_numpy(np.array(seeds, np.uint64).view(np.int64)), torch.tensor(positions))
    assert got.tolist() == [naive.uniform(s, p) for s, p in zip(seeds, positions, strict=True)]


@pytest.mark.parametrize("axis", ["seeds", "positions"])
def test_uniform_fills_the_interval_evenly(axis: str) -> None:
    counting, fixed = torch.arange(100_000), torch.zeros(100_000, dtype=torch.int64)
    u = uniform(counting, fixed) if axis == "seeds" else uniform(fixed, counting)
    counts = torch.histc(u.float(), 100, 0, 1)
    assert chi_square(counts.tolist(), [1000.0] * 100) < 170  # 99 degrees of freedom: exceeded once in 100,000
    assert abs(float(torch.corrcoef(torch.stack([u[1:], u[:-1]]))[0, 1])) < 0.015


def test_the_extremes_of_uniform_are_reached_and_stay_inside() -> None:
    seeds = np.array([naive.seed_for(0), naive.seed_for(2**64 - 1)], np.uint64).view(np.int64)
    u = uniform(torch.from_numpy(seeds), torch.zeros(2, dtype=torch.int64))
    assert u.tolist() == [0.0, 1 - 2.0**-53]


# ---- the draw


def test_frequencies_are_those_of_softmax() -> None:
    draws, logits = 10_000, [0.0, 1.0, -1.0, 2.0, 0.5, 1.5]
    masked_in, temperature = {0, 1, 3, 5}, 0.8
    rows = [Row(logits, masked_in, temperature=as_float32(temperature), seed=seed) for seed in range(draws)]
    counts = torch.bincount(run(rows, 6).token, minlength=6).tolist()
    weights = [math.exp(logits[t] / temperature) if t in masked_in else 0.0 for t in range(6)]
    assert counts[2] == counts[4] == 0
    drawn = sorted(masked_in)
    expected = [draws * weights[t] / sum(weights) for t in drawn]
    assert chi_square([counts[t] for t in drawn], expected) < 21  # 3 degrees of freedom: exceeded once in 10,000


@pytest.mark.parametrize("bits", [0, 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1])
@pytest.mark.parametrize("masked_in", [{0}, {99}, {40, 41}, {0, 1029}, {1023, 1024}, {5, 1028}])
def test_a_forbidden_token_is_never_drawn_at_any_random_number(bits: int, masked_in: set[int]) -> None:
    logits = [50.0] * 1030
    for t in masked_in:
        logits[t] = -50.0
    row = Row(logits, masked_in, seed=naive.seed_for(bits))
    sampled = run([row], 1030)
    assert int(sampled.token[0]) in masked_in
    if bits in (0, 2**64 - 1):
        assert int(sampled.token[0]) == (min(masked_in) if bits == 0 else max(masked_in))
    assert float(sampled.kept_mass[0]) == pytest.approx(len(masked_in) / 1030 * math.exp(-100), rel=0.01)


def test_the_draw_ends_on_the_last_token_with_weight() -> None:
    weights = torch.zeros(3, 2048, dtype=torch.int64)
    weights[0, 5], weights[1, 1024], weights[2, :] = 2**62, 1, 2**50
    below_one = torch.full((3,), 1 - 2.0**-53, dtype=torch.float64)
    assert inverse_cdf(weights, torch.zeros(3, dtype=torch.float64)).tolist() == [5, 1024, 0]
    assert inverse_cdf(weights, below_one).tolist() == [5, 1024, 2047]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_only_tokens_that_survive_are_drawn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = random_row(rng, 40)
    if row.temperature == 0:
        row.temperature = 1.0
    allowed, _ = naive.without_bans(row)
    score = naive.penalised(row.logits, row)
    best = max(score[t] for t in allowed)
    hair = (EPSILON, -EPSILON)
    survivors = set().union(*(naive.kept_weights(score, best, allowed, row, a, b) for a in hair for b in hair))
    row_at = [Row(**{**vars(row), "position": position}) for position in range(200)]
    assert set(run(row_at, 40).token.tolist()) <= survivors


# ---- one row does not know the others


@pytest.mark.parametrize("block_elements", [reference.BLOCK_ELEMENTS, 6000])  # the second: blocks of 77, 4, 2 rows
@pytest.mark.parametrize(("vocab_size", "num_rows"), [(77, 100), (1500, 9), (2999, 7)])
def test_a_row_is_the_same_bit_by_bit_in_any_batch(
    vocab_size: int, num_rows: int, block_elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "BLOCK_ELEMENTS", block_elements)
    rows, logits = big_batch(vocab_size, num_rows)
    together = run(rows, vocab_size, logits=logits, num_top=4)
    alone = [run([row], vocab_size, logits=logits[r : r + 1], num_top=4) for r, row in enumerate(rows)]
    order = torch.randperm(num_rows, generator=torch.Generator().manual_seed(0))
    shuffled = run([rows[r] for r in order], vocab_size, logits=logits[order], num_top=4)
    for field in Sampled._fields:
        expected = getattr(together, field)
        assert torch.equal(torch.cat([getattr(one, field) for one in alone]), expected), field
        assert torch.equal(getattr(shuffled, field), expected[order]), field


def test_stages_named_by_the_caller_change_nothing() -> None:
    rows, logits = big_batch(300, 12)
    arrays = sampler_rows(rows)
    all_on = Stages(any_draw=True, filters=frozenset(FILTERS), max_top_k=max(row.top_k for row in rows))
    found = sample(logits, arrays, vocab_size=300)
    named = sample(logits, arrays._replace(stages=all_on), vocab_size=300)
    assert all(map(torch.equal, found, named))


def test_a_greedy_batch_skips_the_draw_and_means_the_same() -> None:
    rows, logits = big_batch(300, 12)
    greedy = [Row(**{**vars(row), "temperature": 0.0}) for row in rows]
    mixed = [*greedy, Row(greedy[0].logits, set(range(300)))]
    with_a_draw = run(mixed, 300, logits=torch.cat([logits, logits[:1]])).token[:-1]
    assert run(greedy, 300, logits=logits).token.tolist() == with_a_draw.tolist()


# ---- logits of every shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "layout", ["contiguous", "padded head", "every second row", "transposed", "every third column"]
)
def test_layout_and_type_of_the_logits_do_not_matter(dtype: torch.dtype, layout: str) -> None:
    vocab_size, rng = 101, np.random.default_rng(3)
    rows = [random_row(rng, vocab_size) for _ in range(5)]
    plain = torch.tensor([row.logits for row in rows], dtype=dtype)  # multiples of 1/4: exact in every type
    given = laid_out(plain, layout)
    before = given.clone()
    check_against_twin(rows, run(rows, vocab_size, logits=given, num_top=2), 2)
    assert torch.equal(given.isnan(), before.isnan()) and torch.equal(given.nan_to_num(), before.nan_to_num())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_broken_row_draws_a_legal_token_and_leaves_the_others_alone(temperature: float) -> None:
    nan, inf = math.nan, math.inf
    broken = [[nan] * 40, [-inf] * 40, [inf] * 40, [nan, inf, -inf, 0.0] * 10]
    rows = [Row(logits, {3, 7, 39}, temperature, seed=seed) for seed, logits in enumerate(broken)]
    good = Row([float(t % 5) for t in range(40)], set(range(40)), temperature, seed=9)
    sampled = run([*rows, good], 40)
    assert set(sampled.token[:4].tolist()) <= {3, 7, 39}
    assert int(sampled.token[4]) == naive.sample_row(good).token
    assert not sampled.logprob.isnan().any()


def test_a_row_without_mask_or_without_allowed_tokens_draws_nothing() -> None:
    rows = sampler_rows([Row([0.0] * 40, set(), t, top_k=3, top_p=0.5, min_p=0.1) for t in (0.0, 1.0, 1.0, 1.0)])
    pool, index = pack_masks([set(), {4}], 40), torch.tensor([0, 0, MISSING, 1], dtype=torch.int32)
    sampled = sample(torch.zeros(4, 40), rows, pool, index, vocab_size=40)
    assert sampled.token.tolist() == [NO_TOKEN, NO_TOKEN, NO_TOKEN, 4]
    assert sampled.num_allowed.tolist() == [0, 0, 0, 1]
    assert sampled.kept_mass.tolist()[:3] == [0, 0, 0]
    assert sampled.logprob.isnan().tolist() == [True, True, True, False]
    assert not sampled.bans_overridden.any()


def test_masks_may_be_uint32() -> None:
    row = Row([0.0] * 70, {31, 63, 69})
    pool = pack_masks([row.masked_in], 70).view(torch.uint32)
    sampled = sample(torch.zeros(1, 70), sampler_rows([row]), pool, torch.tensor([0]), vocab_size=70)
    assert int(sampled.num_allowed) == 3 and int(sampled.token) in row.masked_in


def test_an_empty_batch() -> None:
    sampled = sample(torch.zeros(0, 40), sampler_rows([]), vocab_size=33, num_top_logprobs=2)
    assert sampled.token.shape == (0,) and sampled.top_token.shape == (0, 2)


# ---- stage by stage, what users rely on


def test_greedy_takes_the_lowest_id_of_equals() -> None:
    logits = [0.0] * 2000
    logits[1500] = logits[700] = logits[1999] = 3.0
    rows = [Row(logits, set(range(2000)), 0.0), Row(logits, set(range(701, 2000)), 0.0)]
    assert run(rows, 2000).token.tolist() == [700, 1500]


@pytest.mark.parametrize("temperature", [1e-6, 1e-38, 1e-44])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    rows = [Row([1.0, 3.0, 2.0, 2.5], {0, 2, 3}, as_float32(temperature), seed=seed) for seed in range(20)]
    assert run(rows, 4).token.unique().tolist() == [3]


def test_a_huge_temperature_is_uniform() -> None:
    rows = [Row([1.0, 90.0, -90.0], {0, 1, 2}, as_float32(1e30), seed=seed) for seed in range(3000)]
    counts = torch.bincount(run(rows, 3).token, minlength=3).tolist()
    assert chi_square(counts, [1000.0] * 3) < 19  # 2 degrees of freedom: exceeded once in 10,000


def test_bans_that_leave_nothing_are_overridden_and_say_so() -> None:
    bans = dict.fromkeys([1, 2], -math.inf)
    rows = [Row([0.0, 5.0, 4.0, 9.0], masked_in, 0.0, bias=bans) for masked_in in ({1, 2}, {0, 1}, {3})]
    sampled = run(rows, 4)
    assert sampled.token.tolist() == [1, 0, 3]
    assert sampled.bans_overridden.tolist() == [True, False, False]


def test_bans_may_cover_a_whole_free_vocabulary() -> None:
    row = Row([0.0, 5.0], {0, 1}, 0.0, bias={0: -math.inf, 1: -math.inf})
    sampled = sample(torch.tensor([row.logits]), sampler_rows([row]), vocab_size=2)
    assert int(sampled.token) == 1 and bool(sampled.bans_overridden)


def test_bias_moves_the_choice_but_not_the_logprob() -> None:
    row = Row([0.0, 1.0, 2.0], {0, 1, 2}, 0.0, bias={0: 10.0})
    sampled = run([row], 3, num_top=1)
    assert int(sampled.token[0]) == 0 and int(sampled.top_token[0, 0]) == 2
    assert float(sampled.logprob[0]) == pytest.approx(-naive.log_sum_exp([0.0, 1.0, 2.0]))


def test_logprobs_and_kept_mass_are_the_models_own() -> None:
    logits = [math.log(p) for p in (0.5, 0.25, 0.125, 0.125)]
    sampled = run([Row(logits, {0, 1, 2}, 0.0, bias={0: -math.inf})], 4, num_top=2)
    assert int(sampled.token[0]) == 1 and float(sampled.logprob[0]) == pytest.approx(math.log(0.25))
    assert sampled.top_token[0].tolist() == [0, 1] and sampled.top_logprob[0].exp().tolist() == pytest.approx(
        [0.5, 0.25]
    )
    assert float(sampled.kept_mass[0]) == pytest.approx(0.875)


def test_a_mask_that_allows_everything_keeps_all_mass_exactly() -> None:
    logits = torch.randn(1, 999, generator=torch.Generator().manual_seed(1))
    rows = sampler_rows([Row([], set())])
    full = pack_masks([range(999)], 999)
    assert float(sample(logits, rows, full, torch.tensor([0]), vocab_size=999).kept_mass) == 1.0
    assert float(sample(logits, rows, vocab_size=999).kept_mass) == 1.0


# ---- arguments


def test_arrays_that_do_not_fit_are_refused_by_name() -> None:
    logits, rows = torch.zeros(2, 40), sampler_rows([Row([], set())] * 2)
    pool, index = pack_masks([range(40)], 40), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match="vocab_size must be in"):
        sample(logits, rows, vocab_size=41)
    with pytest.raises(ValueError, match="temperature must have shape"):
        sample(logits[:1], rows, vocab_size=40)
    with pytest.raises(ValueError, match="together"):
        sample(logits, rows, pool, vocab_size=40)
    with pytest.raises(ValueError, match="mask_rows must be"):
        sample(logits, rows, pool[:, :1], index, vocab_size=40)
    with pytest.raises(ValueError, match="mask_rows must be int32"):
        sample(logits, rows, pool.long(), index, vocab_size=40)
    with pytest.raises(ValueError, match="mask_index must have shape"):
        sample(logits, rows, pool, index[:1], vocab_size=40)
    with pytest.raises(ValueError, match="float64"):
        sample(logits.double(), rows, vocab_size=40)
