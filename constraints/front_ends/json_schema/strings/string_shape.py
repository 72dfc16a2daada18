"""What is said about a value that is a string: its length, patterns and formats that it matches, and those that it does not."""

from __future__ import annotations

from dataclasses import dataclass

from ..documents.document import Site
from ..documents.keywords import TYPES


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The value is a string that violates the `pattern` or `format` of a site."""

    site: Site
    keyword: str

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["string"]


@dataclass(frozen=True, slots=True)
class StringShape:
    low: int = 0  # code points
    high: int | None = None
    patterns: tuple[Site, ...] = ()
    formats: tuple[Site, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
