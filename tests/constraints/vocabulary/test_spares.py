"""Values that are made several at a time: each is handed out once."""

from __future__ import annotations

import threading

from maskwright.constraints.base.spares import VALUES_AT_ONCE, Spares


def test_a_few_are_made_at_a_time_and_each_is_handed_out_once() -> None:
    made: list[list[str]] = []

    def make(source: str) -> list[str]:
        made.append([source])
        return made[-1]

    spares = Spares(make)
    taken = [spares.take("x") for _ in range(3 * VALUES_AT_ONCE + 1)]
    assert all(value == ["x"] for value in taken)
    assert len({id(value) for value in taken}) == len(taken)
    assert len(made) == 4 * VALUES_AT_ONCE


def test_threads_never_get_the_same_one() -> None:
    spares, taken, barrier = Spares(lambda source: [source]), list[list[list[int]]](), threading.Barrier(4)

    def take() -> None:
        barrier.wait()
        taken.append([spares.take(0) for _ in range(200)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [value for of_thread in taken for value in of_thread]
    assert len({id(value) for value in every}) == len(every) == 800
