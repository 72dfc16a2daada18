"""Sets of code points as nested byte intervals: the UTF-8 encoding of a character class.

The split of a code point range into byte range sequences follows Russ Cox, "Regular Expression Matching in the Wild"
(2010), as used in RE2 and in Rust's `utf8-ranges`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ranges = tuple[tuple[int, int], ...]  # inclusive code point intervals, sorted, disjoint, not adjacent
ByteTree = tuple[
    tuple[int, int, "ByteTree | None"], ...
]  # (first byte low, high, what follows; None = the character ends)

BYTE_ORDER_MARK = "\ufeff"  # with which some editors begin a file; no part of its text
LAST_ASCII = 0x7F  # the last code point of one byte
MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)  # have no UTF-8 form
ALL: Ranges = ((0, 0xD7FF), (0xE000, MAX_CODE_POINT))


def normalize(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges sorted, merged, and without surrogates."""
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if high < low:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return _without_surrogates(tuple((low, high) for low, high in merged))


def _without_surrogates(ranges: Ranges) -> Ranges:
    low_half = [(a, min(b, SURROGATES[0] - 1)) for a, b in ranges if a < SURROGATES[0]]
    high_half = [(max(a, SURROGATES[1] + 1), b) for a, b in ranges if b > SURROGATES[1]]
    return tuple(low_half + high_half)


def invert(ranges: Ranges) -> Ranges:
    """All characters that are not in `ranges`."""
    gaps, next_free = [], 0
    for low, high in ranges:
        gaps.append((next_free, low - 1))
        next_free = high + 1
    gaps.append((next_free, MAX_CODE_POINT))
    return normalize(gaps)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """The characters in both sets."""
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            out.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return normalize(out)


def transitions(tree: ByteTree) -> NDArray[np.int16]:
    """The automaton of any number of the characters of a tree: int16 [states, 256], state 0 at a character boundary, -1 dead."""
    states: dict[ByteTree, int] = {tree: 0}
    rows = [np.full(256, -1, np.int16)]
    work = [tree]
    while work:
        here = work.pop()
        row = rows[states[here]]
        for low, high, follow in here:
            if follow is not None and follow not in states:
                states[follow] = len(rows)
                rows.append(np.full(256, -1, np.int16))
                work.append(follow)
            row[low : high + 1] = 0 if follow is None else states[follow]
    return np.stack(rows)


@lru_cache(maxsize=1024)
def byte_tree(ranges: Ranges) -> ByteTree:
    """The encodings of all characters in `ranges` as a deterministic tree of byte intervals."""
    return _tree(tuple(seq for low, high in ranges for seq in _sequences(low, high)))


def _sequences(low: int, high: int) -> list[tuple[tuple[int, int], ...]]:
    """Byte range sequences that encode exactly the code points low..high."""
    for limit in (0x7F, 0x7FF, 0xFFFF):
        if low <= limit < high:
            return _sequences(low, limit) + _sequences(limit + 1, high)
    if high <= 0x7F:
        return [((low, high),)]
    for shift in (6, 12, 18):
        below = (1 << shift) - 1
        if low >> shift != high >> shift:
            if low & below:
                return _sequences(low, low | below) + _sequences((low | below) + 1, high)
            if high & below != below:
                return _sequences(low, (high & ~below) - 1) + _sequences(high & ~below, high)
    first, last = chr(low).encode(), chr(high).encode()
    return [tuple(zip(first, last, strict=True))]


def _tree(sequences: tuple[tuple[tuple[int, int], ...], ...]) -> ByteTree:
    edges = sorted({seq[0][0] for seq in sequences} | {seq[0][1] + 1 for seq in sequences})
    merged: list[tuple[int, int, ByteTree | None]] = []
    for low, end in pairwise(edges):
        tails = tuple(seq[1:] for seq in sequences if seq[0][0] <= low and end - 1 <= seq[0][1])
        if not tails:
            continue
        follow = None if tails[0] == () else _tree(tails)
        if merged and merged[-1][1] == low - 1 and merged[-1][2] == follow:
            merged[-1] = (merged[-1][0], end - 1, follow)
        else:
            merged.append((low, end - 1, follow))
    return tuple(merged)
