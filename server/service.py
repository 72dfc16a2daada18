"""What all endpoints share: the model, the thread that steps it, and one way from a checked request to events."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ..chat import Turn
from ..constraint_choice import ConstraintChoice
from ..constraints import Source
from ..engine.adapters.loaded import LoadedAdapter
from ..engine.requests.output import Event, RequestOutput
from ..engine.requests.request import Request
from ..errors import UsageError
from ..llm import LLM
from ..planning import Plan
from ..sampling import SamplingParams
from .client import CALLER, CLIENT
from .compiling.compiler import ConstraintCompiler
from .compiling.lanes import Lanes
from .errors import ApiError, api_error
from .giving_way import GivingWay
from .metrics import Metrics, RequestWatch
from .own_parts import check_names
from .reasoning import is_about_budget
from .refused_bodies import RefusedBodies
from .replies import ReplyReader, reader_of
from .requested_constraint import AskedConstraint
from .running import RunningRequests
from .sampling_options import SamplingBody
from .searching import spread
from .settings import ServerSettings
from .stored.asking import OwnResponses, ResponseStore
from .stored.store import StoredResponses
from .traces import OutputSpan, Traces, closing_all
from .worker import EngineWorker

T = TypeVar("T")
ReplyEnding: TypeAlias = "partial[ReplyReader]"
PLANNING_THREADS = 2
DEFAULT_MODEL = "default"  # a name that every server knows its model by
FAILURES_IN_A_ROW = 3  # of the engine, after which it is looked at more closely whether it works
PROBE_SECONDS = 1.0


class Service:
    """The model and the thread that steps it, from `start` to `stop`, on one event loop."""

    def __init__(
        self, llm: LLM, settings: ServerSettings, model_names: Sequence[str], tracer_provider: Any | None = None
    ) -> None:
        """model_names: all names of the model; answers tell the first one."""
        check_names(settings)
        self.llm, self.settings, self.model_names = llm, settings, tuple(model_names)
        self.model_name = model_name = self.model_names[0]
        for name in self.adapters:
            self.check_adapter_name(name)
        self.traces = Traces(tracer_provider, model_name)
        self.metrics = Metrics(
            model_name,
            lambda: self.worker.statistics,
            lambda: llm.compiler.num_mask_misses,
            llm.driver.footprint,
            _cache_config(llm),
            llm.config.max_adapters,
        )
        self.worker = EngineWorker(llm.driver, self.metrics.step_tokens.observe)
        num_processes = settings.compile_processes or max((os.cpu_count() or 1) // 4, 1)
        lanes = Lanes(llm.vocabulary, llm.compiler.limits, num_processes, settings.compile_memory_bytes)
        self.compiler = ConstraintCompiler(llm.compiler, lanes, self.metrics, settings.max_compiles)
        self.giving_way = GivingWay(lanes, settings.max_compiles, self.compiler.full, lanes.still.want)
        self.refused_bodies = RefusedBodies(self.metrics.refused_again)
        self.metrics.watch_compiles(
            lambda: {"quick": lanes.num_waiting, "slow": lanes.num_slow, "unread": self.giving_way.num_unread}
        )
        self._pool = ThreadPoolExecutor(PLANNING_THREADS, thread_name_prefix="planning")
        self._counting = ThreadPoolExecutor(1, thread_name_prefix="counting")
        self.requests = RunningRequests()
        self.responses: ResponseStore = OwnResponses(StoredResponses(settings.max_stored_responses, settings.max_stored_bytes))
        self.on_running: Callable[[Sequence[Plan]], object] = lambda _: None  # is told of each request that begins to run
        self.lent_adapters: Mapping[str, Path] = {}  # those that are loaded when they are asked for
        self._num_open = self._num_asked = 0
        self.is_draining = False

    def start(self) -> None:
        self.worker.start()
        self.compiler.start()

    async def stop(self) -> None:
        self.is_draining = True
        await self.worker.stop()
        await self.compiler.stop()
        for pool in (self._pool, self._counting):
            pool.shutdown(wait=False, cancel_futures=True)

    def drain(self, seconds: float | None) -> None:
        """Take no more requests; those that are compiled or run after so many seconds end with an error. None: they may finish."""
        self.is_draining = True
        if seconds is not None:
            for end_all in (self.giving_way.end_all, self.compiler.end_all, self.worker.end_all):
                asyncio.get_running_loop().call_later(seconds, end_all, _shutting_down())

    @property
    def model_len(self) -> int:
        """How many tokens prompt and output may have together."""
        assert self.llm.config.max_model_len is not None, "a loaded model's config is resolved"
        return self.llm.config.max_model_len

    async def obstacle(self) -> str | None:
        """The reason why no requests should be sent here, None when they should. After failures a token is generated,
        to see how it is now."""
        if not self.worker.is_alive:
            return "the engine has stopped"
        if self.is_draining:
            return "shutting down"
        failures = self.worker.statistics.num_failures_on_end
        if failures < FAILURES_IN_A_ROW or await self.generates():
            return None
        return f"generation fails: the last {failures} outputs ended with an error of the engine"

    async def generates(self) -> bool:
        """Whether the engine gives a token within a second."""
        text_tokens = self.llm.vocabulary.text_tokens
        prompt = next((token_id,) for token_id, text in enumerate(text_tokens) if text)
        request = Request(prompt_token_ids=prompt, sampling=SamplingParams(max_tokens=1, temperature=0.0))
        with suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS), self.worker.submitted([request]) as answers:
                return all([event.output is None or event.output.finish_reason != "error" async for _, event in answers])
        return False

    @property
    def num_open(self) -> int:
        """Outputs that are planned, wait or run."""
        return self._num_open

    @property
    def num_asked(self) -> int | None:
        """Outputs that were planned so far; None while one is open."""
        return None if self._num_open else self._num_asked

    @property
    def adapters(self) -> Mapping[str, LoadedAdapter]:
        """Those that clients can name as a model."""
        return self.llm.driver.adapters

    @property
    def adapter_paths(self) -> dict[str, Path]:
        """Where the adapters are that clients can name, those that are loaded when they are asked for included."""
        return {**self.lent_adapters, **{name: adapter.path for name, adapter in self.adapters.items()}}

    def adapter_of(self, model: str | None) -> str | None:
        """The adapter that a request runs with whose model has this name, None for the model alone."""
        return model if model in self.adapters else None

    def told_name(self, plan: Plan) -> str:
        """What the answer to a request calls the model."""
        return plan.requests[0].adapter or self.model_name

    def check_adapter_name(self, name: str) -> None:
        """Raises UsageError for the name of an adapter that is one of the model's."""
        if name in (*self.model_names, DEFAULT_MODEL):
            raise UsageError(f'the model itself is called "{name}"; give the adapter another name')

    def check_model(self, name: str | None) -> None:
        if not name or self.settings.any_model or name in (*self.model_names, DEFAULT_MODEL, *self.adapter_paths):
            return
        known = " and ".join(map(repr, [*self.model_names, *self.adapter_paths]))
        raise ApiError(404, f"there is no model {name!r} here; this server has {known}", param="model", code="model_not_found")

    async def forget_prefixes(self) -> None:
        """Empty the cache of prefixes. Raises ApiError (403) for callers that are no operators."""
        if not CALLER.get().is_operator:
            message = "the cache of prefixes is shared by all: it is emptied with one of the operator's keys (--admin-api-key)"
            raise ApiError(403, message, code="operators_only")
        if not self.worker.is_alive:
            raise ApiError(503, "the engine has stopped", code="engine_stopped")
        await self.worker.forget_prefixes()

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of `function`, which runs away from the event loop: tokenizing and templates take their time."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def apart(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of `function`, which may take long and much memory: one after another, and nothing else waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._counting, function, *arguments)

    async def plan_turn(self, turn: Turn, sampling: SamplingParams, body: SamplingBody, constraint: AskedConstraint) -> Plan:
        """A conversation, ready to run. constraint: what in the request its constraint was made of."""
        with self._place(1):
            asked, ending = _stopping(turn.choice, sampling, body)
            seconds = await self._compile(turn.choice, constraint)
            plan = await self.in_thread(self.llm.planner.plan_replies, turn, asked)
        plan = self._ready(plan, ending, seconds, body)
        if asked.heal_prompt and reader_of(plan).has_parts:
            reason = "calls, reasoning, tags and stop strings are read from a reply's first token on, which is not written anew"
            raise ApiError(400, f"heal_prompt: {reason}", param="heal_prompt", code="invalid_value")
        return plan

    async def plan_prompt(
        self, prompt: str | Sequence[int], constraint: AskedConstraint, sampling: SamplingParams, body: SamplingBody
    ) -> Plan:
        """A prompt, as text or as tokens, ready to run."""
        with self._place(1):
            asked, ending = _stopping(constraint.choice, sampling, body)
            seconds = await self._compile(constraint.choice, constraint)
            plan = await self.in_thread(self._plan_prompt, prompt, constraint.choice, asked)
        return self._ready(plan, ending, seconds, body)

    def _ready(self, plan: Plan, ending: ReplyEnding | None, seconds: float | None, body: SamplingBody) -> Plan:
        if ending is not None:
            ends = partial(ending, constraint=plan.constraint, begun=plan.requests[0].begun)
            plan = replace(plan, requests=tuple(replace(request, ending=ends) for request in plan.requests))
        if body.truncate_prompt_tokens is not None:
            plan = _truncated(plan, self.model_len - 1 if body.truncate_prompt_tokens == -1 else body.truncate_prompt_tokens)
        if body.priority and self.llm.features.policy != "priority":
            body.ignored.append("priority")
        if body.cache_salt:
            plan = replace(plan, requests=tuple(replace(request, cache_salt=body.cache_salt) for request in plan.requests))
        plan = plan.adapted(self.adapter_of(body.model))
        return replace(plan, compile_seconds=seconds).ranked(body.priority or 0, body.user or "")

    @asynccontextmanager
    async def running(self, plans: Sequence[Plan], names: Sequence[str] = ()) -> AsyncIterator[AsyncIterator[tuple[int, Event]]]:
        """The events of all outputs of some prompts, numbered in their order, while the block runs. All are admitted, or none.

        names: under which the request can be ended from elsewhere.
        """
        requests, begun = [request for plan in plans for request in plan.requests], time.perf_counter()
        search = plans[0].search
        submitted = requests if search is None else [plan.requests[0] for plan in plans]
        if self.settings.mask_metrics:
            submitted = [each if each.constraint is None else replace(each, is_measured=True) for each in submitted]
        with self._place(len(requests), is_new=False):
            async with self.worker.submitted(submitted, search) as answers:
                self.on_running(plans)
                self.metrics.requested_n.observe(len(requests))
                self.metrics.requested_tokens.observe(requests[0].sampling.max_tokens)
                watches = [RequestWatch(self.metrics, request.constraint is not None, begun) for request in requests]
                seconds = self.settings.request_seconds
                timer = asyncio.get_running_loop().call_later(seconds, answers.put, _too_long(seconds))
                try:
                    with self.requests.named(names, answers.put), closing_all(map(self.traces.output, requests)) as spans:
                        told = answers if search is None else spread(answers, len(plans[0].requests))
                        yield self._watched(told, watches, spans)
                finally:
                    timer.cancel()
                    self._close(watches)

    async def _watched(
        self, answers: AsyncIterator[tuple[int, Event]], watches: Sequence[RequestWatch], spans: Sequence[OutputSpan]
    ) -> AsyncIterator[tuple[int, Event]]:
        async for index, event in answers:
            watches[index].see(event)
            spans[index].see(event)
            if event.output is not None:
                _check_success(event.output)
            yield index, event

    def _close(self, watches: Sequence[RequestWatch]) -> None:
        for watch in watches:
            watch.close()
        lengths = [watch.num_tokens for watch in watches if watch.num_tokens is not None]
        if len(lengths) == len(watches):
            self.metrics.longest_output.observe(max(lengths))

    @contextmanager
    def _place(self, count: int, *, is_new: bool = True) -> Iterator[None]:
        """A place for outputs that are planned, wait or run, as long as the block. is_new: they were not planned here."""
        if is_new and self.is_draining:
            raise _shutting_down()
        self._check_room(count)
        self._num_open += count
        self._num_asked += count if is_new else 0
        try:
            yield
        finally:
            self._num_open -= count

    def _check_room(self, num_more: int) -> None:
        if num_more > self.settings.max_open:
            message = f"{num_more} outputs, and this server takes {self.settings.max_open} at once"
            raise ApiError(400, message, code="limit_exceeded")
        if self._num_open + num_more > self.settings.max_open:
            raise ApiError(
                429,
                f"{self._num_open} outputs run or wait, and this server takes {self.settings.max_open}; try again later",
                code="queue_full",
                headers={"Retry-After": "1"},
            )

    async def _compile(self, choice: ConstraintChoice, asked: AskedConstraint) -> float | None:
        """Compile the constraint of a choice. Returns the seconds until it was there; None without a constraint."""
        if choice.source is None:
            return None
        assert isinstance(choice.source, Source), "clients send sources, not compiled constraints"
        started = time.perf_counter()
        try:
            with self.traces.span("compile constraint", **{"maskwright.constraint": type(choice.source).__name__}):
                await self.compiler.compile(choice.source, CLIENT.get())
        except Exception as error:
            is_budget = is_about_budget(error, choice.source)
            raise (api_error(error, "thinking_token_budget") if is_budget else asked.blame(error)) from error
        return time.perf_counter() - started

    def _plan_prompt(self, prompt: str | Sequence[int], choice: ConstraintChoice, sampling: SamplingParams) -> Plan:
        planner = self.llm.planner
        if not isinstance(prompt, str):
            return planner.plan_tokens(prompt, sampling, choice)
        (plan,) = planner.plan_all(prompt, sampling, {"constraint": choice.source})
        return plan


