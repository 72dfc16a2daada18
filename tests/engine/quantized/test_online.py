"""Matrices quantised by rounding to the nearest: how far numbers may move."""

from __future__ import annotations

import pytest
import torch

from maskwright.engine.quantization.online import GROUP_SIZE, ONLINE_KINDS, quantized
from maskwright.kernels.quantized.scaled import dequantize


def matrix(dtype: torch.dtype = torch.float32, num_rows: int = 70, num_columns: int = 96) -> torch.Tensor:
    weight = torch.randn(num_rows, num_columns, generator=torch.Generator().manual_seed(0))
    weight[3] = 0
    weight[4, :GROUP_SIZE] = 0
    return (weight * torch.logspace(-3, 1, num_rows)[:, None]).to(dtype)


def test_integers_of_8_bits_move_by_half_a_step() -> None:
    weight = matrix()
    step = weight.abs().amax(1, keepdim=True) / 127  # kept in bfloat16: the largest number may be cut off by a part of 256
    assert ((dequantize(quantized("int8", weight)) - weight).abs() <= 0.51 * step).all()


def test_floats_of_8_bits_keep_four_digits() -> None:
    """Three bits behind the point: half of the last is a sixteenth, of what is not too small."""
    weight = matrix()
    smallest = weight.abs().amax(1, keepdim=True) / 448 * 2**-6
    error = (dequantize(quantized("fp8", weight)) - weight).abs()
    assert (error <= weight.abs() / 16 + smallest / 8).all()


def test_groups_of_4_bits_are_better_than_what_the_largest_number_says() -> None:
    groups = matrix().unflatten(1, (-1, GROUP_SIZE))
    scale = (groups.abs().amax(2, keepdim=True) / 7.5).bfloat16().float().clamp_min(1e-12)
    plain = ((groups / scale).round().clamp(-8, 7) * scale - groups).square().sum(2)
    error = (dequantize(quantized("int4", matrix())).unflatten(1, (-1, GROUP_SIZE)) - groups).square().sum(2)
    assert (error <= plain * 1.0001).all() and error.sum() < 0.95 * plain.sum()


@pytest.mark.parametrize("kind", ONLINE_KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_pieces_and_types_make_no_difference(kind, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.engine.quantization import online

    whole = quantized(kind, matrix(dtype))
    monkeypatch.setattr(online, "_ROWS_AT_A_TIME", 300)
    pieces = quantized(kind, matrix(dtype))
    assert torch.equal(whole.data, pieces.data) and torch.equal(whole.scales, pieces.scales)
    zeros = dequantize(whole)[3]
    assert torch.equal(zeros, torch.zeros_like(zeros))
