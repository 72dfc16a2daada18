"""The same calls under asyncio, in one batch, and cancelled with their task."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from pathlib import Path

import pytest
from pydantic import BaseModel

from maskwright import LLM, AsyncLLM, AsyncSession, Done, RequestError, SamplingParams, Session, SessionError
from maskwright.events import Event


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


def public(cls: type) -> dict[str, object]:
    return {name: value for name, value in vars(cls).items() if not name.startswith("_")}


def test_there_is_every_call_of_the_model_with_its_parameters() -> None:
    for name, member in public(LLM).items():
        same = public(AsyncLLM)[name]
        assert type(same) is type(member)
        if inspect.isfunction(member):
            assert inspect.isfunction(same)
            assert inspect.signature(same).parameters == inspect.signature(member).parameters, name


def test_what_an_llm_has_beside_calls_is_there_too(llm: LLM) -> None:
    assert LLM.__doc__ is not None
    described = LLM.__doc__.partition("Attributes:")[2].partition("Raises:")[0]
    names = re.findall(r"^ {8}(\w+):", described, re.MULTILINE)
    assert names == ["tokenizer", "vocabulary", "compiler", "config", "features"]
    shared = AsyncLLM(llm)
    assert all(getattr(shared, name) is getattr(llm, name) for name in names)


def test_searches_find_the_same(llm: LLM) -> None:
    shared, few = AsyncLLM(llm), SamplingParams(max_tokens=6, seed=3)

    async def ask() -> list[list[str]]:
        beams = shared.beam_search(["x", "y"], width=3, n=2, regex="[a-d]{3}")
        found = await asyncio.gather(beams, shared.particles("x", count=4, sampling=few, regex="[a-d]{3}"))
        return [[each.text for output in outputs for each in (output, *output.alternatives)] for outputs in found]

    beams, particles = asyncio.run(ask())
    again = llm.beam_search(["x", "y"], width=3, n=2, regex="[a-d]{3}")
    assert beams == [each.text for output in again for each in (output, *output.alternatives)]
    (heaviest,) = llm.particles("x", count=4, sampling=few, regex="[a-d]{3}")
    assert particles == [heaviest.text, *(each.text for each in heaviest.alternatives)]
    assert shared.statistics == llm.statistics and shared.default_sampling == llm.default_sampling


def test_tokens_stream_and_progress_is_told(llm: LLM) -> None:
    shared, told = AsyncLLM(llm), list[tuple[int, int]]()

    async def ask() -> list[object]:
        await shared.generate(["x", "y"], regex="[ab]{2}", progress=lambda done, of: told.append((done, of)))
        return [event async for event in shared.stream_tokens("x", schema=Switch)]

    assert asyncio.run(ask())[:-1] == list(llm.stream_tokens("x", schema=Switch))[:-1] and told == [(1, 2), (2, 2)]


def test_a_session_is_saved_and_resumed(llm: LLM, tmp_path: Path) -> None:
    shared, path = AsyncLLM(llm), tmp_path / "x.session"

    async def ask() -> tuple[list[object], object]:
        async with await shared.open("x", schema=Switch) as session:
            first = await anext(session)
            await session.save(path)
        resumed = await shared.resume(path, schema=Switch)
        events = [event async for event in resumed]
        assert events[0] == first and resumed.is_done
        return events, (await resumed.result()).parsed

    events, parsed = asyncio.run(ask())
    assert events[:-1] == list(llm.stream("x", schema=Switch))[:-1]
    assert parsed == llm.generate("x", schema=Switch)[0].parsed and not llm.driver.is_busy


def test_a_session_that_is_closed_has_no_result(llm: LLM) -> None:
    async def ask() -> None:
        async with await AsyncLLM(llm).open("x", sampling=LONG) as session:
            await anext(session)
        await session.result()

    with pytest.raises(SessionError, match="closed before it had ended"):
        asyncio.run(ask())


class HeldBack:
    """A session whose events come once they are let through."""

    def __init__(self, session: Session) -> None:
        self.session, self.is_open = session, threading.Event()

    def __next__(self) -> Event:
        self.is_open.wait()
        return next(self.session)


def test_a_cancelled_wait_loses_no_event(llm: LLM) -> None:
    async def ask() -> list[object]:
        held = HeldBack(llm.open("x", schema=Switch))
        session = AsyncSession(held)
        for _ in range(3):
            waiting = asyncio.ensure_future(anext(session))
            await asyncio.sleep(0)  # it begins to wait
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        held.is_open.set()
        return [event async for event in session]

    assert asyncio.run(ask())[:-1] == list(llm.stream("x", schema=Switch))[:-1]


def test_a_session_of_a_cancelled_task_is_closed(llm: LLM) -> None:
    async def cancel() -> None:
        task = asyncio.ensure_future(AsyncLLM(llm).open("x", sampling=LONG))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))  # it is open
        await asyncio.sleep(0)  # and is told to close
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(cancel())
    assert not llm.driver.is_busy
