"""Drafts are checked by plain sampling: at each place the token is drawn that would have been drawn without drafts.

The forward pass gave the logits behind a sequence's last token and behind each of its drafts. They are those of the text that comes
out as long as the tokens drawn are the drafts. So what comes out is what plain decoding gives, token for token, with every
constraint, penalty and seed. A draft x that was looked up is accepted with probability p(x), as by rejection sampling (Leviathan,
Kalman, Matias, ICML 2023, with q = 1). A draft model draws with the random number that its check uses (`draft_model.py`): the two
draws are coupled. Rejection sampling proper (`rejection.py`) accepts more of its drafts, but gives other tokens than plain decoding
from the same seed, and others in another batch; so it has to be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from ..kv_cache.prefix_tree import common_length
from ..requests.sequence import Sequence
from ..scheduling.proposal import Proposal
from ..scheduling.scheduler import Chunk


class _Lead:
    """One sequence with the drafts and logits that were computed behind its `base` tokens."""

    __slots__ = ("base", "drafts", "first_row", "is_given_up", "proposals", "sequence")

    def __init__(self, chunk: Chunk[Sequence], first_row: int) -> None:
        self.sequence, self.drafts, self.proposals = chunk.sequence, chunk.drafts, chunk.proposals
        self.base, self.first_row = chunk.sequence.num_tokens, first_row
        self.is_given_up = False

    @property
    def num_new(self) -> int:
        return self.sequence.num_tokens - self.base

    @property
    def num_matched(self) -> int:
        return common_length(self.sequence.token_ids[self.base : self.base + len(self.drafts)], self.drafts)

    @property
    def is_ready(self) -> bool:
        """The logits behind the sequence's last token are there."""
        if self.is_given_up or self.sequence.is_finished or self.num_new > len(self.drafts):
            return False
        return not self.drafts or self.num_matched == self.num_new

    @property
    def proposal(self) -> Proposal | None:
        """What was drawn for the next place; it is tested once."""
        if not self.proposals:
            return None
        is_first_draw = self.sequence.sampling.draw_index == self.sequence.sampling.position
        return self.proposals[self.num_new] if is_first_draw and self.num_new < len(self.proposals) else None


class Verification:
    """Hands out the logits of one step, as long as they are those of the text that came out."""

    def __init__(self, chunks: Iterable[Chunk[Sequence]], logits: Tensor) -> None:
        self._leads: list[_Lead] = []
        self._logits = logits
        row = 0
        for chunk in chunks:
            if chunk.sequence.num_computed == chunk.sequence.num_tokens:
                self._leads.append(_Lead(chunk, row))
                row += 1 + len(chunk.drafts)
        self._ready = self._leads
        assert row == logits.shape[0], "a row for each token and draft whose successor is wanted"

    @property
    def has_searched(self) -> bool:
        """Whether some are members of searches."""
        return any(lead.sequence.search_group is not None for lead in self._leads)

    def take_searched(self) -> tuple[list[Sequence], Tensor]:
        """The members of searches, which are not drawn for, and their logits [members, head width]."""
        taken = [lead for lead in self._leads if lead.sequence.search_group is not None]
        self._ready = self._leads = [lead for lead in self._leads if lead.sequence.search_group is None]
        rows = [lead.first_row for lead in taken]
        return [lead.sequence for lead in taken], self._logits[rows]

    def ready(self) -> list[Sequence]:
        """The sequences whose next token can be drawn; `proposals` and `logits` are about the same."""
        self._ready = [lead for lead in self._ready if lead.is_ready]  # who was not will not be
        return [lead.sequence for lead in self._ready]

    def give_up(self, sequence: Sequence) -> bool:
        """No further token of this sequence comes from these logits. Returns whether none came from them at all."""
        (lead,) = (lead for lead in self._ready if lead.sequence is sequence)
        lead.is_given_up = True
        return not lead.num_new

    def proposals(self) -> list[Proposal | None]:
        """For each ready sequence the proposal that was made for that place."""
        return [lead.proposal for lead in self._ready]

    def logits(self) -> Tensor:
        """[sequences that are ready, head width]"""
        rows = [lead.first_row + lead.num_new for lead in self._ready]
        if len(rows) == self._logits.shape[0]:
            return self._logits
        return self._logits.index_select(0, torch.from_numpy(np.array(rows)).to(self._logits.device))

    def finish(self) -> list[tuple[int, int]]:
        """Count drafts that became tokens as computed. Returns for each sequence with drafts (how many, how many became tokens)."""
        verified = []
        for lead in self._leads:
            if lead.drafts:
                matched = lead.num_matched
                lead.sequence.num_drafted += len(lead.drafts)
                lead.sequence.num_accepted += matched
                verified.append((len(lead.drafts), matched))
                if not lead.sequence.is_finished:
                    lead.sequence.num_computed = lead.base + matched
        return verified
