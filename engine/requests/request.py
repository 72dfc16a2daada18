"""What a caller asks for. Progress lives in `sequence.Sequence`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...constraints.vocabulary.vocabulary import Vocabulary
from ...sampling import SamplingParams
from ..errors import RequestError

State = Hashable  # of a constraint: opaque, comparable within it
Rank = tuple[float, ...]  # of a request: the smaller one is served first (`policy.py` makes them)


class Constraint(Protocol):
    """What the engine needs of a compiled constraint; `maskwright.constraints` documents the semantics.

    Any method may raise `ConstraintLimit`; it ends the request it was called for.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    def start(self) -> Any: ...

    def mask(self, state: Any, budget: int | None = None) -> NDArray[np.uint32]: ...

    def advance(self, state: Any, token_id: int) -> Any | None: ...

    def advance_bytes(self, state: Any, data: bytes) -> Any | None: ...

    def forced(self, state: Any) -> bytes: ...

    def is_accepting(self, state: Any) -> bool: ...

    def min_tokens(self, state: Any) -> int: ...


class Ending(Protocol):
    """Decides after each token of one output whether it ends there, for reasons that the engine knows nothing of."""

    def ends_after(self, token_id: int) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt, how to sample from it, and what the output must satisfy. Raises RequestError for contradictions."""

    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    constraint: Constraint | None = None
    priority: int = 0  # smaller is more urgent, for an engine with that policy
    adapter: str | None = None  # the name of a loaded adapter that it runs with
    user: str = ""  # who shares the engine with others, for an engine with the policy "fair"
    num_shared_tokens: int = 0  # leading tokens that other prompts will begin with too: their blocks are evicted last
    cache_salt: str = ""  # keys and values are shared with requests of the same salt alone
    begun: bytes = b""  # of the output: what the prompt ends with already, behind which the constraint goes on
    healed: bytes = b""  # what the output writes anew of the prompt before its text begins: it is no part of the text
    num_prompt_logprobs: int | None = None  # the prompt's tokens are scored, with so many most probable ones; None: they are not
    is_measured: bool = False  # what the model thinks of each token is told, as where `sampling` asks for it
    ending: Callable[[], Ending] | None = None  # makes what may end the output early, even before its constraint is satisfied

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt_token_ids", tuple(self.prompt_token_ids))
        if self.sampling.num_copies > 1:
            raise RequestError(
                f"a request is one output, but sampling asks for {self.sampling.num_copies}; make one for each of sampling.copies()"
            )
        if not 0 <= self.num_shared_tokens <= len(self.prompt_token_ids):
            raise RequestError(f"num_shared_tokens must be between 0 and the prompt's length, got {self.num_shared_tokens}")
        if not self.prompt_token_ids:
            raise RequestError("the prompt has no tokens; give at least one (most models start with a BOS token)").about("prompt")
        if self.constraint is not None:
            _refuse_contradictions(self.sampling)
        elif self.sampling.loop_bound:
            raise RequestError(
                f"loop_bound={self.sampling.loop_bound} brings values to the end that their constraint has, and there is no "
                "constraint; penalties and stop strings are for free text"
            ).about("loop_bound")
        elif self.sampling.canonical:
            raise RequestError(
                "canonical narrows what a constraint leaves, and there is no constraint; without one a model spells as it likes"
            ).about("canonical")
        elif self.sampling.heal_prompt:
            raise RequestError(
                "heal_prompt lets a constraint's text begin within the last token of the prompt, and there is no constraint"
            ).about("heal_prompt")
        elif self.sampling.field_details:
            raise RequestError(
                "field_details tells what masks did to each value, and there is no constraint; logprobs are for free text"
            ).about("field_details")

    @property
    def tells_probabilities(self) -> bool:
        """Whether log-probabilities of tokens and what masks kept are told. Who does not ask need not compute all logits."""
        return self.is_measured or self.sampling.logprobs is not None or self.sampling.field_details


def cache_key(adapter: str | None, salt: str) -> str | None:
    """What keys and values depend on beside tokens: the fingerprint of an adapter, which has no NUL, and a salt."""
    return f"{adapter or ''}\0{salt}" if salt else adapter


def _refuse_contradictions(sampling: SamplingParams) -> None:
    """Options that would end or prolong the output against the constraint."""
    given = {"stop": sampling.stop, "ignore_eos": sampling.ignore_eos, "stopping_criteria": sampling.stopping_criteria}
    for name, value in given.items():
        if value:
            raise RequestError(
                f"{name}={value!r} contradicts a constraint, which alone decides where the output ends; remove one of them"
            ).about(name)
