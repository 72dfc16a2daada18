"""The engine: requests in, events out, one batched step at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from torch import Tensor

from ..constraints.errors import ConstraintLimit
from ..constraints.vocabulary import Vocabulary
from .admission import admit
from .config import Limits
from .drafting import Drafter, NoDrafts
from .errors import EngineFailure, InternalError, InvalidLogits, ModelFailure, RequestError, SamplerFailure
from .features import EngineFeatures
from .forced_text import ForcedText
from .guide import fill_masks
from .isolation import by_halves
from .kv_space import KVSpace
from .output import Event, RequestOutput, TokenRecord
from .policy import POLICIES, Arrival, FairShares, Rank
from .quarantine import Quarantine
from .request import Request
from .runner import ModelRunner
from .scheduler import Chunk, Scheduler
from .sequence import Sequence
from .statistics import EngineStatistics, statistics_of
from .step_sampler import Drawn, StepSampler
from .threads import use_threads
from .verification import Verification

logger = logging.getLogger(__name__)


class Engine:
    """Runs requests in a continuous batch. Not thread-safe: one thread calls all methods.

    `vocabulary` gives the tokens their text and names the end-of-text ids (the union of tokenizer and generation config);
    ids of the model's head beyond it are never generated. Constraints must be compiled for the same tokens.

    `features` make it fast; the output is the same either way. `forced_text` knows how forced text is written in tokens, for
    requests that ask for `jump_forward`; `drafter` guesses ahead. `threads` is how many CPU threads a step uses (None: as set).
    """

    def __init__(
        self,
        runner: ModelRunner,
        vocabulary: Vocabulary,
        limits: Limits,
        features: EngineFeatures | None = None,
        *,
        forced_text: ForcedText | None = None,
        drafter: Drafter | None = None,
        threads: int | None = None,
    ) -> None:
        self.runner, self.vocabulary, self.limits = runner, vocabulary, limits
        self.features = features or EngineFeatures()
        self.forced_text, self.threads = forced_text, threads
        self.space = KVSpace(limits, reuses=self.features.prefix_cache, num_host_blocks=self.features.num_host_blocks)
        self.scheduler: Scheduler[Sequence] = Scheduler(limits, self.space, max_drafts=self.features.max_drafts)
        self._quarantine = Quarantine(self.scheduler)
        self._is_repeatable = not runner.decoder.spec.is_recurrent  # keys and values may be written twice, a state may not
        self.drafter = drafter or NoDrafts()
        self.sampler = StepSampler(vocabulary.size, runner.decoder.device)
        self._sequences: dict[int, Sequence] = {}  # not yet finished, or with an event still to be given
        self._news: dict[int, Sequence] = {}  # those with an event to be given after this step
        self._ids = count()
        self._shares = FairShares()
        self._totals = EngineStatistics()

    @property
    def has_work(self) -> bool:
        """Another step will do something."""
        return bool(self._sequences)

    @property
    def statistics(self) -> EngineStatistics:
        """What has been done since the engine started, and what is in use now."""
        return statistics_of(self._totals, self.scheduler, len(self._quarantine))

    def add_request(self, request: Request) -> int:
        """Queue a request and return its id. Raises RequestError when it can never run as asked.

        When prompt and max_tokens together exceed the model's length, the output may get only as long as what is left.
        """
        sequence = admit(next(self._ids), request, self.vocabulary, self.limits)
        if request.sampling.jump_forward and request.constraint is not None and self.forced_text is None:
            raise RequestError("jump_forward needs the model's tokenizer, and this engine was made without one")
        sequence.rank = self._rank(sequence)
        (self.scheduler if self._quarantine.is_over else self._quarantine).add(sequence)
        self._sequences[sequence.request_id] = sequence
        self._look_ahead([sequence])
        return sequence.request_id

    def fork(self, request_id: int, seed: int | None = None) -> int:
        """A second request that continues what this one has so far, and shares its blocks; with `seed` it draws differently.

        Its events begin with the tokens it starts from. Raises RequestError when no such request is running.
        """
        parent = self._sequences.get(request_id)
        if parent is None or parent.is_finished:
            raise RequestError(f"no request {request_id} is waiting or running")
        child_id = next(self._ids)
        child = parent.fork(child_id, (*parent.rank, child_id), seed)
        self._sequences[child.request_id] = child
        if self._quarantine.is_over:
            self.scheduler.add_fork(parent, child)
        else:
            self._quarantine.add(child)
        return child.request_id

    def step(self) -> list[Event]:
        """Compute one batch: the next tokens of every sequence that is ready, and prompts as far as the budget goes.

        Raises nothing: a sequence with which the step fails ends with an error, the others go on as if it had not been there.
        """
        with use_threads(self.threads):
            try:
                self._step()
            except Exception as error:  # of planning, or moving blocks: it is not known whose fault it is
                self._begin_anew(error)
            return self._take_events()

    def cancel(self, request_id: int) -> RequestOutput:
        """End a request now and free all it holds; what it has produced is returned and no event follows.

        Raises RequestError when no such request is running.
        """
        sequence = self._sequences.get(request_id)
        if sequence is None:
            raise RequestError(f"no request {request_id} is waiting or running")
        try:
            self._contain(sequence, sequence.finish, "cancelled")
        except Exception as error:
            self._begin_anew(error)
        del self._sequences[request_id]
        self._news.pop(request_id, None)
        return sequence.output()

    # ---- the parts of a step

    def _step(self) -> None:
        self._quarantine.let_in()
        chunks = self.scheduler.schedule()
        if self.features.policy == "fair":
            self._shares.serve(chunk.sequence.rank[0] for chunk in chunks)
        self._move_blocks()
        if not chunks:
            return
        self._draft(chunks)
        for group, logits in self._computed(chunks):
            self._sample(group, logits)

    def _move_blocks(self) -> None:
        if transfers := self.space.take_transfers():
            self.runner.move_blocks(transfers)
            self.drafter.move_blocks(transfers)

    def _draft(self, chunks: list[Chunk[Sequence]]) -> None:
        """Guess what comes next, where there is room; only what the constraint allows is worth computing."""
        with_room = [chunk for chunk in chunks if chunk.num_draftable]
        if not with_room:
            return
        try:
            proposed = self.drafter.propose(with_room)
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

    def _computed(self, chunks: list[Chunk[Sequence]]) -> Iterator[tuple[list[Chunk[Sequence]], Tensor]]:
        """The chunks and the logits behind them: all at once, or where that fails group by group without the guilty.

        Who shares blocks that others compute in the same step begins behind them, and comes after them.
        """
        chunks = sorted(chunks, key=lambda chunk: chunk.sequence.num_computed)
        groups = by_halves(chunks, self._forward) if self._is_repeatable else [(chunks, self._forward(chunks))]
        for group, result in groups:
            if isinstance(result, Exception):
                self._blame(group[0].sequence, ModelFailure(f"the forward pass raised {type(result).__name__}: {result}"))
            elif result is not None:
                yield result

    def _forward(self, chunks: list[Chunk[Sequence]]) -> tuple[list[Chunk[Sequence]], Tensor] | None:
        """Run the model over the chunks, without those sent back meanwhile, and what is guessed behind them."""
        chunks = sorted((chunk for chunk in chunks if chunk.sequence.block_table), key=lambda chunk: chunk.width > 1)
        if not chunks:
            return None
        logits = self.runner.forward(chunks)
        try:
            self.drafter.follow(chunks)
        except Exception:
            logger.exception("the drafter could not follow; its next guesses are worth less")
        self._totals.count_step(chunks)
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        return chunks, logits

    def _sample(self, chunks: list[Chunk[Sequence]], logits: Tensor) -> None:
        """Draw from the logits as long as they are those of the text that came out; where they are NaN, compute alone."""
        verification = Verification(chunks, logits)
        invalid: list[Sequence] = []
        while ready := verification.ready():
            for sequence, drawn in zip(ready, self._drawn(ready, verification), strict=True):
                if isinstance(drawn, InvalidLogits):
                    invalid += [sequence] if verification.give_up(sequence) else []
                else:
                    self._take(sequence, drawn)
            self._look_ahead(sequence for sequence in ready if sequence not in invalid)
        drafted, accepted = verification.finish()
        self._totals.num_drafted_tokens += drafted
        self._totals.num_accepted_tokens += accepted
        for chunk in [chunk for chunk in chunks if chunk.sequence in invalid]:
            self._doubt(chunk, is_alone=len(chunks) == 1)

    def _drawn(self, ready: list[Sequence], verification: Verification) -> list[Drawn]:
        """A record for each sequence, or why there is none."""
        logits, proposals = verification.logits(), verification.proposals()

        def draw(places: list[int]) -> list[Drawn]:
            some, rows = [ready[place] for place in places], logits if len(places) == len(ready) else logits[places]
            return self.sampler.test(some, rows, [proposals[place] for place in places], self.sampler.draw(some, rows))

        drawn: list[Drawn] = []
        for _, result in by_halves(list(range(len(ready))), draw):
            if isinstance(result, Exception):
                result = [SamplerFailure(f"drawing a token raised {type(result).__name__}: {result}")]
            drawn += result
        return drawn

    def _take(self, sequence: Sequence, drawn: Drawn) -> None:
        if isinstance(drawn, TokenRecord):
            self._totals.num_failures_on_end = 0
            self._contain(sequence, sequence.accept, drawn)
        elif isinstance(drawn, SamplerFailure):
            self._fail(sequence, drawn)
        else:
            self._contain(sequence, _raise, drawn)

    # ---- what is forced

    def _look_ahead(self, sequences: Iterable[Sequence]) -> None:
        """Prepare the next masks, and take at once what leaves no choice: forced text and tokens, and the end."""
        pending = [sequence for sequence in sequences if _is_guided(sequence)]
        while pending:
            for sequence in pending:
                if sequence.request.sampling.jump_forward:
                    self._contain(sequence, self._jump_forward, sequence)
            pending = [sequence for sequence in pending if not sequence.is_finished]
            fill_masks([sequence.guide for sequence in pending if sequence.guide is not None])
            moved = []
            for sequence in pending:
                length = sequence.num_tokens
                self._contain(sequence, _take_forced, sequence, self.features.skips_forced)
                if sequence.num_tokens > length and not sequence.is_finished:
                    moved.append(sequence)
            pending = moved

    def _jump_forward(self, sequence: Sequence) -> None:
        """Append the tokens of forced text, if the request wants that and no log-probabilities."""
        guide = sequence.guide
        if self.forced_text is None or guide is None or sequence.request.sampling.logprobs is not None:
            return
        for token_id in self.forced_text.tokens(guide.constraint, guide.state, sequence.token_ids):
            if sequence.is_finished or not guide.legal_prefix([token_id]):
                return
            sequence.accept(TokenRecord(token_id, logprob=None, kept_mass=None, num_allowed=1))
            sequence.num_jumped += 1
            self._totals.num_jumped_tokens += 1

    # ---- when something fails

    def _contain(self, sequence: Sequence, action: Callable[..., None], *arguments: object) -> None:
        """Run one sequence's part of a step; whatever it raises ends that sequence alone."""
        if sequence.is_finished:
            return
        try:
            try:
                action(*arguments)
            except ConstraintLimit as error:
                sequence.finish("constraint_limit", str(error))
        except Exception as error:
            logger.error("request %d failed", sequence.request_id, exc_info=error)
            sequence.fail(error)
        if sequence.has_news:
            self._news[sequence.request_id] = sequence
        if sequence.is_finished and not self._quarantine.remove(sequence):
            self.scheduler.remove(sequence)

    def _fail(self, sequence: Sequence, error: InternalError) -> None:
        """End a sequence with which the engine itself fails."""
        self._totals.num_failures += 1
        self._totals.num_failures_on_end += 1
        self._contain(sequence, _raise, error)

    def _blame(self, sequence: Sequence, error: InternalError) -> None:
        """The model raises for this sequence: nothing that it was to compute is there, also for those that share it."""
        lost = self.space.disown(sequence, sequence.num_computed)
        self._fail(sequence, error)
        self.scheduler.restart_users(lost)

    def _doubt(self, chunk: Chunk[Sequence], is_alone: bool) -> None:
        """The logits behind a chunk were NaN. Others may have caused that, whose keys and values it met with a weight of 0."""
        sequence = chunk.sequence
        if is_alone or not self._is_repeatable:
            self.space.wipe(sequence)
            self._fail(sequence, InvalidLogits("the model's scores for the next token are not numbers"))
            return
        chunk.drafts, chunk.proposals = [], []
        sequence.num_computed -= chunk.num_tokens
        for group, logits in self._computed([chunk]):
            self._sample(group, logits)

    def _begin_anew(self, error: Exception) -> None:
        """A step could not be planned: all sequences go on from what they have produced, one after another."""
        logger.error("a step failed as a whole; all sequences begin anew", exc_info=error)
        guilty = self._quarantine.begin(each for each in self._sequences.values() if not each.is_finished)
        if guilty is not None:
            guilty.block_table.clear()
            message = f"the engine failed again and again with this request: {type(error).__name__}: {error}"
            guilty.fail(EngineFailure(message))
            self._totals.num_failures += 1
            self._totals.num_failures_on_end += 1
            self._news[guilty.request_id] = guilty

    # ---- the ends of a request

    def _take_events(self) -> list[Event]:
        news, self._news = self._news, {}
        for request_id, sequence in news.items():
            if sequence.is_finished:
                del self._sequences[request_id]
        return [sequence.take_event() for sequence in news.values()]

    def _rank(self, sequence: Sequence) -> Rank:
        request, policy = sequence.request, self.features.policy
        begins = self._shares.begin(request.user, sequence.num_tokens + sequence.max_tokens) if policy == "fair" else 0.0
        return POLICIES[policy](Arrival(sequence.request_id, self._totals.num_steps, request.priority, begins))


def _is_guided(sequence: Sequence) -> bool:
    return sequence.guide is not None and not sequence.is_finished


def _raise(error: Exception) -> None:
    raise error


def _take_forced(sequence: Sequence, skips_forced: bool) -> None:
    """End a complete output; append the only legal token unless its log-probability is wanted."""
    guide = sequence.guide
    assert guide is not None
    if guide.failure is not None:
        raise guide.failure
    if guide.is_complete:
        sequence.finish("stop")
    elif skips_forced and sequence.request.sampling.logprobs is None and (token_id := guide.only_token) is not None:
        sequence.accept(TokenRecord(token_id, logprob=None, kept_mass=None, num_allowed=1))
