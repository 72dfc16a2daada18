"""What kernels share, run the way kernels run here: natively on a GPU, else in the interpreter."""

from __future__ import annotations

import pytest
import torch

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

from maskwright.kernels.triton_support import can_run, dot  # noqa: E402

from .device import DEVICE, poisoned  # noqa: E402


@triton.jit
def product_kernel(left, right, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)[None, :]
    a, b = tl.load(left + m * K + k[None, :]), tl.load(right + k[:, None] * N + n)
    tl.store(out + m * N + n, dot(a, b, tl.zeros((M, N), tl.float32)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_products_are_those_of_torch(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randint(-8, 9, shape, generator=generator).to(DEVICE, dtype) / 4 for shape in ((16, 32), (32, 16)))
    out = poisoned(16, 16)
    product_kernel[(1,)](left, right, out, 16, 32, 16)
    assert torch.equal(out, left.float() @ right.float())  # exact: small multiples of 1/16


def test_kernels_run_where_tests_run_them() -> None:
    assert can_run(DEVICE)
    assert not can_run(torch.device("meta"))
