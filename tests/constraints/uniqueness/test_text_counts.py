"""How many texts there are of each length: counted along states, listed where they are few, and enough for every least budget."""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema
from maskwright.constraints.automaton.assembling.text_counts import count_texts
from maskwright.constraints.base.kinds import INFINITE, Kind
from maskwright.constraints.grammar.source import Limits

from ..automaton.test_grammar_loops import assembled
from .test_budgets_of_new_items import VOCABULARY, walked

LONGEST = 9  # characters of the texts that the twin looks at
PATTERNS = ["^[abx]*$", "a", "^a", "b$", "^(aa|b)*$", "[^x]", "x.*x", "^.{2,4}$", "ab", "^(a|bx)+$", "^x?[ab]{0,2}$"]
WALKS = 20


@pytest.mark.parametrize("seed", range(40))
def test_texts_are_counted_by_length(seed: int) -> None:
    rng = random.Random(seed)
    wanted, refused = ["^[abx]*$", *rng.sample(PATTERNS, rng.randint(1, 2))], rng.sample(PATTERNS, rng.randint(1, 2))
    texts = ["".join(text) for length in range(LONGEST + 1) for text in product("abx", repeat=length)]
    lengths = [len(text) for text in texts if all(re.search(each, text) for each in wanted) and not any(re.search(each, text) for each in refused)]
    claims = [*({"pattern": each} for each in wanted), *({"not": {"pattern": each}} for each in refused)]
    source, limits = JsonSchema({"type": "string", "allOf": claims}), Limits()
    grammar = source.new_grammar(limits)
    try:
        root = source.lower(grammar, limits)
    except ConstraintError:
        assert not lengths
        return
    machine = assembled(grammar, root)
    kinds = np.frombuffer(grammar.rows, np.int32).reshape(-1, 4)[:, 0]
    entered = np.flatnonzero(np.isin(kinds, (Kind.BOTH, Kind.NEGATE)) & (machine.nodes("cost")[: kinds.size] < INFINITE))
    if not lengths:
        assert entered.size == 0
        return
    for different in (2, 5, 9, 30):
        count = count_texts(machine, entered[-1], different)
        assert count is not None and count.alike == min(lengths.count(lengths[0]), different)
        is_finite = max(lengths) < LONGEST - 2
        if len(lengths) >= different:
            assert count.ample == lengths[different - 1] - lengths[0]
        elif is_finite:
            assert (count.ample, count.worst) == (INFINITE, lengths[-1] - lengths[0])


def test_no_more_texts_are_followed_than_are_asked_for() -> None:
    """Fifty words of which two are "the": thousands of states are equally far from an end behind half of them."""
    claims = [{"pattern": pattern} for pattern in (r"^(\S+\s+){49,99}\S+$", r"(.*\sthe\s){2}", "(.*-){1,3}")]
    source, limits = JsonSchema({"type": "string", "allOf": claims, "maxLength": 132}), Limits()
    grammar = source.new_grammar(limits)
    machine = assembled(grammar, source.lower(grammar, limits))
    kinds = np.frombuffer(grammar.rows, np.int32).reshape(-1, 4)[:, 0]
    entered = np.flatnonzero(np.isin(kinds, (Kind.BOTH, Kind.NEGATE)) & (machine.nodes("cost")[: kinds.size] < INFINITE))
    before = machine.n.states
    assert count_texts(machine, entered[-1], 9) == (0, INFINITE, 9)
    assert machine.n.states - before < 5_000


def some_pattern(rng: random.Random, depth: int = 3) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(["a", "b", "[ab]", "x", "[a-c]", "[0-9]", "ab"])
    inner = some_pattern(rng, depth - 1)
    if kind < 0.5:
        return inner + some_pattern(rng, depth - 1)
    if kind < 0.7:
        return f"({inner}|{some_pattern(rng, depth - 1)})"
    return f"({inner}){rng.choice(['*', '+', '?', '{2}', '{0,2}', '{1,3}', '{2,}'])}"


