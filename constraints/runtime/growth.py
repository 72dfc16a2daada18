"""Growth: whether what is kept of a text grows with it, found out while compiling.

Stacks that say the same are merged (automaton/containment.py, unions.py), but no test tells that of all context-free grammars. So
a few texts of some tokens are made up, which begin freely and then repeat themselves (token_automaton/pumping.py), and the work
of each of their bytes is looked at. Where it rises, other forms are tried in the same way: an equal grammar in which what says
the same is there once (normal_form/reduction.py), and stacks that are kept as a graph (automaton/fronts.py), which takes longer
for a byte and does not grow where the other way does. A grammar is refused whose work for one byte reaches a third of a
millisecond within the first 64 bytes in any case: what grows with a power of the length takes a twentieth of that so early. What
a grammar takes that is large without growing is in proportion to its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstraintLimit, UnsupportedKeyword
from ..grammar.expression import Grammar, Node
from ..normal_form.reduction import reduced
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


class Form(NamedTuple):
    """A way to keep what may follow."""

    grammar: Grammar
    root: Node
    stacks_as_graph: bool

    def automaton(self, like: TokenAutomaton) -> TokenAutomaton:
        """A new one, for the vocabulary and the limits of another one."""
        self.grammar.stacks_as_graph = self.stacks_as_graph
        return TokenAutomaton(self.grammar, self.root, like.shared_vocabulary, like.limits)


def steadied(automaton: TokenAutomaton) -> TokenAutomaton:
    """`automaton` if what it keeps of a text does not grow, else one of another form where that takes less work. Neither has the
    states of the texts that are tried. Raises `UnsupportedKeyword` for a grammar with short texts behind which masks would take
    too long in any form, and shows one."""
    written = best = Form(automaton.grammar, automaton.root, stacks_as_graph=False)
    plain = tried(written.automaton(automaton), _LONGEST)
    if any(trial.rises for trial in plain):
        plain = tried(written.automaton(automaton), _LONGEST_THAT_RISES)
    if not any(trial.rises or trial.explodes for trial in plain):
        return automaton
    least = plain
    for form in _other_forms(automaton):
        trials = tried(form.automaton(automaton), _LONGEST_THAT_RISES)
        if len(trials) < len(_PERIODS) or any(trial.explodes for trial in trials):  # or a limit has ended a trial
            continue
        if any(trial.explodes for trial in least) or _latest(trials) < _latest(least):
            best, least = form, trials
        if not any(trial.rises for trial in trials):
            break
    automaton.grammar.stacks_as_graph = False
    if best != written:
        return best.automaton(automaton)
    refused = [trial for trial in plain if trial.explodes and trial.work.size <= _EARLY]
    if refused:
        raise _refused(refused[0])
    return automaton


def _other_forms(automaton: TokenAutomaton) -> Iterator[Form]:
    if not automaton.may_be_graph:
        return
    smaller = reduced(automaton.grammar, automaton.root, automaton.limits)
    if smaller is not None:
        yield Form(*smaller, stacks_as_graph=False)
        yield Form(*smaller, stacks_as_graph=True)
    yield Form(automaton.grammar, automaton.root, stacks_as_graph=True)


def tried(automaton: TokenAutomaton, longest: int) -> list[Trial]:
    """Texts of at most `longest` bytes; no more behind one whose work explodes. automaton: of its own, since it is left with
    the states of these texts."""
    trials: list[Trial] = []
    for seed, period in enumerate(_PERIODS):
        trials += _tried(automaton, period, seed, longest)
        if trials and trials[-1].explodes:
            break
    return trials


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
