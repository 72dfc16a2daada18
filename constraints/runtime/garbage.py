"""Compiling without garbage collection in between.

What a compile makes is freed by counting references. Looking for cycles in it, and every so often in all that the process holds,
takes a fifth of the longer compiles and 0.1 s now and then.
"""

from __future__ import annotations

import gc
import threading
import traceback

from ..base.errors import ConstraintError

_lock = threading.Lock()
_compiles: list[bool] = []  # that are under way; of the first, whether collection is to go on behind the last


class collection_paused:
    """No garbage collection while the context lasts, in any thread; then as before. Contexts may overlap."""

    def __enter__(self) -> None:
        with _lock:
            _compiles.append(gc.isenabled() if not _compiles else _compiles[0])
            gc.disable()

    def __exit__(self, *error: object) -> None:
        with _lock:
            if _compiles.pop() and not _compiles:
                gc.enable()


def let_go_of_refused(error: ConstraintError) -> None:
    """Give back what was made of a source that is refused: the traceback of the error would keep it as long as anybody has the
    error, and the first collection behind it would look through all of it."""
    told: BaseException | None = error
    while told is not None:
        traceback.clear_frames(told.__traceback__)
        told = told.__context__
