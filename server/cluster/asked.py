"""A request on its way from the ingress to a replica."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..client import Caller
from .routing_key import RoutingKey

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """All of a request: its body has been read. It is pickled, and may be sent several times."""

    method: str
    path: str  # below the server's root path
    query: bytes
    headers: Headers
    body: bytes
    client: tuple[str, int] | None  # address and port
    caller: Caller
    key: RoutingKey = field(default_factory=RoutingKey)


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of an answer. What follows are pieces of its body."""

    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer in one piece."""

    head: Head
    body: bytes
