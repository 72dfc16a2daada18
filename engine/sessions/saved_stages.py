"""Logits processors in a session: by their registered names, with parameters as JSON.

Nothing of a file is executed: what it names is looked up among what was registered here, and made of the parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...foundation.errors import UsageError
from ...sampling.logits_stages import LOGITS_STAGES, LogitsStage, saved_form
from ..errors import SessionError


def saved_stages(stages: Iterable[LogitsStage]) -> list[tuple[str, dict[str, Any]]]:
    """(name, parameters) of each. Raises SessionError for one that cannot be saved."""
    try:
        return [saved_form(stage) for stage in stages]
    except UsageError as error:
        raise SessionError("logits_processors", str(error)) from error


def described(stages: Iterable[LogitsStage]) -> tuple[str, ...]:
    """Each as one text, by which stages of two engines are compared. Raises SessionError for one that cannot be saved."""
    return tuple(f"{name} {json.dumps(parameters, sort_keys=True)}" for name, parameters in saved_stages(stages))


def made_again(saved: Iterable[Any]) -> tuple[LogitsStage, ...]:
    """The stages that were saved. Raises SessionError where one is not registered here, or is not made of its parameters."""
    made = []
    for name, parameters in saved:
        if name not in LOGITS_STAGES:
            raise SessionError("logits_processors", f'it was drawn with "{name!s:.80}", which is not registered here')
        try:
            made.append(LOGITS_STAGES[name](**parameters))
        except Exception as error:
            reason = f'"{name}" is not made of {parameters!r:.80}: {type(error).__name__}: {error}'
            raise SessionError("logits_processors", reason) from error
    return tuple(made)
