"""Compiled code draws the tokens that the reference draws, and says the same of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from maskwright.kernels import cpu
from maskwright.kernels.sampler import compiled, reference
from maskwright.kernels.sampler.interface import MISSING, UNCONSTRAINED, SamplerRows, TokenValues
from maskwright.kernels.sampler.parameters import filled
from maskwright.sampling import BatchPacker, SamplingParams
from maskwright.sampling.sequence import SequenceSampling

from .twin import check_against_twin, random_row, run

pytestmark = pytest.mark.skipif(not cpu.is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
ODD = [float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 0.0, -0.0]


@pytest.fixture(autouse=True, params=["avx512", "avx2", "neon"])
def instructions(request: pytest.FixtureRequest) -> Iterator[None]:
    if not cpu.use_instructions(request.param):
        pytest.skip(f"this processor has no {request.param}")
    yield
    cpu.use_instructions("auto")


def greedy_rows(count: int, bias: TokenValues | None = None) -> SamplerRows:
    params = SamplingParams(temperature=0)
    return BatchPacker().pack([SequenceSampling(params, vocab_size=9) for _ in range(count)])._replace(bias=bias)


def random_bias(rng: np.random.Generator, num_rows: int, vocab_size: int, most: int) -> TokenValues:
    lists = [rng.permutation(vocab_size)[: rng.integers(0, most + 1)] for _ in range(num_rows)]
    offsets = np.cumsum([0, *map(len, lists)])
    values = np.where(rng.random(offsets[-1]) < 0.5, -np.inf, rng.normal(0, 5, offsets[-1])).astype(np.float32)
    return TokenValues(*map(torch.from_numpy, (offsets, np.concatenate(lists), values)))


def random_history(rng: np.random.Generator, num_rows: int, vocab_size: int) -> TokenValues:
    seen = random_bias(rng, num_rows, vocab_size, min(vocab_size, 30))
    return seen._replace(values=torch.from_numpy(rng.integers(0, 4, len(seen.values)).astype(np.float32)))


@pytest.mark.parametrize("seed", range(40))
def test_greedy_rows_are_what_the_reference_gives(seed: int) -> None:
    """With ties, numbers that are none, masks of few and of no tokens, missing masks, biases, bans and penalties."""
    rng = np.random.default_rng(seed)
    vocab_size = int(rng.integers(1, 90)) if seed % 2 else int(rng.integers(1000, 5000))
    num_rows = 5
    logits = torch.from_numpy(np.round(rng.normal(0, 4, (num_rows, vocab_size + 7)).astype(np.float32), 1))
    for row in range(num_rows):
        if rng.random() < 0.3:
            logits[row, rng.integers(0, vocab_size)] = ODD[rng.integers(len(ODD))]
    bits = rng.random((3, -(-vocab_size // 32) * 32)) < np.array([[0.5], [3 / vocab_size], [0.0]])
    masks = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32))
    index = torch.from_numpy(rng.choice([0, 1, 2, UNCONSTRAINED, MISSING], num_rows))
    given = (masks, index) if seed % 3 else (None, None)
    rows = greedy_rows(num_rows, random_bias(rng, num_rows, vocab_size, min(vocab_size, 50)) if seed % 4 else None)
    if seed % 5 == 0:
        numbers = filled(num_rows, temperature=0, repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.25)
        rows = rows._replace(parameters=numbers, history=random_history(rng, num_rows, vocab_size))
    found = compiled.sample(logits, rows, *given, vocab_size=vocab_size)
    expected = reference.sample(logits, rows, *given, vocab_size=vocab_size)
    for name in ("token", "num_allowed", "bans_overridden", "top_token", "share"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert torch.allclose(found.logprob, expected.logprob, rtol=1e-5, atol=1e-5, equal_nan=True)
    assert torch.allclose(found.kept_mass, expected.kept_mass, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize(("seed", "vocab_size"), [(seed, size) for seed in range(12) for size in (1, 2, 33, 300, 1500)])
def test_agrees_with_the_twin(seed: int, vocab_size: int) -> None:
    """Temperatures, filters, penalties, biases and masks at random, with frequent ties."""
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, vocab_size) for _ in range(4)]
    check_against_twin(rows, run(rows, vocab_size, num_top=2, sample=compiled.sample), 2)


@pytest.mark.parametrize("options", [
    {}, {"top_k": 40}, {"top_p": 0.9}, {"min_p": 0.05}, {"top_k": 2000, "top_p": 0.99}, {"top_p": 0.001}, {"temperature": 1.7, "top_p": 0.9999},
], ids=str)  # fmt: skip
def test_draws_what_the_reference_draws(options: dict[str, float]) -> None:
    """Of whole vocabularies, and of masks of many and of few tokens; with more than are looked at in one go."""
    rng, vocab_size, num_rows = np.random.default_rng(7), 20_000, 24
    logits = torch.from_numpy(rng.normal(0, 3, (num_rows, vocab_size)).astype(np.float32))
    params = SamplingParams(**{"temperature": 0.8, "seed": 5, **options})  # type: ignore[arg-type]
    rows = BatchPacker().pack([SequenceSampling(params, vocab_size=vocab_size) for _ in range(num_rows)])
    rows = rows._replace(position=torch.arange(num_rows))
    bits = rng.random((3, vocab_size)) < np.array([[0.6], [0.01], [0.0005]])
    masks = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32))
    index = torch.arange(num_rows) % 4 - 1
    found = compiled.sample(logits, rows, masks, index, vocab_size=vocab_size, is_told=False)
    expected = reference.sample(logits, rows, masks, index, vocab_size=vocab_size, is_told=False)
    assert torch.equal(found.token, expected.token) and len(set(found.token.tolist())) > 3
    for each in (found, expected):
        assert each.logprob.isnan().all() and each.kept_mass.isnan().all()


def test_what_masks_forbid_is_not_looked_at() -> None:
    """Whatever stands at tokens that may not be drawn, a row draws the same."""
    rng, vocab_size = np.random.default_rng(3), 3000
    logits = torch.from_numpy(rng.normal(0, 3, (9, vocab_size)).astype(np.float32))
    bits = np.zeros((9, -(-vocab_size // 32) * 32), bool)
    for row in bits:
        row[rng.permutation(vocab_size)[: rng.choice([2, 20, 2000])]] = True
    masks, index = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32)), torch.arange(9)
    params = SamplingParams(temperature=0.9, top_p=0.9, top_k=50, min_p=0.01, seed=1)
    rows = BatchPacker().pack([SequenceSampling(params, vocab_size=vocab_size) for _ in range(9)])
    others = torch.where(torch.from_numpy(bits[:, :vocab_size]), logits, torch.from_numpy(rng.choice(ODD, logits.shape).astype(np.float32)))
    drawn = [compiled.sample(each, rows, masks, index, vocab_size=vocab_size, is_told=False).token for each in (logits, others)]
    assert torch.equal(*drawn)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_row_does_not_depend_on_those_beside_it(temperature: float) -> None:
    logits = torch.randn(6, 3000, generator=torch.Generator().manual_seed(0))
    params = SamplingParams(temperature=temperature, top_p=0.95, seed=9)
    together, alone = (BatchPacker().pack([SequenceSampling(params, vocab_size=3000)] * count) for count in (6, 1))
    whole = compiled.sample(logits, together, vocab_size=3000)
    apart = [compiled.sample(logits[row : row + 1], alone, vocab_size=3000) for row in range(6)]
    assert all(torch.equal(each, torch.cat(parts)) for each, parts in zip(whole, zip(*apart, strict=True), strict=True))


def test_programs_are_the_references() -> None:
    """They change nothing for rows beside them, and what is said of their tokens is said as of others."""
    logits = torch.randn(5, 3000, generator=torch.Generator().manual_seed(1))
    greedy, drawn = SamplingParams(temperature=0), SamplingParams(temperature=0.8, seed=2)
    params = [drawn, SamplingParams(typical_p=0.5, seed=3), SamplingParams(mirostat=2, seed=4), greedy, SamplingParams(mirostat=1, seed=5)]
    rows = BatchPacker().pack([SequenceSampling(each, vocab_size=3000) for each in params])
    found, expected = (module.sample(logits, rows, vocab_size=3000, num_top_logprobs=3) for module in (compiled, reference))
    assert all(torch.equal(getattr(found, name), getattr(expected, name)) for name in ("token", "num_allowed", "bans_overridden", "top_token"))
    assert torch.equal(found.share[[1, 2, 4]], expected.share[[1, 2, 4]])
    assert torch.allclose(found.logprob, expected.logprob, rtol=1e-5, atol=1e-5)
    for place, each in enumerate(params):
        if not each.has_program:
            alone = BatchPacker().pack([SequenceSampling(each, vocab_size=3000)])
            assert compiled.sample(logits[place : place + 1], alone, vocab_size=3000).logprob == found.logprob[place]


@pytest.mark.parametrize("seed", range(24))
def test_the_most_probable_tokens_are_the_references(seed: int) -> None:
    """With ties, numbers that are none, more than there are, and whatever may be drawn; the token drawn is told by one number."""
    rng = np.random.default_rng(seed)
    vocab_size = int(rng.choice([1, 2, 40, 300, 3000]))
    logits = torch.from_numpy(np.round(rng.normal(0, 4, (4, vocab_size + 3)).astype(np.float32), int(rng.integers(0, 3))))
    for row in range(4):
        logits[row, torch.from_numpy(rng.integers(0, vocab_size, 3))] = float(rng.choice(ODD))
    if seed % 4 == 0:
        logits = logits.sort(dim=1).values  # each is among the best so far
    num_top = int(rng.choice([1, 2, 5, 20, 400]))
    bits = rng.random((1, -(-vocab_size // 32) * 32)) < 0.1
    masks, index = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32)), torch.tensor([0, UNCONSTRAINED, 0, UNCONSTRAINED])
    found, expected = (
        module.sample(logits, greedy_rows(4), masks, index, vocab_size=vocab_size, num_top_logprobs=num_top) for module in (compiled, reference)
    )
    assert torch.equal(found.top_token, expected.top_token) and found.top_token.shape == (4, min(num_top, vocab_size))
    assert torch.allclose(found.top_logprob, expected.top_logprob, rtol=1e-5, atol=1e-5)
    is_drawn = found.top_token == found.token[:, None]
    assert torch.equal(found.top_logprob[is_drawn], found.logprob[:, None].expand_as(is_drawn)[is_drawn])
    untold = compiled.sample(logits, greedy_rows(4), masks, index, vocab_size=vocab_size, num_top_logprobs=num_top, is_told=False)
    assert torch.equal(untold.token, found.token) and untold.top_token.shape == (4, 0)


@pytest.mark.parametrize("vocab_size", [1, 17, 64, 300])
def test_rows_that_are_no_numbers_are_seen(vocab_size: int) -> None:
    """Wherever in the vocabulary; infinities are numbers, and what is behind the vocabulary does not matter."""
    logits = torch.zeros(vocab_size + 2, vocab_size + 5)
    logits[torch.arange(vocab_size), torch.arange(vocab_size)] = float("nan")
    logits[:, vocab_size:], logits[vocab_size + 1, 0] = float("nan"), float("inf")
    for given in (logits, logits.bfloat16(), logits[::2]):
        assert torch.equal(compiled.are_numbers(given, vocab_size), ~given[:, :vocab_size].isnan().any(1))


def test_other_logits_are_left_to_the_reference() -> None:
    logits, rows = torch.randn(1, 40), greedy_rows(1)
    assert compiled.is_covered(logits) and not compiled.is_covered(logits.bfloat16()) and not compiled.is_covered(logits.T)
    found, expected = (module.sample(logits.bfloat16(), rows, vocab_size=40) for module in (compiled, reference))
    assert all(map(torch.equal, found, expected))
