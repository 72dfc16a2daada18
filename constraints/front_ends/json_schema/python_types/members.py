"""Schemas of what has named members: models, dataclasses, typed dictionaries, named tuples and the arguments of functions.

All are closed, unless they say `extra="allow"`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from .keys import key_schema
from .scalars import any_of
from .trials import has_valid_default
from .walk import CoreNode, NotInJson, Schema, Walk, both, noted, with_extra


@dataclasses.dataclass
class Place:
    """Where a value is read: members and items below it, or the schema of a value that is read right here."""

    members: dict[str | int, Place] = dataclasses.field(default_factory=dict)
    values: list[Schema] = dataclasses.field(default_factory=list)
    is_required: bool = False

    def at(self, path: Iterable[str | int], is_required: bool) -> Place:
        place = self
        for token in path:
            place = place.members.setdefault(token, Place())
            place.is_required |= is_required
        return place

    def schema(self) -> Schema:
        own: Schema = {}
        for value in self.values:
            own = both(own, value)
        names = {name: place for name, place in self.members.items() if isinstance(name, str)}
        places = {index: place for index, place in self.members.items() if not isinstance(index, str)}
        if names:
            own = both(own, _object(names))
        return both(own, _array(places)) if places else own


def _object(members: dict[str, Place]) -> Schema:
    required = [name for name, place in members.items() if place.is_required]
    out: Schema = {"type": "object", "properties": {name: place.schema() for name, place in members.items()}}
    return out | ({"required": required} if required else {}) | {"additionalProperties": False}


def _array(items: dict[int, Place]) -> Schema:
    """Arrays with items at some places; one that is counted from the end is every item."""
    if any(index < 0 for index in items):
        everywhere = [place.schema() for place in items.values()]
        least = max(
            (index + 1 if index >= 0 else -index for index, place in items.items() if place.is_required), default=0
        )
        out: Schema = {"type": "array", "items": everywhere[0] if len(everywhere) == 1 else {"allOf": everywhere}}
        return out | ({"minItems": least} if least else {})
    prefix = [items[index].schema() if index in items else {} for index in range(max(items) + 1)]
    least = max((index + 1 for index, place in items.items() if place.is_required), default=0)
    return {"type": "array", "prefixItems": prefix, "items": False} | ({"minItems": least} if least else {})


def model(walk: Walk, node: CoreNode) -> Schema:
    kind = node["cls"]
    with walk.within(node.get("config") or {}):
        schema = walk.schema(node["schema"])
    if not node.get("root_model"):
        schema = _titled(schema, kind)
    schema = with_extra(schema, extra) if (extra := _extra_of(kind)) else schema
    if node.get("post_init") and not _is_own(kind, "model_post_init"):
        schema = noted(schema, f"{kind.__name__}.model_post_init")
    return noted(schema, f"{kind.__name__}.__init__") if node.get("custom_init") else schema


def _is_own(kind: type, method: str) -> bool:
    """Whether a method of a model is Pydantic's."""
    found = getattr(kind, method)
    return found is getattr(BaseModel, method) or getattr(found, "__module__", "").startswith("pydantic.")


def _titled(schema: Schema, kind: type) -> Schema:
    """A schema with the title and the description of a class; dataclasses get a description from Python that is none."""
    text = inspect.cleandoc(kind.__doc__ or "")
    is_told = bool(text) and not text.startswith(f"{kind.__name__}(")
    title = getattr(kind, "model_config", {}).get("title") or kind.__name__
    return {"title": title} | ({"description": text} if is_told else {}) | schema


def _extra_of(kind: type) -> Any:
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    extra = config.get("json_schema_extra")
    if extra is None or isinstance(extra, dict):
        return extra
    extra = extra.__get__(kind) if isinstance(extra, staticmethod | classmethod) else extra
    takes_class = len(inspect.signature(extra).parameters) > 1
    return (lambda schema: extra(schema, kind)) if takes_class else extra


def model_fields(walk: Walk, node: CoreNode) -> Schema:
    return members(walk, node, node["fields"].items())


def typed_dict(walk: Walk, node: CoreNode) -> Schema:
    with walk.within({**walk.config, **(node.get("config") or {})}):
        schema = members(walk, node, node["fields"].items(), is_total=node.get("total", True))
    kind = node.get("cls")
    if kind is None:
        return schema
    extra = _extra_of(kind)
    return with_extra(_titled(schema, kind), extra) if extra else _titled(schema, kind)


def dataclass_kind(walk: Walk, node: CoreNode) -> Schema:
    kind = node["cls"]
    with walk.within(node.get("config")):
        schema = _titled(walk.schema(node["schema"]), kind)
    schema = with_extra(schema, extra) if (extra := _extra_of(kind)) else schema
    return noted(schema, f"{kind.__name__}.__post_init__") if node.get("post_init") else schema


def dataclass_arguments(walk: Walk, node: CoreNode) -> Schema:
    fields = ((field["name"], field) for field in node["fields"] if field.get("init", True))
    return members(walk, node, fields)


def field(walk: Walk, node: CoreNode) -> Schema:
    return walk.schema(node["schema"])


