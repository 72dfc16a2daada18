"""The negation of what a schema claims of the value itself: one alternative per way to violate one of its assertions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from ...numbers.numbers import Interval
from ..documents.document import Site
from ..documents.keyword_table import Assertion, asserting
from ..documents.keywords import TYPES, in_force, is_anything
from ..documents.reading import (
    contains_of,
    count_of,
    flag_of,
    items_of,
    members_of,
    required_of,
    step_of,
    tightened,
    values_of,
)
from ..documents.values import dump_json, equality_key
from ..strings.string_shape import Mismatch
from .atoms import type_atoms
from .claims import (
    ALL_ATOMS,
    EVERY_INDEX,
    EVERY_KEY,
    Among,
    Conj,
    Count,
    Equals,
    Index,
    Keys,
    Kinds,
    Length,
    Named,
    Not,
    NotMultiple,
    Repeats,
    Term,
    Within,
    has_key,
    lacks_key,
    with_clause,
)


def violations(site: Site) -> list[Term]:
    """Terms whose union are the values that violate an assertion of the site."""
    active = site.active
    return [term for keywords, violate in _BY_KEYWORDS if not keywords.isdisjoint(active) for term in violate(site)]


def differing(value: Any) -> list[Term]:
    """Terms whose union are the values that do not equal this one."""
    if isinstance(value, list):
        return _unlike_array(value)
    if isinstance(value, dict):
        return _unlike_object(value)
    return [(Among((equality_key(value),), (value,), holds=False),)]


def _of_type(site: Site) -> list[Term]:
    others = ALL_ATOMS - type_atoms(site)
    return [(Kinds(others),)] if others else []


def _of_values(site: Site) -> list[Term]:
    return [term for values in values_of(site) for term in _unlike_all(values)]


def _unlike_all(values: dict[str, Any]) -> list[Term]:
    scalars = {key: value for key, value in values.items() if not isinstance(value, (list, dict))}
    groups = [with_clause(differing(value)) for value in values.values() if isinstance(value, (list, dict))]
    if scalars:
        groups.append([(Among(tuple(scalars), tuple(scalars.values()), holds=False),)])
    return [tuple(literal for term in choice for literal in term) for choice in product(*groups)]


def _unlike_array(value: list[Any]) -> list[Term]:
    length = len(value)
    out: list[Term] = [(Kinds(ALL_ATOMS - TYPES["array"]),), *_outside(EVERY_INDEX, (), length, length)]
    return out + [(Count(Index(i, i + 1), (_unequal(item),), 1, None),) for i, item in enumerate(value)]


def _unlike_object(value: dict[str, Any]) -> list[Term]:
    out: list[Term] = [(Kinds(ALL_ATOMS - TYPES["object"]),), (Count(Keys(frozenset(value), others=True), (), 1, None),)]
    for name, item in value.items():
        out += [(lacks_key(name),), (Count(Keys(frozenset([name])), (_unequal(item),), 1, None),)]
    return out


def _unequal(value: Any) -> Not:
    return Not(Equals(equality_key(value), value, dump_json(value)))


def _of_bounds(site: Site) -> list[Term]:
    allowed, out = tightened(Interval(), site), []
    if allowed.low is not None:
        out.append(Interval(high=allowed.low, exclusive_high=not allowed.exclusive_low))
    if allowed.high is not None:
        out.append(Interval(low=allowed.high, exclusive_low=not allowed.exclusive_high))
    return [(Within(interval),) for interval in out]


def _of_multiple(site: Site) -> list[Term]:
    step = step_of(site)
    return [] if step is None else [(NotMultiple(step),)]


def _of_length(site: Site) -> list[Term]:
    low, high = count_of(site, "minLength") or 0, count_of(site, "maxLength")
    out: list[Term] = [(Length(0, low - 1),)] if low > 0 else []
    return out if high is None else [*out, (Length(high + 1, None),)]


def _of_languages(site: Site) -> list[Term]:
    return [(Mismatch(site, keyword),) for keyword in _LANGUAGES if in_force(site, keyword)]


def _of_item_count(site: Site) -> list[Term]:
    return _outside(EVERY_INDEX, (), count_of(site, "minItems") or 0, count_of(site, "maxItems"))


def _of_items(site: Site) -> list[Term]:
    items = items_of(site)
    out = [term for i, item in enumerate(items.prefix) for term in _some(Index(i, i + 1), item)]
    return out if items.rest is None else out + _some(Index(len(items.prefix)), items.rest)


def _of_contained(site: Site) -> list[Term]:
    contains = contains_of(site)
    if contains is None:
        return []
    schema, low, high = contains
    return _outside(EVERY_INDEX, (schema,), low, high)


def _of_uniqueness(site: Site) -> list[Term]:
    return [(Repeats(site),)] if flag_of(site, "uniqueItems") else []


def _of_required(site: Site) -> list[Term]:
    """A name that is missing; those that `properties` declares are left to `_of_members`."""
    declared = members_of(site).properties
    return [(lacks_key(name),) for name in dict.fromkeys(required_of(site)) if name not in declared]


def _of_member_count(site: Site) -> list[Term]:
    return _outside(EVERY_KEY, (), count_of(site, "minProperties") or 0, count_of(site, "maxProperties"))


def _of_members(site: Site) -> list[Term]:
    members, required, out = members_of(site), frozenset(required_of(site)), list[Term]()
    for name, schema in members.properties.items():
        if name in required:  # missing or wrong, as one alternative: they multiply where several schemas are violated
            out.append((Count(Keys(frozenset([name])), (schema,), 0, 0),))
        elif schema.schema is False:
            out.append((has_key(name),))
        else:
            out += _some(Keys(frozenset([name])), schema)
    for pattern, schema in members.patterns:
        out += _some(Keys(tests=frozenset([pattern])), schema)
    if members.additional is not None:
        tests = frozenset(pattern for pattern, _ in members.patterns)
        out += _some(Keys(frozenset(members.properties), tests, others=True), members.additional)
    return out


def _of_names(site: Site) -> list[Term]:
    if is_anything(site.keywords["propertyNames"]):
        return []
    return [(Count(Keys(tests=frozenset([Named((site.child("propertyNames"),))]), others=True), (), 1, None),)]


def _some(where: Index | Keys, schema: Site) -> list[Term]:
    """Something in `where` violates the schema."""
    if is_anything(schema.schema):
        return []
    return [(Count(where, () if schema.schema is False else (Not(schema),), 1, None),)]


def _outside(where: Index | Keys, conj: Conj, low: int, high: int | None) -> list[Term]:
    """Fewer than `low` or more than `high`."""
    out: list[Term] = [(Count(where, conj, 0, low - 1),)] if low > 0 else []
    return out if high is None else [*out, (Count(where, conj, high + 1, None),)]


VIOLATIONS: dict[Assertion, Callable[[Site], list[Term]]] = {
    Assertion.TYPE: _of_type,
    Assertion.VALUE: _of_values,
    Assertion.BOUNDS: _of_bounds,
    Assertion.MULTIPLE: _of_multiple,
    Assertion.LENGTH: _of_length,
    Assertion.LANGUAGE: _of_languages,
    Assertion.ITEM_COUNT: _of_item_count,
    Assertion.ITEMS: _of_items,
    Assertion.CONTAINED: _of_contained,
    Assertion.UNIQUENESS: _of_uniqueness,
    Assertion.REQUIRED: _of_required,
    Assertion.MEMBER_COUNT: _of_member_count,
    Assertion.MEMBERS: _of_members,
    Assertion.NAMES: _of_names,
}
_BY_KEYWORDS = [(frozenset(asserting(assertion)), violate) for assertion, violate in VIOLATIONS.items()]
_LANGUAGES = asserting(Assertion.LANGUAGE)
