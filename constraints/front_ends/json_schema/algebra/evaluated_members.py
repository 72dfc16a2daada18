"""`unevaluatedProperties` as a condition on members: those that only some branches evaluate are there if one of these holds.

    anyOf: [{properties: {a}, ...}, {properties: {b}, ...}]      no a, or the first one holds;  no b, or the second one holds

As alternatives the branches that hold would have to be told apart, those of each keyword beside those of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ..documents.document import Site
from ..documents.keywords import in_force
from ..documents.reading import members_of
from .annotations import Annotations, applied
from .claims import Claim, Condition, Conj, Term, Unevaluated
from .conditions import Conditions
from .formulas import MANY_WAYS, Formula, Has, all_of, any_of, negation
from .parts import Parts, condition

FEW_BRANCHES: Final = 64  # sets of branches that may hold; as many are told apart as alternatives
_KEYWORD: Final = "unevaluatedProperties"

Evaluator = tuple[Formula, Site]  # where it holds, a schema whose keywords evaluate members


class EvaluatedMembers:
    """Reads such sites. `conj` makes conjunctions."""

    def __init__(
        self, parts: Parts, conditions: Conditions, annotations: Annotations, conj: Callable[[Iterable[Claim]], Conj]
    ) -> None:
        self._parts, self._conditions, self._annotations, self._conj = parts, conditions, annotations, conj
        self._open: set[Site] = set()  # on the way down

    def of(self, site: Site) -> Term | None:
        """What the keyword of a site comes to; None where the branches are few, and where some say more than a condition does, or
        evaluate members by more than their names."""
        if self._ways(site, set()) <= FEW_BRANCHES:
            return None
        evaluators = self._evaluators(site, True)
        if evaluators is None:
            return None
        told: dict[str, list[Formula]] = {}  # where each name is evaluated
        has_patterns = False
        for where, each in evaluators:
            members = members_of(each)
            evaluates_all = members.additional is not None or (each is not site and in_force(each, _KEYWORD))
            if where is True and evaluates_all:
                return ()
            if where is not True and (evaluates_all or members.patterns):
                return None
            has_patterns = has_patterns or bool(members.patterns)
            for name in members.properties:
                told.setdefault(name, []).append(where)
        formula = all_of(self._may_be_there(site, name, where) for name, where in told.items())
        if has_patterns and formula is not True:
            return None
        others = Unevaluated(site, _KEYWORD, tuple(dict.fromkeys(each for _, each in evaluators)))
        return (others, Condition(formula, False, site, _KEYWORD, is_kept=True)) if formula is not True else (others,)

    def _may_be_there(self, site: Site, name: str, where: list[Formula]) -> Formula:
        """That a member is evaluated, or satisfies the keyword."""
        others = site.child(_KEYWORD)
        satisfies = False if others.schema is False else Has(name, self._conj((others,)))
        return any_of((negation(Has(name, ())), satisfies, *where))

    def _ways(self, site: Site, seen: set[Site]) -> int:
        """About how many sets of branches that evaluate something may hold; `seen` are schemas that are counted already."""
        ways = 1
        seen.add(site)
        for keyword in ("anyOf", "oneOf", "if"):
            parts = applied(self._parts, site, keyword)
            if any(map(self._annotations.annotates, parts)):
                ways *= 2 ** min(len(parts), 20) - 1 if keyword == "anyOf" else max(len(parts), 2)
        for _, dependent in self._parts.dependencies(site):
            ways *= 2 if isinstance(dependent, Site) and self._annotations.annotates(dependent) else 1
        for part in (*self._parts.subschemas(site, "allOf"), *self._parts.references(site)):
            target = self._parts.target(part)
            ways *= self._ways(target, seen) if ways < MANY_WAYS and target not in seen else 1
        return min(ways, MANY_WAYS)

    def _evaluators(self, site: Site, where: Formula) -> list[Evaluator] | None:
        """The schemas that evaluate members where a formula holds and the site, or None where that says more."""
        target = self._parts.target(site)
        if isinstance(target.schema, bool):
            return []
        branches: list[tuple[Formula | None, Site]] = []
        for part in (*self._parts.subschemas(target, "allOf"), *self._parts.references(target)):
            branches.append((True, part))
        for keyword in ("anyOf", "oneOf"):
            branches += [(self._reading(part), part) for part in self._parts.subschemas(target, keyword)]
        if in_force(target, "if"):
            when, then, otherwise = condition(target) or (target.child("if"), None, None)
            held = self._reading(when)
            branches.append((held, when))
            branches += [(held, then)] if then is not None else []
            branches += [(None if held is None else negation(held), otherwise)] if otherwise is not None else []
        for name, dependent in self._parts.dependencies(target):
            branches += [(Has(name, ()), dependent)] if isinstance(dependent, Site) else []
        if target in self._open:
            return None
        found: list[Evaluator] = [(where, target)]
        self._open.add(target)
        for holds, part in branches:
            if self._annotations.annotates(part):
                below = None if holds is None else self._evaluators(part, all_of((where, holds)))
                if below is None:
                    self._open.discard(target)
                    return None
                found += below
        self._open.discard(target)
        return found

    def _reading(self, site: Site) -> Formula | None:
        found = self._conditions.whole(site)
        return None if found is None else found[0]
