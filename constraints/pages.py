"""Zeroed arrays whose memory is taken page by page when it is first touched."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray


def reserved(num_words: int) -> NDArray[np.int32]:
    """int32 zeros [num_words].

    NumPy asks the system for huge pages from 4 MB on, and the first touch of each clears 2 MB, which takes longer than most masks.
    Here pages are small, so that room can be reserved which may never be needed.
    """
    if num_words < 1 << 20 or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(num_words, np.int32)
    pages = mmap.mmap(-1, 4 * num_words)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.int32)
