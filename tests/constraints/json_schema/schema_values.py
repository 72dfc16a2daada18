"""The slow, obvious meaning of a schema: one value at a time, keyword by keyword, over the sites of a `Library`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from maskwright.constraints.front_ends.json_schema.documents.document import Library, Site
from maskwright.constraints.front_ends.json_schema.documents.keyword_table import REFERENCES
from maskwright.constraints.front_ends.json_schema.documents.keywords import in_force, value_of
from maskwright.constraints.front_ends.json_schema.documents.values import atom_of, dump_json, equality_key, parse_json

_TYPES = {"number": ("integer", "fraction")}


def root_of(schema: Any, draft: str | None = None, resources: dict[str, Any] | None = None) -> Site:
    texts = {address: dump_json(document) for address, document in (resources or {}).items()}
    return Library(texts, parse_json).root(dump_json(schema), draft)


@dataclass
class Seen:
    """Whether a value is valid, and which of its members and items were evaluated."""

    valid: bool = True
    names: set[str] = field(default_factory=set)
    items: set[int] = field(default_factory=set)

    def join(self, other: Seen) -> bool:
        """Take over what another schema for the same value has evaluated, if it is valid."""
        if other.valid:
            self.names |= other.names
            self.items |= other.items
        return other.valid


def is_valid(site: Site, value: Any) -> bool:
    return evaluate(site, value).valid


def evaluate(site: Site, value: Any) -> Seen:
    """References, combinations, `unevaluated*` and the everyday assertions; `format` is an annotation."""
    seen = Seen()
    if isinstance(site.schema, bool):
        seen.valid = site.schema
        return seen
    checks = [_references(site, value, seen), _combinations(site, value, seen), _conditions(site, value, seen)]
    checks += [_general(site, value), _sizes(site, value)]
    if isinstance(value, dict):
        checks += [_members(site, value, seen), _dependencies(site, value, seen)]
        if in_force(site, "unevaluatedProperties"):
            rest = value.keys() - seen.names
            checks.append(all(is_valid(site.child("unevaluatedProperties"), value[name]) for name in rest))
            seen.names |= rest
    if isinstance(value, list):
        checks.append(_items(site, value, seen))
        if in_force(site, "unevaluatedItems"):
            left = set(range(len(value))) - seen.items
            checks.append(all(is_valid(site.child("unevaluatedItems"), value[i]) for i in left))
            seen.items |= left
    seen.valid = all(checks)
    return seen


def _references(site: Site, value: Any, seen: Seen) -> bool:
    targets = [site.document.resolve(site, key) for key in REFERENCES if in_force(site, key)]
    holds = [seen.join(evaluate(target, value)) for target in targets]
    return all(holds)


def _combinations(site: Site, value: Any, seen: Seen) -> bool:
    def results(keyword: str) -> list[bool]:
        return [seen.join(evaluate(site.child(keyword, i), value)) for i in range(len(value_of(site, keyword) or []))]

    holds = all(results("allOf"))
    holds &= any(results("anyOf")) or not in_force(site, "anyOf")
    holds &= sum(results("oneOf")) == 1 or not in_force(site, "oneOf")
    return holds and not (in_force(site, "not") and is_valid(site.child("not"), value))


def _conditions(site: Site, value: Any, seen: Seen) -> bool:
    if not in_force(site, "if"):
        return True
    chosen = "then" if seen.join(evaluate(site.child("if"), value)) else "else"
    return not in_force(site, chosen) or seen.join(evaluate(site.child(chosen), value))


def _general(site: Site, value: Any) -> bool:
    atom = atom_of(value)
    types = value_of(site, "type")
    named = types if isinstance(types, list) else [types] if types else []
    holds = not named or any(atom in _TYPES.get(name, (name,)) for name in named)
    if in_force(site, "const"):
        holds &= equality_key(value_of(site, "const")) == equality_key(value)
    if in_force(site, "enum"):
        holds &= equality_key(value) in [equality_key(item) for item in value_of(site, "enum")]
    if isinstance(value, str) and in_force(site, "pattern"):
        holds &= re.search(value_of(site, "pattern"), value) is not None
    if atom in ("integer", "fraction"):
        for keyword, fits in (("minimum", lambda bound: value >= bound), ("maximum", lambda bound: value <= bound),
                              ("exclusiveMinimum", lambda bound: value > bound), ("multipleOf", lambda by: Decimal(value) % Decimal(by) == 0)):  # fmt: skip
            holds &= not in_force(site, keyword) or fits(value_of(site, keyword))
    return holds


def _sizes(site: Site, value: Any) -> bool:
    unit = {str: "Length", list: "Items", dict: "Properties"}.get(type(value))
    if unit is None:
        return True
    low, high = value_of(site, f"min{unit}"), value_of(site, f"max{unit}")
    unique = not (unit == "Items" and value_of(site, "uniqueItems")) or len({*map(equality_key, value)}) == len(value)
    return (low is None or len(value) >= low) and (high is None or len(value) <= high) and unique


def _members(site: Site, value: dict[str, Any], seen: Seen) -> bool:
    parts = [(name, site.child("properties", name)) for name in value_of(site, "properties") or {} if name in value]
    parts += [
        (name, site.child("patternProperties", pattern))
        for pattern in value_of(site, "patternProperties") or {}
        for name in value
        if re.search(pattern, name)
    ]
    named = {name for name, _ in parts}
    if in_force(site, "additionalProperties"):
        parts += [(name, site.child("additionalProperties")) for name in value if name not in named]
    seen.names |= {name for name, _ in parts}
    names_hold = not in_force(site, "propertyNames") or all(
        is_valid(site.child("propertyNames"), name) for name in value
    )
    return (
        names_hold
        and value.keys() >= {*(value_of(site, "required") or [])}
        and all(is_valid(at, value[name]) for name, at in parts)
    )


def _dependencies(site: Site, value: dict[str, Any], seen: Seen) -> bool:
    holds = True
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        for name, needed in (value_of(site, keyword) or {}).items():
            if name in value:
                listed = isinstance(needed, list)
                holds &= value.keys() >= {*needed} if listed else seen.join(evaluate(site.child(keyword, name), value))
    return holds


def _items(site: Site, value: list[Any], seen: Seen) -> bool:
    tuple_keyword = "prefixItems" if site.document.draft == 2020 else "items"
    rest_keyword = "items" if site.document.draft == 2020 else "additionalItems"
    first = value_of(site, tuple_keyword)
    parts = []
    if isinstance(first, list):
        parts = [(i, site.child(tuple_keyword, i)) for i in range(min(len(first), len(value)))]
    elif first is not None:
        rest_keyword = tuple_keyword
    if in_force(site, rest_keyword) and (first is not None or rest_keyword == "items"):
        parts += [(i, site.child(rest_keyword)) for i in range(len(parts), len(value))]
    seen.items |= {i for i, _ in parts}
    holds = all(is_valid(at, value[i]) for i, at in parts)
    if in_force(site, "contains"):
        found = {i for i, item in enumerate(value) if is_valid(site.child("contains"), item)}
        least, most = value_of(site, "minContains"), value_of(site, "maxContains")
        holds &= len(found) >= (1 if least is None else least) and (most is None or len(found) <= most)
        if site.document.draft == 2020:
            seen.items |= found
    return holds
