"""The one switch between Triton kernels and their twins in plain PyTorch."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Literal

import torch

Backend = Literal["auto", "reference", "triton"]


def uses_triton(backend: Backend, device: torch.device) -> bool:
    """Whether to run the Triton kernel for tensors of this device. "auto": on CUDA where Triton is installed.

    "triton" by name also runs on a CPU, in Triton's interpreter: right, and far too slow for anything but tests.
    Raises `ValueError` for an unknown name, and for "triton" where it cannot run.
    """
    if backend not in ("auto", "reference", "triton"):
        raise ValueError(f'unknown backend "{backend}"; use "auto", "reference" or "triton"')
    if backend != "triton":
        return backend == "auto" and device.type == "cuda" and _has_triton()
    if not _has_triton():
        raise ValueError('the backend "triton" needs the package triton; install it, or use "reference"')
    from .triton_support import can_run

    if not can_run(device):
        raise ValueError(
            f'the backend "triton" runs on CUDA, not on "{device.type}"; use "reference", or for tests set TRITON_INTERPRET=1 '
            "before Triton is imported"
        )
    return True


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
