"""Growth: whether what is kept of a text grows with it, found out while compiling.

Stacks that say the same are merged (automaton/containment.py, unions.py), but no test tells that of all context-free grammars. So
a few texts of some tokens are made up, which begin freely and then repeat themselves (token_automaton/pumping.py), and the work
of each of their bytes is looked at. Where it rises, and where it does in more texts of a small grammar, many long texts are
tried, in several forms: as written, as an equal grammar in which what says the same is there once (normal_form/reduction.py), and
with stacks that are kept as a graph (automaton/fronts.py), which takes longer for a byte and does not grow where the other way
does. A form will do if no byte of these texts takes more than `Limits.byte_words`. A grammar without such a form is refused where
that happens within 64 bytes, with the text, and with a part of it that a rule reads in two ways (normal_form/readings.py). What a
grammar takes that is large without growing is in proportion to its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstraintLimit, UnsupportedKeyword
from ..grammar.expression import Grammar, Node
from ..grammar.stopwatch import look
from ..normal_form.readings import ambiguity
from ..normal_form.reduction import reduced
from ..token_automaton.token_automaton import Pumped, TokenAutomaton

_OF_A_NODE = 40  # work of a byte that each node of the grammar adds to what is too much
_SMALL, _SMALLEST, _MUCH = 300, 100, 150  # nodes of a grammar; work of a byte that is much for one of so many


class Texts(NamedTuple):
    """Texts to be tried, of every period behind every number of bytes that are free."""

    periods: tuple[int, ...]
    free: tuple[int, ...]  # bytes before a text only repeats itself
    longest: int  # bytes

    def each(self) -> Iterator[tuple[int, int, int]]:
        """(number, period, free) of every text."""
        for number, (free, period) in enumerate(product(self.free, self.periods)):
            yield number, period, free


_FIRST = Texts((1, 2, 3, 1, 2), (32,), 96)
_MORE = Texts((1, 2, 3, 1, 2), (32,), 192)  # where work rises within the first
_MANY = Texts((1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17), (16, 32, 48, 64, 1024), 256)
_LONG = _MANY._replace(free=(32, 64, 1024), longest=1024)
_MOST_WORK = 40_000_000  # of long texts of one form: a second
_EARLY = 64  # bytes: what explodes only behind more may be a bracket that closes a thousand others, and is not refused
_CHEAP = 1_000  # work of a byte on the average: no other form need be looked for
_WINDOW = 24  # bytes whose work is averaged
_RISE, _LEAST = 1.3, 150  # from one window to the next, and work of a byte, that are taken for growth


class Trial(NamedTuple):
    """A text that was tried."""

    text: bytes
    free: int
    period: int
    work: NDArray[np.int32]  # [bytes] of each byte
    most: int  # work that is too much
    is_cut: bool = False  # by a limit, and says nothing of the work

    def at(self, end: int) -> int:
        """The work of a byte in the window that ends at `end`, which is not beyond the text."""
        return int(self.work[max(end - _WINDOW, 0) : end].mean()) if end > 0 else 0

    @property
    def explodes(self) -> bool:
        return bool(self.work.max(initial=0) > self.most)

    @property
    def rises(self) -> bool:
        length = self.work.size
        return length >= _FIRST.longest and self.at(length) > max(_RISE * self.at(length // 2), _LEAST)


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
    states of the texts that are tried. Raises `UnsupportedKeyword` for a grammar with short texts behind which masks would take too
    long in any form, and shows one."""
    written = best = Form(automaton.grammar, automaton.root, stacks_as_graph=False)
    if not _is_suspect(written, automaton):
        return automaton
    least: float | None = None
    refused: list[Trial] = []
    for form in chain([written], _other_forms(automaton)):
        trials = tried(form.automaton(automaton), _MORE)
        if any(trial.is_cut for trial in trials):
            continue
        rises = any(trial.rises for trial in trials)
        if not any(trial.explodes for trial in trials):
            trials += _long(form, automaton)
        exploding = [trial for trial in trials if trial.explodes]
        refused = refused or exploding
        work = sum(int(trial.work.sum()) for trial in trials) / max(sum(trial.work.size for trial in trials), 1)
        if not exploding and (least is None or work < least):
            best, least = form, work
        if not exploding and not rises and work < _CHEAP:
            break
    automaton.grammar.stacks_as_graph = False
    if least is None and refused and refused[0].work.size <= _EARLY:
        raise _refused(refused[0], written)
    return automaton if best == written else best.automaton(automaton)


