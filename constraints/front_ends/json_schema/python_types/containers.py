"""Schemas of lists, tuples, sets and mappings."""

from __future__ import annotations

from typing import Any

from .keys import key_names, key_schema
from .scalars import any_of
from .walk import CoreNode, Schema, Walk, both, noted

MOST_UNPACKED = 16  # items in the middle of a tuple that has others behind them
_UNHASHABLE = frozenset({"list", "dict", "set", "deque", "typed-dict", "generator", "ordered-dict", "counter"})
_DISTINCT = frozenset({"int", "bool", "none", "date", "literal", "enum", "str"})  # other texts are other values
_SCALARS = {"type": ["null", "boolean", "number", "string"]}


def array(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "array"} | _items(walk, node) | _counts(node, "Items")


def _items(walk: Walk, node: CoreNode) -> Schema:
    with walk.member("[]"):
        items = walk.schema(node["items_schema"]) if "items_schema" in node else {}
    return {"items": items} if items else {}


def _counts(node: CoreNode, of: str) -> Schema:
    low, high = node.get("min_length"), node.get("max_length")
    return ({f"min{of}": low} if low else {}) | ({} if high is None else {f"max{of}": high})


def unique_array(walk: Walk, node: CoreNode) -> Schema:
    """A set: its items differ in their texts."""
    out: Schema = {"type": "array", "uniqueItems": True} | _items(walk, node) | _counts(node, "Items")
    items = walk.target(node.get("items_schema", {"type": "any"}))
    if items["type"] == "any":
        out["items"] = _SCALARS
        return noted(out, "how many items differ") if out.get("minItems", 0) > 1 else out
    if is_hashable(walk, items) is False:
        raise walk.refuse(
            "items of a set that cannot be hashed are always rejected", "a list, or items that are frozen"
        )
    if is_hashable(walk, items) is None:
        out = noted(out, "whether the items can be hashed")
    if out.get("minItems", 0) > 1 and not _are_distinct(items):
        out = noted(out, "how many items differ as values")
    return out


def is_hashable(walk: Walk, node: CoreNode) -> bool | None:
    """Whether values of a node can be items of a set; None where that depends on the value, or is not known."""
    node = walk.target(node)
    if node["type"] in _UNHASHABLE:
        return False
    if node["type"] in ("model", "dataclass"):
        return None if node["cls"].__hash__ is not None else False
    below = [*(node.get("items_schema", ()) if node["type"] == "tuple" else ())]
    below += [
        each[0] if isinstance(each, tuple) else each for each in node.get("choices", ()) if not isinstance(each, str)
    ]
    below += [node[name] for name in ("schema", "json_schema", "lax_schema") if isinstance(node.get(name), dict)]
    if node["type"] in ("function-after", "function-wrap", "function-plain", "any", "json"):
        return True if node["type"] != "any" and all(is_hashable(walk, each) for each in below) else None
    found = [is_hashable(walk, each) for each in below]
    if node["type"] == "union":
        return None if any(each is not True for each in found) else True
    return False if False in found else None if None in found else True


def _are_distinct(node: CoreNode) -> bool:
    """Whether different texts of a node are different values."""
    return node["type"] in _DISTINCT and not (node.get("to_lower") or node.get("to_upper"))


def tuple_kind(walk: Walk, node: CoreNode) -> Schema:
    """A tuple: items by their place, one of which may be repeated."""
    items = []
    for index, item in enumerate(node["items_schema"]):
        with walk.member(f"[{index}]"):
            items.append(walk.schema(item))
    at = node.get("variadic_item_index")
    if at is None:
        return _of_length(items)
    before, repeated, behind = items[:at], items[at], items[at + 1 :]
    counts = _counts(node, "Items")
    if behind:
        return both(any_of([_of_length([*before, *[repeated] * n, *behind]) for n in range(MOST_UNPACKED + 1)]), counts)
    out: Schema = (
        {"type": "array"} | ({"prefixItems": before} if before else {}) | ({"items": repeated} if repeated else {})
    )
    return out | counts | ({"minItems": max(len(before), counts.get("minItems", 0))} if before else {})


def _of_length(items: list[Schema]) -> Schema:
    counted: Schema = {"type": "array", "minItems": len(items), "maxItems": len(items)}
    return counted | ({"prefixItems": items} if items else {})


def mapping(walk: Walk, node: CoreNode) -> Schema:
    values = _values(walk, node)
    keys = node.get("keys_schema")
    out: Schema = {"type": "object"} | _counts(node, "Properties")
    if keys is None:
        return out | {"additionalProperties": values or True}
    with walk.member("keys"):
        of_keys = key_schema(walk, keys)
        hashable = is_hashable(walk, keys)
        if hashable is False:
            raise walk.refuse("keys that cannot be hashed are always rejected", "keys that are frozen")
    names = key_names(of_keys)
    if names is not None:
        out |= {"properties": {name: dict(values) for name in names}, "additionalProperties": False}
    else:
        out |= {"additionalProperties": values or True} | (
            {"propertyNames": of_keys} if of_keys != {"type": "string"} else {}
        )
    if out.get("minProperties", 0) > 1 and not _are_distinct(walk.target(keys)):
        out = noted(out, "how many keys differ as values")
    is_told = hashable is not None or walk.target(keys)["type"] == "any"  # which keys stay strings
    return out if is_told else noted(out, "whether the keys can be hashed")


def _values(walk: Walk, node: CoreNode) -> Schema:
    with walk.member("values"):
        default: Any = {"type": "int"} if node["type"] == "counter" else None
        values = node.get("values_schema", default)
        return walk.schema(values) if values is not None else {}
