"""The parts of a schema as sites: where its references lead, its subschemas, conditions and dependencies."""

from __future__ import annotations

from typing import Final

from ....base.errors import UnsupportedKeyword
from ..documents.document import Site
from ..documents.keyword_table import APPLICATORS, ASSERTIONS, REFERENCES, UNEVALUATED
from ..documents.keywords import ignored, in_force, is_anything, value_of
from ..documents.policy import Policy
from .claims import Term

_MEANINGFUL: Final = ASSERTIONS | APPLICATORS
_REFERENCES: Final = frozenset(REFERENCES)


class Parts:
    """Finds the parts of sites; a reference that cannot be followed is refused."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def target(self, site: Site) -> Site:
        """The end of a chain of schemas that are nothing but a reference."""
        passed = {site}
        while (keyword := _only_reference(site)) is not None:
            target = self._resolve(site, keyword)
            if target is None:
                return site
            if target in passed:
                raise site.error("$ref", "the schema refers to itself without a value in between")
            passed.add(target)
            site = target
        return site

    def references(self, site: Site) -> list[Site]:
        """Where the references of a site lead."""
        found = (self._resolve(site, keyword) for keyword in REFERENCES if in_force(site, keyword))
        return [target for target in found if target is not None]

    def _resolve(self, site: Site, keyword: str) -> Site | None:
        try:
            return site.document.resolve(site, keyword)
        except UnsupportedKeyword as error:
            self._policy.refuse(error)
            return None

    def subschemas(self, site: Site, keyword: str) -> list[Site]:
        """The schemas that a keyword lists."""
        return [site.child(keyword, i) for i in range(len(value_of(site, keyword) or ()))]

    def dependencies(self, site: Site) -> list[tuple[str, list[str] | Site]]:
        """The names whose presence asks for more, each with the names that have to be there too or the schema that has to hold."""
        out: list[tuple[str, list[str] | Site]] = []
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, dependent in (value_of(site, keyword) or {}).items():
                names = [dependent] if isinstance(dependent, str) else dependent
                if isinstance(names, list):
                    out += [(name, names)] if names else []
                elif not is_anything(dependent):
                    out.append((name, site.child(keyword, name)))
        return out

    def note_ignored(self, site: Site) -> None:
        """Remark on keywords that mean nothing where they stand."""
        for keyword in ignored(site):
            if "$ref" in site.keywords and site.document.draft <= 7:
                self._policy.note(f"{site.path}: {keyword!r} means nothing beside $ref up to draft 7")
            else:
                self._policy.note(f"{site.path}: {keyword!r} is not a keyword of the schema's draft")


def own(site: Site) -> Term:
    """The term of a site's own assertions: the site itself, or nothing where it has none."""
    return () if ASSERTIONS.isdisjoint(site.active) else (site,)


def _only_reference(site: Site) -> str | None:
    """The keyword of a schema that is nothing but one reference."""
    if _REFERENCES.isdisjoint(site.active):
        return None
    meaningful = _MEANINGFUL.intersection(site.active)
    return next(iter(meaningful)) if len(meaningful) == 1 else None


def condition(site: Site) -> tuple[Site, Site | None, Site | None] | None:
    """`if`, `then`, `else`; None when they ask for nothing."""
    if not in_force(site, "if") or not any(in_force(site, key) for key in ("then", "else")):
        return None
    then, otherwise = (site.child(key) if in_force(site, key) else None for key in ("then", "else"))
    return site.child("if"), then, otherwise


def unevaluated_of(site: Site) -> list[str]:
    """The `unevaluated...` keywords that ask for something."""
    return [key for key in UNEVALUATED if in_force(site, key) and not is_anything(site.keywords[key])]
