"""Values that most compiles need, made several at a time and handed out one by one.

What the first one takes is mostly memory that the processor's caches do not hold, its code included; each one that is made right
behind it takes a tenth of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")
VALUES_AT_ONCE = 4  # values; a process that ends early has made the others in vain


class Spares(Generic[S, T]):
    """Hands out values that `make` makes of one and the same source: all alike, but for what becomes of each. Thread-safe."""

    def __init__(self, make: Callable[[S], T]) -> None:
        self._make = make
        self._made: list[T] = []

    def take(self, source: S) -> T:
        """A value that nobody else has."""
        try:
            return self._made.pop()  # atomic, as `append` is
        except IndexError:
            for _ in range(VALUES_AT_ONCE - 1):
                self._made.append(self._make(source))
            return self._make(source)
