"""Each client has its turn, the shorter request first, and who leaves takes nothing along."""

from __future__ import annotations

import asyncio

from maskwright.server.compiling.fair_queue import FairQueue


class Scene:
    """Requests that hold their turn until they are told to let go."""

    def __init__(self, num_turns: int) -> None:
        self.queue, self.served = FairQueue(num_turns), list[str]()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._done: dict[str, asyncio.Event] = {}

    async def ask(self, *names: str, rank: float = 0.0) -> None:
        """names: a letter for the client and a number."""
        for name in names:
            self._done[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._hold(name, rank))
            await asyncio.sleep(0)

    async def _hold(self, name: str, rank: float) -> None:
        async with self.queue.turn(name[0], rank):
            self.served.append(name)
            await self._done[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self._done[name].set()
            await self._tasks[name]
            await asyncio.sleep(0)

    async def leave(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await asyncio.sleep(0)


def test_a_client_with_many_requests_leaves_every_other_turn() -> None:
    async def run() -> None:
        scene = Scene(1)
        await scene.ask("a1", "a2", "a3", "b1", "b2", "c1")
        await scene.end("a1", "b1", "c1", "a2", "b2", "a3")
        assert scene.served == ["a1", "b1", "c1", "a2", "b2", "a3"]

    asyncio.run(run())


def test_a_newcomer_is_before_the_next_of_who_has_the_turn() -> None:
    async def run() -> None:
        scene = Scene(1)
        await scene.ask("a1", "a2")
        await scene.ask("b1")
        await scene.end("a1")
        assert scene.served == ["a1", "b1"] and scene.queue.num_waiting == 1

    asyncio.run(run())


def test_of_one_client_the_least_rank_is_first_and_equals_as_they_came() -> None:
    async def run() -> None:
        scene = Scene(1)
        await scene.ask("a1")
        await scene.ask("a2", "a3", rank=5.0)
        await scene.ask("a4", rank=1.0)
        await scene.end("a1", "a4", "a2", "a3")
        assert scene.served == ["a1", "a4", "a2", "a3"]

    asyncio.run(run())


def test_no_turn_is_left_unused() -> None:
    async def run() -> None:
        scene = Scene(2)
        await scene.ask("a1", "a2", "a3")
        assert scene.served == ["a1", "a2"] and not scene.queue.has_free
        await scene.end("a1", "a2", "a3")
        assert scene.served == ["a1", "a2", "a3"] and scene.queue.has_free

    asyncio.run(run())


def test_who_leaves_while_waiting_is_not_served() -> None:
    async def run() -> None:
        scene = Scene(1)
        await scene.ask("a1", "b1", "b2")
        await scene.leave("b1")
        await scene.end("a1", "b2")
        assert scene.served == ["a1", "b2"] and scene.queue.num_waiting == 0

    asyncio.run(run())


def test_who_leaves_in_its_turn_gives_it_to_the_next() -> None:
    async def run() -> None:
        scene = Scene(1)
        await scene.ask("a1", "b1")
        await scene.leave("a1")
        assert scene.served == ["a1", "b1"]

    asyncio.run(run())


def test_a_turn_that_comes_at_the_moment_of_leaving_is_not_lost() -> None:
    async def run() -> None:
        scene = Scene(1)
        await scene.ask("a1", "b1", "c1")
        scene._tasks["b1"].cancel()  # not noticed yet when the turn becomes free
        await scene.end("a1")
        assert scene.served == ["a1", "c1"]
        scene._done["c1"].set()
        await scene.ask("d1")
        scene._tasks["d1"].cancel()  # has its turn, and does not know yet
        await asyncio.gather(*scene._tasks.values(), return_exceptions=True)
        assert scene.queue.has_free and not scene.queue.num_waiting

    asyncio.run(run())
