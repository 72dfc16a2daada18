"""A small model that guesses for a large one: it decodes forks of the sequences, and the large model checks what comes out.

A fork draws with the same random numbers, masks and penalties as its sequence will. So where the two models agree on the
distribution they agree on the token, at any temperature, and a draft is one that the constraint allows.

The small model's cache has the same blocks: what a block table says is true in both. `follow` reads in every step what the large
model reads, so that prefixes that are shared, copied or brought back hold the keys and values of both.
"""

from __future__ import annotations

from collections.abc import Sequence as Sequence_
from contextlib import suppress

from torch import Tensor

from ..kv_cache.kept_blocks import BlockContent
from ..kv_cache.prefix_cache import Restored, Transfer
from ..requests.guide import MaskViews
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.proposal import Proposal
from ..scheduling.scheduler import Chunk
from ..steps.runner import ModelRunner
from ..steps.step_sampler import StepSampler
from .drafter import Drafter

DRAFT_STREAM = 0x2545F4914F6CDD1D  # random numbers for drafts that are tested by rejection sampling
LONGEST_PENDING = 64  # tokens that are read twice before the first guess; behind a prompt's long chunk nothing is guessed


class DraftModel(Drafter):
    """Drafts by a small model, which decodes forks of the sequences.

    keeps_tokens: the output is that of plain decoding; else drafts are drawn apart, and tested by rejection sampling.
    """

    def __init__(self, runner: ModelRunner, vocab_size: int, *, keeps_tokens: bool = True) -> None:
        self.runner, self.keeps_tokens = runner, keeps_tokens
        self._sampler, self._masks = StepSampler(vocab_size, runner.decoder.device), MaskViews()

    def move_blocks(self, transfers: list[Transfer | Restored]) -> None:
        self.runner.move_blocks([_of_draft(transfer) for transfer in transfers])

    def follow(self, chunks: list[Chunk[Sequence]]) -> None:
        self.runner.forward(chunks)

    def propose(self, chunks: Sequence_[Chunk[Sequence]]) -> list[list[int]]:
        forks = [_Fork(chunk, seed=None if self.keeps_tokens else DRAFT_STREAM) for chunk in chunks]
        while going := [fork for fork in forks if fork.wants_more]:
            self._extend(going)
        for chunk, fork in zip(chunks, forks, strict=True):
            chunk.proposals = fork.proposals
        return [fork.drafts for fork in forks]

    def _extend(self, forks: list[_Fork]) -> None:
        """Draw one more draft for each fork."""
        forks = sorted(forks, key=lambda fork: fork.num_pending)
        logits = self.runner.forward([Chunk(fork.sequence, fork.num_pending) for fork in forks])
        sequences = [fork.sequence for fork in forks]
        records = self._sampler.draw(sequences, logits)
        drawn_from = [None] * len(forks) if self.keeps_tokens else self._sampler.probabilities(sequences, logits)
        for fork, record, row in zip(forks, records, drawn_from, strict=True):
            fork.sequence.num_computed = fork.sequence.num_tokens
            if isinstance(record, TokenRecord):
                fork.take(record, row)
            fork.has_ended = fork.num_pending == 0 or fork.sequence.is_finished
        self._masks.fill(fork.sequence.guide for fork in forks if fork.wants_more and fork.sequence.guide is not None)


def _of_draft(transfer: Transfer | Restored) -> Transfer | Restored:
    return transfer._replace(content=BlockContent(transfer.content.draft)) if isinstance(transfer, Restored) else transfer


class _Fork:
    def __init__(self, chunk: Chunk[Sequence], seed: int | None) -> None:
        origin = chunk.sequence
        self.sequence = origin.fork(origin.request_id, origin.rank, None if seed is None else origin.sampling.seed ^ seed)
        self.proposals: list[Proposal] = []
        self.sequence.block_table, self.sequence.num_computed = origin.block_table, origin.num_computed
        self._base, self._room = origin.num_tokens, chunk.num_draftable
        self.has_ended = chunk.num_tokens > LONGEST_PENDING

    def take(self, record: TokenRecord, probabilities: Tensor | None) -> None:
        if probabilities is not None:
            self.proposals.append(Proposal(record.token_id, probabilities))
        with suppress(Exception):  # a limit, say: it is met again when it matters, and ends the sequence alone
            self.sequence.accept(record)

    @property
    def num_pending(self) -> int:
        return self.sequence.num_tokens - self.sequence.num_computed

    @property
    def drafts(self) -> list[int]:
        return self.sequence.token_ids[self._base :]

    @property
    def wants_more(self) -> bool:
        guide = self.sequence.guide
        return not self.has_ended and len(self.drafts) < self._room and (guide is None or guide.failure is None)
