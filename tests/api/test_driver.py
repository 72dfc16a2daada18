"""One engine for several threads: turns are taken in the order in which they were asked for, and are a step long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import pytest

from maskwright import SessionError
from maskwright.driver import Driver
from maskwright.fair_lock import FairLock


class Ended(NamedTuple):
    """The only event of a request."""

    request_id: int
    is_final: bool = True


class CountingEngine:
    """Its requests are numbers: after how many steps they end."""

    def __init__(self, see_step: Callable[[], None]) -> None:
        self._see_step, self._steps_left, self._num_requests = see_step, dict[int, int](), 0

    @property
    def has_work(self) -> bool:
        return bool(self._steps_left)

    def add_request(self, num_steps: int) -> int:
        self._num_requests += 1
        self._steps_left[self._num_requests] = num_steps
        return self._num_requests

    def cancel(self, request_id: int) -> None:
        self._steps_left.pop(request_id, None)

    def step(self) -> list[Ended]:
        self._see_step()
        self._steps_left = {request_id: left - 1 for request_id, left in self._steps_left.items()}
        ended = [request_id for request_id, left in self._steps_left.items() if left == 0]
        for request_id in ended:
            del self._steps_left[request_id]
        return [Ended(request_id) for request_id in ended]


def wait_for(lock: FairLock, count: int) -> None:
    while lock.num_waiting < count:
        pass


def test_a_lock_goes_to_who_asked_first() -> None:
    lock, order = FairLock(), list[int]()

    def take(number: int) -> None:
        with lock:
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(5)]
    with lock:
        for number, thread in enumerate(threads):
            thread.start()
            wait_for(lock, number + 1)
    take(5)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("has_turn", [False, True])
def test_who_is_interrupted_while_waiting_holds_nobody_up(has_turn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FairLock()

    class Interrupted:
        """A turn whose wait an interrupt ends: before the lock was passed on to it, or just then."""

        def __init__(self) -> None:
            self._is_made = False

        def acquire(self) -> None:
            if self._is_made:
                if has_turn:
                    lock.__exit__()
                raise KeyboardInterrupt
            self._is_made = True

        def release(self) -> None:
            pass

    lock.__enter__()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading, "Lock", Interrupted)
        lock.__enter__()
    if not has_turn:
        lock.__exit__()
    with lock:
        assert lock.num_waiting == 0


def test_a_short_call_waits_for_one_step_a_turn_of_a_long_one() -> None:
    steps_while_it_waited = 0
    begun = threading.Event()

    def see_step() -> None:
        """The long call goes on only when the short one is in line, or has ended."""
        nonlocal steps_while_it_waited
        if threading.current_thread() is not short:
            begun.set()
            while short.is_alive() and lock.num_waiting == 0:
                pass
            steps_while_it_waited += lock.num_waiting > 0

    def ask_short() -> None:
        begun.wait()
        (request_id,) = driver.submit([2])
        assert driver.next_event(request_id).request_id == request_id

    driver = Driver(CountingEngine(see_step))
    lock, short = driver._lock, threading.Thread(target=ask_short)
    (long,) = driver.submit([1000])
    short.start()
    assert driver.next_event(long).request_id == long
    short.join()
    num_turns = 3  # to submit, and to wait for each of two steps
    assert 1 <= steps_while_it_waited <= num_turns


def test_a_request_that_is_closed_by_another_thread_lets_its_reader_go() -> None:
    closing: list[threading.Thread] = []

    def see_step() -> None:
        if not closing:
            closing.append(threading.Thread(target=driver.cancel, args=(request_id,)))
            closing[0].start()
            wait_for(driver._lock, 1)

    driver = Driver(CountingEngine(see_step))
    (request_id,) = driver.submit([1000])
    with pytest.raises(SessionError, match="closed before it had ended"):
        driver.next_event(request_id)
    closing[0].join()
    assert not driver.is_busy


def test_who_waits_for_others_steps_unless_a_thread_is_there_for_that() -> None:
    steps = 0

    def see_step() -> None:
        nonlocal steps
        steps += 1

    driver = Driver(CountingEngine(see_step))  # type: ignore[arg-type]
    assert driver.step_for_all() and steps == 0
    driver.submit([2])
    assert driver.step_for_all() and steps == 1
    driver.submit([1], pushed=True)
    assert not driver.step_for_all() and steps == 1
    assert [event.is_final for event in driver.step()] == [True]  # type: ignore[attr-defined]
    assert driver.step_for_all() and steps == 2
