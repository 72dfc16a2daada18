"""Sequences of one prompt, among which a search chooses after every token: what beam search and particles have in common.

Its members are sequences like all others, in the batch with them and sharing blocks by reference counts. A member whose next logits
are there waits for the others; once all have theirs, `advance` decides who goes on, and how often: members are forked, dropped, and
given their tokens. A member that is preempted keeps what was seen of it.

The end of an output is a token like any other, so that probabilities are those of whole outputs: nothing is taken or ended without
asking the model. At max_tokens a constraint leaves end-of-text alone. Masks are those of the budget, so no choice is refused later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.sampler.interface import UNCONSTRAINED
from ...kernels.sampler.reference import NEVER, biased, finite, log_sum_exp, unpack_masks, without_bans
from ...sampling import BatchPacker, SamplingParams
from ..errors import RequestError
from ..limits import Limits
from ..requests.guide import with_tokens
from ..requests.output import SearchScore
from ..requests.request import Request
from ..requests.sequence import Sequence


class Surroundings(NamedTuple):
    """What a search uses of its engine."""

    enter: Callable[[Sequence], None]  # a member is to be computed
    enter_fork: Callable[[Sequence, Sequence], None]  # (parent, child): a member that goes on from where another one is
    leave: Callable[[Sequence], None]
    next_id: Callable[[], int]
    vocab_size: int
    device: torch.device


class Seen(NamedTuple):
    """What the model thinks of a member's next token. Tokens that may not come have the score NEVER."""

    score: Tensor  # [V] float32: logits, with biases
    unmasked: Tensor  # [V] float32: the same without the constraint
    log_total: float  # of the logits as given
    kept_mass: float  # the model's probability of what the constraint allows
    num_allowed: int


class SearchGroup(ABC):
    """The members of one search. `facade` is the request as it is known outside; it is never computed itself."""

    def __init__(self, facade: Sequence, around: Surroundings) -> None:
        self.facade, self._around = facade, around
        self.members: list[Sequence] = []
        self.is_ended = False
        self._seen: dict[Sequence, Seen] = {}
        self._packer = BatchPacker(around.device)
        facade.search_group = self

    @abstractmethod
    def advance(self, seen: Mapping[Sequence, Seen]) -> None:
        """Decide about all members, each of which was seen; those that have ended are members no more."""

    @abstractmethod
    def results(self) -> list[Sequence]:
        """The outputs under the facade's id, best first, once there are no members left."""

    def begin(self, count: int) -> None:
        """Start with `count` members, which all continue the facade's prompt."""
        for _ in range(count):
            member = self._fork(self.facade)
            if member.guide is not None:
                member.max_tokens += 1  # behind the last one the end is still to be asked for
            self.members.append(member)
            self._around.enter(member)

    def observe(self, members: Sequence_[Sequence], logits: Tensor) -> None:
        """Take the logits [members, head width] of some members' next tokens, and decide when those of all members are there."""
        self._seen |= zip(members, self._look(members, logits), strict=True)
        if len(self._seen) == len(self.members):
            seen, self._seen = self._seen, {}
            self.advance(seen)
            self.is_ended = not self.members

    def begin_anew(self) -> list[Sequence]:
        """The members, all of which are computed and seen once more."""
        self._seen.clear()
        return self.members

    def close(self) -> None:
        """End all members and give back what they hold."""
        for member in self.members:
            member.finish("cancelled")
            self._around.leave(member)
        self.members.clear()

    # ---- for subclasses

    def fork_running(self, parent: Sequence) -> Sequence:
        """A member more, which shares its parent's blocks."""
        child = self._fork(parent)
        self._around.enter_fork(parent, child)
        self.members.append(child)
        return child

    def fork_apart(self, parent: Sequence) -> Sequence:
        """A copy that is not computed: an output in the making."""
        return self._fork(parent)

    def named(self, output: Sequence, score: SearchScore) -> Sequence:
        """An output that has ended, as it is known outside."""
        output.request_id, output.rank, output.score, output.search_group = self.facade.request_id, self.facade.rank, score, None
        return output

    def drop(self, member: Sequence) -> None:
        self.members.remove(member)
        self._around.leave(member)

    # ---- inside

    def _fork(self, parent: Sequence) -> Sequence:
        number = self._around.next_id()
        return parent.fork(number, (*self.facade.rank, number))

    def _look(self, members: Sequence_[Sequence], logits: Tensor) -> list[Seen]:
        vocab_size = self._around.vocab_size
        model = finite(logits[:, :vocab_size])
        rows = self._packer.pack([member.sampling for member in members])
        pool, index = _masks(members, model.device)
        masked_in = unpack_masks(pool, index, vocab_size)
        allowed, overridden = without_bans(masked_in, rows.bias, model)
        unbanned, _ = without_bans(None, rows.bias, model)
        scores = biased(model, rows.bias)
        unmasked = scores if unbanned is None else torch.where(unbanned, scores, NEVER)
        scores = scores if allowed is None else torch.where(allowed, scores, NEVER)
        log_total = log_sum_exp(model)
        kept = torch.ones_like(log_total)
        if masked_in is not None:
            kept = torch.exp(log_sum_exp(torch.where(masked_in, model, NEVER)) - log_total)
        counts = (scores > NEVER).sum(-1)
        for member, is_overridden in zip(members, overridden.tolist(), strict=True):
            member.bans_overridden |= is_overridden
        return [Seen(*each) for each in zip(scores, unmasked, log_total.tolist(), kept.tolist(), counts.tolist(), strict=True)]


