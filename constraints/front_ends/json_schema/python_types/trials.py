"""Asking Pydantic itself whether it takes a JSON text: for types with few values, such as literals and enumerations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema, to_json, to_jsonable_python

from .walk import CoreNode, Walk


def accepted_values(walk: Walk, node: CoreNode, values: Iterable[Any]) -> list[Any]:
    """Those JSON values that Pydantic reads as a value of a node, without repetition."""
    validator = _validator(walk, node)
    found = {to_json(value): value for value in map(to_jsonable_python, values)}
    return [value for text, value in found.items() if _takes(validator, text)]


def accepted_keys(walk: Walk, node: CoreNode, keys: Iterable[str]) -> list[str]:
    """Those names of members that Pydantic reads as a value of a node. All of them, where it cannot be asked."""
    keys = list(dict.fromkeys(keys))
    try:
        validator = _validator(walk, core_schema.dict_schema(node))
    except SchemaError:  # of a node that refers to others
        return keys
    return [key for key in keys if _takes(validator, to_json({key: None}))]


def has_valid_default(walk: Walk, node: CoreNode) -> bool:
    """Whether a default that is validated is valid; False where Pydantic cannot be asked: then the value has to be given."""
    try:
        _validator(walk, node).get_default_value()
    except Exception:  # Pydantic's, or a factory's own
        return False
    return True


def _validator(walk: Walk, node: CoreNode) -> SchemaValidator:
    """What validates a node, with all that it may refer to."""
    config = cast(core_schema.CoreConfig, walk.config)
    try:
        return SchemaValidator(node, config)
    except SchemaError:  # it does refer to others
        return SchemaValidator(core_schema.definitions_schema(node, walk.waiting()), config)


def _takes(validator: SchemaValidator, text: bytes) -> bool:
    try:
        validator.validate_json(text)
    except ValidationError:
        return False
    return True
