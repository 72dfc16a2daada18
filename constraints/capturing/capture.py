"""Named parts of a text: what rules with `capture` in Lark and EBNF grammars have read.

The text is read as the grammar was written (`chart.py`). Of several ways to read it one is chosen, from the outside to the
inside: in a sequence each part takes as much as it can, the first part first; of alternatives the first one that can; of
repetitions more copies rather than fewer. "Can": so that the rest of the text is still what the grammar describes. Lazy parts are
as short as they can be, for then no other reading is in the language.

Source of the attributes: llguidance, docs/syntax.md; XGrammar, EBNF. Both tell a capture whenever a rule may have ended; here are
those of one reading of the whole text.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..base.errors import ConstraintError, UnsupportedKeyword
from ..front_ends.tags.parsing import UnexpectedOutput
from ..grammar.capture_marks import Mark, refused_captures
from ..grammar.expression import EMPTY, Grammar, Kind, Rule
from ..grammar.tokens import tell_vocabulary
from ..runtime.constraint import Constraint
from ..runtime.front_end import front_end_of, may_have_captures
from ..vocabulary.vocabulary import TOKEN_CLOSE, TOKEN_OPEN
from .chart import Chart, Parts, Span

_APPEND = "__LIST_APPEND:"


@dataclass(frozen=True, slots=True)
class Capture:
    """A part of a text, under its name. start, end: in bytes of the text, special tokens not counted. appends: one of a list
    (`__LIST_APPEND:`)."""

    name: str
    start: int
    end: int
    text: str
    appends: bool = False


class IncompleteOutput(ConstraintError):
    """A text that satisfies its constraint so far, but is not complete."""

    def __init__(self) -> None:
        super().__init__("the text is not complete", instead="the whole text")


def captures(constraint: Constraint, text: bytes | str | Iterable[int]) -> list[Capture]:
    """What the rules of a Lark or EBNF grammar capture of a complete text, or of the text of token ids.

    In the order in which they begin; one inside of another one comes after it. What is ignored behind a rule does not belong to its
    capture, nor does what ends it by `stop=` or `suffix=`. Budgets of tokens take part in how token ids are read; of a text no
    tokens are known.

    Raises `UnexpectedOutput` and `IncompleteOutput` for texts that do not satisfy the constraint, `UnsupportedKeyword` for other
    sources and what they say, `ConstraintError` where budgets exclude every reading, `ConstraintLimit`.
    """
    vocabulary = constraint.vocabulary
    if isinstance(text, bytes | str):
        data, bounds = text.encode() if isinstance(text, str) else text, None
    else:
        pieces = [vocabulary.spellings[i] or b"" for i in text if i not in vocabulary.eos_token_ids]
        data, bounds = b"".join(pieces), list(accumulate(map(len, pieces)))
    whole: Constraint = getattr(constraint, "unbudgeted", constraint)
    _check(whole, data)
    return _reader(whole).read(data, bounds)


def names_captures(constraint: Constraint) -> bool:
    """Whether a constraint's grammar has captures at all. Raises what `captures` raises for every text."""
    whole: Constraint = getattr(constraint, "unbudgeted", constraint)
    return may_have_captures(whole.source) and _reader(whole).names_captures


def captures_by_name(found: Iterable[Capture]) -> dict[str, str | list[str]]:
    """The texts of captures (`found` by `captures`) by name: for a name the text that ended last, for a list all of them."""
    named: dict[str, str | list[str]] = {}
    for capture in sorted(found, key=lambda one: (one.end, -one.start)):
        before = named.get(capture.name)
        if capture.appends:
            named[capture.name] = [*(before if isinstance(before, list) else []), capture.text]
        else:
            named[capture.name] = capture.text
    return named


def _check(constraint: Constraint, data: bytes) -> None:
    """Raises where a text does not satisfy its constraint: `UnexpectedOutput`, `IncompleteOutput`."""
    state = constraint.start()
    after = constraint.advance_bytes(state, data)
    if after is None:
        read, _ = constraint.survives(state, data)
        raise UnexpectedOutput(read, data[read])
    if not constraint.is_accepting(after):
        raise IncompleteOutput


_readers: WeakKeyDictionary[Constraint, _Reader] = WeakKeyDictionary()
_readers_lock = threading.Lock()


def _reader(constraint: Constraint) -> _Reader:
    with _readers_lock:
        reader = _readers.get(constraint)
        if reader is None:
            reader = _readers[constraint] = _Reader(constraint)
        return reader


