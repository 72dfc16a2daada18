"""A body whose constraint was refused is refused again before anything of it is read."""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.types import Scope

from .errors import CONSTRAINT_CODES, ApiError

LEAST_BYTES = 1024  # of a body that is remembered: shorter ones are read as quickly
MOST_KNOWN = 4096
_CODES = frozenset(code for _, code in CONSTRAINT_CODES)


class Refused(NamedTuple):
    route: Any  # that refused it, for the metrics
    error: ApiError


class RefusedBodies:
    """The bodies, by their digests, that were refused for what is written in them: those that were sent last."""

    def __init__(self, on_found: Callable[[], object] = lambda: None) -> None:
        """on_found: is told of each that is refused from here."""
        self._on_found = on_found
        self._known: OrderedDict[bytes, Refused] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, scope: Scope, body: bytes) -> Refused | None:
        """Why it is refused; None of one that is not known to be."""
        if len(body) < LEAST_BYTES or not self._known:
            return None
        key = _key(scope, body)
        if (known := self._known.get(key)) is None:
            return None
        self._known.move_to_end(key)
        self._on_found()
        return known._replace(error=copy.copy(known.error))

    def see(self, scope: Scope, body: bytes, error: ApiError) -> None:
        """Remember an answer, if it is for the constraint, which is refused whatever comes."""
        if len(body) < LEAST_BYTES or error.status != 400 or error.code not in _CODES:
            return
        kept = copy.copy(error)  # without the frames that it was raised through
        self._known[_key(scope, body)] = Refused(scope.get("route"), kept)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


def _key(scope: Scope, body: bytes) -> bytes:
    """What the answer depends on: where it was sent to, as what, and its bytes."""
    kinds = b"\0".join(value for name, value in scope["headers"] if name == b"content-type")
    digest = hashlib.sha256(b"\0".join((scope["path"].encode(), scope["query_string"], kinds, b"")))
    digest.update(body)
    return digest.digest()
