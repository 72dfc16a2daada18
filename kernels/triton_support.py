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
def dot(a, b, accumulator, PRECISION: tl.constexpr = "tf32"):
    """accumulator + a @ b in fp32. a: [m, k], b: [k, n], fp16, bf16 or fp32; accumulator: [m, n] fp32.

    PRECISION of the factors where they are fp32: "tf32", or "ieee", which is slower.
    """
    if INTERPRETED:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), accumulator)
    else:
        return tl.dot(a, b, accumulator, input_precision=PRECISION)


@triton.jit
def rounded_to_fp8(numbers):
    """fp32 numbers to e4m3's nearest, ties to even, still in fp32: the interpreter's own conversion rounds wrongly."""
    bits = numbers.to(tl.int32, bitcast=True)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000).to(tl.float32, bitcast=True)
    subnormal = (numbers + 24576.0) - 24576.0  # 1.5 * 2**14: neighbours of that are 2**-9 apart, like e4m3's smallest
    return tl.where(tl.abs(numbers) < 0.015625, subnormal, normal)


def can_run(device: torch.device) -> bool:
    """Whether kernels run on tensors of this device: on CUDA natively, on a CPU only in the interpreter."""
    return device.type == "cuda" or (device.type == "cpu" and bool(INTERPRETED.value))


def has_float8(device: torch.device) -> bool:
    """Whether the device has instructions for e4m3."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 9)
