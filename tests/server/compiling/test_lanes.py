"""Sources are compiled in processes that are held back, ended and replaced."""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from maskwright.chat import plan_turn
from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    Gbnf,
    JsonSchema,
    Limits,
    Regex,
    Source,
    Vocabulary,
)
from maskwright.constraints.runtime.loading import Handover
from maskwright.server.compiling import fork_server, processes
from maskwright.server.compiling.lanes import Lanes
from maskwright.server.compiling.processes import SLOW_NICENESS, processor_seconds
from maskwright.server.errors import ApiError
from maskwright.server.reasoning import reasoned

from ..slow_sources import ENDLESS, slow_gbnf

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", None], eos_token_ids=[257])
MEMORY = 1 << 30


def slow(number: int) -> Gbnf:
    return Gbnf(slow_gbnf(number))


class Scene:
    """Lanes on an event loop that is kept between tests, as starting them takes a while."""

    def __init__(self, limits: Limits = ENDLESS, memory: int = MEMORY) -> None:
        self.runner, self.compiler = asyncio.Runner(), Compiler(VOCABULARY, limits)
        self.lanes = Lanes(VOCABULARY, limits, 1, memory)
        self.lanes._fork_server.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def ask(self, source: Source, client: str = "") -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self.lanes.compile(pickle.dumps(source), client))

    async def compiled(self, source: Source) -> Any:
        return self.compiler.take_over(source, await self.ask(source))

    @property
    def fork_server(self) -> int:
        process = self.lanes._fork_server._process
        assert process is not None
        return process.pid

    @property
    def processes(self) -> list[int]:
        """Those that compile, or wait for that."""
        return list(map(int, Path(f"/proc/{self.fork_server}/task/{self.fork_server}/children").read_text().split()))

    def nice_ones(self) -> list[int]:
        return [pid for pid in self.processes if os.getpriority(os.PRIO_PROCESS, pid) == SLOW_NICENESS]

    async def end(self, *tasks: asyncio.Task[Any]) -> None:
        """Give compiles up, and wait until the processes of slow ones have gone."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: sys.platform != "linux" or not self.nice_ones())

    def close(self) -> None:
        self.run(self.lanes.stop())
        self.runner.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.002)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def test_what_comes_back_is_what_is_compiled_here(scene: Scene) -> None:
    source = JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False})
    constraint, here = scene.run(scene.compiled(source)), Compiler(VOCABULARY).compile(source)
    assert (constraint.mask(constraint.start()) == here.mask(here.start())).all() and constraint.statistics["rows"]
    assert constraint.accepts('{"a":12}') and not constraint.accepts('{"b":12}')


def test_an_event_loop_that_takes_blocking_away_changes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As uvloop's `add_reader` does with what it is given; threads read it afterwards."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        add_reader = loop.add_reader

        def adds_reader(fd: int, *arguments: Any) -> None:
            os.set_blocking(fd, False)
            add_reader(fd, *arguments)

        monkeypatch.setattr(loop, "add_reader", adds_reader)
        for number in range(3):
            await scene.compiled(Regex(f"[a-z]{{{number + 1}}}"))

    scene.run(play())


def test_an_error_comes_back_as_it_is(scene: Scene) -> None:
    source = JsonSchema({"properties": {"a": {"type": "string", "pattern": "("}}})
    with pytest.raises(ConstraintError) as here:
        Compiler(VOCABULARY).compile(source)
    with pytest.raises(ConstraintError) as there:
        scene.run(scene.compiled(source))
    assert type(there.value) is type(here.value) and vars(there.value) == vars(here.value)


def test_what_processes_begin_with_compiles() -> None:
    """An error there would be silent, and each new process would be slow at its first source."""
    compiler = Compiler(VOCABULARY)
    assert [type(fork_server._compiled(compiler, source)) for source in fork_server._FAMILIAR] == [Handover] * len(fork_server._FAMILIAR)


def test_what_is_asked_for_brings_no_model_with_it() -> None:
    """Each new process would import it again, for its first source of such a kind."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    choices = [
        plan_turn("text", tools, choice, options, style).choice.source
        for choice in ("auto", "required", "f")
        for options in ({}, {"regex": "a"})
        for style in (None, "hermes")
    ]
    asked = pickle.dumps([*choices, *(reasoned(source, is_open, 20) for source in (None, *choices) for is_open in (False, True))])
    reading = "import pickle, sys, maskwright.server.compiling.fork_server; pickle.load(sys.stdin.buffer); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", reading], input=asked, check=False).returncode == 0


