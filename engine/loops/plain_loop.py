"""The plain step: plan, compute, draw, take what is forced; the loop with which all others are compared (`pipeline.py`).

A step that fails for some of its sequences goes on without them (`isolation.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor

from ..device.profiling import span
from ..drafts.drafter import Drafter
from ..drafts.verification import Verification
from ..errors import InvalidLogits, ModelFailure, SamplerFailure
from ..requests.sequence import Sequence, SequenceGroup
from ..scheduling.roster import Roster
from ..scheduling.scheduler import Chunk
from ..scheduling.statistics import EngineStatistics
from ..search.searches import by_group
from ..steps.prompt_scores import take_prompt_scores
from ..steps.runner import ModelRunner
from ..steps.step_sampler import Drawn, StepSampler
from ..steps.wanted_columns import wanted_columns
from ..steps.whole_steps import WholeSteps
from .faults import Faults
from .isolation import by_halves
from .look_ahead import LookAhead

logger = logging.getLogger(__name__)

Chunks = list[Chunk[Sequence]]


class Computed(NamedTuple):
    """Chunks that were computed, and the logits behind them."""

    chunks: Chunks
    logits: Tensor  # [rows, head width] that tokens are drawn from: of chunks that complete their sequence, and of drafts


class PlainLoop:
    """Steps without overlap. `schedule` plans a step. `whole_steps` computes and draws in one call what it can, without drafts."""

    def __init__(
        self,
        runner: ModelRunner,
        sampler: StepSampler,
        drafter: Drafter,
        roster: Roster,
        faults: Faults,
        totals: EngineStatistics,
        schedule: Callable[[], Chunks],
        look_ahead: LookAhead,
        whole_steps: WholeSteps | None = None,
    ) -> None:
        self._runner, self._sampler, self._drafter = runner, sampler, drafter
        self._roster, self._faults, self._totals = roster, faults, totals
        self._schedule, self._look_ahead, self._whole_steps = schedule, look_ahead, whole_steps
        self._is_repeatable = not runner.decoder.spec.is_recurrent  # keys and values may be written twice, a state may not

    def step(self) -> None:
        """Plan one step, compute it, and draw its tokens."""
        self._roster.quarantine.let_in()
        with span("plan"):
            chunks = self._schedule()
            self.move_blocks()
        if not chunks or (self._whole_steps is not None and self._step_whole(chunks, self._whole_steps)):
            return
        with span("draft"):
            self._draft(chunks)
        for computed in self._compute(chunks):
            with span("sample"):
                self._sample(*computed)

    def _step_whole(self, chunks: Chunks, whole_steps: WholeSteps) -> bool:
        """Compute and draw in one call. Where that is not possible, or fails, nothing has happened that cannot be done again."""
        try:
            with span("forward"):
                drawn = whole_steps.draw(chunks)
        except Exception:
            logger.warning("a step failed as a whole, now it is tried part by part", exc_info=True)
            return False
        if drawn is None:
            return False
        with span("sample"):
            self._take_whole(chunks, drawn, whole_steps)
        return True

    def _take_whole(self, chunks: Chunks, drawn: list[Drawn], whole_steps: WholeSteps) -> None:
        """Let sequences go on with what was drawn, as `_sample` does."""
        self._totals.count_step(chunks)
        valid, again, invalid = list[Sequence](), list[int](), list[Chunk[Sequence]]()
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        for row, (chunk, what) in enumerate(zip(chunks, drawn, strict=True)):
            sequence = chunk.sequence
            if isinstance(what, InvalidLogits):
                invalid.append(chunk)
                continue
            self._faults.take(sequence, what)
            valid.append(sequence)
            if sequence.num_computed == len(sequence.token_ids):  # it has ended, or the token was refused
                again.append(row)
        self._look_ahead(valid)
        if again:
            self._draw_again([chunks[row] for row in again], whole_steps.logits[again])
        for chunk in invalid:
            self._doubt(chunk, is_alone=len(chunks) == 1)

    def _draw_again(self, chunks: Chunks, logits: Tensor) -> None:
        """Draw from the same logits for those that go on without a new token: theirs was refused."""
        rows = [row for row, chunk in enumerate(chunks) if not chunk.sequence.is_finished and _has_no_more(chunk.sequence)]
        if rows:
            self._sample([chunks[row] for row in rows], logits[rows])

    def move_blocks(self) -> None:
        """Carry out what the space has planned; before a forward pass."""
        if transfers := self._roster.scheduler.space.take_transfers():
            self._runner.move_blocks(transfers)
            self._drafter.move_blocks(transfers)

    # ---- compute

    def _draft(self, chunks: Chunks) -> None:
        """Guess what comes next, where there is room; only what the constraint allows is worth computing."""
        with_room = [chunk for chunk in chunks if chunk.num_draftable]
        if not with_room:
            return
        try:
            proposed = self._drafter.propose(with_room)
        except Exception:
            logger.exception("drafting failed; this step does without")
            proposed = [[] for _ in with_room]
            for chunk in with_room:
                chunk.proposals = []
        for chunk, guessed in zip(with_room, proposed, strict=True):
            guide = chunk.sequence.guide
            chunk.drafts = guessed[: chunk.num_draftable]
            if guide is not None and not chunk.proposals:  # those were drawn under the masks
                chunk.drafts = guide.legal_prefix(chunk.drafts)

    def _compute(self, chunks: Chunks) -> Iterator[Computed]:
        """The chunks and the logits behind them: all at once, or where that fails group by group without the guilty.

        Who shares blocks that others compute in the same step begins behind them, and comes after them.
        """
        if len(chunks) > 1:
            chunks = sorted(chunks, key=lambda chunk: chunk.sequence.num_computed)
        groups = by_halves(chunks, self._forward) if self._is_repeatable else [(chunks, self._forward(chunks))]
        for group, result in groups:
            if isinstance(result, Exception):
                error = ModelFailure(f"the forward pass raised {type(result).__name__}: {result}")
                self._faults.blame(group[0].sequence, error)
            elif result is not None:
                yield result

    def _forward(self, chunks: Chunks) -> Computed | None:
        """Run the model over the chunks, without those sent back meanwhile, and what is guessed behind them."""
        chunks = sorted((chunk for chunk in chunks if chunk.sequence.block_table), key=lambda chunk: chunk.width)
        if not chunks:
            return None
        with span("forward"):
            columns = wanted_columns(chunks, self._sampler.vocab_size) if self._runner.picks_columns else None
            logits = self._runner.forward(chunks, columns)
        drawn = take_prompt_scores(chunks, logits, self._sampler.vocab_size)
        try:
            self._drafter.follow(chunks)
        except Exception:
            logger.exception("the drafter could not follow; its next guesses are worth less")
        self._totals.count_step(chunks)
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        return Computed(chunks, drawn)

    # ---- draw

    def _sample(self, chunks: Chunks, logits: Tensor) -> None:
        """Draw from the logits as long as they are those of the text that came out; where they are NaN, compute alone."""
        verification = Verification(chunks, logits)
        invalid = self._search(verification)
        while ready := verification.ready():
            for sequence, drawn in zip(ready, self._draw(ready, verification), strict=True):
                if isinstance(drawn, InvalidLogits):
                    invalid += [sequence] if verification.give_up(sequence) else []
                else:
                    self._faults.take(sequence, drawn)
            self._look_ahead([sequence for sequence in ready if sequence not in invalid])
        self._totals.count_drafts(verification.finish())
        for chunk in [chunk for chunk in chunks if chunk.sequence in invalid]:
            self._doubt(chunk, is_alone=len(chunks) == 1)

    def _draw(self, ready: list[Sequence], verification: Verification) -> list[Drawn]:
        """A record for each sequence, or why there is none."""
        logits, proposals = verification.logits(), verification.proposals()

        def draw(places: list[int]) -> list[Drawn]:
            some, rows = [ready[place] for place in places], logits if len(places) == len(ready) else logits[places]
            return self._sampler.test(some, rows, [proposals[place] for place in places], self._sampler.draw(some, rows))

        drawn: list[Drawn] = []
        for _, result in by_halves(list(range(len(ready))), draw):
            if isinstance(result, Exception):
                result = [SamplerFailure(f"drawing a token raised {type(result).__name__}: {result}")]
            drawn += result
        return drawn

    def _doubt(self, chunk: Chunk[Sequence], is_alone: bool) -> None:
        """The logits behind a chunk were NaN. Others may have caused that, whose keys and values it met with a weight of 0."""
        sequence = chunk.sequence
        if not sequence.block_table:  # it has gone meanwhile, or was sent back
            return
        if is_alone or not self._is_repeatable:
            self._roster.scheduler.space.wipe(sequence)
            self._faults.fail(sequence, InvalidLogits("the model's scores for the next token are not numbers"))
            return
        chunk.drafts, chunk.proposals = [], []
        sequence.num_computed -= chunk.num_tokens
        for computed in self._compute([chunk]):
            self._sample(*computed)

    # ---- searches

    def _search(self, verification: Verification) -> list[Sequence]:
        """Let searches see the logits of their members. Returns the members whose logits are NaN."""
        if not verification.has_searched:  # an index with no entries would take as long as a draw
            return []
        members, logits = verification.take_searched()
        are_numbers = self._sampler.are_numbers(logits).tolist()
        sound = [place for place, is_number in enumerate(are_numbers) if is_number]
        for search_group, seen, of_seen in by_group([members[place] for place in sound], logits[sound]):
            self._faults.contain(search_group.facade, self._observe, search_group, seen, of_seen)
        return [member for member, is_number in zip(members, are_numbers, strict=True) if not is_number]

    def _observe(self, search_group: SequenceGroup, members: list[Sequence], logits: Tensor) -> None:
        search_group.observe(members, logits)
        if search_group.is_ended:
            best, *others = search_group.results()
            best.alternatives = tuple(other.output() for other in others)
            self._roster.register(best)


def _has_no_more(sequence: Sequence) -> bool:
    """All tokens that it has are computed."""
    return sequence.num_computed == sequence.num_tokens
