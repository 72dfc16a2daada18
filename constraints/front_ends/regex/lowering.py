"""From the meaning of a regular expression to a grammar node, anchors and lookaheads included.

A tree without assertions has a language of its own (`Language`) and becomes one node. A tree with assertions is lowered
against its continuation: the texts that may follow it up to the end of the whole text. Whatever looks ahead ("$", `(?=`, the
right side of `\\b`) is then an intersection with the continuation. What looks back needs to know what stands to the left, of
which a few cases (`Left`) matter, so a continuation is a node for each of them:

    lower(tree, continuation)[left] = texts of tree, then of continuation[what then stands to the left], where `left` stands
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

from ...base.errors import ConstraintLimit, UnsupportedKeyword
from ...base.utf8 import ALL, Ranges, intersect
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...grammar.source import Limits
from ...grammar.stopwatch import Stopwatch
from .charsets import NEWLINE
from .context import START, Continuation, Surroundings, is_nullable
from .loops import AssertionInLoop, loop_node
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
    assertions,
    children,
    fold,
    is_at,
    never_at_an_end,
)

UNROLLED: Final = 32  # copies of a body with assertions that are written out


Routine = Generator[tuple[Tree, Continuation], Continuation, Continuation]


class Language(NamedTuple):
    """The texts of a tree without assertions: all of them, those that are not empty, and whether the empty one is among
    them."""

    full: Node
    filled: Node
    nullable: bool


class PatternLowering:
    """Lowers one pattern into `grammar`; `unit` gives the node for one character of a set.

    Repetitions of assertions are written out, inside each other too, so it may take long. Raises `ConstraintLimit` then.
    """

    def __init__(self, grammar: Grammar, unit: Unit, tree: Tree, limits: Limits) -> None:
        self.grammar, self.unit, self.tree, self._limits = grammar, unit, tree, limits
        self.languages: dict[Tree, Language | None] = fold(tree, self._language)  # None: has assertions
        self._surroundings: Surroundings | None = None  # made when they are first asked for: most patterns need none

    @property
    def around(self) -> Surroundings:
        if self._surroundings is None:
            asserted = assertions(self.tree)
            longer = [part for part in asserted if isinstance(part, Lookbehind)]
            self._surroundings = Surroundings(self.grammar, self.unit, _word_of(asserted), _sets_behind(asserted), longer)
        return self._surroundings

    def whole_text(self) -> Node:
        """The texts that the pattern matches from end to end."""
        try:
            return self._lower(self.around.same(EMPTY))[START]
        except AssertionInLoop:
            return loop_node(self.grammar, self.unit, self.tree, self.around, full=True, limits=self._limits)

    def any_text_with_match(self, behind: Node | None = None) -> Node:
        """The texts in which the pattern matches somewhere. behind: what may follow the match; None for any text."""
        anywhere = self._anywhere() if behind is None else None
        if anywhere is not None:
            return anywhere
        try:
            at = self._lower(self.around.same(self.around.anything if behind is None else behind))
        except AssertionInLoop:
            if behind is not None and not self.around.is_anything(behind):
                raise
            return loop_node(self.grammar, self.unit, self.tree, self.around, full=False, limits=self._limits)
        if len(set(at)) == 1:
            return self.grammar.seq(self.around.anything, at[0])
        if self.around.cases.reach:
            paths = [
                self.grammar.seq(self.around.cases.paths(START, ends), node)
                for ends, node in self.around.groups(at)
                if node != FAIL
            ]
            return self.grammar.alt(at[START], *paths)
        after_more = [
            self.grammar.seq(self.around.anything, self.unit(chars), at[left]) for left, chars in self.around.lefts(at)
        ]
        return self.grammar.alt(at[START], *after_more)

    def _anywhere(self) -> Node | None:
        """The texts in which a pattern matches somewhere that has no assertions but at its ends; None of any other pattern."""
        anything, language = self.grammar.repeat(self.unit(ALL)), self.languages[self.tree]
        if language is not None:
            return anything if language.nullable else self.grammar.seq(anything, self.grammar.seq(language.full, anything))
        parts = self.tree.parts if isinstance(self.tree, Concat) else (self.tree,)
        begins, ends = is_at(parts[0], Place.START), is_at(parts[-1], Place.END)
        between = [self.languages[part] for part in parts[int(begins) : len(parts) - int(ends)]]
        fulls = [each.full for each in between if each is not None]
        if len(fulls) < len(between):
            return None
        at = self.grammar.seq(*fulls, EMPTY if ends else anything)
        return at if begins else self.grammar.seq(anything, at)

    # -- trees without assertions -----------------------------------------------------------------------------------

    def _language(self, tree: Tree, parts: list[Language | None]) -> Language | None:
        if isinstance(tree, Both | Complement):
            return self._combined(tree, parts)
        known = [part for part in parts if part is not None]
        if isinstance(tree, Anchor | Lookahead | Lookbehind) or len(known) < len(parts):
            return None
        if isinstance(tree, CharSet):
            node = self.unit(tree.ranges) if tree.ranges else FAIL
            return Language(node, node, False)
        if isinstance(tree, Repeat):
            return self._repeated(known[0], tree.low, tree.high)
        if isinstance(tree, Concat):
            return self._joined(known)
        fulls, filled = (part.full for part in known), (part.filled for part in known)
        return Language(self.grammar.alt(*fulls), self.grammar.alt(*filled), any(part.nullable for part in known))

    def _combined(self, tree: Both | Complement, parts: list[Language | None]) -> Language:
        """An intersection or a complement; a part with assertions is lowered as a text of its own."""
        nodes = [
            PatternLowering(self.grammar, self.unit, child, self._limits).whole_text() if part is None else part.full
            for child, part in zip(children(tree), parts, strict=True)
        ]
        some = self.grammar.repeat(self.unit(ALL), 1)
        if isinstance(tree, Complement):
            node = self.grammar.without(self.grammar.repeat(self.unit(ALL)), nodes[0])
        else:
            node = nodes[0]
            for other in nodes[1:]:
                node = self.grammar.both(node, other)
        nullable = is_nullable(self.grammar, node)
        return Language(node, self.grammar.both(node, some) if nullable else node, nullable)

    def _joined(self, parts: list[Language]) -> Language:
        """Concatenation. Texts that are not empty: one of the leading parts that can be empty begins them, or the rest."""
        leading = next((index for index, part in enumerate(parts) if not part.nullable), len(parts))
        rest = self.grammar.seq(*(part.full for part in parts[leading:]))
        filled = FAIL if leading == len(parts) else rest
        for part in reversed(parts[:leading]):
            filled = self.grammar.alt(self.grammar.seq(part.filled, rest), filled)
            rest = self.grammar.seq(part.full, rest)
        full = self.grammar.seq(*(part.full for part in parts))
        return Language(full, filled if leading else full, leading == len(parts))

    def _repeated(self, body: Language, low: int, high: int | None) -> Language:
        low = 0 if body.nullable else low
        full = self.grammar.repeat(body.filled, low, high)
        if low > 0:
            return Language(full, full, False)
        return Language(full, FAIL if high == 0 else self.grammar.repeat(body.filled, 1, high), True)

    # -- trees with assertions --------------------------------------------------------------------------------------

    def _lower(self, continuation: Continuation) -> Continuation:
        """Runs the routines below on a stack of their own: patterns may nest deeper than Python calls."""
        stack, value = [self._routine(self.tree, continuation)], None
        stopwatch = Stopwatch(self._limits, "a pattern with assertions")
        while stack:
            stopwatch.check()
            if len(self.grammar) > self._limits.nodes:
                raise ConstraintLimit("a pattern with assertions", limit="nodes", value=self._limits.nodes)
            try:
                request = next(stack[-1]) if value is None else stack[-1].send(value)
                stack.append(self._routine(*request))
                value = None
            except StopIteration as finished:
                stack.pop()
                value = finished.value
        assert value is not None
        return value

    def _routine(self, tree: Tree, then: Continuation) -> Routine:
        """The texts of `tree` followed by `then`, as a generator that asks for those of other trees."""
        language = self.languages[tree]
        if language is not None:
            return self._plain(tree, language, then)
        if isinstance(tree, Concat):
            return self._concat(tree, then)
        if isinstance(tree, Alternate):
            return self._alternate(tree, then)
        if isinstance(tree, Repeat):
            return self._repeat(tree, then)
        if isinstance(tree, Lookahead):
            return self._lookahead(tree, then)
        assert isinstance(tree, Anchor | Lookbehind)
        return self._anchor(tree, then)

    def _concat(self, tree: Concat, then: Continuation) -> Routine:
        plain: list[Language] = []
        for part in reversed(tree.parts):
            language = self.languages[part]
            if language is not None and len(set(then)) == 1:
                plain.append(language)
                continue
            then, plain = self._prefixed(plain, then), []
            then = yield part, then
        return self._prefixed(plain, then)

    def _prefixed(self, parts: list[Language], then: Continuation) -> Continuation:
        """Languages, last one first, before a continuation that does not look back."""
        return self.around.same(self.grammar.seq(*(part.full for part in reversed(parts)), then[0])) if parts else then

    def _alternate(self, tree: Alternate, then: Continuation) -> Routine:
        columns: list[Continuation] = []
        for option in tree.options:
            columns.append((yield option, then))
        return self.around.by_left(lambda left: self.grammar.alt(*(column[left] for column in columns)))

    def _lookahead(self, tree: Lookahead, then: Continuation) -> Routine:
        if tree.negative:
            seen = yield tree.body, self.around.same(self.around.any_bytes)
            return self.around.by_left(lambda left: self.around.difference(then[left], seen[left]))
        seen = yield tree.body, self.around.same(self.around.anything)
        return self.around.by_left(lambda left: self.around.intersection(then[left], seen[left]))

    def _anchor(self, tree: Anchor | Lookbehind, then: Continuation) -> Routine:
        yield from ()
        if isinstance(tree, Lookbehind):
            return self.around.by_left(lambda left: self.around.behind(tree, left, then[left]))
        return self.around.by_left(lambda left: self.around.placed(tree, left, then[left]))

    def _plain(self, tree: Tree, language: Language, then: Continuation) -> Routine:
        """A tree without assertions before a continuation that depends on how the tree's text ends."""
        if len(set(then)) == 1:
            return self.around.same(self.grammar.seq(language.full, then[0]))
        if isinstance(tree, Concat):
            return (yield from self._concat(tree, then))
        if isinstance(tree, Alternate):
            return (yield from self._alternate(tree, then))
        if self.around.cases.reach:
            return self._by_path(tree, language, then)
        filled = self.grammar.alt(*self._by_last_character(tree, language, then))
        return self.around.by_left(lambda left: self.grammar.alt(then[left] if language.nullable else FAIL, filled))

    def _by_path(self, tree: Tree, language: Language, then: Continuation) -> Continuation:
        """The texts of a tree without assertions, each with the continuation of the case that it leads to."""
        grammar, cases = self.grammar, self.around.cases

        def of(left: int) -> Node:
            if isinstance(tree, CharSet):
                options = [(self.unit(chars), then[after]) for chars, after in cases.by_character(left, tree.ranges)]
            else:
                options = [
                    (self.around.intersection(language.filled, cases.paths(left, ends)), node)
                    for ends, node in self.around.groups(then)
                ]
            empty = then[left] if language.nullable else FAIL
            return grammar.alt(empty, *(grammar.seq(texts, node) for texts, node in options if node != FAIL))

        return self.around.by_left(of)

    def _by_last_character(self, tree: Tree, language: Language, then: Continuation) -> list[Node]:
        """The texts of a repetition or a set that are not empty, each with the continuation for its last character."""
        lefts = self.around.lefts(then)
        last = tree.body if isinstance(tree, Repeat) else tree
        if isinstance(tree, CharSet):
            parts = [(intersect(tree.ranges, chars), then[left]) for left, chars in lefts]
            return [self.grammar.seq(self.unit(chars), after) for chars, after in parts if chars]
        if isinstance(last, CharSet):
            ends = [left for left, chars in lefts if intersect(last.ranges, chars)]
            if len(ends) == 1:
                return [self.grammar.seq(language.filled, then[ends[0]])]
        if len(lefts) == 1:
            return [self.grammar.seq(language.filled, then[lefts[0][0]])]
        return [
            self.grammar.seq(
                self.grammar.both(language.filled, self.grammar.seq(self.around.anything, self.unit(chars))), then[left]
            )
            for left, chars in lefts
        ]

    def _repeat(self, tree: Repeat, then: Continuation) -> Routine:
        """Copies of a body with assertions: the first `low` one by one, then optional ones."""
        if isinstance(tree.body, Anchor | Lookahead | Lookbehind):
            return then if tree.low == 0 else (yield tree.body, then)
        tempered = yield from self._tempered(tree, then)
        if tempered is not None:
            return tempered
        written_out = tree.low if tree.high is None else tree.high
        if written_out > UNROLLED:
            raise _refused_loop()
        if tree.high is None:
            then = yield from self._star(tree.body, then)
        else:
            after = then
            for _ in range(tree.high - tree.low):
                then = self.around.union(after, (yield tree.body, then))
        for _ in range(tree.low):
            then = yield tree.body, then
        return then

    def _tempered(
        self, tree: Repeat, then: Continuation
    ) -> Generator[tuple[Tree, Continuation], Continuation, Continuation | None]:
        """`((?!x)[set])*` up to the end of the text: no suffix begins with x. None for any other repetition."""
        parts = tree.body.parts if isinstance(tree.body, Concat) else ()
        endings = self._endings(then)
        if len(parts) != 2 or not endings:
            return None
        ahead, last = parts
        if not (isinstance(ahead, Lookahead) and ahead.negative and isinstance(last, CharSet)):
            return None
        seen = yield ahead.body, self.around.same(self.around.any_bytes)
        if len(set(seen)) > 1:
            return None
        copies = self.languages[last]
        assert copies is not None
        body = self.grammar.repeat(copies.full, tree.low, tree.high)
        texts = [self._without_suffix(self.grammar.seq(body, end), seen[0], length + 1) for length, end in endings]
        return self.around.same(self.grammar.alt(*texts))

    def _endings(self, then: Continuation) -> list[tuple[int, Node]]:
        """A continuation as texts of known length; none if it is not that simple."""
        if set(then) == {EMPTY}:
            return [(0, EMPTY)]
        newline = self.unit(NEWLINE)
        return [(0, EMPTY), (1, newline)] if set(then) == {self.grammar.optional(newline)} else []

    def _without_suffix(self, texts: Node, suffix: Node, length: int) -> Node:
        """The texts that have no suffix of at least `length` characters in `suffix`."""
        forbidden = self.around.intersection(suffix, self.grammar.repeat(self.unit(ALL), length))
        return self.around.difference(texts, self.grammar.seq(self.around.anything, forbidden))

    def _star(self, body: Tree, then: Continuation) -> Routine:
        """Any number of copies of a body whose assertions are all about the ends of the text."""
        if all(map(self.around.is_anything, then)):
            return then
        if len(set(then[1:])) > 1 or not all(_is_text_end(part) for part in assertions(body)):
            raise _refused_loop()
        without_ends = fold(never_at_an_end(body), self._language)
        inner = next(reversed(without_ends.values()))
        assert inner is not None
        # "$" is true at most one newline before the end, so it can only matter in the last two copies that are not empty
        last = self.around.union(then, (yield body, then))
        last = self.around.union(then, (yield body, last))
        later = self.grammar.seq(self.grammar.repeat(inner.filled), last[-1])
        rest = self.around.same(later)[1:]
        first = yield body, (then[START], *rest)
        return self.grammar.alt(then[START], first[START]), *rest


