"""Who asks: clients share what is scarce by this name, and have what they store to themselves."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from starlette.types import Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    key_digest: str = ""  # of the API key; "" where the server has none
    is_operator: bool = True  # whether the key is one of the operator, or the server has no keys at all


TRUSTED_CALLER = "maskwright.caller"  # in the scope of a request that this process sends itself: who asks; no connection can set it
CLIENT: ContextVar[str] = ContextVar("client", default="")  # of the request that is being answered
CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039  # it is frozen


def name_of(scope: Scope, key_digest: bytes) -> str:
    """A name for everybody who asks from this address with this key."""
    address = scope["client"][0] if scope.get("client") else ""
    return f"{address} {key_digest.hex()}"