@on_linux
def test_slow_ones_leave_the_quick_lane_and_the_processor_to_others(scene: Scene) -> None:
    async def attacked() -> None:
        attack = [scene.ask(slow(number), "greedy") for number in range(3)]
        await until(lambda: scene.lanes.num_slow == 3)
        for number in range(5):
            await scene.compiled(Regex(f"greedy{number}"))
            assert not any(task.done() for task in attack)
        await until(lambda: len(scene.nice_ones()) == 1)  # of one client one is begun
        other = scene.ask(slow(4), "modest")
        await until(lambda: len(scene.nice_ones()) == 2)
        assert [scene.lanes.is_slow(client) for client in ("greedy", "modest", "")] == [True, True, False]
        await scene.end(*attack, other)
        assert scene.lanes.num_slow == scene.lanes.num_waiting == 0 and not scene.lanes.is_slow("greedy")

    scene.run(attacked())


@on_linux
def test_what_was_begun_goes_on_between_the_turns_of_others(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.server.compiling.lanes.QUICK_SECONDS", 0.0)
    monkeypatch.setattr("maskwright.server.compiling.lanes.SLICE_SECONDS", 0.002)

    async def slices() -> None:
        endless = scene.ask(slow(5), "greedy")
        await until(lambda: scene.lanes.num_slow == 1)
        source = JsonSchema({"type": "object", "properties": {f"p{i}": {"type": "string", "format": "date"} for i in range(60)}})
        assert (await scene.compiled(source)).accepts("{}")
        assert not endless.done()
        await scene.end(endless)

    scene.run(slices())


class Held:
    """A process that answers when it has been asked often enough, having used so much of the processor each time."""

    def __init__(self, seconds: float, num_waits: int) -> None:
        self.seconds_used, self.num_waits, self._seconds = 0.0, num_waits, seconds

    async def answers_within(self, _: float) -> bool:
        self.seconds_used, self.num_waits = self.seconds_used + self._seconds, self.num_waits - 1
        return self.num_waits < 0


@pytest.mark.parametrize(
    ("process", "is_quick"),
    [
        (Held(0.0, 0), True),
        (Held(0.001, 5), True),  # on a busy machine
        (Held(0.03, 5), False),  # had enough of the processor after the second time
        (Held(0.08, 1), False),
        (Held(float("nan"), 1), False),  # nobody can tell
    ],
)  # fmt: skip
def test_who_waits_for_a_processor_stays_in_the_quick_lane(scene: Scene, process: Any, is_quick: bool) -> None:
    assert scene.run(scene.lanes._answers_quickly(process)) == is_quick


def test_patience_ends(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.server.compiling.lanes.PATIENCE_SECONDS", 0.0)
    assert not scene.run(scene.lanes._answers_quickly(Held(0.0, 1000)))  # type: ignore[arg-type]


def test_what_proved_slow_is_remembered_for_a_while(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    lanes, (tired, starved) = scene.lanes, (Held(1.0, 1), Held(0.0, 1))
    tired.seconds_used = 1.0

    async def looks(source: bytes, client: str) -> bool:
        return lanes._looks_slow(len(source), client)

    async def note(process: Any, source: bytes) -> None:
        lanes._note(process, source, "a")

    scene.run(note(starved, b"x" * 10))
    assert not scene.run(looks(b"x" * 10, "a"))
    scene.run(note(tired, b"x" * 10))
    assert scene.run(looks(b"x" * 5, "a"))
    assert not scene.run(looks(b"x" * 4, "a")) and not scene.run(looks(b"x" * 10, "b"))
    monkeypatch.setattr("maskwright.server.compiling.lanes.MEMORY_SECONDS", 0.0)
    lanes._proven.clear()
    scene.run(note(tired, b"x" * 10))
    assert not scene.run(looks(b"x" * 10, "a"))


@on_linux
def test_what_only_looks_slow_draws_nothing_after_it(scene: Scene) -> None:
    """One accident is no reason to keep all that a client sends in the slow lane for good."""

    async def accident() -> None:
        scene.lanes._proven.append(("a", 1, asyncio.get_running_loop().time() + 60))
        held = [scene.ask(Regex(f"looks{number}"), "a") for number in range(5)]
        await until(lambda: scene.lanes.num_slow > 0 or all(task.done() for task in held))
        scene.lanes._proven.clear()  # its time is over, while the others still wait
        await asyncio.gather(*held)
        assert not scene.lanes._proven and scene.lanes.num_slow == 0

    scene.run(accident())


@on_linux
def test_the_processor_time_of_a_process_is_its_own(scene: Scene) -> None:
    mine = processor_seconds(os.getpid())
    assert time.process_time() - 5 < mine <= time.process_time()
    assert math.isnan(processor_seconds(2**22 + 1))  # more than there are

    async def asked() -> None:
        endless = scene.ask(slow(8))
        await until(lambda: len(scene.nice_ones()) == 1)
        before = processor_seconds(scene.nice_ones()[0])
        await until(lambda: processor_seconds(scene.nice_ones()[0]) > before > 0)
        await scene.end(endless)

    scene.run(asked())


@on_linux
def test_a_process_that_is_killed_ends_its_own_compile_alone(scene: Scene) -> None:
    async def killed() -> None:
        mine, other = scene.ask(slow(6), "a"), scene.ask(slow(7), "b")
        await until(lambda: len(scene.nice_ones()) == 2)
        os.kill(scene.nice_ones()[0], signal.SIGKILL)
        done, running = await asyncio.wait({mine, other}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        with pytest.raises(ApiError, match="SIGKILL") as caught:
            await done.pop()
        assert caught.value.status == 500 and caught.value.code == "compile_failed"
        await scene.end(*running)
        assert (await scene.compiled(Regex("next"))).accepts("next")

    scene.run(killed())


@on_linux
def test_a_process_that_is_killed_while_it_waits_is_replaced(scene: Scene) -> None:
    async def killed() -> None:
        await scene.compiled(Regex("before"))
        await until(lambda: bool(scene.processes))
        idle = list(scene.lanes._idle)
        for process in idle:
            os.kill(process.pid, signal.SIGKILL)
        await until(lambda: not any(process.is_idle for process in idle))
        assert (await scene.compiled(Regex("after"))).accepts("after")

    scene.run(killed())


def test_a_fork_server_that_is_killed_is_replaced(scene: Scene) -> None:
    async def killed() -> None:
        await scene.compiled(Regex("once"))
        running, before = scene.ask(slow(8)), scene.fork_server
        await until(lambda: scene.lanes.num_slow == 1)
        os.kill(before, signal.SIGKILL)
        if sys.platform == "linux":  # elsewhere its processes go on
            with pytest.raises(ApiError, match="ended with"):
                await running
        running.cancel()
        while True:  # until its end is noticed
            try:
                assert (await scene.compiled(Regex("again"))).accepts("again")
                break
            except ApiError:
                continue
        assert scene.fork_server != before

    scene.run(killed())


@on_linux
def test_nothing_is_left_when_the_lanes_are_closed() -> None:
    scene = Scene()

    async def begun() -> list[int]:
        running = scene.ask(slow(9))
        await until(lambda: scene.lanes.num_slow == 1)
        running.cancel()
        return [scene.fork_server, *scene.processes]

    pids = scene.run(begun())
    scene.run(scene.lanes.stop())
    scene.run(until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids)))
    scene.runner.close()
    with pytest.raises(ApiError, match="shutting down"):
        scene.lanes._fork_server.fork()


@pytest.mark.parametrize(
    ("limits", "memory", "source", "limit"),
    [(Limits(seconds=0.3), MEMORY, slow(0), "seconds"), (ENDLESS, 1, Regex("a"), "memory_bytes")],
    ids=["seconds", "memory"],
)
def test_limits_are_refusals_with_their_name(limits: Limits, memory: int, source: Source, limit: str) -> None:
    scene = Scene(limits, memory)
    with pytest.raises(ConstraintLimit) as caught:
        scene.run(scene.compiled(source))
    assert caught.value.limit == limit
    scene.close()


def test_time_that_nobody_looks_at_is_limited_by_the_system() -> None:
    """The first mask is computed without a look at the clock: there the system ends the process."""
    from maskwright.server.compiling.processes import died

    error = died(-signal.SIGXCPU, Limits(seconds=3.0), MEMORY)
    assert isinstance(error, ConstraintLimit) and error.limit == "seconds" and error.value == 3.0


@pytest.mark.skipif(sys.platform != "linux", reason="policies of Linux")
@pytest.mark.parametrize(("heavy", "policy"), [(-1.0, "SCHED_IDLE"), (1e9, "SCHED_OTHER")])
def test_what_has_had_much_gets_only_what_nobody_wants(monkeypatch: pytest.MonkeyPatch, heavy: float, policy: str) -> None:
    """Less keeps its share of a machine that is never idle."""
    monkeypatch.setattr(processes, "HEAVY_SECONDS", heavy)
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        process = processes.CompileProcess(child.pid, Connection(ours.detach()), theirs)
        process.ask(b"")
        process.slow_down()
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == SLOW_NICENESS
        assert os.sched_getscheduler(child.pid) == getattr(os, policy)
        child.kill()
        process.close()
    process.slow_down()  # it has ended
