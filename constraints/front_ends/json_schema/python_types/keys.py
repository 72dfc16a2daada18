"""Schemas of the keys of mappings: in JSON every key is a string, from which Pydantic reads numbers, dates and the like."""

from __future__ import annotations

from typing import Any

from ..documents.values import dump_json, plain_value
from .scalars import any_of
from .trials import accepted_keys
from .walk import CoreNode, Schema, Walk

_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def key_schema(walk: Walk, node: CoreNode) -> Schema:
    """The schema of the strings that are read as a value of `node`."""
    found = _of_strings(walk, walk.schema(node), node)
    if not found:
        raise walk.refuse(f"no key of a JSON object is read as a {walk.target(node)['type']}", "keys of type str")
    return any_of(found)


def _of_strings(walk: Walk, schema: Schema, node: CoreNode) -> list[Schema]:
    """The schemas of strings that spell values of a schema; none where no string does."""
    if "$ref" in schema:
        below = {key: value for key, value in schema.items() if key != "$ref"}
        return _of_strings(walk, walk.resolved(schema) | below, node)
    if "anyOf" in schema:
        around = {key: value for key, value in schema.items() if key != "anyOf"}
        return [one for option in schema["anyOf"] for one in _of_strings(walk, around | option, node)]
    listed = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if listed is not None:
        names = accepted_keys(
            walk, node, [each if isinstance(each, str) else dump_json(plain_value(each)) for each in listed]
        )
        return [{"type": "string", "enum": names}] if names else []
    kinds = schema.get("type")
    if kinds is None or kinds == "string":
        return [{"type": "string"} | schema]
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return [one for kind in kinds if (one := _of_type(kind, schema)) is not None]


def json_texts(walk: Walk, schema: Schema) -> list[Schema] | None:
    """The schemas of strings that are the JSON of values of a schema; None for others than numbers, constants and listed values."""
    if "$ref" in schema:
        below = {key: value for key, value in schema.items() if key != "$ref"}
        target = walk.resolved(schema)
        return json_texts(walk, target | below) if "enum" in target or "const" in target else None
    if "anyOf" in schema:
        found = [json_texts(walk, option) for option in schema["anyOf"]]
        known = [one for one in found if one is not None]
        return [each for one in known for each in one] if len(known) == len(found) and schema.keys() <= {"anyOf", "title"} else None
    listed = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if schema.get("type") == "null":
        listed = [None]
    if listed is not None:
        return [{"type": "string", "enum": [dump_json(plain_value(each)) for each in listed]}]
    one = _of_type(schema["type"], schema) if schema.get("type") in ("integer", "number", "boolean") else None
    return None if one is None else [one]


def _of_type(kind: str, schema: Schema) -> Schema | None:
    if kind == "boolean":
        return {"type": "string", "enum": ["true", "false"]}
    if kind not in ("integer", "number") or "not" in schema:
        return {"type": "string"} if kind == "string" else None
    limits: dict[str, Any] = {name: schema[name] for name in _LIMITS if name in schema}
    others = [{name: part[name] for name in _LIMITS if name in part} for part in schema.get("allOf", ())]
    if kind == "integer" and "multipleOf" in limits:
        others.append({"multipleOf": 1})
    elif kind == "integer":
        limits["multipleOf"] = 1
    more = [{"x-maskwright-number": each} for each in others if each]
    return {"type": "string", "x-maskwright-number": limits} | ({"allOf": more} if more else {}) | _remark(schema)


def _remark(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key.startswith("x-maskwright-checked")}


def key_names(schema: Schema) -> list[str] | None:
    """All keys, where the schema lists them."""
    options = schema.get("anyOf", [schema])
    if not all("enum" in option for option in options):
        return None
    return list(dict.fromkeys(name for option in options for name in option["enum"]))
