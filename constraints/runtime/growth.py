"""Growth: whether what is kept of a text grows with it, found out while compiling.

Stacks that say the same are merged (automaton/containment.py, unions.py), but no test tells that of all context-free grammars. So
a few texts of some tokens are made up, which begin freely and then repeat themselves (token_automaton/pumping.py), and the work
of each of their bytes is looked at; of a small grammar in more texts, and where these take much along cycles that the automaton
itself has (cycles.py). Where it rises, and is much when the text is long, an equal grammar takes its place that is a finite
automaton, if there is one (normal_form/finite_form.py): what is kept there cannot grow. If not, a search is made in several
forms: as an equal grammar in which what says the same is there once (normal_form/reduction.py), as written, and each with stacks
that are kept as a graph (automaton/fronts.py), which takes longer for a byte and does not grow where the other way does. What
grows does so on a few repetitions of many, so a search follows many cycles and texts for some bytes, and those that take most
there much farther. A form that takes more than the best so far, along the text that was hardest for that one, is not searched.

A form will do if no WINDOW bytes one after another take more than `Limits.byte_words` each on the average behind cycles, and more
than half of it in texts that are made up: the other half is for texts that are not tried. A single byte may take more: a bracket
that closes a thousand does, and then has closed them; what grows takes it again and again. First bytes, which have nothing to
close, may take as much as if AHEAD bytes had come before them. A grammar without such a form is
refused, with the text, and with a part of it that a rule reads in two ways (normal_form/readings.py). What a grammar takes that
is large without growing is in proportion to its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..automaton.tables import NODE_WORDS
from ..base.errors import ConstraintLimit, UnsupportedKeyword
from ..grammar.expression import Grammar, Node
from ..grammar.stopwatch import look
from ..normal_form.readings import ambiguity
from ..normal_form.reduction import finite, reduced
from ..token_automaton.pumping import AHEAD, WINDOW
from ..token_automaton.token_automaton import Pumped, TokenAutomaton
from .cycles import cycles
from .mask_trials import try_masks

_SHOWN = 24  # bytes of a text, in an error
_OF_A_NODE = 40  # work of a byte that each node of the grammar adds to what is too much
_SHARE = 0.5  # of the limit, that texts which are tried may take
_SMALL, _SMALLEST = 300, 100  # nodes of a grammar
_MUCH, _VERY_MUCH, _DEAR = 150, 400, 1_000  # work of a byte where a text only repeats itself, for a grammar of so many
_RISE, _LEAST, _FEW = 1.3, 150, 24  # from some bytes to later ones, and work of a byte, that are taken for growth; how many bytes


class Text(NamedTuple):
    """How a text is made up."""

    seed: int
    period: int
    free: int  # bytes before it only repeats itself
    longest: int  # bytes
    given: tuple[bytes, bytes] = b"", b""  # of one that is not: a beginning, and a cycle that comes again and again behind it

    @property
    def written(self) -> bytes:
        beginning, cycle = self.given
        return (beginning + cycle * (self.longest // len(cycle) + 1))[: self.longest] if cycle else b""


class Texts(NamedTuple):
    """Texts to be tried, of every period behind every number of bytes that are free."""

    periods: tuple[int, ...]
    free: tuple[int, ...]
    longest: int

    def each(self) -> Iterator[Text]:
        for seed, (period, free) in enumerate(product(self.periods, self.free)):
            yield Text(seed, period, free, self.longest)


_FIRST = Texts((1, 2, 3, 1, 2), (32,), 96)
_MORE = _FIRST._replace(longest=192)  # where work rises within the first
_MANY = Texts((1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17), (16, 32, 48, 64, 1024), 256)
_FOLLOWED, _FREE = 12, 4  # texts of a search that are followed farther, and that do not repeat themselves
_SHORT, _LONG = 128, 1024  # half as far as these are followed first, and how far in the end: bytes
_FAR = 2_048  # bytes that the dearest of the texts whose work rises is followed
_BEGINNINGS = ((3, 3), (20, 1), (8, 8), (20, 20))  # of cycles: how long these are, and their periods: bytes
_FEW_CYCLES, _MANY_CYCLES = (4, 40), (7, 120)  # their bytes, and how many behind each beginning
_CYCLES_WORK = 2_000_000  # of all texts that repeat cycles: a tenth of a second or two
_MOST_WORK, _MOST_FOLLOWED = 8_000_000, 4_000_000  # of all texts of a search, and of those that are followed
_MOST_NODES = 200_000  # of an automaton that follows many texts, beyond those of its grammar
_MANY_NODES = 50_000  # of one that is put aside for another before the next text
_CYCLES_FROM = 100  # work of a byte, in texts that are made up, from which on cycles are looked for
_CHEAP = 1_000  # work of a byte, where no other form need be looked for


class Trial(NamedTuple):
    """A text that was tried."""

    made: Text
    text: bytes
    work: NDArray[np.int32]  # [bytes] of each byte, and one more where that byte took too much to be known
    most: int  # work of a byte that is too much, on the average of WINDOW
    is_cut: bool = False  # by a limit, and says nothing of the work

    def at(self, end: int) -> int:
        """The work of a byte among those before `end`, which is not beyond the text."""
        return int(self.work[max(end - _FEW, 0) : end].mean()) if end > 0 else 0

    @property
    def last(self) -> int:
        """The work of a byte where the text ends."""
        return self.at(self.work.size)

    @property
    def explodes(self) -> bool:
        return bool((_in_windows(self.work) > self.most * np.minimum(np.arange(self.work.size) + AHEAD, WINDOW)).any())

    @property
    def rises(self) -> bool:
        length = self.work.size
        return length >= _FIRST.longest and self.last > max(_RISE * self.at(length // 2), _LEAST)


def dearest(work: NDArray[np.int32]) -> int:
    """The most that WINDOW bytes take, on the average of these. work: int32 [bytes] of each byte."""
    return int(_in_windows(work).max(initial=0)) // WINDOW


def _in_windows(work: NDArray[np.int32]) -> NDArray[np.int64]:
    """[bytes] of each byte and those before it, WINDOW in all where there are so many."""
    so_far = np.concatenate([np.zeros(WINDOW, np.int64), np.cumsum(work, dtype=np.int64)])
    found: NDArray[np.int64] = so_far[WINDOW:] - so_far[:-WINDOW]
    return found


class Form(NamedTuple):
    """A way to keep what may follow."""

    grammar: Grammar
    root: Node
    stacks_as_graph: bool

    def automaton(self, like: TokenAutomaton, more_nodes: int | None = None) -> TokenAutomaton:
        """A new one, for the vocabulary and the limits of another one. more_nodes: the most that it may have, and the grammar's."""
        self.grammar.stacks_as_graph = self.stacks_as_graph
        limits = like.limits
        if more_nodes is not None:
            limits = replace(limits, nodes=min(limits.nodes, len(self.grammar) + more_nodes))
        return TokenAutomaton(self.grammar, self.root, like.shared_vocabulary, limits)


