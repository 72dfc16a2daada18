"""Objects in which one member decides most: what is asked of the others in each of its cases, in declared order and in any."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.base.kinds import LAST
from maskwright.constraints.front_ends.json_schema.algebra.claims import Conj, Equals
from maskwright.constraints.front_ends.json_schema.algebra.formulas import Has, any_of, negation
from maskwright.constraints.front_ends.json_schema.lowering.conditional_members import ConditionalMembers, Member
from maskwright.constraints.grammar.expression import EMPTY, Grammar, Node
from maskwright.constraints.grammar.member_diagrams import MemberDiagrams
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, VOCABULARY, Schema, walk
from ..uniqueness.test_seen_values import Written

KINDS = 12  # more than are compared as any other members are


def names(count: int, letter: str = "a") -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def kind(i: int, name: str = "kind") -> Schema:
    return {"properties": {name: {"const": i}}, "required": [name]}


def of_kinds(count: int, parts: list[Schema], **more: Any) -> Schema:
    others = {name: {"enum": [1, "x"]} for name in names(count)}
    return {"type": "object", "properties": {"kind": {"enum": list(range(count))}, **others}, "allOf": parts, **more}


def chain(count: int) -> Schema:
    return of_kinds(count, [{"if": kind(i), "then": {"required": [f"a{i}"]}} for i in range(count)], required=["kind"])


def values_of_others(count: int) -> Schema:
    return of_kinds(count, [{"if": kind(i), "then": {"properties": {f"a{i}": {"const": 1}}}} for i in range(count)])


def ranges(count: int) -> Schema:
    return of_kinds(
        count, [{"if": {"properties": {"kind": {"minimum": i}}, "required": ["kind"]}, "then": {"required": [f"a{i}"]}} for i in range(count)]
    )


def two_kinds(count: int) -> Schema:
    both = [{"if": {"allOf": [kind(i), kind(i, "mode")]}, "then": {"required": [f"a{i}"]}} for i in range(count)]
    schema = of_kinds(count, both, required=["kind", "mode"])
    return schema | {"properties": {"kind": schema["properties"]["kind"], "mode": {"enum": list(range(count))}, **schema["properties"]}}


def kind_may_lack(count: int) -> Schema:
    alternatives = [{"properties": {"kind": {"const": i}}, "required": [f"a{i}"]} for i in range(count)]
    return of_kinds(count, [{"oneOf": alternatives}], additionalProperties=False)


def others_forbidden(count: int) -> Schema:
    parts = [
        {"properties": {"kind": {"const": i}, **{name: False for name in names(count) if name != f"a{i}"}}, "required": [f"a{i}"]}
        for i in range(count)
    ]  # fmt: skip
    return of_kinds(count, [{"anyOf": parts}], required=["kind"], additionalProperties=False)


def forbidden_if(count: int) -> Schema:
    parts = [{"if": kind(i), "then": {"properties": {f"a{j}": False for j in (i, (i + 1) % count)}}} for i in range(count)]
    return of_kinds(count, parts)


FAMILIES = [chain, values_of_others, ranges, two_kinds, kind_may_lack, others_forbidden, forbidden_if]


def objects(schema: Schema, rng: Random, count: int) -> list[dict[str, Any]]:
    """Objects that mostly have what a kind needs, in the order of declaration."""
    found = []
    for _ in range(count):
        number = rng.randrange(KINDS)
        share = rng.choice([0.05, 0.3, 0.95])
        value: dict[str, Any] = {name: rng.choice([1, 1, "x"]) for name in names(KINDS) if rng.random() < share}
        if rng.random() < 0.7:
            value[f"a{number}"] = 1
        if "mode" in schema["properties"] and rng.random() < 0.9:
            value = {"mode": number if rng.random() < 0.7 else rng.randrange(KINDS), **value}
        found.append({"kind": number, **value} if rng.random() < 0.9 else value)
    order = list(schema["properties"])
    return [dict(sorted(each.items(), key=lambda item: order.index(item[0]))) for each in found]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("make", FAMILIES)
def test_accepts_what_is_valid_and_ends_in_it(make: Callable[[int], Schema], order: str, tmp_path: Path) -> None:
    schema, rng = make(KINDS), Random(1)
    constraint, validator = COMPILER.compile(JsonSchema(schema, property_order=order)), jsonschema.Draft202012Validator(schema)
    for value in objects(schema, rng, 40):
        members = list(value.items())
        if order == "any":
            rng.shuffle(members)
        assert constraint.accepts(json.dumps(dict(members), separators=(",", ":"))) == validator.is_valid(value), members
    constraint.save(tmp_path / "conditions")
    loaded = Compiler(VOCABULARY).load(tmp_path / "conditions")
    for seed in range(3):
        text = walk(constraint, Random(seed))
        assert validator.is_valid(json.loads(text)) and loaded.accepts(text), text


@pytest.mark.parametrize("make", [chain, kind_may_lack, others_forbidden])
def test_members_that_are_free_or_forbidden_take_no_nodes_in_any_order(make: Callable[[int], Schema]) -> None:
    """Twice as many kinds are twice the nodes, and not four times."""
    sizes = []
    for count in (20, 40):
        source, limits = JsonSchema(make(count), property_order="any"), Limits()
        grammar = source.new_grammar(limits)
        source.lower(grammar, limits)
        sizes.append(len(grammar))
    assert sizes[1] < 2.2 * sizes[0]


def test_cases_of_a_free_member_with_the_same_text_are_one() -> None:
    """`b` as a value may be taken for one that satisfies something, and for one that need not; `a0` to `a9` decide what it has to be."""
    some: Conj = (Equals("1", 1, "#"),)
    kinds: list[Conj] = [(Equals(f"{i}", i, "#"),) for i in range(10)]

    def build(grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY)
        texts, b = tuple([grammar.literal(f"a{i}") for i in range(10)]), grammar.literal("b")
        told = Member("a", LAST, texts, tuple([{kind: kind is own for kind in kinds} for own in kinds]), grammar.alt(*texts))
        other = Member("b", LAST, (b, b), ({some: True}, {some: False}), b)
        members = ConditionalMembers(grammar, diagrams, [told, other], lambda: None)
        wanted = [
            any_of((negation(Has("a", kind)), Has("b", some) if i % 2 else negation(Has("b", ())))) for i, kind in enumerate(kinds)
        ]  # fmt: skip
        (parts,) = members.alternatives([*wanted, Has("a", ())])
        return diagrams.walk(parts, 0, None)

    constraint = COMPILER.compile(Written(build))
    tried = ("b", "a1", "a2", "a1,b", "b,a1", "a2,b", "b,a2", "a1,b,b", "a1,a2")
    assert [text for text in tried if constraint.accepts(text)] == ["a2", "a1,b", "b,a1"]
    after_b = constraint.advance(constraint.advance(constraint.start(), ord("b")), ord(","))
    assert after_b is not None and constraint.min_tokens(after_b) == 2
    state = constraint.advance(constraint.advance(after_b, ord("a")), ord("2"))
    assert state is None
