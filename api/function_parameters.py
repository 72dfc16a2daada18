"""The parameters of a Python function: the JSON Schema of its arguments, and their values as Pydantic makes them of JSON.

Each parameter stands for itself, so it may have any name, and what cannot be described is told by its name.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Annotated, Any

import typing_extensions
from pydantic import AliasChoices, TypeAdapter
from pydantic.fields import FieldInfo

from .constraints import ConstraintError
from .constraints.front_ends.json_schema.python_types.walk import NotInJson, in_json
from .constraints.front_ends.json_schema.types import adapter, schema_of
from .errors import UsageError

_NOTHING = inspect.Parameter.empty
_DEFINITIONS = "#/$defs/"
_UNPACK = (typing.Unpack, typing_extensions.Unpack)
_QUALIFIERS: dict[Any, bool | None] = {  # of members of a TypedDict, and whether such a member has to be there
    typing.Required: True, typing_extensions.Required: True, typing.NotRequired: False, typing_extensions.NotRequired: False,
    typing_extensions.ReadOnly: None,
}  # fmt: skip


@dataclass(frozen=True)
class FunctionParameter:
    """One parameter that a model gives.

    field: the one whose default is passed where it is not given; None: nothing is passed. default: what Python passes then.
    has_name: whether it can be passed by its name.
    """

    name: str
    annotation: Any
    schema: Mapping[str, Any]
    is_required: bool
    field: FieldInfo | None = None
    default: Any = None
    has_name: bool = True

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        return adapter(self.annotation)


@dataclass(frozen=True)
class FunctionParameters:
    """The parameters of a function, in order. Made by `parameters_of`."""

    parameters: tuple[FunctionParameter, ...]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments: a closed object with the parameters as members."""
        definitions: dict[str, Any] = {}
        properties = {each.name: _with_shared_definitions(each, definitions) for each in self.parameters}
        required = [each.name for each in self.parameters if each.is_required]
        out: dict[str, Any] = {"$defs": definitions} if definitions else {}
        out |= {"additionalProperties": False, "properties": properties}
        return out | ({"required": required} if required else {}) | {"type": "object"}

    def values(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """What to call the function with. texts: the JSON text of each argument.

        Raises `pydantic.ValidationError` for an argument that Pydantic rejects, `UsageError` for one that is not there or should
        not be.
        """
        known = [each.name for each in self.parameters]
        for name in texts:
            if name not in known:
                raise UsageError(f'there is no parameter "{name}"; known: {", ".join(known) or "none"}')
        values = {}
        for each in self.parameters:
            if each.name in texts:
                values[each.name] = each.adapter.validate_json(texts[each.name])
            elif each.is_required:
                raise UsageError(f'parameter "{each.name}" is missing')
            elif each.field is not None:
                values[each.name] = each.field.get_default(call_default_factory=True)
        return values

    def call(self, function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        """What the function returns for some values."""
        by_place = [values.get(each.name, each.default) for each in self.parameters if not each.has_name]
        by_name = {each.name: values[each.name] for each in self.parameters if each.has_name and each.name in values}
        return function(*by_place, **by_name)


def parameters_of(function: Callable[..., Any], name: str) -> FunctionParameters:
    """The parameters of a function, method, class, partial or callable object that a model gives; a partial has settled those that
    it names. name: of the tool, in messages.

    Raises `UsageError` naming the parameter that cannot be described.
    """
    try:
        signature = inspect.signature(_called(function))
    except (ValueError, TypeError):
        raise UsageError(f'tool "{name}": Python knows no signature of it; wrap it in a function') from None
    settled = function.keywords if isinstance(function, functools.partial) else {}
    given = [each for each in signature.parameters.values() if each.name not in settled]
    found = (each for parameter in given for each in _told(parameter, function, f'tool "{name}": parameter "{parameter.name}"'))
    return FunctionParameters(tuple(found))


def behind_partials(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the partials around a function call in the end."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a call of `function` calls: of an object its `__call__`, static or not, where `inspect` always leaves out a `self`."""
    if isinstance(function, functools.partial):
        return functools.partial(_called(function.func), *function.args, **function.keywords)
    says_itself = hasattr(function, "__signature__") or hasattr(function, "__wrapped__")
    if says_itself or inspect.isroutine(function) or inspect.isclass(function):
        return function
    found = inspect.getattr_static(type(function), "__call__")
    return found.__get__(function, type(function)) if hasattr(type(found), "__get__") else found


def _told(parameter: inspect.Parameter, function: Callable[..., Any], place: str) -> Iterator[FunctionParameter]:
    """What a model is told of a parameter: nothing of one with a default that no JSON gives, several of an unpacked TypedDict."""
    if parameter.kind is parameter.VAR_KEYWORD:
        yield from _unpacked(parameter, function, place)
    elif parameter.kind is parameter.VAR_POSITIONAL:
        raise UsageError(f"{place} cannot be passed by name")
    elif parameter.annotation is _NOTHING:
        raise UsageError(f"{place} has no type annotation")
    elif (found := _parameter(parameter, function, place)) is not None:
        yield replace(found, name=_name_in_call(parameter.name, behind_partials(function), place))


def _unpacked(parameter: inspect.Parameter, function: Callable[..., Any], place: str) -> Iterator[FunctionParameter]:
    """The parameters that `**options: Unpack[Options]` stands for."""
    annotation = None if parameter.annotation is _NOTHING else _evaluated(parameter.annotation, function, place)
    options: Any = typing.get_args(annotation)[0] if typing.get_origin(annotation) in _UNPACK else None
    if not typing_extensions.is_typeddict(options):
        raise UsageError(f"{place} takes any names, of which a model cannot be told; name the parameters that it may give")
    try:
        hints = typing_extensions.get_type_hints(options, include_extras=True)
    except Exception as error:  # of annotations that are text, which Python runs
        reason = f"{place} is {options.__name__}, whose annotations have no meaning when the program runs: {error}"
        raise UsageError(f"{reason}; import their names outside of `if TYPE_CHECKING`") from None
    for name, hint in hints.items():
        hint, is_required = _member_of(hint, name in options.__required_keys__)
        named = inspect.Parameter(name, parameter.KEYWORD_ONLY, annotation=hint)
        if (found := _parameter(named, function, f'{place}, in it "{name}"')) is not None:
            yield replace(found, is_required=is_required, field=None)


def _member_of(hint: Any, is_required: bool) -> tuple[Any, bool]:
    """The type of a member of a TypedDict, and whether it has to be there, which Python does not see where annotations are text."""
    while (qualifier := typing.get_origin(hint)) in _QUALIFIERS:
        told = _QUALIFIERS[qualifier]
        hint, is_required = typing.get_args(hint)[0], is_required if told is None else told
    return hint, is_required


def _name_in_call(name: str, function: Callable[..., Any], place: str) -> str:
    """The name by which a parameter is passed: classes of Pydantic take an alias, and may show another name in their signature."""
    field = getattr(function, "__pydantic_fields__", {}).get(name) if inspect.isclass(function) else None
    config = getattr(function, "model_config", None) or getattr(function, "__pydantic_config__", None) or {}
    if field is None or field.validation_alias is None or config.get("populate_by_name") or config.get("validate_by_name"):
        return name
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    names = [each for each in choices if isinstance(each, str)]
    if not names:
        raise UsageError(f"{place} is read at a path within another one; give it an alias that is a name")
    return names[0]


def _parameter(parameter: inspect.Parameter, function: Callable[..., Any], place: str) -> FunctionParameter | None:
    """What a model is told of a parameter; None for one with a default that no JSON can give."""
    annotation, default = _evaluated(parameter.annotation, function, place), parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], _NOTHING
    try:
        schema = schema_of(annotation)
        field = FieldInfo.from_annotation(annotation)
    except NotInJson as error:
        if default is not _NOTHING and parameter.kind is not parameter.POSITIONAL_ONLY:
            return None
        raise UsageError(f"{place}: {error}") from None
    except ConstraintError as error:
        raise UsageError(f"{place}: {error}") from None
    except Exception as error:  # of a type's own hooks, or of Pydantic for what is no type
        raise UsageError(f"{place} has an annotation that Pydantic cannot describe: {' '.join(str(error).split())}") from None
    has_name = parameter.kind is not parameter.POSITIONAL_ONLY
    made = FunctionParameter(parameter.name, annotation, schema, is_required=False, has_name=has_name)
    if default is not _NOTHING:
        return replace(made, schema=schema | in_json({"default": default}), default=default)
    return replace(made, is_required=True) if field.is_required() else replace(made, field=field)


def _evaluated(annotation: Any, function: Callable[..., Any], place: str) -> Any:
    """The type that an annotation stands for, which may be written as a string, as may types inside of it."""
    names = _names_around(inspect.unwrap(behind_partials(function)))
    try:
        hint = typing.get_type_hints(SimpleNamespace(__annotations__={"": annotation}), names, {}, include_extras=True)[""]
        return hint.type if isinstance(hint, dataclasses.InitVar) else hint
    except Exception as error:
        if not isinstance(annotation, str):
            return annotation
        reason = f'{place} has the annotation "{annotation}", which has no meaning when the program runs: {error}'
        raise UsageError(f"{reason}; import its names outside of `if TYPE_CHECKING`") from None


def _names_around(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that annotations of a function, class or callable object may use."""
    if inspect.isclass(function):
        return dict(vars(sys.modules[function.__module__]))
    routine = function if inspect.isroutine(function) else type(function).__call__
    return dict(getattr(inspect.unwrap(behind_partials(routine)), "__globals__", {}))


def _with_shared_definitions(parameter: FunctionParameter, shared: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter whose `$defs` have moved to `shared`, with other names where these were taken."""
    own = parameter.schema.get("$defs", {})
    is_taken = any(shared.get(name, definition) != definition for name, definition in own.items())
    prefix = f"{parameter.name}." if is_taken else ""
    shared |= {prefix + name: _with_prefix(definition, prefix) for name, definition in own.items()}
    moved: dict[str, Any] = _with_prefix({key: value for key, value in parameter.schema.items() if key != "$defs"}, prefix)
    return moved


def _with_prefix(schema: Any, prefix: str) -> Any:
    """`schema` with its references into `$defs` renamed. (A property called "$ref" has a mapping as value, not a string.)"""
    if isinstance(schema, list):
        return [_with_prefix(item, prefix) for item in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: _with_prefix(value, prefix) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
        renamed["$ref"] = _DEFINITIONS + prefix + reference.removeprefix(_DEFINITIONS)
    return renamed
