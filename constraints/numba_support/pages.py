"""Large zeroed arrays whose pages are taken from the system when they are first touched, and used again when nobody
needs them any more.

A first touch costs 2 us and more for a page of 4 KB, clearing a used page a tenth of that. So regions are kept for the
next constraint. NumPy asks the system for huge pages from 4 MB on, and the first touch of each clears 2 MB, which takes
longer than most masks; here pages are small, so that room can be reserved which may never be needed. Arrays that are
filled once and then read all over by every mask ask for huge pages, which spare them misses of the address cache.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Clean = Callable[[NDArray[np.int32]], int]  # makes a used array zero where that matters; returns how many words it has touched

_SMALL = 1 << 20  # words; smaller arrays are left to NumPy
_MAX_TOUCHED = 1 << 22  # words; a region of which more was touched is given back to the system
_MAX_KEPT = 8  # regions of one size and layout
_MAX_LAYOUTS = 4  # when there are more, all are given back: constraints with other limits, or of unusual size
_MAPPED_AT_ONCE = 4  # regions: to map one takes 50 us, and no longer for several
Region = tuple[mmap.mmap, int]  # what was mapped, and the byte where the region begins
_kept: dict[tuple[int, Hashable], list[Region]] = {}
_untouched: dict[int, list[Region]] = {}  # mapped beside others of this size, and not handed out yet
_HAS_ADVICE = hasattr(mmap, "MADV_NOHUGEPAGE")
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0)  # what is reserved may never be needed


class _Owner(np.ndarray[Any, np.dtype[np.int32]]):
    """What all views of a region hold on to: another class than theirs, so that NumPy leaves it between them and the pages."""

    region: Region | None = None  # None of views of this class
    clean: Clean
    layout: Hashable

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:  # this module may be gone by then
        if self.region is not None and not is_finalizing():
            _give_back(self.region, self.size, self.clean, self.layout)


def reserved(num_words: int, clean: Clean, layout: Hashable, in_huge_pages: bool = False) -> NDArray[np.int32]:
    """int32 [num_words], all zero the first time. When the array and all its views are gone, `clean` is called and the
    memory is kept; the next array is zero where `clean` made it so.

    layout: what lies where in the array, and in what pages. Memory is used again only for the same layout, so that what
    `clean` leaves alone is found where it does no harm.
    """
    if num_words < _SMALL or not _HAS_ADVICE:
        return np.zeros(num_words, np.int32)
    pages, start = region = _take(_bytes_for(num_words), layout, in_huge_pages)
    owner = _Owner(num_words, np.int32, pages, start)
    owner.region, owner.clean, owner.layout = region, clean, layout
    return owner.view(np.ndarray)


def _bytes_for(num_words: int) -> int:
    return 4 * max(1 << (num_words - 1).bit_length(), mmap.PAGESIZE // 4)


def _take(num_bytes: int, layout: Hashable, in_huge_pages: bool) -> Region:
    try:
        return _kept[num_bytes, layout].pop()
    except (KeyError, IndexError):
        pass
    if in_huge_pages:
        return _map(num_bytes, mmap.MADV_HUGEPAGE), 0
    try:
        return _untouched[num_bytes].pop()
    except (KeyError, IndexError):
        try:
            pages = _map(_MAPPED_AT_ONCE * num_bytes, mmap.MADV_NOHUGEPAGE)
        except OSError:  # so much may not be reserved here
            return _map(num_bytes, mmap.MADV_NOHUGEPAGE), 0
        first, *others = [(pages, k * num_bytes) for k in range(_MAPPED_AT_ONCE)]
        _untouched.setdefault(num_bytes, []).extend(others)
        return first


def _map(num_bytes: int, advice: int) -> mmap.mmap:
    pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    pages.madvise(advice)
    return pages


def _give_back(region: Region, num_words: int, clean: Clean, layout: Hashable) -> None:
    pages, start = region
    touched = clean(np.frombuffer(pages, np.int32, num_words, start))
    kind = (_bytes_for(num_words), layout)
    if kind not in _kept and len(_kept) >= _MAX_LAYOUTS:
        for other in list(_kept):
            _to_system(_kept.pop(other, []), other[0])
    regions = _kept.setdefault(kind, []) if touched <= _MAX_TOUCHED else []
    if touched <= _MAX_TOUCHED and len(regions) < _MAX_KEPT:
        regions.append(region)
    else:
        _to_system([region], kind[0])


def _to_system(regions: list[Region], num_bytes: int) -> None:
    """Give the memory of regions back. What was mapped is unmapped when all of its regions are gone."""
    while regions:
        try:
            pages, start = regions.pop()  # nobody else takes it then
        except IndexError:
            return
        pages.madvise(mmap.MADV_DONTNEED, start, num_bytes)
