"""Proofs that no value satisfies two alternatives. They make `oneOf` a plain union. False means: not proven.

They are made of pending terms (see branches.py), which contain all values of the terms proper.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...numbers.numbers import Interval
from ..documents.policy import Policy
from ..strings.strings import Strings
from .branches import Branches
from .claims import Conj, Term
from .membership import Membership
from .shapes import ObjectShape
from .shaping import Shapes

_MAX_DEPTH = 3  # members of members of members
MAX_PAIRS = 20_000


class Disjointness:
    """Decides whether groups of terms can share a value."""

    def __init__(
        self, branches: Branches, shapes: Shapes, membership: Membership, strings: Strings, policy: Policy
    ) -> None:  # fmt: skip
        self._branches, self._shapes, self._membership, self._texts = branches, shapes, membership, strings
        self._policy = policy

    def are_disjoint(self, groups: list[list[Term]], depth: int = 0) -> bool:
        """Whether no value satisfies terms of two different groups."""
        if self._have_a_tag(groups):
            return True
        sizes = [len(group) for group in groups]
        if (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2 > MAX_PAIRS:
            return False
        pairs = ((a, b) for i, group in enumerate(groups) for other in groups[:i] for a in group for b in other)
        return all(self._terms(a, b, depth) for a, b in pairs)

    def _have_a_tag(self, groups: list[list[Term]]) -> bool:
        """Whether all are objects with a required member whose possible values tell the groups apart; linear in their size."""
        terms = [term for group in groups for term in group]
        if not terms or any(self._shapes.atoms(term) != {"object"} for term in terms):
            return False
        shapes = {term: self._shapes.object(term) for term in terms}
        common = set.intersection(*(set(shape.required) for shape in shapes.values()))
        return any(self._is_tag([[self._member(shapes[term], name) for term in group] for group in groups]) for name in common)

    def _is_tag(self, groups: list[list[Conj]]) -> bool:
        seen: dict[object, int] = {}
        for number, group in enumerate(groups):
            for conj in group:
                values = [self._listed(term) for term in self._branches.pending_terms(conj)]
                if any(known is None for known in values):
                    return False
                if any(seen.setdefault(key, number) != number for known in values for key in known or ()):
                    return False
        return True

    def _listed(self, term: Term) -> Iterable[object] | None:
        """One key for each value of a term, equal for equal values; None where the values are too many to list."""
        values = self._shapes.values(term)
        if values is not None:
            return values
        if self._shapes.atoms(term) != {"string"}:
            return None
        texts = self._texts.listed(self._shapes.string(term))
        return None if texts is None else [f'"{text.decode()}"' for text in texts]

    def _terms(self, a: Term, b: Term, depth: int) -> bool:
        self._policy.check_time(None)
        atoms = self._shapes.atoms(a) & self._shapes.atoms(b)
        if not atoms:
            return True
        values = [self._shapes.values(term) for term in (a, b)]
        if values[0] is not None or values[1] is not None:
            return self._by_values(a, b)
        if atoms & {"null", "boolean"}:
            return False
        return (
            (not atoms & {"integer", "fraction"} or self._numbers(a, b))
            and ("string" not in atoms or self._strings(a, b))
            and ("array" not in atoms or self._arrays(a, b, depth))
            and ("object" not in atoms or self._objects(a, b, depth))
        )

    def _by_values(self, a: Term, b: Term) -> bool:
        listed, other = (a, b) if self._shapes.values(a) is not None else (b, a)
        values = self._shapes.values(listed)
        assert values is not None
        is_narrowed = self._texts.is_narrowed(self._shapes.string(other))
        return not any(
            (self._membership.in_term(other, v) or (is_narrowed and isinstance(v, str))) and self._membership.in_term(listed, v)
            for v in values.values()
        )

    def _numbers(self, a: Term, b: Term) -> bool:
        first, second = self._shapes.number(a).interval, self._shapes.number(b).interval
        return _is_below(first, second) or _is_below(second, first)

    def _strings(self, a: Term, b: Term) -> bool:
        first, second = self._shapes.string(a), self._shapes.string(b)
        if _is_shorter(first.high, second.low) or _is_shorter(second.high, first.low):
            return True
        texts, others = self._texts.listed(first), self._texts.listed(second)
        return texts is not None and others is not None and texts.isdisjoint(others)

    def _arrays(self, a: Term, b: Term, depth: int) -> bool:
        first, second = self._shapes.array(a), self._shapes.array(b)
        if _is_shorter(first.high, second.low) or _is_shorter(second.high, first.low):
            return True
        present = min(max(first.low, second.low), 1 + max(first.prefix_length, second.prefix_length))
        return any(self._conjs(first.item(i), second.item(i), depth) for i in range(present))

    def _objects(self, a: Term, b: Term, depth: int) -> bool:
        first, second = self._shapes.object(a), self._shapes.object(b)
        if _is_shorter(first.high, second.low) or _is_shorter(second.high, first.low):
            return True
        names = first.required | second.required
        return any(self._conjs(self._member(first, name), self._member(second, name), depth) for name in names)

    def _member(self, shape: ObjectShape, name: str) -> Conj:
        tests = shape.tests
        return shape.value(name, self._membership.names().passed(name, tests) if tests else frozenset())

    def _conjs(self, a: Conj, b: Conj, depth: int) -> bool:
        if depth >= _MAX_DEPTH:
            return False
        return all(self._terms(x, y, depth + 1) for x in self._branches.pending_terms(a) for y in self._branches.pending_terms(b))


def _is_shorter(high: int | None, low: int) -> bool:
    return high is not None and high < low


def _is_below(first: Interval, second: Interval) -> bool:
    """Whether all numbers of `first` are less than all of `second`."""
    if first.high is None or second.low is None:
        return False
    return first.high < second.low or (first.high == second.low and (first.exclusive_high or second.exclusive_low))
