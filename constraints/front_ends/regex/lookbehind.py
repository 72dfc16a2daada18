"""The context to the left of a position, as far as a pattern looks back: a small automaton whose states are called
cases.

A case is the last character, as one of the cells into which the sets that matter divide all characters, and what has
been read of the lookbehinds: the rest of every sequence that the text so far may have begun. None is longer than
`reach`, so after so many characters the case depends on these alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import ALL, Ranges, intersect, invert, normalize
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from .tree import Lookbehind, Unit

CASES = 32  # a pattern is lowered for each of them

Rest = tuple[int, tuple[Ranges, ...]]  # a lookbehind, and what it still asks for; nothing: it holds


class Case(NamedTuple):
    """The context to the left of a position. `last`: the set of the last character, () before any."""

    last: Ranges
    begun: frozenset[Rest]


class Cases:
    """All cases of a pattern; the first one is the beginning of the text. `around`: other sets that matter, beside
    those of the lookbehinds."""

    def __init__(self, grammar: Grammar, unit: Unit, around: list[Ranges], lookbehinds: list[Lookbehind]) -> None:
        self.grammar, self.unit, self.lookbehinds = grammar, unit, lookbehinds
        sequences = [(k, one) for k, behind in enumerate(lookbehinds) for one in behind.sequences]
        self.reach = max((len(one.sets) for _, one in sequences), default=0)
        self._cells = partition((*around, *(chars for _, one in sequences for chars in one.sets)))
        self._fresh = frozenset((k, one.sets) for k, one in sequences if not one.at_start)
        self._after: dict[tuple[frozenset[Rest], Ranges], Case] = {}
        start = Case((), frozenset((k, one.sets) for k, one in sequences))  # also those that begin there
        self.all = [start]
        self.number = {start: 0}
        for case in self.all:  # grows
            for cell in self._cells:
                after = self.after(case, cell)
                if after not in self.number:
                    if len(self.all) >= CASES:
                        raise UnsupportedKeyword(
                            "lookbehinds that tell too much of the text apart", keyword="(?<", instead="shorter ones"
                        )
                    self.number[after] = len(self.all)
                    self.all.append(after)
        self._paths: dict[tuple[int, frozenset[int]], Node] = {}

    def after(self, case: Case, cell: Ranges) -> Case:
        """The case behind one more character."""
        key = case.begun, cell
        if key not in self._after:
            grown = ((k, sets[1:]) for k, sets in case.begun if sets and intersect(sets[0], cell))
            self._after[key] = Case(cell, self._fresh.union(grown))
        return self._after[key]

    def holds(self, number: int, lookbehind: Lookbehind) -> bool:
        """Whether a lookbehind holds there."""
        k = self.lookbehinds.index(lookbehind)
        return ((k, ()) in self.all[number].begun) != lookbehind.negative

    def by_character(self, number: int, chars: Ranges) -> list[tuple[Ranges, int]]:
        """The cases behind one character of a set, each with the characters that lead there."""
        parts = [(intersect(chars, cell), self.number[self.after(self.all[number], cell)]) for cell in self._cells]
        return [(part, case) for part, case in parts if part]

    def paths(self, number: int, ends: frozenset[int]) -> Node:
        """The texts, not empty, that lead from a case to one of the cases `ends`."""
        key = number, ends
        if key not in self._paths:
            grammar, middle = self.grammar, Case((), self._fresh)
            short = [self._of_length(self.all[number], length, ends) for length in range(1, self.reach + 1)]
            long = grammar.seq(grammar.repeat(self.unit(ALL), 1), self._of_length(middle, self.reach, ends))
            self._paths[key] = grammar.alt(*short, long)
        return self._paths[key]

    def _of_length(self, start: Case, length: int, ends: frozenset[int]) -> Node:
        """The texts of `length` characters that lead to one of the cases `ends`."""
        levels = [{start}]
        for _ in range(length):
            levels.append({self.after(case, cell) for case in levels[-1] for cell in self._cells})
        nodes = {case: EMPTY if self.number.get(case) in ends else FAIL for case in levels.pop()}
        while levels:
            nodes = {case: self._one_step(case, nodes) for case in levels.pop()}
        return nodes[start]

    def _one_step(self, case: Case, nodes: dict[Case, Node]) -> Node:
        by_node: dict[Node, list[tuple[int, int]]] = {}
        for cell in self._cells:
            by_node.setdefault(nodes[self.after(case, cell)], []).extend(cell)
        steps = [(normalize(chars), node) for node, chars in by_node.items() if node != FAIL]
        return self.grammar.alt(*(self.grammar.seq(self.unit(chars), node) for chars, node in steps))


@lru_cache(maxsize=64)  # most patterns have the same: no lookbehinds
def partition(sets: tuple[Ranges, ...]) -> tuple[Ranges, ...]:
    """All characters, divided so that each of `sets` is a union of cells."""
    cells = [ALL]
    for chars in sets:
        halves = ((intersect(cell, chars), intersect(cell, invert(chars))) for cell in cells)
        cells = [half for pair in halves for half in pair if half]
    return tuple(cells)
