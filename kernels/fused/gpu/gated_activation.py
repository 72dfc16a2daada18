"""activation(gate) * up, in pieces of rows."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def gated_activation_kernel(out, gate_up, row_stride, width, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    """out[row, i] = activation(gate_up[row, i]) * gate_up[row, width + i], computed in fp32.

    out: [rows, width], contiguous; gate_up: [rows, 2 * width], rows `row_stride` apart. ACTIVATION: "silu", "gelu" or "gelu_tanh".
    Launched by `launch_gated_activation` with the grid (rows, width / BLOCK): a program writes BLOCK numbers of one row.
    """
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_real = column < width
    gate = tl.load(gate_up + row * row_stride + column, mask=is_real, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * row_stride + width + column, mask=is_real, other=0.0).to(tl.float32)
    if ACTIVATION == "silu":
        opened = gate * tl.sigmoid(gate)
    elif ACTIVATION == "gelu_tanh":  # (1 + tanh(x)) / 2 is sigmoid(2 * x)
        opened = gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))
    else:
        opened = gate * 0.5 * (1.0 + tl.erf(gate * 0.7071067811865476))
    tl.store(out + row * width + column, (opened * up).to(out.dtype.element_ty), mask=is_real)


def launch_gated_activation(gate_up: Tensor, activation: str) -> Tensor:
    """`gated_activation` in one launch. The arguments are checked."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = gate_up.new_empty(rows, width)
    if out.numel():
        gated_activation_kernel[rows, triton.cdiv(width, BLOCK)](
            out, gate_up, gate_up.stride(0), width, ACTIVATION=activation, BLOCK=BLOCK, num_warps=4, enable_fp_fusion=True
        )
    return out
