"""The experts one after another, each over the tokens that chose it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear


def grouped_mlp(
    hidden: Tensor,
    gate_up: Tensor,
    down: Tensor,
    chosen: Tensor,
    weights: Tensor,
    activation: Callable[[Tensor], Tensor],
    scales_input: bool = False,
) -> Tensor:
    """Each token's weighted sum of down(act(gate) * up) over its chosen experts.

    hidden [num_tokens, hidden]; gate_up [num_experts, 2 * size, hidden], gate first; down [num_experts, hidden, size];
    chosen int64 and weights float32 [num_tokens, per_token]. With `scales_input` a weight multiplies the expert's input.
    Returns [num_tokens, hidden] in the dtype of `hidden`; sums are taken in float32.
    """
    output = torch.zeros(hidden.shape, dtype=torch.float32, device=hidden.device)
    per_token = chosen.shape[1]
    by_expert = chosen.flatten().argsort(stable=True)  # pairs (token, choice), those of one expert together
    counts = chosen.flatten().bincount(minlength=len(gate_up)).tolist()
    for expert, pairs in enumerate(by_expert.split(counts)):
        if len(pairs):
            token, weight = pairs // per_token, weights.flatten()[pairs, None]
            given = (hidden[token] * weight).to(hidden.dtype) if scales_input else hidden[token]
            gate, up = linear(given, gate_up[expert]).chunk(2, dim=-1)
            result = linear(activation(gate) * up, down[expert]).float()
            output.index_add_(0, token, result if scales_input else result * weight)
    return output.to(hidden.dtype)
