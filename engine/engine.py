"""The engine: requests in, events out, one batched step at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from time import perf_counter

from torch import Tensor

from ..constraints.errors import ConstraintLimit
from ..constraints.vocabulary import Vocabulary
from .admission import admit
from .automata import DeviceAutomata
from .config import Limits
from .device_masks import DeviceMasks
from .device_queue import queue_for
from .drafting import Drafter, NoDrafts
from .errors import ConfigError, EngineFailure, InternalError, InvalidLogits, ModelFailure, RequestError, SamplerFailure
from .features import EngineFeatures
from .forced_text import ForcedText
from .graphs import StepGraphs, capture_for
from .guide import MaskViews, fill_masks
from .host_masks import HostMasks
from .isolation import by_halves
from .kv_space import Brought, KVSpace
from .output import Event, RequestOutput, TokenRecord
from .pipeline import Device, Host, Masks, Pipeline
from .policy import POLICIES, Arrival, FairShares, Rank
from .population import Population, Surroundings
from .quarantine import Quarantine
from .request import Request
from .runner import ModelRunner
from .scheduler import Chunk, Scheduler
from .searches import Search, by_population
from .searches import begin as begin_search
from .searches import check as check_search
from .sequence import Sequence
from .slots import SlotTable
from .statistics import EngineStatistics, statistics_of
from .step_sampler import Drawn, StepSampler
from .threads import use_threads
from .verification import Verification
from .visiting import VisitingPipeline
from .visits import Visits

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
        self._fill_masks = MaskViews().fill if self.features.automaton == "device" else fill_masks
        self._surroundings = Surroundings(
            self._enter, self._enter_fork, self._leave, self.next_id, vocabulary.size, runner.decoder.device
        )
        self._pipeline = self._build_pipeline()

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
        sequence = admit(self.next_id(), request, self.vocabulary, self.limits)
        if request.sampling.jump_forward and request.constraint is not None and self.forced_text is None:
            raise RequestError("jump_forward needs the model's tokenizer, and this engine was made without one")
        self.adopt(sequence)
        self._look_ahead([sequence])
        return sequence.request_id

    def add_search(self, request: Request, search: Search) -> int:
        """Queue a request whose outputs are searched for (`beams.py`, `particles.py`) and return its id.

        Its one event is the final one: the best output, with the others as its `alternatives`. Raises RequestError when it can
        never run as asked, or asks for something that this search does not understand.
        """
        if self._pipeline is not None:
            raise RequestError(
                "beam search and particles decide on the host after every step; they run in an engine with overlap=False, "
                'automaton="host"'
            )
        check_search(request, search, self.limits, shares=self.features.prefix_cache)
        facade = admit(self.next_id(), request, self.vocabulary, self.limits)
        facade.rank = self._rank(facade)
        begin_search(facade, search, self._surroundings)
        self._sequences[facade.request_id] = facade
        return facade.request_id

    def adopt(self, sequence: Sequence, brought: Brought | None = None) -> None:
        """Queue a sequence that is ready to run or ended elsewhere, with keys and values that it brings from elsewhere
        (`sessions.py`)."""
        self._sequences[sequence.request_id] = sequence
        if sequence.is_finished:  # there is nothing to do but to tell
            self._news[sequence.request_id] = sequence
            return
        sequence.rank = self._rank(sequence)
        if brought is not None:
            self.space.bring(sequence, brought)
        self._enter(sequence)

    def sequence(self, request_id: int) -> Sequence:
        """The progress of a request, with all that was drawn. Raises RequestError when no such request is waiting or running."""
        self.settle()
        sequence = self._sequences.get(request_id)
        if sequence is None or sequence.is_finished:
            raise RequestError(f"no request {request_id} is waiting or running")
        if sequence.population is not None:
            raise RequestError(f"request {request_id} is a search, which has no one text to go on with")
        return sequence

    def ended(self, request_id: int) -> Sequence | None:
        """A request that has ended, whose final event is still to be given."""
        sequence = self._news.get(request_id)
        return sequence if sequence is not None and sequence.is_finished else None

    def next_id(self) -> int:
        return next(self._ids)

    def fork(self, request_id: int, seed: int | None = None) -> int:
        """A second request that continues what this one has so far, and shares its blocks; with `seed` it draws differently.

        Its events begin with the tokens it starts from. Raises RequestError when no such request is running.
        """
        parent = self.sequence(request_id)
        child_id = self.next_id()
        child = parent.fork(child_id, (*parent.rank, child_id), seed)
        self._sequences[child.request_id] = child
        self._enter_fork(parent, child)
        return child.request_id

    def step(self) -> list[Event]:
        """Compute one batch: the next tokens of every sequence that is ready, and prompts as far as the budget goes.

        With `features.overlap` the events are those of the step before. Raises nothing: a sequence with which the step fails ends
        with an error, the others go on as if it had not been there.
        """
        try:
            if self._pipeline is not None and self._quarantine.is_over:
                self._pipeline.step()
            else:
                with use_threads(self.threads):
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

    def settle(self) -> None:
        """Read the tokens of a step that is still under way, so that each sequence has all that was drawn for it."""
        if self._pipeline is not None:
            self._pipeline.settle()

    # ---- the parts of a step

    def _step(self) -> None:
        """In the plain loop: compute, then draw."""
        self._quarantine.let_in()
        chunks = self._schedule()
        self.move_blocks()
        if not chunks:
            return
        self._draft(chunks)
        for group, logits in self._computed(chunks):
            self._sample(group, logits)

    def _schedule(self) -> list[Chunk[Sequence]]:
        chunks = self.scheduler.schedule()
        now = perf_counter()
        for chunk in chunks:
            if chunk.sequence.scheduled_at is None:
                chunk.sequence.scheduled_at = now
        if self.features.policy == "fair":
            self._shares.serve(chunk.sequence.rank[0] for chunk in chunks)
        return chunks

    def _build_pipeline(self) -> Pipeline | None:
        """The loop with host and device side by side; None for the plain one, which is below."""
        features, where = self.features, self.runner.decoder.device
        if not features.overlap and features.automaton == "host":
            return None
        host = Host(self.scheduler, self._schedule, self._totals.count_step, take=self._take, begin_anew=self._begin_anew)
        slots = SlotTable(self.limits.max_sequences, where)
        queue = queue_for(where, features.overlap, self.threads)
        device = Device(queue, self.runner, self.sampler, slots)
        masks: Masks = HostMasks(self.sampler, slots, self._look_ahead)
        if features.automaton == "device":
            automata = DeviceAutomata(slots.num_slots, self.vocabulary.size, where, queue=queue)
            masks = DeviceMasks(self.sampler, slots, automata, self._look_ahead)
            if features.steps_per_visit > 1 or features.cuda_graphs:
                visits = self._build_visits(slots, automata)
                return VisitingPipeline(host, device, masks, visits, overlaps=features.overlap)
        return Pipeline(host, device, masks, overlaps=features.overlap)

    def _build_visits(self, slots: SlotTable, automata: DeviceAutomata) -> Visits:
        features, limits = self.features, self.limits
        if not self.runner.can_decode:
            raise ConfigError(
                "steps_per_visit and cuda_graphs need a model whose decode step reads its input from the device; "
                "this one's family is computed otherwise. Leave them at 1 and False"
            )
        longest = limits.max_model_len + 2 * features.steps_per_visit  # the host reserves blocks for as many steps ahead
        return Visits(
            self.runner,
            self.sampler,
            slots,
            automata,
            num_steps=features.steps_per_visit,
            max_blocks=-(-longest // limits.block_size),
            block_size=limits.block_size,
            graphs=StepGraphs(capture_for(slots.device)) if features.cuda_graphs else None,
        )

    def move_blocks(self) -> None:
        """Carry out what the space has planned; before a forward pass."""
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
        chunks = sorted((chunk for chunk in chunks if chunk.sequence.block_table), key=lambda chunk: chunk.width)
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

    def _search(self, verification: Verification) -> list[Sequence]:
        """Let searches see the logits of their members. Returns the members whose logits are NaN."""
        members, logits = verification.take_searched()
        if not members:
            return []
        are_numbers = self.sampler.are_numbers(logits).tolist()
        sound = [place for place, is_number in enumerate(are_numbers) if is_number]
        for population, seen, of_seen in by_population([members[place] for place in sound], logits[sound]):
            self._contain(population.facade, self._observe, population, seen, of_seen)
        return [member for member, is_number in zip(members, are_numbers, strict=True) if not is_number]

    def _observe(self, population: Population, members: list[Sequence], logits: Tensor) -> None:
        population.observe(members, logits)
        if population.is_ended:
            best, *others = population.results()
            best.alternatives = tuple(other.output() for other in others)
            self._sequences[best.request_id] = self._news[best.request_id] = best

    def _sample(self, chunks: list[Chunk[Sequence]], logits: Tensor) -> None:
        """Draw from the logits as long as they are those of the text that came out; where they are NaN, compute alone."""
        verification = Verification(chunks, logits)
        invalid = self._search(verification)
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

    def _look_ahead(self, sequences: Iterable[Sequence], takes_forced: bool = True) -> None:
        """Prepare the next masks, and take at once what leaves no choice: forced text and tokens, and the end."""
        takes_forced = takes_forced and self.features.skips_forced
        pending = [sequence for sequence in sequences if _is_guided(sequence)]
        while pending:
            for sequence in pending:
                if sequence.request.sampling.jump_forward:
                    self._contain(sequence, self._jump_forward, sequence)
            pending = [sequence for sequence in pending if not sequence.is_finished]
            self._fill_masks([sequence.guide for sequence in pending if sequence.guide is not None])
            moved = []
            for sequence in pending:
                length = sequence.num_tokens
                self._contain(sequence, _take_forced, sequence, takes_forced)
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
        if sequence.is_finished:
            self._free(sequence)

    def _fail(self, sequence: Sequence, error: InternalError) -> None:
        """End a sequence with which the engine itself fails."""
        self._totals.num_failures += 1
        self._totals.num_failures_on_end += 1
        self._contain(_visible(sequence), _raise, error)

    def _blame(self, sequence: Sequence, error: InternalError) -> None:
        """The model raises for this sequence: nothing that it was to compute is there, also for those that share it."""
        lost = self.space.disown(sequence, sequence.num_computed)
        self._fail(sequence, error)
        self.scheduler.restart_users(lost)

    def _doubt(self, chunk: Chunk[Sequence], is_alone: bool) -> None:
        """The logits behind a chunk were NaN. Others may have caused that, whose keys and values it met with a weight of 0."""
        sequence = chunk.sequence
        if not sequence.block_table:  # it has gone meanwhile, or was sent back
            return
        if is_alone or not self._is_repeatable:
            self.space.wipe(sequence)
            self._fail(sequence, InvalidLogits("the model's scores for the next token are not numbers"))
            return
        chunk.drafts, chunk.proposals = [], []
        sequence.num_computed -= chunk.num_tokens
        for group, logits in self._computed([chunk]):
            self._sample(group, logits)

    def _begin_anew(self, error: Exception) -> None:
        """A step failed as a whole: all sequences go on from what they have produced, one after another."""
        logger.error("a step failed as a whole; all sequences begin anew", exc_info=error)
        if self._pipeline is not None:
            self._pipeline.abandon()
        guilty = self._quarantine.begin(self._computed_ones())
        if guilty is not None:
            self._convict(guilty, error)

    def _computed_ones(self) -> Iterator[Sequence]:
        """All that are computed: requests, and of searches their members."""
        for sequence in self._sequences.values():
            if not sequence.is_finished:
                yield from [sequence] if sequence.population is None else sequence.population.begin_anew()

    def _convict(self, guilty: Sequence, error: Exception) -> None:
        """End the request with which the engine fails again and again; nobody but its search knows of it any more."""
        guilty.block_table.clear()
        request = _visible(guilty)
        request.fail(EngineFailure(f"the engine failed again and again with this request: {type(error).__name__}: {error}"))
        if guilty.population is not None:
            guilty.population.members.remove(guilty)
            guilty.population.close()
        self._totals.num_failures += 1
        self._totals.num_failures_on_end += 1
        self._news[request.request_id] = request

    # ---- the way in, and the ends of a request

    def _enter(self, sequence: Sequence) -> None:
        (self.scheduler if self._quarantine.is_over else self._quarantine).add(sequence)

    def _enter_fork(self, parent: Sequence, child: Sequence) -> None:
        if self._quarantine.is_over:
            self.scheduler.add_fork(parent, child)
        else:
            self._quarantine.add(child)

    def _leave(self, sequence: Sequence) -> None:
        if self._quarantine.remove(sequence):
            self.space.release(sequence)  # it has no blocks, but may have brought some
        else:
            self.scheduler.remove(sequence)

    def _free(self, sequence: Sequence) -> None:
        """Give back what a sequence that has ended holds, or the members of its search."""
        if sequence.population is None:
            self._leave(sequence)
        else:
            sequence.population.close()

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


def _visible(sequence: Sequence) -> Sequence:
    """What is known outside: of a search's members their request."""
    return sequence if sequence.population is None else sequence.population.facade


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
