"""Sets of numbers: sorted, each of them once, in a part of the tables."""

from __future__ import annotations

from ..numba_support.jit import inner
from .nodes import wide


@inner
def sort_unique(m, start, count):
    """Sort m[start : start + count] (Shell 1959), drop repetitions, return how many are left."""
    gap = wide(1)
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, start + count):
            value, j = m[i], i
            while j >= start + gap and m[j - gap] > value:
                m[j] = m[j - gap]
                j -= gap
            m[j] = value
        gap //= 3
    unique = wide(1)
    for i in range(start + 1, start + count):
        if m[i] != m[start + unique - 1]:
            m[start + unique] = m[i]
            unique += 1
    return unique


@inner
def is_equal(m, left, right, count):
    for j in range(count):
        if m[left + j] != m[right + j]:
            return False
    return True
