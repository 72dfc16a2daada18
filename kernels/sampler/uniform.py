"""One random number per row, made of nothing but (seed, position)."""

from __future__ import annotations

import torch
from torch import Tensor

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
MULTIPLIERS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
UNIFORM_BITS = 53  # as many as fp64 holds exactly


def uniform(seed: Tensor, position: Tensor) -> Tensor:
    """[rows] fp64 in [0, 1), a multiple of 2**-53: the top bits of mix64(mix64(seed + g) + (position + 1) * g).

    With g the golden gamma this is number `position` of the SplitMix64 stream (Steele, Lea, Flood, OOPSLA 2014) that
    starts from the mixed seed; mixing first keeps the streams of neighbouring seeds apart. Arithmetic modulo 2**64.
    """
    stream = mix64(seed + signed(GOLDEN_GAMMA))
    bits = mix64(stream + (position + 1) * signed(GOLDEN_GAMMA))
    return logical_shift_right(bits, 64 - UNIFORM_BITS).to(torch.float64) * 2.0**-UNIFORM_BITS


def mix64(bits: Tensor) -> Tensor:
    """[rows] int64, a bijection in which every input bit moves about half of the output bits (Stafford's mix 13)."""
    bits = (bits ^ logical_shift_right(bits, 30)) * signed(MULTIPLIERS[0])
    bits = (bits ^ logical_shift_right(bits, 27)) * signed(MULTIPLIERS[1])
    return bits ^ logical_shift_right(bits, 31)


def logical_shift_right(bits: Tensor, count: int) -> Tensor:
    return (bits >> count) & ((1 << (64 - count)) - 1)


def signed(bits: int) -> int:
    """The int64 with these 64 bits: torch has no arithmetic on uint64."""
    return bits - (1 << 64) if bits >= 1 << 63 else bits
