"""What one compile may take, by name: the processor time of its thread, and what it holds in memory.

Both are looked at by those who make nodes, literals and tokens, every so many of them, and by loops that make none of these. What
it takes to give everything back counts as well: it comes behind the last look.

A compile has one *account* from its beginning to its end, whatever stages it has: `accounted` opens it, unless the thread has one
open already. Memory is not measured, but counted: of objects Python knows how many there are, since nothing is collected meanwhile
(runtime/garbage.py), and each is taken for so many bytes; who makes expressions or arrays says how many bytes these take (`hold`,
`check_bytes`), and what is kept only for a while is given back (`held_for_a_while`). So the same source meets the limit at nearly
the same point everywhere: less is made of what the process has kept from others, and what other threads make meanwhile is counted.
"""

from __future__ import annotations

import gc
import threading
import time
from typing import Final, Protocol

from ...foundation.compiled_loops.compile_time import objects_made, seconds_spent
from ..base.errors import ConstraintLimit

NODE_BYTES: Final = 100  # of one expression, beside the objects by which it is found again
OBJECT_BYTES: Final = 250  # of one of Python's objects, with its entry in a dictionary and the numbers and texts that it holds
LOOK_EVERY: Final = 1024  # characters or other small things that are gone through between two looks
_SECONDS_OF_OBJECT: Final = 3e-7  # to give it back
_SECONDS_OF_BYTE: Final = 1.5e-9  # the same for what is held beside objects


class Spending(Protocol):
    """What a compile may take, of `Limits`."""

    @property
    def seconds(self) -> float: ...

    @property
    def bytes(self) -> int: ...


class Account:
    """When a compile began, by processor time and by the clock on the wall, and what it holds now."""

    def __init__(self, limits: Spending) -> None:
        self.limits, self.held = limits, 0  # bytes beside objects
        self._count, self._compiled = gc.get_count()[0], objects_made()  # of objects that there were before
        self.path: str | None = None  # of the part of the source that is worked on
        self.started, self.begun = worked(), time.monotonic()

    @property
    def num_objects(self) -> int:
        """Objects that were made since, and are there."""
        return max(gc.get_count()[0] - self._count - (objects_made() - self._compiled), 0)  # without those of compiling loops

    def check_time(self) -> None:
        """Raises `ConstraintLimit` when the time is over."""
        if is_over(self.started, self.begun, self.limits.seconds):
            raise ConstraintLimit("compiling it takes too long", limit="seconds", value=self.limits.seconds, path=self.path)

    def check_bytes(self, num_bytes: int) -> None:
        """Raises `ConstraintLimit` where so many bytes beside those that are held are too many. Objects that were made since are
        shared among the compiles that are under way: nobody knows whose they are."""
        held = self.held + num_bytes
        if held + OBJECT_BYTES * max(gc.get_count()[0] - self._count, 0) <= self.limits.bytes:  # mostly, and found out quickly
            return
        if held + OBJECT_BYTES * (self.num_objects // max(len(_accounts), 1)) > self.limits.bytes:
            raise ConstraintLimit(
                "compiling it takes too much memory", limit="bytes", value=self.limits.bytes,
                instead="fewer conditions that hold at the same time, or smaller counts; or raise limits.bytes",
            )  # fmt: skip


class Stopwatch:
    """Counts the processor time of the thread since its account was opened, or else from the moment the stopwatch is made, without
    that of compiling loops at their first use."""

    def __init__(self, limits: Spending, what: str) -> None:
        self._beginning, self._limit, self._what = beginning(), limits.seconds, what

    def check(self, ahead: float = 0.0) -> None:
        """Raises `ConstraintLimit` when the time is over, or what is held too much; ahead: or will be, by what takes so many
        seconds and cannot look."""
        check_bytes()
        if is_over(*self._beginning, self._limit - ahead):
            raise ConstraintLimit(f"{self._what} takes too long", limit="seconds", value=self._limit)


def beginning() -> tuple[float, float]:
    """Processor time, and time on the wall, at which the compile that is under way began; now, where there is none."""
    account = _open_account()
    return (worked(), time.monotonic()) if account is None else (account.started, account.begun)


class accounted:
    """All that the thread compiles meanwhile is one compile; part of the one that is under way, if there is one."""

    def __init__(self, limits: Spending) -> None:
        self._limits, self._is_outermost = limits, False

    def __enter__(self) -> None:
        self._is_outermost = _open_account() is None
        if self._is_outermost:
            _thread.account = account = Account(self._limits)
            _accounts.add(account)

    def __exit__(self, *error: object) -> None:
        if self._is_outermost:
            _accounts.discard(_thread.account)
            _thread.account = None


class held_for_a_while:
    """What is held meanwhile is free again behind it."""

    def __init__(self) -> None:
        self._account, self._before = _open_account(), 0

    def __enter__(self) -> None:
        if self._account is not None:
            self._before = self._account.held

    def __exit__(self, *error: object) -> None:
        if self._account is not None:
            self._account.held = self._before


def hold(num_bytes: int) -> None:
    """Hold so many bytes more, beside objects, or fewer where it is negative. Raises `ConstraintLimit` where a compile is under way
    and they are too many."""
    account = _open_account()
    if account is None:
        return
    if num_bytes >= 0:
        account.check_bytes(num_bytes)
    account.held += num_bytes


def check_bytes(num_bytes: int = 0) -> None:
    """Raises `ConstraintLimit` where a compile is under way and could not hold so many bytes more."""
    account = _open_account()
    if account is not None:
        account.check_bytes(num_bytes)


def look() -> None:
    """Look at the clock, and at what is held. Raises `ConstraintLimit` where a compile is under way and has taken too much.

    Whatever takes long makes nodes, literals or sites: those who make these look once in a while, so that nobody else has to.
    """
    account = _open_account()
    if account is not None:
        account.check_time()
        account.check_bytes(0)


def work_on(path: str) -> None:
    """Note which part of the source is worked on from now on."""
    account = _open_account()
    if account is not None:
        account.path = path


def is_over(started: float, begun: float, seconds: float) -> bool:
    """Whether a compile has worked for so many seconds, with what it will take to give back what it has made.

    started: its processor time when it began; begun: the time on the wall.
    """
    elapsed = time.monotonic() - begun
    if elapsed < seconds / 8:  # by then there are not so many objects that giving them back takes the rest
        return False
    account = _open_account()
    if account is None:
        left = seconds - _SECONDS_OF_OBJECT * gc.get_count()[0]
    else:
        left = seconds - _SECONDS_OF_OBJECT * account.num_objects - _SECONDS_OF_BYTE * account.held
    if elapsed < left:
        return False  # a thread does not work longer than time goes by, and this clock is read without a call of the kernel
    return worked() - started > left


def _open_account() -> Account | None:
    return getattr(_thread, "account", None)


def worked() -> float:
    """Processor time of the thread without what compiling loops took."""
    return time.thread_time() - seconds_spent()


_thread = threading.local()
_accounts: Final[set[Account]] = set()  # of all threads
