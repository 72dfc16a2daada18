"""Which implementation of the sampler runs where, and the switch between them."""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor

from . import reference
from .interface import Sampled, SamplerRows

Backend = Literal["auto", "reference", "triton"]


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
    ) -> Sampled: ...


def choose_sampler(device: torch.device, backend: Backend = "auto") -> Sample:
    """The implementation for tensors of this device: Triton kernels on CUDA, plain PyTorch elsewhere, or the one asked for.

    Raises ValueError for an unknown backend, and for Triton kernels on a device that they do not run on.
    """
    if backend not in ("auto", "reference", "triton"):
        raise ValueError(f'unknown sampler backend "{backend}"; use "auto", "reference" or "triton"')
    if backend == "reference" or (backend == "auto" and device.type != "cuda"):
        return reference.sample
    from ..triton_support import can_run  # imports Triton, which exists only where there may be a GPU
    from .gpu import sample

    if not can_run(device):
        raise ValueError(
            f'the sampler\'s Triton kernels run on CUDA, not on "{device.type}"; use the backend "reference", or for tests set '
            "TRITON_INTERPRET=1 before Triton is imported"
        )
    return sample
