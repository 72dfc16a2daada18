"""The engine: requests in, events out, one batched step at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from time import perf_counter

from ..constraints.vocabulary.vocabulary import Vocabulary
from ..sampling.logits_stages import LogitsStage
from ..sampling.stopping import StoppingCriterion
from .adapters.adapter import Adapter
from .adapters.loaded import LoadedAdapter, names_of
from .adapters.modules import why_no_adapters
from .adapters.registry import AdapterRegistry
from .device.threads import threads_used, use_threads
from .drafts.drafter import Drafter, NoDrafts
from .drafts.forced_text import ForcedText
from .errors import AdapterError, RequestError, UnsupportedModel
from .features import EngineFeatures
from .footprint import Footprint
from .kv_cache.kv_space import Brought, KVSpace
from .limits import Limits
from .loops.choice import pipeline_for
from .loops.faults import Faults
from .loops.look_ahead import LookAhead
from .loops.pipeline import Host
from .loops.plain_loop import PlainLoop
from .requests.admission import admit
from .requests.canonical import CanonicalPairs
from .requests.output import Event, RequestOutput
from .requests.request import Rank, Request
from .requests.sequence import Sequence
from .scheduling.policy import Arrival, FairShares, rank_of
from .scheduling.roster import Roster
from .scheduling.scheduler import Plan, Scheduler
from .scheduling.statistics import EngineStatistics, statistics_of
from .search.search_group import Surroundings
from .search.searches import Search
from .search.searches import begin as begin_search
from .search.searches import check as check_search
from .steps.runner import ModelRunner
from .steps.scorer import Scorer
from .steps.step_sampler import StepSampler
from .steps.whole_steps import WholeSteps


class Engine:
    """Runs requests in a continuous batch. Not thread-safe: one thread calls all methods.

    `vocabulary` gives the tokens their text and names the end-of-text ids (the union of tokenizer and generation config);
    ids of the model's head beyond it are never generated. Constraints must be compiled for the same tokens.

    `features` make it fast; the output is the same either way. `forced_text` knows how forced text is written in tokens, for
    requests that ask for `jump_forward`; `canonical` which tokens follow one another, for those that ask for that; `drafter`
    guesses ahead. `threads` is how many CPU threads a step uses (None: as set). `adapters` are those that requests may ask for, in
    the slots of `runner`. `logits_processors` take part in every request, before its own, and so do `stopping_criteria` where there
    is no constraint.
    """

    def __init__(
        self,
        runner: ModelRunner,
        vocabulary: Vocabulary,
        limits: Limits,
        features: EngineFeatures | None = None,
        *,
        forced_text: ForcedText | None = None,
        canonical: Callable[[], CanonicalPairs] | None = None,
        drafter: Drafter | None = None,
        threads: int | None = None,
        adapters: AdapterRegistry | None = None,
        logits_processors: tuple[LogitsStage, ...] = (),
        stopping_criteria: tuple[StoppingCriterion, ...] = (),
    ) -> None:
        self.runner, self.vocabulary, self.limits = runner, vocabulary, limits
        self.features = features or EngineFeatures()
        self.forced_text, self.threads, self.adapters = forced_text, threads, adapters
        self.canonical = canonical
        self.logits_processors, self.stopping_criteria = logits_processors, stopping_criteria
        self.drafter = drafter or NoDrafts()
        self.space = KVSpace(limits, reuses=self.features.prefix_cache, num_host_blocks=self.features.num_host_blocks)
        self.scheduler: Scheduler[Sequence] = Scheduler(limits, self.space, max_drafts=self.features.max_drafts)
        self.sampler = StepSampler(vocabulary.size, runner.decoder.device)
        self._ids, self._shares, self._totals = count(), FairShares(), EngineStatistics()
        self._roster = Roster(self.scheduler)
        self._faults = Faults(self._roster, self._totals)
        self._look_ahead = LookAhead(self._faults, self._totals, forced_text, skips_forced=self.features.skips_forced)
        whole_steps = WholeSteps.of(runner, self.sampler) if isinstance(self.drafter, NoDrafts) else None
        self._plain = PlainLoop(
            runner, self.sampler, self.drafter, self._roster, self._faults, self._totals, self._schedule, self._look_ahead,
            whole_steps,
        )  # fmt: skip
        host = Host(self.scheduler, self._schedule, self._totals.count_step, take=self._faults.take, begin_anew=self._begin_anew)
        self._pipeline = pipeline_for(self.features, limits, runner, self.sampler, host, self._look_ahead, threads)
        self.scheduler.keeps_plans = self._pipeline is None
        self._scheduled: weakref.ref[Plan[Sequence]] | None = None  # the last plan

    @property
    def has_work(self) -> bool:
        """Another step will do something."""
        return len(self._roster) > 0

    @property
    def statistics(self) -> EngineStatistics:
        """What has been done since the engine started, and what is in use now."""
        statistics = statistics_of(self._totals, self.scheduler, len(self._roster.quarantine))
        if self.adapters is not None and self.adapters.loaded:
            statistics.num_adapters, statistics.adapter_bytes = len(self.adapters.loaded), self.adapters.slots.num_bytes
            statistics.running_adapters = names_of(self.scheduler.running)
            statistics.waiting_adapters = names_of(self.scheduler.waiting)
        return statistics

    @property
    def footprint(self) -> Footprint:
        """What it takes of the machine."""
        cache_bytes = self.limits.num_blocks * self.runner.decoder.block_bytes(self.limits.block_size)
        model = self.runner.decoder
        return Footprint(model.num_bytes, cache_bytes, threads_used(self.threads), model.host_bytes)

    # ---- requests

    def add_request(self, request: Request) -> int:
        """Queue a request and return its id. Raises RequestError when it can never run as asked.

        When prompt and max_tokens together exceed the model's length, the output may get only as long as what is left.
        """
        sequence = self.admit(request)
        if request.sampling.jump_forward and request.constraint is not None and self.forced_text is None:
            raise RequestError("jump_forward needs the model's tokenizer, and this engine was made without one")
        self.adopt(sequence)
        self._look_ahead([sequence])
        return sequence.request_id

    def add_search(self, request: Request, search: Search) -> int:
        """Queue a request whose outputs are searched for (`beams.py`, `particles.py`) and return its id.

        Its one event is the final one: the best output, with the others as its `alternatives`. Raises RequestError when it can
        never run as asked, or asks for something that this search does not understand. It decides on the host after every step,
        so as long as it runs all sequences are in the plain loop.
        """
        check_search(request, search, self.limits, shares=self.features.prefix_cache)
        facade = self.admit(request, steers=False)
        if facade.stages is not None:
            raise RequestError("searches compare what the model says, and this engine has logits_processors that change it")
        if self.stopping_criteria and request.constraint is None:
            raise RequestError("searches end where the model or a constraint does, and this engine has stopping_criteria")
        facade.rank = self._rank(facade)
        roster = self._roster
        around = Surroundings(
            roster.enter, roster.enter_fork, roster.leave, self.next_id, self.vocabulary.size, self.runner.decoder.device
        )
        begin_search(facade, search, around)
        roster.register(facade)
        return facade.request_id

    def admit(self, request: Request, *, steers: bool = True) -> Sequence:
        """A request as a sequence, which is not queued. Raises RequestError when it can never run as asked."""
        return admit(
            self.next_id(), request, self.vocabulary, self.limits, self.adapters, steers=steers, canonical=self.canonical,
            stages=self.logits_processors, criteria=self.stopping_criteria,
        )  # fmt: skip

    def adopt(self, sequence: Sequence, brought: Brought | None = None) -> None:
        """Queue a sequence that is ready to run or ended elsewhere, with keys and values that it brings from elsewhere
        (`sessions.py`)."""
        self._roster.register(sequence)
        if sequence.is_finished:  # there is nothing to do but to tell
            return
        sequence.rank = self._rank(sequence)
        if brought is not None:
            self.space.bring(sequence, brought)
        self._roster.enter(sequence)

    def fork(self, request_id: int, seed: int | None = None) -> int:
        """A second request that continues what this one has so far, and shares its blocks; with `seed` it draws differently.

        Its events begin with the tokens it starts from. Raises RequestError when no such request is running.
        """
        parent = self.sequence(request_id)
        child_id = self.next_id()
        child = parent.fork(child_id, (*parent.rank, child_id), seed)
        self._roster.register(child)
        self._roster.enter_fork(parent, child)
        return child.request_id

    def cancel(self, request_id: int) -> RequestOutput:
        """End a request now and free all it holds; what it has produced is returned and no event follows.

        Raises RequestError when no such request is running.
        """
        sequence = self._roster[request_id]
        try:
            self._faults.contain(sequence, sequence.finish, "cancelled")
        except Exception as error:
            self._begin_anew(error)
        self._roster.strike(request_id)
        return sequence.output()

    def sequence(self, request_id: int) -> Sequence:
        """The progress of a request, with all that was drawn. Raises RequestError when no such request is waiting or running."""
        self.settle()
        sequence = self._roster[request_id]
        if sequence.is_finished:
            raise RequestError(f"no request {request_id} is waiting or running")
        if sequence.search_group is not None:
            raise RequestError(f"request {request_id} is a search, which has no one text to go on with")
        return sequence

    def scorer(self, max_contexts: int) -> Scorer:
        """The model for other texts than those of its sequences (`scorer.py`). Raises UnsupportedModel."""
        if type(self.runner) is not ModelRunner:
            raise UnsupportedModel("a scorer computes the model by itself, and several processes compute this one together")
        return Scorer(self.runner.decoder, self.runner.attend, self.limits, self.vocabulary.size, max_contexts)

    def ended(self, request_id: int) -> Sequence | None:
        """A request that has ended, whose final event is still to be given."""
        return self._roster.ended(request_id)

    def next_id(self) -> int:
        return next(self._ids)

    # ---- adapters

    def load_adapter(self, name: str, adapter: Adapter) -> LoadedAdapter:
        """Let requests ask for an adapter from now on. Raises AdapterError."""
        self.settle()
        return self.registry.load(name, adapter)

    def replace_adapter(self, name: str, adapter: Adapter) -> LoadedAdapter:
        """Have a name stand for another adapter from now on. Raises as `unload_adapter`, and where there is no memory for it."""
        self.settle()
        return self.registry.replace(name, adapter, (sequence.adapter for sequence in self._roster.unfinished()))

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter and free its slot. Raises AdapterInUse while requests with it are not finished, AdapterError for a name
        that there is not."""
        self.settle()
        self.registry.unload(name, (sequence.adapter for sequence in self._roster.unfinished()))

    def retire_adapter(self, name: str, *, is_leaving: bool = True) -> None:
        """Refuse new requests for an adapter that is to be unloaded, or take them again. Raises AdapterError."""
        self.registry.retire(name, is_leaving=is_leaving)

    @property
    def registry(self) -> AdapterRegistry:
        """Where its adapters are. Raises AdapterError where there can be none."""
        if self.adapters is None:
            raise AdapterError(why_no_adapters(self.runner.decoder.spec))
        return self.adapters

    # ---- steps

    def step(self) -> list[Event]:
        """Compute one batch: the next tokens of every sequence that is ready, and prompts as far as the budget goes.

        With `features.overlap` the events are those of the step before. Raises nothing: a sequence with which the step fails ends
        with an error, the others go on as if it had not been there.
        """
        try:
            if self._pipeline is not None and self._roster.quarantine.is_over and not self._roster.needs_plain_loop:
                self._pipeline.step()
            else:
                self.settle()
                self._step_plain()
        except Exception as error:  # of planning, or moving blocks: it is not known whose fault it is
            self._begin_anew(error)
        return self._roster.take_events()

    def _step_plain(self) -> None:
        if self.threads is None or self.threads == threads_used(None):
            self._plain.step()
            return
        with use_threads(self.threads):
            self._plain.step()

    def settle(self) -> None:
        """Read the tokens of a step that is still under way, so that each sequence has all that was drawn for it."""
        if self._pipeline is not None:
            self._pipeline.settle()

    def forget_prefixes(self) -> None:
        """Forget all prefixes that are known: the next prompts are computed anew. Requests that run are not touched."""
        self.settle()
        self.space.forget()

    def close(self) -> None:
        """End the other ranks of `tensor_parallel`, where there are any: what is asked for after that ends with RankLost."""
        self.settle()
        self.runner.close()

    def move_blocks(self) -> None:
        """Carry out the transfers of blocks that the KV space has planned."""
        self._plain.move_blocks()

    def _schedule(self) -> Plan[Sequence]:
        chunks = self.scheduler.schedule()
        if self._scheduled is None or self._scheduled() is not chunks:
            now, self._scheduled = perf_counter(), weakref.ref(chunks)
            for chunk in chunks:
                if chunk.sequence.scheduled_at is None:
                    chunk.sequence.scheduled_at = now
        if self.features.policy == "fair":
            self._shares.serve(chunk.sequence.rank[0] for chunk in chunks)
        return chunks

    def _begin_anew(self, error: Exception) -> None:
        """Let all sequences begin anew: a step failed as a whole."""
        if self._pipeline is not None:
            self._pipeline.abandon()
        self._faults.begin_anew(error)

    def _rank(self, sequence: Sequence) -> Rank:
        request, policy = sequence.request, self.features.policy
        begins = self._shares.begin(request.user, sequence.num_tokens + sequence.max_tokens) if policy == "fair" else 0.0
        arrival = Arrival(
            number=sequence.request_id,
            step=self._totals.num_steps,
            priority=request.priority,
            share_begins=begins,
            num_tokens=sequence.num_tokens,
            max_tokens=sequence.max_tokens,
            user=request.user,
        )
        return rank_of(policy, arrival)
