"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...errors import UsageError
from ...foundation.option_names import unknown_name
from .affinity import PrefixAffinity
from .policy import LeastLoaded, Policy, RandomChoice, RoundRobin, TwoChoices

POLICIES: Mapping[str, Callable[[], Policy]] = MappingProxyType(
    {
        "prefix": PrefixAffinity,
        "two_choices": TwoChoices,
        "least_loaded": LeastLoaded,
        "round_robin": RoundRobin,
        "random": RandomChoice,
    }
)


def policy_of(name: str) -> Policy:
    """A policy without replicas. Raises UsageError for a name that is not known."""
    if name not in POLICIES:
        raise UsageError(unknown_name("router", name, POLICIES))
    return POLICIES[name]()
