"""What was refused is refused again without being compiled again."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import NamedTuple

from ...constraints import ConstraintError, Source


class Refusal(NamedTuple):
    error: ConstraintError
    num_bytes: int


class Refusals:
    """Sources with the errors that they gave: those asked for last, as many as fit into `max_bytes` of sources."""

    def __init__(self, max_bytes: int = 16 << 20) -> None:
        self._max_bytes, self._num_bytes = max_bytes, 0
        self._known: OrderedDict[Source, Refusal] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, source: Source, error: ConstraintError, num_bytes: int) -> None:
        """num_bytes: what the source takes."""
        self._drop(source)
        self._known[source] = Refusal(copy.copy(error), num_bytes)  # without the frames that it was raised through
        self._num_bytes += num_bytes
        while self._num_bytes > self._max_bytes:
            self._drop(next(iter(self._known)))

    def error_of(self, source: Source) -> ConstraintError | None:
        """The error of a source, to be raised; None of one that is not known to be refused."""
        known = self._known.get(source)
        if known is None:
            return None
        self._known.move_to_end(source)
        return copy.copy(known.error)

    def _drop(self, source: Source) -> None:
        dropped = self._known.pop(source, None)
        if dropped is not None:
            self._num_bytes -= dropped.num_bytes
