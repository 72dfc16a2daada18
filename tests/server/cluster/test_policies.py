"""Who is asked: affinity beside a slow twin, and what holds for every policy."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from maskwright.errors import UsageError
from maskwright.server.cluster.affinity import Costs, PrefixAffinity
from maskwright.server.cluster.policies import POLICIES, policy_of
from maskwright.server.cluster.policy import Policy
from maskwright.server.cluster.ring import Ring
from maskwright.server.cluster.routing_key import RoutingKey

NAMES = ["a", "b", "c", "d", "e", "f"]


def key_of(*beginnings: int, constraint: int | None = None, adapter: int | None = None) -> RoutingKey:
    """A prompt whose beginnings, of 100 bytes each, have these facts."""
    prefixes = tuple((100 * number, fact) for number, fact in enumerate(beginnings, 1))
    return RoutingKey(prefixes, 100 * len(beginnings), constraint, adapter)


def no_load(name: str) -> float:
    return 0.0


@pytest.mark.parametrize("name", POLICIES)
def test_only_those_that_live_are_named(name: str) -> None:
    policy = policy_of(name)
    assert policy.rank(key_of(1), no_load) == []
    policy.update(["a"])
    assert policy.rank(key_of(1), no_load) == ["a"]
    policy.update(NAMES)
    for number in range(20):
        ranked = policy.rank(key_of(number), no_load)
        assert ranked and set(ranked) <= set(NAMES) and len(set(ranked)) == len(ranked)
        policy.routed(key_of(number), ranked[0])
    policy.update(["b"])
    assert policy.rank(key_of(1, 2, 3), no_load) == ["b"]
    policy.routed(key_of(1), "a")  # it has gone
    policy.reported("a", [1])
    assert policy.rank(key_of(1), no_load) == ["b"]


def test_a_policy_that_is_not_known_is_named() -> None:
    with pytest.raises(UsageError, match=r'unknown router "prefx"; did you mean prefix\?'):
        policy_of("prefx")


def test_load_decides_where_nothing_else_is_known() -> None:
    loads = dict(zip(NAMES, [5.0, 4.0, 0.0, 7.0, 9.0, 3.0], strict=True))
    policy = policy_of("least_loaded")
    policy.update(NAMES)
    assert policy.rank(key_of(1), loads.__getitem__) == ["c"]
    two = policy_of("two_choices")
    two.update(NAMES)
    firsts = Counter(two.rank(key_of(1), loads.__getitem__)[0] for _ in range(300))
    assert "e" not in firsts and firsts["c"] == max(firsts.values())
    turns = policy_of("round_robin")
    turns.update(NAMES)
    assert [turns.rank(key_of(1), no_load)[0] for _ in range(12)] == NAMES * 2


def filled(*, costs: Costs | None = None) -> PrefixAffinity:
    policy = PrefixAffinity(costs)
    policy.update(NAMES)
    return policy


@given(st.integers(0, 2**64 - 1), st.permutations(NAMES))
def test_those_who_route_apart_agree_on_what_nobody_knows(fact: int, names: list[str]) -> None:
    one, other = filled(), PrefixAffinity(seed=7)
    other.update(names)
    home = Ring(NAMES).homes(fact, 1)[0]
    assert one.rank(key_of(fact), no_load)[0] in Ring(NAMES).homes(fact, 1) or one.rank(key_of(fact), no_load)
    assert one.rank(key_of(fact), no_load)[0] == other.rank(key_of(fact), no_load)[0] == home


def test_the_longest_beginning_wins_and_load_is_weighed_against_it() -> None:
    policy = filled(costs=Costs(open_request=50, constraint=120, adapter=1000))
    policy.routed(key_of(1), "a")
    policy.routed(key_of(1, 2, 3), "b")
    wanted = key_of(1, 2, 3, 4)
    assert policy.rank(wanted, no_load)[0] == "b"
    assert policy.rank(wanted, lambda name: 3.0 if name == "b" else 0.0)[0] == "b"  # 150 bytes of waiting against 200 of computing
    assert policy.rank(wanted, lambda name: 5.0 if name == "b" else 0.0)[0] == "a"
    policy.routed(key_of(9, constraint=77), "c")
    assert policy.rank(key_of(8, constraint=77), no_load)[0] == "c"
    assert policy.rank(key_of(1, constraint=77), no_load)[0] == "c"  # to compile is dearer than 100 bytes
    policy.reported("d", [500])
    assert policy.rank(key_of(1, 2, 3, constraint=77, adapter=500), no_load)[0] == "d"


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.lists(st.integers(1, 6), max_size=4)), max_size=12), st.lists(st.integers(1, 6), max_size=4),
       st.lists(st.integers(0, 9), min_size=6, max_size=6))  # fmt: skip
def test_the_first_is_the_cheapest_of_all_who_know_anything(sent: list[Any], wanted: list[int], loads: list[int]) -> None:
    policy, load = filled(), dict(zip(NAMES, map(float, loads), strict=True))
    holders: dict[int, set[str]] = {}
    for name, facts in sent:
        policy.routed(key_of(*facts), name)
        for fact in facts:
            holders.setdefault(fact, set()).add(name)
    key = key_of(*wanted)
    first = policy.rank(key, load.__getitem__)[0]
    known = {name for fact in wanted if len(holders.get(fact, ())) <= 4 for name in holders.get(fact, ())}
    if len(known) <= 4:
        assert policy.cost(key, first, load[first]) <= min((policy.cost(key, name, load[name]) for name in known), default=float("inf"))


class KnowledgeTwin(RuleBasedStateMachine):
    """What a policy takes for known, beside sets that are looked through."""

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.policy = PrefixAffinity(trusted_seconds=5.0, max_sent=4, clock=lambda: self.now)
        self.policy.update(NAMES[:3])
        self.told: dict[str, set[int]] = {name: set() for name in NAMES[:3]}
        self.sent: dict[str, dict[int, float]] = {name: {} for name in NAMES[:3]}

    @rule(name=st.sampled_from(NAMES), facts=st.lists(st.integers(1, 9), max_size=3, unique=True), seconds=st.integers(0, 4))
    def route(self, name: str, facts: list[int], seconds: int) -> None:
        self.now += seconds
        self.policy.routed(key_of(*facts), name)
        if name in self.sent:
            for fact in facts:
                self.sent[name].pop(fact, None)
                self.sent[name][fact] = self.now
            self.sent[name] = dict(list(self.sent[name].items())[-4:])

    @rule(name=st.sampled_from(NAMES), facts=st.sets(st.integers(1, 9), max_size=5))
    def report(self, name: str, facts: set[int]) -> None:
        self.policy.reported(name, facts)
        if name in self.told:
            self.told[name] = facts
            self.sent[name] = {fact: when for fact, when in self.sent[name].items() if when >= self.now - 5.0}

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def change(self, names: set[str]) -> None:
        self.policy.update(names)
        self.told = {name: self.told.get(name, set()) for name in names}
        self.sent = {name: self.sent.get(name, {}) for name in names}

    @invariant()
    def both_know_the_same(self) -> None:
        for name in getattr(self, "told", ()):
            known = self.told[name] | set(self.sent[name])
            assert {fact for fact in range(1, 10) if self.policy.known_bytes(key_of(fact), name)} == known

    @invariant()
    def each_who_knows_is_found(self) -> None:
        for fact in range(1, 10):
            who = sorted(name for name in getattr(self, "told", ()) if fact in self.told[name] or fact in self.sent[name])
            if who:
                assert sorted(self.policy._holders[fact]) == who


TestKnowledgeTwin = KnowledgeTwin.TestCase
TestKnowledgeTwin.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@given(st.sets(st.text(min_size=1, max_size=4), min_size=2, max_size=8), st.lists(st.integers(0, 2**64 - 1), max_size=30))
def test_who_goes_moves_only_its_own(names: set[str], facts: list[int]) -> None:
    gone = min(names)
    before, after = Ring(names), Ring(names - {gone})
    for fact in facts:
        home = before.homes(fact, 1)
        assert home == after.homes(fact, 1) or home == [gone]
        assert after.homes(fact, len(names)) == [name for name in before.homes(fact, len(names)) if name != gone]
    assert Ring().homes(1, 2) == []


def test_work_is_spread_and_prefixes_stay_together() -> None:
    policy: Policy = filled()
    loads: Counter[str] = Counter()
    places: dict[int, Counter[str]] = {}
    for number in range(600):
        key = key_of(*(1000 + number % 30 * 10 + depth for depth in range(8)), number + 100_000)
        chosen = policy.rank(key, lambda name: loads[name] / 30)[0]
        policy.routed(key, chosen)
        loads[chosen] += 1
        places.setdefault(number % 30, Counter())[chosen] += 1
    assert max(loads.values()) < 2.5 * 600 / len(NAMES)
    assert sum(max(each.values()) for each in places.values()) > 0.8 * 600
