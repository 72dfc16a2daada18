"""Logits processors and stopping criteria in a session: by their registered names, with parameters as JSON.

Nothing of a file is executed: what it names is looked up among what was registered here, and made of the parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...foundation.errors import UsageError
from ...foundation.registry import Registry
from ...sampling.logits_stages import LOGITS_STAGES
from ...sampling.stopping import STOPPING
from ..errors import SessionError

REGISTRIES: Mapping[str, Registry[Any]] = MappingProxyType({"logits_processors": LOGITS_STAGES, "stopping_criteria": STOPPING})


def saved_parts(option: str, parts: Iterable[object]) -> list[tuple[str, dict[str, Any]]]:
    """(name, parameters) of each. Raises SessionError for one that cannot be saved."""
    try:
        return [REGISTRIES[option].saved_form(part) for part in parts]
    except UsageError as error:
        raise SessionError(option, str(error)) from error


def described(option: str, parts: Iterable[object]) -> tuple[str, ...]:
    """Each as one text, by which those of two engines are compared. Raises SessionError for one that cannot be saved."""
    return tuple(f"{name} {json.dumps(parameters, sort_keys=True)}" for name, parameters in saved_parts(option, parts))


def made_again(option: str, saved: Iterable[Any]) -> tuple[Any, ...]:
    """What was saved. Raises SessionError where one is not registered here, or is not made of its parameters."""
    registry, made = REGISTRIES[option], []
    for name, parameters in saved:
        if name not in registry:
            raise SessionError(option, f'it has the {registry.kind} "{name!s:.80}", which is not registered here')
        try:
            made.append(registry[name](**parameters))
        except Exception as error:
            reason = f'"{name}" is not made of {parameters!r:.80}: {type(error).__name__}: {error}'
            raise SessionError(option, reason) from error
    return tuple(made)
