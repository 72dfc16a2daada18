"""A mixture of experts: the twin against a plain double loop, the grouped products against the twin."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from maskwright.kernels.moe import ACTIVATIONS, grouped_mlp

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(num_tokens: int, num_experts: int, per_token: int, hidden: int = 24, size: int = 20, seed: int = 0) -> tuple[Tensor, ...]:
    """hidden, gate_up, down, chosen, weights."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(num_tokens, num_experts, generator=generator)
    weights, chosen = scores.topk(per_token)
    shapes = [(num_tokens, hidden), (num_experts, 2 * size, hidden), (num_experts, hidden, size)]
    arrays = [torch.randn(shape, generator=generator) * 0.5 for shape in shapes]
    return tuple(array.to(DEVICE) for array in (*arrays, chosen, weights))


def double_loop(hidden, gate_up, down, chosen, weights, activation, scales_input) -> Tensor:
    output = torch.zeros_like(hidden)
    for token in range(len(hidden)):
        for expert, weight in zip(chosen[token].tolist(), weights[token], strict=True):
            x = hidden[token] * weight if scales_input else hidden[token]
            gate, up = (gate_up[expert] @ x).chunk(2)
            result = down[expert] @ (ACTIVATIONS[activation](gate) * up)
            output[token] += result if scales_input else result * weight
    return output


@settings(max_examples=30)
@given(
    num_tokens=st.integers(1, 12),
    num_experts=st.integers(1, 9),
    data=st.data(),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    scales_input=st.booleans(),
)
def test_the_twin_is_the_double_loop(num_tokens, num_experts, data, activation, scales_input):
    per_token = data.draw(st.integers(1, num_experts))
    arrays = drawn(num_tokens, num_experts, per_token, seed=data.draw(st.integers(0, 99)))
    found = grouped_mlp(*arrays, activation, scales_input, backend="reference")
    torch.testing.assert_close(found, double_loop(*arrays, activation, scales_input), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("num_tokens", "num_experts", "per_token", "hidden", "size", "activation", "scales_input"),
    [
        (1, 4, 2, 24, 20, "silu", False),
        (37, 3, 2, 72, 40, "gelu", False),  # more pairs than 16 an expert: blocks of 64, the last ones not full
        (9, 8, 3, 40, 72, "gelu_tanh", True),  # some experts have nobody
        (20, 1, 1, 64, 64, "silu", True),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_kernels_agree_with_the_twin(num_tokens, num_experts, per_token, hidden, size, activation, scales_input, dtype):
    pytest.importorskip("triton")
    x, gate_up, down, chosen, weights = drawn(num_tokens, num_experts, per_token, hidden, size)
    arrays = (x.to(dtype), gate_up.to(dtype), down.to(dtype), chosen, weights)
    expected = grouped_mlp(*(a.float() if a.is_floating_point() else a for a in arrays), activation, scales_input, backend="reference")
    found = grouped_mlp(*arrays, activation, scales_input, backend="triton")
    tolerance = (2e-4 if dtype == torch.float32 else 3e-2) * expected.abs().max()
    torch.testing.assert_close(found.float(), expected, atol=tolerance.item(), rtol=0.0)


def test_an_unknown_activation_is_named():
    with pytest.raises(ValueError, match="activation must be one of silu, gelu, gelu_tanh, got 'relu'"):
        grouped_mlp(*drawn(1, 2, 1), "relu")


def test_an_unknown_backend_is_named():
    with pytest.raises(ValueError, match='unknown backend "torch"'):
        grouped_mlp(*drawn(1, 2, 1), backend="torch")
