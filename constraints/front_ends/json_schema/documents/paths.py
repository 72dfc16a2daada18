"""Paths in a schema, and values as error messages show them."""

from __future__ import annotations

from typing import Any


def escape_token(token: str) -> str:
    """A member's name as a token of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "/" in token or "~" in token else token


def shown(value: Any) -> str:
    """A value in an error message, in a few characters."""
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
