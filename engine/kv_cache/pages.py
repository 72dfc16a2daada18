"""Memory of a cache on the CPU, which is taken page by page."""

from __future__ import annotations

import mmap
from contextlib import suppress

import torch
from torch import Tensor


def zeros_by_page(num_bytes: int) -> Tensor:
    """uint8 [num_bytes] on the CPU, zeros, whose memory is taken where it is first written, in small pages.

    Large pages (2 MB) are filled with zeros when they are first written, and all layers of a model come to a new page in the same
    step: 20 to 40 ms for a small model. Attention to 1,500 tokens takes as long either way.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return torch.zeros(num_bytes, dtype=torch.uint8)
    pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a kernel without large pages
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=torch.uint8)
