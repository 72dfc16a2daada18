"""The time that compiling loops has taken, and the objects that it has made: no limit on work counts them."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_spent = threading.local()


def seconds_spent() -> float:
    """Processor time of this thread in which it has compiled entry points."""
    return float(getattr(_spent, "seconds", 0.0))


def objects_made() -> int:
    """How many more objects there were each time behind what this thread has compiled, while nothing was collected."""
    return int(getattr(_spent, "objects", 0))


@contextmanager
def counted() -> Iterator[None]:
    """What is done inside is compiling."""
    before, begun = seconds_spent(), time.thread_time()
    made, there = objects_made(), gc.get_count()[0]
    try:
        yield
    finally:
        _spent.seconds = before + time.thread_time() - begun
        _spent.objects = made + max(gc.get_count()[0] - there, 0)
