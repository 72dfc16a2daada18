"""The named limit on the time that lowering a grammar may take."""

from __future__ import annotations

import time

from ..base.errors import ConstraintLimit
from ..numba_support.linking import seconds_spent
from .source import Limits


class Stopwatch:
    """Counts the processor time of the thread from the moment it is made, without that of compiling loops at their first use."""

    def __init__(self, limits: Limits, what: str) -> None:
        self._end, self._limit, self._what = _worked() + limits.seconds, limits.seconds, what

    def check(self) -> None:
        """Raises `ConstraintLimit` when the time is over."""
        if _worked() > self._end:
            raise ConstraintLimit(f"{self._what} takes too long", limit="seconds", value=self._limit)


def _worked() -> float:
    return time.thread_time() - seconds_spent()
