"""The values of the keywords of one site: counts, bounds, names, and the subschemas of items and members."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from ....base.kinds import MOST
from ...numbers.numbers import Interval
from .document import Site
from .keyword_table import Assertion, asserting
from .keywords import in_force, value_of
from .values import equality_key

_LISTING: Final = asserting(Assertion.VALUE)


def count_of(site: Site, keyword: str) -> int | None:
    """The value of a keyword that counts something, and at most MOST."""
    value = value_of(site, keyword)
    if value is None:
        return None
    return int(value) if value < MOST else MOST


def number_of(site: Site, keyword: str) -> Decimal | None:
    """The value of a keyword that bounds numbers."""
    value = value_of(site, keyword)
    return None if value is None else Decimal(value)


def step_of(site: Site) -> Decimal | None:
    """The value of `multipleOf`."""
    return number_of(site, "multipleOf")


def flag_of(site: Site, keyword: str) -> bool:
    """The value of a keyword that is true or false; false without it."""
    return bool(value_of(site, keyword))


def values_of(site: Site) -> list[dict[str, Any]]:
    """The values of `enum` and those of `const`, by their equality key; nothing for a keyword that is not in force."""
    return [_listed(site, keyword) for keyword in _LISTING if in_force(site, keyword)]


def _listed(site: Site, keyword: str) -> dict[str, Any]:
    listed = value_of(site, keyword) if keyword == "enum" else [site.keywords[keyword]]
    return {equality_key(value): value for value in listed}


def required_of(site: Site) -> list[str]:
    """The names in `required`."""
    names: list[str] | None = value_of(site, "required")
    return names or []


def tightened(interval: Interval, site: Site) -> Interval:
    """The part of `interval` within the bounds of a site, those of draft 4 (booleans beside a bound) included."""
    low, high = number_of(site, "minimum"), number_of(site, "maximum")
    for keyword, bound in (("exclusiveMinimum", low), ("exclusiveMaximum", high)):
        is_low, value = keyword == "exclusiveMinimum", site.keywords.get(keyword)
        if bound is not None:
            interval = _bounded(interval, bound, is_low, value is True and in_force(site, keyword))
        if in_force(site, keyword) and not isinstance(value, bool):
            exclusive = number_of(site, keyword)
            assert exclusive is not None
            interval = _bounded(interval, exclusive, is_low, True)
    return interval


def _bounded(interval: Interval, bound: Decimal, is_low: bool, exclusive: bool) -> Interval:
    if is_low:
        return interval.from_(bound, exclusive)
    return interval.mirrored().from_(bound.copy_negate(), exclusive).mirrored()


@dataclass(frozen=True)
class Items:
    """The schemas of the first items, and that of all behind them (None: no condition)."""

    prefix: tuple[Site, ...]
    rest: Site | None


def items_of(site: Site) -> Items:
    items = value_of(site, "items")
    if isinstance(items, list):
        prefix, rest = [site.child("items", i) for i in range(len(items))], "additionalItems"
    else:
        prefix, rest = [site.child("prefixItems", i) for i in range(len(value_of(site, "prefixItems") or ()))], "items"
    return Items(tuple(prefix), site.child(rest) if in_force(site, rest) else None)


@dataclass(frozen=True)
class Pattern:
    """A condition on names: an ECMA-262 pattern that matches somewhere."""

    text: str
    site: Site = field(compare=False)

    @property
    def shown(self) -> str:
        """The text by which conditions on names are sorted."""
        return self.text


@dataclass(frozen=True)
class Members:
    """The schemas of members: by name, by pattern, and of those that neither names (None: no condition)."""

    properties: dict[str, Site]
    patterns: tuple[tuple[Pattern, Site], ...]
    additional: Site | None


def members_of(site: Site) -> Members:
    named, patterned = value_of(site, "properties"), value_of(site, "patternProperties")
    return Members(
        {name: site.child("properties", name) for name in named or ()},
        tuple((Pattern(text, site), site.child("patternProperties", text)) for text in patterned or ()),
        site.child("additionalProperties") if in_force(site, "additionalProperties") else None,
    )


def contains_of(site: Site) -> tuple[Site, int, int | None] | None:
    """The schema of `contains` and how many items satisfy it; None when it asks for nothing."""
    if not in_force(site, "contains"):
        return None
    low, high = count_of(site, "minContains"), count_of(site, "maxContains")
    low = 1 if low is None else low
    return None if low == 0 and high is None else (site.child("contains"), low, high)
