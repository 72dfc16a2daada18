"""A prompt that may be in the prefix cache, to be looked up there."""

from __future__ import annotations

from typing import NamedTuple


class KnownPrompt(NamedTuple):
    """What its keys and values depend on."""

    token_ids: tuple[int, ...]
    adapter: str | None = None  # the name of a loaded one
    cache_salt: str = ""
