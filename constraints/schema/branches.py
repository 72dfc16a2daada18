"""References and combinations resolved: a conjunction of sites as a list of alternatives.

A *conjunction* (`Conj`) is a tuple of sites, all of which a value must satisfy. It is the union of its *terms*: tuples of sites
of which only the keywords about the value itself (`keywords.OWN`) still count, because `$ref`, `allOf`, `anyOf` and `oneOf` are
followed. A term lists its sites in the order of a depth-first reading (own keywords, `allOf`, `$ref`, the chosen branches), which
is the order of an object's declared names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

from ..errors import ConstraintLimit, UnsupportedKeyword
from .document import Site, shown
from .keywords import APPLICATORS, OWN, REFERENCES, ignored, in_force, instead_of, is_anything, value_of
from .policy import Policy

Conj = tuple[Site, ...]
Term = tuple[Site, ...]
MAX_TERMS = 20_000  # alternatives of one conjunction: each anyOf beside another multiplies them

AreDisjoint = Callable[[list[list[Term]]], bool]


class Branches:
    """Terms of conjunctions, computed once each. `are_disjoint` proves that no value satisfies two groups of terms."""

    def __init__(self, policy: Policy, are_disjoint: AreDisjoint) -> None:
        self._policy, self._are_disjoint = policy, are_disjoint
        self._of_conj: dict[Conj, list[Term]] = {}
        self._of_site: dict[Site, list[Term]] = {}
        self._open: set[Site] = set()  # on the way down: a reference to one of them has no meaning
        self._claims: list[tuple[Site, list[list[Term]]]] = []  # uses of oneOf as a union, not yet proven

    def terms(self, conj: Conj) -> list[Term]:
        """The alternatives of a conjunction; none when a site is `false`."""
        known = self._of_conj.get(conj)
        if known is None:
            known = self._of_conj[conj] = _joined([self.of_site(site) for site in conj], conj)
        return known

    def conj(self, sites: Iterable[Site]) -> Conj:
        """Sites without repetition, without those that admit everything, and with plain references replaced by their target."""
        targets = (self._target(site) for site in sites)
        return tuple(dict.fromkeys(site for site in targets if not is_anything(site.schema)))

    def of_site(self, site: Site) -> list[Term]:
        """The alternatives of one site."""
        known = self._of_site.get(site)
        if known is None:
            if site in self._open:
                raise site.error("$ref", "the schema refers to itself without a value in between")
            self._open.add(site)
            known = self._of_site[site] = self._expand(site)
            self._open.discard(site)
        return known

    def prove(self) -> None:
        """Prove that the branches of every `oneOf` met so far exclude each other, or refuse it.

        Apart from finding the terms, because a proof looks into members, which may lead back to the schema in question.
        """
        while self._claims:
            site, groups = self._claims.pop()
            if not self._are_disjoint(groups):
                reason = "two branches may hold for the same value"
                self._policy.refuse(site.unsupported("oneOf", reason, instead_of("oneOf")))

    def _target(self, site: Site) -> Site:
        """The end of a chain of schemas that are nothing but a reference."""
        passed = {site}
        while in_force(site, "$ref") and not any(in_force(site, key) for key in _MEANINGFUL):
            target = self._resolve(site)
            if target is None:
                return site
            if target in passed:
                raise site.error("$ref", "the schema refers to itself without a value in between")
            passed.add(target)
            site = target
        return site

    def _resolve(self, site: Site, keyword: str = "$ref") -> Site | None:
        try:
            return site.document.resolve(site, keyword)
        except UnsupportedKeyword as error:
            self._policy.refuse(error)
            return None

    def _expand(self, site: Site) -> list[Term]:
        if isinstance(site.schema, bool):
            return [()] if site.schema else []
        self._note_ignored(site)
        if self._admits_nothing(site):
            return []
        own: list[Term] = [(site,) if any(in_force(site, key) for key in OWN) else ()]
        groups = [own, *(self.of_site(part) for part in self._subschemas(site, "allOf"))]
        for keyword in (key for key in REFERENCES if in_force(site, key)):
            target = self._resolve(site, keyword)
            groups.append([()] if target is None else self.of_site(self._target(target)))
        common = _joined(groups, (site,))
        choices = [self._union(site, "anyOf")] if in_force(site, "anyOf") else []
        if in_force(site, "oneOf"):
            choices.append(self._exclusive_union(site, common))
        return _joined([common, *choices], (site,))

    def _union(self, site: Site, keyword: str) -> list[Term]:
        parts = (self.of_site(self._target(part)) for part in self._subschemas(site, keyword))
        return list(dict.fromkeys(term for part in parts for term in part))

    def _exclusive_union(self, site: Site, common: list[Term]) -> list[Term]:
        """`oneOf` as a plain union; `prove` makes sure that no value satisfies two branches."""
        parts = [self.of_site(self._target(part)) for part in self._subschemas(site, "oneOf")]
        parts = [part for part in parts if part]
        context = common[0] if len(common) == 1 else ()
        in_context = [[merged(context, term) for term in part] for part in parts]
        if len(parts) > 1:
            self._claims.append((site, in_context))
        return list(dict.fromkeys(term for part in parts for term in part))

    def _subschemas(self, site: Site, keyword: str) -> list[Site]:
        branches = value_of(site, keyword)
        if branches is None:
            return []
        if not isinstance(branches, list) or not branches:
            raise site.error(keyword, f"a list of at least one schema is expected, not {shown(branches)}")
        return [site.child(keyword, i) for i in range(len(branches))]

    def _admits_nothing(self, site: Site) -> bool:
        """Deals with the combinations that are not enforced, which are refused unless they say nothing or exclude everything."""
        negated: Any = value_of(site, "not")
        if is_anything(negated):
            return True
        unsupported = []
        if negated is not None and negated is not False:
            unsupported.append("not")
        if in_force(site, "if") and not all(is_anything(site.keywords.get(key, True)) for key in ("then", "else")):
            unsupported.append("if")
        for keyword in unsupported:
            self._policy.refuse(site.unsupported(keyword, "not enforced yet", instead_of(keyword)))
        return False

    def _note_ignored(self, site: Site) -> None:
        for keyword in ignored(site):
            if "$ref" in site.keywords and site.document.draft <= 7:
                self._policy.note(f"{site.path}: {keyword!r} means nothing beside $ref up to draft 7")
            else:
                self._policy.note(f"{site.path}: {keyword!r} is not a keyword of the schema's draft")


_MEANINGFUL = OWN.union(APPLICATORS) - {"$ref"}


def merged(first: Term, second: Term) -> Term:
    """Both terms as one, each site once."""
    return tuple(dict.fromkeys(first + second)) if first and second else first or second


def _joined(groups: Sequence[list[Term]], where: Conj) -> list[Term]:
    """One term of each group, in all combinations."""
    count = 1
    for group in groups:
        count *= len(group)
    if count > MAX_TERMS:
        raise ConstraintLimit(
            f"{count} combinations of alternatives", limit="alternatives", value=MAX_TERMS,
            path=where[0].path if where else None, instead="fewer anyOf that hold at the same time",
        )  # fmt: skip
    combined = (tuple(dict.fromkeys(site for term in choice for site in term)) for choice in product(*groups))
    return list(dict.fromkeys(combined))
