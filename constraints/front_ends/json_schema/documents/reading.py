"""The values of the keywords of one site, checked: counts, bounds, names, and the subschemas of items and members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from types import NoneType
from typing import Any

from ....base.kinds import MOST
from ...numbers.numbers import Interval
from .document import Site, shown
from .keyword_table import KEYWORDS, Assertion, Form, asserting
from .keywords import in_force, value_of
from .values import equality_key, is_integral


def checked(site: Site, keyword: str) -> Any:
    """The value of a keyword, None where it is not in force. Raises `ConstraintError` for one that is not of the keyword's form."""
    active = site.active
    if keyword not in active:
        return None
    value = active[keyword]
    if not _IS_WELL_FORMED[keyword](value):
        raise site.error(keyword, f"{KEYWORDS[keyword].form.value} is expected, not {shown(value)}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and is_integral(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_list_or_null(value: Any) -> bool:
    return isinstance(value, (list, NoneType))


def _is_filled_list_or_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and bool(value))


def _are_names_or_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def _is_object_or_null(value: Any) -> bool:
    return isinstance(value, (dict, NoneType))


_CHECKS: dict[Form, Callable[[Any], bool]] = {
    Form.COUNT: _is_count,
    Form.NUMBER: _is_number,
    Form.TEXT: _is_text,
    Form.FLAG: _is_flag,
    Form.VALUES: _is_list,
    Form.NAMES: _are_names_or_null,
    Form.LIST: _is_list_or_null,
    Form.FILLED_LIST: _is_filled_list_or_null,
    Form.MAP: _is_object_or_null,
    Form.OBJECT: _is_object_or_null,
}  # a schema is checked where its site is made (see document.py), `type` in claims.py
_IS_WELL_FORMED = {name: _CHECKS[entry.form] for name, entry in KEYWORDS.items() if entry.form in _CHECKS}
_LISTING = asserting(Assertion.VALUE)


def count_of(site: Site, keyword: str) -> int | None:
    """The value of a keyword that counts something, and at most MOST."""
    value = checked(site, keyword)
    if value is None:
        return None
    return int(value) if value < MOST else MOST


def number_of(site: Site, keyword: str) -> Decimal | None:
    """The value of a keyword that bounds numbers."""
    value = checked(site, keyword)
    return None if value is None else Decimal(value)


def step_of(site: Site) -> Decimal | None:
    """The value of `multipleOf`."""
    step = number_of(site, "multipleOf")
    if step is not None and step <= 0:
        raise site.error("multipleOf", "a number above 0 is expected")
    return step


def flag_of(site: Site, keyword: str) -> bool:
    """The value of a keyword that is true or false; false without it."""
    return bool(checked(site, keyword))


def values_of(site: Site) -> list[dict[str, Any]]:
    """The values of `enum` and those of `const`, by their equality key; nothing for a keyword that is not in force."""
    return [_listed(site, keyword) for keyword in _LISTING if in_force(site, keyword)]


def _listed(site: Site, keyword: str) -> dict[str, Any]:
    listed = checked(site, keyword) if keyword == "enum" else [site.keywords[keyword]]
    return {equality_key(value): value for value in listed}


def required_of(site: Site) -> list[str]:
    """The names in `required`; none where draft 3 had true or false."""
    if site.document.draft <= 4 and isinstance(value_of(site, "required"), bool):
        return []
    names: list[str] | None = checked(site, "required")
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
        prefix, rest = [site.child("prefixItems", i) for i in range(len(checked(site, "prefixItems") or ()))], "items"
    return Items(tuple(prefix), site.child(rest) if in_force(site, rest) else None)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A condition on names: an ECMA-262 pattern that matches somewhere."""

    text: str
    site: Site = field(compare=False)

    @property
    def shown(self) -> str:
        """The text by which conditions on names are sorted."""
        return self.text


@dataclass(frozen=True, slots=True)
class Members:
    """The schemas of members: by name, by pattern, and of those that neither names (None: no condition)."""

    properties: dict[str, Site]
    patterns: tuple[tuple[Pattern, Site], ...]
    additional: Site | None


def members_of(site: Site) -> Members:
    named, patterned = checked(site, "properties"), checked(site, "patternProperties")
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
