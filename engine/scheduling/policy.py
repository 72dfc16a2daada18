"""Policies: pure functions from a request to its rank. The request with the smallest rank is served first; ranks never change.

A rank is fixed when the request arrives. So the order of two requests never turns, and nobody starves: only those that rank
before a request can delay it, and from some moment on no newcomer does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ...foundation.registry import Registry
from ..errors import RequestError
from ..requests.request import Rank

PATIENCE = 256  # steps that a request waits rather than let one of the next worse priority go first


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a policy knows about a request."""

    number: int  # of requests that came before
    step: int  # of the engine at which it came
    priority: int = 0  # smaller is more urgent
    share_begins: float = 0.0  # see FairShares
    num_tokens: int = 0  # of the prompt
    max_tokens: int = 0  # of the output
    user: str = ""


def fcfs(arrival: Arrival) -> Rank:
    """First come, first served."""
    return 0.0, arrival.number


def priority(arrival: Arrival) -> Rank:
    """By priority, but who has waited PATIENCE steps goes before newcomers that are one priority better.

    A rank that grows with waiting orders requests as does a fixed one: (arrival + priority * PATIENCE).
    """
    return arrival.step + arrival.priority * PATIENCE, arrival.number


def fair(arrival: Arrival) -> Rank:
    """Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996): users share the engine by tokens, not by requests."""
    return arrival.share_begins, arrival.number


Policy: TypeAlias = Callable[[Arrival], Rank]
POLICIES: Registry[Policy] = Registry(
    "scheduling policy", {"fcfs": fcfs, "priority": priority, "fair": fair}, needs="a function from an Arrival to a rank"
)


def rank_of(policy: str, arrival: Arrival) -> Rank:
    """The rank that a policy gives, behind which stands the request's number. Raises RequestError where it gives none."""
    try:
        rank = tuple(float(number) for number in POLICIES[policy](arrival))
    except Exception as error:
        raise RequestError(f'scheduling policy "{policy}": {type(error).__name__}: {error}') from error
    if not rank or not all(map(math.isfinite, rank)):
        raise RequestError(f'scheduling policy "{policy}" gave the rank {rank}; a rank is one finite number or more')
    return (*rank, float(arrival.number))


class FairShares:
    """Where each user's next request begins in virtual time, which is that of the latest request in service.

    A request begins where the one before it of the same user ends, `cost` tokens later: who asks for much at once is behind in
    virtual time, and others go first.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._ends: dict[str, float] = {}  # user -> virtual time at which all that was asked for is served

    def begin(self, user: str, cost: int) -> float:
        """The virtual time at which a request of `cost` tokens begins."""
        begins = max(self._now, self._ends.get(user, 0.0))
        self._ends[user] = begins + cost
        return begins

    def serve(self, begun: Iterable[float]) -> None:
        """Time moves on to the latest of the requests that are served now; users that are not ahead of it are forgotten."""
        now = max(begun, default=max(self._ends.values(), default=0.0))  # nothing left to serve: all begin anew
        if now > self._now:
            self._now = now
            self._ends = {user: end for user, end in self._ends.items() if end > now}