def a_language(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    kind = rng.choice(["pattern", "pattern", "not", "allOf", "anyOf", "enum", "length", "format"] if depth else ["pattern"])
    if kind == "not":
        refused = {"pattern": rng.choice(["[^x]", "[^ab]", "^a", "b$", "aa", ".", f"^{some_pattern(rng)}$"])}
        return {"not": refused} | ({"pattern": rng.choice(["^[ab]*$", "^[a-c]*$"])} if rng.random() < 0.5 else {})
    if kind in ("allOf", "anyOf"):
        return {kind: [a_language(rng, depth - 1) for _ in range(2)]}
    if kind == "enum":
        return {"enum": rng.sample(["", "a", "b", "ab", "aab", "considerable", "x", "xx", "be careful", "é"], rng.randint(2, 6))}
    if kind == "length":
        low = rng.randint(0, 3)
        return {"minLength": low, "maxLength": low + rng.randint(0, 3), "pattern": f"^{some_pattern(rng)}$"}
    if kind == "format":
        return {"format": rng.choice(["date", "ipv4", "uuid", "email", "hostname"])}
    return {"pattern": f"^{some_pattern(rng)}$"}


def compiled(compiler: Compiler, schema: dict[str, Any], keyword: str) -> Constraint | None:
    """With as many items, or members, as there are values for, from `keyword` down; None where there are none."""
    for count in range(schema[keyword], 1, -1):
        try:
            return compiler.compile(JsonSchema({**schema, keyword: count}, whitespace="compact"))
        except ConstraintError as error:
            assert "satisfies" in str(error), error
    return None


@pytest.mark.parametrize("place", ["items", "names", "in objects", "in arrays"])
@pytest.mark.parametrize("seed", range(12))
def test_least_budgets_end_in_texts(seed: int, place: str) -> None:
    rng = random.Random(f"{place} {seed}")
    language, count = {"type": "string", **a_language(rng)}, rng.choice([2, 3, 5, 9, 12])
    inside = {"type": "object", "properties": {"k": language, "o": {"type": "boolean"}}, "required": ["k"], "additionalProperties": False}
    item = {"items": language, "in objects": inside, "in arrays": {"type": "array", "items": language, "minItems": 1, "maxItems": 2}}
    schema, keyword = {"type": "array", "uniqueItems": True, "items": item.get(place), "minItems": count}, "minItems"
    if place == "names":
        schema, keyword = {"type": "object", "propertyNames": language, "additionalProperties": {"type": "null"}}, "minProperties"
        schema[keyword] = count
    constraint = compiled(Compiler(VOCABULARY), schema, keyword)
    for walk in range(WALKS if constraint is not None else 0):
        assert constraint is not None and constraint.accepts(walked(constraint, random.Random(walk), b""))


IMPOSSIBLE = [
    ({"pattern": "^[ab]$"}, 2), ({"not": {"pattern": r"[\s\S]"}}, 1), ({"pattern": "^[a-c]*$", "not": {"pattern": "[^x]"}}, 1),
    ({"allOf": [{"pattern": "^a*b?$"}, {"pattern": "^b*a?$"}]}, 3), ({"pattern": "^[ab]{0,2}$"}, 7),
]  # fmt: skip


@pytest.mark.parametrize(("language", "number"), IMPOSSIBLE)
def test_more_than_there_are_is_refused(language: dict[str, Any], number: int) -> None:
    compiler, text = Compiler(VOCABULARY), {"type": "string", **language}
    items = {"type": "array", "uniqueItems": True, "items": text}
    names = {"type": "object", "propertyNames": text, "additionalProperties": {"type": "null"}}
    for schema, keyword in ((items, "minItems"), (names, "minProperties")):
        if number > 1:
            assert compiler.compile(JsonSchema({**schema, keyword: number})) is not None
        with pytest.raises(ConstraintError, match="satisfies"):
            compiler.compile(JsonSchema({**schema, keyword: max(number, 1) + 1}))
