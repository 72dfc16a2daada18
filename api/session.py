"""One request that can be put aside, in a file, and gone on with later, in this process or another.

    session = llm.open("Ada Lovelace, 36, lives in London.", schema=Person)
    for event in session:
        if enough(event):
            session.save("ada.session")
            session.close()
            break

    session = llm.resume("ada.session", schema=Person)
    person = session.result().parsed               # what it would have been anyway, token for token
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .engine.errors import SessionError
from .engine.requests.output import RequestOutput
from .engine.sessions.session_file import save_snapshot
from .events import Done, Event
from .outputs import GenerationOutput
from .planning import Plan
from .stream_events import StreamEvents

if TYPE_CHECKING:
    from .driver import Driver


class Session:
    """Iterate for the typed events of `LLM.stream`; the request runs while somebody reads, here or elsewhere.

    A session that was resumed begins with the events of what it has. It is closed when it has ended, by `close`, or at the end of a
    `with` block; then it holds nothing of the engine's.
    """

    def __init__(self, driver: Driver, plan: Plan, request_id: int) -> None:
        self._driver, self._plan, self._request_id = driver, plan, request_id
        self._events = self._typed()
        self._ended: RequestOutput | None = None
        self._is_closed = False

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_done(self) -> bool:
        """Whether the request has ended and its last event was read."""
        return self._ended is not None

    def result(self) -> GenerationOutput:
        """The output, when the request has run to its end."""
        for event in self._events:
            if isinstance(event, Done):
                return event.output
        return self._plan.output(self._end())

    def save(self, path: str | os.PathLike[str], *, keeps_cache: bool = True) -> None:
        """Write the session as it stands to a file, `path`; the session goes on. A file that is there is replaced when the new
        one is complete.

        keeps_cache: write the keys and values computed so far, too; without them the file is small, and they are
        computed again. The file of a session that has ended is a conversation: after `resume` with cache="shared",
        prompts that begin with it cost only what is new. Raises OSError, and SessionError where the session was closed
        before its end.
        """
        save_snapshot(
            self._driver.snapshot(self._request_id, self._plan.request, self._ended, self._plan.prompt, keeps_cache), path
        )

    def close(self) -> None:
        """End the request, if it is still running."""
        self._is_closed = True
        self._driver.cancel(self._request_id)

    def _end(self) -> RequestOutput:
        if self._ended is None:
            raise SessionError("request", "it was closed before it had ended")
        return self._ended

    def _typed(self) -> Iterator[Event]:
        events = StreamEvents(self._plan)
        while not self._is_closed:
            try:
                event = self._driver.next_event(self._request_id)
            except SessionError:
                if self._is_closed:  # meanwhile, by another thread
                    return
                raise
            if event.output is not None:
                self._ended, self._is_closed = event.output, True
            yield from events.feed(event)
