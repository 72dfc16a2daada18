"""The Triton sampler against the twin and against the reference: natively on a GPU, else in Triton's interpreter.

The interpreter takes 0.1 ms and more for each operation of a block, so batches are small here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from maskwright.kernels.sampler import compiled, reference
from maskwright.kernels.sampler.backend import choose_sampler
from maskwright.kernels.sampler.gpu import launch
from maskwright.kernels.sampler.gpu.scores import STATISTICS_CHUNK
from maskwright.kernels.sampler.interface import MISSING, NO_TOKEN, Sampled, SamplerRows, Stages, TokenValues
from maskwright.kernels.sampler.parameters import FILTERS, ParameterArrays

from . import naive
from .arrays import as_float32, pack_masks, sampler_rows
from .naive import Row
from .twin import big_batch, check_against_twin, chi_square, laid_out, plausible_tokens, random_row, run

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BITS = [0, 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1]  # random numbers at the ends and in the middle

# What a GPU computes silently, the interpreter's numpy warns of: infinities, and NaN that a comparison then drops.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """Memory that is not written before it is read holds NaN, or the highest integer."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def sample(*arguments: Any, **options: Any) -> Sampled:
    """The kernels, on the device that tests run on."""
    found = launch.sample(*map(to_device, arguments), **options)
    return Sampled(*(field.cpu() for field in found))


def to_device(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value if value.device == DEVICE else value.to(DEVICE)
    return type(value)(*map(to_device, value)) if isinstance(value, SamplerRows | ParameterArrays | TokenValues) else value


def same_fields(left: Sampled, right: Sampled) -> None:
    for name, one, other in zip(Sampled._fields, left, right, strict=True):
        assert torch.equal(one.nan_to_num(-1), other.nan_to_num(-1)), name


def check_against_reference(rows: list[Row], found: Sampled, expected: Sampled) -> None:
    """Equal tokens, except where the twin says that a hair decides."""
    for row, got, wanted in zip(rows, found.token.tolist(), expected.token.tolist(), strict=True):
        assert got == wanted or got in plausible_tokens(row)
    assert torch.equal(found.num_allowed, expected.num_allowed)
    assert torch.equal(found.bans_overridden, expected.bans_overridden)
    assert torch.equal(found.top_token, expected.top_token)
    torch.testing.assert_close(found.kept_mass, expected.kept_mass, rtol=2e-6, atol=0)
    torch.testing.assert_close(found.top_logprob, expected.top_logprob, rtol=0, atol=2e-6)


def test_fresh_memory_is_poisoned() -> None:
    assert torch.empty(3).isnan().all()


# ---- against the twin


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 3), st.sampled_from([64, STATISTICS_CHUNK]))
@settings(max_examples=16)
def test_agrees_with_the_twin(seed: int, vocab_size: int, num_rows: int, chunk: int) -> None:
    """With chunks of 64 tokens, small rows have several."""
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, vocab_size) for _ in range(num_rows)]
    num_top = min(2, vocab_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "STATISTICS_CHUNK", chunk)
        check_against_twin(rows, run(rows, vocab_size, num_top=num_top, sample=sample), num_top)


@pytest.mark.parametrize("vocab_size", [STATISTICS_CHUNK - 1, STATISTICS_CHUNK, STATISTICS_CHUNK + 1, 2 * STATISTICS_CHUNK + 77])
def test_agrees_with_the_reference_around_chunk_borders(vocab_size: int) -> None:
    rng = np.random.default_rng(vocab_size)
    rows = [random_row(rng, vocab_size) for _ in range(2)]
    found, expected = (run(rows, vocab_size, num_top=2, sample=s) for s in (sample, reference.sample))
    check_against_reference(rows, found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("tile", [2, 8, launch.TILE])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 0.9), (1, 1.0), (40, 1.0), (300, 0.8), (5000, 0.95)])
