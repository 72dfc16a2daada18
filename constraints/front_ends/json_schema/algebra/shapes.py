"""Shapes: what a term says about the values of one JSON type, in bounds, languages, items and members.

A term is a conjunction, so bounds tighten, patterns add up, and the schemas of an item or a member are conjoined in turn. Arrays
and objects come out in one form: *rules*, which every item (member) of an index (key) class has to satisfy, and *needs*, how many
of a class have to satisfy something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter

from ....grammar.stopwatch import look
from ...numbers.numbers import Interval
from ..documents.document import Site
from ..documents.reading import Members
from .claims import NOTHING, Claim, Conj, Index, Keys, NameTest
from .clauses import Need
from .formulas import Formula, facts

Conjoin = Callable[[Iterable[Claim]], Conj]


@dataclass(frozen=True)
class NumberShape:
    """The numbers of an interval that are multiples of all `steps` and of none of `not_steps`."""

    interval: Interval = field(default_factory=Interval)
    is_integer: bool = False
    steps: tuple[Decimal, ...] = ()
    not_steps: tuple[Decimal, ...] = ()


@dataclass
class ArrayShape:
    """The arrays of `low` to `high` items that meet the rules and needs."""

    conjoin: Conjoin
    rules: list[tuple[Index, Conj]] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    low: int = 0
    high: int | None = None
    unique: Site | None = None  # whose `uniqueItems` asks for different items
    repeats: Site | None = None  # whose `uniqueItems` is violated
    _num_read: int = field(default=0, repr=False, compare=False)  # rules that the two below are made of
    _wide: list[int] = field(default_factory=list, repr=False, compare=False)  # the numbers of rules for several items
    _single: dict[int, list[int]] = field(default_factory=dict, repr=False, compare=False)  # and of those for one, by its place

    @property
    def is_unique(self) -> bool:
        """Whether items have to be told apart."""
        return self.unique is not None and self.may_have_two

    @property
    def may_have_two(self) -> bool:
        """Whether more than one item may be there."""
        return self.high is None or self.high > 1

    def item(self, index: int) -> Conj:
        for number in range(self._num_read, len(self.rules)):
            place = self.rules[number][0].single
            (self._wide if place is None else self._single.setdefault(place, [])).append(number)
        self._num_read = len(self.rules)
        wide = [number for number in self._wide if index in self.rules[number][0]]
        return self.conjoin(claim for number in sorted([*wide, *self._single.get(index, ())]) for claim in self.rules[number][1])

    @property
    def prefix_length(self) -> int:
        """The number of items before the conditions no longer depend on the place."""
        places = [where for where, _ in self.rules] + [need.index for need in self.needs]
        return max((place.start if place.stop is None else place.stop for place in places), default=0)


@dataclass
class ObjectShape:
    """The objects of `low` to `high` members that have all `required` ones and meet the rules, needs, clauses and conditions."""

    conjoin: Conjoin
    members: list[Members] = field(default_factory=list)  # of every site
    rules: list[tuple[Keys, Conj]] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    clauses: list[tuple[Need, ...]] = field(default_factory=list)  # of each, one holds
    conditions: list[Formula] = field(default_factory=list)  # all hold
    placed: dict[str, None] = field(default_factory=dict)  # names that conditions declare
    required: dict[str, None] = field(default_factory=dict)
    low: int = 0
    high: int | None = None
    _values: dict[tuple[str | None, frozenset[NameTest]], Conj] = field(default_factory=dict, repr=False)
    _num_read: int = field(default=0, repr=False)  # rules that the two below are made of
    _wide: list[tuple[Keys, Conj]] = field(default_factory=list, repr=False)
    _of_names: dict[str | None, list[Claim]] = field(default_factory=dict, repr=False)

    @property
    def declared(self) -> list[str]:
        """Names in `properties` of what holds, in the order in force, and then those that conditions declare."""
        return list(dict.fromkeys([*(name for each in self.members for name in each.properties), *self.placed]))

    @property
    def named(self) -> dict[str, None]:
        """All names that some condition singles out, declared ones first."""
        others = sorted(name for where in self._places() for name in where.names)
        told = (fact.name for formula in self.conditions for fact, _ in facts(formula))
        return dict.fromkeys([*self.declared, *self.required, *others, *told])

    @property
    def tests(self) -> list[NameTest]:
        """All conditions on names."""
        of_members = (pattern for each in self.members for pattern, _ in each.patterns)
        in_places = (test for where in self._places() for test in sorted(where.tests, key=attrgetter("shown")))
        return list(dict.fromkeys([*of_members, *in_places]))

    def _places(self) -> list[Keys]:
        options = (option for clause in self.clauses for option in clause)
        return [where for where, _ in self.rules] + [need.keys for need in (*self.needs, *options)]

    def forbids(self, name: str) -> bool:
        """Whether it is said without patterns that there is no member of this name."""
        return any(conj == NOTHING and not where.tests and where.admits(name, frozenset()) for where, conj in self.rules) or any(
            (site := each.properties.get(name, None if each.patterns else each.additional)) is not None and site.schema is False
            for each in self.members
        )

    def said_of(self, name: str) -> list[Claim]:
        """The claims about a member that name it, leaving out those by pattern and those about all others."""
        sites = (each.properties[name] for each in self.members if name in each.properties)
        return [*sites, *(claim for where, conj in self.rules if name in where.names and not where.others for claim in conj)]

    def value(self, name: str | None, passed: frozenset[NameTest]) -> Conj:
        """The conjunction that a member's value has to satisfy, given the tests its name passes; None is a name listed nowhere."""
        known = self._values.get((name, passed))
        if known is None:
            look()
            known = self._values[name, passed] = self.conjoin(self._said_of_value(name, passed))
        return known

    def _said_of_value(self, name: str | None, passed: frozenset[NameTest]) -> list[Claim]:
        claims: list[Claim] = []
        for each in self.members:
            own = None if name is None else each.properties.get(name)
            found = [] if own is None else [own]
            if each.patterns:
                found += [site for pattern, site in each.patterns if pattern in passed]
            if not found and each.additional is not None:
                found = [each.additional]
            claims += found
        for where, conj in self._wide_rules():
            if where.admits(name, passed):
                claims += conj
        return claims + self._of_names.get(name, [])

    def _wide_rules(self) -> list[tuple[Keys, Conj]]:
        """The rules about more than listed names; what those about listed names say is in `_of_names` then."""
        if self._num_read != len(self.rules):
            self._num_read = len(self.rules)
            self._wide, self._of_names = [], {}
            for where, conj in self.rules:
                if where.others or where.tests:
                    self._wide.append((where, conj))
                    continue
                for each in where.names:
                    self._of_names.setdefault(each, []).extend(conj)
        return self._wide
