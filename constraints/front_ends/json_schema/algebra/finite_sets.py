"""The values of conjunctions that few values satisfy: places whose items must differ have to know whether enough of them exist."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice, product
from typing import Any

from ..documents.values import equality_key, plain_value
from .branches import Branches
from .claims import Conj, Term
from .membership import Membership
from .shapes import ArrayShape, NumberShape, ObjectShape
from .shaping import Shapes

_FEW = 1000  # candidates of one kind; integers, arrays and objects of which there may be more are not listed
_MAX_DEPTH = 8  # containers inside of each other

_ORDER = ("null", "boolean", "integer", "fraction", "object", "array", "string")  # strings may take the longest to be counted

Candidates = Iterable[Any] | None  # all values of some kind, and perhaps others; None when they may be many


class FiniteSets:
    """Lists values by what may be in them, and keeps those that satisfy everything.

    `strings_of(term, most)` gives the strings of a term, None where there may be more than `most`.
    """

    def __init__(
        self, branches: Branches, shapes: Shapes, membership: Membership, strings_of: Callable[[Term, int], list[str] | None]
    ) -> None:
        self._branches, self._shapes, self._membership, self._strings_of = branches, shapes, membership, strings_of
        self._known: dict[Conj, Sequence[Any] | None] = {}
        self._open: set[Conj] = set()  # being listed: what contains itself is not few

    def count(self, conj: Conj) -> int | None:
        """How many different values satisfy a conjunction, None when they may be many."""
        values = self.of(conj)
        return None if values is None else len(values)

    def of(self, conj: Conj) -> Sequence[Any] | None:
        """The different values that satisfy a conjunction, None when they may be many."""
        if conj in self._open or len(self._open) >= _MAX_DEPTH:
            return None
        if conj not in self._known:
            self._open.add(conj)
            try:
                self._known[conj] = self._of_terms(self._branches.terms(conj))
            finally:
                self._open.discard(conj)
        return self._known[conj]

    def _of_terms(self, terms: Iterable[Term]) -> Sequence[Any] | None:
        found: dict[str, Any] = {}
        for term in terms:
            candidates = self._candidates(term)
            if candidates is None:
                return None
            found |= {equality_key(value): value for value in candidates if self._membership.in_term(term, value)}
        return list(found.values())

    def _candidates(self, term: Term) -> Candidates:
        values = self._shapes.values(term)
        if values is not None:
            return values.values()
        out: list[Any] = []
        for atom in sorted(self._shapes.atoms(term), key=_ORDER.index):
            some = self._of_type(term, atom)
            if some is None:
                return None
            out += some
        return out

    def _of_type(self, term: Term, atom: str) -> Candidates:
        if atom in ("null", "boolean"):
            return [None] if atom == "null" else [False, True]
        if atom in ("integer", "fraction"):
            return _numbers(self._shapes.number(term), atom == "integer")
        if atom == "string":
            return self._strings_of(term, _FEW)
        if atom == "array":
            return self._arrays(self._shapes.array(term))
        return self._objects(self._shapes.object(term)) if atom == "object" else None

    def _arrays(self, shape: ArrayShape) -> Candidates:
        places: list[Sequence[Any]] = []  # what may stand at each place, as far as there may be items
        while shape.high is None or len(places) < shape.high:
            index = min(len(places), shape.prefix_length)
            items = self.of(shape.item(index))
            if items is None or len(places) > _FEW:
                return None
            if not items or (shape.unique is not None and len(places) >= shape.prefix_length + len(items)):
                break
            if shape.high is None and shape.unique is None and index == shape.prefix_length:
                return None
            places.append(items)
        return _if_few(_lists(places, shape.low))

    def _objects(self, shape: ObjectShape) -> Candidates:
        if shape.high == 0:
            return [{}]
        if shape.tests or self.of(shape.value(None, frozenset())) != []:
            return None
        members: list[list[tuple[str, Any] | None]] = []
        for name in shape.named:
            values = self.of(shape.value(name, frozenset()))
            if values is None:
                return None
            absent: list[tuple[str, Any] | None] = [] if name in shape.required else [None]
            members.append([*absent, *((name, value) for value in values)])
        return _if_few(map(_members, product(*members)))


def _lists(places: Sequence[Sequence[Any]], low: int) -> Iterator[list[Any]]:
    """The arrays of at least so many items, one from each place: made one at a time, as they may be very many."""
    for length in range(low, len(places) + 1):
        yield from map(list, product(*places[:length]))


def _members(chosen: Iterable[tuple[str, Any] | None]) -> dict[str, Any]:
    return dict(each for each in chosen if each is not None)


def _numbers(shape: NumberShape, are_integers: bool) -> Candidates:
    low, high = shape.interval.low, shape.interval.high
    if low is None or high is None:
        return None
    step = Decimal(1) if are_integers else max(shape.steps, default=Decimal(0))
    if step == 0 or high - low > _FEW * step:
        return [plain_value(low)] if low == high else None
    return (plain_value(step * multiple) for multiple in range(math.ceil(low / step), math.floor(high / step) + 1))


def _if_few(candidates: Iterable[Any]) -> Candidates:
    some = list(islice(candidates, _FEW + 1))
    return some if len(some) <= _FEW else None