def steadied(automaton: TokenAutomaton) -> TokenAutomaton:
    """`automaton` if what it keeps of a text does not grow, else one of another form where that takes less work. Neither has the
    states of the texts that are tried. Raises `UnsupportedKeyword` for a grammar with texts behind which masks would take too long
    in any form, and shows one; `ConstraintLimit` where masks take too long from the first (mask_trials.py)."""
    written = best = Form(automaton.grammar, automaton.root, stacks_as_graph=False)
    first = _together(written, automaton, _FIRST)
    suspicion = _suspicion(written, automaton, first)
    if suspicion is None:
        if max(dearest(trial.work) for trial in first) > _DEAR:
            try_masks(automaton)
        return automaton
    regular = finite(automaton.grammar, automaton.root, automaton.limits) if automaton.may_be_graph else None
    if regular is not None:
        return Form(*regular, stacks_as_graph=False).automaton(automaton)
    least: tuple[bool, float] | None = None  # whether work rises, and how much it is: forms whose work does not rise come first
    hardest: Trial | None = None  # of the best form
    refused = [suspicion] if suspicion.explodes else []
    for form in _forms(automaton):
        if (form == written and suspicion.explodes) or (hardest is not None and _takes_more(form, automaton, hardest)):
            continue
        trials = _searched(form, automaton)
        if any(trial.is_cut for trial in trials):
            continue
        rising = [trial for trial in trials if trial.rises and dearest(trial.work) > _CHEAP]
        rises = bool(rising)
        exploding = [trial for trial in (*trials, *_far(form, automaton, rising)) if trial.explodes]
        refused += exploding
        work = sum(int(trial.work.sum()) for trial in trials) / max(sum(trial.work.size for trial in trials), 1)
        if not exploding and (least is None or (rises, work) < least):
            best, least, hardest = form, (rises, work), max(trials, key=lambda trial: int(trial.work.sum()), default=None)
        if not exploding and not rises and work < _CHEAP:
            break
    automaton.grammar.stacks_as_graph = False
    if least is None and refused:
        raise refusal(min(refused, key=_shown_bytes), written)
    return automaton if best == written else best.automaton(automaton)


