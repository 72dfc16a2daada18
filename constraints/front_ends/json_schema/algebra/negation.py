"""The negation of a schema's own keywords: one alternative per way to violate one of them."""

from __future__ import annotations

from itertools import product
from typing import Any

from ...numbers.numbers import Interval
from ..documents.document import Site
from ..documents.keywords import TYPES, in_force, is_anything
from ..documents.reading import (
    contains_of,
    count_of,
    flag_of,
    items_of,
    listed_values,
    members_of,
    required_of,
    step_of,
    text_of,
    tightened,
)
from ..documents.values import dump_json, equality_key
from ..strings.string_shape import Mismatch
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
    type_atoms,
    with_clause,
)


def violations(site: Site) -> list[Term]:
    """Terms whose union are the values that violate a keyword of the site about the value itself."""
    return [*_of_kind_and_values(site), *_of_numbers(site), *_of_strings(site), *_of_arrays(site), *_of_objects(site)]


def differing(value: Any) -> list[Term]:
    """Terms whose union are the values that do not equal this one."""
    if isinstance(value, list):
        return _unlike_array(value)
    if isinstance(value, dict):
        return _unlike_object(value)
    return [(Among((equality_key(value),), (value,), holds=False),)]


def _of_kind_and_values(site: Site) -> list[Term]:
    out: list[Term] = [(Kinds(others),)] if (others := ALL_ATOMS - type_atoms(site)) else []
    for keyword in ("enum", "const"):
        if in_force(site, keyword):
            out += _unlike_all(listed_values(site, keyword))
    return out


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


def _of_numbers(site: Site) -> list[Term]:
    allowed, out = tightened(Interval(), site), []
    if allowed.low is not None:
        out.append(Interval(high=allowed.low, exclusive_high=not allowed.exclusive_low))
    if allowed.high is not None:
        out.append(Interval(low=allowed.high, exclusive_low=not allowed.exclusive_high))
    step = step_of(site)
    return [(Within(interval),) for interval in out] + ([(NotMultiple(step),)] if step is not None else [])


def _of_strings(site: Site) -> list[Term]:
    low, high = count_of(site, "minLength") or 0, count_of(site, "maxLength")
    out: list[Term] = [(Length(0, low - 1),)] if low > 0 else []
    if high is not None:
        out.append((Length(high + 1, None),))
    return out + [(Mismatch(site, keyword),) for keyword in ("pattern", "format") if text_of(site, keyword) is not None]


def _of_arrays(site: Site) -> list[Term]:
    out = _outside(EVERY_INDEX, (), count_of(site, "minItems") or 0, count_of(site, "maxItems"))
    items = items_of(site)
    for i, item in enumerate(items.prefix):
        out += _some(Index(i, i + 1), item)
    if items.rest is not None:
        out += _some(Index(len(items.prefix)), items.rest)
    if (contains := contains_of(site)) is not None:
        schema, low, high = contains
        out += _outside(EVERY_INDEX, (schema,), low, high)
    return [*out, (Repeats(site),)] if flag_of(site, "uniqueItems") else out


def _of_objects(site: Site) -> list[Term]:
    members = members_of(site)
    required = dict.fromkeys(required_of(site))
    out: list[Term] = [(lacks_key(name),) for name in required if name not in members.properties]
    out += _outside(EVERY_KEY, (), count_of(site, "minProperties") or 0, count_of(site, "maxProperties"))
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
    if in_force(site, "propertyNames") and not is_anything(site.keywords["propertyNames"]):
        out.append((Count(Keys(tests=frozenset([Named((site.child("propertyNames"),))]), others=True), (), 1, None),))
    return out


def _some(where: Index | Keys, schema: Site) -> list[Term]:
    """Something in `where` violates the schema."""
    if is_anything(schema.schema):
        return []
    return [(Count(where, () if schema.schema is False else (Not(schema),), 1, None),)]


def _outside(where: Index | Keys, conj: Conj, low: int, high: int | None) -> list[Term]:
    """Fewer than `low` or more than `high`."""
    out: list[Term] = [(Count(where, conj, 0, low - 1),)] if low > 0 else []
    return out if high is None else [*out, (Count(where, conj, high + 1, None),)]
