"""How much memory there is, and pages of files that are no longer needed in it."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

LEAST_DROPPED = 1 << 16  # bytes: less is not worth the looking


def free_bytes(device: torch.device) -> int:
    """Memory that is free now, in bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 << 30  # not Linux: assume little


def drop_pages(read: Tensor, kept: Iterable[Tensor] = ()) -> None:
    """Let the system take the pages of a tensor back that was copied, and lies in a mapped file: they count as this process's until
    memory is short. Whatever is read there again comes from the file. Does nothing where one of `kept` lies in the same memory,
    or where the system knows no such advice."""
    begin, end = read.data_ptr(), read.data_ptr() + read.nbytes
    if read.device.type != "cpu" or any(begin <= tensor.data_ptr() < end for tensor in kept if tensor.device.type == "cpu"):
        return
    first, last = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if last - first >= LEAST_DROPPED and hasattr(mmap, "MADV_DONTNEED") and _is_in_file(first, last):
        with suppress(OSError, AttributeError):
            advise = ctypes.CDLL(None).madvise
            advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            advise(first, last - first, mmap.MADV_DONTNEED)


def _is_in_file(begin: int, end: int) -> bool:
    """Whether these addresses are a mapped file's. Memory of no file would be lost."""
    for line in _lines(Path("/proc/self/maps")):
        place, _, _, _, node, *_ = line.split(maxsplit=5)
        first, last = (int(address, 16) for address in place.split("-"))
        if first <= begin and end <= last:
            return node != "0"
    return False


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
