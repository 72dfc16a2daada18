"""Python types as JSON schemas: everything that Pydantic's `TypeAdapter` takes.

A model, dataclass or TypedDict is closed: its object has no other keys, unless it says `extra="allow"`. Where Pydantic's schema
says less than its validation does (decimals, durations, times without offset, tags of unions), the schema here says it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import Any

import typing_extensions
from pydantic import (
    BaseModel,
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
    TypeAdapter,
)
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ...base.errors import ConstraintError
from ..numbers.decimals import decimal_schemas
from .strings.formats import FORMATS

_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
_SECONDS = r"\d{1,8}(?:\.\d{1,6})?S"
_MINUTES = rf"\d{{1,8}}M(?:{_SECONDS})?"
_HOURS = rf"\d{{1,8}}H(?:(?:{_MINUTES}|{_SECONDS}))?"
_CLOCK = rf"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DURATION = rf"-?P(?:(?:\d{{1,6}}Y(?:\d{{1,8}}D)?|\d{{1,8}}D)(?:{_CLOCK})?|{_CLOCK})"  # what timedelta can hold
_COMPLEX = r"[+-]?\d{1,300}(?:\.\d{1,300})?(?:[+-]\d{1,300}(?:\.\d{1,300})?j)?"
_ERRORS = (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError)


def schema_of(type_: Any) -> dict[str, Any]:
    """The JSON schema of the texts that `validate` reads as a value of `type_`. Raises `ConstraintError`."""
    if _is_instance(type_):
        raise _no_type(type_)
    try:
        schema = adapter(type_).json_schema(schema_generator=ClosedSchema)
    except _ERRORS as error:
        if not _is_written_type(type_):
            raise _no_type(type_) from None
        reason = str(error).splitlines()[0]
        raise ConstraintError(f"no JSON schema for {type_!r}: {reason}", instead="a type that Pydantic describes") from None
    refined: dict[str, Any] = _refined(schema, schema)
    return refined


def _is_instance(value: Any) -> bool:
    """Whether this is a value of a class that describes its values. Pydantic would read some as their class."""
    return isinstance(value, BaseModel | Enum) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _is_written_type(value: Any) -> bool:
    is_named = isinstance(value, type) or type(value).__module__ in ("typing", "typing_extensions", "types")
    return is_named or typing.get_origin(value) is not None


def _no_type(value: Any) -> ConstraintError:
    """The error for a value where a type is meant. It does not show the value, which may be private."""
    name = type(value).__name__
    return ConstraintError(f"an instance of {name} is a value, not a type", instead=f"the class, such as {name}")


def validate(type_: Any, text: str | bytes) -> Any:
    """The value of `type_` that a JSON text stands for. Raises `pydantic.ValidationError`."""
    return adapter(type_).validate_json(text)


def adapter(type_: Any) -> TypeAdapter[Any]:
    """Pydantic's adapter of a type, `typing.TypedDict` on Python 3.11 included; an adapter is its own."""
    if isinstance(type_, TypeAdapter):
        return type_
    return TypeAdapter(_modern(type_))


_KEY_TEXTS: dict[str, JsonSchemaValue] = {
    "int": {"pattern": "^(?:0|-?[1-9][0-9]{0,17})$"},
    "bool": {"enum": ["true", "false"]},
    "uuid": {"format": "uuid"},
    "date": {"format": "date"},
}  # what Pydantic reads as such a key


