"""Clients whose sources are compiled slowly stand back behind the others, never for long, and nobody else does."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.server import giving_way
from maskwright.server.giving_way import GivingWay


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "APART_SECONDS", 0.0)


class Scene:
    """Requests that stay open until they are ended. Clients in capitals are slow."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.way, self.inside = GivingWay(str.isupper, seconds), list[str]()
        self._ends: dict[str, asyncio.Event] = {}

    async def begin(self, name: str) -> asyncio.Task[None]:
        """name: of a request, whose first letter is its client's."""
        end = self._ends[name] = asyncio.Event()

        async def ask() -> None:
            async with self.way.turn(name[0]):
                self.inside.append(name)
                try:
                    await end.wait()
                finally:
                    self.inside.remove(name)

        task = asyncio.create_task(ask())
        await settled()
        return task

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await settled()


async def settled() -> None:
    """All that is ready has run."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_slow_clients_wait_for_a_gap_in_their_order() -> None:
    async def work() -> None:
        scene = Scene()
        for name in ("S1", "a1", "S2", "S3", "a2", "b1"):
            await scene.begin(name)
        assert scene.inside == ["S1", "a1", "a2", "b1"]  # who asked before anybody else did, and those who need not wait
        await scene.end("a1")
        await scene.end("b1")
        assert scene.inside == ["S1", "a2"]
        await scene.end("a2")
        await asyncio.sleep(0.001)
        assert scene.inside == ["S1", "S2", "S3"]

    run(work())


def test_one_is_let_in_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "APART_SECONDS", 3600.0)

    async def work() -> None:
        scene = Scene()
        for name in ("a1", "S1", "S2", "S3"):
            await scene.begin(name)
        await scene.end("a1")
        assert scene.inside == ["S1"]
        await scene.begin("S4")
        await scene.begin("b1")
        assert scene.inside == ["S1", "b1"]
        assert scene.way._next is not None
        scene.way._next.cancel()
        scene.way._go_on()
        await settled()
        assert scene.inside == ["S1", "b1"]  # somebody is answered again
        await scene.end("b1")
        assert scene.inside == ["S1", "S2"]

    run(work())


def test_nobody_stands_back_for_ever() -> None:
    async def work() -> None:
        scene = Scene(seconds=0.0)
        await scene.begin("a1")
        await scene.begin("S1")
        await asyncio.sleep(0.001)
        await settled()
        assert scene.inside == ["a1", "S1"]

    run(work())


def test_who_goes_while_it_stands_back_leaves_nothing() -> None:
    async def work() -> None:
        scene = Scene()
        await scene.begin("a1")
        task = await scene.begin("S1")
        task.cancel()
        await settled()
        assert not scene.way._waiting
        await scene.begin("S2")
        await scene.end("a1")
        assert scene.inside == ["S2"]

    run(work())


@given(st.lists(st.tuples(st.sampled_from("abST"), st.booleans()), max_size=24))
def test_no_slow_one_begins_beside_another(steps: list[tuple[str, bool]]) -> None:
    """And everybody is answered in the end."""

    async def work() -> None:
        scene, open_, number = Scene(), list[str](), 0
        for client, begins in steps:
            before = set(scene.inside)
            others = [name for name in before if name.islower()]
            if begins or not open_:
                number += 1
                open_.append(f"{client}{number}")
                await scene.begin(open_[-1])
            else:
                inside = [name for name in open_ if name in before]
                if inside:
                    open_.remove(inside[0])
                    others = [name for name in others if name != inside[0]]
                    await scene.end(inside[0])
            began = set(scene.inside) - before
            assert not others or all(name.islower() for name in began)
            assert all(name in scene.inside for name in open_ if name.islower())
        for name in [*(name for name in open_ if name.islower()), *(name for name in open_ if name.isupper())]:
            await asyncio.sleep(0.0005)
            await scene.end(name)
        assert not scene.inside and not scene.way._waiting and not scene.way._open

    run(work())
