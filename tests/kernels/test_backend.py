"""The switch between kernels and twins."""

from __future__ import annotations

import pytest
import torch

from maskwright.kernels.backend import uses_triton


def test_kernels_run_on_cuda_and_elsewhere_only_when_asked_for_by_name() -> None:
    pytest.importorskip("triton")
    assert uses_triton("auto", torch.device("cuda"))
    assert not uses_triton("auto", torch.device("cpu"))
    assert not uses_triton("reference", torch.device("cuda"))


def test_what_cannot_run_is_refused() -> None:
    with pytest.raises(ValueError, match='unknown backend "numba"'):
        uses_triton("numba", torch.device("cpu"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='not on "meta"'):
        uses_triton("triton", torch.device("meta"))