def members(walk: Walk, node: CoreNode, fields: Iterable[tuple[str, CoreNode]], is_total: bool = True) -> Schema:
    """The schema of an object with some fields, each under its alias."""
    root = Place()
    for name, each in fields:
        is_required = _is_required(walk, each, is_total)
        with walk.member(name):
            try:
                schema = walk.schema(each)
            except NotInJson:
                if is_required:
                    raise
                continue  # it is never given
        root.at(_alias(walk, each, name), is_required).values.append(schema)
    out = _object({str(name): place for name, place in root.members.items()})
    behavior = node.get("extra_behavior") or walk.config.get("extra_fields_behavior")
    return _with_others(walk, node, out) if behavior == "allow" else out


def _with_others(walk: Walk, node: CoreNode, schema: Schema) -> Schema:
    """A schema that allows other members."""
    others = node.get("extras_schema")
    schema = schema | {"additionalProperties": (walk.schema(others) if others else {}) or True}
    keys = node.get("extras_keys_schema")
    if keys is None:
        return schema
    listed = [{"enum": list(schema["properties"])}] if schema["properties"] else []
    return schema | {"propertyNames": any_of([*listed, key_schema(walk, keys)])}


def _is_required(walk: Walk, node: CoreNode, is_total: bool) -> bool:
    if node["type"] == "typed-dict-field":
        return bool(node.get("required", is_total))
    value = node["schema"]
    if value["type"] != "default":
        return True
    is_checked = walk.option(value, "validate_default")
    return bool(is_checked) and not has_valid_default(walk, value)


def _alias(walk: Walk, node: CoreNode, name: str) -> list[str | int]:
    """The path at which a field is read: the first one that is a single name, if there is one."""
    alias = node.get("validation_alias", node.get("alias"))
    if alias is None or walk.config.get("validate_by_alias") is False:
        return [name]
    if isinstance(alias, str):
        return [alias]
    paths = alias if isinstance(alias[0], list) else [alias]
    return next((path for path in paths if len(path) == 1 and isinstance(path[0], str)), paths[0])


def named_tuple(walk: Walk, node: CoreNode) -> Schema:
    with walk.within({**walk.config, **(node.get("config") or {})}):
        return _by_place(walk, [(each["name"], each) for each in node["fields"]])


def _by_place(walk: Walk, fields: list[tuple[str, CoreNode]], rest: CoreNode | None = None) -> Schema:
    """An array with the values of some fields in their order, and behind them as many as there are of `rest`."""
    items, needed = [], 0
    for index, (name, each) in enumerate(fields):
        with walk.member(name):
            items.append(walk.schema(each))
        needed = index + 1 if _is_required(walk, each, True) else needed
    out: Schema = {"type": "array"} | ({"prefixItems": items} if items else {}) | {"minItems": needed}
    return out | ({"maxItems": len(items)} if rest is None else {"items": walk.schema(rest)})


def arguments(walk: Walk, node: CoreNode) -> Schema:
    """The arguments of a function: an object, or an array where some can be given by their place only."""
    given = [{"type": "model-field", **each} for each in node["arguments_schema"]]
    listed = [each for each in given if not each.get("mode", "").startswith("var_")]
    others = {each["mode"]: each["schema"] for each in given if each not in listed}  # of arguments-v3
    rest = node.get("var_args_schema", others.get("var_args"))
    if any(each.get("mode") == "positional_only" for each in listed) or (rest is not None and not listed):
        for each in listed:
            if each.get("mode") == "keyword_only" and _is_required(walk, each, True):
                raise walk.refuse(f"an argument before it has no name, so no JSON has {each['name']}", "arguments with names")
        return _by_place(walk, [(each["name"], each) for each in listed if each.get("mode") != "keyword_only"], rest)
    kind = node.get("var_kwargs_mode") or next((mode.removeprefix("var_kwargs_") for mode in others if "kwargs" in mode), "")
    keywords = node.get("var_kwargs_schema", others.get(f"var_kwargs_{kind}"))
    return _with_keywords(walk, members(walk, {}, [(each["name"], each) for each in listed]), keywords, kind.replace("-", "_"))


def _with_keywords(walk: Walk, schema: Schema, keywords: CoreNode | None, kind: str) -> Schema:
    """A schema of arguments with those that `**` collects: each of one type, or the members of a typed dictionary."""
    if keywords is None:
        return schema
    if kind != "unpacked_typed_dict":
        return schema | {"additionalProperties": walk.schema(keywords) or True}
    told = walk.resolved(walk.schema(keywords))
    required = [*schema.get("required", ()), *told.get("required", ())]
    return schema | {"properties": schema["properties"] | told["properties"]} | ({"required": required} if required else {})


def call(walk: Walk, node: CoreNode) -> Schema:
    schema = walk.schema(node["arguments_schema"])
    function = node["function"]
    if isinstance(function, type) and issubclass(function, tuple):
        return schema
    return noted(schema, f"the call of {getattr(function, '__name__', function)}")


def none_of_json(walk: Walk, node: CoreNode) -> Schema:
    """What no JSON is read as: functions, classes, instances."""
    shown = getattr(node.get("cls"), "__name__", "")
    raise walk.refuse(f"no JSON is read as {node['type']}{f' of {shown}' if shown else ''}", "a type of data")
