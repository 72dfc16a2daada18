"""The named limit on the time that lowering a grammar may take."""

from __future__ import annotations

import time

from ..base.errors import ConstraintLimit
from .source import Limits


class Stopwatch:
    """Counts the processor time of the thread from the moment it is made."""

    def __init__(self, limits: Limits, what: str) -> None:
        self._end, self._limit, self._what = time.thread_time() + limits.seconds, limits.seconds, what

    def check(self) -> None:
        """Raises `ConstraintLimit` when the time is over."""
        if time.thread_time() > self._end:
            raise ConstraintLimit(f"{self._what} takes too long", limit="seconds", value=self._limit)
