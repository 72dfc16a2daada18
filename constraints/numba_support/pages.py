"""Large zeroed arrays whose pages are taken from the system when they are first touched, and used again when nobody
needs them any more.

A first touch costs 2 us and more for a page of 4 KB, clearing a used page a tenth of that. So regions are kept for the
next constraint. NumPy asks the system for huge pages from 4 MB on, and the first touch of each clears 2 MB, which takes
longer than most masks; here pages are small, so that room can be reserved which may never be needed. Arrays that are
filled once and then read all over by every mask ask for huge pages, which spare them misses of the address cache.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

Clean = Callable[[NDArray[np.int32]], int]  # makes a used array zero where that matters; returns how many words it has touched

_SMALL = 1 << 20  # words; smaller arrays are left to NumPy
_MAX_TOUCHED = 1 << 22  # words; a region of which more was touched is given back to the system
_MAX_KEPT = 8  # regions of one size and layout
_MAX_LAYOUTS = 4  # when there are more, all are given back: constraints with other limits, or of unusual size
_kept: dict[tuple[int, Hashable], list[mmap.mmap]] = {}
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0)  # what is reserved may never be needed


def reserved(num_words: int, clean: Clean, layout: Hashable, in_huge_pages: bool = False) -> NDArray[np.int32]:
    """int32 [num_words], all zero the first time. When the array and all its views are gone, `clean` is called and the
    memory is kept; the next array is zero where `clean` made it so.

    layout: what lies where in the array, and in what pages. Memory is used again only for the same layout, so that what
    `clean` leaves alone is found where it does no harm.
    """
    if num_words < _SMALL or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(num_words, np.int32)
    size = 1 << (num_words - 1).bit_length()
    pages = _take(4 * size, layout, in_huge_pages)
    owner = (ctypes.c_int32 * size).from_buffer(pages)  # what all views hold on to
    weakref.finalize(owner, _give_back, pages, num_words, clean, layout).atexit = False
    return np.frombuffer(memoryview(owner), np.int32)[:num_words]


def _take(num_bytes: int, layout: Hashable, in_huge_pages: bool) -> mmap.mmap:
    try:
        return _kept[num_bytes, layout].pop()
    except (KeyError, IndexError):
        pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        pages.madvise(mmap.MADV_HUGEPAGE if in_huge_pages else mmap.MADV_NOHUGEPAGE)
        return pages


def _give_back(pages: mmap.mmap, num_words: int, clean: Clean, layout: Hashable) -> None:
    touched = clean(np.frombuffer(pages, np.int32)[:num_words])
    if touched > _MAX_TOUCHED:
        return
    kind = (len(pages), layout)
    if kind not in _kept and len(_kept) >= _MAX_LAYOUTS:
        _kept.clear()
    regions = _kept.setdefault(kind, [])
    if len(regions) < _MAX_KEPT:
        regions.append(pages)
