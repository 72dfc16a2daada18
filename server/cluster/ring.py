"""Consistent hashing: a place for every fact, on which all who route agree without asking each other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

from .routing_key import fact_of

POINTS = 32  # of each replica on the ring


class Ring:
    """Who comes and goes moves only what was its own (Karger et al., "Consistent hashing and random trees", 1997)."""

    def __init__(self, replicas: Iterable[str] = ()) -> None:
        points = sorted((place, name) for name in replicas for place in _places(name))
        self._places, self._names = [place for place, _ in points], [name for _, name in points]

    def homes(self, fact: int, count: int) -> list[str]:
        """The `count` replicas to which a fact belongs, fewer if there are fewer."""
        found: dict[str, None] = {}
        start = bisect_left(self._places, fact)
        for step in range(len(self._places)):
            found[self._names[(start + step) % len(self._names)]] = None
            if len(found) == count:
                break
        return list(found)


@lru_cache(maxsize=4096)
def _places(name: str) -> tuple[int, ...]:
    """Of one replica. Kept, as the ring is made anew whenever another one comes or goes."""
    return tuple(fact_of("point", name, str(number)) for number in range(POINTS))
