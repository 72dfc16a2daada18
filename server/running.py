"""Requests that run, under the names by which their clients know them, so that they can be ended from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .client import CALLER, Caller
from .errors import ApiError

_BEGINNING = re.compile(r"chatcmpl-|cmpl-|resp_|msg_")  # of an answer's id, before that of the request


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    names: frozenset[str]
    key_digest: str
    end: Callable[[Exception], None]


class RunningRequests:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._running: dict[_Running, None] = {}

    @contextmanager
    def named(self, names: Iterable[str], end: Callable[[Exception], None]) -> Iterator[None]:
        """A block in which the caller's request can be ended by one of its names. end: tells who waits for it an error."""
        running = _Running(frozenset(names), CALLER.get().key_digest, end)
        self._running[running] = None
        try:
            yield
        finally:
            del self._running[running]

    def end(self, name: str | None, caller: Caller) -> int:
        """End the requests of this name, or of any (None), that the caller may end: its own, and those of all for an operator.
        Returns how many there were."""
        wanted = None if name is None else {name, _BEGINNING.sub("", name, count=1)}
        found = [
            each
            for each in self._running
            if (caller.is_operator or each.key_digest == caller.key_digest) and (wanted is None or each.names & wanted)
        ]
        for each in found:
            each.end(_aborted())
        return len(found)


def _aborted() -> ApiError:
    message = "the request was ended by a request to abort it"
    return ApiError(409, message, code="request_aborted", headers={"X-Should-Retry": "false"})
