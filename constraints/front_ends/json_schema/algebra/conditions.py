"""Schemas read as formulas over members (formulas.py), where they say no more of objects, and the same of all other values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ..documents.document import Site
from ..documents.keyword_table import APPLICATORS, ASSERTIONS, REFERENCES
from ..documents.keywords import in_force, is_anything, value_of
from ..documents.reading import count_of, members_of, required_of
from .claims import Claim, Clause, Common, Condition, Conj, Count, Term, has_key, lacks_key
from .formulas import AtLeast, Formula, Has, all_of, any_of, facts, is_clause, negation, one_of, ways
from .parts import Parts, condition
from .products import FEW

_MEANINGFUL: Final = ASSERTIONS | APPLICATORS
_READ: Final = frozenset((
    *REFERENCES, "allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentRequired", "dependentSchemas",
    "type", "required", "properties", "additionalProperties", "minProperties", "maxProperties",
))  # fmt: skip
_DEEPEST: Final = 120  # schemas inside one another that are read

Reading = tuple[Formula, bool]  # what a schema says of the members of an object, and whether all other values satisfy it
_HOLDS: Reading = (True, True)


class Conditions:
    """Reads keywords of sites as conditions, each once. `conj` makes conjunctions."""

    def __init__(self, parts: Parts, conj: Callable[[Iterable[Claim]], Conj]) -> None:
        self._parts, self._conj = parts, conj
        self._known: dict[Site, Reading | None] = {}
        self._open: set[Site] = set()

    def of(self, site: Site, keyword: str) -> Condition | Clause | Count | None:
        """What a keyword says, or where it is "fails", that the site does not hold.

        None where it speaks of more than members, and where the alternatives of a violation are a clause anyway.
        """
        found = _not(self.whole(site)) if keyword == "fails" else self._keyword(site, keyword)
        if keyword in ("not", "fails") and found is not None and is_clause(found[0]):
            return _clause(found)
        return _condition(found, site, keyword)

    def of_dependent(self, name: str, site: Site) -> Condition | Clause | Count | None:
        """That a schema holds if there is a member of a name."""
        found = self._dependency(name, site)
        return _clause(found) or _condition(found, site, "dependentSchemas", name)

    def spelled_out(self, term: Term) -> list[Condition]:
        """The conditions of a term that alternatives say as well: all where these are few; else those that declare names.

        Names come in the order in which the schemas that hold declare them. None are spelled out beside the condition that members
        are evaluated, which would ask in each alternative what the others say.
        """
        told = [literal for literal in term if isinstance(literal, Condition)]
        if any(each.keyword == "unevaluatedProperties" for each in told):
            return []
        if math.prod(ways(each.formula) for each in told) <= FEW:
            return [each for each in told if not each.is_kept]
        sites = (literal for literal in term if isinstance(literal, Site))
        members = [*map(members_of, sites), *(literal.members for literal in term if isinstance(literal, Common))]
        declared = frozenset(name for each in members for name in each.properties)
        return [
            each for each in told
            if not each.is_kept and any(fact.conj and fact.name not in declared for fact, _ in facts(each.formula))
        ]  # fmt: skip

    def whole(self, site: Site) -> Reading | None:
        """What all keywords of a site say together."""
        site = self._parts.target(site)
        if isinstance(site.schema, bool):
            return site.schema, site.schema
        if site not in self._known:
            if site in self._open or len(self._open) >= _DEEPEST:
                return None
            self._open.add(site)
            self._known[site] = self._read(site)
            self._open.discard(site)
        return self._known[site]

    def _read(self, site: Site) -> Reading | None:
        meaningful = _MEANINGFUL.intersection(site.active)
        others = value_of(site, "type")
        is_open = is_anything(site.active.get("additionalProperties", True))
        if not (meaningful <= _READ and others in (None, "object") and is_open):
            return None
        self._parts.note_ignored(site)
        return self._said(site, self._members(site))

    def beside_members(self, site: Site) -> Reading | None:
        """What a site says besides the values of its members, and which there may be."""
        if not (_MEANINGFUL.intersection(site.active) <= _READ and value_of(site, "type") in (None, "object")):
            return None
        self._parts.note_ignored(site)
        return self._said(site, (Has(name, ()) for name in required_of(site)))

    def _said(self, site: Site, members: Iterable[Formula]) -> Reading | None:
        """What a site says, given what it says of members itself."""
        own: list[Reading | None] = [(all_of((*members, *_counted(site))), value_of(site, "type") is None)]
        if APPLICATORS.isdisjoint(site.active):
            return own[0]
        keywords = [key for key in ("anyOf", "oneOf", "not", "if") if in_force(site, key)]
        inner = (self.whole(part) for part in (*self._parts.subschemas(site, "allOf"), *self._parts.references(site)))
        return _all(own, inner, (self._keyword(site, key) for key in (*keywords, "dependencies")))

    def _members(self, site: Site) -> Iterator[Formula]:
        """What `required` and `properties` say."""
        required = dict.fromkeys(required_of(site))
        for name, schema in members_of(site).properties.items():
            if schema.schema is False:
                yield negation(Has(name, ()))
            elif conj := self._conj((schema,)):
                wanted = Has(name, conj)
                yield wanted if name in required else any_of((negation(Has(name, ())), wanted))
        yield from (Has(name, ()) for name in required)

    def _keyword(self, site: Site, keyword: str) -> Reading | None:
        if keyword == "not":
            return _not(self.whole(site.child("not")))
        if keyword == "if":
            return self._if(site)
        if keyword == "dependencies":
            return _all(self._dependency(name, dependent) for name, dependent in self._parts.dependencies(site))
        parts = [self.whole(part) for part in self._parts.subschemas(site, keyword)]
        told = [part for part in parts if part is not None]
        if len(told) < len(parts):
            return None
        if keyword == "anyOf" or site.is_loose:
            return any_of(formula for formula, _ in told), any(others for _, others in told)
        return one_of(formula for formula, _ in told), sum(others for _, others in told) == 1

    def _if(self, site: Site) -> Reading | None:
        given = condition(site)
        if given is None:
            return _HOLDS
        when, then, otherwise = (_HOLDS if part is None else self.whole(part) for part in given)
        if when is None or then is None or otherwise is None:
            return None
        formula = all_of((any_of((negation(when[0]), then[0])), any_of((when[0], otherwise[0]))))
        return formula, then[1] if when[1] else otherwise[1]

    def _dependency(self, name: str, dependent: list[str] | Site) -> Reading | None:
        absent = negation(Has(name, ()))
        if isinstance(dependent, list):
            return any_of((absent, all_of(Has(each, ()) for each in dependent))), True
        found = self.whole(dependent)
        return None if found is None else (any_of((absent, found[0])), True)


def _counted(site: Site) -> Iterator[Formula]:
    """What `minProperties` and `maxProperties` say."""
    low, high = count_of(site, "minProperties"), count_of(site, "maxProperties")
    if low:
        yield AtLeast(low)
    if high is not None:
        yield negation(AtLeast(high + 1))


def _clause(found: Reading | None) -> Clause | Count | None:
    """What is said as a clause, where it is no more than that one of some members is there, or missing."""
    if found is None or not is_clause(found[0]) or any(fact.conj for fact, _ in facts(found[0])):
        return None
    strict = not found[1]
    options = [has_key(fact.name, strict) if wanted else lacks_key(fact.name, strict) for fact, wanted in facts(found[0])]
    return options[0] if len(options) == 1 else Clause(tuple(options), strict)


def _condition(found: Reading | None, site: Site, keyword: str, dependent: str | None = None) -> Condition | None:
    if found is None or ways(found[0]) < 2:
        return None
    return Condition(found[0], not found[1], site, keyword, dependent)


def _all(*groups: Iterable[Reading | None]) -> Reading | None:
    found = [reading for group in groups for reading in group]
    told = [reading for reading in found if reading is not None]
    if len(told) < len(found):
        return None
    return all_of(formula for formula, _ in told), all(others for _, others in told)


def _not(reading: Reading | None) -> Reading | None:
    return None if reading is None else (negation(reading[0]), not reading[1])
