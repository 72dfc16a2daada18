"""Which tokens a mask allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEW_WORDS = 32  # of a mask, whose bits are looked at one by one: each operation of NumPy takes as long as some of them


def tokens_in(mask: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The tokens of a packed mask, uint32 [words], ascending. Takes time for the words that have any."""
    words = np.flatnonzero(mask)
    if len(words) <= FEW_WORDS:
        given = zip(words.tolist(), mask[words].tolist(), strict=True)
        return np.array([32 * word + bit for word, bits in given for bit in range(32) if bits >> bit & 1], np.int64)
    rows, bits = np.nonzero(np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(-1, 32))
    tokens: NDArray[np.int64] = words[rows] * 32 + bits
    return tokens