def _masks(members: Sequence_[Sequence], device: torch.device) -> tuple[Tensor | None, Tensor | None]:
    """(int32 [constrained members, words], row of each member), by the budget; all members have the same constraint."""
    masks = [_mask(member) for member in members if member.guide is not None]
    if not masks:
        return None, None
    index = np.arange(len(masks)) if len(masks) == len(members) else np.full(len(members), UNCONSTRAINED)
    return torch.from_numpy(np.stack(masks).view(np.int32)).to(device), torch.from_numpy(index).to(device)


def _mask(member: Sequence) -> np.ndarray:
    guide = member.guide
    assert guide is not None
    mask = guide.constraint.mask(guide.state, budget=guide.num_left)
    guide.closed_by_budget |= not np.array_equal(mask, guide.constraint.mask(guide.state))
    extra = guide.end_ids - set(guide.constraint.vocabulary.eos_token_ids)
    return guide.spelt(with_tokens(mask, extra) if extra and guide.is_accepting else mask)


# ---- admission


def check_search(request: Request, count: int, limits: Limits, *, kind: str, understood: tuple[str, ...], shares: bool) -> None:
    """Raises RequestError for what a search of `count` members cannot do: an option it does not understand, or too little room."""
    default = SamplingParams()
    for field in fields(SamplingParams):
        value = getattr(request.sampling, field.name)
        if field.name not in understood and value != getattr(default, field.name):
            raise RequestError(f"{kind} does not understand {field.name}={value!r}; it understands {', '.join(understood)}")
    if count > limits.max_sequences:
        raise RequestError(f"{kind} with {count} sequences needs max_sequences={count}, and this engine has {limits.max_sequences}")
    length = min(len(request.prompt_token_ids) + request.sampling.max_tokens, limits.max_model_len)
    shared = len(request.prompt_token_ids) // limits.block_size if shares else 0
    needed = shared + count * (-(-length // limits.block_size) - shared)
    if needed > limits.num_blocks:
        raise RequestError(
            f"{kind} with {count} sequences of up to {length} tokens may need {needed} blocks of KV cache, and there are "
            f"{limits.num_blocks}; ask for fewer sequences or tokens, or raise num_kv_blocks"
        )
