"""Who asks: clients share what is scarce by this name."""

from __future__ import annotations

from contextvars import ContextVar

from starlette.types import Scope

CLIENT: ContextVar[str] = ContextVar("client", default="")  # of the request that is being answered


def name_of(scope: Scope, key_digest: bytes) -> str:
    """A name for everybody who asks from this address with this key."""
    address = scope["client"][0] if scope.get("client") else ""
    return f"{address} {key_digest.hex()}"
