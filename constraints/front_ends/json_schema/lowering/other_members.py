"""Members of names that are listed nowhere: their keys, sorted by the tests on names that they pass, and values as these say.

Where tests are few, every class of names is an intersection of its own. Where they are many and may hold at once, one automaton
sorts all names (automaton/text_classes.py), and what is behind a key is the value of its class. Classes that run out stay alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from ....grammar.expression import FAIL, Event, Grammar, Node
from ..algebra.claims import NOTHING, Conj, NameTest
from ..algebra.names import Names, Passed, SortedNames
from ..algebra.shapes import ObjectShape
from ..strings.text import JsonText
from ..strings.text_classes import as_grammar, renamed
from .series import Effect

Cases = Callable[[Conj, Passed], dict[Effect, Node]]  # of the values of members whose names pass some tests


class Others(NamedTuple):
    """Such members: how many there are, and their texts by case, as they are and where the names may have been used up, and in all
    cases together."""

    available: int | None
    texts: dict[Effect, Node]
    spare: dict[Effect, Node]
    whole: Node


class OtherMembers:
    """Builds their texts. `node_of(conj)` gives the texts of a value, FAIL when there is none."""

    def __init__(self, grammar: Grammar, text: JsonText, names: Names, node_of: Callable[[Conj], Node]) -> None:
        self._grammar, self._text, self._names, self._node_of = grammar, text, names, node_of
        self._together: dict[tuple[SortedNames, tuple[tuple[int, Node], ...]], Node] = {}

    def of(self, shape: ObjectShape, tests: list[NameTest], named: Iterable[str], cases_of: Cases) -> list[Others]:
        """The members that a shape may have beside those `named`."""
        named = list(named)
        sorted_names = self._names.sorted(tests, named, _wanted(shape), partial(self._meaning, shape, _counting(shape)))
        if sorted_names is not None and any(self._node_of(shape.value(None, passed)) != FAIL for passed in sorted_names.limited):
            sorted_names = self._names.sorted(tests, named, _wanted(shape))  # names that run out, by the tests that they pass
        if sorted_names is None:
            return list(self._one_by_one(shape, self._names.classes(tests), tests, named, cases_of))
        limited = sorted_names.limited
        others = list(self._one_by_one(shape, limited, tests, named, cases_of))
        wholes: dict[int, Node] = {}
        by_effect: dict[Effect, dict[int, Node]] = {}
        for number, passed in sorted_names.passed.items():
            value = shape.value(None, passed)
            if sorted_names.available[number] is None and (node := self._node_of(value)) != FAIL:
                wholes[number] = node
                for effect, node in cases_of(value, passed).items():
                    by_effect.setdefault(effect, {})[number] = node
        if wholes:
            texts = {effect: self._members(sorted_names, values) for effect, values in by_effect.items()}
            others.append(Others(None, texts, texts, self._members(sorted_names, wholes)))
        return others

    def _meaning(self, shape: ObjectShape, counting: Passed, passed: Passed) -> Hashable:
        """What is said of members whose names pass some tests: the texts of their values, whether it is about them what is said of
        all others, and what counts them."""
        are_others = tuple(
            passed.isdisjoint(pattern for pattern, _ in each.patterns) for each in shape.members if each.additional is not None
        )
        return self._node_of(shape.value(None, passed)), are_others, passed & counting

    def _one_by_one(
        self, shape: ObjectShape, classes: Iterable[Passed], tests: list[NameTest], named: list[str], cases_of: Cases
    ) -> Iterator[Others]:
        are_counted = shape.low > 1 or any(need.low > 1 for need in shape.needs)
        for passed in classes:
            value = shape.value(None, passed)
            if (whole := self._node_of(value)) == FAIL:
                continue
            key, available = self._names.key(passed, tests, named, are_counted)
            if key == FAIL:
                continue
            spare = key if available is None else self._grammar.spared(key)
            cases = cases_of(value, passed)
            texts = {effect: self._pair(key, node) for effect, node in cases.items()}
            spared = {effect: self._pair(spare, node) for effect, node in cases.items()}
            yield Others(available, texts, spared, self._pair(key, whole))

    def _members(self, names: SortedNames, values: dict[int, Node]) -> Node:
        """The members whose names are of some classes, with the values of each."""
        key = names, tuple(values.items())
        if key not in self._together:
            grammar = self._grammar
            close = grammar.mark(b'"', Event.KEY_CLOSE)
            different = {value: number for number, value in enumerate(dict.fromkeys(values.values()))}
            texts = renamed(names.texts, {number: different[value] for number, value in values.items()})
            ends = [grammar.seq(close, self._text.colon, value) for value in different]
            body = as_grammar(grammar, texts, ends, *self._names.any_characters())
            self._together[key] = grammar.mark(b'"', Event.KEY_OPEN, body)
        return self._together[key]

    def _pair(self, key: Node, value: Node) -> Node:
        return self._grammar.seq(key, self._text.colon, value)


def _counting(shape: ObjectShape) -> Passed:
    """The tests of names whose members are counted, or of which a clause speaks."""
    options = (option for clause in shape.clauses for option in clause)
    return frozenset[NameTest]().union(*(need.keys.tests for need in (*shape.needs, *options)))


def _wanted(shape: ObjectShape) -> Passed:
    """The tests without which there is no member."""
    alone = (where.tests for where, conj in shape.rules if conj == NOTHING and where.others and len(where.tests) == 1)
    return frozenset[NameTest]().union(*alone)