class ClosedSchema(GenerateJsonSchema):
    """Pydantic's schemas with closed objects and with the texts that its validation takes."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return super().model_schema(schema) if schema.get("root_model") else _closed(super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema))

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        out = super().dict_schema(schema)
        keys = schema.get("keys_schema", {})
        if keys.get("type") in _KEY_TEXTS and not keys.keys() - {"type", "ref", "metadata"}:
            out["propertyNames"] = _KEY_TEXTS[keys["type"]]
        elif keys.get("type") in ("int", "float", "decimal", "bool", "uuid", "date", "datetime"):
            raise ConstraintError(f"keys of type {keys['type']} with conditions have no schema", instead="keys of type str or int")
        return out

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return _any_of(decimal_schemas(schema))

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        naive = {"type": "string", "pattern": f"^(?:{FORMATS['date'].pattern})T{_TIME}$"}
        return _any_of(_by_offset(schema, {"type": "string", "format": "date-time"}, naive))

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        naive = {"type": "string", "pattern": f"^{_TIME}$"}
        return _any_of(_by_offset(schema, {"type": "string", "format": "time"}, naive))

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_DURATION}$"}

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_COMPLEX}$"}

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        out, schemes = super().url_schema(schema), schema.get("allowed_schemes")
        if schemes:
            out["pattern"] = f"^(?:{'|'.join(schemes)})://[A-Za-z0-9]"
        return out


def _by_offset(
    schema: core_schema.DatetimeSchema | core_schema.TimeSchema, aware: JsonSchemaValue, naive: JsonSchemaValue
) -> list[JsonSchemaValue]:
    """A schema of times with an offset, without one, or both, as `tz_constraint` asks."""
    wanted = schema.get("tz_constraint")
    return [naive] if wanted == "naive" else [aware, naive] if wanted is None else [aware]


def _any_of(options: list[JsonSchemaValue]) -> JsonSchemaValue:
    return options[0] if len(options) == 1 else {"anyOf": options}


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    return schema


# -- what is refined in a finished schema -----------------------------------------------------------------------------------


def _refined(schema: Any, root: dict[str, Any]) -> Any:
    """The schema with tags of discriminated unions required, enumerated keys declared, and unions of formats spelled out."""
    if isinstance(schema, list):
        return [_refined(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: value if key in _VALUES else _refined(value, root) for key, value in schema.items()}
    discriminator, names = schema.get("discriminator"), _enumerated(schema.get("propertyNames"), root)
    if isinstance(discriminator, dict) and isinstance(schema.get("oneOf"), list):
        tag = discriminator["propertyName"]  # Pydantic reads it before any default
        out["oneOf"] = [{"required": [tag], **branch} if "$ref" in branch else branch for branch in out["oneOf"]]
    if names is not None and "properties" not in schema:
        del out["propertyNames"]
        out["properties"] = dict.fromkeys(names, out.get("additionalProperties", True))
        out["additionalProperties"] = False
    if schema.get("format") == "ipvanyaddress":
        del out["format"]
        out["anyOf"] = [{"format": "ipv4"}, {"format": "ipv6"}]
    return out


_VALUES = frozenset({"default", "const", "enum", "examples"})


def _enumerated(names: Any, root: dict[str, Any]) -> list[str] | None:
    """The names that a `propertyNames` lists, if it is an enumeration."""
    if not isinstance(names, dict):
        return None
    if str(names.get("$ref", "")).startswith("#/$defs/"):
        names = root["$defs"].get(names["$ref"].removeprefix("#/$defs/"), {})
    listed = names.get("enum", [names["const"]] if "const" in names else None)
    return listed if listed and all(isinstance(name, str) for name in listed) else None


# -- typing.TypedDict -------------------------------------------------------------------------------------------------------


def _modern(type_: Any, inside: tuple[Any, ...] = ()) -> Any:
    """The type with `typing.TypedDict` replaced by that of typing_extensions, the only one Pydantic takes before Python 3.12."""
    if isinstance(type_, type) and type_ in inside:
        return type_
    if type(type_).__name__ == "_TypedDictMeta" and type(type_).__module__ == "typing":
        return _modern_dict(type_, (*inside, type_))
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (None, typing.Literal) or any(isinstance(argument, list) for argument in arguments):
        return type_
    if origin is typing.Annotated:
        return typing.Annotated[(_modern(arguments[0], inside), *arguments[1:])]
    changed = tuple(_modern(argument, inside) for argument in arguments)
    if changed == arguments:
        return type_
    is_union = origin in (typing.Union, types.UnionType)
    return typing.Union[changed] if is_union else origin[changed]  # noqa: UP007


def _modern_dict(type_: Any, inside: tuple[Any, ...]) -> Any:
    fields = {}
    for name, hint in typing.get_type_hints(type_, include_extras=True).items():
        is_required = name in type_.__required_keys__
        if typing.get_origin(hint) in (typing.Required, typing.NotRequired):  # not in the keys where annotations are strings
            is_required, hint = typing.get_origin(hint) is typing.Required, typing.get_args(hint)[0]
        kind = typing_extensions.Required if is_required else typing_extensions.NotRequired
        fields[name] = kind[_modern(hint, inside)]
    return typing_extensions.TypedDict(type_.__name__, fields)  # type: ignore[operator]
