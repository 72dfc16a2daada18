"""Quarantine after a failure of the engine as a whole: sequences come back one by one, until it is known with which it fails.

Blocks and queues may be in any state when planning a step raises, or moving blocks does. So nothing of them is kept; what a
sequence has produced is, and it goes on from there when its tokens have been computed once more. Sequences come back one at a
time: the next one when the last has caught up. When the engine fails before that, the last one is suspected and comes back first,
alone. Who is alone with a failure MAX_FAILURES times, and does not catch up in between, is to blame: beside others it may be their
doing. A failure that does not come back costs nobody more than time.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from ..requests.request import Rank
from ..requests.sequence import Sequence
from .scheduler import Scheduler

MAX_FAILURES = 3  # of the engine, each time with this sequence alone


class Quarantine:
    """Sequences that are not with the scheduler yet, in the order in which they come back."""

    def __init__(self, scheduler: Scheduler[Sequence]) -> None:
        self._scheduler = scheduler
        self._waiting: list[Sequence] = []
        self._last: Sequence | None = None  # came back last and has not caught up
        self._length = 0  # tokens that it had then
        self._is_alone = False  # whether nobody else was with the scheduler then
        self._num_failures: dict[int, int] = {}  # request id -> how often it failed alone

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_over(self) -> bool:
        return not self._waiting and self._last is None

    def begin(self, sequences: Iterable[Sequence]) -> Sequence | None:
        """Take all sequences from the scheduler, which forgets everything. Returns the one that is to blame, which is left out."""
        suspect = self._last
        guilty = self._convicted(suspect)
        self._scheduler.clear()
        self._waiting = [] if suspect is None or suspect.is_finished or suspect is guilty else [suspect]
        self._waiting += sorted((each for each in sequences if each not in (suspect, guilty)), key=_rank)
        for each in self._waiting:
            each.block_table.clear()
            each.num_computed = each.num_expected = 0
        self._last = None
        return guilty

    def add(self, sequence: Sequence) -> None:
        """Let a newcomer wait for its turn."""
        insort(self._waiting, sequence, key=_rank)

    def remove(self, sequence: Sequence) -> bool:
        """Forget a sequence that has ended. Returns whether it was still kept back here."""
        self._num_failures.pop(sequence.request_id, None)
        if sequence not in self._waiting:
            return False
        self._waiting.remove(sequence)
        return True

    def let_in(self) -> None:
        """Give the next sequence to the scheduler if the last one has caught up; called before a step is planned."""
        if self._last is not None:
            if not self._has_caught_up(self._last):
                return
            self._num_failures.pop(self._last.request_id, None)
        self._last = None
        if self._waiting:
            self._is_alone = not (self._scheduler.running or self._scheduler.waiting)
            self._last = self._waiting.pop(0)
            self._length = self._last.num_tokens
            self._scheduler.add(self._last)
        else:
            self._num_failures.clear()

    def _has_caught_up(self, sequence: Sequence) -> bool:
        """Whether all tokens that a sequence came back with are computed, or it has gone."""
        scheduler = self._scheduler
        is_gone = sequence.is_finished or (sequence not in scheduler.running and sequence not in scheduler.waiting)
        return is_gone or sequence.num_computed >= self._length

    def _convicted(self, suspect: Sequence | None) -> Sequence | None:
        if suspect is None or suspect.is_finished or not self._is_alone:
            return None
        failures = self._num_failures[suspect.request_id] = self._num_failures.get(suspect.request_id, 0) + 1
        return suspect if failures >= MAX_FAILURES else None


def _rank(sequence: Sequence) -> Rank:
    return sequence.rank
