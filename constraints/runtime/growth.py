"""Growth: whether what is kept of a text grows with it, found out while compiling.

Stacks that say the same are merged (automaton/containment.py, unions.py), but no test tells that of all context-free grammars. So a
few texts of some tokens are made up, which begin freely and then repeat themselves (automaton/pumping.py), and the work of each of
their bytes is looked at. Where it rises, the grammar's stacks are kept as a graph (automaton/fronts.py), if they can be: that takes
longer for a byte, and does not grow where the other way does. A grammar is refused whose work for one byte reaches a third of a
millisecond within the first 64 bytes in any case: what grows with a power of the length takes a twentieth of that so early. What a
grammar takes that is large without growing is in proportion to its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstraintLimit, UnsupportedKeyword
from ..token_automaton.token_automaton import Pumped, TokenAutomaton

_AT_ONCE, _OF_A_NODE = 30_000, 40  # work of a byte that is enough to be sure; what each node of the grammar adds
_PERIODS = (1, 2, 3, 1, 2)  # of the texts that are tried
_FREE, _LONGEST, _LONGEST_THAT_RISES = 32, 96, 192  # bytes: before a text only repeats itself, and at most
_EARLY = 64  # bytes: what explodes only behind more is slow there, and not refused
_WINDOW = 24  # bytes whose work is averaged: a multiple of the periods
_RISE, _LEAST = 1.3, 150  # from one window to the next, and work of a byte, that are taken for growth


class Trial(NamedTuple):
    """A text that was tried."""

    text: bytes
    period: int
    work: NDArray[np.int32]  # [bytes] of each byte
    most: int  # work that is too much

    def at(self, end: int) -> int:
        """The work of a byte in the window that ends at `end`, which is not beyond the text."""
        return int(self.work[max(end - _WINDOW, 0) : end].mean()) if end > 0 else 0

    @property
    def explodes(self) -> bool:
        return bool(self.work.max(initial=0) > self.most)

    @property
    def rises(self) -> bool:
        length = self.work.size
        return length >= _LONGEST and self.at(length) > max(_RISE * self.at(length // 2), _LEAST)


def steadied(automaton: TokenAutomaton) -> TokenAutomaton:
    """`automaton` if what it keeps of a text does not grow, else one with its stacks as a graph where that takes less work. Neither
    has the states of the texts that are tried. Raises `UnsupportedKeyword` for a grammar with short texts behind which masks
    would take too long either way, and shows one."""
    grammar = automaton.grammar
    plain = tried(_again(automaton), _LONGEST)
    if any(trial.rises for trial in plain):
        plain = tried(_again(automaton), _LONGEST_THAT_RISES)
    exploding = [trial for trial in plain if trial.explodes]
    if automaton.may_be_graph and (exploding or any(trial.rises for trial in plain)):
        grammar.stacks_as_graph = True
        graph = tried(_again(automaton), _LONGEST_THAT_RISES)
        explodes = len(graph) < len(_PERIODS) or any(trial.explodes for trial in graph)  # or a limit has ended a trial
        if not explodes and (exploding or _latest(graph) < _latest(plain)):
            return _again(automaton)
        grammar.stacks_as_graph = False
    refused = [trial for trial in exploding if trial.work.size <= _EARLY]
    if refused:
        raise _refused(refused[0])
    return automaton


def tried(automaton: TokenAutomaton, longest: int) -> list[Trial]:
    """Texts of at most `longest` bytes; no more behind one whose work explodes. automaton: of its own, since it is left with
    the states of these texts."""
    trials: list[Trial] = []
    for seed, period in enumerate(_PERIODS):
        trials += _tried(automaton, period, seed, longest)
        if trials and trials[-1].explodes:
            break
    return trials


def _again(automaton: TokenAutomaton) -> TokenAutomaton:
    return TokenAutomaton(automaton.grammar, automaton.root, automaton.shared_vocabulary, automaton.limits)


def _tried(automaton: TokenAutomaton, period: int, seed: int, longest: int) -> list[Trial]:
    most = _AT_ONCE + _OF_A_NODE * len(automaton.grammar)
    pumped = Pumped(_FREE, np.zeros(longest + 1, np.int32), np.zeros(longest, np.int32), np.full(longest, -1, np.int32))
    pumped.states[0] = automaton.start
    try:
        length = automaton.pump(period, seed, 0, longest, most, pumped)
    except ConstraintLimit as error:
        if error.limit == "seconds":
            raise
        return []  # so small a limit says so when it matters
    return [Trial(pumped.text[:length].astype(np.uint8).tobytes(), period, pumped.work[:length], most)]


def _latest(trials: list[Trial]) -> int:
    """The most work of a byte where the texts end."""
    return max((trial.at(trial.work.size) for trial in trials), default=0)


def _refused(trial: Trial) -> UnsupportedKeyword:
    length, half = len(trial.text), max(len(trial.text) // 2, 1)
    begun, again = trial.text[: max(_FREE, trial.period)], trial.text[-trial.period :]
    steps = f"{trial.at(half)} behind {half}, {trial.work.max()} behind {length}"
    return UnsupportedKeyword(
        f"there are ever more ways to read a text that begins with {_shown(begun)} and goes on with {_shown(again)}, again and "
        f"again: steps for a byte are {steps} bytes",
        path="root", keyword="ambiguity",
        instead="a grammar with one way to read each text, for example item* for rules that call themselves twice in a row; "
        "`maskwright grammar check` shows both ways to read a short text",
    )  # fmt: skip


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))
