"""Python types as JSON schemas: everything that Pydantic's `TypeAdapter` takes.

The schema says what Pydantic enforces, which is read from what it validates with (python_types/). A model, dataclass or TypedDict
is closed: its object has no other keys, unless it says `extra="allow"`.
"""

from __future__ import annotations

import dataclasses
import os
import re
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import typing_extensions
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from ...base.errors import ConstraintError
from .python_types.kinds import walk_of


def schema_of(type_: Any) -> dict[str, Any]:
    """The JSON schema of the texts that `validate` reads as a value of `type_`. Raises `ConstraintError`."""
    if _is_instance(type_):
        raise _no_type(type_)
    try:
        of_type = adapter(type_)
        return walk_of(_config_of(of_type)).whole(of_type.core_schema)
    except (ConstraintError, RecursionError):
        raise
    except Exception as error:  # Pydantic's own, or that of any annotation or hook of the type
        if not _is_written_type(type_):
            raise _no_type(type_) from None
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConstraintError(f"no JSON schema for {type_!r}: {reason}", instead="a type that Pydantic describes") from None


def _config_of(of_type: TypeAdapter[Any]) -> dict[str, Any]:
    """The configuration that an adapter was given, under the names that Pydantic's core has for it."""
    given = dict(getattr(of_type, "_config", None) or {})
    return given | ({"extra_fields_behavior": given["extra"]} if "extra" in given else {})


def _is_instance(value: Any) -> bool:
    """Whether this is a value of a class that describes its values. Pydantic would read some as their class."""
    return isinstance(value, BaseModel | Enum) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _is_written_type(value: Any) -> bool:
    is_named = isinstance(value, type) or type(value).__module__ in ("typing", "typing_extensions", "types")
    return is_named or typing.get_origin(value) is not None


_A_SCHEMA = "a JSON Schema, which is an object, or a type such as list[int]"
_MEANT: tuple[tuple[Any, str], ...] = (  # what values are given in place of a type, and what is to be written
    ((bool, int, float, list, tuple, set, type(None)), _A_SCHEMA),
    ((bytes, bytearray, os.PathLike), "the text of the schema as a str, or the object that json.loads makes of it"),
    (re.Pattern, "regex=, with its text"),
    (FieldInfo, "Annotated[int, Field(...)], or whatever the type is"),
    (types.ModuleType, "a class in it"),
    (Iterator, "a type such as list[int]"),
    (Callable, "its parameters as a type (TypedDict, a model); a function is for tools="),
)


def _no_type(value: Any) -> ConstraintError:
    """The error for a value where a type is meant. It does not show the value, which may be private."""
    name = type(value).__name__
    known = () if _is_instance(value) else _MEANT
    meant = next((meant for kinds, meant in known if isinstance(value, kinds)), f"the class, such as {name}")
    return ConstraintError(f"an instance of {name} is a value, not a type", instead=meant)


def validate(type_: Any, text: str | bytes) -> Any:
    """The value of `type_` that a JSON text stands for. Raises `pydantic.ValidationError`."""
    return adapter(type_).validate_json(text)


def adapter(type_: Any) -> TypeAdapter[Any]:
    """Pydantic's adapter of a type, `typing.TypedDict` on Python 3.11 included; an adapter is its own."""
    if isinstance(type_, TypeAdapter):
        return type_
    return TypeAdapter(_modern(type_))


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
