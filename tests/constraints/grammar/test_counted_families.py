"""Families of members in any order whose number is bounded: which may come next, and what is promised behind each."""

from __future__ import annotations

import itertools
import random

import pytest

from maskwright.constraints import Compiler, ConstraintError, Vocabulary
from maskwright.constraints.grammar.expression import EMPTY, FAIL, Grammar, Node
from maskwright.constraints.grammar.member_diagrams import MemberDiagrams
from maskwright.constraints.runtime.constraint import as_token_ids

from ..uniqueness.test_seen_values import Written

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
MEMBERS = ["a", "bb", "ccc", "d", "eeee"]
MOST_FREE = 2  # members "z", of which nothing is asked
Sets = frozenset[frozenset[str]]
ALL = [frozenset(some) for count in range(len(MEMBERS) + 1) for some in itertools.combinations(MEMBERS, count)]


def family(diagrams: MemberDiagrams, texts: dict[str, Node], sets: Sets, left: list[str]) -> Node:
    """The diagram of sets of the members that are left."""
    if not left:
        return EMPTY if sets else FAIL
    with_it = frozenset(each - {left[0]} for each in sets if left[0] in each)
    without = frozenset(each for each in sets if left[0] not in each)
    lower = family(diagrams, texts, without, left[1:])
    return diagrams.family(texts[left[0]], family(diagrams, texts, with_it, left[1:]), lower)


def fewest_bytes(sets: Sets, low: int, high: int | None, names: list[str]) -> int | None:
    """The fewest bytes of the members that have to come behind some, at least one, and of the commas between them."""
    told, found = set(names) - {"z"}, list[int]()
    for some in (each for each in sets if each >= told):
        for free in range(names.count("z"), MOST_FREE + 1):
            count, more = len(some) + free, [*(some - told), *["z"] * (free - names.count("z"))]
            if more and low <= count <= (99 if high is None else high):
                found.append(sum(map(len, more)) + len(more) - 1)
    return min(found, default=None)


@pytest.mark.parametrize("seed", range(40))
def test_members_behind_which_the_number_can_be_met_may_come_and_no_more_is_promised_than_they_take(seed: int) -> None:
    rng = random.Random(seed)
    sets: Sets = frozenset(rng.sample(ALL, rng.choice([1, 2, 5, 12, 30])))
    low = rng.randint(0, 5)
    high = rng.choice([None, rng.randint(max(low, 1), 7)])

    def build(grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY, True)
        texts = {name: diagrams.member(grammar.literal(name)) for name in [*MEMBERS, "z"]}
        parts = [family(diagrams, texts, sets, MEMBERS), diagrams.counted(texts["z"], 0, MOST_FREE)]
        return grammar.seq(grammar.literal("{"), diagrams.walk([part for part in parts if part != EMPTY], low, high))

    first = fewest_bytes(sets, low, high, [])
    if first is None:
        with pytest.raises(ConstraintError):
            COMPILER.compile(Written(build))
        return
    constraint = COMPILER.compile(Written(build))
    assert constraint.min_tokens(constraint.start()) == 1 + first
    for _ in range(8):
        state, text, may_go_on = constraint.start(), "", True
        while may_go_on and (not constraint.is_accepting(state) or rng.random() < 0.7):
            token = rng.choice(as_token_ids(constraint.mask(state)))
            following = constraint.advance(state, token)
            may_go_on = token != 256 and following is not None
            if may_go_on:
                assert following is not None
                state, text = following, text + chr(token)
            if text[-1] in "{,":
                names = text[1:].split(",")[:-1] if text != "{" else []
                allowed = {chr(each) for each in as_token_ids(constraint.mask(state))}
                more = [name for name in [*MEMBERS, "z"] if name not in names or (name == "z" and names.count("z") < MOST_FREE)]
                behind = {name: fewest_bytes(sets, low, high, [*names, name]) for name in more}
                assert constraint.min_tokens(state) == fewest_bytes(sets, low, high, names), text
                ends = {name for name in behind if is_whole(sets, low, high, [*names, name])}
                assert allowed == {name[0] for name in behind if behind[name] is not None or name in ends}, text


def is_whole(sets: Sets, low: int, high: int | None, names: list[str]) -> bool:
    """Whether some members are all that there are."""
    return frozenset(names) - {"z"} in sets and low <= len(names) <= (99 if high is None else high)
