"""One step's draw: logits, masks and what the sequences ask of sampling go in, one token record per sequence comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.backend import Backend
from ...kernels.sampler import compiled
from ...kernels.sampler.backend import choose_sampler
from ...kernels.sampler.interface import NO_TOKEN, UNCONSTRAINED, Sampled, SamplerRows
from ...kernels.sampler.reference import describe, unpack_masks, without_bans
from ...kernels.to_device import to_device
from ...sampling import BatchPacker, TokenLogprob
from ...sampling.logits_stages import BatchStages, Staged, failure_text
from ..device.profiling import span
from ..errors import InternalError, InvalidLogits, StageFailure
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.proposal import Proposal
from .rejection import decide, probabilities

Drawn = TokenRecord | InternalError  # a token, or why there is none
INVALID = NO_TOKEN - 1  # in Sampled.token: the logits are not numbers, so what was drawn is worth nothing
FAILED = INVALID - 1  # and below it: the stage at place FAILED - token of the row's own failed with it


class SamplingInputs(NamedTuple):
    """How the rows of a step are to be drawn."""

    rows: SamplerRows
    num_top_logprobs: int  # the most that any row wants
    own_stages: BatchStages | None = None  # of rows that have some; None where no row does
    is_told: bool = True  # some row wants to know what the model thinks


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
        inputs = self.sampling_inputs(sequences)
        if inputs.own_stages is not None or inputs.rows.programs is not None or not self._picks(logits):
            return records(sequences, self.sample(logits, inputs, *self.masks(sequences)))
        guides = [sequence.guide for sequence in sequences]
        masks = [None if guide is None else guide.mask for guide in guides] if any(guides) else []
        picked = compiled.pick(
            logits, inputs.rows, masks, vocab_size=self.vocab_size, num_top_logprobs=inputs.num_top_logprobs, is_told=inputs.is_told
        )
        return _picked_records(sequences, picked)

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code draws where it reads the logits."""
        return self._sample is compiled.sample

    def _picks(self, logits: Tensor) -> bool:
        """Whether compiled code draws, and what it says is on the host at once."""
        return self.is_compiled and compiled.is_covered(logits)

    def sampling_inputs(self, sequences: list[Sequence]) -> SamplingInputs:
        """What the host knows about the next draw of each sequence, on its way to the device."""
        rows = self._packer.pack([sequence.sampling for sequence in sequences])
        num_top_logprobs = max((sequence.request.sampling.logprobs or 0 for sequence in sequences), default=0)
        is_told = any(sequence.request.tells_probabilities for sequence in sequences)
        return SamplingInputs(rows, num_top_logprobs, own_stages(sequences), is_told)

    def sample(
        self, logits: Tensor, sampling_inputs: SamplingInputs, mask_rows: Tensor | None, mask_index: Tensor | None
    ) -> Sampled:
        """The draw itself, which is the device's part. The token is INVALID where logits are NaN, FAILED or less where a stage of
        one's own fails."""
        rows, num_top, stages, is_told = sampling_inputs
        staged = None if stages is None else self._staged(stages, logits, rows, mask_rows, mask_index)
        sampled = self._sample(
            logits if staged is None else staged.logits,
            rows,
            mask_rows,
            mask_index,
            vocab_size=self.vocab_size,
            num_top_logprobs=num_top,
            is_told=is_told,
        )
        if staged is not None:
            sampled = self._told_of_model(sampled, staged, logits, mask_rows, mask_index, is_told)
        return sampled._replace(token=torch.where(self.are_numbers(logits), sampled.token, INVALID))

    def _staged(
        self, stages: BatchStages, logits: Tensor, rows: SamplerRows, mask_rows: Tensor | None, mask_index: Tensor | None
    ) -> Staged:
        with span("logits processors"):
            return self._applied(stages, logits, rows, unpack_masks(mask_rows, mask_index, self.vocab_size))

    def _applied(self, stages: BatchStages, logits: Tensor, rows: SamplerRows, allowed: Tensor | None) -> Staged:
        drawable, _ = without_bans(allowed, rows.bias, logits[:, : self.vocab_size])
        return stages.apply(logits, allowed, drawable, self.vocab_size)

    def _told_of_model(
        self,
        sampled: Sampled,
        staged: Staged,
        logits: Tensor,
        mask_rows: Tensor | None,
        mask_index: Tensor | None,
        is_told: bool,
    ) -> Sampled:
        """What was drawn from logits that stages changed, with what is said of the model told of its own logits."""
        num_top = sampled.top_token.shape[1]
        of_model = describe(logits, sampled.token, mask_rows, mask_index, self.vocab_size, num_top) if is_told else {}
        own = {
            name: torch.where(staged.has_stages.view(-1, *[1] * (told.ndim - 1)), told, getattr(sampled, name))
            for name, told in of_model.items()
        }
        token = torch.where(staged.failed >= 0, FAILED - staged.failed, sampled.token)
        return sampled._replace(**own, token=token, bans_overridden=sampled.bans_overridden | staged.overridden)

    def are_numbers(self, logits: Tensor) -> Tensor:
        """[rows] bool: no logit of the row is NaN, which its sum would be too."""
        if self._picks(logits):
            return compiled.are_numbers(logits, self.vocab_size)
        return ~logits[:, : self.vocab_size].sum(-1, dtype=torch.float32).isnan()

    def probabilities(self, sequences: list[Sequence], logits: Tensor) -> Tensor:
        """[len(sequences), V] float64: what `draw` draws from."""
        rows = BatchPacker(self.device).pack([sequence.sampling for sequence in sequences])
        masks, stages = self.masks(sequences), own_stages(sequences)
        scores = logits if stages is None else self._staged(stages, logits, rows, *masks).logits
        return probabilities(scores, rows, *masks, self.vocab_size)

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
            logprob = None if record.logprob is None else float(logprobs[row, token_id])
            drawn[places[row]] = replace(record, token_id=token_id, logprob=logprob, share=share)
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


