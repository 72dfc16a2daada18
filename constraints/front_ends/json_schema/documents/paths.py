"""Paths in a schema, and values as error messages show them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import takewhile
from typing import Any


def escape_token(token: str) -> str:
    """A member's name as a token of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "/" in token or "~" in token else token


def common_path(paths: Iterable[str]) -> str:
    """The path of the innermost part of a schema in which all of some paths are."""
    (*tokens,) = zip(*(path.split("/") for path in paths), strict=False)
    return "/".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, tokens))


def shown(value: Any) -> str:
    """A value in an error message, in a few characters."""
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) < 60 else text[:57] + "..."
