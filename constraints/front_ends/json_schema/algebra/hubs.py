"""Groups of alternatives that one member tells apart: a `kind` that decides, of each group, what may hold.

    if kind is "a" then A       if kind is "b" then B       if kind is "c" then C

As a product each of many alternatives would say of all other groups which values the member does not have. By the values of the
member there is one case for each, in which most groups have nothing left to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ..documents.document import Site
from ..documents.keyword_table import APPLICATORS, ASSERTIONS
from ..documents.reading import members_of, required_of, values_of
from ..documents.values import atom_of, dump_json
from .atoms import type_atoms
from .claims import (
    ALL_ATOMS,
    Claim,
    Clause,
    Condition,
    Conj,
    Count,
    Either,
    Equals,
    Keys,
    Kinds,
    Literal,
    Not,
    Term,
    lacks_key,
)
from .formulas import Fact, Formula, facts, given

MIN_GROUPS: Final = 4  # that a member tells apart; fewer are multiplied
MAX_VALUES: Final = 2_000  # of the member
_LISTING: Final = frozenset(("const", "enum", "type"))
_MEANINGFUL: Final = ASSERTIONS | APPLICATORS
_NO_OBJECT, _ABSENT, _UNLISTED = "no object", "no member", "other"  # no equality key reads like these

Values = dict[str, Any]  # by equality key
Groups = list[list[Term]]


class States(NamedTuple):
    """Some of what may be true of a member: one of its values, by its equality key, its absence, or that the value around it is no
    object. If `others`: all but those listed."""

    listed: frozenset[str]
    others: bool = False

    def has(self, state: str) -> bool:
        return (state in self.listed) is not self.others

    def both(self, other: States) -> States:
        if self.others and other.others:
            return States(self.listed | other.listed, True)
        if self.others or other.others:
            some, without = (other, self) if self.others else (self, other)
            return States(some.listed - without.listed)
        return States(self.listed & other.listed)

    def either(self, other: States) -> States:
        return self.negated().both(other.negated()).negated()

    def negated(self) -> States:
        return self._replace(others=not self.others)


_ANY: Final = States(frozenset(), True)
_VALUES: Final = States(frozenset((_NO_OBJECT, _ABSENT)), True)


def _some(*states: str) -> States:
    return States(frozenset(states))


class _Group(NamedTuple):
    """What is left of a group's alternatives in each state of a member, and in all states that are not listed."""

    left: dict[str, list[Term]]
    others: list[Term]


