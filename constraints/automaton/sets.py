"""Sets of numbers in the arena: sorted runs of words in which no number comes twice.

The items of a state and the parts of a union are such sets, so equal sets are equal word for word.
"""

from __future__ import annotations

from ..numba_support.jit import inner
from .nodes import wide


@inner
def sort_unique(arena, start, count):
    """Sort arena[start : start + count] in place (Shell 1959) and drop repetitions. Returns how many numbers are left."""
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
    """Whether `count` words from `left` on equal those from `right` on."""
    for j in range(count):
        if arena[left + j] != arena[right + j]:
            return False
    return True
