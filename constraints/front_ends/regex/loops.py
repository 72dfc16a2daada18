"""Patterns with assertions inside of repetitions, as automata: what `lowering.py` cannot write down as one expression.

An alternating automaton (Chandra, Kozen, Stockmeyer 1981): a place in the pattern is a list of what is still to be read, and an
assertion is a condition on the rest of the text beside it. A state is a set of such demands, each of which suffices; a demand is a
set of places whose patterns, or none of them, match the rest. States are followed character by character, which makes a finite
automaton, and that is written as an expression by eliminating its states (Brzozowski and McCluskey 1963).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import ALL, Ranges, intersect, normalize
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...grammar.source import Limits
from ...grammar.stopwatch import Stopwatch
from .charsets import NEWLINE
from .context import START, Left, Surroundings
from .lookbehind import partition
from .tree import (
    Alternate,
    Anchor,
    Both,
    CharSet,
    Complement,
    Concat,
    Lookahead,
    Lookbehind,
    Place,
    Repeat,
    Tree,
    Unit,
    fold,
)

STATES = 400  # of the automaton; beyond, a pattern is refused
_DEMANDS = 400  # of a state

_Rest = tuple[Tree, ...]  # what is still to be read, the next part last; () is the end of the text
_Literal = tuple[_Rest, bool]  # the rest of the text matches, or does not
_Demand = frozenset[_Literal]
_Condition = frozenset[_Demand]  # any one of them
_TRUE: _Condition = frozenset([frozenset()])
_FALSE: _Condition = frozenset()
_ANYTHING: Tree = Repeat(CharSet(ALL), 0, None)
_ANY_TEXT: _Rest = (_ANYTHING,)


class AssertionInLoop(UnsupportedKeyword):
    """What continuations cannot express."""


@dataclass(frozen=True, slots=True)
class _State:
    left: Left
    condition: _Condition


def loop_node(grammar: Grammar, unit: Unit, tree: Tree, around: Surroundings, full: bool, limits: Limits) -> Node:
    """The texts that a pattern matches, or in which it matches somewhere.

    Raises `UnsupportedKeyword` for `&` and `~` in such a pattern, and where the automaton grows beyond `STATES`.
    """
    loops = _Loops(grammar, unit, tree, around, limits)
    start: _Rest = (tree,) if full else (_ANYTHING, tree, _ANYTHING)
    return loops.expression(*loops.automaton(start))


class _Loops:
    def __init__(self, grammar: Grammar, unit: Unit, tree: Tree, around: Surroundings, limits: Limits) -> None:
        self._grammar, self._unit, self._around = grammar, unit, around
        self._stopwatch = Stopwatch(limits, "a pattern with assertions in repetitions")
        sets: list[Ranges] = [NEWLINE, around.word]
        self._bodies: list[Tree] = []  # of lookaheads

        def note(part: Tree, _: list[None]) -> None:
            if isinstance(part, Lookahead):
                self._bodies.append(part.body)
            if isinstance(part, Both | Complement):
                raise UnsupportedKeyword(
                    "beside an assertion in a repetition", keyword="&" if isinstance(part, Both) else "~", instead="one of them"
                )
            if isinstance(part, CharSet | Anchor) and (chars := part.ranges if isinstance(part, CharSet) else part.chars):
                sets.append(chars)

        fold(tree, note)
        self._after = [around.cases.by_character(left, ALL) for left in range(len(around.cases.all))]
        sets += [chars for chars, _ in self._after[START]]
        sets += [chars for case in self._after for chars, _ in case]
        self._classes = partition(tuple(dict.fromkeys(sets)))
        self._firsts = [((cell[0][0], cell[0][0]),) for cell in self._classes]  # one character of each
        self._steps: dict[tuple[_Rest, Left, int | None], _Condition] = {}
        self._repeats: dict[tuple[Tree, int, int | None], Repeat] = {}

    # -- the automaton ------------------------------------------------------------------------------------------------

    def automaton(self, start: _Rest) -> tuple[list[list[int]], list[bool]]:
        """(target states by state and class of characters, which states accept); states of equal languages are one."""
        first = _State(START, frozenset([frozenset([(start, True)])]))
        numbers, states = {first: 0}, [first]
        targets: list[list[int]] = []
        for state in states:  # grows
            row = []
            for cell in range(len(self._classes)):
                self._stopwatch.check()
                after = self._next(state, cell)
                if after not in numbers:
                    if len(states) >= STATES:
                        raise _too_large()
                    numbers[after] = len(states)
                    states.append(after)
                row.append(numbers[after])
            targets.append(row)
        return _merged(targets, [self._accepts(state) for state in states])

    def _next(self, state: _State, cell: int) -> _State:
        chars = self._firsts[cell]
        left = next(case for found, case in self._after[state.left] if intersect(found, chars))
        condition = _any(
            _all(
                self._step(rest, state.left, cell) if holds else _not(self._step(rest, state.left, cell))
                for rest, holds in demand
            )
            for demand in state.condition
        )
        return _State(left if condition else START, condition)

    def _accepts(self, state: _State) -> bool:
        return any(
            all(bool(self._step(rest, state.left, None)) == holds for rest, holds in demand) for demand in state.condition
        )

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _step(self, rest: _Rest, left: Left, cell: int | None) -> _Condition:
        """The demands on the text behind the next character; without a character, whether all demands are met."""
        key = rest, left, cell
        if key not in self._steps:
            for body in self._bodies:  # inner ones first, so that a condition is known where it is negated
                ahead = (_ANYTHING, body)
                if (ahead, left, cell) not in self._steps:
                    self._steps[ahead, left, cell] = self._least(ahead, left, cell)
            self._steps[key] = self._least(rest, left, cell)
        return self._steps[key]

    def _least(self, root: _Rest, left: Left, cell: int | None) -> _Condition:
        """The least solution for all rests that are reached without reading: a repetition that comes to itself adds nothing."""
        inner: dict[_Rest, list[_Rest]] = {}
        work = [root]
        while work:
            rest = work.pop()
            if rest not in inner:
                inner[rest] = self._inner(rest)
                work += inner[rest]
        values = dict.fromkeys(inner, _FALSE)
        is_changed = True
        while is_changed:
            is_changed = False
            for rest in reversed(inner):
                value = self._value(rest, left, cell, [values[each] for each in inner[rest]])
                if value != values[rest]:
                    values[rest], is_changed = value, True
        return values[root]

    def _inner(self, rest: _Rest) -> list[_Rest]:
        """The rests whose conditions make up that of this one."""
        if not rest or isinstance(rest[-1], CharSet):
            return []
        part, behind = rest[-1], rest[:-1]
        if isinstance(part, Concat):
            return [(*behind, *reversed(part.parts))]
        if isinstance(part, Alternate):
            return [(*behind, option) for option in part.options]
        if isinstance(part, Repeat):
            if part.high == 0:
                return [behind]
            once = (*behind, self._again(part), part.body)
            return [once] if part.low else [once, behind]
        return [behind]

    def _again(self, part: Repeat) -> Repeat:
        """The copies behind the first one."""
        low, high = max(part.low - 1, 0), None if part.high is None else part.high - 1
        if (low, high) == (part.low, part.high):
            return part
        return self._repeats.setdefault((part.body, low, high), Repeat(part.body, low, high))

    def _value(self, rest: _Rest, left: Left, cell: int | None, inner: list[_Condition]) -> _Condition:
        if not rest:
            return _TRUE if cell is None else _FALSE
        if rest == _ANY_TEXT:
            return _TRUE
        part, behind = rest[-1], rest[:-1]
        if isinstance(part, CharSet):
            is_read = cell is not None and bool(intersect(part.ranges, self._firsts[cell]))
            if not is_read:
                return _FALSE
            return _TRUE if behind == _ANY_TEXT else frozenset([frozenset([(behind, True)])])
        if isinstance(part, Lookahead):
            seen = self._steps[(_ANYTHING, part.body), left, cell]
            return _all([_not(seen) if part.negative else seen, inner[0]])
        if isinstance(part, Lookbehind):
            return inner[0] if self._around.cases.holds(left, part) else _FALSE
        if isinstance(part, Anchor):
            if part.place is Place.END_OR_LAST_NEWLINE and cell is not None and intersect(self._classes[cell], NEWLINE):
                return _all([inner[0], frozenset([frozenset([((), True)])])])
            return inner[0] if self._is_at(part, left, cell) else _FALSE
        return _any(inner)

    def _is_at(self, anchor: Anchor, left: Left, cell: int | None) -> bool:
        """Whether an anchor holds between what stands to the left and the next character; the end but for a newline is beyond."""
        last = self._around.cases.all[left].last
        after = () if cell is None else self._classes[cell]
        place = anchor.place
        match place:
            case Place.START:
                return left == START
            case Place.LINE_START:
                return left == START or bool(intersect(last, NEWLINE))
            case Place.AFTER:
                return bool(intersect(last, anchor.chars))
            case Place.START_OR_AFTER:
                return left == START or bool(intersect(last, anchor.chars))
            case Place.END | Place.END_OR_LAST_NEWLINE:
                return cell is None
            case Place.LINE_END:
                return cell is None or bool(intersect(after, NEWLINE))
        word = self._around.word
        is_edge = bool(intersect(last, word)) != bool(intersect(after, word))
        if place is Place.NOT_WORD_EDGE_OF_TEXT and left == START and cell is None:
            return False
        return is_edge == (place is Place.WORD_EDGE)

    # -- the expression -----------------------------------------------------------------------------------------------

    def expression(self, targets: list[list[int]], accepting: list[bool]) -> Node:
        """An automaton, which begins in state 0, as an expression."""
        grammar, start, end = self._grammar, len(targets), len(targets) + 1
        edges: dict[int, dict[int, Node]] = {start: {0: EMPTY}, end: {}}
        for state, row in enumerate(targets):
            chars: dict[int, list[tuple[int, int]]] = {}
            for cell, target in enumerate(row):
                chars.setdefault(target, []).extend(self._classes[cell])
            edges[state] = {target: self._unit(normalize(ranges)) for target, ranges in chars.items()}
            if accepting[state]:
                edges[state][end] = EMPTY
        sources: dict[int, set[int]] = {state: set() for state in edges}
        for state, out in edges.items():
            for target in out:
                sources[target].add(state)
        waiting = set(range(len(targets)))
        while waiting:
            self._stopwatch.check()
            state = min(waiting, key=lambda one: (len(sources[one] - {one}) * len(edges[one].keys() - {one}), one))
            waiting.remove(state)
            out = edges.pop(state)
            loop = grammar.repeat(out.pop(state)) if state in out else EMPTY
            for source, (target, after) in product(sources.pop(state) - {state}, out.items()):
                through = grammar.seq(edges[source][state], loop, after)
                edges[source][target] = grammar.alt(edges[source].get(target, FAIL), through)
                sources[target].add(source)
            for target in out:
                sources[target].discard(state)
            for one in edges.values():
                one.pop(state, None)
        return edges[start].get(end, FAIL)


def _all(conditions: Iterable[_Condition]) -> _Condition:
    found = _TRUE
    for condition in conditions:
        found = _minimal(one | other for one in found for other in condition)
    return found


def _any(conditions: Iterable[_Condition]) -> _Condition:
    return _minimal(demand for condition in conditions for demand in condition)


def _not(condition: _Condition) -> _Condition:
    return _all(frozenset(frozenset([(rest, not holds)]) for rest, holds in demand) for demand in condition)


def _minimal(demands: Iterable[_Demand]) -> _Condition:
    """The demands without those that contradict themselves or ask for more than another one."""
    kept = {one for one in demands if not any((rest, not holds) in one for rest, holds in one)}
    if len(kept) > _DEMANDS:
        raise _too_large()
    return frozenset(one for one in kept if not any(other < one for other in kept))


def _too_large() -> UnsupportedKeyword:
    return UnsupportedKeyword(
        f"an assertion inside a repetition, which takes an automaton of more than {STATES} states",
        keyword="assertion in a repetition",
        instead="the assertion outside of the repetition, or lower counts",
    )


def _merged(targets: list[list[int]], accepting: list[bool]) -> tuple[list[list[int]], list[bool]]:
    """The automaton with one state for each language (Moore 1956), the first state first, without what cannot accept."""
    block = [int(one) for one in accepting]
    while True:
        keys = [(block[state], *(block[target] for target in row)) for state, row in enumerate(targets)]
        numbers: dict[tuple[int, ...], int] = {}
        merged = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) == len(set(block)):
            break
        block = merged
    first = {number: state for state, number in reversed(list(enumerate(merged)))}
    kept = [first[number] for number in range(len(numbers))]
    return [[merged[target] for target in targets[state]] for state in kept], [accepting[state] for state in kept]
