"""Bags: members in any order, each part between its bounds, all together between the totals."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, ConstraintError, Limits
from maskwright.constraints.grammar.expression import EMPTY, FAIL, Event, Grammar, Node
from maskwright.constraints.grammar.unordered_members import bags_less
from maskwright.constraints.runtime.constraint import as_token_ids

from ..grammars import EOS, TOKENS, VOCABULARY, Recipe, Twin
from ..runtime.test_constraint import compiled

COMPILER = Compiler(VOCABULARY)

high = st.one_of(st.none(), st.integers(0, 4))
bounds = st.lists(st.tuples(st.integers(0, 2), high), min_size=3, max_size=3)


@dataclass(frozen=True)
class Built:
    """A source from a function that builds it."""

    build: Callable[[Grammar], Node]

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return self.build(grammar)


def letters(grammar: Grammar, parts: list[tuple[int, int | None]], low: int, high: int | None) -> Node:
    """A bag of the letters a, b, c."""
    return grammar.bag([(grammar.literal(name), *part) for name, part in zip("abc", parts, strict=False)], low, high)


def counts_match(text: str, parts: list[tuple[int, int | None]], low: int, high: int | None) -> bool:
    each = [(text.count(name), *part) for name, part in zip("abc", parts, strict=False)]
    return all(a <= n and (b is None or n <= b) for n, a, b in [*each, (len(text), low, high)])


@given(bounds, st.integers(0, 5), high)
@settings(max_examples=60)
def test_a_bag_of_letters_is_what_counting_says(parts: list[tuple[int, int | None]], low: int, high: int | None) -> None:
    texts = ["".join(letters) for length in range(6) for letters in itertools.product("abc", repeat=length)]
    wanted = {text for text in texts if counts_match(text, parts, low, high)}
    grammar = Grammar()
    node = letters(grammar, parts, low, high)
    if node == FAIL:
        assert not wanted
        return
    constraint = COMPILER.compile(Built(lambda grammar: letters(grammar, parts, low, high)))
    assert {text for text in texts if constraint.accepts(text)} == wanted


@given(bounds, bounds, st.tuples(st.integers(0, 5), high), st.tuples(st.integers(0, 5), high))
@settings(max_examples=200)
def test_equal_bags_of_letters_are_one_node(left: Any, right: Any, total: Any, other: Any) -> None:
    counts = list(itertools.product(range(9), repeat=3))
    within = [
        {n for n in counts if counts_match("".join(map(str.__mul__, "abc", n)), parts, *totals)}
        for parts, totals in ((left, total), (right, other))
    ]
    grammar = Grammar()
    nodes = [letters(grammar, parts, *totals) for parts, totals in ((left, total), (right, other))]
    assert (within[0] == within[1]) == (nodes[0] == nodes[1])


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.one_of(st.none(), st.integers(2, 4), st.just(0))), max_size=5))
@settings(max_examples=200)
def test_bags_with_one_less_are_those_made_alone(named: list[tuple[str, int, int | None]]) -> None:
    grammar = Grammar()
    parts = [(grammar.literal(name), 0 if high == 0 else low, high) for name, low, high in named]
    for i, (less, (body, low, high)) in enumerate(zip(bags_less(grammar, parts), parts, strict=True)):
        one_less = body, max(low - 1, 0), None if high is None else high - 1
        assert less == (FAIL if high == 0 else grammar.bag([*parts[:i], one_less, *parts[i + 1 :]]))


def test_normal_forms() -> None:
    grammar = Grammar()
    a, b, c = map(grammar.literal, "abc")
    assert grammar.bag([]) == EMPTY and grammar.bag([], 1) == FAIL
    assert grammar.bag([(a, 0, 0), (FAIL, 0, None)]) == EMPTY and grammar.bag([(FAIL, 1, None), (a, 0, 1)]) == FAIL
    assert grammar.bag([(a, 0, None)], 2, 7) == grammar.repeat(a, 2, 7)
    assert grammar.bag([(a, 0, 3), (b, 0, 0)], 1) == grammar.repeat(a, 1, 3)
    assert grammar.bag([(a, 2, 2), (b, 1, 1)], 0, 2) == FAIL and grammar.bag([(a, 0, 2), (b, 0, 1)], 4) == FAIL
    assert grammar.bag([(a, 3, 1)]) == FAIL and grammar.bag([(a, 0, None)], 3, 2) == FAIL
    assert grammar.bag([(a, 1, 1), (b, 2, 2)], 3, 3) == grammar.bag([(b, 2, 2), (a, 1, 1)])
    assert grammar.bag([(a, 0, 1), (b, 0, 1), (a, 0, 1)]) == grammar.bag([(a, 0, 2), (b, 0, 1)])
    assert grammar.bag([(a, 2, 2), (b, 0, None), (c, 0, None)], 0, 2) == grammar.repeat(a, 2, 2)
    with pytest.raises(ConstraintError, match="empty"):
        grammar.bag([(grammar.repeat(a), 0, None), (b, 0, None)])


def test_a_repeated_bag_loses_its_empty_member() -> None:
    grammar = Grammar()
    bag = grammar.bag([(grammar.literal("a"), 0, 2), (grammar.literal("b"), 0, 2)])
    assert grammar.repeat(bag, 2, 5) == grammar.repeat(grammar.repeat(bag, 1, 1), 0, 5)


small = st.sampled_from([("literal", "a"), ("literal", "ab"), ("literal", "ba"), ("chars", "ab"), ("literal", "bb")])
part = st.tuples(small, st.integers(0, 2), high)
bags = st.tuples(st.just("bag"), st.lists(part, min_size=1, max_size=3).map(tuple), st.integers(0, 4), high)
bags_of_bags = st.tuples(
    st.just("bag"),
    st.tuples(part, st.tuples(st.tuples(st.just("seq"), st.just(("literal", "(")), bags), st.integers(0, 1), high)),
    st.integers(0, 3), high,
)  # fmt: skip
within = st.tuples(st.sampled_from(["both", "without"]), bags, st.one_of(bags, st.tuples(st.just("repeat"), small, st.just(0), high)))
sources = st.one_of(bags, bags_of_bags, within, st.tuples(st.just("seq"), bags, small)).map(Recipe)


@given(sources, st.integers(0, 9))
@settings(max_examples=60)
def test_masks_and_budgets_of_overlapping_parts_equal_brute_force(source: Recipe, seed: int) -> None:
    constraint, twin, rng = compiled(source), Twin(source, alphabet=b"ab()", horizon=12), random.Random(seed)
    state, position = constraint.start(), twin.start()
    for _ in range(5):
        legal = set(as_token_ids(constraint.mask(state)))
        assert legal == twin.mask(position)
        rest = constraint.min_tokens(state)
        assert (rest == 0) == constraint.is_accepting(state)
        within = set(as_token_ids(constraint.mask(state, rest)))
        assert within and within <= legal
        choices = sorted(legal - {EOS})
        if not choices:
            break
        after = {token: constraint.advance(state, token) for token in choices}
        assert rest == 0 or min(constraint.min_tokens(s) for s in after.values() if s is not None) <= rest - 1
        token = rng.choice(choices)
        state, position = after[token], twin.reference.run(TOKENS[token], position)
        assert state is not None


@given(st.integers(0, 2), st.integers(0, 1), st.integers(2, 3), st.integers(0, 9))
@settings(max_examples=20)
def test_bags_inside_recursion_equal_brute_force(nested: int, least: int, most: int, seed: int) -> None:
    def build(grammar: Grammar) -> Node:
        rule = grammar.rule("value")
        parts = [(grammar.call(rule), nested, 2), (grammar.literal("b"), least, None), (grammar.literal("ab"), 0, 1)]
        grammar.define(rule, grammar.alt(grammar.literal("a"), grammar.seq(grammar.literal("("), grammar.bag(parts, 1, most), grammar.literal(")"))))
        return grammar.call(rule)

    source = Built(build)
    twin, rng, constraint = Twin(source, alphabet=b"ab()", horizon=7), random.Random(seed), COMPILER.compile(source)
    state, position, opened = constraint.start(), twin.start(), 0
    while opened < 2:
        legal = set(as_token_ids(constraint.mask(state)))
        short = {token for token in legal if token == EOS or TOKENS[token].count(b"(") + opened < 3}
        assert short == {token for token in twin.mask(position) if token == EOS or TOKENS[token].count(b"(") + opened < 3}
        if not legal - {EOS}:
            break
        token = rng.choice(sorted(legal - {EOS}))
        opened += TOKENS[token].count(b"(")
        after = constraint.advance(state, token)
        assert after is not None
        state, position = after, twin.reference.run(TOKENS[token], position)


def test_large_bounds_are_counters() -> None:
    def build(grammar: Grammar) -> Node:
        a, b, c = map(grammar.literal, "abc")
        return grammar.bag([(a, 1, 1_000_000), (b, 999_999, 1_000_000), (c, 0, None)], 0, 1_000_005)

    begun = time.process_time()
    constraint = COMPILER.compile(Built(build))
    state = constraint.advance_bytes(constraint.start(), b"cccca")
    assert state is not None and set(as_token_ids(constraint.mask(state))) >= {ord("a"), ord("b"), ord("c")}
    state = constraint.advance_bytes(state, b"c")
    assert state is not None and set(as_token_ids(constraint.mask(state))) == {ord("b")}
    assert constraint.statistics["states"] < 100 and constraint.min_tokens(state) == 999_999 and time.process_time() - begun < 5


def test_a_part_without_members_cannot_be_counted_on() -> None:
    def build(grammar: Grammar) -> Node:
        nothing = grammar.both(grammar.literal("x"), grammar.literal("y"))
        parts = [(nothing, 0, None), (grammar.literal("a"), 0, 2), (grammar.literal("b"), 0, 2)]
        return grammar.alt(grammar.seq(grammar.literal("n"), grammar.bag(parts, 5)), grammar.bag(parts, 4))

    constraint = COMPILER.compile(Built(build))
    assert set(as_token_ids(constraint.mask(constraint.start()))) >= {ord("a"), ord("b")}
    assert ord("n") not in set(as_token_ids(constraint.mask(constraint.start())))
    assert constraint.accepts("abab") and not constraint.accepts("aba") and constraint.min_tokens(constraint.start()) == 1


def test_members_of_an_object_in_any_order_with_remembered_keys() -> None:
    def build(grammar: Grammar) -> Node:
        def key(inside: Node) -> Node:
            ends = grammar.mark(b'"', Event.KEY_OPEN), grammar.mark(b'"', Event.KEY_CLOSE)
            return grammar.seq(ends[0], inside, ends[1], grammar.literal(":1,"))

        names = grammar.words([b"ab", b"ac"])
        others = grammar.without(grammar.repeat(grammar.chars([(97, 99)]), 0, 3), names)
        members = grammar.bag([(key(names), 2, 2), (key(others), 0, None)], 0, 3)
        return grammar.seq(grammar.mark(b"{", Event.OBJECT_OPEN), members, grammar.mark(b"}", Event.OBJECT_CLOSE))

    constraint = COMPILER.compile(Built(build))
    assert constraint.accepts('{"ab":1,"ac":1,}') and constraint.accepts('{"ac":1,"b":1,"ab":1,}')
    assert not constraint.accepts('{"ab":1,"ab":1,}') and not constraint.accepts('{"ab":1,"b":1,}')
    assert not constraint.accepts('{"ac":1,"b":1,"ab":1,"c":1,}')
    state = constraint.advance_bytes(constraint.start(), b'{"a":1,"')
    assert state is not None and "'a'" in constraint.explain(state, ord("c")).expected


def test_many_names_cost_no_more_than_their_tree() -> None:
    names = [f"name{i:03d}".encode() for i in range(600)]

    def build(grammar: Grammar) -> Node:
        tree = grammar.seq(grammar.words(names), grammar.literal(","))
        return grammar.bag([(tree, 3, 3), (grammar.seq(grammar.chars([(97, 99)]), grammar.literal(",")), 0, None)], 0, 500)

    constraint = COMPILER.compile(Built(build))
    state = constraint.start()
    for text in [*names[:2], b"a", b"b", b"c"] * 20:
        constraint.mask(state)
        after = constraint.advance_bytes(state, text + b",")
        state = after if after is not None else state
    assert constraint.statistics["states"] < 5000
