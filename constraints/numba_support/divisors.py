"""Divisibility by digits: the arithmetic of MULTIPLE and FRACTION nodes, which read the digits of a multiple of some number.

A node stands behind some digits, of which it knows the remainder:

    MULTIPLE   c = low * COUNTS + high: so many digits, then perhaps a point and a fraction of at most `places` digits
    FRACTION   c = left: 1 to `left` digits, the last of them not 0

What is read, as a whole number of units of the last place, has to be divisible by the modulus. A remainder followed by
n digits is divisible for just one number of n digits out of every `modulus` numbers, so whether there is one follows
from a comparison.
"""

from __future__ import annotations

from enum import IntEnum

from ..base.kinds import INFINITE
from .jit import inner

COUNTS = 1 << 15  # more than the digits of a number
MAX_MODULUS = (1 << 31) - 1  # remainders are stored in 32 bits, and ten of them fit into 64
_LONGEST = 10  # digits, enough for every modulus
MULTIPLE_ROW_WORDS = 13


class MultipleRow(IntEnum):
    """Offsets into the row of the list pool that describes a step."""

    MODULUS = 0
    PLACES = 1
    POINT = 2  # a node
    DIGIT = 3  # the nodes of the ten digits


@inner
def power(exponent: int, modulus: int) -> int:
    """10**exponent % modulus."""
    out, base = 1 % modulus, 10 % modulus
    while exponent > 0:
        if exponent & 1:
            out = out * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return out


@inner
def without_tens(modulus: int, zeros: int) -> int:
    """The divisor of x that makes x followed by `zeros` zeros divisible by `modulus`."""
    for prime in (2, 5):
        for _ in range(zeros):
            if modulus % prime != 0:
                break
            modulus //= prime
    return modulus


@inner
def is_divisible(modulus: int, remainder: int, zeros: int) -> bool:
    """Whether a number with this remainder is divisible when `zeros` zeros follow it."""
    return remainder % without_tens(modulus, zeros) == 0


@inner
def has_digits(divisor: int, remainder: int, count: int, is_positive: bool) -> bool:
    """Whether some `count` digits (not all zero, if `is_positive`) behind a remainder make it divisible."""
    least = (divisor - remainder % divisor * power(count, divisor) % divisor) % divisor
    if is_positive and least == 0:
        least = divisor
    return count >= _LONGEST or least < 10**count


@inner
def fraction_size(modulus: int, remainder: int, left: int) -> int:
    """Digits of the shortest fraction of at most `left` digits, INFINITE when there is none."""
    for count in range(1, left + 1):
        if has_digits(without_tens(modulus, left - count), remainder, count, True):
            return count
    return INFINITE


@inner
def whole_size(modulus: int, places: int, remainder: int, low: int, high: int) -> int:
    """Bytes of the shortest text of `low` to `high` digits and perhaps a fraction, INFINITE when there is none."""
    best, whole_divisor = INFINITE, without_tens(modulus, places)
    for digits in range(low, high + 1):
        if digits >= best:
            break
        if has_digits(whole_divisor, remainder, digits, False):
            return min(best, digits)
        for count in range(1, places + 1):
            if digits + 1 + count >= best:
                break
            if has_digits(without_tens(modulus, places - count), remainder, digits + count, False):
                best = digits + 1 + count
    return best
