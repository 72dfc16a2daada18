"""`contains` of many kinds beside `maxItems`, `uniqueItems` and `prefixItems`: against brute force; and the plan with the fewest items."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, ConstraintLimit, JsonSchema
from maskwright.constraints.front_ends.json_schema.lowering.covers import Bounds, CoverSort, Plan, fewest
from maskwright.constraints.grammar.expression import Node
from maskwright.constraints.grammar.source import Limits

from ..json_schema.test_conditions import COMPILER, Schema, walk
from .test_contains import HUNDRED, compiled

VALUES: list[Any] = [0, 1, 2, 3, 4, "a", "b", "ab", None, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}]
BESIDE: dict[str, Schema] = {
    "maxItems": {"maxItems": 4},
    "uniqueItems": {"uniqueItems": True},
    "prefixItems": {"prefixItems": [{"type": ["integer", "object"]}, {}]},
    "unique behind a place": {"uniqueItems": True, "prefixItems": [{"type": ["integer", "string"]}]},
    "unique, bounded": {"uniqueItems": True, "maxItems": 5, "items": {"type": ["integer", "string", "object"]}},
}


def sets(rng: Random) -> Schema:
    return {"enum": rng.sample(VALUES, rng.randint(2, 4))}


def ranges(rng: Random) -> Schema:
    low = rng.randint(0, 3)
    return {"type": "integer", "minimum": low, "maximum": low + rng.randint(0, 2)}


def apart(rng: Random) -> Schema:
    return {"const": rng.choice(VALUES)}


def independent(rng: Random) -> Schema:
    return rng.choice([
        {"type": "object", "required": [rng.choice("ab")]}, {"type": "string", "pattern": rng.choice(["a", "b", "^a", "b$"])},
        {"type": "integer", "multipleOf": rng.choice([2, 3])}, {"required": ["a"]}, {"minimum": rng.randint(1, 3)},
    ])  # fmt: skip


def lists_of_values(rng: Random, schema: Schema, count: int) -> list[list[Any]]:
    """Short lists, and lists to which values are added as long as something is wanted."""
    of_kind = [[v for v in VALUES if jsonschema.Draft202012Validator(each["contains"]).is_valid(v)] for each in schema["allOf"]]
    lists = [list(items) for length in range(3) for items in itertools.product(VALUES[::2], repeat=length)]
    for _ in range(count):
        items: list[Any] = []
        for kind in rng.sample(of_kind, len(of_kind)):
            if not any(item in kind for item in items) and kind and rng.random() < 0.95:
                items.append(max(rng.sample(kind, min(3, len(kind))), key=lambda value: sum(value in each for each in of_kind)))
        rng.shuffle(items)
        lists += [items, [rng.choice(VALUES), *items]]
    return lists


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("kind", [sets, ranges, apart, independent], ids=lambda kind: kind.__name__)
def test_many_kinds(kind: Any, beside: str) -> None:
    rng = Random(len(beside))
    more = {"minContains": 2} if "uniqueItems" not in BESIDE[beside] else {}  # of few that differ what they take is not promised exactly
    wanted = [{"contains": kind(rng), **(more if rng.random() < 0.1 else {})} for _ in range(10)]
    schema: Schema = {"type": "array", "allOf": wanted, **BESIDE[beside]}
    validator, constraint = jsonschema.Draft202012Validator(schema), compiled(schema)
    for items in lists_of_values(rng, schema, 20):
        text = json.dumps(items, separators=(",", ":"))
        assert (constraint is not None and constraint.accepts(text)) == validator.is_valid(items), (schema, items)
    if constraint is not None:
        text_walked = walk(constraint, Random(1))
        assert validator.is_valid(json.loads(text_walked)), (schema, text_walked)


@pytest.mark.parametrize("beside", [{"maxItems": 150}, {"uniqueItems": True}, {"prefixItems": [{"type": ["integer", "string"]}] * 2}], ids=str)
@pytest.mark.parametrize("name", HUNDRED)
def test_a_hundred_kinds_make_a_small_grammar(name: str, beside: Schema) -> None:
    source, limits = JsonSchema({"type": "array", "allOf": [{"contains": each} for each in HUNDRED[name]], **beside}), Limits()
    grammar = source.new_grammar(limits)
    source.lower(grammar, limits)
    assert len(grammar) < 12_000


def test_the_last_item_is_in_all_that_is_missing() -> None:
    windows = [{"contains": {"type": "integer", "minimum": 2 * i, "maximum": 2 * i + 5}} for i in range(12)]
    constraint = COMPILER.compile(JsonSchema({"type": "array", "allOf": windows, "maxItems": 4}))
    assert constraint.accepts("[5,11,17,23]") and constraint.accepts("[23,4,11,16]")
    assert not constraint.accepts("[4,10,16]") and not constraint.accepts("[5,11,0,17,23]")
    for each in range(4):
        assert len(json.loads(walk(constraint, Random(each)))) == 4


def test_values_of_places_are_not_counted_on() -> None:
    """Behind the first item one of two values of a kind may be left, though two were wanted."""
    wanted = [{"enum": [1, 2, "c"]}, {"enum": [1, "d", "e"]}, {"enum": ["d", "f"]}, {"enum": ["g", 2]}, {"enum": ["h", "c"]}, {"enum": ["h", "g"]}]
    more: list[Schema] = [{"minContains": 3}, *[{}] * 5]
    schema: Schema = {
        "type": "array", "uniqueItems": True, "prefixItems": [{"type": ["integer", "string"]}],
        "allOf": [{"contains": each, **bounds} for each, bounds in zip(wanted, more, strict=True)],
    }  # fmt: skip
    constraint, validator = COMPILER.compile(JsonSchema(schema)), jsonschema.Draft202012Validator(schema)
    rng = Random(1)
    for _ in range(60):
        items = rng.sample([1, 2, "c", "d", "e", "f", "g", "h"], rng.randint(4, 8))
        assert constraint.accepts(json.dumps(items, separators=(",", ":"))) == validator.is_valid(items), items


def test_kinds_that_may_all_hold_beside_a_bound_are_refused_by_name() -> None:
    """The last item has to be of any set of kinds that may be missing, which are 2**n."""
    wanted = [{"contains": {"type": "string", "pattern": f"k{i}"}} for i in range(12)]
    with pytest.raises(ConstraintLimit) as caught:
        COMPILER.compile(JsonSchema({"type": "array", "allOf": wanted, "maxItems": 5}))
    assert caught.value.limit == "alternatives"


def test_a_saved_constraint_is_the_same(tmp_path: Path) -> None:
    rng = Random(3)
    schemas: list[Schema] = [
        {"type": "array", "allOf": [{"contains": sets(rng)} for _ in range(10)], "maxItems": 4},
        {"type": "array", "allOf": [{"contains": sets(rng)} for _ in range(10)], "prefixItems": [{}, {"type": "integer"}]},
    ]
    for schema in schemas:
        constraint = COMPILER.compile(JsonSchema(schema))
        constraint.save(tmp_path / "kept")
        loaded = Compiler(COMPILER.vocabulary).load(tmp_path / "kept")
        assert loaded.min_tokens(loaded.start()) == constraint.min_tokens(constraint.start())
        for items in lists_of_values(rng, schema, 10):
            text = json.dumps(items, separators=(",", ":"))
            assert loaded.accepts(text) == constraint.accepts(text)


# -- the plan with the fewest items ---------------------------------------------------------------------------------------------


def planned_items(plan: Plan, low: Sequence[int]) -> int:
    """How many items a plan comes to where the counters want `low`, as covers read it."""
    left, count = list(low), 0

    def take(sort: CoverSort, times: int) -> None:
        nonlocal count
        count += times
        for i in sort.counters:
            left[i] = max(left[i] - times, 0)

    for number, (sort, counter) in enumerate((*plan.planned, (CoverSort(Node(2), ()), 0))):
        for core in plan.cores if number == plan.before else ():
            while place := sum(left[i] * step for i, step in core.steps):
                take(core.table[place], 1)
        take(sort, left[counter] if number < len(plan.planned) else 0)
    assert not any(left)
    return count


def fewest_items(sorts: Sequence[CoverSort], low: tuple[int, ...]) -> int:
    """The fewest items that bring `low` to nothing, by looking at all that may be left."""
    reached, count = {low}, 0
    while not any(not any(each) for each in reached):
        behind = ((each, sort) for each in reached for sort in sorts)
        reached = {tuple(max(n - (i in sort.counters), 0) for i, n in enumerate(each)) for each, sort in behind}
        count += 1
    return count


@pytest.mark.parametrize("seed", range(40))
def test_the_plan_has_the_fewest_items_whatever_is_left(seed: int) -> None:
    rng = Random(seed)
    bounds: list[Bounds] = [(rng.choice([0, 0, 2]), 9), *((rng.choice([1, 1, 2]), None) for _ in range(rng.randint(2, 6)))]
    counted = {(0, *(i for i in range(1, len(bounds)) if rng.random() < 0.4)) for _ in range(rng.randint(2, 6))}
    sorts = [CoverSort(Node(2 + k), each) for k, each in enumerate(sorted(counted))]
    plan = fewest(sorts, bounds, 10_000)
    if plan is None:
        assert {i for each in counted for i in each} < set(range(len(bounds)))
        return
    for low in itertools.islice(itertools.product(*(range(low + 1) for low, _ in bounds)), 60):
        assert planned_items(plan, low) == fewest_items(sorts, low), (sorts, low)


def test_ranges_chains_and_trees_need_no_table() -> None:
    def sorts_of(sets_of_counters: list[list[int]]) -> list[CoverSort]:
        return [CoverSort(Node(2 + k), (0, *(1 + i for i in each))) for k, each in enumerate(sets_of_counters)]

    rng = Random(1)
    for count, counted in (
        (100, [list(range(i, min(i + 7, 100))) for i in range(100)]), (100, [[i, (i - 1) // 2] for i in range(1, 100)]),
        (100, [[i for i in range(100) if rng.random() < 0.5], list(range(100))]), (100, [[i] for i in range(100)]),
    ):  # fmt: skip
        numbers = rng.sample(range(count), count)
        plan = fewest(sorts_of([[numbers[i] for i in each] for each in counted]), [(0, 200), *[(1, None)] * count], 0)
        assert plan is not None and not plan.cores
