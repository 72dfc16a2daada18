"""Requests go where most of their work is done already, unless those who wait there cost more than doing it again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .policy import Load, Policy
from .ring import Ring
from .routing_key import RoutingKey, first_fact

MOST_HOLDERS = 4  # of one fact, that are compared; of more some are drawn
NUM_HOMES = 2
NUM_DRAWN = 2  # replicas that are compared whoever knows what


@dataclass(frozen=True, slots=True)
class Costs:
    """What is weighed, in bytes of prompt: how many are computed in the time that it takes."""

    open_request: float = 256.0  # by which each request that a replica has delays the next one
    constraint: float = 1024.0  # to compile one
    adapter: float = 65536.0  # to load one


class _Known:
    """What one replica is taken to know: what it told last, and what was sent to it since."""

    def __init__(self) -> None:
        self.told: frozenset[int] = frozenset()
        self.sent: OrderedDict[int, float] = OrderedDict()  # fact -> when; the oldest first

    def __contains__(self, fact: int) -> bool:
        return fact in self.sent or fact in self.told


class PrefixAffinity(Policy):
    """The cheapest of a few: those who know the longest beginning of the prompt, its constraint or its adapter, those to whom it
    belongs, and some that are drawn. The cost of a replica is what of the prompt it must compute, what it must compile or load, and
    who waits there."""

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        seed: int = 0,
        trusted_seconds: float = 10.0,
        max_sent: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """trusted_seconds: for how long what was sent counts as known although the replica does not tell of it. max_sent: facts
        of one replica that are kept beside what it tells."""
        super().__init__(seed)
        self.costs = costs or Costs()
        self._trusted_seconds, self._max_sent, self._clock = trusted_seconds, max_sent, clock
        self._known: dict[str, _Known] = {}
        self._holders: dict[int, list[str]] = {}
        self._ring = Ring()

    def update(self, replicas: Iterable[str]) -> None:
        before = set(self._replicas)
        super().update(replicas)
        now = set(self._replicas)
        if now == before:
            return
        self._ring = Ring(self._replicas)
        for gone in before - now:
            known = self._known.pop(gone)
            for fact in {*known.told, *known.sent}:
                self._drop(fact, gone)
        self._known |= {new: _Known() for new in now - before}

    def rank(self, key: RoutingKey, load: Load) -> list[str]:
        costs = {each: self.cost(key, each, load(each)) for each in self._candidates(key)}
        return sorted(costs, key=costs.__getitem__)

    def cost(self, key: RoutingKey, replica: str, load: float) -> float:
        """What answering the request there costs, in bytes of prompt."""
        known = self._known[replica]
        cost = load * self.costs.open_request + key.num_bytes - self.known_bytes(key, replica)
        if key.constraint is not None and key.constraint not in known:
            cost += self.costs.constraint
        if key.adapter is not None and key.adapter not in known:
            cost += self.costs.adapter
        return cost

    def known_bytes(self, key: RoutingKey, replica: str) -> int:
        """How much of the prompt the replica is taken to have computed."""
        known = self._known[replica]
        return next((num_bytes for num_bytes, fact in reversed(key.prefixes) if fact in known), 0)

    def routed(self, key: RoutingKey, replica: str) -> None:
        known = self._known.get(replica)
        if known is None:  # it has gone meanwhile
            return
        now = self._clock()
        for fact in key.facts:
            if fact not in known:
                self._holders.setdefault(fact, []).append(replica)
            known.sent[fact] = now
            known.sent.move_to_end(fact)
        while len(known.sent) > self._max_sent:
            fact, _ = known.sent.popitem(last=False)
            if fact not in known.told:
                self._drop(fact, replica)

    def reported(self, replica: str, facts: Iterable[int]) -> None:
        known = self._known.get(replica)
        if known is None:
            return
        before, oldest = {*known.told, *known.sent}, self._clock() - self._trusted_seconds
        known.told = frozenset(facts)
        known.sent = OrderedDict((fact, when) for fact, when in known.sent.items() if when >= oldest)
        now = {*known.told, *known.sent}
        for fact in before - now:
            self._drop(fact, replica)
        for fact in now - before:
            self._holders.setdefault(fact, []).append(replica)

    def _candidates(self, key: RoutingKey) -> dict[str, None]:
        found: dict[str, None] = {}
        for _, fact in reversed(key.prefixes):
            found |= dict.fromkeys(self._some_holders(fact))
            if len(found) >= MOST_HOLDERS:
                break
        for other in (key.constraint, key.adapter):
            found |= dict.fromkeys(() if other is None else self._some_holders(other))
        found |= dict.fromkeys(self._ring.homes(first_fact(key), NUM_HOMES))
        return found | dict.fromkeys(self._random.sample(self._replicas, min(NUM_DRAWN, len(self._replicas))))

    def _some_holders(self, fact: int) -> list[str]:
        holders = self._holders.get(fact, [])
        return holders if len(holders) <= MOST_HOLDERS else self._random.sample(holders, MOST_HOLDERS)

    def _drop(self, fact: int, replica: str) -> None:
        holders = self._holders[fact]
        holders.remove(replica)
        if not holders:
            del self._holders[fact]
