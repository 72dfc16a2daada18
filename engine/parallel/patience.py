"""When a rank that lives is waited for no longer: signs of life are counted while rank 0 waits and nobody gets on."""

from __future__ import annotations

import threading
from collections import Counter

from ..sharding.progress import Standing


class Patience:
    """What rank 0 has heard of the others. Their signs come in equal times, so that turns are counted and no clock is read: while
    all processes stand still, as in a container that is paused, none comes."""

    def __init__(self, num_turns: int) -> None:
        """num_turns: signs of a rank, without progress of any, after which one is lost."""
        self._num_turns, self._lock = num_turns, threading.Lock()
        self._said: dict[int, Standing] = {}
        self._turns = Counter[int]()
        self._known: tuple[int, ...] = ()

    def hear(self, number: int, said: Standing, own: Standing) -> int | None:
        """The rank that keeps the others waiting, when it has for long enough. number: of the rank that gives the sign. own: how
        far rank 0 is."""
        with self._lock:
            self._said[number] = said
            known = (own.num_done, *(standing.num_done for standing in self._said.values()))
            if known != self._known or not own.is_waiting:
                self._known = known
                self._turns.clear()
                return None
            self._turns[number] += 1
            if self._turns[number] < self._num_turns:
                return None
            return next((each for each, standing in self._said.items() if not standing.is_waiting), number)
