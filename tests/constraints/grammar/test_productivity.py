"""Rules without any text, against the lengths of shortest texts, found by trying all rules until nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.base.errors import ConstraintError
from maskwright.constraints.grammar.expression import EMPTY, FAIL, Event, Grammar, Node, Rule
from maskwright.constraints.grammar.productivity import barren_rules

NUM_RULES = 4
ENDLESS = 1 << 40
Body = tuple[str, ...] | tuple[str, list["Body"]]

leaves = st.one_of(st.just(("text",)), st.just(("none",)), st.tuples(st.just("call"), st.sampled_from("0123")))
bodies = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(["seq", "alt", "any", "some", "bag", "key"]), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=6,
)  # fmt: skip


def built(grammar: Grammar, rules: list[Rule], body: Body) -> Node:
    match body:
        case ("text",):
            return grammar.literal("x")
        case ("none",):
            return FAIL
        case ("call", name):
            return grammar.call(rules[int(str(name))])
    parts = [built(grammar, rules, part) for part in body[1]]  # type: ignore[arg-type]
    match body[0]:
        case "alt":
            return grammar.alt(*parts)
        case "any":
            return grammar.repeat(parts[0])
        case "some":
            return grammar.repeat(parts[0], 2, 5)
        case "bag":
            return grammar.bag([(part, i % 2, i + 1) for i, part in enumerate(parts) if part != EMPTY], 2)
        case "key":
            return grammar.mark(b'"', Event.KEY_OPEN, parts[0])
    return grammar.seq(*parts)


def length(body: Body, of_rules: Sequence[int]) -> int:
    """Of the shortest text."""
    match body:
        case ("text",):
            return 1
        case ("none",):
            return ENDLESS
        case ("call", name):
            return of_rules[int(str(name))]
    parts = [length(part, of_rules) for part in body[1]]  # type: ignore[arg-type]
    match body[0]:
        case "alt":
            return min(parts)
        case "any":
            return 0
        case "some":
            return min(2 * parts[0], ENDLESS)
        case "bag":
            copies = [part for i, part in enumerate(parts) for _ in range(i % 2, i + 1)]
            needed = parts[1::2]
            return min(sum(needed) + sum(sorted(copies)[: max(2 - len(needed), 0)]) + ENDLESS * (len(needed) + len(copies) < 2), ENDLESS)
        case "key":
            return min(parts[0] + 1, ENDLESS)
    return min(sum(parts), ENDLESS)


@settings(max_examples=300, deadline=None)
@given(st.lists(bodies, min_size=NUM_RULES, max_size=NUM_RULES))
def test_barren_rules_have_no_shortest_text(rules: list[Body]) -> None:
    grammar = Grammar()
    numbers = [grammar.rule(str(i)) for i in range(NUM_RULES)]
    try:
        for number, body in zip(numbers, rules, strict=True):
            grammar.define(number, built(grammar, numbers, body))
    except ConstraintError:  # a member of a bag may be empty
        return
    least = [ENDLESS] * NUM_RULES
    for _ in range(NUM_RULES):
        least = [length(body, least) for body in rules]
    assert barren_rules(grammar) == {number for number, shortest in zip(numbers, least, strict=True) if shortest >= ENDLESS}


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_long_chain_of_rules(is_backwards: bool) -> None:
    """Each needs the next one; nothing recursive, and no square of their number."""
    grammar = Grammar()
    rules = [grammar.rule(str(i)) for i in range(20_000)]
    chain = rules[::-1] if is_backwards else rules
    for rule, following in pairwise(chain):
        grammar.define(rule, grammar.seq(grammar.literal("x"), grammar.call(following)))
    grammar.define(chain[-1], grammar.literal("x"))
    assert barren_rules(grammar) == set()
    grammar.define(chain[-1], grammar.call(chain[0]))
    assert barren_rules(grammar) == set(rules)
