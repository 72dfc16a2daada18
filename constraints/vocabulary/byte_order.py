"""Byte strings in the order of their bytes, and cut out of one another: array operations, no Python loop over strings.

Strings lie one behind the other in one array: string i is data[offsets[i] : offsets[i + 1]].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CHUNK = 7  # bytes compared at a time: they and how many there are make 64 bits


def concatenated(strings: Sequence[bytes | None]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(offsets int32 [n + 1], data uint8) of n strings; None is as empty as b""."""
    texts = [string or b"" for string in strings]
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    return offsets, np.frombuffer(b"".join(texts), np.uint8)


def cut_out(
    data: NDArray[np.uint8], start: NDArray[np.int32], length: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(offsets int32 [n + 1], data uint8) of the parts of `length` bytes that begin at `start`, int32 [n] each."""
    offsets = np.zeros(length.size + 1, np.int32)
    np.cumsum(length, out=offsets[1:])
    places = np.arange(int(offsets[-1])) + np.repeat(start - offsets[:-1], length)
    return offsets, data[places]


def sorted_ids(ids: NDArray[np.int32], offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> NDArray[np.int32]:
    """The strings `ids`, int32 [n], in the order of their bytes; equal ones in the order in which they are given.

    Strings that are equal so far are a group, and only groups of several are looked at further.
    """
    order = np.array(ids, np.int32)
    places, group, begin = np.arange(order.size), np.zeros(order.size, np.int64), 0
    while places.size:
        strings = order[places]
        chunks, is_whole = _chunks(strings, offsets, data, begin)
        by_chunk = np.lexsort((chunks, group))  # stable, and groups keep their places
        order[places] = strings[by_chunk]
        chunks, is_whole = chunks[by_chunk], is_whole[by_chunk]
        is_first = np.ones(places.size, np.bool_)
        is_first[1:] = (chunks[1:] != chunks[:-1]) | (group[1:] != group[:-1])
        group = np.cumsum(is_first) - 1
        is_open = is_whole & (np.bincount(group) > 1)[group]
        places, group, begin = places[is_open], group[is_open], begin + CHUNK
    return order


def _chunks(
    strings: NDArray[np.int32], offsets: NDArray[np.int32], data: NDArray[np.uint8], begin: int
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """(numbers that are ordered as the bytes from `begin` on are, whether there are as many as are looked at)."""
    left = np.clip(offsets[strings + 1] - offsets[strings] - begin, 0, CHUNK)
    within = np.arange(CHUNK)
    places = (offsets[strings] + begin)[:, None] + within
    chunks = np.zeros((strings.size, CHUNK + 1), np.uint8)
    if data.size:
        chunks[:, :CHUNK] = np.where(within < left[:, None], data[np.minimum(places, data.size - 1)], 0)
    chunks[:, CHUNK] = left  # of two that differ in zeros at the end the shorter comes first
    return chunks.view(">u8")[:, 0].astype(np.uint64), left == CHUNK