class _Reader:
    """What reading captures needs of a constraint, made once."""

    def __init__(self, constraint: Constraint) -> None:
        source, vocabulary = constraint.source, constraint.vocabulary
        if source is None:
            raise UnsupportedKeyword(
                "a constraint that was read from a file does not know the grammar as it was written",
                keyword="captures", instead="compile the grammar",
            )  # fmt: skip
        grammar = Grammar()
        tell_vocabulary(grammar, vocabulary)
        root, budgets, marks = front_end_of(source).lower_marked(grammar, constraint.limits)
        self._lock = threading.Lock()
        with constraint.exclusively() as (automaton, _):
            self._parts = (
                Parts(grammar, root, budgets, marks, automaton.shared_vocabulary, constraint.limits)
                if marks.of_rule
                else None
            )

    @property
    def names_captures(self) -> bool:
        return self._parts is not None

    def read(self, data: bytes, bounds: Sequence[int] | None) -> list[Capture]:
        """bounds: where each token ends, if that is known."""
        if self._parts is None:
            return []

        def num_tokens(begin: int, end: int) -> int:
            assert bounds is not None
            return 0 if begin == end else bisect_left(bounds, end) - bisect_right(bounds, begin) + 1

        with self._lock:
            chart = Chart(self._parts, data, None if bounds is None else num_tokens)
            readings = chart.readings()
            if not readings and bounds is not None and self._parts.budgets:
                raise ConstraintError("every reading of these tokens spends more than its rules may", keyword="max_tokens")
            if not readings:
                reason = "of a grammar whose rules begin with themselves beside lazy terminals that end others"
                raise UnsupportedKeyword(f"captures {reason}", keyword="capture", instead="the rules with repetitions")
            found = list(_Reading(chart).captures(readings[-1]))
        return list(_told(found, data))


class _Found(NamedTuple):
    name: str
    start: int
    end: int


class _Open(NamedTuple):
    """A captured rule that is being read."""

    mark: Mark
    start: int
    place: int  # among what was found, for its capture


class _Reading:
    """The preferred way to read a text."""

    def __init__(self, chart: Chart) -> None:
        self._chart, self._grammar = chart, chart.grammar
        self._text_end = 0  # behind the last text that is not ignored

    def captures(self, end: int) -> Iterator[_Found]:
        """The captures of the reading that ends at a place, by where they begin, outer ones first."""
        chart, marks = self._chart, self._chart.parts.marks
        found: list[_Found | None] = []
        work: list[_Open | tuple[Span, frozenset[Span]]] = [((chart.parts.root, 0, end), frozenset())]
        while work:
            task = work.pop()
            if isinstance(task, _Open):
                found[task.place : task.place + 1] = self._closed(task)
                continue
            span, around = task
            node, begin, _ = span
            if chart.is_whole(node):
                self._pass(span)
                continue
            rule = Rule(self._grammar.operands(node)[0])
            if self._grammar.kind(node) is Kind.CALL and rule in marks.of_rule:
                work.append(_Open(marks.of_rule[rule], chart.position(begin), len(found)))
                found.append(None)
            parts = self._preferred(span, around | {span})
            work += [(part, around | {span} if part[1:] == span[1:] else frozenset()) for part in reversed(parts)]
        return (one for one in found if one is not None)

    def _pass(self, span: Span) -> None:
        node, begin, end = span
        rule = Rule(self._grammar.operands(node)[0])
        if end != begin and not (self._grammar.kind(node) is Kind.CALL and rule in self._chart.parts.marks.skips):
            self._text_end = max(self._text_end, self._chart.text_end(node, begin, end))

    def _closed(self, task: _Open) -> list[_Found]:
        """The captures of a rule that has been read."""
        mark, start, end = task.mark, task.start, max(task.start, self._text_end)
        middle = max(start, end - mark.hidden_bytes)
        if mark.end != EMPTY:
            bodies = self._chart.matches(mark.body, start)
            middle = max(m for m in bodies if m <= end and end in self._chart.matches(mark.end, m))
        found = [_Found(mark.name, start, middle), _Found(mark.end_name, middle, end)]
        return [one for one in found if one.name]

    def _preferred(self, span: Span, around: frozenset[Span]) -> tuple[Span, ...]:
        """The first way to take a span apart that does not come back to it, or to those around it."""
        for parts in self._chart.options(span):
            if all(part[1:] != span[1:] or self._ends_without(part, around) for part in parts):
                return parts
        raise refused_captures("in a repetition whose copies may be empty, beside lazy terminals that end others")

    def _ends_without(self, start: Span, around: frozenset[Span]) -> bool:
        """Whether a part can be read so that none of the spans around it is part of it: the least fixpoint over equal spans."""
        if start in around:
            return False
        options: dict[Span, list[tuple[Span, ...]]] = {}
        work = [start]
        while work:
            span = work.pop()
            if span in options:
                continue
            same = [tuple(part for part in parts if part[1:] == span[1:]) for parts in self._chart.options(span)]
            options[span] = [parts for parts in same if around.isdisjoint(parts)]
            if () in options[span]:
                continue
            work += [part for parts in options[span] for part in parts]
        good = {span for span, ways in options.items() if () in ways}
        while start not in good:
            more = {span for span, ways in options.items() if any(good.issuperset(parts) for parts in ways)}
            if more == good:
                return False
            good = more
        return True


def _told(found: Iterable[_Found], data: bytes) -> Iterator[Capture]:
    """Captures as they are returned: without the bytes that spell special tokens."""
    hidden, is_inside = [0], False  # how many bytes before each position are of special tokens
    for byte in data:
        is_inside |= byte == TOKEN_OPEN[0]
        hidden.append(hidden[-1] + is_inside)
        is_inside &= byte != TOKEN_CLOSE[0]
    visible = bytes(byte for k, byte in enumerate(data) if hidden[k] == hidden[k + 1])
    for name, start, end in found:
        begin, stop = start - hidden[start], end - hidden[end]
        text = visible[begin:stop].decode(errors="replace")
        yield Capture(name.removeprefix(_APPEND), begin, stop, text, name.startswith(_APPEND))
