"""References and combinations resolved: a conjunction of claims as a list of alternatives.

`$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if` and the `dependent...` keywords are followed until only literals are left. A term
lists its sites in the order of a depth-first reading (own keywords, `allOf`, `$ref`, the chosen branches), which is the order of an
object's declared names. Negation is pushed inwards (De Morgan) down to single violated keywords, see negation.py.

`oneOf` means one branch and none of the others. What excludes the others is kept as one literal, `Exclusive`, until the term is
wanted (exclusions.py): finding out whether branches exclude each other may need the terms of members, which may lead back to the
schema in question. The same literal stands for many branches of which none holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from ....base.errors import ConstraintLimit
from ..documents.document import Site
from ..documents.keyword_table import APPLICATORS, ASSERTIONS
from ..documents.keywords import in_force
from ..documents.policy import MAX_APPLIED, Policy, too_deep
from .annotations import Annotations
from .claims import (
    Among,
    Cell,
    Claim,
    Condition,
    Conj,
    Equals,
    Exclusive,
    Not,
    Term,
    Unevaluated,
    has_key,
    implied,
    implied_keys,
    lacks_key,
    with_clause,
)
from .closed_branches import ClosedBranches
from .conditions import Conditions
from .evaluated_members import EvaluatedMembers
from .exclusions import Cases, Exclusions
from .negation import differing, violations
from .numbering import Numbering
from .parts import Parts, condition, own, unevaluated_of
from .products import FEW, MAX_TERMS, Products, check_count, union
from .sameness import Sameness

_MEANINGFUL: Final = ASSERTIONS | APPLICATORS
FEW_PRODUCTS: Final = 32  # alternatives that conditions multiply to; where there are more, they stay conditions
FEW_EXCLUSIVE: Final = 4  # branches of which each is told from all others, though they may hold together
FEW_OF_EACH: Final = 8  # as many times those of one condition, where that is more


class Branches:
    """Terms of conjunctions, computed once each.

    `are_apart` proves that no value satisfies two terms; `is_void` that none satisfies one; `cases` tells schemas apart
    (discriminators.py).
    """

    def __init__(
        self, policy: Policy, numbering: Numbering, are_apart: Callable[[list[list[Term]]], bool], is_void: Callable[[Term], bool],
        cases: Callable[[list[list[Term]], frozenset[str]], Cases | None],
    ) -> None:  # fmt: skip
        self._policy, self._parts = policy, Parts(policy)
        self._sameness = Sameness(self._parts, numbering)
        self._products = Products(policy, self._sameness, is_void)
        self._are_apart, self._cases = are_apart, cases
        self._combinations: _Combinations | None = None  # made when they are first asked for: many schemas have none
        self.conj, self.is_contradiction = self._sameness.conj, self._sameness.is_contradiction
        self._of_conj: dict[Conj, list[Term]] = {}
        self._pending: dict[Conj, list[Term]] = {}
        self._of_claim: dict[tuple[Claim, bool], list[Term]] = {}
        self._open: set[tuple[Site, str]] = set()  # on the way down: a reference to one of them has no meaning

    @property
    def _combined(self) -> _Combinations:
        if self._combinations is None:
            conditions = Conditions(self._parts, self._sameness.conj)
            annotations = Annotations(self, self._parts, self._products)
            self._combinations = _Combinations(
                conditions, ClosedBranches(self._parts, conditions, self._sameness.conj),
                EvaluatedMembers(self._parts, conditions, annotations, self._sameness.conj), annotations,
                Exclusions(self._policy, self, self._parts, self._products, self._are_apart, self._cases),
            )  # fmt: skip
        return self._combinations

    def terms(self, conj: Conj) -> list[Term]:
        """The alternatives of a conjunction; none when nothing satisfies it."""
        known = self._of_conj.get(conj)
        if known is None:
            pending = self._plain_terms(conj) or self._terms_by_type(conj) or self.pending_terms(conj)
            if any(isinstance(literal, (Exclusive, Condition)) for term in pending for literal in term):
                pending = list(dict.fromkeys(term for each in pending for term in self._settled(each)))
            known = self._of_conj[conj] = pending
        return known

    def _settled(self, term: Term) -> list[Term]:
        """The term without `Exclusive` literals, and without conditions that are better told apart as alternatives, unless these
        are many."""
        open_terms, done = [term], []
        while open_terms:
            current = open_terms.pop()
            if any(isinstance(literal, Exclusive) for literal in current):
                open_terms += self._combined.exclusions.settled(current)[::-1]
                continue
            spelled = [each for each in self._combined.conditions.spelled_out(current) if not self._excludes(each, current)]
            if not spelled:
                done.append(current)
                continue
            try:
                open_terms += self._told_apart(current, spelled, are_few=True)[::-1]
            except ConstraintLimit as error:
                if error.limit != "alternatives":
                    raise
                done.append(current)
            check_count(len(open_terms) + len(done), (spelled[0].site,))
        return done

    def _excludes(self, condition: Condition, term: Term) -> bool:
        """Whether a condition is that one of many branches holds, which are not known to exclude each other: each would have to say
        of all others that they do not."""
        site = condition.site
        if condition.keyword != "oneOf" or site.is_loose or len(self._parts.subschemas(site, "oneOf")) <= FEW_EXCLUSIVE:
            return False
        return not self._combined.exclusions.exclude_each_other(site, term)

    def spelled_out(self, term: Term) -> list[Term]:
        """The alternatives that a term comes to without its conditions."""
        told = [each for each in term if isinstance(each, Condition)]
        if not told:
            return [term]
        return list(dict.fromkeys(each for case in self._told_apart(term, told) for each in self._settled(case)))

    def _told_apart(self, term: Term, conditions: Sequence[Condition], are_few: bool = False) -> list[Term]:
        """The alternatives that a term comes to without some of its conditions; there may be `Exclusive` literals in them. If
        `are_few`, they are refused where the conditions multiply."""
        rest = tuple(literal for literal in term if literal not in conditions)
        groups = [self._alternatives(each.site, each.keyword, each.dependent) for each in conditions]
        most = max(FEW_PRODUCTS, FEW_OF_EACH * max(map(len, groups))) if are_few else MAX_TERMS
        return self._products.joined([[rest], *groups], (conditions[0].site,), most)

    def _plain_terms(self, conj: Conj) -> list[Term]:
        """The one alternative of a schema that applies no others to the value itself, as most do; none for other schemas."""
        site = conj[0] if len(conj) == 1 else None
        if not isinstance(site, Site) or isinstance(site.schema, bool) or not APPLICATORS.isdisjoint(site.active):
            return []
        self._parts.note_ignored(site)
        return [own(site)]

    def _terms_by_type(self, conj: Conj) -> list[Term]:
        """The alternatives of a schema that is one of others, which are each of another type and apply none to the value itself;
        none for other schemas."""
        site = conj[0] if len(conj) == 1 else None
        if not isinstance(site, Site) or len(site.active) != len(site.keywords):
            return []
        meaningful = list(_MEANINGFUL.intersection(site.active))
        if meaningful not in (["anyOf"], ["oneOf"]) or len(site.active[meaningful[0]]) < 2:
            return []
        found: dict[str, Term] = {}
        for part in self._parts.subschemas(site, meaningful[0]):
            target = self._sameness.lowered_as(self._parts.target(part))
            kind = target.active.get("type")
            kind = "number" if kind == "integer" else kind
            is_plain = len(target.active) == len(target.keywords) and APPLICATORS.isdisjoint(target.active)
            if not (is_plain and isinstance(kind, str)) or kind in found:
                return []
            found[kind] = (target,)
        return list(found.values())

    def pending_terms(self, conj: Conj) -> list[Term]:
        """The alternatives of a conjunction, with `Exclusive` literals in them. Without these literals they admit more values."""
        known = self._pending.get(conj)
        if known is None:
            void = self.is_contradiction(conj)
            known = self._pending[conj] = [] if void else self._products.joined([self._claim(claim, True) for claim in conj], conj)
        return known

    def _claim(self, claim: Claim, holds: bool) -> list[Term]:
        """The alternatives of a claim, or of its negation."""
        if isinstance(claim, Not):
            return self._claim(claim.claim, not holds)
        key = (claim, holds)
        known = self._of_claim.get(key)
        if known is None:
            self._policy.check_time(claim.path)
            if isinstance(claim, Site):
                with self.entering(claim, "holds" if holds else "fails"):
                    known = self._expanded(claim) if holds else self._refuted(claim)
            elif isinstance(claim, Cell):
                assert holds
                known = list(claim.terms)
            elif isinstance(claim, Equals):
                known = [(Among((claim.key,), (claim.value,)),)] if holds else with_clause(differing(claim.value))
            elif holds:
                known = union(self.pending_terms(conj) for conj in claim.options)
            else:
                none = [union(self._claim(each, False) for each in conj) for conj in claim.options]
                known = self._products.joined(none, (claim,))
            self._of_claim[key] = known
        return known

    def holds(self, site: Site) -> list[Term]:
        return self._claim(self._sameness.lowered_as(self._parts.target(site)), True)

    def fails(self, site: Site) -> list[Term]:
        return self._claim(self._sameness.lowered_as(self._parts.target(site)), False)

    def entering(self, site: Site, how: str) -> _Entered:
        """Marks a site as being expanded, while the context lasts."""
        return _Entered(self._open, site, how)

    # -- a schema that holds ----------------------------------------------------------------------------------------

    def _expanded(self, site: Site) -> list[Term]:
        if isinstance(site.schema, bool):
            return [()] if site.schema else []
        self._parts.note_ignored(site)
        if APPLICATORS.isdisjoint(site.active):
            return [own(site)]
        wanted = unevaluated_of(site)
        evaluated = self._combined.evaluated.of(site) if wanted == ["unevaluatedProperties"] else None
        if wanted and evaluated is None:
            return self._products.joined([self._annotated(site)], (site,))
        groups: list[list[Term]] = [[own(site)], *(self.holds(part) for part in self._parts.subschemas(site, "allOf"))]
        groups += [self.holds(target) for target in self._parts.references(site)]
        groups += [self.told(site, keyword) for keyword in ("anyOf", "oneOf", "not", "if") if in_force(site, keyword)]
        groups += self._dependencies(site)
        groups += [[evaluated]] if evaluated is not None else []
        return self._products.joined(groups, (site,))

    def _annotated(self, site: Site) -> list[Term]:
        """The alternatives of a site with `unevaluated...`, each knowing what it has evaluated."""
        wanted = unevaluated_of(site)
        branches = self._combined.annotations.of(site)
        return [term + tuple(Unevaluated(site, each, seen) for each in wanted) for term, seen in branches]

    def told(self, site: Site, keyword: str) -> list[Term]:
        """What a keyword asks for: as one condition where that is shorter, else as alternatives."""
        if keyword == "oneOf" and (closed := self._combined.closed.of(site)) is not None:
            return [closed]
        found = self._combined.conditions.of(site, keyword)
        return [(found,)] if found is not None else self._alternatives(site, keyword)

    def _alternatives(self, site: Site, keyword: str, dependent: str | None = None) -> list[Term]:
        if keyword == "anyOf":
            parts = [self.holds(part) for part in self._parts.subschemas(site, "anyOf")]
            return [()] if [()] in parts else union(parts)  # what admits everything makes the others idle
        if keyword == "oneOf":
            return self._one_of(site)
        if keyword == "not":
            return self.fails(site.child("not"))
        if keyword == "if":
            return self._cases_of_if(site)
        if keyword == "fails":
            return self._violated(site)
        if keyword == "unevaluatedProperties":
            return self._annotated(site)
        assert dependent is not None
        return implied(dependent, self.holds(site))

    def _one_of(self, site: Site) -> list[Term]:
        parts = [self.holds(part) for part in self._parts.subschemas(site, "oneOf")]
        if site.is_loose or sum(map(bool, parts)) < 2:
            return union(parts)
        return [(*term, Exclusive(site, index)) for index, part in enumerate(parts) for term in part]

    def _cases_of_if(self, site: Site) -> list[Term]:
        given = condition(site)
        if given is None:
            return [()]
        when, then, otherwise = given
        return (
            self._products.joined([self.holds(when), self._optional(then, True)], (site,))
            + self._products.joined([self.fails(when), self._optional(otherwise, True)], (site,))
        )  # fmt: skip

    def _dependencies(self, site: Site) -> list[list[Term]]:
        """The cases of each key whose presence asks for more: one group of alternatives for each."""
        return [self.dependency(name, dependent) for name, dependent in self._parts.dependencies(site)]

    def dependency(self, name: str, dependent: list[str] | Site) -> list[Term]:
        """What the presence of a key asks for."""
        if isinstance(dependent, list):
            return [implied_keys(name, dependent)]
        found = self._combined.conditions.of_dependent(name, dependent)
        return [(found,)] if found is not None else implied(name, self.holds(dependent))

    def _optional(self, site: Site | None, holds: bool) -> list[Term]:
        """A schema that may be missing, and then admits everything."""
        if site is None:
            return [()] if holds else []
        return self.holds(site) if holds else self.fails(site)

    # -- a schema that fails ----------------------------------------------------------------------------------------

    def _refuted(self, site: Site) -> list[Term]:
        if isinstance(site.schema, bool):
            return [] if site.schema else [()]
        return self.told(site, "fails")

    def _violated(self, site: Site) -> list[Term]:
        groups = [[tuple(map(self._sameness.resolved, term)) for term in violations(site)]]
        groups += [self.fails(part) for part in (*self._parts.subschemas(site, "allOf"), *self._parts.references(site))]
        if in_force(site, "anyOf"):
            groups.append(self._none_of(site, "anyOf"))
        if in_force(site, "oneOf"):
            groups.append(self._not_one_of(site))
        if in_force(site, "not"):
            groups.append(self.holds(site.child("not")))
        if given := condition(site):
            when, then, otherwise = given
            groups.append(self._products.joined([self.holds(when), self._optional(then, False)], (site,)))
            groups.append(self._products.joined([self.fails(when), self._optional(otherwise, False)], (site,)))
        for name, dependent in self._parts.dependencies(site):
            present: Term = (has_key(name),)
            missing: list[Term] = (
                [(lacks_key(each),) for each in dependent] if isinstance(dependent, list) else self.fails(dependent)
            )
            groups.append(self._products.joined([[present], with_clause(missing)], (site,)))
        for keyword in unevaluated_of(site):
            branches = self._combined.annotations.of(site)
            groups.append([(*term, Unevaluated(site, keyword, seen, holds=False)) for term, seen in branches])
        return with_clause(union(groups))

    def _none_of(self, site: Site, keyword: str) -> list[Term]:
        groups = [self.fails(part) for part in self._parts.subschemas(site, keyword)]
        if math.prod(map(len, groups)) > FEW:
            return [(Exclusive(site, None, keyword),)]
        return self._products.joined(groups, (site,))

    def _not_one_of(self, site: Site) -> list[Term]:
        """The alternatives in which none of the branches holds, or two of them do."""
        parts = self._parts.subschemas(site, "oneOf")
        pairs = ((a, b) for i, a in enumerate(parts) for b in parts[:i])
        two = (self._products.joined([self.holds(a), self.holds(b)], (site,)) for a, b in pairs)
        return union([self._none_of(site, "oneOf"), *two])


class _Combinations:
    """What is asked about schemas that apply others to the value itself."""

    def __init__(
        self, conditions: Conditions, closed: ClosedBranches, evaluated: EvaluatedMembers, annotations: Annotations,
        exclusions: Exclusions,
    ) -> None:  # fmt: skip
        self.conditions, self.closed, self.evaluated = conditions, closed, evaluated
        self.annotations, self.exclusions = annotations, exclusions


class _Entered:
    """A context that marks a site as being expanded. Entering the site again inside of it is an error, and so is going too deep."""

    def __init__(self, entered: set[tuple[Site, str]], site: Site, how: str) -> None:
        self._entered, self._key = entered, (site, how)

    def __enter__(self) -> None:
        if self._key in self._entered:
            raise self._key[0].error("$ref", "the schema refers to itself without a value in between")
        if len(self._entered) >= MAX_APPLIED:
            raise too_deep()
        self._entered.add(self._key)

    def __exit__(self, *unused: Any) -> None:
        self._entered.discard(self._key)
