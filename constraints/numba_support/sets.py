"""Sets of numbers in an arena: sorted runs of words in which no number comes twice.

The items of a state and the parts of a union are such sets, so equal sets are equal word for word.
"""

from __future__ import annotations

from .jit import inner


@inner
def sort_unique(words, count):
    """Sort words[:count] in place (Shell 1959) and drop repetitions. Returns how many numbers are left."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            value, j = words[i], i
            while j >= gap and words[j - gap] > value:
                words[j] = words[j - gap]
                j -= gap
            words[j] = value
        gap //= 3
    unique = 1
    for i in range(1, count):
        if words[i] != words[unique - 1]:
            words[unique] = words[i]
            unique += 1
    return unique


@inner
def is_equal(left, right, count):
    """Whether left[:count] equals right[:count]."""
    for j in range(count):
        if left[j] != right[j]:
            return False
    return True
