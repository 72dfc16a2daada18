"""Stopping criteria of one's own: what ends an output behind a token, beside stop strings and tokens."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..foundation.errors import UsageError
from ..foundation.registry import Registry, Saveable
from .logits_stages.context import StageRequest

EndsAfter: TypeAlias = Callable[[int], bool]  # is given each token of an output, in order; True ends it behind this one


class StoppingCriterion(Saveable, ABC):
    """Decides behind each token of an output whether it ends there.

    What it says follows from the tokens: in a fork, and where a session is resumed, `begin` is called again, and what it gives
    reads the tokens that there are already. Any object with `begin` will do; the class adds `parameters`, by which it can be saved.
    """

    @abstractmethod
    def begin(self, request: StageRequest) -> EndsAfter:
        """A function that follows one output of this request from its beginning."""


STOPPING: Registry[Callable[..., Any]] = Registry(
    "stopping criterion", needs="a class, or a function, that makes a criterion of keyword arguments"
)


class FunctionCriterion(StoppingCriterion):
    """`function(output_token_ids)` says whether the output ends behind them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", None) or type(function).__name__

    def begin(self, request: StageRequest) -> EndsAfter:
        token_ids: list[int] = []

        def ends_after(token_id: int) -> bool:
            token_ids.append(token_id)
            return bool(self.function(list(token_ids)))

        return ends_after

    def parameters(self) -> dict[str, Any]:
        raise UsageError("it is a function; a class of its own, which is registered, can be saved")


class TransformersCriterion(FunctionCriterion):
    """A criterion of transformers: `criterion(input_ids [1, tokens], scores)` gives [1] bool. There are no scores for it: None."""

    def begin(self, request: StageRequest) -> EndsAfter:
        import torch

        token_ids = list(request.prompt_token_ids)

        def ends_after(token_id: int) -> bool:
            token_ids.append(token_id)
            told = self.function(torch.tensor([token_ids]), None)
            return bool(torch.as_tensor(told).all())

        return ends_after


def criteria_of(option: str, given: object) -> tuple[StoppingCriterion, ...]:
    """What a user gave as criteria: objects with `begin`, registered names, functions, and transformers' criteria.

    Raises UsageError for anything else.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{option} is a list of criteria, or of their registered names, not {given!r:.80}")
    return tuple(_criterion_of(option, each) for each in given)


def _criterion_of(option: str, given: Any) -> StoppingCriterion:
    if isinstance(given, str):
        return _criterion_of(option, STOPPING.made(given, option))
    if isinstance(given, type):
        raise UsageError(f"{option}: {given.__name__} is a class; give one of its objects, {given.__name__}(...)")
    if callable(getattr(given, "begin", None)):
        criterion: StoppingCriterion = given
        return criterion
    if not callable(given):
        raise UsageError(f"{option}: {given!r:.80} has no method `begin`, and is no function of the output's token ids")
    try:
        names = [each.name for each in inspect.signature(given).parameters.values()]
    except (TypeError, ValueError):
        names = []
    return TransformersCriterion(given) if names[:2] == ["input_ids", "scores"] else FunctionCriterion(given)