def own_stages(sequences: list[Sequence]) -> BatchStages | None:
    """The stages of their own that some of the sequences have, with the texts as they are now."""
    if not any(sequence.stages is not None for sequence in sequences):
        return None
    return BatchStages([(each.stages, each.token_ids, len(each.token_ids)) for each in sequences])


class _Row(NamedTuple):
    """What was drawn of one row, as `Sampled` has it, on the host."""

    token: int
    logprob: float
    kept_mass: float
    num_allowed: int
    bans_overridden: bool
    top_token: list[int]
    top_logprob: list[float]
    share: list[float]


def records(sequences: list[Sequence], sampled: Sampled) -> list[Drawn]:
    """What was drawn for each sequence, or why nothing was. Waits for the device."""
    rows = map(_Row, *(part.tolist() for part in sampled))
    return [_record(sequence, row) for sequence, row in zip(sequences, rows, strict=True)]


def _picked_records(sequences: list[Sequence], picked: compiled.Picked) -> list[Drawn]:
    """`records` of what compiled code has drawn."""
    tops: Iterable[tuple[list[int], list[float]]] = repeat((NOTHING, NOTHING))
    if picked.top_token is not None and picked.top_logprob is not None:
        tops = zip(picked.top_token.tolist(), picked.top_logprob.tolist(), strict=True)
    rows = zip(sequences, picked.rows.tolist(), tops, strict=False)  # `repeat` has no end
    return [picked_record(sequence, values, *of_top) for sequence, values, of_top in rows]


NOTHING: list[Any] = []


def picked_record(
    sequence: Sequence, values: tuple[Any, ...], top_token: list[int] = NOTHING, top_logprob: list[float] = NOTHING
) -> Drawn:
    """The record of a row of `compiled.PICKED`."""
    token, num_allowed, kept_mass, logprob, overridden, is_number = values
    if is_number and token >= 0 and not overridden and not sequence.request.tells_probabilities:
        return TokenRecord(token, None, None, num_allowed)
    token = token if is_number else INVALID
    return _record(sequence, _Row(token, logprob, kept_mass, num_allowed, overridden, top_token, top_logprob, []))


def _record(sequence: Sequence, row: _Row) -> Drawn:
    if row.token == INVALID:
        return InvalidLogits("the model's scores for the next token are not numbers")
    if row.token <= FAILED:
        assert sequence.stages is not None
        return StageFailure(failure_text(sequence.stages, FAILED - row.token))
    if row.token == NO_TOKEN:
        return InternalError("the mask allowed no token; a constraint's masks are never empty")
    sequence.bans_overridden |= row.bans_overridden
    num_top = sequence.request.sampling.logprobs or 0
    top = tuple(map(TokenLogprob, row.top_token[:num_top], row.top_logprob[:num_top])) if num_top else ()
    share = row.share[0] if sequence.sampling.mirostat is not None and row.num_allowed > 1 else None
    logprob, mass = (row.logprob, row.kept_mass) if sequence.request.tells_probabilities else (None, None)
    return TokenRecord(row.token, logprob, mass, row.num_allowed, top, share)
