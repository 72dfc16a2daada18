"""Who has the machine compile something slow gives way: what that client asks next is read while nobody else is answered.

To read a request with a large schema and to plan it takes the interpreter 2 to 4 ms, which everybody's next token waits for. A
client whose sources are in the slow lane waits for these in any case, so its requests stand back for a gap between those of
others, one after another, and for SECONDS at most.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

SECONDS = 0.25  # that a request stands back at most
APART_SECONDS = 0.005  # from one that stood back to the next: what reading it takes


class GivingWay:
    """The requests that are being answered, by client. Belongs to an event loop."""

    def __init__(self, is_slow: Callable[[str], bool], seconds: float = SECONDS) -> None:
        """is_slow: whether something of this client is being compiled slowly. seconds: that such a request waits at most."""
        self._is_slow, self._seconds = is_slow, seconds
        self._open: Counter[str] = Counter()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """A block in which a request is read and answered. It is entered at once, unless its client has to give way."""
        if self._is_slow(client) and (self._waiting or self._is_anybody_answered()):
            await self._gap()
        self._open[client] += 1
        try:
            yield
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]
            self._let_in()

    def _is_anybody_answered(self) -> bool:
        """Whether a request is open of a client that does not have to give way itself."""
        return any(not self._is_slow(client) for client in self._open)

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
