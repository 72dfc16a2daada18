"""Python types as JSON schemas: everything that Pydantic's `TypeAdapter` takes.

A model, dataclass or TypedDict is closed: its object has no other keys, unless it says `extra="allow"`.
"""

from __future__ import annotations

from typing import Any

from pydantic import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from .errors import ConstraintError


def schema_of(type_: Any) -> dict[str, Any]:
    """The JSON schema of the texts that `validate` reads as a value of `type_`. Raises `ConstraintError`."""
    try:
        schema = TypeAdapter(type_).json_schema(schema_generator=ClosedSchema)
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        raise ConstraintError(f"no JSON schema for {type_!r}: {reason}", instead="a type that Pydantic can describe") from None
    return _with_tags(schema, schema)


def validate(type_: Any, text: str | bytes) -> Any:
    """The value of `type_` that a JSON text stands for. Raises `pydantic.ValidationError`."""
    return TypeAdapter(type_).validate_json(text)


class ClosedSchema(GenerateJsonSchema):
    """Pydantic's schemas with closed objects, and decimals as the texts that Pydantic reads back exactly."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return super().model_schema(schema) if schema.get("root_model") else _closed(super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema))


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    return schema


def _with_tags(schema: Any, root: dict[str, Any]) -> Any:
    """The schema with the tag of each discriminated union required in its branches: Pydantic reads it before any default."""
    if isinstance(schema, list):
        return [_with_tags(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _with_tags(value, root) for key, value in schema.items()}
    discriminator = schema.get("discriminator")
    if isinstance(discriminator, dict) and isinstance(schema.get("oneOf"), list):
        tag = discriminator["propertyName"]
        out["oneOf"] = [{"required": [tag], **branch} if "$ref" in branch else branch for branch in out["oneOf"]]
    return out
