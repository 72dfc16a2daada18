"""Drafters guess the next tokens. A wrong guess costs a place in a forward pass, a right one saves a step; neither changes the
output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as Sequence_
from typing import Any

from ..kv_cache.prefix_cache import Restored, Transfer
from ..requests.ngrams import Ngrams
from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk
from .forced_text import ForcedText

LONGEST_NGRAM = 4  # tokens that have to be met again, at most and at least
SHORTEST_NGRAM = 2


class Drafter(ABC):
    """Proposes the next tokens of sequences."""

    runner: Any = None  # of a model that guesses, with a cache of its own

    @abstractmethod
    def propose(self, chunks: Sequence_[Chunk[Sequence]]) -> list[list[int]]:
        """Tokens that may follow each chunk; those beyond its `num_draftable` are not used."""

    def move_blocks(self, transfers: list[Transfer | Restored]) -> None:  # noqa: B027 - only who has a cache has something to move
        """Carry transfers of blocks out in the drafter's own cache; called before `propose`."""

    def follow(self, chunks: list[Chunk[Sequence]]) -> None:  # noqa: B027
        """Read in the drafter's own cache what the model has read in this step, drafts included."""


class NoDrafts(Drafter):
    """Proposes nothing."""

    def propose(self, chunks: Sequence_[Chunk[Sequence]]) -> list[list[int]]:
        return [[] for _ in chunks]


class Lookup(Drafter):
    """Drafts what followed when the last tokens were met before, in prompt or output (Saxena, "Prompt lookup decoding", 2023)."""

    def propose(self, chunks: Sequence_[Chunk[Sequence]]) -> list[list[int]]:
        return [self._of(chunk.sequence, chunk.num_draftable) for chunk in chunks]

    def _of(self, sequence: Sequence, count: int) -> list[int]:
        if sequence.ngrams is None:
            sequence.ngrams = Ngrams(SHORTEST_NGRAM, LONGEST_NGRAM)
        return sequence.ngrams.continuation(sequence.token_ids, count)


class ForcedDrafts(Drafter):
    """Drafts the text that the constraint forces, in its usual tokens: the model may still spell it otherwise."""

    def __init__(self, forced_text: ForcedText) -> None:
        self._forced_text = forced_text

    def propose(self, chunks: Sequence_[Chunk[Sequence]]) -> list[list[int]]:
        return [self._of(chunk.sequence) for chunk in chunks]

    def _of(self, sequence: Sequence) -> list[int]:
        guide = sequence.guide
        if guide is None:
            return []
        try:
            return list(self._forced_text.tokens(guide.constraint, guide.state, sequence.token_ids))
        except Exception:  # a limit, say: it is met again when it matters, and ends this sequence alone
            return []
