"""Where kernels are tested: on the GPU if there is one, else in Triton's interpreter on the CPU (see tests/conftest.py)."""

from __future__ import annotations

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
IS_NATIVE = DEVICE.type == "cuda"  # sizes can be real ones; in the interpreter every operation of a block takes 0.1 ms or more


def poisoned(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output as no kernel may find it harmless: NaN, or the lowest integer."""
    worst = float("nan") if dtype.is_floating_point else torch.iinfo(dtype).min
    return torch.full(shape, worst, dtype=dtype, device=DEVICE)
