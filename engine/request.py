"""What a caller asks for. Progress lives in `sequence.Sequence`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..constraints.vocabulary import Vocabulary
from ..sampling import SamplingParams
from .errors import RequestError

State = Hashable  # of a constraint: opaque, comparable within it


class Constraint(Protocol):
    """What the engine needs of a compiled constraint; `maskwright.constraints` documents the semantics.

    Any method may raise `ConstraintLimit`; it ends the request it was called for.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    def start(self) -> Any: ...

    def mask(self, state: Any, budget: int | None = None) -> NDArray[np.uint32]: ...

    def fill_masks(self, states: Sequence[Any], out: NDArray[np.uint32]) -> Any: ...

    def advance(self, state: Any, token_id: int) -> Any | None: ...

    def is_accepting(self, state: Any) -> bool: ...

    def min_tokens(self, state: Any) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt, how to sample from it, and what the output must satisfy. Raises RequestError for contradictions."""

    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt_token_ids", tuple(self.prompt_token_ids))
        if not self.prompt_token_ids:
            raise RequestError("the prompt has no tokens; give at least one (most models start with a BOS token)")
        if self.constraint is not None:
            _refuse_contradictions(self.sampling)


def _refuse_contradictions(sampling: SamplingParams) -> None:
    """Options that would end or prolong the output against the constraint."""
    given = {"stop": sampling.stop, "ignore_eos": sampling.ignore_eos, "min_tokens": sampling.min_tokens}
    for name, value in given.items():
        if value:
            raise RequestError(
                f"{name}={value!r} contradicts a constraint, which alone decides where the output ends; remove one of them"
            )
