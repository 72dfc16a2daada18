"""The one switch between Triton kernels and their twins in plain PyTorch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

import torch

Implementation = Literal["auto", "triton", "torch"]


def uses_triton(implementation: Implementation, device: torch.device) -> bool:
    """Whether to run the Triton kernel for tensors of this device. "auto": on CUDA where Triton is installed.

    "triton" by name also runs on a CPU, in Triton's interpreter: right, and far too slow for anything but tests.
    Raises `ValueError` for an unknown name, and for "triton" where it cannot run.
    """
    if implementation not in ("auto", "triton", "torch"):
        raise ValueError(f'implementation must be "auto", "triton" or "torch", got {implementation!r}')
    has_triton = find_spec("triton") is not None
    if implementation != "triton":
        return implementation == "auto" and device.type == "cuda" and has_triton
    if not has_triton:
        raise ValueError('implementation "triton" needs the package triton; install it, or use "torch"')
    from .triton_support import can_run

    if not can_run(device):
        raise ValueError(
            f'implementation "triton" cannot run on {device}; use "torch", or set TRITON_INTERPRET=1 before triton is imported'
        )
    return True
