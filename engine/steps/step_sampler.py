"""One step's draw: logits, masks and what the sequences ask of sampling go in, one token record per sequence comes out."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.backend import Backend
from ...kernels.sampler.backend import choose_sampler
from ...kernels.sampler.interface import NO_TOKEN, UNCONSTRAINED, Sampled, SamplerRows
from ...kernels.to_device import to_device
from ...sampling import BatchPacker, TokenLogprob
from ..errors import InternalError, InvalidLogits
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.proposal import Proposal
from .rejection import decide, probabilities

Drawn = TokenRecord | InternalError  # a token, or why there is none
INVALID = NO_TOKEN - 1  # in Sampled.token: the logits are not numbers, so what was drawn is worth nothing


class SamplingInputs(NamedTuple):
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

    def draw(self, sequences: list[Sequence], logits: Tensor) -> list[Drawn]:
        """A record per row of logits [len(sequences), head width]; an error where the mask allows nothing or logits are NaN.

        Reading the result is the one place of a step that waits for the device.
        """
        sampling_inputs = self.sampling_inputs(sequences)
        return records(sequences, self.sample(logits, sampling_inputs, *self.masks(sequences)))

    def sampling_inputs(self, sequences: list[Sequence]) -> SamplingInputs:
        """What the host knows about the next draw of each sequence, on its way to the device."""
        rows = self._packer.pack([sequence.sampling for sequence in sequences])
        return SamplingInputs(rows, max((sequence.request.sampling.logprobs or 0 for sequence in sequences), default=0))

    def sample(
        self, logits: Tensor, sampling_inputs: SamplingInputs, mask_rows: Tensor | None, mask_index: Tensor | None
    ) -> Sampled:
        """The draw itself, which is the device's part. The token is INVALID where logits are NaN."""
        sampled = self._sample(
            logits,
            sampling_inputs.rows,
            mask_rows,
            mask_index,
            vocab_size=self.vocab_size,
            num_top_logprobs=sampling_inputs.num_top_logprobs,
        )
        return sampled._replace(token=torch.where(self.are_numbers(logits), sampled.token, INVALID))

    def are_numbers(self, logits: Tensor) -> Tensor:
        """[rows] bool: no logit of the row is NaN, which its sum would be too."""
        return ~logits[:, : self.vocab_size].sum(-1, dtype=torch.float32).isnan()

    def probabilities(self, sequences: list[Sequence], logits: Tensor) -> Tensor:
        """[len(sequences), V] float64: what `draw` draws from."""
        rows = BatchPacker(self.device).pack([sequence.sampling for sequence in sequences])
        return probabilities(logits, rows, *self.masks(sequences), self.vocab_size)

    def test(
        self, sequences: list[Sequence], logits: Tensor, proposals: list[Proposal | None], drawn: list[Drawn]
    ) -> list[Drawn]:
        """The records `drawn`; where a draft was proposed, its token is replaced by the one that rejection sampling decides on."""
        made = {place: p for place, p in enumerate(proposals) if p is not None and isinstance(drawn[place], TokenRecord)}
        if not made:
            return drawn
        places = list(made)
        tested, wanted = [sequences[place] for place in places], logits[places]
        target = self.probabilities(tested, wanted)
        logprobs = torch.log_softmax(wanted[:, : self.vocab_size].float(), -1)
        for row, token_id in enumerate(decide(target, list(made.values()), [sequence.sampling for sequence in tested])):
            record = drawn[places[row]]
            assert isinstance(record, TokenRecord)
            share = None if record.share is None else float(target[row, token_id])
            drawn[places[row]] = replace(record, token_id=token_id, logprob=float(logprobs[row, token_id]), share=share)
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


def records(sequences: list[Sequence], sampled: Sampled) -> list[Drawn]:
    """What was drawn for each sequence, or why nothing was. Waits for the device."""
    token_ids, logprobs, kept, allowed, overridden, top_ids, top_logprobs, shares = (part.tolist() for part in sampled)
    drawn: list[Drawn] = []
    for row, sequence in enumerate(sequences):
        if token_ids[row] == INVALID:
            drawn.append(InvalidLogits("the model's scores for the next token are not numbers"))
            continue
        if token_ids[row] == NO_TOKEN:
            drawn.append(InternalError("the mask allowed no token; a constraint's masks are never empty"))
            continue
        sequence.bans_overridden |= overridden[row]
        num_top = sequence.request.sampling.logprobs or 0
        top = tuple(map(TokenLogprob, top_ids[row][:num_top], top_logprobs[row][:num_top]))
        share = shares[row][0] if sequence.sampling.mirostat is not None and allowed[row] > 1 else None
        drawn.append(TokenRecord(token_ids[row], logprobs[row], kept[row], allowed[row], top, share))
    return drawn
