"""Covers: items that several conditions count at a time, beside one another."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from maskwright.constraints import Compiler, Vocabulary
from maskwright.constraints.front_ends.json_schema.lowering.covers import (
    Bounds,
    CoverSort,
    cover,
    fewest,
    plan,
    plan_of_place,
    possible,
)
from maskwright.constraints.grammar.expression import FAIL, Grammar, Node
from maskwright.constraints.grammar.productivity import barren_rules
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.runtime.constraint import as_token_ids

from ..uniqueness.test_seen_values import Written

TOKENS = [*(bytes([byte]) for byte in range(256)), b"a,", b",b", b"a,b", b"[a", b"c]", b",d", b"b,a,d]"]
COMPILER = Compiler(Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)]))
LETTERS = "abcd"


@dataclass(frozen=True)
class Counted:
    """Letters; each counter counts some of them, and has bounds."""

    bounds: tuple[Bounds, ...]
    counted: tuple[tuple[int, ...], ...]  # of each letter, its counters

    def build(self, grammar: Grammar) -> Node:
        every = [CoverSort(grammar.literal(letter), counters) for letter, counters in zip(LETTERS, self.counted, strict=False)]
        sorts = possible(every, self.bounds)
        planned = plan(sorts, self.bounds)
        assert planned is not None
        comma = grammar.literal(",")
        settled = grammar.repeat(grammar.seq(comma, grammar.alt(*(sort.text for sort in sorts))))
        _, first = cover(grammar, sorts, self.bounds, comma, settled, planned)
        empty = grammar.literal("") if self.are_met("") else FAIL
        return grammar.seq(grammar.literal("["), grammar.alt(empty, first), grammar.literal("]"))

    def are_met(self, letters: str) -> bool:
        found = [sum(counter in self.counted[LETTERS.index(letter)] for letter in letters) for counter in range(len(self.bounds))]
        return all(low <= count and (high is None or count <= high) for count, (low, high) in zip(found, self.bounds, strict=True))


def some(seed: int) -> Counted:
    """Conditions that can be planned, and want or bound something."""
    rng = random.Random(seed)
    while True:
        lows = [rng.choice([0, 1, 1, 2]) for _ in range(rng.randint(1, 4))]
        bounds = tuple((low, low + rng.randint(0, 2) if rng.random() < 0.4 else None) for low in lows)
        letters = LETTERS[: rng.randint(1, 4)]
        counted = tuple(tuple(i for i in range(len(bounds)) if rng.random() < 0.5) for _ in letters)
        sorts = [CoverSort(Node(2 + i), each) for i, each in enumerate(counted)]
        if any(low or high for low, high in bounds) and plan(possible(sorts, bounds), bounds) is not None:
            return Counted(bounds, counted)


@pytest.mark.parametrize("seed", range(30))
def test_items_are_those_that_all_counters_allow(seed: int) -> None:
    counted = some(seed)
    grammar = Grammar()
    twin, constraint = Reference(grammar, counted.build(grammar)), COMPILER.compile(Written(counted.build))
    for length in range(6):
        for letters in itertools.product(LETTERS[: len(counted.counted)], repeat=length):
            text, is_right = "[" + ",".join(letters) + "]", counted.are_met("".join(letters))
            assert constraint.accepts(text) == is_right, (counted, text)
            if length < 4:
                assert twin.accepts(text.encode()) == is_right, (counted, text)


@pytest.mark.parametrize("seed", range(30))
def test_every_text_can_be_ended_in_the_tokens_promised(seed: int) -> None:
    counted = some(seed)
    constraint = COMPILER.compile(Written(counted.build))
    for walk in range(10):
        rng, state, text = random.Random(walk), constraint.start(), b""
        while not constraint.is_accepting(state):
            left = {}
            for token in as_token_ids(constraint.mask(state)):
                after = constraint.advance(state, token)
                assert after is not None
                left[token] = constraint.min_tokens(after)
            assert min(left.values()) < constraint.min_tokens(state), (counted, text)
            token = rng.choice(list(left)) if len(text) < 60 else min(left, key=left.__getitem__)
            following = constraint.advance(state, token)
            assert following is not None
            state, text = following, text + TOKENS[token]
        assert counted.are_met(text.decode()[1:-1].replace(",", "")), (counted, text)


@pytest.mark.parametrize("seed", range(5))
def test_a_saved_cover_is_the_same(seed: int, tmp_path: Path) -> None:
    counted = some(seed)
    constraint = COMPILER.compile(Written(counted.build))
    constraint.save(tmp_path / "cover")
    loaded = Compiler(COMPILER.vocabulary).load(tmp_path / "cover")
    for length in range(4):
        for letters in itertools.product(LETTERS[: len(counted.counted)], repeat=length):
            assert loaded.accepts("[" + ",".join(letters) + "]") == counted.are_met("".join(letters))
    assert loaded.min_tokens(loaded.start()) == constraint.min_tokens(constraint.start())


def test_what_is_counted_side_by_side_costs_its_sum() -> None:
    """Each item counts for two of a hundred conditions: the sets of conditions that may have been met are 2**100."""
    def build(grammar: Grammar) -> Node:
        bounds = [(1, None)] * 100
        sorts = [CoverSort(grammar.literal(f"{i:02}"), tuple(sorted({i, (i + 1) % 100}))) for i in range(100)]
        comma = grammar.literal(",")
        settled = grammar.repeat(grammar.seq(comma, grammar.alt(*(sort.text for sort in sorts))))
        return cover(grammar, sorts, bounds, comma, settled, plan(sorts, bounds))[1]

    constraint = COMPILER.compile(Written(build))
    assert constraint.min_tokens(constraint.start()) == 149  # every other item, and commas between
    items = random.Random(1).sample([f"{i:02}" for i in range(0, 100, 2)], 50)
    assert constraint.accepts(",".join(items)) and not constraint.accepts(",".join(items[1:]))
    assert constraint.statistics["states"] < 40_000  # some hundreds for each item that is read


@pytest.mark.parametrize("seed", range(6))
def test_the_first_items_may_have_a_row_of_their_own(seed: int) -> None:
    rng = random.Random(seed)
    bounds: list[Bounds] = [(0, None), *((rng.choice([1, 1, 2]), None) for _ in range(3))]
    rows = [[(0, *(i for i in (1, 2, 3) if rng.random() < 0.5)) for _ in letters] for letters in ("ab", "cd", LETTERS)]
    rows[2][0] = (0, 1, 2, 3)  # so that all can be had in the end
    letters_of = ["ab", "cd", LETTERS]

    def build(grammar: Grammar) -> Node:
        comma, settled, following = grammar.literal(","), FAIL, FAIL
        for letters, counted in reversed(list(zip(letters_of, rows, strict=True))):
            sorts = [CoverSort(grammar.literal(letter), each) for letter, each in zip(letters, counted, strict=True)]
            further = grammar.seq(comma, grammar.alt(*(sort.text for sort in sorts)))
            settled = grammar.repeat(further) if following == FAIL else grammar.optional(grammar.seq(further, settled))
            planned = plan(sorts, bounds) if following == FAIL else plan_of_place(sorts, bounds)
            assert planned is not None
            following, first = cover(grammar, sorts, bounds, comma, settled, planned, following)
        return grammar.seq(grammar.literal("["), first, grammar.literal("]"))

    def is_right(letters: str) -> bool:
        places = [letters_of[min(i, 2)] for i in range(len(letters))]
        if not letters or any(letter not in place for letter, place in zip(letters, places, strict=True)):
            return False
        counted = [rows[min(i, 2)][places[i].index(letter)] for i, letter in enumerate(letters)]
        return all(sum(i in each for each in counted) >= low for i, (low, _) in enumerate(bounds))

    grammar = Grammar()
    twin, constraint = Reference(grammar, build(grammar)), COMPILER.compile(Written(build))
    for length in range(5):
        for letters in itertools.product(LETTERS, repeat=length):
            text, expected = "[" + ",".join(letters) + "]", is_right("".join(letters))
            assert constraint.accepts(text) == twin.accepts(text.encode()) == expected, (bounds, rows, text)


@pytest.mark.parametrize("seed", range(6))
def test_where_all_items_are_bounded_what_is_wanted_fits(seed: int) -> None:
    """The plan has the fewest items, by a table where the sets of counters are as any."""
    rng = random.Random(seed)
    sets = [(0, *sorted(rng.sample(range(1, 6), 2))) for _ in LETTERS]
    wanted = sorted({i for each in sets for i in each} - {0})
    bounds: list[Bounds] = [(rng.choice([0, 3]), 3), *((1 if i in wanted else 0, None) for i in range(1, 6))]

    def build(grammar: Grammar) -> Node:
        comma, sorts = grammar.literal(","), [CoverSort(grammar.literal(letter), each) for letter, each in zip(LETTERS, sets, strict=True)]
        planned = fewest(sorts, bounds, 1_000)
        assert planned is not None
        return grammar.alt(grammar.literal("none"), cover(grammar, sorts, bounds, comma, comma, planned)[1])

    constraint = COMPILER.compile(Written(build))
    for length in range(1, 5):
        for letters in itertools.product(LETTERS, repeat=length):
            counted = {i for letter in letters for i in sets[LETTERS.index(letter)]}
            assert constraint.accepts(",".join(letters)) == (bounds[0][0] <= length <= 3 and counted.issuperset(wanted)), (sets, letters)


def test_no_plan_where_one_might_have_too_many() -> None:
    a, b = Node(2), Node(3)
    assert plan([CoverSort(a, (0, 1))], [(1, 2), (0, 1)]) is None  # what the first wants, the second may be full of
    assert plan([CoverSort(a, (0, 1)), CoverSort(b, (0,))], [(1, 2), (0, 1)]) is not None
    assert plan([CoverSort(a, (1,))], [(1, None), (1, None)]) is None  # nothing counts for the first


def test_a_cover_of_itself_has_no_text() -> None:
    grammar = Grammar()
    inside = grammar.rule("inside")
    again = grammar.seq(grammar.literal("("), grammar.call(inside), grammar.literal(")"))
    sorts = [CoverSort(again, (0,)), CoverSort(grammar.literal("x"), (1,))]
    comma, bounds = grammar.literal(","), [(1, None), (0, None)]
    first = cover(grammar, sorts, bounds, comma, grammar.repeat(comma), plan(sorts, bounds))[1]
    grammar.define(inside, first)
    assert barren_rules(grammar) == {inside}
    grammar.define(inside, grammar.alt(first, grammar.literal("y")))
    assert not barren_rules(grammar)


def test_a_cover_inside_of_a_sort_of_its_own_is_measured() -> None:
    """One item may hold all of this again; the plan is that of the texts that are known first."""
    def build(grammar: Grammar) -> Node:
        inside = grammar.rule("inside")
        again = grammar.seq(grammar.literal("("), grammar.call(inside), grammar.literal(")"))
        sorts = [CoverSort(again, (0, 1)), CoverSort(grammar.literal("a"), (0,)), CoverSort(grammar.literal("b"), (1,))]
        comma, bounds = grammar.literal(","), [(1, None), (2, None)]
        settled = grammar.repeat(grammar.seq(comma, grammar.alt(*(sort.text for sort in sorts))))
        grammar.define(inside, cover(grammar, sorts, bounds, comma, settled, plan(sorts, bounds))[1])
        return grammar.call(inside)

    constraint = COMPILER.compile(Written(build))
    assert constraint.min_tokens(constraint.start()) <= 5
    assert constraint.accepts("(a,b,b),(b,a,b)") and constraint.accepts("(b,b,a),b") and not constraint.accepts("(a,b,b)")
