"""Formulas over the members of an object: which are there, how many, and what is settled of their values.

They say what `anyOf`, `oneOf`, `not`, `if` and the `dependent...` keywords ask for where these are about members alone. As
alternatives they would multiply; as formulas they become decision diagrams (see lowering/diagrams.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, Final

from ....grammar.stopwatch import look

MANY_WAYS = 1 << 20  # ways, or more
_NO_NAMES, _NO_COUNTS = frozenset[str](), frozenset[int]()
_SHORT: Final = (1 << 61) - 1  # bits of hashes that machine code holds as they are
_BETWEEN_LOOKS: Final = 255  # facts made, about


# Formulas are keys of many dictionaries, and large: each knows its hash from the beginning, and is not changed. They are classes of
# machine code, for which dataclasses with slots cannot be.


class Has:
    """The object has a member of this name, whose value satisfies the conjunction `conj` (claims.py)."""

    def __init__(self, name: str, conj: Any) -> None:
        self.name: Final = name
        self.conj: Final = conj
        self._hash: Final = hash((name, conj)) & _SHORT
        if not self._hash & _BETWEEN_LOOKS:
            look()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Has) and self.name == other.name and bool(self.conj == other.conj))


class AtLeast:
    """The object has so many members, or more."""

    def __init__(self, count: int) -> None:
        self.count: Final = count

    def __hash__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AtLeast) and self.count == other.count


class Negated:
    """A formula does not hold."""

    def __init__(self, part: Formula) -> None:
        self.part: Final = part
        self._hash: Final = ~hash(part)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Negated) and self._hash == other._hash and bool(self.part == other.part))


class Joined:
    """"all" of some formulas hold, or "any", or exactly "one". Made by the functions below."""

    def __init__(self, how: str, parts: tuple[Formula, ...]) -> None:
        self.how: Final = how
        self.parts: Final = parts
        self.answers: Final[dict[str, Any]] = {}  # to what it was asked
        self._hash: Final = hash((how, parts)) & _SHORT

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Joined) and self._hash == other._hash and self.how == other.how and self.parts == other.parts


Fact = Has | AtLeast
Formula = bool | Fact | Negated | Joined


def all_of(parts: Iterable[Formula]) -> Formula:
    return _joined("all", parts, True)


def any_of(parts: Iterable[Formula]) -> Formula:
    return _joined("any", parts, False)


def _joined(how: str, parts: Iterable[Formula], neutral: bool) -> Formula:
    found: dict[Formula, None] = {}
    for part in parts:
        if part is neutral:
            continue
        if isinstance(part, bool):
            return part
        if isinstance(part, Joined) and part.how == how:
            found |= dict.fromkeys(part.parts)
        else:
            found[part] = None
    if len(found) < 2:
        return next(iter(found), neutral)
    return Joined(how, tuple(found))


def one_of(parts: Iterable[Formula]) -> Formula:
    """Exactly one of some formulas holds."""
    told = [part for part in parts if part is not False]
    if told.count(True) > 1:
        return False
    if True in told:
        return all_of(negation(part) for part in told if part is not True)
    return Joined("one", tuple(told)) if len(told) > 1 else any_of(told)


def negation(formula: Formula) -> Formula:
    if isinstance(formula, bool):
        return not formula
    if isinstance(formula, Negated):
        return formula.part
    if isinstance(formula, Joined) and formula.how != "one":
        return (any_of if formula.how == "all" else all_of)(map(negation, formula.parts))
    return Negated(formula)


def facts(formula: Formula) -> tuple[tuple[Has, bool], ...]:
    """What a formula says of members, and whether it wants it to be so; of what it wants both ways, both."""
    if isinstance(formula, Has):
        return ((formula, True),)
    if isinstance(formula, Negated):
        return tuple([(fact, not wanted) for fact, wanted in facts(formula.part)])
    if not isinstance(formula, Joined):
        return ()
    known: tuple[tuple[Has, bool], ...] | None = formula.answers.get("facts")
    if known is None:
        known = formula.answers["facts"] = tuple(_facts_below(formula))
    return known


def first_name(formula: Formula) -> str | None:
    """The member that a formula speaks of first."""
    if isinstance(formula, Negated):
        return first_name(formula.part)
    if not isinstance(formula, Joined):
        return formula.name if isinstance(formula, Has) else None
    for part in formula.parts:
        name = first_name(part)
        if name is not None:
            return name
    return None


def counts(formula: Formula) -> frozenset[int]:
    """The numbers of members of which a formula says that there are as many, or more."""
    if isinstance(formula, Negated):
        return counts(formula.part)
    if not isinstance(formula, Joined):
        return frozenset([formula.count]) if isinstance(formula, AtLeast) else _NO_COUNTS
    known: frozenset[int] | None = formula.answers.get("counts")
    if known is None:
        known = formula.answers["counts"] = _NO_COUNTS.union(*map(counts, formula.parts))
    return known


def _facts_below(formula: Joined) -> dict[tuple[Has, bool], None]:
    found: dict[tuple[Has, bool], None] = {}
    for part in formula.parts:
        told = facts(part)
        if formula.how == "one":
            found |= dict.fromkeys([(fact, not wanted) for fact, wanted in told])
        found |= dict.fromkeys(told)
    return found


def is_clause(formula: Formula) -> bool:
    """Whether it says that one of some members is there, or missing."""
    options = formula.parts if isinstance(formula, Joined) and formula.how == "any" else (formula,)
    return all(isinstance(option.part if isinstance(option, Negated) else option, Has) for option in options)


def names_of(formula: Formula) -> frozenset[str]:
    """The members that a formula speaks of."""
    if isinstance(formula, Negated):
        return names_of(formula.part)
    if not isinstance(formula, Joined):
        return frozenset([formula.name]) if isinstance(formula, Has) else _NO_NAMES
    known: frozenset[str] | None = formula.answers.get("names")
    if known is None:
        known = formula.answers["names"] = _NO_NAMES.union(*map(names_of, formula.parts))
    return known


def ways(formula: Formula, holds: bool = True) -> int:
    """About as many alternatives as it takes to say that a formula holds, or that it does not."""
    if isinstance(formula, bool):
        return int(formula is holds)
    if isinstance(formula, Negated):
        return ways(formula.part, not holds)
    if not isinstance(formula, Joined):
        return 1
    question = "ways" if holds else "ways not"
    known: int | None = formula.answers.get(question)
    if known is None:
        known = formula.answers[question] = _ways(formula, holds)
    return known


def _ways(formula: Joined, holds: bool) -> int:
    each = [ways(part, holds) for part in formula.parts]
    if formula.how != "one":
        return min(math.prod(each) if (formula.how == "all") is holds else sum(each), MANY_WAYS)
    if holds:
        return min(sum(each), MANY_WAYS)
    two = sum(ways(a) * ways(b) for a, b in combinations(formula.parts, 2)) if len(each) < 16 else MANY_WAYS
    return min(math.prod(each) + two, MANY_WAYS)


def is_true(formula: Formula, holds: Callable[[Fact], bool]) -> bool:
    """Whether a formula is true, given what holds."""
    if isinstance(formula, bool):
        return formula
    if isinstance(formula, (Has, AtLeast)):
        return holds(formula)
    if isinstance(formula, Negated):
        return not is_true(formula.part, holds)
    count = sum(is_true(part, holds) for part in formula.parts)
    return count == 1 if formula.how == "one" else count == len(formula.parts) if formula.how == "all" else count > 0


def given(formula: Formula, truth: Callable[[Fact], bool | None]) -> Formula:
    """What is left of a formula where some facts are known; `truth` is None for the others."""
    if isinstance(formula, bool):
        return formula
    if isinstance(formula, (Has, AtLeast)):
        known = truth(formula)
        return formula if known is None else known
    if isinstance(formula, Negated):
        left = given(formula.part, truth)
        return formula if left is formula.part else negation(left)
    decisive = None if formula.how == "one" else formula.how == "any"  # of a part, for the whole
    parts: list[Formula] = []
    is_same = True
    for part in formula.parts:
        left = given(part, truth)
        if left is decisive:
            return left
        parts.append(left)
        is_same = is_same and left is part
    if is_same:
        return formula
    return one_of(parts) if formula.how == "one" else all_of(parts) if formula.how == "all" else any_of(parts)


def connected(formulas: Iterable[Formula]) -> list[list[Formula]]:
    """The formulas in groups, of which no two speak of the same member; what all of several say is taken apart."""
    told = all_of(formulas)
    parts = told.parts if isinstance(told, Joined) and told.how == "all" else (told,)
    above: dict[str, str] = {}  # another member of the same group, nearer to the one that stands for it

    def first(name: str) -> str:
        while (other := above.setdefault(name, name)) != name:
            above[name] = name = above[other]
        return name

    groups: dict[str, list[Formula]] = {}
    named: list[str] = []  # one of the members that each part speaks of
    for formula in parts:
        names = names_of(formula)
        one = next(iter(names), "")
        named.append(one)
        if len(names) > 1:
            for name in names:
                above[first(name)] = first(one)
    for one, formula in zip(named, parts, strict=True):
        groups.setdefault(first(one), []).append(formula)
    return list(groups.values())
