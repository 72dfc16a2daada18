"""The sites that values may meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ....base.errors import ConstraintError
from .document import Site
from .drafts import position
from .keyword_table import ANNOTATIONS, REFERENCES, Position


def reachable(root: Site) -> Iterator[Site]:
    """Every site that a value of the root may meet: subschemas of keywords in force, and what references lead to."""
    todo, met = [root], {root}
    while todo:
        site = todo.pop()
        yield site
        below = [other for _, other in below_of(site) if other not in met]
        met.update(below)
        todo.extend(reversed(list(dict.fromkeys(below))))


def below_of(site: Site) -> Iterator[tuple[str, Site]]:
    """The sites right below one, each with the keyword that has it or refers to it."""
    for keyword, value in site.active.items():
        if keyword in ANNOTATIONS:
            continue  # what `$defs` holds counts where a reference leads to it
        with suppress(ConstraintError):  # the compiler tells what is wrong
            if keyword in REFERENCES:
                yield keyword, site.document.resolve(site, keyword)
                continue
            kind = position(Position.SCHEMA, keyword, value, site.document.draft)
            if kind is Position.SCHEMA:
                yield keyword, site.child(keyword)
            elif kind is not Position.OTHER:
                items: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
                yield from ((keyword, site.child(keyword, token)) for token, item in items if isinstance(item, (dict, bool)))
