"""Beam search: of all continuations of the beams by one token the best go on.

As transformers' `generate(num_beams=width)` does it, token for token, without a constraint; under one, over its outputs alone. In
each round the 2 x width best continuations are looked at (more with several end-of-text tokens). Those among the first `width` that
end are finished: an output's score is the log-probability of its tokens and of its end, divided by their number to the power of
`length_penalty`. The best `width` of the others are the next beams. Ties go to the better beam, then to the smaller token id.

Scores are sums of the model's log-probabilities as it gives them, not renormalised over what the constraint allows: of two outputs
the one that the model finds more probable wins, however it was forced there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

from ...kernels.sampler.reference import rank_keys
from ..errors import RequestError
from ..requests.output import SearchScore, TokenRecord
from ..requests.sequence import Sequence
from .search_group import SearchGroup, Seen, Surroundings

UNDERSTOOD = (
    "temperature", "max_tokens", "min_tokens", "logit_bias", "banned_token_ids", "stop_token_ids", "ignore_eos", "seed",
    "allowed_token_ids", "bad_words_ids", "no_repeat_ngram_size", "canonical", "heal_prompt",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamSearch:
    """Raises RequestError for values that mean nothing."""

    width: int = 4  # beams
    num_wanted: int = 1  # outputs, the best ones; at most `width`
    length_penalty: float = 1.0  # > 0 favours long outputs, < 0 short ones, 0 takes the sum as it is
    early_stopping: bool | Literal["never"] = False  # True: when `width` outputs are finished; "never": when none can get better

    def __post_init__(self) -> None:
        if type(self.width) is not int or self.width < 1:
            raise RequestError(f"width must be an integer of at least 1, got {self.width!r}")
        if type(self.num_wanted) is not int or not 1 <= self.num_wanted <= self.width:
            raise RequestError(f"n must be an integer from 1 to width ({self.width}), got {self.num_wanted!r}")
        penalty = self.length_penalty
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not abs(penalty) <= 100:
            raise RequestError(f"length_penalty must be a number from -100 to 100, got {penalty!r}")
        if self.early_stopping not in (True, False, "never"):
            raise RequestError(f'early_stopping must be True, False or "never", got {self.early_stopping!r}')


class Continuation(NamedTuple):
    """One beam and the token that would continue it."""

    total: float  # log-probability of the output up to and with `token_id`
    beam: int
    token_id: int
    logprob: float


class Beams(SearchGroup):
    """A running beam search, whose members are the beams."""

    def __init__(self, facade: Sequence, options: BeamSearch, around: Surroundings) -> None:
        super().__init__(facade, around)
        self.options = options
        self._totals: dict[Sequence, float] = {}  # log-probability of each member's output
        self._finished: list[tuple[float, float, Sequence]] = []  # (score, log-probability, output), best first
        guide, sampling = facade.guide, facade.sampling
        num_ends = len(sampling.eos_token_ids | sampling.stop_token_ids if guide is None else guide.end_ids)
        self._num_looked_at = max(2, 1 + num_ends) * options.width
        self.begin(1)
        self._totals = {self.members[0]: 0.0}

    def advance(self, seen: Mapping[Sequence, Seen]) -> None:
        beams = list(self.members)
        best = self._best(beams, seen)
        going_on: list[Continuation] = []
        for place, each in enumerate(best):
            if self._ends(beams[each.beam], each.token_id):
                if place < self.options.width:
                    self._finish(beams[each.beam], each, seen)
            elif len(going_on) < self.options.width:
                going_on.append(each)
        if going_on and self._may_improve(going_on[0].total, len(beams[0].records) + 1):
            self._go_on(beams, going_on, seen)
        else:
            for member in beams:
                self.drop(member)

    def results(self) -> list[Sequence]:
        wanted = self._finished[: self.options.num_wanted]
        return [self.named(sequence, SearchScore(score, total)) for score, total, sequence in wanted]

    def _best(self, beams: list[Sequence], seen: Mapping[Sequence, Seen]) -> list[Continuation]:
        """The best continuations of all beams, best first."""
        found = []
        for number, beam in enumerate(beams):
            each = seen[beam]
            count = min(self._num_looked_at, each.num_allowed)
            top = torch.topk(rank_keys(each.score[None]), count).indices[0]
            for token_id, score in zip(top.tolist(), each.score[top].tolist(), strict=True):
                logprob = score - each.log_total
                found.append(Continuation(self._totals[beam] + logprob, number, token_id, logprob))
        return sorted(found, key=lambda c: (-c.total, c.beam, c.token_id))[: self._num_looked_at]

    def _ends(self, beam: Sequence, token_id: int) -> bool:
        """By this token, or because it is the last one there is room for."""
        return beam.ends_with(token_id) or len(beam.records) + 1 == beam.max_tokens

    def _finish(self, beam: Sequence, last: Continuation, seen: Mapping[Sequence, Seen]) -> None:
        output = self.fork_apart(beam)
        output.accept(_record(last, seen[beam]))
        score = last.total / (len(beam.records) + 1) ** self.options.length_penalty
        self._finished.append((score, last.total, output))
        self._finished.sort(key=lambda entry: -entry[0])  # stable: of equals the first to be finished stays first
        del self._finished[self.options.width :]

    def _may_improve(self, best_total: float, length: int) -> bool:
        """Some beam could still be finished with a score that counts, as far as its length lets one guess."""
        if len(self._finished) < self.options.width:
            return True
        if self.options.early_stopping is True:
            return False
        if self.options.early_stopping == "never" and self.options.length_penalty > 0:
            length = self.facade.max_tokens
        return best_total / length**self.options.length_penalty > self._finished[-1][0]

    def _go_on(self, beams: list[Sequence], chosen: list[Continuation], seen: Mapping[Sequence, Seen]) -> None:
        used = {each.beam for each in chosen}
        for number, beam in enumerate(beams):
            if number not in used:
                self.drop(beam)
        free = dict(enumerate(beams))  # who goes on itself; further continuations are forks
        extended = []
        for each in chosen:
            taken = free.pop(each.beam, None)
            extended.append(taken if taken is not None else self.fork_running(beams[each.beam]))
        for member, each in zip(extended, chosen, strict=True):
            member.accept(_record(each, seen[beams[each.beam]]))
        self.members = extended
        self._totals = {member: each.total for member, each in zip(extended, chosen, strict=True)}


def _record(chosen: Continuation, seen: Seen) -> TokenRecord:
    return TokenRecord(chosen.token_id, chosen.logprob, seen.kept_mass, seen.num_allowed)
