"""Turns at something scarce: each client has its turn, however many others ask for theirs."""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple


class Waiting(NamedTuple):
    rank: float
    number: int  # tells equal ranks apart
    is_served: asyncio.Future[None]


class FairQueue:
    """So many turns at the same time. A free one goes to the client whose last one ended first, or who waits longest for its first;
    among the requests of one client, to the one of least rank. Belongs to an event loop."""

    def __init__(self, num_turns: int) -> None:
        self._num_free, self._num_asked = num_turns, 0
        self._waiting: OrderedDict[str, list[Waiting]] = OrderedDict()  # heaps

    @property
    def num_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def has_free(self) -> bool:
        return self._num_free > 0

    @asynccontextmanager
    async def turn(self, client: str, rank: float) -> AsyncIterator[None]:
        """A block that is entered when it is its turn, and takes the turn up until it is left."""
        self._num_asked += 1
        waiting = Waiting(rank, self._num_asked, asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiting.setdefault(client, []), waiting)
        self._serve()
        try:
            await waiting.is_served
            yield
        finally:
            if waiting.is_served.done() and not waiting.is_served.cancelled():
                self._num_free += 1
                if client in self._waiting:
                    self._waiting.move_to_end(client)
                self._serve()
            else:
                self._leave(client, waiting)

    def _serve(self) -> None:
        while self._num_free and self._waiting:
            client, requests = self._waiting.popitem(last=False)
            is_served = heapq.heappop(requests).is_served
            if requests:
                self._waiting[client] = requests
            if not is_served.cancelled():  # by a request that is about to leave
                is_served.set_result(None)
                self._num_free -= 1

    def _leave(self, client: str, waiting: Waiting) -> None:
        requests = self._waiting.get(client, [])
        if waiting in requests:
            requests.remove(waiting)
            heapq.heapify(requests)
            if not requests:
                del self._waiting[client]
