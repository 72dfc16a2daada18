"""What plugins have registered and clients may name: logits processors, stopping criteria, grammar languages. The operator says
which, name by name; all others are to a client as if there were none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..constraints.lab.grammar_file import GRAMMAR_LANGUAGES
from ..foundation.registry import Registry
from ..sampling.logits_stages import LOGITS_STAGES
from ..sampling.stopping import STOPPING
from .errors import ApiError
from .settings import ServerSettings

MADE = 64  # parts that are kept, so that requests that ask for the same share one: a stage is called once for all of its rows
REGISTRIES: Mapping[str, Registry[Any]] = {  # by the parameter of a request; the option of the server is client_ and this
    "logits_processors": LOGITS_STAGES,
    "stopping_criteria": STOPPING,
    "grammar_languages": GRAMMAR_LANGUAGES,
}


def check_names(settings: ServerSettings) -> None:
    """Raises UsageError for a name that clients may give and that nobody has registered."""
    for param, registry in REGISTRIES.items():
        for name in named(settings, param):
            registry.find(name)


def named(settings: ServerSettings, param: str) -> tuple[str, ...]:
    """What clients may name in this parameter."""
    names: tuple[str, ...] = getattr(settings, f"client_{param}")
    return names


def parts_of(settings: ServerSettings, param: str, given: Sequence[str | Mapping[str, Any]]) -> tuple[Any, ...]:
    """What a client asks for: names, or {"name": ..., "parameters": {...}}. Raises ApiError with the place of one that it may not
    name, or that cannot be made so."""
    return tuple(_part(settings, param, each, f"{param}[{index}]") for index, each in enumerate(given))


def _part(settings: ServerSettings, param: str, given: str | Mapping[str, Any], place: str) -> Any:
    name, parameters = (given, {}) if isinstance(given, str) else _name_and_parameters(given, place)
    known = named(settings, param)
    if name not in known:
        which = f"clients may name {', '.join(map(repr, known))}" if known else "clients may name none here"
        option = f"client_{param}".replace("_", "-")
        raise ApiError(400, f"{place}: {which} (--{option}), not {name!r:.80}", param=place, code="unsupported_parameter")
    try:
        return _made(param, name, json.dumps(parameters, sort_keys=True))
    except Exception as error:  # of the plugin's: it refuses what it was given
        reason = f"{name!r} cannot be made with these parameters: {type(error).__name__}: {error}"
        raise ApiError(400, f"{place}: {reason}", param=place, code="invalid_value") from error


def _name_and_parameters(given: Mapping[str, Any], place: str) -> tuple[str, Mapping[str, Any]]:
    name, parameters = given.get("name"), given.get("parameters") or {}
    if not isinstance(name, str) or not isinstance(parameters, Mapping) or set(given) - {"name", "parameters"}:
        message = f'{place} is a name, or an object with "name" and "parameters"'
        raise ApiError(400, message, param=place, code="invalid_value")
    return name, parameters


@lru_cache(MADE)
def _made(param: str, name: str, parameters: str) -> Any:
    return REGISTRIES[param][name](**json.loads(parameters))
