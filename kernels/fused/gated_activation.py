"""The gate of a gated feed-forward layer (Shazeer 2020, arXiv:2002.05202): activation(gate) * up."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import gelu, silu

from ..backend import Backend, uses_triton

Activation = Literal["silu", "gelu", "gelu_tanh"]  # gelu_tanh: the approximation that Gemma uses
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def gated_activation(gate_up: Tensor, activation: Activation = "silu", *, backend: Backend = "auto") -> Tensor:
    """activation(gate) * up, [rows, width] of the same dtype. gate_up: [rows, 2 * width], the gates and then what they let through.

    Raises ValueError for an unknown activation and for arrays that do not fit.
    """
    if activation not in get_args(Activation):
        raise ValueError(f"activation must be one of {', '.join(get_args(Activation))}, got {activation!r}")
    if gate_up.ndim != 2 or gate_up.shape[1] % 2 or gate_up.stride(1) != 1 or gate_up.dtype not in DTYPES:
        raise ValueError(
            "gate_up must be float32, bfloat16 or float16 [rows, 2 * width], contiguous within a row, "
            f"got {gate_up.dtype} {tuple(gate_up.shape)}"
        )
    if not uses_triton(backend, gate_up.device):
        return gated_activation_reference(gate_up, activation)
    from .gpu.gated_activation import launch_gated_activation

    return launch_gated_activation(gate_up, activation)


def gated_activation_reference(gate_up: Tensor, activation: Activation) -> Tensor:
    gate, up = gate_up.float().chunk(2, dim=-1)
    opened = silu(gate) if activation == "silu" else gelu(gate, approximate="tanh" if activation == "gelu_tanh" else "none")
    return (opened * up).to(gate_up.dtype)
