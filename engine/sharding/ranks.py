"""Ranks, and which of a number of alike things each of them holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Share:
    """Of `count` things in a row those from `first` up to `stop`."""

    count: int
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first

    def times(self, size: int) -> Share:
        """The same share, where each thing is `size` smaller ones."""
        return Share(self.count * size, self.first * size, self.stop * size)


class Rank(NamedTuple):
    """One of `size` processes that compute a model together; 0 is the one that draws."""

    number: int
    size: int

    def share(self, count: int) -> Share:
        """What this rank holds of `count` things: the shares of all ranks follow one another, and differ by one at most."""
        return Share(count, *(-(-count * number // self.size) for number in (self.number, self.number + 1)))
