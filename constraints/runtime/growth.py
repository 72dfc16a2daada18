"""Growth: whether what is kept of a text grows with it until masks take too long, found out while compiling.

Stacks that say the same are merged (automaton/containment.py, unions.py), but no test tells that of all context-free grammars. So a
few texts are made up, which begin freely and then repeat themselves (automaton/pumping.py). Where the work of a byte keeps growing
while they do, what it would come to behind MOST_BYTES is the verdict: a grammar is refused whose texts would take more than
MOST_WORK a byte there. What a grammar takes that is large without growing is in proportion to its size.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..base.errors import UnsupportedKeyword
from ..token_automaton.token_automaton import Pumped, TokenAutomaton

MOST_BYTES = 15_000  # 5,000 tokens of three
MOST_WORK = 100_000  # of a byte: about a millisecond
_AT_ONCE, _OF_A_NODE = 30_000, 40  # work of a byte of a short text that is enough to be sure; what each node of the grammar adds
_PERIODS = (1, 2, 3, 1, 2)  # of the texts that are tried
_FREE, _TRIED, _LONGEST = 32, 64, 512  # bytes: before a text only repeats itself, at first, at most
_SUSPECT, _GROWS = 150, 1.2  # work of a byte, and its rise behind twice the length: less is no growth
_WINDOW = 24  # bytes whose work is averaged: a multiple of the periods


class Growth(NamedTuple):
    """A text that takes ever more work as it goes on repeating itself."""

    text: bytes
    period: int
    lengths: list[int]
    work: list[int]  # of a byte on average, at the lengths


class _Walk:
    def __init__(self, automaton: TokenAutomaton, period: int, seed: int) -> None:
        self._automaton, self._period, self._seed, self.length = automaton, period, seed, 0
        self._of_size = _OF_A_NODE * len(automaton.grammar)
        arrays = np.zeros(_LONGEST + 1, np.int32), np.zeros(_LONGEST, np.int32), np.full(_LONGEST, -1, np.int32)
        self._pumped = Pumped(_FREE, *arrays)
        self._pumped.states[0] = automaton.start

    def go_on(self, end: int) -> bool:
        """Make the text as long as `end`. Returns whether that was possible."""
        self.length = self._automaton.pump(self._period, self._seed, self.length, end, _AT_ONCE + self._of_size, self._pumped)
        return self.length == end

    def work_before(self, end: int) -> int:
        """The work of a byte, on average of those before `end`."""
        return int(self._pumped.work[max(end - _WINDOW, 0) : end].mean())

    @property
    def most_work(self) -> int:
        return int(self._pumped.work[: self.length].max(initial=0))

    def growth(self) -> Growth | None:
        """What the text comes to, if that is too much."""
        self.go_on(_TRIED)
        lengths = [_TRIED // 2]
        work = [self.work_before(_TRIED // 2)]
        while self.most_work <= _AT_ONCE + self._of_size:
            if self.length < 2 * lengths[-1]:  # the text has come to its end
                return None
            lengths.append(self.length)
            work.append(self.work_before(self.length))
            if work[-1] < max(_SUSPECT, _GROWS * work[-2]):
                return None
            if self.length == _LONGEST:
                exponent = math.log2(work[-1] / work[-2])
                if work[-1] * (MOST_BYTES / self.length) ** exponent <= MOST_WORK + self._of_size:
                    return None
                break
            self.go_on(2 * self.length)
        text = self._pumped.text[: self.length].astype(np.uint8).tobytes()
        return Growth(text, self._period, [*lengths, self.length], [*work, self.most_work])


def growth_of(automaton: TokenAutomaton) -> Growth | None:
    """A text behind which masks would take too long, if one of those that are tried is such a text."""
    walks = (_Walk(automaton, period, seed) for seed, period in enumerate(_PERIODS))
    return next(filter(None, (walk.growth() for walk in walks)), None)


def refuse_growth(automaton: TokenAutomaton) -> None:
    """Raises `UnsupportedKeyword` for a grammar with texts behind which masks would take too long, and shows one."""
    growth = growth_of(automaton) if automaton.may_grow else None
    if growth is not None:
        begun, again = growth.text[: max(_FREE, growth.period)], growth.text[-growth.period :]
        steps = ", ".join(f"{work} behind {length}" for length, work in zip(growth.lengths, growth.work, strict=True))
        raise UnsupportedKeyword(
            f"there are ever more ways to read a text that begins with {_shown(begun)} and goes on with {_shown(again)}, again and "
            f"again: steps for a byte are {steps} bytes",
            path="root", keyword="ambiguity",
            instead="a grammar with one way to read each text, for example item* for rules that call themselves twice in a row; "
            "`maskwright grammar check` shows both ways to read a short text",
        )  # fmt: skip


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))
