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
from maskwright.server.errors import ApiError
from maskwright.server.giving_way import GivingWay


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "APART_SECONDS", 0.0)


class Clients:
    """Those in capitals are slow. `enough`: of whom nothing longer than that is to be read."""

    def __init__(self) -> None:
        self.enough: dict[str, int] = {}

    def is_slow(self, client: str) -> bool:
        return client.isupper()

    def has_enough(self, client: str, num_bytes: int) -> bool:
        return num_bytes >= self.enough.get(client, math.inf)


def full() -> ApiError:
    return ApiError(429, "full")


class Scene:
    """Requests that stay open until they are ended."""

    def __init__(self, seconds: float = math.inf, max_unread: int = 99) -> None:
        self.clients, self.inside, self.answered = Clients(), list[str](), list[bool]()
        self.way = GivingWay(self.clients, max_unread, full, self.answered.append, seconds)
        self._ends: dict[str, asyncio.Event] = {}

    async def begin(self, name: str, body: bytes | None = None) -> asyncio.Task[None]:
        """name: of a request, whose first letter is its client's."""
        end = self._ends[name] = asyncio.Event()

        async def ask() -> None:
            if self.way.is_slow(name[0]):
                await self.way.turn(name[0], body)
            with self.way.answering(name[0]):
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
        assert not scene.inside and not scene.way._waiting and not scene.way._open and True not in scene.answered[-1:]

    run(work())


def body(length: int) -> bytes:
    """That of a request with a constraint."""
    return b'{"response_format":'.ljust(length)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays unread is read when a test says so."""
    monkeypatch.setattr(giving_way, "UNREAD_SECONDS", 3600.0)


@pytest.mark.usefixtures("by_hand")
def test_who_has_enough_stays_unread_and_the_shortest_is_read_first() -> None:
    async def work() -> None:
        scene = Scene()
        scene.clients.enough = {"S": 50}
        for name, length in (("S1", 90), ("S2", 70), ("S3", 80), ("S4", 40), ("T1", 90)):
            await scene.begin(name, body(length))
        await scene.begin("S5", b"x" * 90)  # asks for no constraint
        await scene.begin("S6")  # is not looked at
        await spaced(scene)
        assert scene.inside == ["S4", "T1", "S5", "S6"] and scene.way.num_unread == 3
        scene.way._read_one("S")
        await spaced(scene)
        assert scene.inside[4:] == ["S2"] and scene.way.num_unread == 2
        scene.clients.enough = {}
        scene.way._read_one("S")
        await spaced(scene)
        assert scene.inside[5:] == ["S3", "S1"] and not scene.way._unread

    run(work())


@pytest.mark.usefixtures("by_hand")
def test_who_leaves_or_is_ended_unread_was_never_read() -> None:
    async def work() -> None:
        scene = Scene()
        scene.clients.enough = {"S": 50}
        first, second = [await scene.begin(name, body(60)) for name in ("S1", "S2")]
        first.cancel()
        await settled()
        assert scene.way.num_unread == 1
        scene.way.end_all(ApiError(503, "the end"))
        with pytest.raises(ApiError, match="the end"):
            await second
        scene.way._read_one("S")
        assert not scene.inside and not scene.way._unread

    run(work())


@pytest.mark.usefixtures("by_hand")
def test_of_too_many_who_has_most_gives_up_the_longest() -> None:
    async def work() -> None:
        scene = Scene(max_unread=3)
        scene.clients.enough = {"S": 50, "T": 50}
        kept, dropped = await scene.begin("S1", body(60)), await scene.begin("S2", body(80))
        await scene.begin("S3", body(70))
        with pytest.raises(ApiError, match="full"):
            await (await scene.begin("S4", body(55)))
        await scene.begin("T1", body(99))
        with pytest.raises(ApiError, match="full"):
            await dropped
        assert not kept.done() and scene.way.num_unread == 3

    run(work())


async def spaced(scene: Scene) -> None:
    """Those that may be read have been, one after another."""
    while scene.way._next is not None:
        await asyncio.sleep(0)
    await settled()
