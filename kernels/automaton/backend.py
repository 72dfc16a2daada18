"""Which implementation of the device automaton runs where, and the switch between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from . import reference, vocabulary
from .interface import Slots, Tables
from .vocabulary import ByteAutomaton, TokenBytes

Backend = Literal["auto", "reference", "triton"]


class Operations(NamedTuple):
    """What `reference.advance` and `vocabulary.mask_rows` document."""

    advance: Callable[[Tensor, Slots, Tables], None]
    mask_rows: Callable[[Tensor, ByteAutomaton, TokenBytes, Tensor], None]


def choose_operations(device: torch.device, backend: Backend = "auto") -> Operations:
    """Triton kernels on CUDA, plain PyTorch elsewhere, or the implementation asked for.

    Raises ValueError for an unknown backend, and for Triton kernels on a device that they do not run on.
    """
    if backend not in ("auto", "reference", "triton"):
        raise ValueError(f'unknown automaton backend "{backend}"; use "auto", "reference" or "triton"')
    if backend == "reference" or (backend == "auto" and device.type != "cuda"):
        return Operations(reference.advance, vocabulary.mask_rows)
    from ..triton_support import can_run  # imports Triton, which exists only where there may be a GPU
    from . import gpu

    if not can_run(device):
        raise ValueError(
            f'the automaton\'s Triton kernels run on CUDA, not on "{device.type}"; use the backend "reference", or for tests set '
            "TRITON_INTERPRET=1 before Triton is imported"
        )
    return Operations(gpu.advance, gpu.mask_rows)
