"""One step's draw: the sequences' wishes and masks in, one token record per sequence out."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..kernels.sampler.backend import Backend, choose_sampler
from ..kernels.sampler.interface import NO_TOKEN, UNCONSTRAINED, Sampled, SamplerRows
from ..kernels.to_device import to_device
from ..sampling import BatchPacker, TokenLogprob
from .output import TokenRecord
from .rejection import Proposal, decide, probabilities
from .sequence import Sequence


class Wishes(NamedTuple):
    """How the rows of a step are to be drawn."""

    rows: SamplerRows
    num_top_logprobs: int  # the most that any row wants


class StepSampler:
    """Samples for all sequences of a step at once. `vocab_size` leaves out the padding of the model's head.

    `backend` names an implementation of the sampler; "auto" takes the one for the device.
    """

    def __init__(self, vocab_size: int, device: torch.device, backend: Backend = "auto") -> None:
        self.vocab_size, self.device = vocab_size, device
        self._sample = choose_sampler(device, backend)
        self._packer = BatchPacker(device)

    def draw(self, sequences: list[Sequence], logits: Tensor) -> list[TokenRecord | None]:
        """A record per row of logits [len(sequences), head width]; None where the mask allows nothing.

        Reading the result is the one place of a step that waits for the device.
        """
        wishes = self.wishes(sequences)
        return records(sequences, self.sample(logits, wishes, *self.masks(sequences)))

    def wishes(self, sequences: list[Sequence]) -> Wishes:
        """What the host knows about the next draw of each sequence, on its way to the device."""
        rows = self._packer.pack([sequence.sampling for sequence in sequences])
        return Wishes(rows, max((sequence.request.sampling.logprobs or 0 for sequence in sequences), default=0))

    def sample(self, logits: Tensor, wishes: Wishes, mask_rows: Tensor | None, mask_index: Tensor | None) -> Sampled:
        """The draw itself, which is the device's part."""
        return self._sample(
            logits, wishes.rows, mask_rows, mask_index, vocab_size=self.vocab_size, num_top_logprobs=wishes.num_top_logprobs
        )

    def probabilities(self, sequences: list[Sequence], logits: Tensor) -> Tensor:
        """[len(sequences), V] float64: what `draw` draws from."""
        rows = BatchPacker(self.device).pack([sequence.sampling for sequence in sequences])
        return probabilities(logits, rows, *self.masks(sequences), self.vocab_size)

    def test(
        self, sequences: list[Sequence], logits: Tensor, proposals: list[Proposal | None], drawn: list[TokenRecord | None]
    ) -> list[TokenRecord | None]:
        """The records `drawn`, but where a draft was proposed what rejection sampling makes of it."""
        made = {place: p for place, p in enumerate(proposals) if p is not None and drawn[place] is not None}
        if not made:
            return drawn
        places = list(made)
        tested, wanted = [sequences[place] for place in places], logits[places]
        target = self.probabilities(tested, wanted)
        logprobs = torch.log_softmax(wanted[:, : self.vocab_size].float(), -1)
        for row, token_id in enumerate(decide(target, list(made.values()), [sequence.sampling for sequence in tested])):
            record = drawn[places[row]]
            assert record is not None
            drawn[places[row]] = replace(record, token_id=token_id, logprob=float(logprobs[row, token_id]))
        return drawn

    def masks(self, sequences: list[Sequence]) -> tuple[Tensor | None, Tensor | None]:
        """(int32 [constrained rows, words], row of each sequence or UNCONSTRAINED)."""
        masks = [sequence.guide.mask for sequence in sequences if sequence.guide is not None]
        if not masks:
            return None, None
        constrained = np.array([sequence.guide is not None for sequence in sequences])
        index = np.where(constrained, np.cumsum(constrained) - 1, UNCONSTRAINED)
        pool = np.stack(masks).view(np.int32)
        return to_device(pool, self.device), to_device(index, self.device)


def records(sequences: list[Sequence], sampled: Sampled) -> list[TokenRecord | None]:
    """A record for each sequence, None where nothing was drawn. Waits for the device."""
    token_ids, logprobs, kept, allowed, overridden, top_ids, top_logprobs = (part.tolist() for part in sampled)
    drawn: list[TokenRecord | None] = []
    for row, sequence in enumerate(sequences):
        sequence.bans_overridden |= overridden[row]
        num_top = sequence.request.sampling.logprobs or 0
        top = tuple(map(TokenLogprob, top_ids[row][:num_top], top_logprobs[row][:num_top]))
        record = TokenRecord(token_ids[row], logprobs[row], kept[row], allowed[row], top)
        drawn.append(None if token_ids[row] == NO_TOKEN else record)
    return drawn
