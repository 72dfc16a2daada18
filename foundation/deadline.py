"""Code that is not trusted, stopped when it takes too long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stopped_after(seconds: float, filename: str) -> Iterator[None]:
    """Raise TimeoutError from within code that was compiled under the name `filename`, as soon as a line of it begins too late.

    What one line does is not interrupted. A debugger or tracer of this thread is put aside meanwhile.
    """
    deadline, before = time.monotonic() + seconds, sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != filename:
            return None
        if time.monotonic() > deadline:
            raise TimeoutError(f"it takes longer than {seconds:g} s")
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