class Hub:
    """A member by which groups are told apart, and the values that these list for it."""

    def __init__(self, name: str) -> None:
        self.name, self.where = name, Keys(frozenset([name]))
        self.values: Values = {}

    def cases(self, groups: Groups) -> Iterator[tuple[Term, Groups]]:
        """Cases that exclude each other and cover all values: what each claims, and what is left of the groups in it, those left
        out that say nothing more."""
        told = [self._group(group) for group in groups]
        special: dict[str, dict[int, list[Term]]] = {state: {} for state in (_NO_OBJECT, _ABSENT, *self.values)}
        for number, group in enumerate(told):
            for state, left in group.left.items():
                if left != group.others:
                    special[state][number] = left
        speaking = {number: group.others for number, group in enumerate(told) if group.others != [()]}
        alike: dict[frozenset[tuple[int, tuple[Term, ...]]], list[str]] = {frozenset(): []}
        for state, own in special.items():
            alike.setdefault(frozenset((number, tuple(left)) for number, left in own.items()), []).append(state)
        usual = alike.pop(frozenset())
        for states in alike.values():
            found = [left for left in (speaking | special[states[0]]).values() if left != [()]]
            yield from (((claim,), found) for claim in self._claims(states))
        yield from ((term, list(speaking.values())) for term in self._claims_of_others(usual))

    def _claims(self, states: list[str]) -> Iterator[Literal]:
        """What says that the member is in one of some states: one of several claims holds."""
        if _ABSENT in states:
            yield lacks_key(self.name, strict=_NO_OBJECT not in states)
        elif _NO_OBJECT in states:
            yield Kinds(ALL_ATOMS - {"object"})
        if listed := self._listed(states):
            yield Count(self.where, (listed,), 1, None)

    def _claims_of_others(self, states: list[str]) -> Iterator[Term]:
        """What says that it is in one of some states, or has a value that is not listed."""
        listed = self._listed([state for state in self.values if state not in states])
        if _ABSENT in states:
            is_strict = _NO_OBJECT not in states
            yield (Count(self.where, (listed or Either(()),), 0, 0, is_strict),)
            return
        yield (Count(self.where, () if listed is None else (Not(listed),), 1, None),)
        if _NO_OBJECT in states:
            yield (Kinds(ALL_ATOMS - {"object"}),)

    def _listed(self, states: list[str]) -> Either | Equals | None:
        """That a value is one of those among some states; None where there are none."""
        equal = [Equals(key, self.values[key], dump_json(self.values[key])) for key in states if key in self.values]
        return equal[0] if len(equal) == 1 else Either(tuple((each,) for each in equal)) if equal else None

    def _group(self, terms: list[Term]) -> _Group:
        read = [way for term in terms for way in self._ways(term)]
        listed = frozenset[str]().union(*(states.listed for states, _ in read))
        left = {state: _distinct(rest for states, rest in read if states.has(state)) for state in sorted(listed)}
        return _Group(left, _distinct(rest for states, rest in read if states.others))

    def _ways(self, term: Term) -> list[tuple[States, Term]]:
        """States in which a term may hold, and what else it says there."""
        ways: list[tuple[States, Term]] = [(_ANY, ())]
        for literal in term:
            told = self._told(literal)
            joined = ((states.both(some), (*rest, *more)) for states, rest in ways for some, more in told)
            ways = [(states, rest) for states, rest in joined if states.others or states.listed]
        return ways

    def _told(self, literal: Literal) -> list[tuple[States, Term]]:
        """States in which a literal may hold, and what else it says there. Sites declare members besides."""
        if isinstance(literal, Site):
            return [(self._states_of_site(literal), (literal,))]
        if isinstance(literal, Count) and (found := self._states_of_count(literal)) is not None:
            return [(self._of_all(found, literal.strict), ())]
        if isinstance(literal, Condition):
            return self._told_by_condition(literal)
        return self._told_by_clause(literal) if isinstance(literal, Clause) else [(_ANY, (literal,))]

    def _told_by_condition(self, literal: Condition) -> list[tuple[States, Term]]:
        """What is left of a condition in the states that it tells apart."""
        satisfied = {fact: self._states_of_value(fact.conj) for fact, _ in facts(literal.formula) if fact.name == self.name}
        listed = frozenset[str]().union(*(states.listed for states in satisfied.values() if states is not None)) | {_ABSENT}
        left: dict[Formula, States] = {}
        for state in (None, *sorted(listed - {_NO_OBJECT})):  # None: a value that is not listed
            found = satisfied.items()
            truths: dict[Fact, bool] = {fact: states.has(state or _UNLISTED) for fact, states in found if states is not None}
            if state == _ABSENT:
                truths = {fact: False for fact, _ in found}
            formula = given(literal.formula, truths.get)
            some = _some(state) if state is not None else States(listed | {_NO_OBJECT}, True)
            left[formula] = left.get(formula, _some()).either(some)
        if not literal.strict:
            left[True] = left.get(True, _some()).either(_some(_NO_OBJECT))
        left.pop(False, None)
        return [(states, () if formula is True else (replace(literal, formula=formula),)) for formula, states in left.items()]

    def _told_by_clause(self, clause: Clause) -> list[tuple[States, Term]]:
        """The states in which an option about the member holds, and the others, in which one about something else has to."""
        states, others = _some(), list[Count]()
        for option in clause.options:
            found = self._states_of_count(option)
            if found is None:
                others.append(option)
            else:
                states = states.either(found)
        held = self._of_all(states, clause.strict)
        if len(others) == len(clause.options) or not others:
            return [(_ANY, (clause,))] if others else [(held, ())]
        rest: Literal = Clause(tuple(others), clause.strict) if len(others) > 1 else replace(others[0], strict=clause.strict)
        return [(held, ()), (held.negated(), (rest,))]

    def _of_all(self, of_objects: States, is_strict: bool) -> States:
        return of_objects.both(_some(_NO_OBJECT).negated()) if is_strict else of_objects.either(_some(_NO_OBJECT))

    def _states_of_site(self, site: Site) -> States:
        members = members_of(site)
        own = members.properties.get(self.name)
        listed = None if own is None else _listed(own)
        states = _ANY
        if listed is not None:
            self.values |= listed
            states = _some(_NO_OBJECT, _ABSENT, *listed)
        return states.both(_some(_ABSENT).negated()) if self.name in required_of(site) else states

    def _states_of_count(self, literal: Count) -> States | None:
        """The states in which there is such a member of an object, or none; None where that is not told by its value."""
        if literal.kind != "object" or literal.where != self.where:
            return None
        found = self._states_of_value(literal.conj)
        if found is None or (literal.low, literal.high) not in ((1, None), (0, 0)):
            return None
        return found if literal.high is None else found.negated()

    def _states_of_value(self, conj: Conj) -> States | None:
        """The values that satisfy a conjunction."""
        states = _VALUES
        for claim in conj:
            found = _values_of(claim.claim if isinstance(claim, Not) else claim)
            if found is None:
                return None
            self.values |= found
            states = states.both(States(frozenset(found), isinstance(claim, Not)))
        return states