def _is_text_end(tree: Tree) -> bool:
    return isinstance(tree, Anchor) and tree.place in (Place.START, Place.END, Place.END_OR_LAST_NEWLINE)


def _word_of(asserted: list[Tree]) -> Ranges:
    """What `\\w` means to the word edges of a pattern."""
    edges = (Place.WORD_EDGE, Place.NOT_WORD_EDGE, Place.NOT_WORD_EDGE_OF_TEXT)
    meanings = {part.chars for part in asserted if isinstance(part, Anchor) and part.place in edges}
    if len(meanings) > 1:
        raise UnsupportedKeyword(
            "two kinds of word edges, ASCII and Unicode, in one pattern", keyword="\\b", instead="one kind"
        )
    return meanings.pop() if meanings else ()


def _sets_behind(asserted: list[Tree]) -> list[Ranges]:
    """The sets that the lookbehinds of a pattern ask for."""
    places = (Place.AFTER, Place.START_OR_AFTER)
    return [part.chars for part in asserted if isinstance(part, Anchor) and part.place in places]


def _refused_loop() -> AssertionInLoop:
    return AssertionInLoop(
        "an assertion (lookahead, lookbehind, \\b, ^ or $) inside a repetition that is not known to be regular",
        keyword="assertion in a repetition",
        instead="the assertion outside of the repetition",
    )
