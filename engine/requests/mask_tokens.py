"""Which tokens a mask allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def tokens_in(mask: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The tokens of a packed mask, uint32 [words], ascending. Takes time for the words that have any."""
    words = np.flatnonzero(mask)
    rows, bits = np.nonzero(np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(-1, 32))
    tokens: NDArray[np.int64] = words[rows] * 32 + bits
    return tokens
