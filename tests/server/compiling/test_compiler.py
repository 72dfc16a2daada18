"""What is known is given at once, what nobody waits for is given up, and nobody's queue is full of another's constraints."""

from __future__ import annotations

import asyncio
import gc
import pickle
import weakref
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from maskwright.constraints import Compiler, ConstraintLimit, JsonSchema, Regex, Source, Vocabulary
from maskwright.constraints.runtime.loading import Handover, handed_over
from maskwright.engine import EngineStatistics
from maskwright.engine.footprint import Footprint
from maskwright.server.compiling.compiler import ConstraintCompiler
from maskwright.server.compiling.lanes import Lanes
from maskwright.server.compiling.refusals import Refusals
from maskwright.server.errors import ApiError
from maskwright.server.metrics import Metrics

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
REFUSED = ConstraintLimit("takes too long", limit="seconds", value=10.0, path="#/oneOf/3")


class GatedLanes:
    """Lanes that compile nothing before they are told what comes of it."""

    num_waiting = num_slow = 0

    def __init__(self) -> None:
        self.asked: list[Source] = []
        self.clients: list[str] = []
        self.given_up: list[Source] = []
        self._gates: dict[Source, asyncio.Future[Handover]] = {}

    async def compile(self, data: bytes, client: str) -> Handover:
        source = pickle.loads(data)
        self.asked.append(source)
        self.clients.append(client)
        gate = self._gates[source] = asyncio.get_running_loop().create_future()
        try:
            return await gate
        except asyncio.CancelledError:
            self.given_up.append(source)
            raise

    def finish(self, source: Source) -> None:
        self._gates[source].set_result(handed_over(Compiler(VOCABULARY).compile(source)))

    def fail(self, source: Source, error: Exception) -> None:
        self._gates[source].set_exception(error)

    def start(self) -> None: ...

    async def stop(self) -> None: ...


class Scene:
    def __init__(self, max_jobs: int = 8) -> None:
        self.compiler, self.lanes = Compiler(VOCABULARY), GatedLanes()
        self.metrics = Metrics("m", EngineStatistics, lambda: 0, Footprint(0, 0, 1))
        self.asked = ConstraintCompiler(self.compiler, cast(Lanes, self.lanes), self.metrics, max_jobs)

    async def ask(self, source: Source, client: str = "") -> asyncio.Task[Any]:
        """A request that has come as far as it gets."""
        task = asyncio.create_task(self.asked.compile(source, client))
        await settled()
        return task

    def count(self, line: str) -> float:
        found = [each.rsplit(" ", 1)[1] for each in self.metrics.text().decode().splitlines() if each.startswith(line)]
        return float(found[0])


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def outcome(name: str) -> str:
    return f'maskwright:constraint_compile_seconds_count{{engine="0",model_name="m",outcome="{name}"}}'


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_what_is_known_waits_for_nobody() -> None:
    async def known() -> None:
        scene = Scene(max_jobs=1)
        constraint = scene.compiler.compile(Regex("known"))
        await scene.ask(Regex("slow"))
        asked = await scene.ask(Regex("known"), "another")
        assert asked.result() is constraint and scene.lanes.asked == [Regex("slow")]
        assert scene.count("maskwright:constraint_cache_hits_total") == 1

    run(known())


def test_equal_ones_are_compiled_once_and_each_who_waits_is_told() -> None:
    async def equal() -> None:
        scene = Scene()
        tasks = [await scene.ask(Regex("ab"), client) for client in "abc"]
        assert scene.lanes.asked == [Regex("ab")] and scene.lanes.clients == ["a"]
        scene.lanes.finish(Regex("ab"))
        first, *others = await asyncio.gather(*tasks)
        assert all(other is first for other in others) and scene.compiler.compile(Regex("ab")) is first
        assert first.source == Regex("ab") and scene.count(outcome("compiled")) == 1

    run(equal())


def test_what_nobody_waits_for_any_more_is_given_up() -> None:
    async def left() -> None:
        scene = Scene()
        first, second = [await scene.ask(Regex("ab")) for _ in range(2)]
        first.cancel()
        await settled()
        assert not scene.lanes.given_up
        second.cancel()
        await settled()
        assert scene.lanes.given_up == [Regex("ab")] and scene.count(outcome("cancelled")) == 1
        again = await scene.ask(Regex("ab"))
        scene.lanes.finish(Regex("ab"))
        assert (await again).accepts("ab") and scene.lanes.asked == [Regex("ab")] * 2

    run(left())


