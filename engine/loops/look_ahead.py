"""What comes next as far as constraints alone decide: masks, forced text and tokens, and the end."""

from __future__ import annotations

from collections.abc import Iterable

from ..drafts.forced_text import ForcedText
from ..requests.guide import MaskViews
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.statistics import EngineStatistics
from .faults import Faults


class LookAhead:
    """Prepares masks and takes what is forced. skips_forced: a token that is the only legal one is not sampled."""

    def __init__(
        self,
        faults: Faults,
        totals: EngineStatistics,
        forced_text: ForcedText | None,
        *,
        skips_forced: bool,
    ) -> None:
        self._faults, self._totals, self._masks = faults, totals, MaskViews()
        self._forced_text, self._skips_forced = forced_text, skips_forced

    def __call__(self, sequences: Iterable[Sequence], takes_forced: bool = True) -> None:
        """Prepare the next masks, and take at once what leaves no choice: forced text and tokens, and the end."""
        skips_forced = takes_forced and self._skips_forced
        pending = [sequence for sequence in sequences if sequence.guide is not None and not sequence.is_finished]
        while pending:
            for sequence in pending:
                if sequence.request.sampling.jump_forward:
                    self._faults.contain(sequence, self._jump_forward, sequence)
            pending = [sequence for sequence in pending if not sequence.is_finished]
            self._masks.fill(sequence.guide for sequence in pending if sequence.guide is not None)
            moved = []
            for sequence in pending:
                if sequence.guide is not None and sequence.guide.leaves_a_choice:
                    continue
                length = sequence.num_tokens
                self._faults.contain(sequence, _take_forced, sequence, skips_forced)
                if sequence.num_tokens > length and not sequence.is_finished:
                    moved.append(sequence)
            pending = moved

    def _jump_forward(self, sequence: Sequence) -> None:
        """Append the tokens of forced text, if the request wants that and no log-probabilities of it."""
        guide = sequence.guide
        if self._forced_text is None or guide is None or sequence.request.sampling.asks_for_forced:
            return
        for token_id in self._forced_text.tokens(guide.constraint, guide.state, sequence.token_ids):
            if sequence.is_finished or not guide.legal_prefix([token_id]):
                return
            sequence.accept(TokenRecord(token_id, logprob=None, kept_mass=None, num_allowed=1))
            sequence.num_jumped += 1
            self._totals.num_jumped_tokens += 1


def _take_forced(sequence: Sequence, skips_forced: bool) -> None:
    """End a complete output; append the only legal token unless its log-probability is wanted."""
    guide = sequence.guide
    assert guide is not None
    if guide.failure is not None:
        raise guide.failure
    if guide.is_complete:
        sequence.finish("stop")
    elif skips_forced and not sequence.request.sampling.asks_for_forced and (token_id := guide.only_token) is not None:
        sequence.accept(TokenRecord(token_id, logprob=None, kept_mass=None, num_allowed=1))