def _suspicion(form: Form, like: TokenAutomaton, trials: list[Trial]) -> Trial | None:
    """A text for which other forms are looked for: one whose work rises in the first texts and is much where it is long, or in more
    of them where it does not: of the smallest grammars, and of small ones that take much; these are followed along cycles, too.
    trials: of the first texts."""
    for trial in trials:
        if trial.explodes:
            return trial
    if any(trial.rises for trial in trials) and (found := _dear(form, like, _together(form, like, _MORE))) is not None:
        return found
    size, work = len(form.grammar), max((trial.last for trial in trials), default=0)
    if size > _SMALLEST and (size > _SMALL or work <= _MUCH):
        return None
    trials = _together(form, like, _MANY) if work <= _VERY_MUCH else _each(form, like, _MANY.each(), enough=_DEAR)
    most = max(trials, key=lambda trial: dearest(trial.work))
    if dearest(most.work) > _DEAR:
        return most
    found = _dear(form, like, trials)
    if found is None and dearest(most.work) >= _CYCLES_FROM:
        found = _dear(form, like, _on_cycles(form, like, *_FEW_CYCLES))
    return found


def _dear(form: Form, like: TokenAutomaton, trials: Iterable[Trial]) -> Trial | None:
    """One that explodes, or that rises and takes much where its text is long."""
    for trial in _dearest(trial for trial in trials if trial.rises or trial.explodes):
        if trial.explodes:
            return trial
        for longer in _each(form, like, _longer([trial])):
            if longer.explodes or longer.is_cut or dearest(longer.work) > _DEAR:
                return longer
    return None


def _takes_more(form: Form, like: TokenAutomaton, than: Trial) -> bool:
    """Whether a form takes more for a text than another one, which has followed it to its end."""
    text = Text(0, 1, 0, len(than.text), (than.text[:-1], than.text[-1:]))
    return _tried(form.automaton(like), text, like.limits.nodes, dearest(than.work)).explodes


def _forms(automaton: TokenAutomaton) -> Iterator[Form]:
    """Equal ones; those come first that mostly take the least."""
    smaller = reduced(automaton.grammar, automaton.root, automaton.limits) if automaton.may_be_graph else None
    if smaller is not None:
        yield Form(*smaller, stacks_as_graph=False)
    yield Form(automaton.grammar, automaton.root, stacks_as_graph=False)
    if not automaton.may_be_graph:
        return
    if smaller is not None:
        yield Form(*smaller, stacks_as_graph=True)
    yield Form(automaton.grammar, automaton.root, stacks_as_graph=True)


def _together(form: Form, like: TokenAutomaton, texts: Texts) -> list[Trial]:
    """Texts that one automaton follows, so that it takes work only for what none before began with; no more behind one whose work
    explodes, or that a limit cuts."""
    trials: list[Trial] = []
    automaton = form.automaton(like, _MOST_NODES)
    for text in texts.each():
        trials.append(_tried(automaton, text, like.limits.nodes))
        if trials[-1].explodes or trials[-1].is_cut:
            break
    return trials


