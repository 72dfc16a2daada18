"""The random number of a draw, on the device: `uniform.uniform` of the package above, bit by bit."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def mix64(bits):
    """uint64: Stafford's mix 13, as in `uniform.py`."""
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB
    return bits ^ (bits >> 31)


@triton.jit
def uniform(seed, position):
    """fp64 in [0, 1), a multiple of 2**-53, from int64 seed and position: `uniform.uniform`."""
    gamma = tl.full((), 0x9E3779B97F4A7C15, tl.uint64)
    stream = mix64(seed.to(tl.uint64) + gamma)
    mixed = mix64(stream + (position.to(tl.uint64) + 1) * gamma)
    return (mixed >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16
