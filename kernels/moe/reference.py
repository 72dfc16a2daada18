"""The experts one after another, each over the tokens that chose it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear, silu

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": partial(gelu, approximate="tanh"),
}


def grouped_mlp(
    hidden: Tensor, gate_up: Tensor, down: Tensor, chosen: Tensor, weights: Tensor, activation: str, scales_input: bool
) -> Tensor:
    """`kernels.moe.grouped_mlp`, one expert after another."""
    output = torch.zeros(hidden.shape, dtype=torch.float32, device=hidden.device)
    per_token = chosen.shape[1]
    by_expert = chosen.flatten().argsort(stable=True)  # pairs (token, choice), those of one expert together
    counts = chosen.flatten().bincount(minlength=len(gate_up)).tolist()
    for expert, pairs in enumerate(by_expert.split(counts)):
        if len(pairs):
            token, weight = pairs // per_token, weights.flatten()[pairs, None]
            given = (hidden[token] * weight).to(hidden.dtype) if scales_input else hidden[token]
            gate, up = linear(given, gate_up[expert]).chunk(2, dim=-1)
            result = linear(ACTIVATIONS[activation](gate) * up, down[expert]).float()
            output.index_add_(0, token, result if scales_input else result * weight)
    return output.to(hidden.dtype)
