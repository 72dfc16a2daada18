"""Arrays whose items must differ, in the same place as other arrays.

In such a place an item that comes twice, or one that is not left any more, ends some of the alternatives that are being followed
and not others (see `follow` in register_product.py), and what goes on may cost more than what seemed to. Places are looked for
where such arrays may stand: two alternatives of a value, and of members and items that both of them have, as long as what was
read before does not tell them apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product

from ..documents.policy import Policy
from .claims import Conj, Term
from .names import Names
from .shapes import ArrayShape, ObjectShape
from .shaping import Shapes


class MixedArrays:
    """Looks at pairs of alternatives, each once. is_ordered: members come in the order in which they are declared."""

    def __init__(self, terms: Callable[[Conj], list[Term]], shapes: Shapes, names: Names, policy: Policy, is_ordered: bool) -> None:
        self._terms, self._shapes, self._names, self._policy, self._is_ordered = terms, shapes, names, policy, is_ordered
        self._seen: set[tuple[Term, Term]] = set()
        self._known: set[Term] = set()  # terms of which it is known whether they have arrays whose items must differ, at any depth
        self._with_unique: set[Term] = set()  # those that have
        self._above: defaultdict[Term, list[Term]] = defaultdict(list)  # whose items or members a term's values may be

    def stand_in(self, together: Iterable[Conj]) -> bool:
        """Whether arrays whose items must differ may stand beside others where values of these conjunctions do."""
        terms = dict.fromkeys(term for conj in together for term in self._terms(conj))
        self._find_unique(terms if len(terms) > 1 else ())
        if self._with_unique.isdisjoint(terms):
            return False
        pending = list(combinations(terms, 2))
        while pending:
            pair = pending.pop()
            if pair in self._seen or self._with_unique.isdisjoint(pair):
                continue
            self._seen.add(pair)
            self._policy.check_time(None)
            if self._are_mixed(*pair):
                return True
            for left, right in self._below(*pair):
                if left != right:  # else its own alternatives are looked at by themselves
                    self._find_unique([*self._terms(left), *self._terms(right)])
                    pending += [(a, b) for a, b in product(self._terms(left), self._terms(right)) if a != b]
        return False

    def _find_unique(self, terms: Iterable[Term]) -> None:
        """Add to `_with_unique` the terms, among these and all below them, that have arrays whose items must differ."""
        pending, found = list(terms), []
        while pending:
            term = pending.pop()
            if term in self._known:
                continue
            self._known.add(term)
            if self._may_be(term, "array", list) and self._shapes.array(term).is_unique:
                found.append(term)
            for below in dict.fromkeys(each for part in self._parts(term) for each in self._terms(part)):
                self._above[below].append(term)
                if below in self._with_unique:
                    found.append(term)
                else:
                    pending.append(below)
        while found:
            term = found.pop()
            if term not in self._with_unique:
                self._with_unique.add(term)
                found += self._above[term]

    def _parts(self, term: Term) -> Iterator[Conj]:
        """The conjunctions that a term claims of its items and members."""
        if self._may_be(term, "array", list):
            array = self._shapes.array(term)
            yield from (array.item(index) for index in range(array.prefix_length + 1))
        if self._may_be(term, "object", dict):
            shape = self._shapes.object(term)
            tests = shape.tests
            for name in shape.named:
                yield shape.value(name, self._names.passed(name, tests) if tests else frozenset())
            yield from (shape.value(None, passed) for passed in self._names.classes(tests))

    def _are_mixed(self, left: Term, right: Term) -> bool:
        """Whether two alternatives have arrays of several items that are not the same, and must differ in one of them at least."""
        if not (self._may_be(left, "array", list) and self._may_be(right, "array", list)):
            return False
        one, other = self._shapes.array(left), self._shapes.array(right)
        if not (one.may_have_two and other.may_have_two):
            return False
        are_alike = one.is_unique and other.is_unique and one.rules == other.rules and one.needs == other.needs
        return (one.is_unique or other.is_unique) and not are_alike

    def _below(self, left: Term, right: Term) -> Iterator[tuple[Conj, Conj]]:
        """The pairs of conjunctions that two alternatives claim of the same item or member."""
        if self._may_be(left, "array", list) and self._may_be(right, "array", list):
            yield from self._items(self._shapes.array(left), self._shapes.array(right))
        if self._may_be(left, "object", dict) and self._may_be(right, "object", dict):
            yield from self._members(self._shapes.object(left), self._shapes.object(right))

    def _may_be(self, term: Term, atom: str, kind: type) -> bool:
        values = self._shapes.values(term)
        return atom in self._shapes.atoms(term) and (values is None or any(isinstance(value, kind) for value in values.values()))

    def _items(self, left: ArrayShape, right: ArrayShape) -> Iterator[tuple[Conj, Conj]]:
        for index in range(max(left.prefix_length, right.prefix_length) + 1):
            yield left.item(index), right.item(index)

    def _members(self, left: ObjectShape, right: ObjectShape) -> Iterator[tuple[Conj, Conj]]:
        tests = list(dict.fromkeys([*left.tests, *right.tests]))
        for name in dict.fromkeys([*left.named, *right.named]):
            passed = self._names.passed(name, tests) if tests else frozenset()
            values = left.value(name, passed), right.value(name, passed)
            yield values
            if self._is_ordered and _comes_first(name, left, right) and self._is_told_by(*values):
                return
        for passed in self._names.classes(tests):
            yield left.value(None, passed), right.value(None, passed)

    def _is_told_by(self, left: Conj, right: Conj) -> bool:
        """Whether both conjunctions list their values, and have none in common."""
        keys = []
        for conj in (left, right):
            listed = [self._shapes.values(term) for term in self._terms(conj)]
            keys.append({key for values in listed if values is not None for key in values})
            if None in listed:
                return False
        return keys[0].isdisjoint(keys[1])


def _comes_first(name: str, left: ObjectShape, right: ObjectShape) -> bool:
    """Whether both objects must have a member, and have it before any member that has not been looked at."""
    if name not in left.required or name not in right.required:
        return False
    before = (shape.declared[: shape.declared.index(name)] if name in shape.declared else [None] for shape in (left, right))
    first, second = map(set, before)
    return first == second and None not in first
