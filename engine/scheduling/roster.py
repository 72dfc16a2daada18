"""The roster of an engine: its requests that have not ended, where each of them waits or runs, and which have events to give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import RequestError
from ..requests.output import Event
from ..requests.sequence import Sequence
from .quarantine import Quarantine
from .scheduler import Scheduler


class Roster:
    """Sequences are with the scheduler, or kept back in quarantine; a search is known by its request, its members run."""

    def __init__(self, scheduler: Scheduler[Sequence]) -> None:
        self.scheduler, self.quarantine = scheduler, Quarantine(scheduler)
        self._sequences: dict[int, Sequence] = {}  # not yet finished, or with an event still to be given
        self._news: dict[int, Sequence] = {}  # those with an event to be given after this step
        self._plain: set[int] = set()  # requests that the plain loop alone computes: searches, and those whose prompt is scored

    def __len__(self) -> int:
        return len(self._sequences)

    def __getitem__(self, request_id: int) -> Sequence:
        """Raises RequestError when this request is not there, or has given its last event."""
        if (sequence := self._sequences.get(request_id)) is None:
            raise RequestError(f"no request {request_id} is waiting or running")
        return sequence

    @property
    def needs_plain_loop(self) -> bool:
        return bool(self._plain)

    def computed(self) -> Iterator[Sequence]:
        """All sequences that are computed: requests, and in place of searches their members, which are to be seen once more."""
        for sequence in self._sequences.values():
            if not sequence.is_finished:
                yield from [sequence] if sequence.search_group is None else sequence.search_group.begin_anew()

    def unfinished(self) -> Iterator[Sequence]:
        """All requests that have not ended; of a search the request alone."""
        return (sequence for sequence in self._sequences.values() if not sequence.is_finished)

    # ---- who is there

    def register(self, sequence: Sequence) -> None:
        """Know a request from now on; one that has ended elsewhere has only to tell that."""
        self._sequences[sequence.request_id] = sequence
        if sequence.search_group is not None or sequence.reads_all:
            self._plain.add(sequence.request_id)
        if sequence.is_finished:
            self.tell(sequence)

    def tell(self, sequence: Sequence) -> None:
        """Note that a sequence has an event to give after this step."""
        self._news[sequence.request_id] = sequence

    def ended(self, request_id: int) -> Sequence | None:
        """A request that has ended, whose final event is still to be given."""
        sequence = self._news.get(request_id)
        return sequence if sequence is not None and sequence.is_finished else None

    def strike(self, request_id: int) -> None:
        """Forget a request, which gives no further event."""
        del self._sequences[request_id]
        self._news.pop(request_id, None)
        self._plain.discard(request_id)

    def take_events(self) -> list[Event]:
        news, self._news = self._news, {}
        for request_id, sequence in news.items():
            if sequence.is_finished:
                del self._sequences[request_id]
                self._plain.discard(request_id)
        return [sequence.take_event() for sequence in news.values()]

    # ---- where they are

    def enter(self, sequence: Sequence) -> None:
        """Let a sequence be computed."""
        waits_with: Any = self.scheduler if self.quarantine.is_over else self.quarantine
        waits_with.add(sequence)

    def enter_fork(self, parent: Sequence, child: Sequence) -> None:
        """Let a child be computed that goes on from where its parent is."""
        if self.quarantine.is_over:
            self.scheduler.add_fork(parent, child)
        else:
            self.quarantine.add(child)

    def leave(self, sequence: Sequence) -> None:
        """Let a sequence be computed no more, and free its blocks."""
        if self.quarantine.remove(sequence):
            self.scheduler.space.release(sequence)  # it has no blocks, but may have brought some
        else:
            self.scheduler.remove(sequence)

    def free(self, sequence: Sequence) -> None:
        """Give back what a sequence that has ended holds, or the members of its search."""
        if sequence.search_group is None:
            self.leave(sequence)
        else:
            sequence.search_group.close()