def _is_suspect(form: Form, like: TokenAutomaton) -> bool:
    """Whether work rises in the first texts, or in more of them where these take little: of the smallest grammars, and of small
    ones that take much."""
    trials = tried(form.automaton(like), _FIRST)
    if any(trial.explodes for trial in trials):
        return True
    more = _MORE
    if not any(trial.rises for trial in trials):
        size = len(form.grammar)
        if size > _SMALLEST and (size > _SMALL or _latest(trials) <= _MUCH):
            return False
        more = _MANY
    return any(trial.rises or trial.explodes for trial in tried(form.automaton(like), more))


def _other_forms(automaton: TokenAutomaton) -> Iterator[Form]:
    if not automaton.may_be_graph:
        return
    smaller = reduced(automaton.grammar, automaton.root, automaton.limits)
    if smaller is not None:
        yield Form(*smaller, stacks_as_graph=False)
        yield Form(*smaller, stacks_as_graph=True)
    yield Form(automaton.grammar, automaton.root, stacks_as_graph=True)


def tried(automaton: TokenAutomaton, texts: Texts) -> list[Trial]:
    """Texts, and no more behind one whose work explodes, or that a limit cuts. automaton: of its own, since it is left with the
    states of these texts."""
    trials: list[Trial] = []
    for number, period, free in texts.each():
        trials.append(_tried(automaton, period, number, free, texts.longest))
        if trials[-1].explodes or trials[-1].is_cut:
            break
    return trials


def _long(form: Form, like: TokenAutomaton) -> Iterator[Trial]:
    """Many long texts, each with an automaton of its own, up to one that a limit cuts; no more behind one whose work explodes, or
    all that may be spent."""
    left = _MOST_WORK
    for number, period, free in _LONG.each():
        look()
        trial = _tried(form.automaton(like), period, number, free, _LONG.longest)
        if trial.is_cut:
            return
        yield trial
        left -= int(trial.work.sum())
        if trial.explodes or left < 0:
            return


def _tried(automaton: TokenAutomaton, period: int, seed: int, free: int, longest: int) -> Trial:
    most = automaton.limits.byte_words + _OF_A_NODE * len(automaton.grammar)
    pumped = Pumped(free, np.zeros(longest + 1, np.int32), np.zeros(longest, np.int32), np.full(longest, -1, np.int32))
    pumped.states[0] = automaton.start
    try:
        length = automaton.pump(period, seed, 0, longest, most, pumped)
    except ConstraintLimit as error:
        if error.limit == "seconds":
            raise
        return Trial(b"", free, period, pumped.work[:0], most, is_cut=True)  # so small a limit says so when it matters
    return Trial(pumped.text[:length].astype(np.uint8).tobytes(), free, period, pumped.work[:length], most)


def _latest(trials: list[Trial]) -> int:
    """The most work of a byte where the texts end."""
    return max((trial.at(trial.work.size) for trial in trials), default=0)


def _refused(trial: Trial, written: Form) -> UnsupportedKeyword:
    length, half = len(trial.text), max(len(trial.text) // 2, 1)
    begun, again = trial.text[: max(trial.free, trial.period)], trial.text[-trial.period :]
    steps = f"{trial.at(half)} behind {half}, {trial.work.max()} behind {length} bytes (limit `byte_words`: {trial.most})"
    found = ambiguity(written.grammar, written.root, trial.text)
    shown = "" if found is None else f"; rule {found.rule!r} reads {_shown(found.text)} as {found.first} and as {found.second}"
    return UnsupportedKeyword(
        f"there are ever more ways to read a text that begins with {_shown(begun)} and goes on with {_shown(again)}, again and "
        f"again: steps for a byte are {steps}{shown}",
        path="root" if found is None else found.rule, keyword="ambiguity",
        instead="a grammar with one way to read each text, for example item* for rules that call themselves twice in a row; "
        "`maskwright grammar check` shows both ways to read a short text",
    )  # fmt: skip


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))
