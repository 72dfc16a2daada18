"""`LLM` for asyncio: the same calls, awaited, with concurrent calls in one batch.

Waiting for the engine happens in threads. Each wait is for one event, so a task that is cancelled lets go at once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import Any, Literal, Self, Unpack

from .async_session import AsyncSession
from .chat import Reply, reply_of
from .constraint_choice import ConstraintOptions
from .constraints import Compiler, ToolStyle, Vocabulary
from .conversation import Message
from .engine import EngineConfig, EngineFeatures, EngineStatistics, Request, RequestOutput
from .engine import Event as EngineEvent
from .engine.adapters.loaded import LoadedAdapter
from .engine.errors import BudgetTooSmall
from .engine.models.tokenizer import Tokenizer
from .engine.search.beams import BeamSearch
from .engine.search.particles import Particles
from .engine.search.searches import Search
from .engine.sessions.sessions import CacheUse
from .engine.steps.scorer import Scorer
from .errors import UsageError
from .events import Delta, Done, Event
from .llm import LLM, Progress
from .model_folder import EMBEDDED
from .outputs import GenerationOutput
from .pieces import PieceReader, TokenPiece
from .planning import Plan
from .sampling import SamplingParams
from .session import Session
from .stream_events import StreamEvents
from .tool_loop import (
    MAX_CALLS,
    MAX_ROUNDS,
    OnError,
    Replied,
    RoundStarted,
    ToolEnded,
    ToolEvent,
    ToolLimits,
    ToolRun,
    ToolsDone,
    ToolStarted,
    run_call_async,
    tool_loop,
)
from .tools import ToolCall, ToolLike


class AsyncLLM:
    """A model ready to answer under asyncio.

    Cancelling a task cancels its requests. model: a loaded `LLM` to share, or what `LLM` takes, with its other options.

    Raises UsageError for options of a model that is loaded already; other errors are those of `LLM`.
    """

    def __init__(self, model: LLM | str | os.PathLike[str] = EMBEDDED, **options: Any) -> None:
        if isinstance(model, LLM) and options:
            raise UsageError(f"{next(iter(options))}= belongs to the LLM, which is loaded already: give it to LLM(...)")
        self.llm = model if isinstance(model, LLM) else LLM(model, **options)

    async def close(self) -> None:
        """See `LLM.close`."""
        await asyncio.to_thread(self.llm.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def tokenizer(self) -> Tokenizer:
        """See `LLM`, as for the four that follow."""
        return self.llm.tokenizer

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens as bytes."""
        return self.llm.vocabulary

    @property
    def compiler(self) -> Compiler:
        """Compiles constraints for this model."""
        return self.llm.compiler

    @property
    def config(self) -> EngineConfig:
        """The config in force."""
        return self.llm.config

    @property
    def features(self) -> EngineFeatures:
        """The features in force."""
        return self.llm.features

    @property
    def default_sampling(self) -> SamplingParams:
        """See `LLM.default_sampling`."""
        return self.llm.default_sampling

    @property
    def statistics(self) -> EngineStatistics:
        """See `LLM.statistics`."""
        return self.llm.statistics

    @property
    def adapters(self) -> Mapping[str, LoadedAdapter]:
        """See `LLM.adapters`."""
        return self.llm.adapters

    async def load_adapter(self, name: str, path: str | os.PathLike[str], *, replace: bool = False) -> LoadedAdapter:
        """See `LLM.load_adapter`."""
        return await asyncio.to_thread(self.llm.load_adapter, name, path, replace=replace)

    async def unload_adapter(self, name: str, *, wait: bool = False) -> None:
        """See `LLM.unload_adapter`."""
        await asyncio.to_thread(self.llm.unload_adapter, name, wait=wait)

    def profile(self, folder: str | os.PathLike[str]) -> AbstractContextManager[None]:
        """See `LLM.profile`."""
        return self.llm.profile(folder)

    def scorer(self, max_contexts: int = 8) -> Scorer:
        """See `LLM.scorer`."""
        return self.llm.scorer(max_contexts)

    async def generate(
        self,
        prompts: str | Sequence[str],
        *,
        sampling: SamplingParams | Sequence[SamplingParams] | None = None,
        priority: int = 0,
        user: str = "",
        progress: Progress | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """See `LLM.generate`."""
        plans = await asyncio.to_thread(self.llm.planner.plan_all, prompts, sampling, constraint, adapter)
        return await self._outputs([plan.ranked(priority, user) for plan in plans], progress)

    async def beam_search(
        self,
        prompts: str | Sequence[str],
        *,
        width: int = 4,
        n: int = 1,
        length_penalty: float = 1.0,
        early_stopping: bool | Literal["never"] = False,
        sampling: SamplingParams | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """See `LLM.beam_search`."""
        search = BeamSearch(width=width, num_wanted=n, length_penalty=length_penalty, early_stopping=early_stopping)
        plans = await asyncio.to_thread(self.llm.planner.plan_all, prompts, sampling or SamplingParams(), constraint, adapter)
        return await self._found(plans, search)

    async def particles(
        self,
        prompts: str | Sequence[str],
        *,
        count: int = 8,
        resample_below: float = 0.5,
        sampling: SamplingParams | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """See `LLM.particles`."""
        search = Particles(count=count, resample_below=resample_below)
        plans = await asyncio.to_thread(self.llm.planner.plan_all, prompts, sampling or SamplingParams(), constraint, adapter)
        return await self._found(plans, search)

    async def stream(
        self,
        prompt: str,
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncGenerator[Event, None]:
        """See `LLM.stream`."""
        (plan,) = await asyncio.to_thread(self.llm.planner.plan_all, prompt, sampling, constraint, adapter)
        async with aclosing(self._stream(plan)) as events:
            async for event in events:
                yield event

    async def stream_text(
        self,
        prompt: str,
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncGenerator[Delta | Done, None]:
        """See `LLM.stream_text`."""
        (plan,) = await asyncio.to_thread(self.llm.planner.plan_all, prompt, sampling, constraint, adapter)
        async with aclosing(self._engine_events(plan)) as events:
            async for event in events:
                if event.text:
                    yield Delta((), event.text)
                if event.output is not None:
                    yield Done(plan.output(event.output))

    async def stream_tokens(
        self,
        prompt: str,
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncGenerator[TokenPiece | Done, None]:
        """See `LLM.stream_tokens`."""
        (plan,) = await asyncio.to_thread(self.llm.planner.plan_all, prompt, sampling, constraint, adapter)
        reader = PieceReader(self.llm.vocabulary, plan.constraint)
        async with aclosing(self._engine_events(plan)) as events:
            async for event in events:
                for piece in reader.read_all(record.token_id for record in event.tokens):
                    yield piece
                if event.output is not None:
                    yield Done(plan.output(event.output))

    async def open(
        self,
        prompt: str | Sequence[Message],
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncSession:
        """See `LLM.open`."""
        return await self._opened(lambda: self.llm.open(prompt, sampling=sampling, adapter=adapter, **constraint))

    async def resume(
        self,
        path: str | os.PathLike[str],
        *,
        cache: CacheUse = "private",
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncSession:
        """See `LLM.resume`."""
        return await self._opened(lambda: self.llm.resume(path, cache=cache, adapter=adapter, **constraint))

    async def chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Reply:
        """See `LLM.chat`."""
        turn = self.llm.planner.turn(messages, tools, tool_choice, tool_style, constraint)
        plan = await asyncio.to_thread(self.llm.planner.plan_turn, turn, sampling)
        (output,) = await self._outputs([plan.adapted(adapter)], None)
        return reply_of(output, turn, plan.constraint)

    async def stream_chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncGenerator[Event, None]:
        """See `LLM.stream_chat`."""
        turn = self.llm.planner.turn(messages, tools, tool_choice, tool_style, constraint)
        plan = await asyncio.to_thread(self.llm.planner.plan_turn, turn, sampling)
        async with aclosing(self._stream(plan.adapted(adapter))) as events:
            async for event in events:
                yield event

    async def run_tools(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike],
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        max_rounds: int = MAX_ROUNDS,
        max_calls: int = MAX_CALLS,
        max_tokens: int | None = None,
        on_error: OnError = "tell",
        **constraint: Unpack[ConstraintOptions],
    ) -> ToolRun:
        """See `LLM.run_tools`. Functions may be coroutines; others run in threads. The calls of a reply run at the same time."""
        events = self.stream_tools(
            messages, tools=tools, tool_choice=tool_choice, tool_style=tool_style, sampling=sampling, adapter=adapter,
            max_rounds=max_rounds, max_calls=max_calls, max_tokens=max_tokens, on_error=on_error, **constraint,
        )  # fmt: skip
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ToolsDone):
                    return event.run
        raise AssertionError("the events of a loop end with ToolsDone")

    async def stream_tools(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike],
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        max_rounds: int = MAX_ROUNDS,
        max_calls: int = MAX_CALLS,
        max_tokens: int | None = None,
        on_error: OnError = "tell",
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncGenerator[ToolEvent, None]:
        """See `LLM.stream_tools`. Calls end in their order, however long each takes."""
        limits = ToolLimits(max_rounds=max_rounds, max_calls=max_calls, max_tokens=max_tokens, on_error=on_error)
        loop = tool_loop(messages, tools, tool_choice, limits, awaits=True)
        while loop.goes_on:
            yield RoundStarted(loop.round)
            turn = self.llm.planner.turn(loop.messages, loop.tools, loop.tool_choice, tool_style, constraint)
            chosen = loop.sampling(sampling or self.default_sampling)
            plan = (await asyncio.to_thread(self.llm.planner.plan_turn, turn, chosen)).adapted(adapter)
            reply: Reply | None = None
            try:
                async with aclosing(self._stream(plan)) as events:
                    async for event in events:
                        yield event
                        reply = reply_of(event.output, turn, plan.constraint) if isinstance(event, Done) else None
            except BudgetTooSmall:
                if not loop.is_short_of_tokens:
                    raise
                loop.end_for_lack_of_tokens()
                break
            assert reply is not None, "a stream ends with Done"
            calls = loop.take(reply)
            yield Replied(loop.round - 1, reply)
            async with aclosing(_results(calls, on_error)) as told:
                async for each in told:
                    if isinstance(each, ToolEnded):
                        loop.give(each.result)
                    yield each
        yield ToolsDone(loop.run())

    async def _stream(self, plan: Plan) -> AsyncGenerator[Event, None]:
        typed = StreamEvents(plan)
        async with aclosing(self._engine_events(plan)) as events:
            async for event in events:
                for each in typed.feed(event):
                    yield each

    async def _engine_events(self, plan: Plan) -> AsyncGenerator[EngineEvent, None]:
        """All events of one request, which is cancelled when nobody reads on."""
        request_ids = await self._submit([plan.request])
        try:
            is_final = False
            while not is_final:
                event = await asyncio.to_thread(self.llm.driver.next_event, request_ids[0])
                is_final = event.is_final
                yield event
        finally:
            self._cancel(request_ids)

    async def _outputs(self, plans: Sequence[Plan], progress: Progress | None) -> list[GenerationOutput]:
        request_ids = await self._submit([request for plan in plans for request in plan.requests])
        ended = [asyncio.ensure_future(self._final(request_id)) for request_id in request_ids]
        outputs, waiting = list[GenerationOutput](), iter(ended)
        try:
            for plan in plans:
                outputs.append(plan.output(*[await next(waiting) for _ in plan.requests]))
                if progress is not None:
                    progress(len(outputs), len(plans))
        finally:
            _abandon(ended)
            self._cancel(request_ids)
        return outputs

    async def _found(self, plans: Sequence[Plan], search: Search) -> list[GenerationOutput]:
        request_ids = await self._submit([plan.request for plan in plans], search)
        ended = [asyncio.ensure_future(self._final(request_id)) for request_id in request_ids]
        try:
            return [plan.found(await each) for plan, each in zip(plans, ended, strict=True)]
        finally:
            _abandon(ended)
            self._cancel(request_ids)

    async def _opened(self, opened: Callable[[], Session]) -> AsyncSession:
        """The session that is opened in a thread. A task cancelled meanwhile leaves none behind."""
        opening = asyncio.ensure_future(asyncio.to_thread(opened))
        try:
            return AsyncSession(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)
            raise

    async def _final(self, request_id: int) -> RequestOutput:
        while True:
            event = await asyncio.to_thread(self.llm.driver.next_event, request_id)
            if event.output is not None:
                return event.output

    async def _submit(self, requests: Sequence[Request], search: Search | None = None) -> list[int]:
        """Queue all requests or none. A task cancelled meanwhile leaves none behind."""
        submitting = asyncio.ensure_future(asyncio.to_thread(self.llm.driver.submit, requests, search=search))
        try:
            return await asyncio.shield(submitting)
        except asyncio.CancelledError:
            submitting.add_done_callback(self._cancel_submitted)
            raise

    def _cancel_submitted(self, submitting: asyncio.Future[list[int]]) -> None:
        if submitting.exception() is None:
            self._cancel(submitting.result())

    def _cancel(self, request_ids: Sequence[int]) -> None:
        """End the requests that are still running, without waiting: the engine may be in the middle of a step."""
        for request_id in request_ids:
            asyncio.get_running_loop().run_in_executor(None, self.llm.driver.cancel, request_id)


async def _results(
    calls: Sequence[tuple[str, ToolCall]], on_error: OnError
) -> AsyncGenerator[ToolStarted | ToolEnded, None]:
    """Run calls at the same time, and tell what came of them in their order. Those that nobody waits for are cancelled."""
    running = [asyncio.ensure_future(run_call_async(*each, on_error)) for each in calls]
    try:
        for call_id, call in calls:
            yield ToolStarted(call_id, call)
        for each in running:
            yield ToolEnded(await each)
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _abandon(waiting: Iterable[asyncio.Future[RequestOutput]]) -> None:
    """Wait no longer for outputs that nobody will read."""
    for each in waiting:
        each.cancel()


def _close_opened(opening: asyncio.Future[Session]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        asyncio.get_running_loop().run_in_executor(None, opening.result().close)
