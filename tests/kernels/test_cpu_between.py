"""What compiled code computes between the products is what PyTorch computes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from maskwright.kernels import cpu
from maskwright.kernels.attention import FP8
from maskwright.kernels.attention.interface import FP8_MAX
from maskwright.kernels.cpu import between, decoder
from maskwright.kernels.moe import ACTIVATIONS

pytestmark = pytest.mark.skipif(not cpu.is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")


@pytest.fixture(autouse=True, params=["avx512bf16", "avx512", "avx2", "neon"])
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    if not cpu.use_instructions(request.param):
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    cpu.use_instructions("auto")


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("width", [16, 48, 576])
def test_a_norm_is_that_of_the_sum(width: int) -> None:
    hidden, delta, weight = random(3, width), random(3, width, seed=1), random(width, seed=2)
    normed, total = between.rms_norm(hidden, delta, weight, 1e-5)
    assert torch.equal(total, hidden + delta)
    assert torch.allclose(normed, rms_norm(total, (width,), weight, 1e-5), rtol=1e-5, atol=1e-6)
    alone, same = between.rms_norm(hidden, None, weight, 1e-5)
    assert same is hidden and torch.allclose(alone, rms_norm(hidden, (width,), weight, 1e-5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", between.ACTIVATIONS)
def test_a_gate_is_activated(activation: str) -> None:
    inner = torch.cat((torch.linspace(-120, 120, 480).view(2, 240), random(2, 240)), dim=1)
    gate, up = inner.chunk(2, dim=1)
    exact = ACTIVATIONS[activation](gate.double()) * up
    found = between.gated(inner, activation)
    assert ((found - exact).abs() <= 1e-6 * (gate.abs() * up.abs()).clamp_max(1.0) + 1e-6 * exact.abs()).all()
    apart = torch.cat((inner, inner), dim=1)[:, :480]
    assert torch.equal(between.gated(apart, activation), found)


@pytest.mark.parametrize("half", [32, 24, 7])
@pytest.mark.parametrize("is_normed", [False, True])
def test_heads_are_normalised_and_turned_and_cached(half: int, is_normed: bool) -> None:
    heads, slots = between.Heads(6, 2, 64), torch.tensor([5, 0, 8])
    projected, angle = random(3, 10 * 64), random(3, 1, half)
    angles = (angle.cos(), angle.sin())
    norm = between.HeadNorm(random(8, 64, seed=3), 1e-6) if is_normed else None
    cache = (torch.full((9, 2, 64), 7.0), torch.full((9, 2, 64), 7.0))
    query = between.turn_and_cache(projected, heads, angles, norm, cache, slots)
    turned, value = projected.view(3, 10, 64).split((8, 2), dim=1)
    if norm is not None:
        turned = rms_norm(turned, (64,), None, norm.eps) * norm.weight
    first, second, rest = turned.split((half, half, 64 - 2 * half), dim=-1)
    cosine, sine = angles
    expected = torch.cat((first * cosine - second * sine, second * cosine + first * sine, rest), dim=-1)
    assert torch.allclose(query, expected[:, :6], rtol=1e-5, atol=1e-5)
    assert torch.allclose(cache[0][slots], expected[:, 6:], rtol=1e-5, atol=1e-5) and torch.equal(cache[1][slots], value)
    assert sum((memory != 7).flatten(1).any(1).sum().item() for memory in cache) == 6


def stored(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """As `KVCache.write` does."""
    return x.clamp(-FP8_MAX, FP8_MAX).to(FP8) if dtype == FP8 else x.to(dtype)


@pytest.mark.parametrize("dtype", between.CACHES, ids=str)
def test_what_is_cached_is_rounded_as_pytorch_rounds(dtype: torch.dtype) -> None:
    """All exponents, what lies between two numbers and beside it, and what is no number or too large."""
    bits = torch.arange(0, 1 << 32, (1 << 19) - 1, dtype=torch.int64)
    around = torch.cat([bits & ~0xFFFFF | part for part in (0, 0x80000, 0x80001, 0x7FFFF, 0x1000, 0x1001, 0xFFF, 0x8000, 0x8001)])
    numbers = torch.cat((bits, around)).to(torch.int32).view(torch.float32)
    numbers = torch.cat((numbers, numbers.new_zeros(-len(numbers) % 32)))
    heads, num_rows = between.Heads(1, 1, 16), len(numbers) // 16
    projected = torch.cat((numbers.view(-1, 16),) * 3, dim=1)
    cache = (torch.zeros(num_rows, 1, 16, dtype=dtype), torch.zeros(num_rows, 1, 16, dtype=dtype))
    still = (torch.ones(num_rows, 1, 0), torch.zeros(num_rows, 1, 0))
    between.turn_and_cache(projected, heads, still, None, cache, torch.arange(num_rows))
    expected = stored(numbers, dtype)
    for memory in cache:
        found = memory.flatten()
        is_none = expected.float().isnan()
        assert torch.equal(found.float().isnan(), is_none)
        assert torch.equal(found.float()[~is_none], expected.float()[~is_none])


ROUNDED = 2.0**-9  # bfloat16: how far a number may be from what it is rounded to, by its size


def most_by_rounding(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float) -> torch.Tensor:
    """How far attention to the tokens of [heads, tokens, width] may be from the exact one where queries and weights are rounded to bfloat16.

    A score changes by ROUNDED of the sum of its products' sizes, and a weight and their sum by e to the power of that, and once more
    by ROUNDED each.
    """
    scores = query @ keys.transpose(1, 2) * scale
    change = 2 * ROUNDED * scale * (query.abs() @ keys.abs().transpose(1, 2)).amax(-1, keepdim=True)
    return (change.exp() * (1 + ROUNDED) / (1 - ROUNDED) - 1) * (scores.softmax(-1) @ values.abs())


@pytest.mark.parametrize("dtype", between.CACHES, ids=str)
@pytest.mark.parametrize(("head_dim", "num_heads"), [(16, 2), (64, 2), (64, 6), (80, 10), (128, 4), (128, 10), (192, 8), (128, 18)])
@pytest.mark.parametrize("window", [None, 5, 300])
def test_attention_is_that_of_pytorch(head_dim: int, num_heads: int, window: int | None, dtype: torch.dtype, instructions: str) -> None:
    """Of contexts shorter and longer than what is attended to at a time."""
    keys, values = (stored(random(200, 4, 2, head_dim, seed=seed), dtype) for seed in (0, 1))
    tables = torch.stack([torch.randperm(200, generator=torch.Generator().manual_seed(row))[:180] for row in range(4)])
    lengths, query = torch.tensor([1, 19, 40, 700]), random(4, num_heads, head_dim, seed=2) * 3
    found = between.attend(query, (keys, values), tables, lengths, 700, 0.2, window)
    is_rounded = instructions == "avx512bf16" and dtype == FP8 and head_dim % 64 == 0
    for row, length in enumerate(lengths.tolist()):
        first = 0 if window is None else max(0, length - window)
        key, value = (memory.double()[tables[row]].flatten(0, 1)[first:length].transpose(0, 1) for memory in (keys, values))
        grouped = query[row].double().view(2, num_heads // 2, head_dim)
        expected = scaled_dot_product_attention(grouped, key, value, scale=0.2)
        most = 1e-5 + 1e-4 * expected.abs() + (most_by_rounding(grouped, key, value, 0.2) if is_rounded else 0.0)
        assert ((found[row].view(expected.shape) - expected).abs() <= most).all()
    alone = between.attend(query[3:], (keys, values), tables[3:], lengths[3:], 700, 0.2, window)
    assert torch.equal(alone, found[3:])


@pytest.mark.parametrize("dtype", between.CACHES, ids=str)
def test_attention_does_not_depend_on_threads(dtype: torch.dtype) -> None:
    keys, values = (stored(random(80, 16, 2, 64, seed=seed), dtype) for seed in (0, 1))
    tables, lengths, query = torch.arange(80).view(2, 40), torch.tensor([333, 640]), random(2, 6, 64, seed=2)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(between.attend(query, (keys, values), tables, lengths, 640, 0.2, None))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_what_no_token_is_in_is_not_read() -> None:
    """Of an odd number of tokens the last one's neighbour in the block may be no number; and of no row there is nothing to attend to."""
    keys, values = random(2, 16, 1, 64), random(2, 16, 1, 64, seed=1)
    for memory in (keys, values):
        memory.view(32, 64)[21:] = float("nan")
    for dtype in between.CACHES:
        cache = (stored(keys, dtype), stored(values, dtype))
        found = between.attend(random(1, 3, 64), cache, torch.tensor([[0, 1]]), torch.tensor([21]), 21, 0.2, None)
        assert found.isfinite().all()
        none = torch.empty(0, 2, dtype=torch.int64)
        assert between.attend(random(0, 3, 64), cache, none, none[:, 0], 0, 0.2, None).shape == (0, 3, 64)


