"""Greibach's normal form (1965): what may follow a byte, as words of nonterminals.

A nonterminal is what may be left of a rule. Behind a text a set of words is left, each of which was made of the one before by

    A w  becomes  v w     if the byte leads from A to v
    A w  becomes  what w becomes     if A may be empty

so the words are the stacks of a pushdown automaton. Here a nonterminal stands for its texts, the empty one among them where it is
`nullable`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..grammar.stopwatch import look
from .rule_automata import RuleAutomata, TooLarge

Word = tuple[int, ...]
_MOST_NONTERMINALS = 100  # comparing 125 takes 400 ms; grammars of data and programs have more
_MOST_WORDS = 6_000


class Greibach(NamedTuple):
    """A grammar in this form. Each nonterminal has a text, and is reached from the first one, which is 0."""

    nullable: list[bool]
    words: list[list[frozenset[Word]]]  # [nonterminals][byte classes] what a byte leads to
    byte_classes: list[list[tuple[int, int]]]  # ranges of bytes that lead to the same everywhere

    def behind(self, word: Word, byte_class: int) -> set[Word]:
        """The words that a byte makes of a word."""
        found: set[Word] = set()
        for k, nonterminal in enumerate(word):
            rest = word[k + 1 :]
            found.update(first + rest for first in self.words[nonterminal][byte_class])
            if not self.nullable[nonterminal]:
                break
        return found

    def renumbered(self, first: int) -> Greibach:
        """With those nonterminals only that `first` reaches, in the order in which they are reached. Bytes that lead to the same
        are one class."""
        numbers = {first: 0}
        order = [first]
        for nonterminal in order:
            for words in self.words[nonterminal]:
                for other in (other for word in sorted(words) for other in word):
                    if numbers.setdefault(other, len(order)) == len(order):
                        order.append(other)
        table = [[frozenset(tuple(numbers[x] for x in word) for word in words) for words in self.words[one]] for one in order]
        columns: dict[tuple[frozenset[Word], ...], list[tuple[int, int]]] = {}
        for column, ranges in zip(zip(*table, strict=True), self.byte_classes, strict=True):
            if any(column):
                columns.setdefault(column, []).extend(ranges)
        rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in order]
        return Greibach([self.nullable[one] for one in order], rows, list(columns.values()))


def greibach(automata: RuleAutomata) -> Greibach:
    """The normal form of a grammar without left recursion. Raises `TooLarge`."""
    return _Following(automata).all()


class _Following:
    def __init__(self, automata: RuleAutomata) -> None:
        self._automata, self._found, self._open = automata, dict[tuple[int, int], frozenset[Word]](), set[tuple[int, int]]()
        self._is_end = [nullable and not steps for steps, nullable in zip(automata.steps, automata.nullable, strict=True)]
        self._room = _MOST_WORDS

    def all(self) -> Greibach:
        automata = self._automata
        order, seen = [automata.start], {automata.start}
        table: dict[int, list[frozenset[Word]]] = {}
        for state in order:
            table[state] = [self._behind(state, byte_class) for byte_class in range(len(automata.byte_classes))]
            fresh = sorted({other for words in table[state] for word in words for other in word} - seen)
            order += fresh
            seen.update(fresh)
            if len(order) > _MOST_NONTERMINALS:
                raise TooLarge
            look()
        rows = [table.get(state, []) for state in range(len(automata.steps))]
        return Greibach(automata.nullable, rows, [[one] for one in automata.byte_classes]).renumbered(automata.start)

    def _behind(self, state: int, byte_class: int) -> frozenset[Word]:
        """What a byte leads to: by the steps of a state, and by those of rules that it calls first, so there are as many levels as
        rules that call each other before they read a byte."""
        key = (state, byte_class)
        known = self._found.get(key)
        if known is not None:
            return known
        if key in self._open or len(self._open) == _MOST_NONTERMINALS:
            raise TooLarge
        self._open.add(key)
        found: set[Word] = set()
        for symbol, after in self._automata.steps[state]:
            rest = () if self._is_end[after] else (after,)
            if symbol == byte_class:
                found.add(rest)
            elif symbol < 0:
                found.update(word + rest for word in self._behind(~symbol, byte_class))
                if self._automata.nullable[~symbol]:
                    found |= self._behind(after, byte_class)
        self._open.discard(key)
        self._room -= len(found)
        if self._room < 0:
            raise TooLarge
        made = self._found[key] = frozenset(found)
        return made
