"""Command-line options derived from the fields of a dataclass, so that an option is declared once.

The field's default, type and trailing comment become the option's default, type and help. A tuple becomes an option that
can be repeated, a mapping one of `KEY=VALUE` that can be repeated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from types import GenericAlias, MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from ..errors import UsageError
from ..field_comments import field_comments

# Names beside the long ones, those of llama.cpp's commands: -t is threads there, and never a temperature by mistake.
BESIDE = {
    "temperature": ("--temp",), "threads": ("-t",), "max_tokens": ("-n", "--n-predict", "--predict"), "typical_p": ("--typical",),
    "repetition_penalty": ("--repeat-penalty",), "top_n_sigma": ("--top-nsigma",), "dynatemp_exponent": ("--dynatemp-exp",),
    "mirostat_tau": ("--mirostat-ent",), "mirostat_eta": ("--mirostat-lr",), "dry_sequence_breakers": ("--dry-sequence-breaker",),
}  # fmt: skip


def option_parameters(
    cls: type, panel: str, panels: Mapping[str, str] = MappingProxyType({}), *, shows_defaults: bool = False
) -> list[inspect.Parameter]:
    """One keyword parameter for each field of `cls`, None when not given.

    panels: of fields that stand elsewhere in --help. shows_defaults: --help shows the defaults of the fields, where these hold.
    """
    hints, comments = get_type_hints(cls), field_comments(cls)
    return [
        _parameter(
            field.name,
            hints[field.name],
            comments.get(field.name, ""),
            panels.get(field.name, panel),
            _shown_default(field.default) if shows_defaults else "",
        )
        for field in fields(cls)
        if not field.metadata.get("in_python")
    ]


def given_options(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `cls` that were given on the command line, as `cls` wants them."""
    hints = get_type_hints(cls)
    given = {field.name: values[field.name] for field in fields(cls) if values.get(field.name) not in (None, [])}
    return {name: _field_value(name, hints[name], value) for name, value in given.items()}


def with_parameters(function: Callable[..., Any], added: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """`function`, which takes `**values`, under a signature that names `added` parameters instead."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    signature = inspect.signature(function, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
    wrapper.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *added]}
    wrapper.__name__, wrapper.__doc__ = function.__name__, function.__doc__
    return wrapper


def spread(arguments: Sequence[str], option: str) -> list[str]:
    """Arguments in which several values of an option, as in `--name a b c`, are as many options."""
    made: list[str] = []
    is_value = False  # of the option, behind its first one
    for place, argument in enumerate(arguments):
        is_first = place > 0 and arguments[place - 1] == option
        is_value = not argument.startswith("-") and (is_first or is_value)
        made += [option, argument] if is_value and not is_first else [argument]
    return made


def _parameter(name: str, hint: Any, comment: str, panel: str, shown_default: str) -> inspect.Parameter:
    names = [_long_name(name), *BESIDE[name]] if name in BESIDE else []
    option = typer.Option(*names, help=comment, rich_help_panel=panel, show_default=shown_default or False)
    annotation = Annotated[_command_line_type(hint) | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _shown_default(value: Any) -> str:
    """A default as it would be given; "" where there is none that an option could be given."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None or value is MISSING else str(value)


def _long_name(name: str) -> str:
    return "--" + name.replace("_", "-")


def _command_line_type(hint: Any) -> Any:
    hint = _without_none(hint)
    if get_origin(hint) is tuple:
        return GenericAlias(list, get_args(hint)[:1])
    return list[str] if _is_mapping(hint) else hint


def _field_value(name: str, hint: Any, value: Any) -> Any:
    hint = _without_none(hint)
    if get_origin(hint) is tuple:
        return tuple(value)
    return _mapping_value(name, hint, value) if _is_mapping(hint) else value


def _mapping_value(name: str, hint: Any, entries: Sequence[str]) -> dict[Any, Any]:
    kind, value_type = get_args(hint)
    key_type = (lambda key: int(key) if key.isdigit() else key) if isinstance(kind, UnionType) else kind
    out = {}
    for entry in entries:
        key, _, value = entry.partition("=")
        try:
            out[key_type(key)] = value_type(value)
        except ValueError:
            raise UsageError(f"{_long_name(name)} {entry}: expected {_named(kind)}=value, such as 17=-2.5") from None
    return out


def _named(kind: Any) -> str:
    return " or ".join(each.__name__ for each in get_args(kind) or (kind,))


def _is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _without_none(hint: Any) -> Any:
    if isinstance(hint, UnionType):
        return next(argument for argument in get_args(hint) if argument is not NoneType)
    return hint
