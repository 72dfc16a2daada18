"""What the keywords of one site say, checked: counts, bounds, names, and the subschemas of items and members."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ....base.kinds import MOST
from ...numbers.numbers import Interval
from .document import Site, shown
from .keywords import in_force, value_of
from .values import equality_key, is_integral


def count_of(site: Site, keyword: str) -> int | None:
    """The value of a keyword that counts something, and at most MOST."""
    if not in_force(site, keyword):
        return None
    value = site.keywords[keyword]
    is_count = isinstance(value, (int, Decimal)) and not isinstance(value, bool) and value >= 0 and is_integral(value)
    if not is_count:
        raise site.error(keyword, f"a whole number from 0 is expected, not {shown(value)}")
    return int(value) if value < MOST else MOST


def number_of(site: Site, keyword: str) -> Decimal | None:
    """The value of a keyword that bounds numbers."""
    if not in_force(site, keyword):
        return None
    value = site.keywords[keyword]
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise site.error(keyword, f"a number is expected, not {shown(value)}")
    return Decimal(value)


def step_of(site: Site) -> Decimal | None:
    """The value of `multipleOf`."""
    step = number_of(site, "multipleOf")
    if step is not None and step <= 0:
        raise site.error("multipleOf", "a number above 0 is expected")
    return step


def text_of(site: Site, keyword: str) -> str | None:
    """The value of a keyword that is a string."""
    if not in_force(site, keyword):
        return None
    value = site.keywords[keyword]
    if not isinstance(value, str):
        raise site.error(keyword, f"a string is expected, not {shown(value)}")
    return value


def flag_of(site: Site, keyword: str) -> bool:
    """The value of a keyword that is true or false; false without it."""
    if not in_force(site, keyword):
        return False
    value = site.keywords[keyword]
    if not isinstance(value, bool):
        raise site.error(keyword, f"true or false is expected, not {shown(value)}")
    return value


def listed_values(site: Site, keyword: str) -> dict[str, Any]:
    """The values of `enum` or `const`, by their equality key."""
    listed = site.keywords[keyword] if keyword == "enum" else [site.keywords[keyword]]
    if not isinstance(listed, list):
        raise site.error(keyword, f"a list of values is expected, not {shown(listed)}")
    return {equality_key(value): value for value in listed}


def required_of(site: Site) -> list[str]:
    names = value_of(site, "required")
    if names is None or (site.document.draft <= 4 and isinstance(names, bool)):
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise site.error("required", f"a list of names is expected, not {shown(names)}")
    return names


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


@dataclass(frozen=True, slots=True)
class Items:
    """The schemas of the first items, and that of all behind them (None: no condition)."""

    prefix: tuple[Site, ...]
    rest: Site | None


def items_of(site: Site) -> Items:
    items = value_of(site, "items")
    if isinstance(items, list):
        prefix, rest = [site.child("items", i) for i in range(len(items))], "additionalItems"
    else:
        listed = value_of(site, "prefixItems")
        if listed is not None and not isinstance(listed, list):
            raise site.error("prefixItems", f"a list of schemas is expected, not {shown(listed)}")
        prefix, rest = [site.child("prefixItems", i) for i in range(len(listed or ()))], "items"
    return Items(tuple(prefix), site.child(rest) if in_force(site, rest) else None)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A condition on names: an ECMA-262 pattern that matches somewhere."""

    text: str
    site: Site = field(compare=False)

    @property
    def shown(self) -> str:
        """What sets of conditions are put in order by."""
        return self.text


@dataclass(frozen=True, slots=True)
class Members:
    """The schemas of members: by name, by pattern, and of those that neither names (None: no condition)."""

    properties: dict[str, Site]
    patterns: tuple[tuple[Pattern, Site], ...]
    additional: Site | None


def members_of(site: Site) -> Members:
    found = (value_of(site, keyword) for keyword in ("properties", "patternProperties"))
    named, patterned = ({} if value is None else value for value in found)
    for keyword, value in (("properties", named), ("patternProperties", patterned)):
        if not isinstance(value, dict):
            raise site.error(keyword, f"an object of schemas is expected, not {shown(value)}")
    return Members(
        {name: site.child("properties", name) for name in named},
        tuple((Pattern(text, site), site.child("patternProperties", text)) for text in patterned),
        site.child("additionalProperties") if in_force(site, "additionalProperties") else None,
    )


def contains_of(site: Site) -> tuple[Site, int, int | None] | None:
    """The schema of `contains` and how many items satisfy it; None when it asks for nothing."""
    if not in_force(site, "contains"):
        return None
    low, high = count_of(site, "minContains"), count_of(site, "maxContains")
    low = 1 if low is None else low
    return None if low == 0 and high is None else (site.child("contains"), low, high)
