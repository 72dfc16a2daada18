"""Whether a given value satisfies a conjunction: the filter of `enum` and `const`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ..expression import Grammar, Node
from ..reference import Reference
from .branches import Branches, Conj, Term
from .shapes import NumberShape, Shapes, StringShape
from .values import atom_of, equality_key, is_integral, shift_is_integral, string_text


class Membership:
    """Decides values against shapes; strings with a pattern or format by matching the node they lower to."""

    def __init__(
        self, grammar: Grammar, branches: Branches, shapes: Shapes, string_node: Callable[[StringShape], Node]
    ) -> None:
        self._grammar, self._branches, self._shapes, self._string_node = grammar, branches, shapes, string_node

    def in_conj(self, conj: Conj, value: Any) -> bool:
        return any(self.in_term(term, value) for term in self._branches.terms(conj))

    def in_term(self, term: Term, value: Any) -> bool:
        values = self._shapes.values(term)
        return (values is None or equality_key(value) in values) and self.in_shape(term, value)

    def in_shape(self, term: Term, value: Any) -> bool:
        """Whether a value satisfies everything but `enum` and `const`."""
        atom = atom_of(value)
        if atom not in self._shapes.atoms(term):
            return False
        if atom in ("null", "boolean") or not term:
            return True
        if atom in ("integer", "fraction"):
            return _is_number(self._shapes.number(term), value)
        return getattr(self, f"_is_{atom}")(term, value)

    def _is_string(self, term: Term, value: str) -> bool:
        shape = self._shapes.string(term)
        if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
            return False
        if not shape.patterns and not shape.formats:
            return True
        return Reference(self._grammar, self._string_node(shape)).accepts(string_text(value).encode())

    def _is_array(self, term: Term, value: list[Any]) -> bool:
        shape = self._shapes.array(term)
        if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
            return False
        return all(self.in_conj(shape.item(i), item) for i, item in enumerate(value))

    def _is_object(self, term: Term, value: dict[str, Any]) -> bool:
        shape = self._shapes.object(term)
        if any(name not in value for name in shape.required):
            return False
        return all(self.in_conj(shape.member(name), item) for name, item in value.items())


def _is_number(shape: NumberShape, value: int | Decimal) -> bool:
    digits = shape.fraction_digits
    if digits is not None and not (is_integral(value) if digits == 0 else shift_is_integral(value, digits)):
        return False
    return shape.interval.contains(value)
