"""Branches for `unevaluatedProperties` and `unevaluatedItems`: which sites of a schema evaluate items and members in each.

A branch that holds annotates whether or not it was needed, so branches are told apart by which of them hold; where none of a
keyword's has anything to annotate, that does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import product
from typing import Protocol

from ....grammar.stopwatch import look
from ..documents.document import Site
from ..documents.keywords import in_force
from .claims import Term, Unevaluated, has_key, lacks_key
from .parts import Parts, condition, own, unevaluated_of
from .products import MAX_TERMS, Products, check_count, merged, too_many

Annotated = tuple[Term, tuple[Site, ...]]  # a term, and the sites in it whose keywords evaluate items and members


_EVALUATING = frozenset((
    "properties", "patternProperties", "additionalProperties", "unevaluatedProperties",
    "items", "prefixItems", "additionalItems", "contains", "unevaluatedItems",
))  # fmt: skip


class _Branches(Protocol):
    def told(self, site: Site, keyword: str) -> list[Term]: ...

    def dependency(self, name: str, dependent: list[str] | Site) -> list[Term]: ...

    def fails(self, site: Site) -> list[Term]: ...

    def entering(self, site: Site, how: str) -> AbstractContextManager[None]: ...


class Annotations:
    """Computes the annotated branches of sites, once each."""

    def __init__(self, branches: _Branches, parts: Parts, products: Products) -> None:
        self._branches, self._parts, self._products = branches, parts, products
        self._of_site: dict[Site, list[Annotated]] = {}

    def of(self, site: Site) -> list[Annotated]:
        """The branches of a site apart from its own `unevaluated...`, each with the sites whose annotations it collects."""
        known = self._of_site.get(site)
        if known is not None:
            return known
        groups: list[list[Annotated]] = [[(own(site), (site,))]]
        for part in (*self._parts.subschemas(site, "allOf"), *self._parts.references(site)):
            groups.append(self._collected(part))
        groups += [self._told(site, keyword) for keyword in ("anyOf", "oneOf", "not", "if") if in_force(site, keyword)]
        groups += [self._dependency(site, name, dependent) for name, dependent in self._parts.dependencies(site)]
        out = self._of_site[site] = self._both(groups, site)
        return out

    def _told(self, site: Site, keyword: str) -> list[Annotated]:
        """The branches of a keyword that chooses among schemas."""
        parts = applied(self._parts, site, keyword)
        if not any(map(self.annotates, parts)):
            return _bare(self._branches.told(site, keyword))
        if keyword == "anyOf":
            return self._chosen(parts, lambda count: count > 0)
        if keyword == "oneOf":
            most = len(parts) if site.is_loose else 1
            return self._chosen(parts, lambda count: 1 <= count <= most)
        when, then, otherwise = condition(site) or (site.child("if"), None, None)
        return (
            self._both([self._collected(when), self._optional(then)], site)
            + self._both([_bare(self._branches.fails(when)), self._optional(otherwise)], site)
        )

    def _dependency(self, site: Site, name: str, dependent: list[str] | Site) -> list[Annotated]:
        if isinstance(dependent, list) or not self.annotates(dependent):
            return _bare(self._branches.dependency(name, dependent))
        needed = self._both([_bare([(has_key(name),)]), self._collected(dependent)], site)
        return [((lacks_key(name, strict=False),), ()), *needed]

    def annotates(self, site: Site) -> bool:
        """Whether a keyword of a site, or of one that it applies to the same value, evaluates items or members."""
        waiting = [site]
        seen: set[Site] = set()
        while waiting:
            target = self._parts.target(waiting.pop())
            if target in seen or isinstance(target.schema, bool):
                continue
            seen.add(target)
            if not _EVALUATING.isdisjoint(target.active):
                return True
            waiting += self._parts.references(target)
            for keyword in ("allOf", "anyOf", "oneOf", "if"):
                waiting += applied(self._parts, target, keyword)
            waiting += [each for _, each in self._parts.dependencies(target) if isinstance(each, Site)]
        return False

    def _collected(self, site: Site) -> list[Annotated]:
        target = self._parts.target(site)
        if isinstance(target.schema, bool):
            return [((), ())] if target.schema else []
        with self._branches.entering(target, "annotates"):
            branches = self.of(target)
        if wanted := unevaluated_of(target):
            return [(term + tuple(Unevaluated(target, each, seen) for each in wanted), seen) for term, seen in branches]
        return branches

    def _optional(self, site: Site | None) -> list[Annotated]:
        return [((), ())] if site is None else self._collected(site)

    def _chosen(self, parts: list[Site], is_right: Callable[[int], bool]) -> list[Annotated]:
        """The cases in which a right number of schemas hold, one for each set of schemas that may be those."""
        if 2 ** len(parts) > MAX_TERMS:
            raise too_many(2 ** len(parts), tuple(parts))
        out: list[Annotated] = []
        for signs in product((True, False), repeat=len(parts)):
            if is_right(sum(signs)):
                chosen = [
                    self._collected(part) if holds else _bare(self._branches.fails(part))
                    for part, holds in zip(parts, signs, strict=True)
                ]
                out += self._both(chosen, parts[0])
        return out

    def _both(self, groups: Sequence[list[Annotated]], where: Site) -> list[Annotated]:
        """The branches that combine one of each group, without those that are void."""
        out: list[Annotated] = [((), ())]
        for group in groups:
            check_count(len(out) * len(group), (where,))
            joined: dict[Annotated, None] = {}
            for a, x in out:
                look()
                for b, y in group:
                    term = merged(a, b)
                    if not self._products.is_empty(term):
                        joined[term, tuple(dict.fromkeys(x + y))] = None
            out = list(joined)
        return out


def applied(parts: Parts, site: Site, keyword: str) -> list[Site]:
    """The schemas of a keyword that may annotate the value that it is about."""
    if not in_force(site, keyword) or keyword == "not":
        return []
    if keyword != "if":
        return parts.subschemas(site, keyword)
    return [each for each in condition(site) or (site.child("if"),) if each is not None]


def _bare(terms: list[Term]) -> list[Annotated]:
    """Branches that annotate nothing."""
    return [(term, ()) for term in terms]
