"""Random rows, an implementation of the sampler run on them, and its result compared with the twin in `naive`."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from maskwright.kernels.sampler import reference
from maskwright.kernels.sampler.backend import Sample
from maskwright.kernels.sampler.interface import UNCONSTRAINED, Sampled

from . import naive
from .arrays import as_float32, pack_masks, sampler_rows
from .naive import Row

EPSILON = 1e-6  # of a row's probability: fp32 weights may fall on the other side of a boundary this near


def run(
    rows: list[Row],
    vocab_size: int,
    *,
    logits: torch.Tensor | None = None,
    num_top: int = 0,
    sample: Sample = reference.sample,
) -> Sampled:
    """Samples rows whose masks are in the pool in reverse order; rows that allow everything carry no mask."""
    everything = set(range(vocab_size))
    pool = pack_masks([row.masked_in for row in reversed(rows)], vocab_size)
    index = [UNCONSTRAINED if row.masked_in == everything else len(rows) - 1 - r for r, row in enumerate(rows)]
    if logits is None:
        logits = torch.tensor([row.logits for row in rows], dtype=torch.float32)
    return sample(
        logits, sampler_rows(rows), pool, torch.tensor(index), vocab_size=vocab_size, num_top_logprobs=num_top
    )


def random_row(rng: np.random.Generator, vocab_size: int) -> Row:
    """Every stage on or off at random. Logits lie on a coarse grid, so that ties are frequent and exact."""

    def maybe(value: float, off: float) -> float:
        return as_float32(value) if rng.random() < 0.5 else off

    def some_tokens(most: int) -> list[int]:
        return rng.choice(vocab_size, size=rng.integers(0, min(most, vocab_size) + 1), replace=False).tolist()

    mask = rng.random(vocab_size) < rng.choice([0.1, 0.9, 1.0])
    mask[rng.integers(vocab_size)] = True
    bias = {t: as_float32(rng.choice([-math.inf, -2.0, 0.5, 3.0])) for t in some_tokens(8)}
    if rng.random() < 0.2:
        bias |= dict.fromkeys(np.flatnonzero(mask).tolist(), -math.inf)
    return Row(
        logits=(rng.integers(-24, 24, size=vocab_size) / 4).tolist(),
        masked_in=set(np.flatnonzero(mask).tolist()),
        temperature=as_float32(rng.choice([0.0, 0.25, 0.7, 1.0, 2.0])),
        top_k=int(rng.choice([0, 1, 2, 5, 50])),
        top_p=maybe(rng.uniform(0.05, 0.999), 1.0),
        min_p=maybe(rng.uniform(0.001, 1.0), 0.0),
        repetition_penalty=maybe(rng.uniform(0.5, 2.0), 1.0),
        presence_penalty=maybe(rng.uniform(-1, 2), 0.0),
        frequency_penalty=maybe(rng.uniform(-1, 2), 0.0),
        seed=int(rng.integers(0, 2**64, dtype=np.uint64)),
        position=int(rng.integers(0, 1000)),
        bias=bias,
        history={t: float(rng.integers(0, 4)) for t in some_tokens(8)},
    )


def plausible_tokens(row: Row) -> set[int | None]:
    """What the twin draws when every boundary is moved by a hair."""
    hair = (0.0, EPSILON, -EPSILON)
    return {naive.sample_row(row, *nudges).token for nudges in itertools.product(hair, repeat=3)}


def check_against_twin(rows: list[Row], sampled: Sampled, num_top: int) -> None:
    for r, row in enumerate(rows):
        expected = naive.sample_row(row)
        token = int(sampled.token[r])
        assert token == expected.token or token in plausible_tokens(row)
        assert float(sampled.logprob[r]) == pytest.approx(expected.logprobs[token], abs=2e-6)
        assert float(sampled.kept_mass[r]) == pytest.approx(expected.kept_mass, rel=2e-6)
        assert int(sampled.num_allowed[r]) == len(row.masked_in)
        assert bool(sampled.bans_overridden[r]) == expected.bans_overridden
        best_first = sorted(range(len(row.logits)), key=lambda t: (-row.logits[t], t))[:num_top]
        assert sampled.top_token[r].tolist() == best_first
        assert sampled.top_logprob[r].tolist() == pytest.approx([expected.logprobs[t] for t in best_first], abs=2e-6)


def chi_square(counts: list[float], expected: list[float]) -> float:
    return sum((count - e) ** 2 / e for count, e in zip(counts, expected, strict=True))


def big_batch(vocab_size: int, num_rows: int) -> tuple[list[Row], torch.Tensor]:
    rng = np.random.default_rng(7)
    rows = [random_row(rng, vocab_size) for _ in range(num_rows)]
    logits = torch.from_numpy(rng.normal(scale=3, size=(num_rows, vocab_size)).astype(np.float32))
    return rows, logits


def laid_out(plain: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values, and NaN wherever nothing should be read."""
    rows, width = plain.shape
    if layout == "padded head":
        buffer = plain.new_full((rows, width + 27), math.nan)
        buffer[:, :width] = plain
        return buffer
    if layout == "every second row":
        buffer = plain.new_full((2 * rows, width), math.nan)
        buffer[::2] = plain
        return buffer[::2]
    if layout == "every third column":
        buffer = plain.new_full((rows, 3 * width), math.nan)
        buffer[:, ::3] = plain
        return buffer[:, ::3]
    return plain.t().contiguous().t() if layout == "transposed" else plain