def _truncated(plan: Plan, num_tokens: int) -> Plan:
    """The plan with the last tokens of its prompt."""
    if len(plan.requests[0].prompt_token_ids) <= num_tokens:
        return plan
    if num_tokens == 0:
        message = "truncate_prompt_tokens leaves nothing of the prompt"
        raise ApiError(400, message, param="truncate_prompt_tokens", code="invalid_value")
    cut = (replace(each, prompt_token_ids=each.prompt_token_ids[-num_tokens:], num_shared_tokens=0) for each in plan.requests)
    return replace(plan, requests=tuple(cut))


def _stopping(choice: ConstraintChoice, sampling: SamplingParams, body: SamplingBody) -> tuple[SamplingParams, ReplyEnding | None]:
    """(what the engine is asked for, what ends a reply with a constraint at the stop strings: the engine looks for them
    in free text alone)."""
    if not sampling.stop or choice.source is None:
        return sampling, None
    ending = partial(
        ReplyReader,
        choice.source,
        stop=sampling.stop,
        shows_stop=sampling.include_stop_in_output,
        stops_inside=body.stop_inside is not False,
    )
    return replace(sampling, stop=()), ending


def _cache_config(llm: LLM) -> dict[str, object]:
    """The KV cache in the words of vLLM's `cache_config_info`."""
    config = llm.config
    return {
        "block_size": config.block_size,
        "cache_dtype": config.kv_dtype,
        "enable_prefix_caching": llm.features.prefix_cache,
        "gpu_memory_utilization": config.kv_memory_fraction,
        "num_gpu_blocks": config.num_kv_blocks,
        "num_cpu_blocks": llm.features.num_host_blocks,
    }


def _shutting_down() -> ApiError:
    return ApiError(503, "this server is shutting down", code="shutting_down", headers={"Retry-After": "1"})


def _too_long(seconds: float) -> ApiError:
    message = f"the request took longer than {seconds} seconds"
    return ApiError(504, message, code="request_timeout", headers={"X-Should-Retry": "false"})  # OpenAI's clients heed that


def _check_success(output: RequestOutput) -> None:
    if output.finish_reason == "error":
        raise ApiError(500, f"generation failed: {output.error}", code="generation_failed")
    if output.finish_reason == "constraint_limit":  # half an answer is none; OpenAI's clients heed the header
        message, headers = f"generation failed: {output.error}", {"X-Should-Retry": "false"}
        raise ApiError(500, message, code="constraint_limit", headers=headers)
