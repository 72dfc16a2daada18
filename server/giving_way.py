"""Who has the machine compile something slow gives way: what that client asks next is read while nobody else is answered.

To read a request with a large schema and to plan it takes the interpreter 2 to 4 ms, which everybody's next token waits for. A
client whose sources are in the slow lane waits for these in any case, so its requests stand back for a gap between those of
others, one after another, and for SECONDS at most. While it has enough there, more that looks like it stays unread, but for one
every UNREAD_SECONDS, the shortest first: who leaves meanwhile has cost next to nothing.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, Protocol

from .errors import ApiError

SECONDS = 0.25  # that a request stands back at most
APART_SECONDS = 0.005  # from one that stood back to the next: what reading it takes
UNREAD_SECONDS = 0.25  # from one that stayed unread to the client's next
_NAMES = (  # of members, of any interface, in which a constraint may stand
    "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "json_schema",
    "grammar", "regex", "ebnf", "structural_tag", "tools", "format", "text", "output_format", "output_config", "sampling_params",
)  # fmt: skip
_MARKS = tuple(f'"{name}"'.encode() for name in _NAMES)


class SlowClients(Protocol):
    """What is known of clients that have something compiled slowly."""

    def is_slow(self, client: str) -> bool:
        """Whether something of this client is being compiled slowly."""

    def has_enough(self, client: str, num_bytes: int) -> bool:
        """Whether more of this length would only wait behind what this client has compiled slowly."""


class Unread(NamedTuple):
    """A request that stays unread."""

    num_bytes: int
    number: int  # tells equal lengths apart
    turn: asyncio.Future[None]


class GivingWay:
    """The requests that are being answered, by client. Belongs to an event loop."""

    def __init__(
        self,
        clients: SlowClients,
        max_unread: int,
        full: Callable[[], ApiError],
        on_answering: Callable[[bool], object] = lambda _: None,
        seconds: float = SECONDS,
    ) -> None:
        """max_unread: requests that stay unread, of all clients together; what one is refused with behind that is `full`.

        on_answering: is told whether anybody is answered who has nothing compiled slowly. seconds: that a request stands back
        for others at most.
        """
        self._clients, self._max_unread, self._full, self._on_answering = clients, max_unread, full, on_answering
        self._seconds, self._numbers = seconds, count()
        self._open: Counter[str] = Counter()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next: asyncio.TimerHandle | None = None
        self._unread: dict[str, list[Unread]] = {}  # heaps, by client; each has a timer

    @property
    def num_unread(self) -> int:
        return sum(map(len, self._unread.values()))

    def is_slow(self, client: str) -> bool:
        """Whether a request of this client has to wait for its turn."""
        return self._clients.is_slow(client)

    async def turn(self, client: str, body: bytes | None) -> None:
        """Wait until a request of a slow client may be read. body: None where it is not to be looked at.

        Raises ApiError when too many wait unread, or all are ended.
        """
        if body is not None and self._clients.has_enough(client, len(body)) and any(mark in body for mark in _MARKS):
            await self._stay_unread(client, len(body))
        await self._gap()

    @contextmanager
    def answering(self, client: str) -> Iterator[None]:
        """A block in which a request is read and answered."""
        self._open[client] += 1
        self._on_answering(self._is_anybody_answered())
        try:
            yield
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]
            self._on_answering(self._is_anybody_answered())
            self._let_in()

    def end_all(self, error: ApiError) -> None:
        """End what stays unread; who waits for an answer is told this error."""
        for unread in self._unread.values():
            while unread:
                _refuse(unread.pop().turn, error)

    def _is_anybody_answered(self) -> bool:
        """Whether a request is open of a client that does not have to give way itself."""
        return any(not self._clients.is_slow(client) for client in self._open)

    # ---- gaps between others

    async def _gap(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_in()
        try:
            await asyncio.wait({turn}, timeout=self._seconds)
        finally:
            if not turn.done():
                self._waiting.remove(turn)

    def _let_in(self) -> None:
        """Let in who has stood back for longest, and after a while the next one, as long as nobody else is answered."""
        if self._next is None and self._waiting and not self._is_anybody_answered():
            self._waiting.popleft().set_result(None)
            self._next = asyncio.get_running_loop().call_later(APART_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._next = None
        self._let_in()

    # ---- what stays unread

    async def _stay_unread(self, client: str, num_bytes: int) -> None:
        self._make_room(client)
        loop = asyncio.get_running_loop()
        waiting = Unread(num_bytes, next(self._numbers), loop.create_future())
        if client not in self._unread:
            loop.call_later(UNREAD_SECONDS, self._read_one, client)
        heapq.heappush(self._unread.setdefault(client, []), waiting)
        try:
            await waiting.turn
        finally:
            unread = self._unread.get(client, [])
            if waiting in unread:  # its client has gone
                unread.remove(waiting)
                heapq.heapify(unread)

    def _read_one(self, client: str) -> None:
        """The shortest one is read now; where the client has not enough in the slow lane any more, so are all."""
        unread = self._unread.get(client, [])
        while unread:
            shortest = heapq.heappop(unread)
            if not shortest.turn.done():
                shortest.turn.set_result(None)
            if unread and self._clients.has_enough(client, unread[0].num_bytes):
                break
        if unread:
            asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._read_one, client)
        else:
            self._unread.pop(client, None)

    def _make_room(self, client: str) -> None:
        """Of as many as may stay unread, refuse the longest one of the client who has most: this one (ApiError), or another."""
        if self.num_unread < self._max_unread:
            return
        most = max(self._unread.values(), key=len, default=[])
        if len(most) <= len(self._unread.get(client, ())) + 1:
            raise self._full()
        longest = max(most)
        most.remove(longest)
        heapq.heapify(most)
        _refuse(longest.turn, self._full())


def _refuse(turn: asyncio.Future[None], error: ApiError) -> None:
    if not turn.done():
        turn.set_exception(error)