def test_thresholds_among_few_and_many_tokens(top_k: int, top_p: float, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows whose groups fit into one tile, and the same rows when they do not; neither flat nor peaked, then with many ties."""
    monkeypatch.setattr(launch, "TILE", tile)
    rng = np.random.default_rng(1000 * top_k + int(1000 * top_p))
    vocab_size = 800
    logits = torch.from_numpy(rng.normal(size=(2, vocab_size)).astype(np.float32)) * torch.tensor([[3.0], [0.2]])
    logits[1] = (logits[1] * 4).round() / 4  # a dozen of different numbers: more tokens are alike than fit into a small tile
    everything = set(range(vocab_size))
    seeds = rng.integers(0, 2**63, 2).tolist()
    rows = [Row(x, everything, 1.0, top_k, as_float32(top_p), seed=s) for x, s in zip(logits.tolist(), seeds, strict=True)]
    check_against_reference(rows, run(rows, vocab_size, sample=sample), run(rows, vocab_size))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_draws_what_the_reference_draws(dtype: torch.dtype) -> None:
    """The same uniforms, rows that want everything, and a head that is wider than an odd vocabulary."""
    vocab_size, width, num_rows = 5003, 5120, 4
    rng = np.random.default_rng(17)
    rows = [random_row(rng, vocab_size) for _ in range(num_rows)]
    logits = torch.from_numpy(rng.normal(scale=3, size=(num_rows, width))).to(dtype)
    for row, values in zip(rows, logits.float().tolist(), strict=True):
        row.logits = values[:vocab_size]
    found, expected = (run(rows, vocab_size, logits=logits, num_top=2, sample=s) for s in (sample, reference.sample))
    check_against_reference(rows, found, expected)


# ---- the draw


def test_frequencies_are_those_of_softmax() -> None:
    draws = 20_000 if DEVICE.type == "cuda" else 100
    logits, masked_in, temperature = [0.0, 1.0, -1.0, 2.0, 0.5, 1.5], {0, 1, 3, 5}, 0.8
    rows = [Row(logits, masked_in, temperature=as_float32(temperature), seed=seed) for seed in range(draws)]
    counts = torch.bincount(run(rows, 6, sample=sample).token, minlength=6).tolist()
    weights = [math.exp(logits[t] / temperature) if t in masked_in else 0.0 for t in range(6)]
    assert counts[2] == counts[4] == 0
    expected = [draws * weights[t] / sum(weights) for t in sorted(masked_in)]
    assert chi_square([counts[t] for t in sorted(masked_in)], expected) < 21  # 3 degrees of freedom: once in 10,000


@pytest.mark.parametrize("masked_in", [{0}, {40, 41}, {0, STATISTICS_CHUNK + 5}, {STATISTICS_CHUNK - 1, STATISTICS_CHUNK}])
def test_a_forbidden_token_is_never_drawn_at_any_random_number(masked_in: set[int]) -> None:
    vocab_size = STATISTICS_CHUNK + 6
    logits = torch.full((len(BITS), vocab_size), 50.0)
    logits[:, list(masked_in)] = -50.0
    rows = [Row([], masked_in, seed=naive.seed_for(bits)) for bits in BITS]
    sampled = run(rows, vocab_size, logits=logits, sample=sample)
    assert set(sampled.token.tolist()) <= masked_in
    assert (int(sampled.token[0]), int(sampled.token[-1])) == (min(masked_in), max(masked_in))
    assert sampled.kept_mass.tolist() == pytest.approx([len(masked_in) / (vocab_size - len(masked_in)) * math.exp(-100)] * 6, rel=0.01)


@given(st.integers(0, 2**32 - 1), st.sampled_from(BITS), st.sampled_from([torch.float32, torch.bfloat16]))
@settings(max_examples=15)
def test_a_forbidden_token_is_never_drawn(seed: int, bits: int, dtype: torch.dtype) -> None:
    """Whatever else the row wants, and whatever the logits are."""
    rng = np.random.default_rng(seed)
    vocab_size = int(rng.integers(1, 200))
    row = random_row(rng, vocab_size)
    row.seed, row.position = naive.seed_for(bits), 0
    logits = torch.from_numpy(rng.choice([0.0, 1e30, -1e30, math.inf, -math.inf, math.nan, 3.0], (1, vocab_size))).to(dtype)
    sampled = run([row], vocab_size, logits=logits, sample=sample)
    assert int(sampled.token[0]) in naive.without_bans(row)[0]


# ---- one row does not know the others


@pytest.mark.parametrize(("vocab_size", "num_rows"), [(77, 5), (STATISTICS_CHUNK + 100, 4)])
def test_a_row_is_the_same_bit_by_bit_in_any_batch(vocab_size: int, num_rows: int) -> None:
    rows, logits = big_batch(vocab_size, num_rows)
    together = run(rows, vocab_size, logits=logits, num_top=2, sample=sample)
    order = torch.randperm(num_rows, generator=torch.Generator().manual_seed(0))
    shuffled = run([rows[r] for r in order], vocab_size, logits=logits[order], num_top=2, sample=sample)
    same_fields(shuffled, Sampled(*(field[order] for field in together)))
    for r in (0, num_rows - 1):
        alone = run([rows[r]], vocab_size, logits=logits[r : r + 1], num_top=2, sample=sample)
        same_fields(alone, Sampled(*(field[r : r + 1] for field in together)))


def test_stages_that_no_row_needs_change_nothing() -> None:
    rows, logits = big_batch(300, 4)
    plain = [Row(**{**vars(row), **FILTERS}) for row in rows]
    all_on = Stages(any_draw=True, filters=frozenset(FILTERS), max_top_k=50)
    found = sample(logits, sampler_rows(plain), vocab_size=300)
    named = sample(logits, sampler_rows(plain)._replace(stages=all_on), vocab_size=300)
    same_fields(found, named)


def test_a_greedy_batch_skips_the_draw_and_means_the_same() -> None:
    rows, logits = big_batch(300, 3)
    greedy = [Row(**{**vars(row), "temperature": 0.0}) for row in rows]
    mixed = [*greedy, Row([], set(range(300)))]
    with_a_draw = run(mixed, 300, logits=torch.cat([logits, logits[:1]]), sample=sample).token[:-1]
    assert run(greedy, 300, logits=logits, sample=sample).token.tolist() == with_a_draw.tolist()


# ---- logits of every shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "layout", ["contiguous", "padded head", "every second row", "transposed", "every third column"]
)
def test_layout_and_type_of_the_logits_do_not_matter(dtype: torch.dtype, layout: str) -> None:
    vocab_size, rng = 101, np.random.default_rng(3)
    rows = [random_row(rng, vocab_size) for _ in range(2)]
    plain = torch.tensor([row.logits for row in rows], dtype=dtype, device=DEVICE)  # multiples of 1/4: exact in every type
    given = laid_out(plain, layout)
    before = given.clone()
    check_against_twin(rows, run(rows, vocab_size, logits=given, num_top=2, sample=sample), 2)
    assert torch.equal(given.isnan(), before.isnan()) and torch.equal(given.nan_to_num(), before.nan_to_num())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_broken_row_draws_a_legal_token_and_leaves_the_others_alone(temperature: float) -> None:
    nan, inf = math.nan, math.inf
    broken = [[nan] * 40, [-inf] * 40, [inf] * 40, [nan, inf, -inf, 0.0] * 10]
    rows = [Row(logits, {3, 7, 39}, temperature, seed=seed) for seed, logits in enumerate(broken)]
    good = Row([float(t % 5) for t in range(40)], set(range(40)), temperature, seed=9)
    sampled = run([*rows, good], 40, sample=sample)
    assert set(sampled.token[:4].tolist()) <= {3, 7, 39}
    assert int(sampled.token[4]) == naive.sample_row(good).token
    assert not sampled.logprob.isnan().any()


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_a_row_without_mask_or_without_allowed_tokens_draws_nothing(index_dtype: torch.dtype) -> None:
    rows = sampler_rows([Row([0.0] * 40, set(), t, top_k=3, top_p=0.5, min_p=0.1) for t in (0.0, 1.0, 1.0, 1.0)])
    pool, index = pack_masks([set(), {4}], 40), torch.tensor([0, 0, MISSING, 1], dtype=index_dtype)
    sampled = sample(torch.zeros(4, 40), rows, pool, index, vocab_size=40)
    assert sampled.token.tolist() == [NO_TOKEN, NO_TOKEN, NO_TOKEN, 4]
    assert sampled.num_allowed.tolist() == [0, 0, 0, 1]
    assert sampled.kept_mass.tolist()[:3] == [0, 0, 0]
    assert sampled.logprob.isnan().tolist() == [True, True, True, False]
    assert not sampled.bans_overridden.any()


def test_masks_may_be_uint32_and_rows_of_a_wider_pool() -> None:
    row = Row([0.0] * 70, {31, 63, 69})
    pool = torch.full((1, 9), -1, dtype=torch.int32)
    pool[:, 2:5] = pack_masks([row.masked_in], 70)
    sampled = sample(torch.zeros(1, 70), sampler_rows([row]), pool.view(torch.uint32)[:, 2:5], torch.tensor([0]), vocab_size=70)
    assert int(sampled.num_allowed) == 3 and int(sampled.token) in row.masked_in


def test_an_empty_batch() -> None:
    sampled = sample(torch.zeros(0, 40), sampler_rows([]), vocab_size=33, num_top_logprobs=2)
    assert sampled.token.shape == (0,) and sampled.top_token.shape == (0, 2)


def test_more_top_logprobs_than_tokens_and_many_ties() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 1.0, 3.0]])
    arrays = sampler_rows([Row([], set())])
    same = [s(logits, arrays, vocab_size=5, num_top_logprobs=9) for s in (sample, reference.sample)]
    assert same[0].top_token.tolist() == same[1].top_token.tolist() == [[1, 2, 4, 0, 3]]


@pytest.mark.parametrize("temperature", [1e-6, 1e-38, 1e-44])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    rows = [Row([1.0, 3.0, 2.0, 2.5], {0, 2, 3}, as_float32(temperature), seed=seed) for seed in range(4)]
    assert run(rows, 4, sample=sample).token.unique().tolist() == [3]


@pytest.mark.parametrize("sampler", [sample, reference.sample], ids=["kernels", "reference"])
def test_extremes_in_one_batch(sampler: Any) -> None:
    """Each row is extreme in its own way; what has to be drawn is known without drawing."""
    low, size = -math.inf, 70
    one_left = [low] * size
    one_left[33] = -7.0
    tied = [2.0] * 40 + [1.0] * 30
    free, seeds = set(range(size)), iter(range(9))
    rows = [
        (Row(one_left, free, 1.0, seed=next(seeds)), {33}),
        (Row(one_left, free, as_float32(1e30), top_k=size + 5, seed=next(seeds)), free),
        (Row(one_left, {64}, 1.0, seed=next(seeds)), {64}),
        (Row([math.nan] * 69 + [math.inf], free, 1.0, seed=next(seeds)), {69}),
        (Row(tied, free, 1.0, top_k=1, seed=next(seeds)), set(range(40))),  # tied tokens stay or go together
        (Row(tied, free, 1.0, top_p=as_float32(1e-6), seed=next(seeds)), set(range(40))),
        (Row(tied, free, 1.0, min_p=1.0, seed=next(seeds)), set(range(40))),
        (Row(tied, free, 0.0, top_k=10**9, seed=next(seeds)), {0}),
        (Row(tied, free, as_float32(1e-38), top_k=10**9, top_p=as_float32(0.5), seed=next(seeds)), set(range(40))),
    ]
    sampled = run([row for row, _ in rows], size, sample=sampler)
    for token, (_, legal) in zip(sampled.token.tolist(), rows, strict=True):
        assert token in legal
    assert sampled.kept_mass.isfinite().all() and not sampled.logprob.isnan().any()


def test_bans_may_cover_a_whole_free_vocabulary() -> None:
    row = Row([0.0, 5.0], {0, 1}, 0.0, bias={0: -math.inf, 1: -math.inf})
    sampled = sample(torch.tensor([row.logits]), sampler_rows([row]), vocab_size=2)
    assert int(sampled.token) == 1 and bool(sampled.bans_overridden)


def test_a_mask_that_allows_everything_keeps_all_mass_exactly() -> None:
    logits = torch.randn(1, 999, generator=torch.Generator().manual_seed(1))
    rows = sampler_rows([Row([], set())])
    full = pack_masks([range(999)], 999)
    assert float(sample(logits, rows, full, torch.tensor([0]), vocab_size=999).kept_mass) == 1.0
    assert float(sample(logits, rows, vocab_size=999).kept_mass) == 1.0


# ---- the switch


def test_the_device_chooses_and_the_caller_may() -> None:
    assert choose_sampler(torch.device("cpu")) is compiled.sample
    assert choose_sampler(torch.device("cpu"), "reference") is reference.sample
    assert choose_sampler(torch.device("cuda")) is launch.sample
    assert choose_sampler(torch.device("cuda"), "reference") is reference.sample
    assert choose_sampler(DEVICE, "triton") is launch.sample
    with pytest.raises(ValueError, match='not on "meta"'):
        choose_sampler(torch.device("meta"), "triton")
    with pytest.raises(ValueError, match="unknown backend"):
        choose_sampler(DEVICE, "cuda")  # type: ignore[arg-type]
