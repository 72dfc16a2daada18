"""Packed matrices: blocks mean what `gguf.quants` says, bit by bit, and products are those of the numbers."""

from __future__ import annotations

import warnings

import gguf
import numpy as np
import pytest
import torch

from maskwright.kernels import quantized
from maskwright.kernels.quantized import BLOCK_TYPES, Packed, reference

COLUMNS = 512


def random_blocks(name: str, num_rows: int, seed: int = 0, most: int = 256) -> Packed:
    """Of any bits: scales that are infinite, no number, or too small to be normal are among them."""
    kind = BLOCK_TYPES[name]
    data = np.random.default_rng(seed).integers(0, most, (num_rows, kind.row_bytes(COLUMNS)), dtype=np.uint8)
    return Packed(kind, torch.from_numpy(data))


def same_bits(found: torch.Tensor, expected: np.ndarray) -> bool:
    is_nan = np.isnan(expected)
    return bool((is_nan == found.isnan().numpy()).all() and (found.numpy().view(np.int32) == expected.view(np.int32))[~is_nan].all())


@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_blocks_mean_what_the_library_says(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    assert gguf.GGML_QUANT_SIZES[kind] == (BLOCK_TYPES[name].num_weights, BLOCK_TYPES[name].num_bytes)
    packed = random_blocks(name, 300)
    with warnings.catch_warnings(action="ignore"):
        expected = gguf.dequantize(packed.data.numpy(), kind)
    assert same_bits(reference.dequantize(packed), expected)
    assert same_bits(quantized.dequantize(packed), expected)


@pytest.mark.parametrize("num_tokens", [1, 5])
@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_a_product_is_that_of_the_numbers(name: str, num_tokens: int) -> None:
    """With more rows than are unpacked at a time, of which the last are few."""
    num_rows = 2 * quantized.CPU_SCRATCH // COLUMNS + 3
    packed = random_blocks(name, num_rows, most=60)
    x = torch.randn(num_tokens, COLUMNS, generator=torch.Generator().manual_seed(0))
    weights = quantized.dequantize(packed).double()
    scale = weights.abs().sum(dim=1) + 1e-30
    assert ((quantized.multiply(x, packed).double() - x.double() @ weights.T) / scale).abs().max() < 1e-5


def test_a_product_has_the_dtype_of_what_is_multiplied() -> None:
    packed, x = random_blocks("Q8_0", 7, most=60), torch.randn(3, COLUMNS)
    half = quantized.multiply(x.bfloat16(), packed)
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, quantized.multiply(x.bfloat16().float(), packed).bfloat16())


@pytest.mark.parametrize("name", ["F32", "Q4_K", "Q8_0"])
def test_rows_are_looked_up(name: str) -> None:
    packed, indices = random_blocks(name, 9, most=60), torch.tensor([8, 0, 0, 3])
    assert torch.equal(quantized.rows(packed, indices), quantized.dequantize(packed)[indices])


def test_rows_may_lie_anywhere_in_memory() -> None:
    """A column of experts, or a file mapped at an odd place."""
    packed = random_blocks("Q4_K", 12, most=60)
    data = torch.cat((torch.zeros(1, dtype=torch.uint8), packed.data.flatten()))[1:].view(packed.data.shape)
    assert torch.equal(quantized.dequantize(Packed(packed.type, data)), quantized.dequantize(packed))


def test_what_runs_on_another_device_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, x = random_blocks("Q6_K", 11, most=60), torch.randn(2, COLUMNS)
    monkeypatch.setattr(quantized, "GPU_SCRATCH", 4 * COLUMNS)
    assert torch.allclose(quantized.multiply_in_pieces(x, packed), quantized.multiply(x, packed), rtol=1e-4, atol=1e-3)
