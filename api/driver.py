"""One engine shared by many callers: whoever waits for news computes the next step for everybody."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from .engine.engine import Engine
from .engine.output import Event
from .engine.request import Request
from .engine.statistics import EngineStatistics


class Driver:
    """Thread-safe access to an engine. Events of a request are kept until its caller asks for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()  # the engine wants one thread at a time
        self._news: dict[int, deque[Event]] = {}  # of requests that are not finished, or not read to their end

    @property
    def is_busy(self) -> bool:
        """Some request is not finished, or not read to its end."""
        with self._lock:
            return bool(self._news) or self._engine.has_work

    @property
    def statistics(self) -> EngineStatistics:
        """Of the engine, between two steps."""
        with self._lock:
            return self._engine.statistics

    def submit(self, requests: Sequence[Request]) -> list[int]:
        """Queue requests, all or none, and return their ids. Raises RequestError when one can never run."""
        request_ids: list[int] = []
        with self._lock:
            try:
                for request in requests:
                    request_ids.append(self._engine.add_request(request))
            except Exception:
                for request_id in request_ids:
                    self._engine.cancel(request_id)
                raise
            self._news |= {request_id: deque() for request_id in request_ids}
        return request_ids

    def next_event(self, request_id: int) -> Event:
        """The next event of a request that has not given its final one; steps the engine until there is one."""
        with self._lock:
            while not self._news[request_id]:
                for event in self._engine.step():
                    self._news[event.request_id].append(event)
            event = self._news[request_id].popleft()
            if event.is_final:
                del self._news[request_id]
            return event

    def cancel(self, request_id: int) -> None:
        """End a request whose events nobody will read any more; nothing happens when it has given its final one."""
        with self._lock:
            news = self._news.pop(request_id, None)
            if news is not None and not any(event.is_final for event in news):
                self._engine.cancel(request_id)
