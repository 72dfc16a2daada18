"""What can go wrong at the front door, beside the errors of the layers below. Messages are one line, those about text show it too.

    MaskwrightError            any of these
    |- UsageError              arguments that contradict each other or cannot be understood
    |  |- MessageError         a message of a conversation; `.place` says where
    |  `- ToolFailed           a function that a model has called raised an error
    |- ModelNotFound           no such model folder, and none of that name in the local cache
    |- OutputError             an output that is not what was asked for; `.output` has what there is
    |  |- GenerationIncomplete generation ended before the output was complete
    |  `- ValidationFailed     the output satisfies the schema, but a validator of the type rejected it
    |- ConstraintError         of maskwright.constraints: what cannot be compiled, with path and keyword
    |- SamplingError           of maskwright.sampling: a sampling option out of range
    `- EngineError             of maskwright.engine: a model folder or a request the engine cannot run
"""

from __future__ import annotations

from .foundation.errors import MaskwrightError as MaskwrightError
from .foundation.errors import UsageError as UsageError


class MessageError(UsageError):
    """A message of a conversation cannot be read. `place` is where, such as "messages[1].content"; `code` is why, in one word."""

    def __init__(self, place: str, reason: str, *, joint: str = ": ", param: str = "", code: str = "invalid_value") -> None:
        super().__init__(f"{place}{joint}{reason}")
        self.place, self.code = param or place, code


class ToolFailed(UsageError):
    """A function that a model has called raised an error, which is the cause of this one. `name` is the tool's."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'the tool "{name}" failed: {reason}')
        self.name = name


class ModelNotFound(MaskwrightError, FileNotFoundError):
    """There is no such model folder. `name` is what was asked for."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'model "{name}": {reason}')
        self.name = name

    def __str__(self) -> str:  # FileNotFoundError would print its arguments as (errno, text)
        return str(self.args[0])


class OutputError(MaskwrightError):
    """An output that is not what was asked for. The two kinds of it are defined beside the output that they hold, in outputs.py."""
