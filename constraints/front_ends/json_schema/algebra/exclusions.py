"""Terms without `Exclusive` literals: that no other branch of a `oneOf` holds, or none at all, is spelled out.

Most often the branches exclude each other anyway, and nothing is left to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..documents.document import Site
from ..documents.policy import Policy
from .atoms import literal_atoms
from .claims import ALL_ATOMS, Exclusive, Kinds, Term
from .parts import Parts
from .products import MAX_TERMS, Products, too_many

Cases = tuple[str, list[tuple[Term, list[int]]]]  # a member; cases of its value, and which of some schemas may hold in each


class _Branches(Protocol):
    def holds(self, site: Site) -> list[Term]: ...

    def fails(self, site: Site) -> list[Term]: ...


class Exclusions:
    """Settles terms. `are_apart` proves that no value satisfies two schemas; `cases` tells schemas apart (discriminators.py)."""

    def __init__(
        self, policy: Policy, branches: _Branches, parts: Parts, products: Products, are_apart: Callable[[list[list[Term]]], bool],
        cases: Callable[[list[list[Term]], frozenset[str]], Cases | None],
    ) -> None:  # fmt: skip
        self._policy, self._branches, self._parts, self._products = policy, branches, parts, products
        self._are_apart, self._cases = are_apart, cases
        self._exclude_each_other: dict[tuple[Site, frozenset[str]], bool] = {}

    def settled(self, term: Term) -> list[Term]:
        """The term without `Exclusive` literals: dropped where the branches exclude each other, else spelled out."""
        open_terms, done = [term], []
        while open_terms:
            current = open_terms.pop()
            self._policy.check_time(None)
            exclusive = next((each for each in current if isinstance(each, Exclusive)), None)
            if exclusive is None:
                done.append(current)
                continue
            rest = tuple(each for each in current if each is not exclusive)
            open_terms += self._alone(rest, exclusive)
            if len(open_terms) + len(done) > MAX_TERMS:
                raise too_many(len(open_terms) + len(done), (exclusive.site,))
        return done[::-1]

    def exclude_each_other(self, site: Site, term: Term) -> bool:
        """Whether it is proven that no value of the types that a term leaves satisfies two branches of the `oneOf` of a site."""
        atoms = ALL_ATOMS.intersection(*map(literal_atoms, term))
        known = self._exclude_each_other.get((site, atoms))
        if known is None:
            kinds = () if atoms == ALL_ATOMS else (Kinds(atoms),)
            parts = self._parts.subschemas(site, "oneOf")
            branches = [[(*kinds, *each) for each in self._branches.holds(part)] for part in parts]
            known = self._exclude_each_other[site, atoms] = self._are_apart(branches)
        return known

    def _alone(self, rest: Term, exclusive: Exclusive) -> list[Term]:
        site = exclusive.site
        if exclusive.index is not None and self.exclude_each_other(site, rest):
            return [rest]
        parts = self._parts.subschemas(site, exclusive.keyword)
        return self._without(rest, [part for index, part in enumerate(parts) if index != exclusive.index])

    def _without(self, term: Term, parts: list[Site], decided: frozenset[str] = frozenset()) -> list[Term]:
        """The alternatives of a term in which none of some schemas holds.

        Where the value of a member that is not yet `decided` tells the schemas apart, its cases are told apart first.
        """
        near = [part for part in parts if not self._is_apart(term, part)]
        found = self._cases([self._branches.holds(part) for part in near], decided) if len(near) > 1 else None
        if found is None:
            return self._without_any(term, near)
        name, cases = found
        out: list[Term] = []
        for condition, left in cases:
            for case in self._products.joined([[term], [condition]], (near[0],)):
                out += self._without(case, [near[i] for i in left], decided | {name})
        return list(dict.fromkeys(out))

    def _without_any(self, term: Term, parts: list[Site]) -> list[Term]:
        terms = [term]
        for part in sorted(parts, key=lambda part: len(self._branches.fails(part))):
            apart = {each: self._is_apart(each, part) for each in terms}
            others = [each for each in terms if not apart[each]]
            terms = [each for each in terms if apart[each]] + self._products.joined([others, self._branches.fails(part)], (part,))
        return terms

    def _is_apart(self, term: Term, part: Site) -> bool:
        self._policy.check_time(part.path)
        return self._are_apart([[term], self._branches.holds(part)])
