"""Walks: members under independent conditions, in order and in any order, counted or not."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest

from maskwright.constraints import Compiler, Vocabulary
from maskwright.constraints.base.kinds import LAST
from maskwright.constraints.grammar.expression import EMPTY, FAIL, Grammar, Node
from maskwright.constraints.grammar.member_diagrams import MemberDiagrams
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.runtime.constraint import as_token_ids

from ..uniqueness.test_seen_values import Written

TOKENS = [*(bytes([byte]) for byte in range(256)), b"a,", b",b", b"a,b", b"{a", b"e}", b",z", b"f,z,z}"]
COMPILER = Compiler(Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)]))
ORDER = "acbdefz"
BOUNDS = [(0, None), (0, 3), (3, None), (4, 5), (2, 2), (6, 6)]


@dataclass(frozen=True)
class Conditions:
    """a and b are both there or neither, c and d likewise; one of e and f; up to two of z; `low` to `high` in all."""

    in_order: bool
    low: int
    high: int | None

    def build(self, grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY, (self.low, self.high) != (0, None))
        place = {name: position if self.in_order else LAST for position, name in enumerate(ORDER, 1)}
        member = {name: diagrams.member(grammar.literal(name)) for name in ORDER}

        def one(name: str, left: tuple[Node, ...], lower: Node) -> Node:
            return diagrams.decision(place[name], [(member[name], left)], lower)

        def pair(first: str, second: str) -> Node:
            if self.in_order:
                return one(first, (one(second, (), FAIL),), EMPTY)
            return diagrams.family(member[first], diagrams.family(member[second], EMPTY, FAIL), EMPTY)

        either = one("e", (), one("f", (), FAIL))
        if not self.in_order:
            either = diagrams.family(member["e"], EMPTY, diagrams.family(member["f"], EMPTY, FAIL))
        parts = [pair("a", "b"), pair("c", "d"), either, diagrams.counted(member["z"], 0, 2)]
        return grammar.seq(grammar.literal("{"), diagrams.walk(parts, self.low, self.high), grammar.literal("}"))

    def are_met(self, names: tuple[str, ...]) -> bool:
        count = {name: names.count(name) for name in ORDER}
        is_right = count["a"] == count["b"] and count["c"] == count["d"] and count["e"] + count["f"] == 1 and count["z"] <= 2
        is_sorted = not self.in_order or list(names) == sorted(names, key=ORDER.index)
        return is_right and is_sorted and max(count[name] for name in "abcd") < 2 and self.low <= len(names) <= (self.high or 99)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_members_are_those_that_meet_all_conditions(in_order: bool, low: int, high: int | None) -> None:
    conditions = Conditions(in_order, low, high)
    grammar = Grammar()
    twin, constraint = Reference(grammar, conditions.build(grammar)), COMPILER.compile(Written(conditions.build))
    for length in range(5):
        for names in itertools.product(ORDER, repeat=length):
            text = "{" + ",".join(names) + "}"
            assert constraint.accepts(text) == conditions.are_met(names), text
            if length < 4:
                assert twin.accepts(text.encode()) == conditions.are_met(names), text


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_every_text_can_be_ended_in_the_tokens_promised(in_order: bool, low: int, high: int | None) -> None:
    conditions = Conditions(in_order, low, high)
    constraint = COMPILER.compile(Written(conditions.build))
    for seed in range(20):
        rng, state, text = random.Random(seed), constraint.start(), b""
        while not constraint.is_accepting(state):
            left = {}
            for token in as_token_ids(constraint.mask(state)):
                after = constraint.advance(state, token)
                assert after is not None
                left[token] = constraint.min_tokens(after)
            assert min(left.values()) < constraint.min_tokens(state), text
            token = rng.choice(list(left))
            following = constraint.advance(state, token)
            assert following is not None
            state, text = following, text + TOKENS[token]
        assert conditions.are_met(tuple(text.decode()[1:-1].split(","))), text


def test_independent_conditions_cost_their_sum() -> None:
    def build(grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY)
        members = [[diagrams.member(grammar.literal(f"{side}{i}")) for side in "ab"] for i in range(100)]
        parts = [diagrams.family(a, EMPTY, diagrams.family(b, EMPTY, FAIL)) for a, b in members]
        return diagrams.walk(parts, 0, None)

    constraint = COMPILER.compile(Written(build))
    names = [f"{'ab'[i % 2]}{i}" for i in range(100)]
    random.Random(1).shuffle(names)
    assert constraint.accepts(",".join(names)) and not constraint.accepts(",".join([*names[1:], "a0" if names[0] != "a0" else "a1"]))
    assert constraint.statistics["states"] < 20_000


Sets = set[frozenset[str]]


def family(diagrams: MemberDiagrams, members: dict[str, Node], sets: Sets) -> Node:
    """The family of some sets, its members in the order of `members`."""
    if not sets or sets == {frozenset()}:
        return EMPTY if sets else FAIL
    first = min(frozenset().union(*sets), key=list(members).index)
    below = {each - {first} for each in sets if first in each}, {each for each in sets if first not in each}
    return diagrams.family(members[first], *(family(diagrams, members, each) for each in below))


@pytest.mark.parametrize("bounds", [(0, None), (1, 3), (3, 4)])
@pytest.mark.parametrize("are_placed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_family_is_each_of_its_sets(seed: int, are_placed: bool, bounds: tuple[int, int | None]) -> None:
    """Two families beside each other. One stands behind members in order, too: `x` comes first or not at all. Or the members of
    both have positions, in another order than that of the diagrams."""
    rng = random.Random(seed)
    subsets = [frozenset(each) for size in range(4) for each in itertools.combinations("abc", size)]
    told, others = (set(rng.sample(subsets, rng.randint(1, 6))) for _ in range(2))
    places = rng.sample(range(2, 9), 6)
    place = dict(zip(["x", "a", "b", "c", "a'", "b'", "c'"], [1, *places] if are_placed else [1, *[LAST] * 6], strict=True))

    def build(grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY, bounds != (0, None))
        first, second = ({name: diagrams.member(grammar.literal(name + mark)) for name in "abc"} for mark in ("", "'"))
        if are_placed:
            first = {name: diagrams.placed(member, place[name]) for name, member in first.items()}
            second = {name: diagrams.placed(member, place[name + "'"]) for name, member in second.items()}
        last = family(diagrams, first, told)
        if are_placed:
            either = [last, family(diagrams, second, others), diagrams.decision(1, [(diagrams.member(grammar.literal("x")), ())], EMPTY)]
            return grammar.seq(grammar.literal("{"), diagrams.walk(either, *bounds), grammar.literal("}"))
        before = diagrams.decision(1, [(diagrams.member(grammar.literal("x")), (last,))], last)
        walk = diagrams.walk([before, family(diagrams, second, others)], *bounds)
        return grammar.seq(grammar.literal("{"), walk, grammar.literal("}"))

    low, high = bounds
    wanted = {
        tuple(names)
        for a, b, x in itertools.product(told, others, (0, 1)) for each in [[*a, *(name + "'" for name in b)]]
        if max(low, 1) <= len(each) + x <= (high or 9)
        for order in itertools.permutations(each) for names in [("x", *order) if x else order]
        if sorted(names, key=place.__getitem__) == list(names)
    }  # fmt: skip
    grammar = Grammar()
    root = build(grammar)
    if not wanted:
        return
    constraint, twin = COMPILER.compile(Written(build)), Reference(grammar, root)
    for length in range(1, 5):
        for names in itertools.permutations(["a", "b", "c", "a'", "b'", "x"], length):
            text = "{" + ",".join(names) + "}"
            assert constraint.accepts(text) == (names in wanted), text
            if length < 3:
                assert twin.accepts(text.encode()) == (names in wanted), text
    for _ in range(10):
        state, text = constraint.start(), b""
        while not constraint.is_accepting(state):
            left = {token: constraint.min_tokens(constraint.advance(state, token)) for token in as_token_ids(constraint.mask(state))}
            assert min(left.values()) < constraint.min_tokens(state), text
            token = rng.choice(list(left))
            state, text = constraint.advance(state, token), text + TOKENS[token]
        assert tuple(text.decode()[1:-1].split(",")) in wanted, text


def test_what_cannot_be_met_is_no_walk() -> None:
    grammar = Grammar()
    diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY, is_counted=True)
    part = diagrams.counted(diagrams.member(grammar.literal("a")), 0, 2)
    assert diagrams.walk([part], 3, None) == diagrams.walk([part, FAIL], 0, None) == diagrams.walk([], 0, None) == FAIL
    assert Reference(grammar, diagrams.walk([part], 2, 9)).accepts(b"a,a")
