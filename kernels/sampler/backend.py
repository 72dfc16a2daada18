"""Which implementation of the sampler runs where, and the switch between them."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ..backend import Backend, uses_triton
from . import compiled, reference
from .interface import Sampled, SamplerRows


class Sample(Protocol):
    """What `reference.sample` documents."""

    def __call__(
        self,
        logits: Tensor,
        rows: SamplerRows,
        mask_rows: Tensor | None = None,
        mask_index: Tensor | None = None,
        *,
        vocab_size: int,
        num_top_logprobs: int = 0,
        is_told: bool = True,
    ) -> Sampled: ...


def choose_sampler(device: torch.device, backend: Backend = "auto") -> Sample:
    """The implementation for tensors of this device, or the one asked for: Triton kernels on CUDA, plain PyTorch elsewhere.

    "auto" has compiled code draw on a CPU.

    Raises ValueError for an unknown backend, and for Triton kernels on a device that they do not run on.
    """
    if not uses_triton(backend, device):
        return compiled.sample if backend == "auto" and device.type == "cpu" else reference.sample
    from .gpu import sample  # imports Triton, which exists only where there may be a GPU

    return sample
