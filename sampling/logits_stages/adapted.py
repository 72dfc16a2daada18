"""What is written for other engines, as stages: transformers' logits processors, and vLLM's callables.

Both are called for each row by itself, prompts of one length together, since they know nothing of padding.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from ...foundation.errors import UsageError
from .context import StageContext
from .stage import LOGITS_STAGES, LogitsStage

# Of transformers: they count their calls, so that a draw that is repeated would be another one.
COUNTING = {
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": "guidance of one's own is in examples/guidance.py",
    "SynthIDTextWatermarkLogitsProcessor": "a watermark of one's own is in examples/watermark.py",
}
TRANSFORMERS_ARGUMENTS = ("input_ids", "scores")


class TransformersStage(LogitsStage):
    """A logits processor of transformers: `processor(input_ids [rows, tokens], scores [rows, V])` gives scores [rows, V]."""

    def __init__(self, processor: Callable[[Tensor, Tensor], Tensor]) -> None:
        for cls in type(processor).__mro__:
            if cls.__name__ in COUNTING:
                raise UsageError(
                    f"logits_processors: {cls.__name__} counts its calls, and a draw may be repeated; {COUNTING[cls.__name__]}"
                )
        self.processor, self.name = processor, _called(processor)

    def apply(self, logits: Tensor, context: StageContext) -> Tensor:
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for place, row in enumerate(context.rows):
            by_length[row.num_tokens].append(place)
        for places in by_length.values():
            input_ids = torch.tensor([context.rows[place].token_ids for place in places], device=logits.device)
            logits[places] = self.processor(input_ids, logits[places])
        return logits

    def parameters(self) -> dict[str, Any]:
        raise UsageError("it is one of transformers, which does not tell of what it was made")


class CallableStage(LogitsStage):
    """A function as vLLM takes it: `f(output_token_ids, logits [V])` or `f(prompt_token_ids, output_token_ids, logits [V])`."""

    def __init__(self, function: Callable[..., Tensor], *, wants_prompt: bool) -> None:
        self.function, self.wants_prompt, self.name = function, wants_prompt, _called(function)

    def apply(self, logits: Tensor, context: StageContext) -> Tensor:
        return torch.stack([self._row(row, logits[place]) for place, row in enumerate(context.rows)])

    def _row(self, row: Any, logits: Tensor) -> Tensor:
        texts = [list(row.prompt_token_ids)] if self.wants_prompt else []
        return self.function(*texts, row.output_token_ids, logits)

    def parameters(self) -> dict[str, Any]:
        raise UsageError("it is a function; a class of its own, which is registered, can be saved")


def stages_of(option: str, given: object) -> tuple[LogitsStage, ...]:
    """What a user gave as stages: objects with `setup` and `apply`, registered names, transformers' processors and functions.

    Raises UsageError for anything else.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{option} is a list of stages, or of their registered names, not {given!r:.80}")
    return tuple(_stage_of(option, each) for each in given)


def _stage_of(option: str, given: Any) -> LogitsStage:
    if isinstance(given, str):
        return _stage_of(option, LOGITS_STAGES.made(given, option))
    if isinstance(given, type):
        raise UsageError(f"{option}: {given.__name__} is a class; give one of its objects, {given.__name__}(...)")
    if callable(getattr(given, "update_state", None)):
        raise UsageError(
            f"{option}: {type(given).__name__} follows vLLM's batch by `update_state`, which there is not here; "
            "give it `setup(request)` and `apply(logits, context)`"
        )
    if callable(getattr(given, "apply", None)) and callable(getattr(given, "setup", None)):
        stage: LogitsStage = given
        return stage
    if not callable(given):
        raise UsageError(f"{option}: {given!r:.80} has no methods `setup` and `apply`, and is no function of tokens and logits")
    return _adapted(option, given)


def _adapted(option: str, function: Callable[..., Any]) -> LogitsStage:
    names = _positional(option, function)
    is_of_transformers = any(cls.__module__.startswith("transformers.") for cls in type(function).__mro__)
    if is_of_transformers or tuple(names[:2]) == TRANSFORMERS_ARGUMENTS:
        return TransformersStage(function)
    if len(names) not in (2, 3):
        raise UsageError(
            f"{option}: {_called(function)} takes ({', '.join(names)}); a function takes (output_token_ids, logits), "
            "(prompt_token_ids, output_token_ids, logits), or as transformers' (input_ids, scores)"
        )
    return CallableStage(function, wants_prompt=len(names) == 3)


def _positional(option: str, function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise UsageError(f"{option}: {function!r:.80} does not say what arguments it takes; write a function around it") from None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty]


def _called(function: object) -> str:
    return getattr(function, "__name__", None) or type(function).__name__
