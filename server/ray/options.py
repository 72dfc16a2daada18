"""What a config file says, as the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from ...constraints import warm_up
from ...engine import EngineConfig, EngineFeatures
from ...errors import UsageError
from ...foundation.option_names import unknown_name
from ...llm import LLM
from ...model_folder import EMBEDDED
from ..cluster.settings import ClusterSettings
from ..settings import ServerSettings

T = TypeVar("T")
MODEL_OPTIONS = ("model", "device", "dtype", "revision", "download", "prompt_style")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that each replica loads for itself. options: what `LLM` takes beside its name and what the server's settings say."""

    name: str = EMBEDDED
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self, settings: ServerSettings) -> LLM:
        """Load it. Of more adapters than there is room for, none is loaded yet: they come when they are asked for."""
        warm_up()
        given = {**self.options, **settings.model_options}
        max_adapters = self.options.get("max_adapters", _default_of(EngineConfig, "max_adapters"))
        if len(given["adapters"]) > max_adapters:
            del given["adapters"]
        return LLM(self.name, **given)


def read_options(given: Mapping[str, Any]) -> tuple[ServedModel, ServerSettings, ClusterSettings]:
    """The options of `maskwright serve` out of a config file, or NAME=VALUE of a command line. Raises UsageError."""
    kinds = (ServerSettings, ClusterSettings, EngineConfig, EngineFeatures)
    known = {name: kind for kind in kinds for name in get_type_hints(kind) if name in {each.name for each in fields(kind)}}
    for name in given:
        if name not in known and name not in MODEL_OPTIONS:
            raise UsageError(unknown_name("option", name, [*MODEL_OPTIONS, *known]))
    options = {name: _read(name, bool if name == "download" else str, given[name]) for name in MODEL_OPTIONS if name in given}
    model = str(options.pop("model", EMBEDDED))
    features, config = _of(EngineFeatures, given), _of(EngineConfig, given, but=MODEL_OPTIONS)
    EngineFeatures(**features), EngineConfig(model=Path(), **config)
    served = ServedModel(model, {**options, **features, **config})
    return served, ServerSettings(**_of(ServerSettings, given)), ClusterSettings(**_of(ClusterSettings, given))


def _of(kind: type[T], given: Mapping[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.name in given and each.name not in but]  # type: ignore[arg-type]  # all are dataclasses
    return {name: _read(name, hints[name], given[name]) for name in names}


def _read(name: str, hint: Any, value: Any) -> Any:
    """A value as its field wants it. Text is read as a config file writes it, unless the field is a text."""
    kinds = [kind for kind in (get_args(hint) if isinstance(hint, UnionType) else (hint,)) if kind is not NoneType]
    if isinstance(value, str) and not any(kind in (str, Path) for kind in kinds):
        value = yaml.safe_load(value)
    if isinstance(value, str) and Path in kinds:
        return Path(value)
    if any(get_origin(kind) is tuple for kind in kinds):
        return tuple(value) if isinstance(value, list) else (value,)
    if isinstance(value, int) and not isinstance(value, bool) and float in kinds and int not in kinds:
        return float(value)
    plain = [kind for kind in kinds if isinstance(kind, type)]
    may_be_none = value is None and len(get_args(hint)) > len(kinds)
    if plain and len(plain) == len(kinds) and type(value) not in plain and not may_be_none:
        raise UsageError(f"{name} is {' or '.join(kind.__name__ for kind in plain)}, not {value!r}")
    return value


def _default_of(kind: type, name: str) -> Any:
    return next(each.default for each in fields(kind) if each.name == name)
