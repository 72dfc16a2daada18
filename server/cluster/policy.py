"""Which replica a request is sent to: what all policies have in common, and those that know of load alone.

The load of a replica is the number of requests that it has and has not answered, as far as the one who sends knows.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from .routing_key import RoutingKey

Load = Callable[[str], float]


class Policy(ABC):
    """An order of replicas for each request. Belongs to one thread."""

    def __init__(self, seed: int = 0) -> None:
        self._replicas: list[str] = []
        self._random = random.Random(seed)

    @property
    def replicas(self) -> Sequence[str]:
        return self._replicas

    def update(self, replicas: Iterable[str]) -> None:
        """Who can be asked from now on."""
        self._replicas = sorted(replicas)

    @abstractmethod
    def rank(self, key: RoutingKey, load: Load) -> list[str]:
        """Some replicas, the best first; none if there are none."""

    def routed(self, key: RoutingKey, replica: str) -> None:  # noqa: B027  # those that know of load alone need not hear it
        """A request was sent to a replica."""

    def reported(self, replica: str, facts: Iterable[int]) -> None:  # noqa: B027
        """A replica tells all that it knows."""


class RandomChoice(Policy):
    """Any replica."""

    def rank(self, key: RoutingKey, load: Load) -> list[str]:
        return [self._random.choice(self._replicas)] if self._replicas else []


class RoundRobin(Policy):
    """One after another."""

    _place = -1

    def rank(self, key: RoutingKey, load: Load) -> list[str]:
        self._place += 1
        return [self._replicas[self._place % len(self._replicas)]] if self._replicas else []


class LeastLoaded(Policy):
    """The one with the fewest requests; of several any."""

    def rank(self, key: RoutingKey, load: Load) -> list[str]:
        if not self._replicas:
            return []
        least = min(map(load, self._replicas))
        return [self._random.choice([each for each in self._replicas if load(each) == least])]


class TwoChoices(Policy):
    """The less loaded of two that are drawn (Mitzenmacher, "The power of two choices in randomized load balancing", 2001)."""

    def rank(self, key: RoutingKey, load: Load) -> list[str]:
        return sorted(self._random.sample(self._replicas, min(2, len(self._replicas))), key=load)
