"""A snapshot of one request between two steps: all that it needs to go on, but for model, tokenizer and constraint themselves.

What follows from the tokens is not in it: they are replayed, through the constraint, the penalties' counts, the stop strings and
the text. So a snapshot can tell nothing about those that its tokens do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...sampling import SamplingParams
from ..kv_cache.kept_blocks import BlockContent, KeptLayout
from ..requests.output import FinishReason, RequestOutput, TokenRecord
from ..requests.request import Request
from ..requests.sequence import Sequence

NOTHING = BlockContent(())


@dataclass(frozen=True, slots=True)
class Belonging:
    """Fingerprints of what a session belongs to."""

    model: str
    tokenizer: str
    constraint: str | None = None
    adapter: str | None = None
    logits_processors: tuple[str, ...] = ()  # of the engine, each as its name with its parameters
    stopping_criteria: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptCache:
    """Keys and values of the first `num_tokens` tokens, or the state after them."""

    num_tokens: int
    content: BlockContent
    layout: KeptLayout
    draft_model: str | None = None  # fingerprint
    draft_layout: KeptLayout | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What of a request's progress its tokens do not tell."""

    num_cached: int | None = None
    num_jumped: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    num_refused: int = 0  # draws for the next token that the budget refused
    is_tight: bool = False  # the next mask is one with the budget
    closed_by_budget: bool = False
    bans_overridden: bool = False
    finish_reason: FinishReason | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A request between two steps, as a value."""

    belongs_to: Belonging
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams  # with the seed that is in use, and max_tokens as cut to the model's length
    records: tuple[TokenRecord, ...]  # one per output token
    progress: Progress
    priority: int = 0
    user: str = ""
    num_shared_tokens: int = 0
    cache_salt: str = ""
    label: str = ""  # whatever the owner wants to find again: the prompt as it was given
    cache: KeptCache | None = None  # None: computed again from the tokens

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and output."""
        return (*self.prompt_token_ids, *(record.token_id for record in self.records))

    @property
    def is_ended(self) -> bool:
        return self.progress.finish_reason is not None


def snapshot_of(sequence: Sequence, belongs_to: Belonging, cache: KeptCache | None) -> Snapshot:
    """The snapshot of a sequence between two steps."""
    request, guide, sampling = sequence.request, sequence.guide, sequence.sampling
    return Snapshot(
        belongs_to=belongs_to,
        prompt_token_ids=request.prompt_token_ids,
        sampling=settled(request.sampling, sampling.seed, sequence.max_tokens),
        records=tuple(sequence.records),
        progress=Progress(
            num_cached=sequence.num_cached,
            num_jumped=sequence.num_jumped,
            num_drafted=sequence.num_drafted,
            num_accepted=sequence.num_accepted,
            num_refused=sampling.num_refused,
            is_tight=guide is not None and guide.is_tight,
            closed_by_budget=guide is not None and guide.closed_by_budget,
            bans_overridden=sequence.bans_overridden,
        ),
        priority=request.priority,
        user=request.user,
        num_shared_tokens=request.num_shared_tokens,
        cache_salt=request.cache_salt,
        cache=cache,
    )


def snapshot_of_ended(
    request: Request, output: RequestOutput, belongs_to: Belonging, cache: KeptCache | None
) -> Snapshot:
    """The snapshot of a request that has ended: a conversation, to be continued later."""
    return Snapshot(
        belongs_to=belongs_to,
        prompt_token_ids=request.prompt_token_ids,
        sampling=settled(request.sampling, request.sampling.seed or 0, max(request.sampling.max_tokens, 1)),
        records=output.records,
        progress=Progress(
            num_cached=output.num_cached_tokens,
            num_jumped=output.num_jumped_tokens,
            num_drafted=output.num_drafted_tokens,
            num_accepted=output.num_accepted_tokens,
            closed_by_budget=output.closed_by_budget,
            bans_overridden=output.bans_overridden,
            finish_reason=output.finish_reason,
            error=output.error,
        ),
        priority=request.priority,
        user=request.user,
        num_shared_tokens=request.num_shared_tokens,
        cache_salt=request.cache_salt,
        cache=cache,
    )


def settled(sampling: SamplingParams, seed: int, max_tokens: int) -> SamplingParams:
    """`sampling` with seed and max_tokens as they were decided when the request was admitted."""
    return replace(sampling, seed=seed, max_tokens=max_tokens, min_tokens=min(sampling.min_tokens, max_tokens))
