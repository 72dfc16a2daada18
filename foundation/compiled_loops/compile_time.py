"""The time that compiling loops has taken: no limit on work counts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_spent = threading.local()


def seconds_spent() -> float:
    """Processor time of this thread in which it has compiled entry points."""
    return float(getattr(_spent, "seconds", 0.0))


@contextmanager
def counted() -> Iterator[None]:
    """What is done inside is compiling."""
    before, begun = seconds_spent(), time.thread_time()
    try:
        yield
    finally:
        _spent.seconds = before + time.thread_time() - begun
