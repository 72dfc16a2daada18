"""The same calls under asyncio, in one batch, and cancelled with their task."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from maskwright import LLM, AsyncLLM, Done, RequestError, SamplingParams


class Switch(BaseModel):
    on: bool


LONG = SamplingParams(max_tokens=400, ignore_eos=True, seed=1)


def test_concurrent_calls_give_what_single_calls_give(llm: LLM) -> None:
    async def ask() -> list[str]:
        shared = AsyncLLM(llm)
        batches = await asyncio.gather(*(shared.generate(str(n), regex="[a-z]{9}") for n in range(5)))
        return [batch[0].text for batch in batches]

    assert asyncio.run(ask()) == [output.text for output in llm.generate([str(n) for n in range(5)], regex="[a-z]{9}")]


def test_a_stream_gives_the_same_events(llm: LLM) -> None:
    async def ask() -> list[object]:
        return [event async for event in AsyncLLM(llm).stream("x", schema=Switch)]

    assert asyncio.run(ask()) == list(llm.stream("x", schema=Switch))


def test_chat_replies(llm: LLM) -> None:
    reply = asyncio.run(AsyncLLM(llm).chat("hello", schema=Switch))
    assert isinstance(reply.parsed, Switch)


def test_errors_reach_the_caller(llm: LLM) -> None:
    with pytest.raises(RequestError, match="600 tokens"):
        asyncio.run(AsyncLLM(llm).generate("x" * 600))


def test_a_cancelled_task_cancels_its_request(llm: LLM) -> None:
    async def cancel_midway() -> None:
        shared = AsyncLLM(llm)
        task = asyncio.create_task(shared.generate("x", sampling=LONG))
        async for _ in shared.stream("y", sampling=SamplingParams(max_tokens=3, ignore_eos=True)):
            pass  # steps the shared batch a few times
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_midway())
    assert not llm.driver.is_busy


def test_a_stream_that_is_left_early_cancels_its_request(llm: LLM) -> None:
    async def leave() -> None:
        stream = AsyncLLM(llm).stream("x", sampling=LONG)
        async for event in stream:
            assert not isinstance(event, Done)
            break
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert not llm.driver.is_busy


def test_streams_of_text_and_of_chats_are_the_same_too(llm: LLM) -> None:
    def light(on: bool) -> bool:
        """The light."""
        return not on

    shared = AsyncLLM(llm)

    async def ask() -> tuple[list[object], list[object]]:
        text = [event async for event in shared.stream_text("x", schema=Switch)]
        chat = [event async for event in shared.stream_chat("x", tools=[light], tool_choice="required")]
        return text, chat

    text, chat = asyncio.run(ask())
    assert text == list(llm.stream_text("x", schema=Switch))
    assert chat[:-1] == list(llm.stream_chat("x", tools=[light], tool_choice="required"))[:-1] and isinstance(chat[-1], Done)