def _each(
    form: Form, like: TokenAutomaton, texts: Iterable[Text], left: int = _MOST_WORK, enough: int | None = None
) -> list[Trial]:
    """Texts each of which has an automaton of its own, one at least; no more behind one whose work explodes, or that a limit cuts,
    or all work that may be spent. left: that work; enough: of a byte, behind which no more are tried either."""
    trials: list[Trial] = []
    for text in texts:
        look()
        automaton = form.automaton(like, text.longest * _most(form.grammar, like) // NODE_WORDS)
        trials.append(_tried(automaton, text, like.limits.nodes))
        left -= int(trials[-1].work.sum())
        if trials[-1].explodes or trials[-1].is_cut or left < 0 or (enough is not None and dearest(trials[-1].work) > enough):
            break
    return trials


def _on_cycles(form: Form, like: TokenAutomaton, longest: int, most: int) -> Iterator[Trial]:
    """Texts that repeat each of many cycles, if they can be read; no more behind one whose work explodes, or all work that may be
    spent."""
    walked, followed = form.automaton(like, _MOST_NODES), form.automaton(like, _MOST_NODES)
    left = _CYCLES_WORK
    made_up = [Text(seed, period, length, length) for seed, (length, period) in enumerate(_BEGINNINGS)]
    try:
        beginnings = [b"", *(_tried(walked, text, like.limits.nodes).text for text in made_up)]
        for beginning, cycle in cycles(walked, beginnings, longest, most, WINDOW * _most(form.grammar, like)):
            if followed.num_nodes > _MANY_NODES:
                followed = form.automaton(like, _MOST_NODES)
            made = Text(0, len(cycle), 0, len(beginning) + _FIRST.longest, (beginning, cycle))
            trial = _tried(followed, made, like.limits.nodes)
            left -= int(trial.work.sum())
            if trial.work.size >= made.longest or trial.explodes:
                yield trial
            if trial.explodes or left < 0:
                break
    except ConstraintLimit as error:
        if error.limit == "seconds":
            raise


def _searched(form: Form, like: TokenAutomaton) -> list[Trial]:
    """Texts that repeat the cycles which take most, and all that are made up; of these those that took most where they ended once
    more, farther, and some that do not repeat themselves to the end. No more behind those that explode."""
    trials = list(_on_cycles(form, like, *_MANY_CYCLES))
    if not _stop(trials):
        trials = _followed(form, like, _dearest(trials))
    if not _stop(trials):
        made_up = _each(form, like, _MANY.each())
        trials += made_up
    if not _stop(trials):
        trials += _followed(form, like, _dearest(trial for trial in made_up if trial.made.free < _LONG))
    if not _stop(trials):
        free = _dearest(trial for trial in made_up if trial.made.free >= _LONG)[:_FREE]
        trials += _each(form, like, _longer(free), _MOST_FOLLOWED)
    return trials


def _followed(form: Form, like: TokenAutomaton, trials: list[Trial]) -> list[Trial]:
    """Texts twice as far, and those half of them that take most there twice as far again, until they are long."""
    followed: list[Trial] = []
    length = _SHORT
    while trials and not _stop(followed):
        length = min(2 * length, _LONG)
        spent = sum(int(trial.work.sum()) for trial in followed)
        trials = _each(form, like, (trial.made._replace(longest=length) for trial in trials), _MOST_FOLLOWED - spent)
        followed += trials
        trials = _dearest(trials)[: (len(trials) + 1) // 2] if length < _LONG else []
    return followed


def _far(form: Form, like: TokenAutomaton, rising: list[Trial]) -> list[Trial]:
    """Of some texts whose work rises the one that takes most, to where places for what is known of stacks run out."""
    farther = (trial.made._replace(longest=_FAR) for trial in _dearest(rising)[:1])
    return [] if _stop(rising) else _each(form, like, farther, _MOST_FOLLOWED)


def _dearest(trials: Iterable[Trial]) -> list[Trial]:
    """Those that take most where they end."""
    return sorted(trials, key=lambda trial: -trial.last)[:_FOLLOWED]


def _longer(trials: Iterable[Trial]) -> Iterator[Text]:
    return (trial.made._replace(longest=_LONG) for trial in trials)


def _stop(trials: Iterable[Trial]) -> bool:
    """Whether nothing more is to be learnt of a form."""
    return any(trial.explodes or trial.is_cut for trial in trials)


def _most(grammar: Grammar, like: TokenAutomaton, share: float = 1.0) -> int:
    """Work of a byte that is too much for a text that is tried, on the average of WINDOW."""
    return int(share * (like.limits.byte_words + _OF_A_NODE * len(grammar)))


def _tried(automaton: TokenAutomaton, made: Text, most_nodes: int, most: int | None = None) -> Trial:
    """most_nodes: the limit; where the automaton has a lower one, to meet that is to take too much. most: the most work
    of a byte, on the average of WINDOW."""
    longest = made.longest
    if most is None:
        most = _most(automaton.grammar, automaton, 1.0 if made.given[1] else _SHARE)
    pumped = Pumped(made.free, np.zeros(longest + 1, np.int32), np.zeros(longest, np.int32), np.full(longest, -1, np.int32))
    pumped.states[0] = automaton.start
    if made.given[1]:
        pumped.text[:] = np.frombuffer(made.written, np.uint8)
        pumped = pumped._replace(given=longest)
    try:
        length = automaton.pump(made.period, made.seed, 0, longest, (most + 1) * WINDOW, pumped, is_trial=True)
    except ConstraintLimit as error:
        if error.limit == "seconds":
            raise
        if error.limit != "byte_words" and (error.limit != "nodes" or automaton.limits.nodes == most_nodes):
            return Trial(made, b"", pumped.work[:0], most, is_cut=True)  # so small a limit says so when it matters
        length = int(np.count_nonzero(pumped.work >= 0))
        pumped.work[length] = (most + 1) * WINDOW
    text = pumped.text[:length].astype(np.uint8).tobytes()
    return Trial(made, text, pumped.work[pumped.work >= 0], most)


def _shown_bytes(trial: Trial) -> int:
    """How many bytes it takes to say what the text of a trial is."""
    beginning, cycle = trial.made.given
    return len(beginning) + len(cycle) if cycle else trial.made.free + trial.made.period


def refusal(trial: Trial, written: Form) -> UnsupportedKeyword:
    length, half = len(trial.text), max(len(trial.text) // 2, 1)
    beginning, cycle = trial.made.given
    begun = beginning + cycle if cycle else trial.text[: max(trial.made.free, trial.made.period)]
    begun, again = begun[:_SHOWN], cycle or trial.text[-trial.made.period :]
    limit = f"{'' if cycle else 'half of '}limit `byte_words`: {trial.most}"
    steps = f"steps for a byte are {trial.at(half)} behind {half}, {trial.last} behind {length} bytes"
    shape = f"begins with {_shown(begun)} and goes on with {_shown(again)}, again and again"
    grows = f"there are ever more ways to read a text that {shape}"
    if not trial.text:
        grows, steps = "there are too many ways to read the first byte of a text", f"its steps are {trial.last}"
    found = ambiguity(written.grammar, written.root, trial.text)
    shown = "" if found is None else f"; rule {found.rule!r} reads {_shown(found.text)} as {found.first} and as {found.second}"
    return UnsupportedKeyword(
        f"{grows}: {steps} ({limit}){shown}",
        path="root" if found is None else found.rule, keyword="ambiguity",
        instead="a grammar with one way to read each text, for example item* for rules that call themselves twice in a row, a "
        "rule for each level of operators, text without the brackets or separators around it; `maskwright grammar check` shows "
        "both ways to read a short text",
    )  # fmt: skip


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))
