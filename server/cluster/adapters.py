"""More adapters than an engine has room for: each is loaded when it is asked for, and one that nobody uses makes room."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ...engine.errors import AdapterInUse

POLL_SECONDS = 0.05


class AdapterPool:
    """At most `max_loaded` of some adapters. Belongs to the event loop."""

    def __init__(
        self,
        paths: Mapping[str, Path],
        max_loaded: int,
        load: Callable[[str, Path], Awaitable[object]],
        unload: Callable[[str], Awaitable[object]],
    ) -> None:
        """unload: raises AdapterInUse while something runs with it that was not asked for here."""
        self._paths, self._max_loaded, self._load, self._unload = paths, max_loaded, load, unload
        self._loaded: OrderedDict[str, None] = OrderedDict()  # which was used least recently first
        self._users: Counter[str] = Counter()
        self._freed = asyncio.Condition()

    @property
    def loaded(self) -> list[str]:
        return list(self._loaded)

    @asynccontextmanager
    async def holding(self, name: str | None) -> AsyncIterator[None]:
        """A block during which the adapter of that name is loaded. Waits while there is room for no more and all are in use."""
        if name is None or name not in self._paths:
            yield
            return
        async with self._freed:
            while name not in self._loaded and not await self._has_room():
                await self._some_time()
            if name not in self._loaded:
                await self._load(name, self._paths[name])
                self._loaded[name] = None
            self._loaded.move_to_end(name)
            self._users[name] += 1
        try:
            yield
        finally:
            self._users[name] -= 1
            async with self._freed:
                self._freed.notify_all()

    async def _some_time(self) -> None:
        """Until one may be free: the engine lets go of one a step after its last request, and tells nobody."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await self._freed.wait()

    async def _has_room(self) -> bool:
        """Whether another one may be loaded; one that nobody uses goes for it."""
        if len(self._loaded) < self._max_loaded:
            return True
        for name in [each for each in self._loaded if not self._users[each]]:
            try:
                await self._unload(name)
            except AdapterInUse:
                continue
            del self._loaded[name]
            return True
        return False
