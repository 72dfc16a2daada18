"""Conditions that hang together in a path, a ring or a tree cost little in any order, however their names are written."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from random import Random

import jsonschema
import pytest

from maskwright.constraints import JsonSchema
from maskwright.constraints.base.kinds import LAST
from maskwright.constraints.front_ends.json_schema.algebra.claims import Conj, Equals
from maskwright.constraints.front_ends.json_schema.algebra.formulas import Has, any_of, negation
from maskwright.constraints.front_ends.json_schema.lowering.conditional_members import ConditionalMembers, Member
from maskwright.constraints.front_ends.json_schema.lowering.member_order import in_narrow_order
from maskwright.constraints.grammar.expression import EMPTY, Grammar, Node
from maskwright.constraints.grammar.member_diagrams import MemberDiagrams
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, Schema, closed, walk
from ..uniqueness.test_seen_values import Written

Edges = list[tuple[int, int]]


def path(count: int) -> Edges:
    return list(itertools.pairwise(range(count)))


def ring(count: int) -> Edges:
    return [*path(count), (count - 1, 0)]


def tree(count: int) -> Edges:
    return [((i - 1) // 2, i) for i in range(1, count)]


def star_of_paths(count: int) -> Edges:
    return [(0 if i <= 5 else i - 5, i) for i in range(1, count)]


SHAPES = [path, ring, tree, star_of_paths]
shape = pytest.mark.parametrize("shape", SHAPES)


def schema_of(edges: Edges, rng: Random) -> Schema:
    """One of each two members is there; names stand in no order."""
    count = 1 + max(map(max, edges))
    names = [f"m{i}" for i in range(count)]
    rng.shuffle(names)
    conditions = [{"anyOf": [{"required": [names[a]]}, {"required": [names[b]]}]} for a, b in edges]
    rng.shuffle(conditions)
    return closed(sorted(names), allOf=conditions)


@shape
def test_a_hundred_members_make_a_small_grammar(shape: Callable[[int], Edges]) -> None:
    source, limits = JsonSchema(schema_of(shape(100), Random(1)), property_order="any"), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 4_000


@shape
@pytest.mark.parametrize("seed", range(2))
def test_all_sets_of_members(shape: Callable[[int], Edges], seed: int) -> None:
    rng = Random(seed)
    schema = schema_of(shape(7), rng)
    constraint, validator = COMPILER.compile(JsonSchema(schema, property_order="any")), jsonschema.Draft202012Validator(schema)
    for present in itertools.product((False, True), repeat=7):
        names = [f"m{i}" for i, there in enumerate(present) if there]
        rng.shuffle(names)
        value = dict.fromkeys(names, 1)
        assert constraint.accepts(json.dumps(value, separators=(",", ":"))) == validator.is_valid(value), (schema, value)
    for each in range(3):
        assert validator.is_valid(json.loads(walk(constraint, Random(each))))


def test_cases_with_the_same_text_are_one_member() -> None:
    """A value that may be taken for one that satisfies something, and for one that need not."""
    some: Conj = (Equals("1", 1, "#"),)

    def build(grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY)
        a, b = map(grammar.literal, "ab")
        told = Member("a", LAST, (a, a), ({some: True}, {some: False}), a)
        members = ConditionalMembers(grammar, diagrams, [told, Member("b", LAST, (b,), ({},), b)], lambda: None)
        ((part,),) = members.alternatives([any_of((negation(Has("a", some)), Has("b", ())))])
        return diagrams.walk([part], 0, None)

    constraint = COMPILER.compile(Written(build))
    assert [text for text in ("a", "b", "a,b", "b,a", "a,a") if constraint.accepts(text)] == ["a", "b", "a,b", "b,a"]


def test_an_order_has_each_name_once_and_neighbours_near() -> None:
    names = [f"m{i}" for i in range(50)]
    shuffled = Random(1).sample(names, len(names))
    order = in_narrow_order(names, [any_of((Has(a, ()), Has(b, ()))) for a, b in itertools.pairwise(shuffled)])
    assert order in (shuffled, shuffled[::-1])
    assert in_narrow_order(["z", "a"], []) == ["z", "a"]
