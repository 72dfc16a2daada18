"""Whether a given value satisfies a conjunction: the filter of `enum` and `const`, and of names listed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ....grammar.matcher import Matcher
from ..documents.values import atom_of, equality_key, is_integral
from ..strings.string_shape import StringShape
from ..strings.strings import Strings
from .branches import Branches
from .claims import Conj, NameTest, Term
from .clauses import Need
from .formulas import AtLeast, Fact, is_true
from .names import Names
from .shapes import ArrayShape, NumberShape, ObjectShape
from .shaping import Shapes


class Membership:
    """Decides values against shapes; strings against languages (`pattern`, `format`) by matching the node they lower to."""

    def __init__(self, branches: Branches, shapes: Shapes, strings: Strings, names: Callable[[], Names]) -> None:
        """names: what decides names; it needs all of this itself, so it is asked for when there is something to decide."""
        self._branches, self._shapes, self._strings, self.names = branches, shapes, strings, names
        self._matchers: dict[StringShape, Matcher] = {}

    def in_conj(self, conj: Conj, value: Any) -> bool:
        return any(self.in_term(term, value) for term in self._branches.terms(conj))

    def in_term(self, term: Term, value: Any) -> bool:
        values = self._shapes.values(term)
        key = equality_key(value)
        return (values is None or key in values) and key not in self._shapes.excluded(term) and self.in_shape(term, value)

    def in_shape(self, term: Term, value: Any) -> bool:
        """Whether a value satisfies everything but `enum` and `const`."""
        atom = atom_of(value)
        if atom not in self._shapes.atoms(term):
            return False
        if atom in ("null", "boolean") or not term:
            return True
        if atom in ("integer", "fraction"):
            return is_number(self._shapes.number(term), value)
        if atom == "string":
            return self._is_string(self._shapes.string(term), value)
        if atom == "array":
            return self._is_array(self._shapes.array(term), value)
        return self._is_object(self._shapes.object(term), value)

    def _is_string(self, shape: StringShape, value: str) -> bool:
        if not _is_between(len(value), shape.low, shape.high):
            return False
        if not (shape.languages or shape.mismatches):
            return True
        if shape not in self._matchers:
            self._matchers[shape] = Matcher(self._strings.steps, self._strings.body(shape))
        return self._matchers[shape].accepts(self._strings.spelled(value))

    def _is_array(self, shape: ArrayShape, value: list[Any]) -> bool:
        keys = [equality_key(item) for item in value] if shape.unique or shape.repeats else []
        if (shape.unique and len(set(keys)) < len(keys)) or (shape.repeats and len(set(keys)) == len(keys)):
            return False
        return (
            _is_between(len(value), shape.low, shape.high)
            and all(self.in_conj(shape.item(i), item) for i, item in enumerate(value))
            and all(self._has_items(need, value) for need in shape.needs)
        )

    def _has_items(self, need: Need, value: list[Any]) -> bool:
        found = sum(i in need.index and self.in_conj(need.conj, item) for i, item in enumerate(value))
        return _is_between(found, need.low, need.high)

    def _is_object(self, shape: ObjectShape, value: dict[str, Any]) -> bool:
        if not _is_between(len(value), shape.low, shape.high) or any(name not in value for name in shape.required):
            return False
        tests, named = shape.tests, shape.named
        needs = [*shape.needs, *(option for clause in shape.clauses for option in clause)]
        found = dict.fromkeys(needs, 0)
        for name, item in value.items():
            passed = self.names().passed(name, tests) if tests else frozenset[NameTest]()
            listed = name if name in named else None
            if not self.in_conj(shape.value(listed, passed), item):
                return False
            for need in needs:
                found[need] += need.keys.admits(listed, passed) and self.in_conj(need.conj, item)
        met = {need for need, count in found.items() if _is_between(count, need.low, need.high)}
        if not met.issuperset(shape.needs) or any(met.isdisjoint(clause) for clause in shape.clauses):
            return False
        return all(is_true(formula, lambda fact: self._has(value, fact)) for formula in shape.conditions)

    def _has(self, value: dict[str, Any], fact: Fact) -> bool:
        if isinstance(fact, AtLeast):
            return len(value) >= fact.count
        return fact.name in value and self.in_conj(fact.conj, value[fact.name])


def is_number(shape: NumberShape, value: int | Decimal) -> bool:
    if not shape.interval.contains(value) or (shape.is_integer and not is_integral(value)):
        return False
    if not shape.steps and not shape.not_steps:
        return True
    exact = Fraction(value)
    return all(_is_multiple(exact, step) for step in shape.steps) and not any(_is_multiple(exact, step) for step in shape.not_steps)


def _is_multiple(value: Fraction, step: Decimal) -> bool:
    return (value / Fraction(step)).denominator == 1


def _is_between(count: int, low: int, high: int | None) -> bool:
    return low <= count and (high is None or count <= high)