def _distinct(terms: Iterable[Term]) -> list[Term]:
    """The alternatives, each once; one alone where it says nothing, as it admits all that the others do."""
    found = list(dict.fromkeys(terms))
    return [()] if () in found else found


def hub_of(groups: Sequence[list[Term]], decided: frozenset[str]) -> Hub | None:
    """The member that most groups speak of by its values, and none of those decided; None where these groups are few."""
    named: list[dict[str, None]] = [dict.fromkeys(name for term in group for name in sorted(_names(term))) for group in groups]
    count = Counter(name for names in named for name in names if name not in decided)
    best = max(count, key=count.__getitem__, default=None)
    return None if best is None or count[best] < MIN_GROUPS else Hub(best)


def told_by(hub: Hub, group: list[Term]) -> bool:
    """Whether some alternative of a group speaks of a member by its values."""
    return any(hub.name in _names(term) for term in group)


def _names(term: Term) -> set[str]:
    """The members whose values a term lists, or excludes."""
    found: set[str] = set()
    for literal in term:
        if isinstance(literal, Site) and "properties" in literal.active:
            found.update(name for name, member in members_of(literal).properties.items() if _listed(member) is not None)
        elif isinstance(literal, (Count, Clause)):
            for option in literal.options if isinstance(literal, Clause) else (literal,):
                if isinstance(option.where, Keys) and option.where.single is not None and option.conj:
                    found.add(option.where.single)
        elif isinstance(literal, Condition):
            found.update(fact.name for fact, _ in facts(literal.formula) if fact.conj)
    return found


def _values_of(claim: Claim) -> Values | None:
    """The values that satisfy a claim, where it is a list of them."""
    if isinstance(claim, Equals):
        return {claim.key: claim.value}
    if isinstance(claim, Either):
        found: Values = {}
        for option in claim.options:
            each = _values_of(option[0]) if len(option) == 1 else None
            if each is None:
                return None
            found |= each
        return found
    return _listed(claim) if isinstance(claim, Site) else None


def _listed(site: Site) -> Values | None:
    """The values of a schema that says no more than which these are; None of any other."""
    if isinstance(site.schema, bool) or not _MEANINGFUL.intersection(site.active) <= _LISTING:
        return None
    lists, atoms = values_of(site), type_atoms(site)
    if not lists or len(lists[0]) > MAX_VALUES:
        return None
    return {key: value for key, value in lists[0].items() if all(key in each for each in lists) and atom_of(value) in atoms}

