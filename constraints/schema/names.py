"""Names of members: which tests they pass, and the texts of all names that pass some tests and not others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from ..cardinality import count_words
from ..errors import ConstraintLimit
from ..expression import FAIL, Event, Grammar, Node
from ..matcher import Matcher
from .claims import Conj, Named, NameTest, Pattern
from .strings import Strings
from .text import QUOTE, JsonText
from .values import string_text

MAX_TESTS = 8  # conditions on names of one object: every combination of them is a class of names
MAX_AVAILABLE = 1000  # names of a class; more are as good as infinitely many
Passed = frozenset[NameTest]


class Names:
    """Sorts names by the tests they pass.

    `texts(conj)` gives the bodies of the strings that satisfy a conjunction, and `listed(conj)` these strings themselves where the
    schema lists them.
    """

    def __init__(
        self, grammar: Grammar, text: JsonText, strings: Strings,
        texts: Callable[[Conj], Node], listed: Callable[[Conj], list[str] | None],
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._strings, self._texts, self._listed = grammar, text, strings, texts, listed
        self._matchers: dict[NameTest, Matcher] = {}
        self._bodies: dict[NameTest, Node] = {}

    def passed(self, name: str, tests: Iterable[NameTest]) -> Passed:
        """The tests that a name passes."""
        return frozenset(test for test in tests if self._passes(name, test))

    def listed(self, test: NameTest) -> list[str] | None:
        """The names that pass a test, where the schema lists them."""
        return self._listed(test.conj) if isinstance(test, Named) else None

    def classes(self, tests: list[NameTest]) -> Iterator[Passed]:
        """The combinations of tests that names not listed anywhere may pass."""
        if len(tests) > MAX_TESTS:
            raise ConstraintLimit(
                f"{len(tests)} patterns of names in one object", limit="name_tests", value=MAX_TESTS,
                instead="fewer patternProperties, or one pattern for several",
            )  # fmt: skip
        unlisted = [test for test in tests if self.listed(test) is None]
        for signs in product((True, False), repeat=len(unlisted)):
            yield frozenset(test for test, sign in zip(unlisted, signs, strict=True) if sign)

    def key(self, passed: Passed, tests: list[NameTest], named: Iterable[str]) -> tuple[Node, int | None]:
        """The texts, quotes included and marked, of all other names that pass exactly these tests, and how many there are."""
        failed = [test for test in tests if test not in passed and self.listed(test) is None]
        if not passed and not failed:
            return self._text.other_name(named), None
        grammar = self._grammar
        excluded = [name for name in named if self.passed(name, [*passed, *failed]) == passed]
        wanted = [self._body(test) for test in sorted(passed, key=repr)] or [self._text.any_body]
        body = grammar.both(*wanted, *(grammar.negate(self._body(test)) for test in failed))
        if excluded:
            body = grammar.without(body, grammar.words(string_text(name)[1:-1].encode() for name in excluded))
        available = self._available(passed, body)
        if body == FAIL or available == 0:
            return FAIL, 0
        return grammar.seq(grammar.mark(QUOTE, Event.KEY_OPEN), body, grammar.mark(QUOTE, Event.KEY_CLOSE)), available

    def _available(self, passed: Passed, body: Node) -> int | None:
        """How many names there are, where a test admits short ones only; None for more than can matter."""
        if body == FAIL:
            return 0
        if not any(self._is_bounded(test) for test in passed):
            return None
        count = count_words(self._grammar, body, MAX_AVAILABLE)
        return count if count < MAX_AVAILABLE else None

    def _is_bounded(self, test: NameTest) -> bool:
        if isinstance(test, Named):
            return True
        found = self._strings.search(test.text, test.site, "patternProperties")
        return found is not None and found[1][1] is not None

    def _passes(self, name: str, test: NameTest) -> bool:
        if test not in self._matchers:
            self._matchers[test] = Matcher(self._grammar, self._body(test))
        return self._matchers[test].accepts(string_text(name)[1:-1].encode())

    def _body(self, test: NameTest) -> Node:
        if test not in self._bodies:
            self._bodies[test] = self._body_of_pattern(test) if isinstance(test, Pattern) else self._texts(test.conj)
        return self._bodies[test]

    def _body_of_pattern(self, test: Pattern) -> Node:
        found = self._strings.search(test.text, test.site, "patternProperties")
        return FAIL if found is None else found[0]
