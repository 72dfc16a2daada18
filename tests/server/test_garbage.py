"""Circular garbage is looked for when nobody waits, and requests leave none that is large."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from maskwright.server.garbage import LOOK_SECONDS, MOST_SECONDS, RARELY, REST_SECONDS, Garbage


class Scene:
    """A clock that is set by hand, and what was collected when."""

    def __init__(self) -> None:
        self.now, self.is_idle, self.num_asked = 0.0, True, 0
        self.collected: list[float] = []
        self.garbage = Garbage(lambda: self.num_asked if self.is_idle else None, lambda: self.collected.append(self.now), lambda: self.now)

    def after(self, seconds: float, *, is_idle: bool, num_asked: int = 0) -> None:
        """num_asked: requests that came and were answered meanwhile."""
        self.now, self.is_idle = self.now + seconds, is_idle
        self.num_asked += num_asked
        self.garbage.look()


def test_one_comes_when_it_has_been_idle_for_two_looks() -> None:
    scene = Scene()
    scene.after(REST_SECONDS, is_idle=False)
    scene.after(LOOK_SECONDS, is_idle=True)
    assert scene.collected == []  # between two requests
    scene.after(LOOK_SECONDS, is_idle=True)
    assert scene.collected == [scene.now]


def test_none_comes_between_requests_that_follow_one_another() -> None:
    """Each look meets a pause, and none is one."""
    scene = Scene()
    scene.after(REST_SECONDS, is_idle=True, num_asked=1)
    for _ in range(20):
        scene.after(LOOK_SECONDS, is_idle=True, num_asked=1)
    assert scene.collected == []
    scene.after(LOOK_SECONDS, is_idle=True)
    assert scene.collected == [scene.now]


def test_without_a_rest_one_comes_all_the_same() -> None:
    scene = Scene()
    while scene.now < 2 * MOST_SECONDS + 1:
        scene.after(1.0, is_idle=False)
    assert scene.collected == [MOST_SECONDS, 2 * MOST_SECONDS]


@given(st.lists(st.tuples(st.floats(0.1, 100.0), st.booleans()), max_size=60))
def test_they_are_apart_and_never_too_far(looks: list[tuple[float, bool]]) -> None:
    scene = Scene()
    for seconds, is_idle in looks:
        scene.after(seconds, is_idle=is_idle)
        assert scene.now - (scene.collected or [0.0])[-1] < MOST_SECONDS
    times = [0.0, *scene.collected]
    assert all(after - before >= REST_SECONDS for before, after in pairwise(times))


def test_pythons_own_are_rare_meanwhile_and_as_before_afterwards() -> None:
    before = gc.get_threshold()

    async def run() -> tuple[int, int, int]:
        garbage = Garbage(lambda: 0)
        garbage.start()
        try:
            return gc.get_threshold()
        finally:
            await garbage.stop()

    assert asyncio.run(run()) == (*before[:2], RARELY)
    assert gc.get_threshold() == before and gc.get_freeze_count() == 0
