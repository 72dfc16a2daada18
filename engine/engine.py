"""The engine: requests in, events out, one batched step at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import count

from torch import Tensor

from ..constraints.errors import ConstraintLimit
from ..constraints.vocabulary import Vocabulary
from .admission import admit
from .automata import DeviceAutomata
from .config import Limits
from .device_masks import DeviceMasks
from .device_queue import queue_for
from .drafting import Drafter, NoDrafts
from .errors import ConfigError, InternalError, RequestError
from .features import EngineFeatures
from .forced_text import ForcedText
from .graphs import StepGraphs, capture_for
from .guide import MaskViews, fill_masks
from .host_masks import HostMasks
from .kv_space import Brought, KVSpace
from .output import Event, RequestOutput, TokenRecord
from .pipeline import Device, Host, Masks, Pipeline
from .policy import POLICIES, Arrival, FairShares, Rank
from .population import Population, Surroundings
from .request import Request
from .runner import ModelRunner
from .scheduler import Chunk, Scheduler
from .searches import Search, by_population
from .searches import begin as begin_search
from .searches import check as check_search
from .sequence import Sequence
from .slots import SlotTable
from .statistics import EngineStatistics, statistics_of
from .step_sampler import StepSampler
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
        self.drafter = drafter or NoDrafts()
        self.sampler = StepSampler(vocabulary.size, runner.decoder.device)
        self._sequences: dict[int, Sequence] = {}  # not yet finished, or with an event still to be given
        self._news: dict[int, Sequence] = {}  # those with an event to be given after this step
        self._ids = count()
        self._shares = FairShares()
        self._totals = EngineStatistics()
        self._retried: dict[Sequence, int] = {}  # sequences that only the plain loop is to go on with -> tokens they have
        self._fill_masks = MaskViews().fill if self.features.automaton == "device" else fill_masks
        self._pipeline = self._build_pipeline()

    @property
    def has_work(self) -> bool:
        """Another step will do something."""
        return bool(self._sequences)

    @property
    def statistics(self) -> EngineStatistics:
        """What has been done since the engine started, and what is in use now."""
        return statistics_of(self._totals, self.scheduler)

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
        begin_search(facade, search, Surroundings(self.scheduler, self.next_id, self.vocabulary.size, self.runner.decoder.device))
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
        self.scheduler.add(sequence)

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
        self.scheduler.add_fork(parent, child)
        return child.request_id

    def step(self) -> list[Event]:
        """Compute one batch: the next tokens of every sequence that is ready, and prompts as far as the budget goes.

        With `features.overlap` the events are those of the step before.
        """
        if self._pipeline is not None and not self._retried:
            self._pipeline.step()
            return self._take_events()
        with use_threads(self.threads):
            chunks = self._schedule()
            logits = self._compute(chunks)
            if logits is not None:
                verification = Verification(chunks, logits)
                self._search(verification)
                self._sample(verification)
            self._retried = {sequence: length for sequence, length in self._retried.items() if _stands_at(sequence, length)}
            return self._take_events()

    def cancel(self, request_id: int) -> RequestOutput:
        """End a request now and free all it holds; what it has produced is returned and no event follows.

        Raises RequestError when no such request is running.
        """
        if request_id not in self._sequences:
            raise RequestError(f"no request {request_id} is waiting or running")
        sequence = self._sequences.pop(request_id)
        self._news.pop(request_id, None)
        if not sequence.is_finished:
            sequence.finish("cancelled")
            self._free(sequence)
        return sequence.output()

    def settle(self) -> None:
        """Read the tokens of a step that is still under way, so that each sequence has all that was drawn for it."""
        if self._pipeline is not None:
            self._pipeline.settle()

    # ---- the parts of a step

    def _schedule(self) -> list[Chunk[Sequence]]:
        chunks = self.scheduler.schedule()
        if self.features.policy == "fair":
            self._shares.serve(chunk.sequence.rank[0] for chunk in chunks)
        return chunks

    def _build_pipeline(self) -> Pipeline | None:
        """The loop with host and device side by side; None for the plain one, which is below."""
        features, where = self.features, self.runner.decoder.device
        if not features.overlap and features.automaton == "host":
            return None
        host = Host(
            self.scheduler, self._schedule, self._totals.count_step, accept=self._accept, begin_anew=self._retry
        )
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
        for chunk, guessed in zip(with_room, self.drafter.propose(with_room), strict=True):
            guide = chunk.sequence.guide
            chunk.drafts = guessed[: chunk.num_draftable]
            if guide is not None and not chunk.proposals:  # those were drawn under the masks
                chunk.drafts = guide.legal_prefix(chunk.drafts)
        chunks.sort(key=lambda chunk: chunk.width)

    def _compute(self, chunks: list[Chunk[Sequence]]) -> Tensor | None:
        """Run the model over the chunks and what is guessed behind them; None when nothing was computed."""
        try:
            self.move_blocks()
            self._draft(chunks)
            if not chunks:
                return None
            logits = self.runner.forward(chunks)
            self.drafter.follow(chunks)
        except Exception as error:
            self._fail_step(chunks, error)
            return None
        self._totals.count_step(chunks)
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        return logits

    def _fail_step(self, chunks: list[Chunk[Sequence]], error: Exception) -> None:
        """Out of memory, say: what was in the batch is lost, the others begin anew."""
        self.scheduler.distrust()
        self._fail([chunk.sequence for chunk in chunks], error)

    def _retry(self, sequences: list[Sequence], error: Exception) -> None:
        """The pipeline failed with these: the plain loop goes on, until each of them has come further or has ended."""
        logger.warning("a step failed and is computed again (%s: %s)", type(error).__name__, error)
        self.scheduler.distrust()
        self._retried = {sequence: sequence.num_tokens for sequence in sequences}

    def _fail(self, sequences: list[Sequence], error: Exception) -> None:
        for sequence in sequences:
            self._contain(_visible(sequence), _raise, error)

    def _search(self, verification: Verification) -> None:
        """Let searches see the logits of their members."""
        for population, members, logits in by_population(*verification.take_searched()):
            self._contain(population.facade, self._observe, population, members, logits)

    def _observe(self, population: Population, members: list[Sequence], logits: Tensor) -> None:
        population.observe(members, logits)
        if population.is_ended:
            best, *others = population.results()
            best.alternatives = tuple(other.output() for other in others)
            self._sequences[best.request_id] = self._news[best.request_id] = best

    def _free(self, sequence: Sequence) -> None:
        if sequence.population is None:
            self.scheduler.remove(sequence)
        else:
            sequence.population.close()

    def _sample(self, verification: Verification) -> None:
        """Draw from the logits as long as they are those of the text that came out."""
        while ready := verification.ready():
            self._accept(ready, self._drawn(ready, verification))
            self._look_ahead(ready)
        drafted, accepted = verification.finish()
        self._totals.num_drafted_tokens += drafted
        self._totals.num_accepted_tokens += accepted

    def _drawn(self, ready: list[Sequence], verification: Verification) -> list[TokenRecord | None]:
        try:
            logits = verification.logits()
            return self.sampler.test(ready, logits, verification.proposals(), self.sampler.draw(ready, logits))
        except Exception as error:
            self._fail(ready, error)
            return [None] * len(ready)

    def _accept(self, sequences: list[Sequence], drawn: list[TokenRecord | None]) -> None:
        for sequence, record in zip(sequences, drawn, strict=True):
            self._contain(sequence, _accept_drawn, sequence, record)

    def _look_ahead(self, sequences: Iterable[Sequence], takes_forced: bool = True) -> None:
        """Prepare the next masks, and take at once what leaves no choice: forced text and tokens, and the end."""
        takes_forced = takes_forced and self.features.skips_forced
        pending = [sequence for sequence in sequences if _is_guided(sequence)]
        while pending:
            for sequence in pending:
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
        guide, sampling = sequence.guide, sequence.request.sampling
        if self.forced_text is None or guide is None or not sampling.jump_forward or sampling.logprobs is not None:
            return
        for token_id in self.forced_text.tokens(guide.constraint, guide.state, sequence.token_ids):
            if sequence.is_finished or not guide.legal_prefix([token_id]):
                return
            sequence.accept(TokenRecord(token_id, logprob=None, kept_mass=None, num_allowed=1))
            sequence.num_jumped += 1
            self._totals.num_jumped_tokens += 1

    def _contain(self, sequence: Sequence, action: Callable[..., None], *arguments: object) -> None:
        """Run one sequence's part of a step; whatever it raises ends that sequence alone."""
        if sequence.is_finished:
            return
        try:
            action(*arguments)
        except ConstraintLimit as error:
            sequence.finish("constraint_limit", str(error))
        except Exception as error:
            logger.exception("request %d failed", sequence.request_id)
            sequence.finish("error", f"{type(error).__name__}: {error}")
        if sequence.is_finished:
            self._free(sequence)
        if sequence.has_news:
            self._news[sequence.request_id] = sequence

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


def _stands_at(sequence: Sequence, length: int) -> bool:
    return not sequence.is_finished and sequence.num_tokens == length


def _visible(sequence: Sequence) -> Sequence:
    """What is known outside: of a search's members their request."""
    return sequence if sequence.population is None else sequence.population.facade


def _raise(error: Exception) -> None:
    raise error


def _accept_drawn(sequence: Sequence, record: TokenRecord | None) -> None:
    if record is None:
        raise InternalError("the mask allowed no token; a constraint's masks are never empty")
    sequence.accept(record)


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
