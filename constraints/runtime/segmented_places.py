"""Places in a reply with parts: each part has places of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..grammar.segments import Segment
from .constraint import Constraint
from .values import Places, Segments


class SegmentedPlaces:
    """Follows a reply through the places of its parts. Bytes of which it is not certain at first what they are, are told of with
    those that make it certain."""

    def __init__(self, constraint: Constraint, places_of: Callable[[Segment], Places | None]) -> None:
        """places_of: of a part that begins; None for one without."""
        self._segments, self._places_of = Segments(constraint), places_of
        self._inside: Places | None = None

    def read(self, data: bytes) -> tuple[str, ...]:
        """The places to which the next bytes belong."""
        found: dict[str, None] = {}
        for byte in data:
            before, certain = self._segments.last, self._segments.read(byte)
            if certain is None:
                break
            segment = self._segments.last
            if segment is not None and segment != before:
                self._inside = self._places_of(segment)
            if self._inside is not None and certain:
                found |= dict.fromkeys(self._inside.read(certain))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class OwnedPlaces:
    """Places in the schema of one of several, behind its name: "get_weather#/properties/city"."""

    owner: str
    inner: Places

    def read(self, data: bytes) -> tuple[str, ...]:
        return tuple(f"{self.owner}{path}" for path in self.inner.read(data))


@dataclass(frozen=True, slots=True)
class OnePlace:
    """All bytes belong to one place."""

    path: str

    def read(self, data: bytes) -> tuple[str, ...]:
        return (self.path,) if data else ()
