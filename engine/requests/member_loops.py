"""Loops of members: `"key1": 0, "key2": 0, ...`. Names have to differ, so what repeats itself in an object is no cycle of tokens,
but one in which the digits of names differ. They are looked for every `bound` tokens, and told where a value is complete."""

from __future__ import annotations

import copy
import re
from typing import NamedTuple

from .loops import LoopWatch

FACTOR_OF_MEMBERS = 6  # that many times the tokens, and characters, of a loop in a string: members of one value may be meant
FEWEST_MEMBERS = 8
_DIGITS = -1  # of all tokens that are digits alone, and of several in a row
_SPACE = b" \t\r\n"
_NAME = re.compile(rb'"(?:[^"\\]|\\.)*"\s*:')


class MemberLoop(NamedTuple):
    """The last members of an object: their names differ in digits alone, and their values not at all."""

    start: int  # number of the token with which they begin
    num_bytes: int  # from there on
    text: str  # of the last one of them
    num_members: int


class MemberWatch:
    """Reads tokens and knows whether they end with a loop of members."""

    def __init__(self, bound: int) -> None:
        self._bound, self._watch = bound, LoopWatch(bound)
        self._num_read = 0
        self._spelled: list[bytes] = []  # of what `_watch` has read
        self._numbers: list[int] = []  # of the tokens with which that begins
        self._period: int | None = None  # of the members that were found when they were looked for last

    def take(self, token_id: int, spelled: bytes) -> None:
        is_number, self._num_read = spelled.isdigit(), self._num_read + 1
        if is_number and self._spelled and self._spelled[-1].isdigit():
            self._spelled[-1] += spelled
        else:
            self._watch.take(_DIGITS if is_number else token_id)
            self._spelled.append(spelled)
            self._numbers.append(self._num_read - 1)
        if len(self._spelled) > 4 * self._watch.longest:
            del self._spelled[: -self._watch.longest], self._numbers[: -self._watch.longest]
        if self._num_read % self._bound == 0:
            period = self._watch.period()
            self._period = period if period is not None and b'"' in b"".join(self._spelled[-period:]) else None

    def clear(self) -> None:
        """What was read so far is no part of any loop."""
        self._watch.clear()
        self._spelled.clear()
        self._numbers.clear()
        self._period = None

    def fork(self) -> MemberWatch:
        child = copy.copy(self)
        child._watch, child._spelled, child._numbers = self._watch.fork(), self._spelled.copy(), self._numbers.copy()
        return child

    def is_none_within(self, num_tokens: int) -> bool:
        """Whether, whatever the next so many tokens are, `loop` is None behind each of them."""
        if self._period is not None:
            return False
        return num_tokens < self._bound - self._num_read % self._bound or self._watch.is_none_within(num_tokens)

    def loop(self) -> MemberLoop | None:
        """The members that the last tokens are, if the last one of them has the value of all."""
        period = self._period
        if period is None:
            return None
        _, *members = _NAME.split(b"".join(self._spelled[-2 * period :]))
        if len(members) < 2 or members[-2].strip(_SPACE) != members[-1].strip(_SPACE) + b",":  # another value, or not all of it
            return None
        length = self._watch.covered(period)
        text, start = b"".join(self._spelled[-length:]), self._numbers[-length]
        if min(self._num_read - start, len(text)) < FACTOR_OF_MEMBERS * self._bound:
            return None
        _, *members = _NAME.split(text)
        if len(members) <= FEWEST_MEMBERS or len(set(members[:-1])) > 1:
            return None
        repeated = b"".join(self._spelled[-period:]).decode(errors="replace")
        return MemberLoop(start, len(text), repeated, len(members))
