"""Root-mean-square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467), alone or with the residual sum before it."""

from __future__ import annotations

import torch
from torch import Tensor

from ..backend import Backend, uses_triton

MAX_WIDTH = 32768  # a row is held in registers
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def rms_norm(
    hidden: Tensor,
    weight: Tensor | None,
    eps: float,
    *,
    weight_offset: float = 0.0,
    backend: Backend = "auto",
) -> Tensor:
    """hidden / sqrt(mean(hidden ** 2) + eps) * (weight + weight_offset), like hidden: [..., width].

    weight: [width] or None = 1; weight_offset is 1 for Gemma, which stores what is added to 1.
    """
    check_norm(hidden, weight)
    if not uses_triton(backend, hidden.device):
        return rms_norm_reference(hidden, weight, eps, weight_offset)
    from .gpu.rms_norm import launch_rms_norm

    return launch_rms_norm(hidden, None, weight, eps, weight_offset)[0]


def add_rms_norm(
    hidden: Tensor,
    residual: Tensor,
    weight: Tensor | None,
    eps: float,
    *,
    weight_offset: float = 0.0,
    backend: Backend = "auto",
) -> tuple[Tensor, Tensor]:
    """(rms_norm(sum), sum) where sum is hidden + residual, rounded to their dtype; both like hidden."""
    check_norm(hidden, weight)
    if residual.shape != hidden.shape or residual.dtype != hidden.dtype:
        raise ValueError(f"residual must be {hidden.dtype} {tuple(hidden.shape)}, got {residual.dtype} {tuple(residual.shape)}")
    if not uses_triton(backend, hidden.device):
        total = hidden + residual
        return rms_norm_reference(total, weight, eps, weight_offset), total
    from .gpu.rms_norm import launch_rms_norm

    return launch_rms_norm(hidden, residual, weight, eps, weight_offset)


def rms_norm_reference(hidden: Tensor, weight: Tensor | None, eps: float, weight_offset: float) -> Tensor:
    number = hidden.float()
    number = number * torch.rsqrt(number.square().mean(-1, keepdim=True) + eps)
    return (number if weight is None else number * (weight.float() + weight_offset)).to(hidden.dtype)


def check_norm(hidden: Tensor, weight: Tensor | None) -> None:
    """Raises `ValueError` for rows and weights that cannot be normalised."""
    width = hidden.shape[-1]
    if hidden.dtype not in DTYPES:
        raise ValueError(f"hidden must be float32, bfloat16 or float16, got {hidden.dtype}")
    if width > MAX_WIDTH:
        raise ValueError(f"rows may be at most {MAX_WIDTH} wide, got {width}")
    if weight is not None and (weight.shape != (width,) or weight.stride(0) != 1):
        raise ValueError(f"weight must be contiguous [{width}], got {tuple(weight.shape)}")
