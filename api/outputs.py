"""The outputs of a generation, as users get them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .constraint_choice import FREE, ConstraintChoice
from .constraints.capturing.capture import captures, captures_by_name
from .constraints.runtime.front_end import may_have_captures
from .constraints.runtime.healed import HealedConstraint
from .errors import OutputError, UsageError
from .field_details import FieldReader, Fields, fields_of

if TYPE_CHECKING:
    from .constraints import Constraint
    from .engine.requests.loops import Loop
    from .engine.requests.output import FinishReason, SearchScore, TokenRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How many tokens there were, and how many of them cost no step of their own."""

    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt, computed before for this or another request
    output_tokens: int = 0
    jumped_tokens: int = 0  # of forced text, taken without asking the model
    drafted_tokens: int = 0  # guessed ahead
    accepted_tokens: int = 0  # of these, chosen by the model itself

    @property
    def acceptance_rate(self) -> float:
        return self.accepted_tokens / self.drafted_tokens if self.drafted_tokens else 0.0


@dataclass(frozen=True, kw_only=True)
class GenerationOutput:
    """One finished output. `parsed` is what the user asked for; everything else is how it came about."""

    prompt: str  # as it was given
    text: str  # the output, without special tokens
    token_ids: tuple[int, ...]  # without the end-of-text token
    finish_reason: FinishReason  # "stop", "length", "cancelled", "constraint_limit" or "error"
    closed_by_budget: bool  # max_tokens narrowed the choice, so that the output is complete
    loops: tuple[Loop, ...] = ()  # values in which the model repeated itself until they were ended; see SamplingParams.loop_bound
    bans_overridden: bool = False  # some bans left no legal token and were ignored there
    logprobs: tuple[TokenRecord, ...] | None = None  # one per token, when SamplingParams.logprobs asked for them
    records: tuple[TokenRecord, ...] | None = field(default=None, repr=False, compare=False)  # what `fields` reads
    begun: bytes = field(default=b"", repr=False, compare=False)  # of the text under the constraint: what the prompt ends with
    error: str | None = None  # why, when finish_reason is "constraint_limit" or "error"
    usage: Usage = field(default=Usage(), compare=False)  # how many tokens there were
    alternatives: tuple[GenerationOutput, ...] = ()  # the other outputs, when several were asked for
    score: SearchScore | None = None  # of an output of `beam_search` or `particles`
    choice: ConstraintChoice = field(default=FREE, repr=False, compare=False)  # how the text is read
    constraint: Constraint | None = field(default=None, repr=False, compare=False)  # compiled

    @property
    def is_complete(self) -> bool:
        """Whether the text satisfies its constraint. Free text is complete wherever it ends, except after a failure."""
        is_cut_text = self.finish_reason == "length" and self.choice.source is None
        return self.finish_reason == "stop" or is_cut_text

    @cached_property
    def parsed(self) -> Any:
        """An instance for a type, parsed JSON for a raw schema, the text otherwise.

        Raises:
            GenerationIncomplete: generation ended before the text satisfied its constraint.
            ValidationFailed: a validator of the type rejected it.
        """
        if not self.is_complete:
            raise GenerationIncomplete(self)
        try:
            return self.choice.read(self.text)
        except (ValueError, TypeError, OSError) as error:  # of Pydantic itself: a length of what has none, a path looked for
            raise ValidationFailed(self, _one_line(error)) from error

    @cached_property
    def fields(self) -> Fields:
        """What the constraint did to each value: `output.fields["days_open"].kept_mass` (see `field_details.py`).

        Of an output that ended early, the values that were complete.

        Raises UsageError without `SamplingParams(field_details=True)`, with which the model is asked for all tokens.
        """
        if self.records is None:
            raise UsageError("output.fields needs sampling=SamplingParams(field_details=True)")
        assert self.constraint is not None  # without one, requests are refused that ask for details
        reader = FieldReader(self.constraint, self.constraint.vocabulary, self.begun)
        return fields_of(self.records, reader, is_complete=self.is_complete)

    @cached_property
    def captures(self) -> dict[str, str | list[str]]:
        """The texts that rules with `capture` in a Lark or EBNF grammar have read, by name; other constraints have
        none.

        A name has the text that ended last, a list (`__LIST_APPEND:`) all of them.
        `maskwright.constraints.capturing.capture(output.constraint, output.token_ids)` says where they stand.

        Raises GenerationIncomplete: generation ended before the text satisfied its constraint.
        """
        if not may_have_captures(getattr(self.constraint, "source", None)):
            return {}
        if not self.is_complete:
            raise GenerationIncomplete(self)
        assert self.constraint is not None
        is_healed = isinstance(self.constraint, HealedConstraint)  # then the tokens begin with a part of the prompt
        return captures_by_name(captures(self.constraint, self.text if is_healed else self.token_ids))


class GenerationIncomplete(OutputError):
    """Generation ended before the output was complete. `output` holds the text so far and why it ended."""

    def __init__(self, output: GenerationOutput) -> None:
        super().__init__(
            f'generation ended with finish_reason "{output.finish_reason}" after {len(output.token_ids)} tokens, '
            "before the output was complete"
        )
        self.output = output


class ValidationFailed(OutputError):
    """A validator of the type rejected an output that satisfies its schema. `output` holds the raw text."""

    def __init__(self, output: GenerationOutput, reason: str) -> None:
        super().__init__(f"the output satisfies the schema, but validation rejected it: {reason}")
        self.output = output
        self.reason = reason


def _one_line(error: Exception) -> str:
    """A validator's complaint without Pydantic's links."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    details = error.errors(include_url=False)
    return "; ".join(f"{'.'.join(map(str, detail['loc'])) or 'value'}: {detail['msg']}" for detail in details)
