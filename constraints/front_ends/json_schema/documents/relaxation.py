"""What is left out of a schema so that all that is left is enforced exactly, and admits every value that the schema admits.

A keyword that is refused is left out where it stands. That widens the schema around it, unless a wider part makes it narrower:
below `not` and `if` these go as a whole, `oneOf` no longer asks that no other branch holds, `maxContains` goes, and so does what is
said of members and items that nothing else speaks of, once it is not known which those are.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....base.errors import UnsupportedKeyword
from .document import Site
from .keyword_table import REFERENCES, UNEVALUATED, Role, of_role
from .reach import below_of, reachable

_Above = dict[Site, list[tuple[Site, str]]]  # the sites right above each, with the keyword that leads from there
_IN_PLACE = frozenset(of_role(Role.REFERENCE, Role.APPLICATOR, Role.MODIFIER))  # which apply schemas to the value itself
_EVALUATING = frozenset((*REFERENCES, *UNEVALUATED, "if", "patternProperties", "additionalProperties"))  # of those that may go
_NARROWER_IF_WIDER = {
    "not": ("not", "it negates {}, which is not enforced exactly"),
    "if": ("if", "it asks whether {} holds, which is not enforced exactly"),
    "oneOf": ("oneOf", "several branches may hold, as {} is not enforced exactly"),
    "contains": ("maxContains", "it counts what satisfies {}, which is not enforced exactly"),
}
"""By keyword with schemas that makes the schema narrower as they get wider: the keyword that goes, and the reason."""


class Relaxation:
    """The keywords of a schema that are not enforced, by path, each with the reason."""

    def __init__(self) -> None:
        self.dropped: dict[str, dict[str, str]] = {}

    def add(self, refused: Iterable[UnsupportedKeyword], root: Site) -> bool:
        """Leave out what was refused in a schema, and whatever has to go with it. Whether there was anything new."""
        before = self._count()
        for error in refused:
            self._drop(str(error.path), str(error.keyword), error.reason)
        self._widen(list(reachable(root)))
        return self._count() > before

    def _count(self) -> int:
        return sum(map(len, self.dropped.values()))

    def _drop(self, path: str, keyword: str, reason: str) -> None:
        self.dropped.setdefault(path, {}).setdefault(keyword, reason)

    def _widen(self, sites: list[Site]) -> None:
        """Leave out what would make the schema narrower now that parts of it are wider."""
        above: _Above = {}
        for site in sites:
            for keyword, below in below_of(site):
                above.setdefault(below, []).append((site, keyword))
        for site in _with_all_above([site for site in sites if site.path in self.dropped], above, None):
            for parent, keyword in above.get(site, ()):
                if keyword in _NARROWER_IF_WIDER:
                    narrower, reason = _NARROWER_IF_WIDER[keyword]
                    self._drop_at(parent, narrower, reason.format(site.path))
        for site in sites:
            if "patternProperties" in self.dropped.get(site.path, ()):
                self._drop_at(site, "additionalProperties", "which members these are is not known without patternProperties")
        unknown = [site for site in sites if not _EVALUATING.isdisjoint(self.dropped.get(site.path, ()))]
        for site in _with_all_above(unknown, above, _IN_PLACE):
            for keyword in UNEVALUATED:
                self._drop_at(site, keyword, "which members and items these are is not known without what is not enforced")

    def _drop_at(self, site: Site, keyword: str, reason: str) -> None:
        if keyword in site.active:
            self._drop(site.path, keyword, reason)


NOTHING_DROPPED = Relaxation()  # to which nothing is added


def _with_all_above(sites: list[Site], above: _Above, keywords: frozenset[str] | None) -> list[Site]:
    """Some sites, and all from which they are reached through these keywords (None: through any)."""
    met, todo = dict.fromkeys(sites), list(sites)
    while todo:
        for parent, keyword in above.get(todo.pop(), ()):
            if parent not in met and (keywords is None or keyword in keywords):
                met[parent] = None
                todo.append(parent)
    return list(met)
