"""What is said about a value that is a string: its length, patterns and formats that it matches, and those that it does not."""

from __future__ import annotations

from dataclasses import dataclass

from ..documents.document import Site
from ..documents.keywords import TYPES


@dataclass(frozen=True)
class Mismatch:
    """The value is a string that violates the `pattern` or `format` of a site."""

    site: Site
    keyword: str

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["string"]


@dataclass(frozen=True)
class StringShape:
    """The strings of `low` to `high` code points that are in some languages and not in others.

    languages: keywords and the sites that have them, one for each keyword and value.
    """

    low: int = 0
    high: int | None = None
    languages: tuple[tuple[str, Site], ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
