"""`Session` for asyncio.

    async with await llm.open("Ada Lovelace, 36, lives in London.", schema=Person) as session:
        async for event in session:
            ...
    person = (await session.result()).parsed
"""

from __future__ import annotations

import asyncio
import os

from .events import Done, Event
from .outputs import GenerationOutput
from .session import Session


class AsyncSession:
    """Iterate for the typed events; see `Session`, which is `session`. A task that is cancelled while it waits for an event loses
    nothing: the event is the next one of whoever reads on."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._waiting: asyncio.Future[Event | None] | None = None  # the next event; None at the end

    def __aiter__(self) -> AsyncSession:
        return self

    async def __anext__(self) -> Event:
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(asyncio.to_thread(next, self.session, None))
        try:
            event = await asyncio.shield(self._waiting)
        except Exception:
            self._waiting = None
            raise
        self._waiting = None
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_done(self) -> bool:
        """See `Session.is_done`."""
        return self.session.is_done

    async def result(self) -> GenerationOutput:
        """See `Session.result`."""
        async for event in self:
            if isinstance(event, Done):
                return event.output
        return self.session.result()

    async def save(self, path: str | os.PathLike[str], *, keeps_cache: bool = True) -> None:
        """See `Session.save`."""
        await asyncio.to_thread(self.session.save, path, keeps_cache=keeps_cache)

    async def close(self) -> None:
        """See `Session.close`."""
        await asyncio.to_thread(self.session.close)
