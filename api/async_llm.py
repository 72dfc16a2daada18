"""`LLM` for asyncio: the same calls, awaited, with concurrent calls in one batch.

Waiting for the engine happens in threads. Each wait is for one event, so a task that is cancelled lets go at once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Unpack

from .chat import Message, Reply, plan_turn, reply_of
from .constraint_choice import ConstraintOptions
from .engine import Event as EngineEvent
from .events import Event
from .llm import LLM
from .model_folder import EMBEDDED
from .outputs import GenerationOutput
from .planning import Plan
from .sampling import SamplingParams
from .stream_events import StreamEvents
from .tools import ToolLike


class AsyncLLM:
    """Takes the arguments of `LLM`, or a loaded `LLM` to share. Cancelling a task cancels its requests."""

    def __init__(self, model: LLM | str | os.PathLike[str] = EMBEDDED, **options: Any) -> None:
        self.llm = model if isinstance(model, LLM) else LLM(model, **options)

    async def generate(
        self,
        prompts: str | Sequence[str],
        *,
        sampling: SamplingParams | Sequence[SamplingParams] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """See `LLM.generate`."""
        plans = await asyncio.to_thread(self.llm.planner.plan_all, prompts, sampling, constraint)
        return await asyncio.gather(*(self._output(plan) for plan in plans))

    async def stream(
        self, prompt: str, *, sampling: SamplingParams | None = None, **constraint: Unpack[ConstraintOptions]
    ) -> AsyncGenerator[Event, None]:
        """See `LLM.stream`."""
        (plan,) = await asyncio.to_thread(self.llm.planner.plan_all, prompt, sampling, constraint)
        typed = StreamEvents(plan)
        async with aclosing(self._events(plan)) as events:
            async for event in events:
                for each in typed.feed(event):
                    yield each

    async def chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str = "auto",
        sampling: SamplingParams | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Reply:
        """See `LLM.chat`."""
        turn = plan_turn(messages, tools, tool_choice, constraint)
        plan = await asyncio.to_thread(self.llm.planner.plan_turn, turn, sampling)
        return reply_of(await self._output(plan), turn)

    async def _output(self, plan: Plan) -> GenerationOutput:
        async with aclosing(self._events(plan)) as events:
            async for event in events:
                if event.output is not None:
                    return plan.output(event.output)
        raise AssertionError("the last event of a request has its output")

    async def _events(self, plan: Plan) -> AsyncGenerator[EngineEvent, None]:
        """All events of one request, which is cancelled when nobody reads on."""
        driver = self.llm.driver
        (request_id,) = await asyncio.to_thread(driver.submit, [plan.request])
        try:
            while True:
                event = await asyncio.to_thread(driver.next_event, request_id)
                yield event
                if event.is_final:
                    return
        finally:
            _in_background(lambda: driver.cancel(request_id))


def _in_background(action: Callable[[], None]) -> None:
    """Run without waiting: the engine may be in the middle of a step."""
    asyncio.get_running_loop().run_in_executor(None, action)
