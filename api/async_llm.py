"""`LLM` for asyncio: the same calls, awaited, with concurrent calls in one batch.

Searches and sessions are those of `llm`, the model inside. Waiting for the engine happens in threads. Each wait is for one event,
so a task that is cancelled lets go at once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Unpack

from .chat import Reply, reply_of
from .constraint_choice import ConstraintOptions
from .constraints import ToolStyle
from .conversation import Message
from .engine import Event as EngineEvent
from .engine import Request, RequestOutput
from .events import Delta, Done, Event
from .llm import LLM
from .model_folder import EMBEDDED
from .outputs import GenerationOutput
from .planning import Plan
from .sampling import SamplingParams
from .stream_events import StreamEvents
from .tools import ToolLike


class AsyncLLM:
    """A model ready to answer under asyncio. Takes the arguments of `LLM`, or a loaded `LLM` to share. Cancelling a
    task cancels its requests."""

    def __init__(self, model: LLM | str | os.PathLike[str] = EMBEDDED, **options: Any) -> None:
        self.llm = model if isinstance(model, LLM) else LLM(model, **options)

    async def generate(
        self,
        prompts: str | Sequence[str],
        *,
        sampling: SamplingParams | Sequence[SamplingParams] | None = None,
        priority: int = 0,
        user: str = "",
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """See `LLM.generate`."""
        plans = await asyncio.to_thread(self.llm.planner.plan_all, prompts, sampling, constraint)
        return await self._outputs([plan.ranked(priority, user) for plan in plans])

    async def stream(
        self, prompt: str, *, sampling: SamplingParams | None = None, **constraint: Unpack[ConstraintOptions]
    ) -> AsyncGenerator[Event, None]:
        """See `LLM.stream`."""
        (plan,) = await asyncio.to_thread(self.llm.planner.plan_all, prompt, sampling, constraint)
        async with aclosing(self._stream(plan)) as events:
            async for event in events:
                yield event

    async def stream_text(
        self, prompt: str, *, sampling: SamplingParams | None = None, **constraint: Unpack[ConstraintOptions]
    ) -> AsyncGenerator[Delta | Done, None]:
        """See `LLM.stream_text`."""
        (plan,) = await asyncio.to_thread(self.llm.planner.plan_all, prompt, sampling, constraint)
        async with aclosing(self._engine_events(plan)) as events:
            async for event in events:
                if event.text:
                    yield Delta((), event.text)
                if event.output is not None:
                    yield Done(plan.output(event.output))

    async def chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Reply:
        """See `LLM.chat`."""
        turn = self.llm.planner.turn(messages, tools, tool_choice, tool_style, constraint)
        plan = await asyncio.to_thread(self.llm.planner.plan_turn, turn, sampling)
        (output,) = await self._outputs([plan])
        return reply_of(output, turn, plan.constraint)

    async def stream_chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> AsyncGenerator[Event, None]:
        """See `LLM.stream_chat`."""
        turn = self.llm.planner.turn(messages, tools, tool_choice, tool_style, constraint)
        plan = await asyncio.to_thread(self.llm.planner.plan_turn, turn, sampling)
        async with aclosing(self._stream(plan)) as events:
            async for event in events:
                yield event

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

    async def _outputs(self, plans: Sequence[Plan]) -> list[GenerationOutput]:
        request_ids = await self._submit([request for plan in plans for request in plan.requests])
        try:
            ended = iter(await asyncio.gather(*map(self._final, request_ids)))
            return [plan.output(*[next(ended) for _ in plan.requests]) for plan in plans]
        finally:
            self._cancel(request_ids)

    async def _final(self, request_id: int) -> RequestOutput:
        while True:
            event = await asyncio.to_thread(self.llm.driver.next_event, request_id)
            if event.output is not None:
                return event.output

    async def _submit(self, requests: Sequence[Request]) -> list[int]:
        """Queue all requests or none. A task cancelled meanwhile leaves none behind."""
        submitting = asyncio.ensure_future(asyncio.to_thread(self.llm.driver.submit, requests))
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
