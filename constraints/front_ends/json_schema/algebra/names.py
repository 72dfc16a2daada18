"""Names of members: which tests they pass, and the texts of all names that pass some tests and not others."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, starmap
from operator import attrgetter

from ....automaton.finite_automata import FiniteAutomaton, TooManyStates, product
from ....base.errors import ConstraintLimit
from ....grammar.cardinality import MAX_POSITIONS, count_words, list_words, shows_endless
from ....grammar.expression import FAIL, Grammar, Kind, Node
from ....grammar.matcher import Matcher
from ..documents.reading import Pattern
from ..strings.strings import Body, Strings
from ..strings.text import JsonText
from ..strings.text_classes import (
    TextClasses,
    automaton_of,
    class_of,
    classified,
    number_of_texts,
    number_of_words,
    without,
)
from .claims import Conj, Named, NameTest, negated

MAX_CLASSES = 256  # combinations of conditions on the names of one object
FEW_TESTS = 2  # so few make few combinations, whether or not a name can pass two of them; more are sorted by one automaton
_FEW_PAIRED = 16  # of which each pair may be asked whether a name passes both; of more, one automaton is found sooner
_MANY_ASKED = 4_000  # tests of single names; of more, one automaton is asked
_MAX_STATES = 20_000  # of that automaton
_MAX_STATES_OF_ONE = 3_000  # of the automaton of one test, for that, and of names that are counted
_FEW_CLASSES = 32  # of tests that have larger automata; and that are not asked whether their values are the same
_MAX_LISTED, _MAX_LISTED_LENGTH = 4, 40  # names that a pattern is a list of, and their length
MAX_AVAILABLE = 1000  # names of a class; more are as good as infinitely many
Passed = frozenset[NameTest]
Meaning = Callable[[Passed], Hashable]


@dataclass(frozen=True, slots=True, eq=False)
class SortedNames:
    """All names but some in classes: their bodies, by class, and of each class the tests that its names pass, and how many there
    are (None for more than can matter)."""

    texts: TextClasses
    passed: dict[int, Passed]
    available: dict[int, int | None]

    @property
    def limited(self) -> list[Passed]:
        """The classes whose names may run out."""
        return [passed for number, passed in self.passed.items() if self.available[number] is not None]


class Names:
    """Sorts names by the tests they pass.

    `texts(conj)` gives the bodies of the strings that satisfy a conjunction, with a bound on their length, and `listed(conj)` these
    strings themselves where the schema lists them.
    """

    def __init__(
        self, grammar: Grammar, text: JsonText, strings: Strings,
        texts: Callable[[Conj], Body], listed: Callable[[Conj], list[str] | None],
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._strings, self._texts, self._listing = grammar, text, strings, texts, listed
        self._lists: dict[Conj, dict[str, None] | None] = {}
        self._names_of_pattern: dict[Pattern, dict[str, None] | None] = {}
        self._matchers: dict[NameTest, Matcher] = {}
        self._bodies: dict[NameTest, Body] = {}
        self._apart: dict[frozenset[NameTest], bool] = {}
        self._automata: dict[Node, FiniteAutomaton] = {}
        self._num_asked = 0  # tests of single names
        self._all_sorted: dict[tuple[NameTest, ...], tuple[SortedNames, Passed, list[NameTest]] | None] = {}
        self._sorted: dict[tuple[tuple[NameTest, ...], frozenset[str], Passed], SortedNames | None] = {}

    def passed(self, name: str, tests: Collection[NameTest]) -> Passed:
        """The tests that a name passes."""
        if len(tests) > _FEW_PAIRED:
            self._num_asked += len(tests)
            if self._num_asked > _MANY_ASKED and (found := self._of_all_names(tuple(tests))) is not None:
                sorted_names, certain, others = found
                passed = sorted_names.passed.get(class_of(sorted_names.texts, self._text.body(name)))
                if passed is not None:
                    return (passed - certain).union(test for test in others if self._passes(name, test))
        return frozenset(test for test in tests if self._passes(name, test))

    def _of_all_names(self, tests: tuple[NameTest, ...]) -> tuple[SortedNames, Passed, list[NameTest]] | None:
        """All names by those of many tests that are open; those that all names are said to pass but for some, and all others, which
        are to be asked one by one. None where such an automaton is too large."""
        if tests not in self._all_sorted:
            certain, is_open = self._certain(tests), frozenset(self._open(tests))
            try:
                found = self.sorted(list(tests))
            except ConstraintLimit as error:
                if error.limit != "name_classes":
                    raise
                found = None
            others = [test for test in tests if test not in is_open]
            self._all_sorted[tests] = None if found is None else (found, certain, others)
        return self._all_sorted[tests]

    def listed(self, tests: Iterable[NameTest]) -> Iterator[str]:
        """The names that tests list, as those that pass or as those that do not."""
        for test in tests:
            if isinstance(test, Pattern):
                yield from self._few(test) or ()
            else:
                yield from self._listed(test.conj) or self._listed(negated(test.conj)) or ()

    def classes(self, tests: list[NameTest]) -> list[Passed]:
        """The combinations of tests that names not listed anywhere may pass."""
        sorted_names = self.sorted(tests)
        if sorted_names is not None:
            return list(sorted_names.passed.values())
        certain, unlisted = self._certain(tests), self._open(tests)
        found: list[Passed] = [frozenset()]
        for test in unlisted:
            many = len(unlisted) > FEW_TESTS
            found += [passed | {test} for passed in found if not many or not any(self._are_apart(test, other) for other in passed)]
            if many and len(found) > max(_FEW_CLASSES, min(len(unlisted) + 1, MAX_CLASSES)):
                raise self._too_many(unlisted)
        return [certain | passed for passed in found]

    def sorted(
        self, tests: list[NameTest], named: Iterable[str] = (), wanted: Passed = frozenset(), meaning: Meaning | None = None
    ) -> SortedNames | None:
        """All names but `named` by the tests that they pass, among which are those `wanted`; None where tests are few, hard, or
        such that no name passes two of them: these are left to themselves.

        meaning: what it comes to that some tests are passed, so that names are alike that pass others, and will be whatever else
        they pass. Without it names are alike that pass the same tests.
        """
        if len(tests) <= FEW_TESTS or len(unlisted := self._open(tests)) <= FEW_TESTS:
            return None
        if len(unlisted) <= _FEW_PAIRED and self._are_all_apart(unlisted):
            return None
        key = tuple(tests), frozenset(named), wanted
        if meaning is not None:
            return self._new_sorted(*key, meaning)
        if key not in self._sorted:
            self._sorted[key] = self._new_sorted(*key, lambda passed: passed)
        return self._sorted[key]

    def _new_sorted(
        self, told: tuple[NameTest, ...], named: frozenset[str], wanted: Passed, meaning: Meaning
    ) -> SortedNames | None:
        certain, tests = self._certain(told), self._open(told)

        def passed_by(bits: int) -> Passed:
            return certain | frozenset(test for bit, test in enumerate(tests) if bits >> bit & 1)

        def alike(sets: list[int]) -> dict[int, int]:
            if len(sets) > 2 * MAX_CLASSES:
                raise self._too_many(tests)
            if len(sets) <= _FEW_CLASSES:
                return {each: each for each in sets}
            first: dict[Hashable, int] = {}
            return {each: first.setdefault(meaning(passed_by(each)), each) for each in sets}

        try:
            wanted_ones = [self._automaton_of(test) for test in tests if test in wanted]
            words = self._automaton(self._grammar.words(map(self._text.body, sorted(named))), _MAX_STATES)
        except TooManyStates:
            return None
        try:
            whole = without(self._automaton(self._text.any_body, _MAX_STATES), words, _MAX_STATES)
            for automaton in wanted_ones:
                whole = product(whole, automaton, _MAX_STATES)[0]
            found, sets = classified(whole, map(self._automaton_of, tests), _MAX_STATES, alike)
        except TooManyStates:
            if self._is_hard(tests) or (len(tests) > _FEW_PAIRED and self._are_all_apart(tests)):
                return None
            raise self._too_many(tests) from None
        if len(sets) > MAX_CLASSES:
            raise self._too_many(tests)
        passed = dict(enumerate(map(passed_by, sets)))
        return SortedNames(found, passed, number_of_texts(found, MAX_AVAILABLE))

    def any_characters(self) -> tuple[Node, FiniteAutomaton]:
        """The characters that stand for themselves in names, and the automaton of all strings of them."""
        grammar, any_character = self._grammar, self._text.any_character
        options = grammar.alternatives(any_character) if grammar.kind(any_character) is Kind.ALT else [any_character]
        free = next(option for option in options if option in grammar.units)
        return free, self._automaton(grammar.repeat(free), _MAX_STATES)

    def _automaton_of(self, test: NameTest) -> FiniteAutomaton:
        """The names that pass a test, listed ones too. Raises `TooManyStates` where it has to be asked name by name."""
        return self._automaton(self._body(test), _MAX_STATES_OF_ONE)

    def _is_hard(self, tests: Iterable[NameTest]) -> bool:
        """Whether the automaton of some test is too large."""
        try:
            for test in tests:
                self._automaton_of(test)
        except TooManyStates:
            return True
        return False

    def _automaton(self, node: Node, limit: int) -> FiniteAutomaton:
        if node not in self._automata:
            self._automata[node] = automaton_of(self._strings.steps, node, limit)
        return self._automata[node]

    def _certain(self, tests: Iterable[NameTest]) -> Passed:
        return frozenset(test for test in tests if self._passes_unless_listed(test))

    def _open(self, tests: Iterable[NameTest]) -> list[NameTest]:
        return [test for test in tests if self._is_open(test)]

    def _too_many(self, tests: Sequence[NameTest]) -> ConstraintLimit:
        path = next((test.site.path for test in tests if isinstance(test, Pattern)), None)
        return ConstraintLimit(
            f"{len(tests)} patterns of names in one object, many of which a name may match at once",
            limit="name_classes", value=MAX_CLASSES, path=path, keyword="patternProperties",
            instead="fewer patternProperties, patterns that begin with ^, or one pattern for several",
        )  # fmt: skip

    def _are_all_apart(self, tests: Iterable[NameTest]) -> bool:
        """Whether no name passes two of some tests."""
        return all(starmap(self._are_apart, combinations(tests, 2)))

    def _are_apart(self, test: NameTest, other: NameTest) -> bool:
        """Whether no name passes both; False when that is not found out quickly."""
        key = frozenset((test, other))
        if key not in self._apart:
            both = self._grammar.both(self._body(test), self._body(other))
            self._apart[key] = both == FAIL or count_words(self._strings.steps, both, 1, MAX_POSITIONS // 5) == 0
        return self._apart[key]

    def _is_open(self, test: NameTest) -> bool:
        """Whether names not listed may pass the test or not."""
        if isinstance(test, Pattern):
            return self._body(test) != self._text.any_body and self._few(test) is None
        return self._listed(test.conj) is None and self._listed(negated(test.conj)) is None

    def _passes_unless_listed(self, test: NameTest) -> bool:
        if isinstance(test, Pattern):
            return self._body(test) == self._text.any_body
        return self._listed(test.conj) is None and self._listed(negated(test.conj)) is not None

    def key(self, passed: Passed, tests: list[NameTest], named: Iterable[str]) -> tuple[Node, int | None]:
        """The texts, quotes included and marked, of all other names that pass exactly these tests, and how many there are."""
        passed = frozenset(filter(self._is_open, passed))
        failed = [test for test in tests if test not in passed and self._is_open(test)]
        if not passed and not failed:
            return self._text.other_name(named), None
        grammar = self._grammar
        excluded = [name for name in named if self._is_among(name, passed, failed)]
        failed = [test for test in failed if not any(self._apart.get(frozenset((test, other))) for other in passed)]
        effort = MAX_POSITIONS // (len(passed) + len(failed))
        wanted = [self._body(test) for test in sorted(passed, key=attrgetter("shown"))]
        if not wanted:
            wanted, failed = self._free_of_one(failed)
        body = grammar.both(*wanted, *map(self._others, failed))
        if body == FAIL:
            return FAIL, 0
        is_endless = shows_endless(grammar, body)
        if excluded:
            body = grammar.without(body, grammar.alt(*map(grammar.literal, map(self._text.body, excluded))))
        available = None if is_endless else self._available(body, effort)
        return (FAIL, 0) if available == 0 else (grammar.key(body), available)

    def _free_of_one(self, failed: list[NameTest]) -> tuple[list[Node], list[NameTest]]:
        """(texts of names that do not pass one of some tests, the other tests); (all names, all tests) where there is none of which
        that is no intersection."""
        for test in failed:
            texts = self._strings.other_texts(test.text) if isinstance(test, Pattern) and self._body(test) != FAIL else None
            if texts is not None:
                return [texts], [other for other in failed if other is not test]
        return [self._text.any_body], failed

    def _is_among(self, name: str, passed: Passed, failed: list[NameTest]) -> bool:
        """Whether a name passes some tests and none of others."""
        return all(self._passes(name, test) for test in passed) and not any(self._passes(name, test) for test in failed)

    def _available(self, body: Node, effort: int) -> int | None:
        """How many names there are; None for more than can matter, and where that is not found out with some effort."""
        count = count_words(self._strings.steps, body, MAX_AVAILABLE, effort)
        if count is None:  # long names, or ways that lead to none
            try:
                count = number_of_words(self._automaton(body, _MAX_STATES_OF_ONE), MAX_AVAILABLE)
            except TooManyStates:
                return None
        return count if count < MAX_AVAILABLE else None

    def _listed(self, conj: Conj) -> dict[str, None] | None:
        if conj not in self._lists:
            listed = self._listing(conj)
            self._lists[conj] = None if listed is None else dict.fromkeys(listed)
        return self._lists[conj]

    def _few(self, pattern: Pattern) -> dict[str, None] | None:
        """The names that a pattern matches, where these are short and few: "^name$" is a name."""
        if pattern not in self._names_of_pattern:
            body, (_, longest) = self._found(pattern)
            is_short = longest is not None and longest <= _MAX_LISTED_LENGTH
            words = list_words(self._strings.steps, body, _MAX_LISTED) if is_short else None
            names = None if words is None else dict.fromkeys(json.loads(b'"' + word + b'"') for word in words)
            self._names_of_pattern[pattern] = names
        return self._names_of_pattern[pattern]

    def _passes(self, name: str, test: NameTest) -> bool:
        listed = self._listed(test.conj) if isinstance(test, Named) else self._few(test)
        if listed is not None:
            return name in listed
        if test not in self._matchers:
            self._matchers[test] = Matcher(self._strings.steps, self._body(test))
        return self._matchers[test].accepts(self._text.body(name))

    def _body(self, test: NameTest) -> Node:
        return self._found(test)[0]

    def _others(self, test: NameTest) -> Node:
        """The texts of all names that do not pass a test, to be intersected with those of names."""
        body = self._body(test)
        return self._strings.mismatch(test.text) if isinstance(test, Pattern) and body != FAIL else self._grammar.negate(body)

    def _found(self, test: NameTest) -> Body:
        """The texts of all names that pass a test, without quotes, and a bound on their length."""
        if test not in self._bodies:
            if isinstance(test, Named):
                self._bodies[test] = self._texts(test.conj)
            else:
                self._bodies[test] = self._strings.search(test.text, test.site, "patternProperties") or (FAIL, (0, 0))
        return self._bodies[test]