def test_heads_that_are_too_wide_are_refused() -> None:
    """Some of what is written of a head has room for so many numbers and no more."""
    assert decoder.fits([], decoder.Shape(1, 1, between.MAX_HEAD_DIM, "silu", 1e-6, 1.0))
    assert not decoder.fits([], decoder.Shape(1, 1, between.MAX_HEAD_DIM + 16, "silu", 1e-6, 1.0))


@pytest.mark.parametrize("head_dim", [16, 64])
def test_all_numbers_of_8_bits_are_read(head_dim: int) -> None:
    """One token has all the weight, so that what comes out are its values; those that are no number stay so."""
    values = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).view(-1, 1, 1, head_dim)
    count = len(values)
    cache = (torch.zeros(values.shape).to(values.dtype), values)
    found = between.attend(random(count, 1, head_dim), cache, torch.arange(count)[:, None], torch.ones(count, dtype=torch.int64), 1, 0.2, None)
    assert torch.equal(found.flatten().nan_to_num(9999), values.float().flatten().nan_to_num(9999))


def test_keys_of_8_bits_have_the_scores_of_the_same_numbers_in_16(instructions: str) -> None:
    """All numbers are those of bfloat16 too; where queries are rounded to it, these are such."""
    codes = torch.randint(0, 126, (64, 4, 2, 128), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    codes |= torch.randint(0, 2, codes.shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8) * 128
    small = codes.view(torch.float8_e4m3fn)
    wide, query = small.float().bfloat16(), random(1, 6, 128).bfloat16().float()
    call = (torch.arange(64)[None], torch.tensor([250]), 250, 0.001, None)
    found, expected, sizes = (between.attend(query, cache, *call) for cache in ((small, small), (wide, wide), (wide, wide.abs())))
    of_weights = 2 * ROUNDED / (1 - ROUNDED) * sizes if instructions == "avx512bf16" else 0.0
    assert ((found - expected).abs() <= 1e-4 + 1e-5 * expected.abs() + of_weights).all()
