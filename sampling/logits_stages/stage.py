"""A stage of one's own, and how one is set up for a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import Tensor

from ...foundation.errors import UsageError
from ...foundation.registry import Registry, Saveable
from .context import StageContext, StageRequest


class _Skipped:
    def __repr__(self) -> str:
        return "SKIPPED"


SKIPPED: Final = _Skipped()  # from `setup`: the stage takes no part in this request


class LogitsStage(Saveable, ABC):
    """Changes logits before anything else of sampling does: the mask, bans, bias, penalties, temperature and filters come after it.

    A stage is a function of the text. What `apply` gives for a row follows from what `setup` gave for its request and from its
    tokens, never from how often it was called or for whom else: a draw may be repeated, guessed ahead, or made again after a
    preemption or in another process. What it keeps for speed, it finds by the tokens.

    Any object with these two methods will do. The class adds a third, which gives the keyword arguments of which a saved request
    makes the stage again: the fields of a dataclass.
    """

    def setup(self, request: StageRequest) -> Any:
        """What the stage wants to know again of this request at every draw, or SKIPPED. Called once, when it is admitted.

        What it raises refuses the request.
        """
        return None

    @abstractmethod
    def apply(self, logits: Tensor, context: StageContext) -> Tensor:
        """New logits [rows, V] for logits [rows, V] float32, on the same device, for all rows of the batch that have this stage.

        `context` knows the rows: tokens, states, masks. `logits` may be changed in place. -inf bans a token; where that leaves a
        row nothing of what its mask allows, the model's logits hold (`bans_overridden`). What is written where the mask bans is
        never read. NaN elsewhere, another shape, or an exception end the request whose row it is, with a `StageFailure`, and no
        other.
        """


@dataclass(slots=True)
class RowStages:
    """The stages of one request, in their order, each with what its `setup` gave."""

    request: StageRequest
    stages: tuple[tuple[LogitsStage, Any], ...]
    failure: str = ""  # of the draw under way: how the stage that ends the request failed, where it raised

    def copy(self) -> RowStages:
        return RowStages(self.request, self.stages)


LOGITS_STAGES: Registry[Callable[..., Any]] = Registry(
    "logits processor", needs="a class, or a function, that makes a stage of keyword arguments"
)


def set_up(stages: Sequence[LogitsStage], request: StageRequest) -> RowStages | None:
    """The stages that take part in a request; None where none does. Raises UsageError naming the one whose `setup` raises."""
    taking_part = []
    for stage in stages:
        try:
            state = stage.setup(request)
        except Exception as error:
            name = LOGITS_STAGES.called(stage)
            raise UsageError(f'logits processor "{name}" refuses it: {type(error).__name__}: {error}') from error
        if state is not SKIPPED:
            taking_part.append((stage, state))
    return RowStages(request, tuple(taking_part)) if taking_part else None