def test_who_asks_while_it_is_given_up_has_it_begun_anew() -> None:
    async def anew() -> None:
        scene = Scene()
        first = await scene.ask(Regex("ab"))
        first.cancel()
        second = asyncio.create_task(scene.asked.compile(Regex("ab")))
        await settled()
        scene.lanes.finish(Regex("ab"))
        assert (await second).accepts("ab") and scene.lanes.given_up == [Regex("ab")]

    run(anew())


def test_what_was_refused_is_refused_again_with_the_same_words() -> None:
    async def refused() -> None:
        scene, errors = Scene(), []
        for _ in range(3):
            task = await scene.ask(Regex("ab"))
            if not errors:
                scene.lanes.fail(Regex("ab"), REFUSED)
            with pytest.raises(ConstraintLimit) as caught:
                await task
            errors.append(caught.value)
        assert scene.lanes.asked == [Regex("ab")] and len({id(error) for error in errors}) == 3
        assert [str(error) for error in errors] == [str(REFUSED)] * 3 and errors[2].path == "#/oneOf/3"
        assert scene.count(outcome("refused")) == 1 and scene.count("maskwright:constraint_errors_total") == 3

    run(refused())


def test_what_failed_is_tried_again() -> None:
    async def failed() -> None:
        scene = Scene()
        task = await scene.ask(Regex("ab"))
        scene.lanes.fail(Regex("ab"), ApiError(500, "its process was ended by SIGKILL", code="compile_failed"))
        with pytest.raises(ApiError, match="SIGKILL"):
            await task
        again = await scene.ask(Regex("ab"))
        scene.lanes.finish(Regex("ab"))
        assert (await again).accepts("ab") and scene.count(outcome("failed")) == 1

    run(failed())


def test_when_all_places_are_taken_the_one_who_has_most_is_refused() -> None:
    async def full() -> None:
        scene = Scene(max_jobs=3)
        mine = [await scene.ask(Regex(f"a{number}"), "greedy") for number in range(3)]
        one_more = await scene.ask(Regex("a3"), "greedy")
        with pytest.raises(ApiError) as caught:
            await one_more
        assert caught.value.status == 429 and caught.value.code == "compile_queue_full"
        assert dict(caught.value.headers or {})["Retry-After"] == "10" and "max_compiles" in caught.value.message
        await scene.ask(Regex("b0"), "modest")
        with pytest.raises(ApiError, match="try again later"):
            await mine[2]
        assert scene.lanes.given_up == [Regex("a2")] and scene.lanes.asked[-1] == Regex("b0")
        assert not mine[0].done() and not mine[1].done()
        for task in mine:
            task.cancel()

    run(full())


def test_refusals_are_kept_as_long_as_they_fit() -> None:
    refusals = Refusals(max_bytes=100)
    for number in range(3):
        refusals.add(JsonSchema({"minimum": number}), REFUSED, 40)
    assert len(refusals) == 2 and refusals.error_of(JsonSchema({"minimum": 0})) is None
    assert str(refusals.error_of(JsonSchema({"minimum": 1}))) == str(REFUSED)
    refusals.add(JsonSchema({"minimum": 3}), REFUSED, 40)
    assert refusals.error_of(JsonSchema({"minimum": 2})) is None and refusals.error_of(JsonSchema({"minimum": 1})) is not None
    refusals.add(JsonSchema({"minimum": 4}), REFUSED, 101)
    assert len(refusals) == 0




def test_what_was_given_up_is_gone_without_the_collector() -> None:
    """A source may be large, and many may be given up between two collections."""

    async def given_up(scene: Scene, source: Source) -> weakref.ref[Any]:
        task = await scene.ask(source)
        seen = weakref.ref(scene.asked._jobs[source])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return seen

    async def run() -> None:
        scene, source = Scene(), Regex("a{3}")
        seen = await given_up(scene, source)
        await settled()
        assert scene.lanes.given_up == [source] and seen() is None

    was_on = gc.isenabled()
    gc.disable()
    try:
        asyncio.run(run())
    finally:
        if was_on:
            gc.enable()
