"""The progress of one request: its tokens, what they mean so far, and how it ends."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from ...kernels.lora import NO_ADAPTER
from ...sampling import SequenceSampling, StopMatcher
from ...sampling.logits_stages import RowStages
from ..adapters.loaded import LoadedAdapter
from .detokenizer import Detokenizer
from .guide import Guide
from .ngrams import Ngrams
from .output import Event, FinishReason, PromptScore, RequestOutput, SearchScore, TokenRecord
from .request import Ending, Rank, Request, cache_key


class SequenceGroup(Protocol):
    """Sequences of one request, which a search chooses among (`search_group.py`): what the rest of the engine asks of them."""

    facade: Sequence  # the request as it is known outside
    members: list[Sequence]
    is_ended: bool

    def observe(self, members: list[Sequence], logits: Tensor) -> None:
        """Take the logits [members, head width] of some members' next tokens."""

    def begin_anew(self) -> list[Sequence]:
        """The members, all of which are to be computed once more."""

    def results(self) -> list[Sequence]:
        """The outputs, best first, when `is_ended`."""

    def close(self) -> None:
        """End all members and give back what they hold."""


@dataclass(slots=True, eq=False, kw_only=True, weakref_slot=True)
class Sequence:
    """One request under way. Its tokens are `token_ids`, prompt and output, and `num_expected` that the host has not read yet."""

    request_id: int
    request: Request
    max_tokens: int  # that may be generated: what was asked for, cut to what the model's length leaves
    min_tokens: int = 0  # that are generated at least, as far as is known when the request is admitted
    sampling: SequenceSampling
    detokenizer: Detokenizer
    stop_matcher: StopMatcher | None = None
    guide: Guide | None = None
    make_ending: Callable[[], Ending] | None = None  # of what may end the output early
    ending: Ending | None = None
    stages: RowStages | None = None  # of its own, beside those of sampling
    adapter: LoadedAdapter | None = None
    scheduled_at: float | None = None  # seconds of the clock of steps, when it was computed first

    token_ids: list[int] = field(default_factory=list)  # prompt, then output
    rank: Rank = (0.0,)  # who goes first
    num_expected: int = 0  # tokens drawn behind `token_ids` that the host has not read yet: 0 or 1
    num_computed: int = 0  # tokens whose keys and values are in the cache; the scheduler resets it on preemption
    num_cached: int | None = None  # prompt tokens that were in the cache when the sequence was admitted first
    block_table: list[int] = field(default_factory=list)  # filled by the scheduler
    records: list[TokenRecord] = field(default_factory=list)  # one per output token
    text: str = ""
    bans_overridden: bool = False
    is_cut: bool = False
    finish_reason: FinishReason | None = None
    error: str | None = None
    num_drafted: int = 0  # tokens that were proposed, and those of them that the model then chose itself
    num_accepted: int = 0
    ngrams: Ngrams | None = None  # of a drafter that looks its guesses up
    num_jumped: int = 0  # tokens of forced text, neither sampled nor waited for
    search_group: SequenceGroup | None = None  # of a search, which decides what comes next
    score: SearchScore | None = None
    alternatives: tuple[RequestOutput, ...] = ()
    prompt_scores: list[PromptScore] = field(default_factory=list)  # of the prompt's tokens behind its first, as far as computed
    num_reported: int = 0  # records and characters that events have told of
    num_reported_characters: int = 0

    def __post_init__(self) -> None:
        self.token_ids = list(self.request.prompt_token_ids)

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids) + self.num_expected

    @property
    def num_pinned(self) -> int:
        return self.request.num_shared_tokens

    @property
    def adapter_slot(self) -> int:
        """Where its adapter is on the device, -1 without one."""
        return NO_ADAPTER if self.adapter is None else self.adapter.slot

    @property
    def cache_key(self) -> str | None:
        """What its keys and values depend on beside its tokens: they are shared among sequences of the same key only."""
        return cache_key(self.adapter_fingerprint, self.request.cache_salt)

    @property
    def adapter_fingerprint(self) -> str | None:
        return None if self.adapter is None else self.adapter.fingerprint

    @property
    def reads_all(self) -> bool:
        """Whether some tokens of the prompt are to be scored yet."""
        return self.request.num_prompt_logprobs is not None and len(self.prompt_scores) < len(self.request.prompt_token_ids) - 1

    @property
    def num_needed(self) -> int:
        """Tokens that are still to come at least."""
        return max(self.min_tokens - len(self.records), 0)

    @property
    def num_draftable(self) -> int:
        """The most drafts that may be accepted in one step: max_tokens leaves room for them and one token more."""
        return 0 if self.search_group is not None else self.max_tokens - len(self.records) - 1

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def has_news(self) -> bool:
        return self.is_finished or self.num_reported < len(self.records)

    def ends_with(self, token_id: int) -> bool:
        """With a constraint, only its own end-of-text ids end the output; any other allowed token is its text."""
        return token_id in self.guide.end_ids if self.guide is not None else self.sampling.is_end(token_id)

    def takes(self, token_id: int) -> bool:
        """Whether this is a token of the vocabulary that does not end the output."""
        return 0 <= token_id < self.sampling.vocab_size and not self.ends_with(token_id)

    def accept(self, record: TokenRecord) -> None:
        """Take the token chosen for the next place; it may end the sequence, or be refused by the budget."""
        ends = self.sampling.end_ids if self.guide is None else self.guide.end_ids
        if record.token_id in ends:
            self.finish("stop")
        elif self.guide is not None and not self.guide.advance(record.token_id):
            self.sampling.refuse()  # it is drawn once more, under the stricter mask
        else:
            self._append(record)

    def finish(self, reason: FinishReason, error: str | None = None) -> None:
        """End here; text that was held back joins the output."""
        self.finish_reason, self.error = reason, error
        self._show(self.detokenizer.flush())
        if self.stop_matcher is not None:
            self.text += self.stop_matcher.flush()

    def fail(self, error: Exception) -> None:
        """End here because of an error, with the text as far as it was shown: its parts may be in any state."""
        self.finish_reason, self.error = "error", f"{type(error).__name__}: {error}"

    def fork(self, request_id: int, rank: Rank, seed: int | None = None) -> Sequence:
        """A sequence of its own that has come as far as this one, and from here draws with another seed if one is given."""
        child = copy.copy(self)
        child.request_id, child.rank = request_id, rank
        child.token_ids, child.records, child.block_table = list(self.token_ids), list(self.records), []
        child.prompt_scores = list(self.prompt_scores)
        child.num_computed, child.num_expected, child.num_reported, child.num_reported_characters = 0, 0, 0, 0
        child.sampling, child.stages = self.sampling.fork(seed), None if self.stages is None else self.stages.copy()
        child.detokenizer, child.stop_matcher = copy.deepcopy(self.detokenizer), copy.copy(self.stop_matcher)
        child.guide, child.ngrams = None if self.guide is None else self.guide.fork(), None
        if self.make_ending is not None:
            child.ending = self.make_ending()
            for record in child.records:
                child.ending.ends_after(record.token_id)
        return child

    def take_event(self) -> Event:
        """The event of all that happened since the last one."""
        news = tuple(self.records[self.num_reported :])
        is_first = self.num_reported == 0 and self.num_reported_characters == 0
        scores = tuple(self.prompt_scores) if is_first and self.request.num_prompt_logprobs is not None else None
        text = self.text[self.num_reported_characters :]
        self.num_reported, self.num_reported_characters = len(self.records), len(self.text)
        return Event(self.request_id, news, text, self.output() if self.is_finished else None, scores)

    def output(self) -> RequestOutput:
        assert self.finish_reason is not None, "only a finished sequence has an output"
        return RequestOutput(
            request_id=self.request_id,
            num_prompt_tokens=len(self.request.prompt_token_ids),
            num_cached_tokens=self.num_cached or 0,
            num_jumped_tokens=self.num_jumped,
            num_drafted_tokens=self.num_drafted,
            num_accepted_tokens=self.num_accepted,
            token_ids=tuple(self.token_ids[len(self.request.prompt_token_ids) :]),
            text=self.text,
            finish_reason=self.finish_reason,
            closed_by_budget=self.guide is not None and self.guide.closed_by_budget,
            loops=() if self.guide is None else self.guide.loops,
            bans_overridden=self.bans_overridden,
            records=tuple(self.records),
            wants_logprobs=self.request.sampling.logprobs is not None,
            is_measured=self.request.tells_probabilities or self.search_group is not None,
            error=self.error,
            stop_string=self.stop_matcher.matched if self.stop_matcher is not None else None,
            is_cut=self.is_cut,
            scheduled_at=self.scheduled_at,
            score=self.score,
            alternatives=self.alternatives,
            adapter=self.adapter_fingerprint,
        )

    def _append(self, record: TokenRecord) -> None:
        token_id, text = record.token_id, self.detokenizer.feed(record.token_id)
        self.token_ids.append(token_id)
        self.records.append(record)
        self.sampling.accept(token_id, record.share)
        self.text += text if self.stop_matcher is None else self.stop_matcher.feed(text)
        if (self.stop_matcher is not None or self.ending is not None) and self._is_stopped_by(token_id):
            self.finish("stop")
        elif len(self.records) == self.max_tokens:
            self._finish_at_limit()

    def _is_stopped_by(self, token_id: int) -> bool:
        if self.stop_matcher is not None and self.stop_matcher.matched is not None:
            return True
        return self.ending is not None and self.ending.ends_after(token_id)

    def _finish_at_limit(self) -> None:
        if self.guide is None:
            self.finish("length")
        else:
            self.guide.end_at_limit()
            self.is_cut = not self.guide.is_complete
            self.finish("stop")

    def _show(self, text: str) -> None:
        self.text += text if self.stop_matcher is None else self.stop_matcher.feed(text)
