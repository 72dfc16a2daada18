"""A mixture of experts over a ragged batch: every token through the experts that were chosen for it.

`reference.py` says what that means in plain PyTorch, one expert after another; `gpu/` has grouped products in Triton: the pairs
of token and choice are sorted by expert, and every program multiplies a few pairs of one expert, wherever their tokens are.
"""

from __future__ import annotations

from torch import Tensor

from ..backend import Backend, uses_triton
from . import reference
from .reference import ACTIVATIONS

__all__ = ["ACTIVATIONS", "grouped_mlp"]


def grouped_mlp(
    hidden: Tensor,
    gate_up: Tensor,
    down: Tensor,
    chosen: Tensor,
    weights: Tensor,
    activation: str = "silu",
    scales_input: bool = False,
    *,
    backend: Backend = "auto",
) -> Tensor:
    """Each token's weighted sum of down(activation(gate) * up) over its chosen experts.

    hidden [num_tokens, hidden_size]; gate_up [num_experts, 2 * size, hidden_size], gate first; down [num_experts, hidden_size,
    size]; chosen int64 and weights float32 [num_tokens, per_token], the experts of a token all different. With `scales_input`
    a weight multiplies the expert's input instead of its output. Returns [num_tokens, hidden_size] in the dtype of `hidden`;
    products are summed in float32. On CUDA nothing is asked of the device. Raises ValueError for an unknown activation or backend.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    if not uses_triton(backend, hidden.device):
        return reference.grouped_mlp(hidden, gate_up, down, chosen, weights, activation, scales_input)
    from .gpu.experts import launch

    return launch(hidden, gate_up, down, chosen, weights, activation, scales_input)
