"""Growth: whether what is kept of a text explodes with it, found out while compiling.

Stacks that say the same are merged (automaton/containment.py, unions.py), but no test tells that of all context-free grammars. So a
few texts of some tokens are made up, which begin freely and then repeat themselves (automaton/pumping.py). A grammar is refused
whose work for one byte reaches a third of a millisecond there: it grows exponentially, since what grows with a power of the length
takes a twentieth of that so early. What a grammar takes that is large without growing is in proportion to its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.errors import ConstraintLimit, UnsupportedKeyword
from ..token_automaton.token_automaton import Pumped, TokenAutomaton

_AT_ONCE, _OF_A_NODE = 30_000, 40  # work of a byte that is enough to be sure; what each node of the grammar adds
_PERIODS = (1, 2, 3, 1, 2)  # of the texts that are tried
_FREE, _LONGEST = 32, 64  # bytes: before a text only repeats itself, and at most
_WINDOW = 24  # bytes whose work is averaged: a multiple of the periods


class Growth(NamedTuple):
    """A text that takes ever more work as it goes on repeating itself."""

    text: bytes
    period: int
    work: dict[int, int]  # of a byte, by the length of the text before it


def growth_of(automaton: TokenAutomaton) -> Growth | None:
    """A text whose work explodes, if one of those that are tried is such a text."""
    walks = (_growth(automaton, period, seed) for seed, period in enumerate(_PERIODS))
    return next(filter(None, walks), None)


def _growth(automaton: TokenAutomaton, period: int, seed: int) -> Growth | None:
    most = _AT_ONCE + _OF_A_NODE * len(automaton.grammar)
    pumped = Pumped(_FREE, np.zeros(_LONGEST + 1, np.int32), np.zeros(_LONGEST, np.int32), np.full(_LONGEST, -1, np.int32))
    pumped.states[0] = automaton.start
    try:
        length = automaton.pump(period, seed, 0, _LONGEST, most, pumped)
    except ConstraintLimit as error:
        if error.limit == "seconds":
            raise
        return None  # so small a limit says so when it matters
    work = pumped.work[:length]
    if work.max(initial=0) <= most:
        return None
    half = max(length // 2, 1)
    before = int(work[max(half - _WINDOW, 0) : half].mean())
    return Growth(pumped.text[:length].astype(np.uint8).tobytes(), period, {half: before, length: int(work.max())})


def refuse_growth(automaton: TokenAutomaton) -> None:
    """Raises `UnsupportedKeyword` for a grammar with texts behind which masks would take too long, and shows one. automaton: of
    its own, since it is left with the states of these texts."""
    growth = growth_of(automaton)
    if growth is not None:
        begun, again = growth.text[: max(_FREE, growth.period)], growth.text[-growth.period :]
        steps = ", ".join(f"{work} behind {length}" for length, work in growth.work.items())
        raise UnsupportedKeyword(
            f"there are ever more ways to read a text that begins with {_shown(begun)} and goes on with {_shown(again)}, again and "
            f"again: steps for a byte are {steps} bytes",
            path="root", keyword="ambiguity",
            instead="a grammar with one way to read each text, for example item* for rules that call themselves twice in a row; "
            "`maskwright grammar check` shows both ways to read a short text",
        )  # fmt: skip


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))
