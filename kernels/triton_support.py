"""What every Triton kernel here shares: how it is being run, products of matrices, constants.

Without a GPU a kernel runs in Triton's interpreter: set TRITON_INTERPRET=1 before Triton is imported (tests/conftest.py does).
The interpreter keeps bf16 as raw 16-bit integers: loads, stores and casts are right, arithmetic is silently wrong. So cast to fp32
before computing, and multiply matrices with `dot`.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))  # decided when a kernel's module is imported
LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(LOG2_E * x); exp2 is one instruction


@triton.jit
def dot(a, b, accumulator):
    """accumulator + a @ b in fp32. a: [m, k], b: [k, n], fp16, bf16 or fp32; accumulator: [m, n] fp32."""
    if INTERPRETED:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), accumulator)
    else:
        return tl.dot(a, b, accumulator)


def can_run(device: torch.device) -> bool:
    """Whether kernels run on tensors of this device: on CUDA natively, on a CPU only in the interpreter."""
    return device.type == "cuda" or (device.type == "cpu" and bool(INTERPRETED.value))
