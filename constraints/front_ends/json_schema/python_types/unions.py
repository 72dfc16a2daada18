"""Schemas of choices, and of nodes that stand for others."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from pydantic_core import to_jsonable_python

from .keys import json_texts
from .scalars import any_of
from .walk import REMARK, CoreNode, NotInJson, Schema, Walk, both, in_json, noted


def nullable(walk: Walk, node: CoreNode) -> Schema:
    return _any_in_json(walk, [node["schema"], {"type": "none"}])


def union(walk: Walk, node: CoreNode) -> Schema:
    walk.has_alternatives = True
    return _any_in_json(walk, [each[0] if isinstance(each, tuple) else each for each in node["choices"]])


def _any_in_json(walk: Walk, nodes: Iterable[CoreNode]) -> Schema:
    """The values of any of some nodes; those without JSON are passed over, if there are others."""
    options, failure = [], None
    for node in nodes:
        try:
            options.append(walk.schema(node))
        except NotInJson as error:
            failure = error
    if failure is not None and not options:
        raise failure
    return any_of(options)


def tagged_union(walk: Walk, node: CoreNode) -> Schema:
    """One of several by its tag, which is read before there are defaults."""
    discriminator, choices = node["discriminator"], node["choices"]
    if callable(discriminator):
        name = getattr(discriminator, "__name__", str(discriminator))
        return noted(_any_in_json(walk, choices.values()), f"that {name} tells which alternative it is")
    options: dict[str, tuple[Schema, list[Any]]] = {}
    failure = None
    for tag, choice in choices.items():
        if isinstance(tag, Enum) and not isinstance(tag, str | int):
            continue  # no JSON equals it
        try:
            schema = walk.schema(choice)
        except NotInJson as error:
            failure = error
            continue
        options.setdefault(str(schema), (schema, []))[1].append(to_jsonable_python(tag))
    if not options:
        instead = "tags that are strings or integers, or an enumeration of such (StrEnum, IntEnum)"
        raise failure or walk.refuse("no JSON equals a tag of the union", instead)
    return _one_of([_tagged(walk, discriminator, schema, tags) for schema, tags in options.values()], discriminator)


def _tagged(walk: Walk, discriminator: Any, schema: Schema, tags: list[Any]) -> Schema:
    """The values of a schema that have their tag."""
    name = _tag_name(walk, discriminator, schema)
    said = walk.resolved(schema).get("properties", {}).get(name, {})
    told = [said["const"]] if "const" in said else said.get("enum")
    if told == tags:
        return schema | {"required": [name]} if "$ref" in schema else both(schema, {"required": [name]})
    return both(schema, {"properties": {name: {"enum": tags}}, "required": [name]})


def _tag_name(walk: Walk, discriminator: Any, schema: Schema) -> str:
    """The member that has the tag: of several, one that the schema has."""
    if isinstance(discriminator, str):
        return discriminator
    paths = discriminator if isinstance(discriminator[0], list) else [discriminator]
    names = [str(path[0]) for path in paths if len(path) == 1]
    if not names:
        raise walk.refuse("a tag that stands below a member has no schema", "a tag that is a member")
    declared = walk.resolved(schema).get("properties", {})
    return next((name for name in names if name in declared), names[0])


def _one_of(options: list[Schema], discriminator: Any) -> Schema:
    if len(options) == 1:
        return options[0]
    return {"oneOf": options} | (
        {"discriminator": {"propertyName": discriminator}} if isinstance(discriminator, str) else {}
    )


def with_default(walk: Walk, node: CoreNode) -> Schema:
    schema = walk.schema(node["schema"])
    return schema | in_json({"default": node["default"]} if "default" in node else {})


def chain(walk: Walk, node: CoreNode) -> Schema:
    """Steps of which each gets what the last one made."""
    first, *others = node["steps"]
    schema = walk.schema(first)
    return noted(schema, "the steps behind the first one") if others else schema


def lax_or_strict(walk: Walk, node: CoreNode) -> Schema:
    return walk.schema(node["strict_schema" if walk.option(node, "strict") else "lax_schema"])


def json_or_python(walk: Walk, node: CoreNode) -> Schema:
    return walk.schema(node["json_schema"])


def inner(walk: Walk, node: CoreNode) -> Schema:
    return walk.schema(node["schema"])


def missing(walk: Walk, node: CoreNode) -> Schema:
    if node.get("schema") is None:
        raise walk.refuse("no JSON is read as MISSING", "a default")
    return walk.schema(node["schema"])


def definitions(walk: Walk, node: CoreNode) -> Schema:
    walk.define(node["definitions"])
    return walk.schema(node["schema"])


def definition_reference(walk: Walk, node: CoreNode) -> Schema:
    return walk.referred(node["schema_ref"])


def json_text(walk: Walk, node: CoreNode) -> Schema:
    """A string whose text is JSON in turn."""
    out: Schema = {"type": "string", "contentMediaType": "application/json"}
    below = walk.schema(node["schema"]) if node.get("schema") else {}
    texts = json_texts(walk, below)
    if texts is not None:
        return any_of(texts) | ({REMARK: below[REMARK]} if REMARK in below else {})
    return noted(out | ({"contentSchema": below} if below else {}), "whether the string is JSON of the type in it")
