"""Compiled code takes the tokens that the reference takes, and says the same of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from maskwright.kernels import cpu
from maskwright.kernels.sampler import greedy, reference
from maskwright.kernels.sampler.interface import MISSING, UNCONSTRAINED, SamplerRows, TokenValues
from maskwright.sampling import BatchPacker, SamplingParams
from maskwright.sampling.sequence import SequenceSampling

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


@pytest.mark.parametrize("seed", range(40))
def test_it_gives_what_the_reference_gives(seed: int) -> None:
    """With ties, numbers that are none, masks of few and of no tokens, missing masks, biases and bans."""
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
    assert greedy.is_covered(logits, rows, 0)
    found = greedy.sample(logits, rows, *given, vocab_size=vocab_size)
    expected = reference.sample(logits, rows, *given, vocab_size=vocab_size)
    for name in ("token", "num_allowed", "bans_overridden", "top_token"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert torch.allclose(found.logprob, expected.logprob, rtol=1e-5, atol=1e-5, equal_nan=True)
    assert torch.allclose(found.kept_mass, expected.kept_mass, rtol=1e-4, atol=1e-12)


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    logits = torch.randn(6, 3000, generator=torch.Generator().manual_seed(0))
    together = greedy.sample(logits, greedy_rows(6), vocab_size=3000)
    apart = [greedy.sample(logits[row : row + 1], greedy_rows(1), vocab_size=3000) for row in range(6)]
    assert all(torch.equal(whole, torch.cat(parts)) for whole, parts in zip(together, zip(*apart, strict=True), strict=True))


def test_what_it_does_not_compute_is_left_to_the_reference() -> None:
    logits, rows = torch.randn(1, 40), greedy_rows(1)
    history = TokenValues(torch.tensor([0, 1]), torch.tensor([3]), torch.tensor([1.0]))
    drawing = BatchPacker().pack([SequenceSampling(SamplingParams(temperature=1), vocab_size=9)])
    assert greedy.is_covered(logits, rows, 0) and not greedy.is_covered(logits, rows, 2)
    assert not greedy.is_covered(logits.bfloat16(), rows, 0) and not greedy.is_covered(logits, drawing, 0)
    assert not greedy.is_covered(logits, rows._replace(history=history), 0)
    assert not greedy.is_covered(logits, rows._replace(stages=None), 0)
    for each in (rows, drawing):
        found, expected = (module.sample(logits, each, vocab_size=40, num_top_logprobs=3) for module in (greedy, reference))
        assert all(map(torch.equal, found, expected))
