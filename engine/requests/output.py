"""What the engine gives back: events while a request runs, and one output when it ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from ...sampling import TokenLogprob
from .loops import Loop

TINY = 1e-300  # a mass of 0 is one too small for a float
FinishReason = Literal["stop", "length", "cancelled", "constraint_limit", "error"]


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One generated token and how free its choice was."""

    token_id: int
    logprob: float | None  # of the model itself, before mask, bias and temperature; None when not sampled, or not asked for
    kept_mass: float | None  # probability the model gave to the allowed tokens; None likewise
    num_allowed: int  # tokens the constraint allowed, end-of-text tokens included
    top: tuple[TokenLogprob, ...] = ()  # the model's most probable tokens, as many as were asked for
    share: float | None = None  # with which probability it was drawn, where mirostat goes on from that; None without a choice

    @property
    def is_only_choice(self) -> bool:
        """The constraint allowed no other token."""
        return self.num_allowed == 1


@dataclass(frozen=True, slots=True)
class PromptScore:
    """What the model thinks of one token of a prompt, behind those before it."""

    token_id: int
    logprob: float
    rank: int  # 1: no token is more probable
    top: tuple[TokenLogprob, ...] = ()  # the most probable tokens, as many as were asked for


@dataclass(frozen=True, slots=True)
class SearchScore:
    """By what a search compares this output with the others."""

    score: float  # beam search: log-probability over length to the power of length_penalty; particles: the weight
    logprob: float  # of all its tokens, and of its end where the model was asked for it, as the model gives it
    weight: float | None = None  # of a particle, of 1 for all together
    log_evidence: float | None = None  # of all particles: estimated log-probability that the model alone satisfies the constraint


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """How a request ended.

    finish_reason: "stop" (end-of-text, a stop string or token, or the constraint is complete), "length" (max_tokens or
    the model's length), "cancelled", "constraint_limit" (a named limit of the constraint was reached: see `error`), or
    "error" (a failure of this request alone: see `error`).
    """

    request_id: int
    num_prompt_tokens: int
    token_ids: tuple[int, ...]  # without the end-of-text or stop token
    text: str  # the bytes of the tokens as UTF-8, U+FFFD where they are not; cut before a stop string
    finish_reason: FinishReason
    closed_by_budget: bool  # near the limit, tokens were masked that could not have been completed in time
    bans_overridden: bool  # some step's bans covered every token that the constraint allowed, and were ignored there
    records: tuple[TokenRecord, ...]  # one per token id
    wants_logprobs: bool = False
    is_measured: bool = True  # records have what the model thought of the tokens that were sampled
    error: str | None = None
    num_cached_tokens: int = 0  # prompt tokens that did not have to be computed
    num_jumped_tokens: int = 0  # tokens of forced text that were taken without asking the model
    num_drafted_tokens: int = 0  # tokens that were proposed ahead, and those of them that the model chose itself
    num_accepted_tokens: int = 0
    stop_string: str | None = None  # that ended the output
    loops: tuple[Loop, ...] = ()  # in which the model repeated itself, and which were ended (`steering.py`)
    is_cut: bool = False  # max_tokens ended an output that its constraint would have let go on
    scheduled_at: float | None = field(default=None, compare=False)  # time.perf_counter() when a step first computed tokens of it
    score: SearchScore | None = None  # of an output that was searched for
    alternatives: tuple[RequestOutput, ...] = ()  # the search's other outputs, the next best first
    adapter: str | None = None  # fingerprint of the adapter that it was made with

    @property
    def mean_logprob(self) -> float:
        """Log-probability per token of this output among those that satisfy the constraint; forced tokens have probability 1.

        NaN where it was not asked for.
        """
        if not self.is_measured:
            return math.nan
        free = [(record.logprob, record.kept_mass or 0.0) for record in self.records if record.logprob is not None]
        total = sum(logprob - math.log(max(kept_mass, TINY)) for logprob, kept_mass in free)
        return total / max(len(self.records), 1)

    @property
    def logprobs(self) -> tuple[TokenRecord, ...] | None:
        """The records when log-probabilities were asked for, else None."""
        return self.records if self.wants_logprobs else None


@dataclass(frozen=True, slots=True)
class Event:
    """News about one request. Deltas of all its events concatenate to the final `output.text` and `output.token_ids`."""

    request_id: int
    tokens: tuple[TokenRecord, ...]
    text: str  # whole characters only; may lag behind the tokens
    output: RequestOutput | None = None  # given with the last event
    prompt_scores: tuple[PromptScore, ...] | None = None  # of the prompt's tokens behind its first; with the first event

    @property
    def is_final(self) -> bool:
        return self.output is not None
