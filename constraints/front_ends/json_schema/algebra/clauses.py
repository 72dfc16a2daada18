"""Clauses about the members of an object: of some conditions, that a member is there or that none is, one holds.

They are what is left where schemas are negated, or one member depends on another. Alternatives would say the same, but those of
several clauses multiply; clauses are followed side by side while members are read (see variants.py and series.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from .claims import Claim, Conj, HashedOnce, Index, Keys
from .formulas import Formula, Has, any_of, negation

Clause = tuple["Need", ...]
FEW_CLAUSES = 8  # that are followed one by one; more become decision diagrams, where they are about single members


@dataclass(frozen=True, slots=True)
class Need(HashedOnce):
    """From `low` to `high` items or members in `where` satisfy `conj`. An option of a clause is from 1 up, or none (to 0)."""

    where: Index | Keys
    conj: Conj
    low: int
    high: int | None

    __hash__ = HashedOnce.__hash__

    @property
    def index(self) -> Index:
        """The items that are counted."""
        assert isinstance(self.where, Index)
        return self.where

    @property
    def keys(self) -> Keys:
        """The members that are counted."""
        assert isinstance(self.where, Keys)
        return self.where


def formula_of(clause: Clause, names: Collection[str] | None) -> Formula | None:
    """A clause as a formula; None where it is not about members that can be told one by one.

    names: all that members may have, where these are few enough to be listed.
    """
    options: list[Formula] = []
    for option in clause:
        single = option.keys.single
        if single is None and (names is None or option.keys.tests):
            return None
        meant = [single] if single is not None else [name for name in names or () if option.keys.admits(name, frozenset())]
        found = any_of(Has(name, option.conj) for name in meant)
        options.append(found if option.high is None else negation(found))
    return any_of(options)


class _Shape(Protocol):
    needs: list[Need]
    clauses: list[Clause]
    required: dict[str, None]

    def forbids(self, name: str) -> bool: ...

    def said_of(self, name: str) -> list[Claim]: ...


def settled(shape: _Shape, lacks_values: Callable[[list[Claim]], bool]) -> list[Clause]:
    """The clauses that the other conditions on an object leave open, without the options that these conditions rule out.

    `lacks_values` proves that claims contradict each other. A clause that another one implies is left out.
    """
    found: list[Clause] = []
    for clause in shape.clauses:
        truths = [_truth(shape, option, lacks_values) for option in clause]
        if True not in truths:
            found.append(tuple(option for option, truth in zip(clause, truths, strict=True) if truth is None))
    return list(_strongest(found, [(need,) for need in shape.needs if need.low == 1 and need.high is None]))


def _strongest(clauses: list[Clause], known: list[Clause]) -> Iterator[Clause]:
    """The clauses that neither another clause nor one of those known implies."""
    kept = list(known)
    for clause in sorted(clauses, key=len):
        if not any(_is_implied(clause, other) for other in kept):
            kept.append(clause)
            yield clause


def _is_implied(clause: Clause, other: Clause) -> bool:
    """Whether each option of another clause implies one of this."""
    return all(any(option == each or _is_wider(option, each) for option in clause) for each in other)


def _is_wider(option: Need, other: Need) -> bool:
    """Whether both options ask for a member of a name outside some list, and the list of this one is part of the other's."""
    wide, narrow = option.keys, other.keys
    is_alike = (option.high, option.conj, wide.others, wide.tests) == (None, other.conj, True, narrow.tests)
    return is_alike and other.high is None and narrow.others and wide.names <= narrow.names


def _truth(shape: _Shape, option: Need, lacks_values: Callable[[list[Claim]], bool]) -> bool | None:
    """Whether an option holds, by the names of members and by what is said of a single one; None where that is open."""
    wants_one, where = option.high is None, option.keys
    if where.single is None:
        is_met = not option.conj and not where.tests and any(where.admits(name, frozenset()) for name in shape.required)
        return wants_one if is_met else None
    name = where.single
    said = shape.said_of(name)
    if shape.forbids(name) or lacks_values([*said, *option.conj]):
        return not wants_one
    return wants_one if name in shape.required and set(said).issuperset(option.conj) else None
