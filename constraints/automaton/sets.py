"""Sets of numbers: sorted, each of them once, in a part of the tables."""

from __future__ import annotations

from ..numba_support.jit import inner
from .nodes import wide


@inner
def sort_unique(arena, start, count):
    """Sort arena[start : start + count] (Shell 1959), drop repetitions, return how many are left."""
    gap = wide(1)
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, start + count):
            value, j = arena[i], i
            while j >= start + gap and arena[j - gap] > value:
                arena[j] = arena[j - gap]
                j -= gap
            arena[j] = value
        gap //= 3
    unique = wide(1)
    for i in range(start + 1, start + count):
        if arena[i] != arena[start + unique - 1]:
            arena[start + unique] = arena[i]
            unique += 1
    return unique


@inner
def is_equal(arena, left, right, count):
    for j in range(count):
        if arena[left + j] != arena[right + j]:
            return False
    return True
