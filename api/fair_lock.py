"""A lock that threads get in the order in which they asked for it."""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """First come, first served: who gives the lock back and asks again goes behind everybody who waits.

    `threading.Lock` promises no order, and a thread that takes it again at once nearly always gets it.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()  # of the two fields below; held for a moment only
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()  # one for each thread that waits, released when its turn has come

    @property
    def num_waiting(self) -> int:
        """How many threads have asked and not got it."""
        return len(self._waiting)

    def __enter__(self) -> None:
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            turn.acquire()
        except BaseException:  # an interrupt from the keyboard: nobody must wait for a thread that has gone
            self._leave(turn)
            raise

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            self._pass_on()

    def _leave(self, turn: threading.Lock) -> None:
        with self._mutex:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._pass_on()

    def _pass_on(self) -> None:
        """Give the lock, which stays taken, to who has waited longest; free it when nobody waits."""
        if self._waiting:
            self._waiting.popleft().release()
        else:
            self._is_taken = False
