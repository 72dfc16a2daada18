"""Slow compiles stand still while others are answered, for as long as they have run and no longer."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.server.compiling import standing_still
from maskwright.server.compiling.standing_still import LAST_SECONDS, MOST_SECONDS, StandingStill


class Clock:
    """An event loop of which only the time is there."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        number = len(self._timers) + len(self._cancelled)
        heapq.heappush(self._timers, (self.now + max(seconds, 1e-6), number, call))
        clock = self

        class Timer:
            def cancel(self) -> None:
                clock._timers = [timer for timer in clock._timers if timer[1] != number or timer[2] is not call]
                heapq.heapify(clock._timers)
                clock._cancelled.add(number)

        return Timer()

    def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, _, call = heapq.heappop(self._timers)
            call()
        self.now = end


class Process:
    """Adds up how long it has run, by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._since = clock, clock.now
        self.is_running, self.seconds = True, 0.0

    def pause(self) -> None:
        self._reckon(is_running=False)

    def go_on(self) -> None:
        self._reckon(is_running=True)

    def _reckon(self, *, is_running: bool) -> None:
        self.seconds += (self._clock.now - self._since) * self.is_running
        self._since, self.is_running = self._clock.now, is_running


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(standing_still.asyncio, "get_running_loop", lambda: made)
    return made


def test_it_stands_still_while_others_are_answered(clock: Clock) -> None:
    still, process = StandingStill(), Process(clock)
    clock.pass_(1.0)
    with still.running(process):
        assert process.is_running
        still.want(True)
        assert not process.is_running
        clock.pass_(MOST_SECONDS / 2)
        still.want(False)
        clock.pass_(LAST_SECONDS / 2)
        assert not process.is_running  # the end of the answer is on its way
        clock.pass_(LAST_SECONDS)
        assert process.is_running
        still.want(True)
        assert not process.is_running
    assert not process.is_running
    other = Process(clock)
    with still.running(other):
        assert not other.is_running  # somebody is answered still
        still.want(False)
        clock.pass_(LAST_SECONDS)
        assert other.is_running


def test_it_does_not_go_on_between_answers_that_follow_one_another(clock: Clock) -> None:
    still, process = StandingStill(), Process(clock)
    clock.pass_(1.0)
    with still.running(process):
        for _ in range(5):
            still.want(True)
            clock.pass_(LAST_SECONDS)
            still.want(False)
            clock.pass_(LAST_SECONDS / 2)
        assert process.seconds == 1.0


def test_it_has_half_of_the_time_whatever_is_asked(clock: Clock) -> None:
    still, process = StandingStill(), Process(clock)
    clock.pass_(1.0)
    with still.running(process):
        still.want(True)
        clock.pass_(10.0)
    assert process.seconds >= 1.0 + (10.0 - MOST_SECONDS) / 2 - 1e-3


def test_where_cores_are_many_it_goes_on(clock: Clock) -> None:
    still, process = StandingStill(is_on=False), Process(clock)
    with still.running(process):
        still.want(True)
        assert process.is_running


@given(steps=st.lists(st.tuples(st.floats(0.0, 0.3), st.booleans()), max_size=40))
def test_it_never_has_less_than_half_and_stands_still_for_nobody(steps: list[tuple[float, bool]]) -> None:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standing_still.asyncio, "get_running_loop", lambda: clock)
        still, process = StandingStill(), Process(clock)
        with still.running(process):
            for seconds, is_wanted in steps:
                still.want(is_wanted)
                clock.pass_(seconds)
                assert is_wanted or seconds < LAST_SECONDS or process.is_running
        assert process.seconds >= (clock.now - MOST_SECONDS) / 2 - 1e-3
