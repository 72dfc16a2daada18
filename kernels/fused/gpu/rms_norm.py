"""RMSNorm, one program per row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def rms_norm_kernel(
    out,
    total_out,  # None without residual
    hidden,
    residual,
    weight,
    eps,
    weight_offset,
    row_stride,
    width,
    BLOCK: tl.constexpr,
):
    """One row, computed in fp32: x is hidden[row], plus residual[row] rounded to their dtype where there is a residual.

        total_out[row, :] = x
        out[row, :] = x / sqrt(mean(x ** 2) + eps) * (weight + weight_offset)

    out, total_out, hidden, residual: [rows, width], rows `row_stride` apart; total_out and residual are None together. weight:
    [width]; None = the whole factor is 1. BLOCK: width or more, a power of two. Launched by `launch_rms_norm` with the grid
    (rows,).
    """
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    is_real = column < width
    number = tl.load(hidden + row * row_stride + column, mask=is_real, other=0.0).to(tl.float32)
    if residual is not None:
        number += tl.load(residual + row * row_stride + column, mask=is_real, other=0.0).to(tl.float32)
        rounded = number.to(hidden.dtype.element_ty)  # what the residual stream keeps is what is normalised
        tl.store(total_out + row * row_stride + column, rounded, mask=is_real)
        number = rounded.to(tl.float32)
    number *= tl.rsqrt(tl.sum(number * number, 0) / width + eps)
    if weight is not None:
        number *= tl.load(weight + column, mask=is_real, other=0.0).to(tl.float32) + weight_offset
    tl.store(out + row * row_stride + column, number.to(out.dtype.element_ty), mask=is_real)


def launch_rms_norm(
    hidden: Tensor, residual: Tensor | None, weight: Tensor | None, eps: float, weight_offset: float
) -> tuple[Tensor, Tensor]:
    """(normalised, sum with the residual, or hidden itself without one). The arguments are checked."""
    hidden = hidden.contiguous()
    residual = None if residual is None else residual.contiguous()
    width = hidden.shape[-1]
    out = torch.empty_like(hidden)
    total = hidden if residual is None else torch.empty_like(hidden)
    if hidden.numel():
        rms_norm_kernel[(hidden.numel() // width,)](
            out,
            None if residual is None else total,
            hidden,
            residual,
            weight,
            eps,
            weight_offset,
            width,
            width,
            BLOCK=triton.next_power_of_2(width),
            num_warps=warps_for(width),
            enable_fp_fusion=True,
        )
    return out, total


def warps_for(width: int) -> int:
    """16 numbers a thread, within what a program may have."""
    return min(16, max(1, triton.next_power_of_2(width) // 512))
