"""What can go wrong at the front door, beside the errors of the layers below.

    MaskwrightError
    |- UsageError              arguments that contradict each other or cannot be understood
    |- ModelNotFound           no such model folder, and none of that name in the local cache
    |- GenerationIncomplete    generation ended before the output was complete; `.output` has what there is
    |- ValidationFailed        the output satisfies the schema, but a validator of the type rejected it; `.output` has it

    from below: maskwright.constraints.ConstraintError   (what cannot be compiled, with path and keyword)
                maskwright.sampling.SamplingError        (a sampling option out of range)
                maskwright.engine.EngineError            (a model folder or a request the engine cannot run)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .outputs import GenerationOutput


class MaskwrightError(Exception):
    """Base of the errors raised at the front door. The message is one line."""


class UsageError(MaskwrightError, ValueError):
    """Arguments that contradict each other or cannot be understood; the message names them."""


class ModelNotFound(MaskwrightError, FileNotFoundError):
    """There is no such model folder. `name` is what was asked for."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'model "{name}": {reason}')
        self.name = name

    def __str__(self) -> str:  # FileNotFoundError would print its arguments as (errno, text)
        return str(self.args[0])


class GenerationIncomplete(MaskwrightError):
    """Generation ended before the output was complete. `output` holds the text so far and why it ended."""

    def __init__(self, output: GenerationOutput) -> None:
        super().__init__(
            f'generation ended with finish_reason "{output.finish_reason}" after {len(output.token_ids)} tokens, '
            "before the output was complete"
        )
        self.output = output


class ValidationFailed(MaskwrightError):
    """A validator of the type rejected an output that satisfies its schema. `output` holds the raw text."""

    def __init__(self, output: GenerationOutput, reason: str) -> None:
        super().__init__(f"the output satisfies the schema, but validation rejected it: {reason}")
        self.output = output
        self.reason = reason
