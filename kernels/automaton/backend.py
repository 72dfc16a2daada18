"""Which implementation of the device automaton runs where, and the switch between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..backend import Backend, uses_triton
from . import reference, vocabulary
from .interface import Slots, Tables
from .vocabulary import ByteAutomaton, TokenBytes


class Operations(NamedTuple):
    """One implementation of `reference.advance`, `vocabulary.mask_rows` and `reference.ban`, which document what they do."""

    advance: Callable[[Tensor, Slots, Tables], None]
    mask_rows: Callable[[Tensor, ByteAutomaton, TokenBytes, Tensor], None]
    ban: Callable[[Tensor, Tensor, Tensor], None]


def choose_operations(device: torch.device, backend: Backend = "auto") -> Operations:
    """Triton kernels on CUDA, plain PyTorch elsewhere, or the implementation asked for.

    Raises ValueError for an unknown backend, and for Triton kernels on a device that they do not run on.
    """
    if not uses_triton(backend, device):
        return Operations(reference.advance, vocabulary.mask_rows, reference.ban)
    from . import gpu  # imports Triton, which exists only where there may be a GPU

    return Operations(gpu.advance, gpu.mask_rows, gpu.ban)
