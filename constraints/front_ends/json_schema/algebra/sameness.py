"""One site for all schemas that say the same, so that what is known of one is known of all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from ..documents.document import Site
from ..documents.keywords import is_anything
from .claims import Claim, Clause, Conj, Count, Literal, Not, Term
from .numbering import Numbering
from .parts import Parts


class Sameness:
    """Remembers the first of the sites that say the same."""

    def __init__(self, parts: Parts, numbering: Numbering) -> None:
        self._parts, self._numbering = parts, numbering
        self._simple: dict[Claim, tuple[Claim, ...]] = {}  # of sites
        self._negated: dict[Site, tuple[Claim, ...]] = {}
        self._by_outline: dict[Hashable, Site] = {}
        self._first: dict[Hashable, Site] = {}  # by number
        self._like: dict[Site, Site] = {}

    def conj(self, claims: Iterable[Claim]) -> Conj:
        """The conjunction of some claims: each once, none that holds of everything, and targets for plain references."""
        simple = self._simple
        found = [known if (known := simple.get(claim)) is not None else self._simplified(claim) for claim in claims]
        return found[0] if len(found) == 1 else tuple(dict.fromkeys(claim for each in found for claim in each))

    def _simplified(self, claim: Claim) -> tuple[Claim, ...]:
        if isinstance(claim, Site):
            known = self._simple.get(claim)
            if known is None:
                target = self._parts.target(claim)
                known = self._simple[claim] = () if is_anything(target.schema) else (self.lowered_as(target),)
            return known
        if isinstance(claim, Not) and isinstance(claim.claim, Site):
            known = self._negated.get(claim.claim)
            if known is None:
                target = self._parts.target(claim.claim)
                known = self._negated[claim.claim] = () if target.schema is False else (Not(target),)
            return known
        return (claim,)

    def lowered_as(self, site: Site) -> Site:
        """The first site that says the same, unless every place is to be told of."""
        first = self._by_outline.setdefault(self._numbering.outline(site), site)
        if first is site or not self._numbering.is_lowered_once(site.schema):
            return site
        self._first_like(first)  # its number was not asked for as long as no other had its outline
        return self._first_like(site)

    def _first_like(self, site: Site) -> Site:
        """The first site that says the same as this one and whose references lead to the same schemas."""
        known = self._like.get(site)
        if known is None:
            known = self._like[site] = self._first.setdefault(self._numbering.of(site.schema, site.document, site.scope), site)
        return known

    def is_contradiction(self, conj: Conj) -> bool:
        """Whether a conjunction has a schema, and that it does not hold."""
        wrong = [claim.claim for claim in conj if isinstance(claim, Not)]
        if not wrong:
            return False
        said = set(map(self._alike, conj))
        return any(self._alike(claim) in said for claim in wrong)

    def resolved(self, literal: Literal) -> Literal:
        """The literal with references resolved, so that violations of one schema in several places are equal."""
        if isinstance(literal, Clause):
            return replace(literal, options=tuple(dict.fromkeys(map(self._resolved, literal.options))))
        return self._resolved(literal) if isinstance(literal, Count) else literal

    def _resolved(self, literal: Count) -> Count:
        return replace(literal, conj=tuple(map(self._alike, self.conj(literal.conj))))

    def shared(self, term: Term) -> Term:
        """The term with one site for all that say the same."""
        return tuple(dict.fromkeys(self._first_like(literal) if isinstance(literal, Site) else literal for literal in term))

    def _alike(self, claim: Claim) -> Claim:
        if isinstance(claim, Not):
            return Not(self._first_like(claim.claim)) if isinstance(claim.claim, Site) else claim
        return self._first_like(claim) if isinstance(claim, Site) else claim
