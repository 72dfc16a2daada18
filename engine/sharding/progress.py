"""How far a rank is with what others wait for, as its signs of life tell them."""

from __future__ import annotations

import resource
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_SIGN = struct.Struct("!cQ?")
_TAG = b"\x01"  # no pickle, as answers are, begins so
_TICKS = 10  # in a second of processor time


class Standing(NamedTuple):
    """What one sign of life tells."""

    num_done: int  # things others may have waited for; while it is the same the rank has not got on
    is_waiting: bool  # for the others


class Progress:
    """Of this process. One thread gets on, another one tells it."""

    def __init__(self) -> None:
        self._num_done = 0
        self._is_waiting = False
        self._is_settling = True

    def advance(self) -> None:
        """One more thing is done: a sum, an order."""
        self._num_done += 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block in which this rank waits for the others; behind it, it has got on."""
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False
        self.advance()

    def settle(self, *, is_settling: bool) -> None:
        """Whether a share is loaded, or loops are compiled, from now on: what may take minutes at once. Then processor time and
        pages that are read count as getting on, too."""
        self._is_settling = is_settling

    @property
    def standing(self) -> Standing:
        return Standing(self._num_done + (_work() if self._is_settling else 0), self._is_waiting)

    def sign(self) -> bytes:
        """The standing as a message."""
        return _SIGN.pack(_TAG, *self.standing)


def is_sign(message: bytes) -> bool:
    """Whether a message is a sign of life and no answer."""
    return not message or message[:1] == _TAG


def standing_of(sign: bytes) -> Standing | None:
    """What a sign of life tells; None of an empty one, as come before the package is imported."""
    return Standing(*_SIGN.unpack(sign)[1:]) if sign else None


def _work() -> int:
    """What this process has done, in units that a process which waits adds none of."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int(time.process_time() * _TICKS) + used.ru_majflt + used.ru_inblock
