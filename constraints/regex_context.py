"""What surrounds a position in a text: anchors, word edges and lookaheads as operations on continuations.

A continuation is the node of what may follow up to the end of the whole text, for each of the four cases of what stands to
the left (`Left`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from .charsets import NEWLINE
from .expression import EMPTY, FAIL, Grammar, Kind, Node
from .regex_tree import Place
from .utf8 import ALL, Ranges, invert, normalize

Unit = Callable[[Ranges], Node]


class Left(IntEnum):
    """What stands before a position."""

    START = 0  # nothing
    WORD = 1  # a character of a word
    NEWLINE = 2
    OTHER = 3  # any other character


Continuation = tuple[Node, Node, Node, Node]  # by Left


class Surroundings:
    """Operations on the continuations of one pattern; `word` is what `\\w` means to its word edges."""

    def __init__(self, grammar: Grammar, unit: Unit, word: Ranges) -> None:
        self.grammar, self.unit, self.word = grammar, unit, word
        self.anything = grammar.repeat(unit(ALL))

    def placed(self, place: Place, left: Left, then: Node) -> Node:
        """The part of `then` before which an anchor holds."""
        if place in (Place.START, Place.LINE_START):
            holds = left == Left.START or (left == Left.NEWLINE and place is Place.LINE_START)
            return then if holds else FAIL
        if place is Place.END:
            return self.intersection(then, EMPTY)
        if place is Place.END_OR_LAST_NEWLINE:
            return self.intersection(then, self.grammar.optional(self.unit(NEWLINE)))
        if place is Place.LINE_END:
            return self.intersection(then, self._begins_with(NEWLINE, or_empty=True))
        return self._at_word_edge(place, left, then)

    def _at_word_edge(self, place: Place, left: Left, then: Node) -> Node:
        wants_word = (left == Left.WORD) != (place is Place.WORD_EDGE)
        if wants_word:
            return self.intersection(then, self._begins_with(self.word, or_empty=False))
        is_text_needed = place is Place.NOT_WORD_EDGE_OF_TEXT and left == Left.START
        return self.intersection(then, self._begins_with(invert(self.word), or_empty=not is_text_needed))

    def _begins_with(self, chars: Ranges, or_empty: bool) -> Node:
        begun = self.grammar.seq(self.unit(chars), self.anything)
        return self.grammar.optional(begun) if or_empty else begun

    def intersection(self, first: Node, second: Node) -> Node:
        """Texts in both, where it is cheap without an intersection for the machine."""
        if self.anything in (first, second):
            return second if first == self.anything else first
        if EMPTY in (first, second):
            return EMPTY if is_nullable(self.grammar, first) and is_nullable(self.grammar, second) else FAIL
        return self.grammar.both(first, second)

    def difference(self, whole: Node, part: Node) -> Node:
        """Texts in `whole` and not in `part`, likewise."""
        if part == self.anything:
            return FAIL
        if whole == EMPTY:
            return FAIL if is_nullable(self.grammar, part) else EMPTY
        return self.grammar.without(whole, part)

    def same(self, node: Node) -> Continuation:
        """A continuation that does not look back."""
        return node, node, node, node

    def by_left(self, choose: Callable[[Left], Node]) -> Continuation:
        """A continuation from its entries."""
        return choose(Left.START), choose(Left.WORD), choose(Left.NEWLINE), choose(Left.OTHER)

    def union(self, first: Continuation, second: Continuation) -> Continuation:
        """One of the two."""
        return self.by_left(lambda left: self.grammar.alt(first[left], second[left]))

    def lefts(self, then: Continuation) -> list[tuple[Left, Ranges]]:
        """The last characters after which `then` is the same, as one case each with the set of them."""
        chars = {Left.WORD: self.word, Left.NEWLINE: NEWLINE, Left.OTHER: invert(normalize([*self.word, *NEWLINE]))}
        merged: dict[Node, tuple[Left, Ranges]] = {}
        for left, some in chars.items():
            case, known = merged.get(then[left], (left, ()))
            if some:
                merged[then[left]] = (case, normalize([*known, *some]))
        return list(merged.values())


def is_nullable(grammar: Grammar, node: Node) -> bool:
    """Whether a regular expression contains the empty text; not recursive."""
    known: dict[Node, bool] = {}
    work = [node]
    while work:
        parts = _operands(grammar, work[-1])
        missing = [part for part in parts if part not in known]
        if missing:
            work.extend(missing)
            continue
        done = work.pop()
        known[done] = _nullable_by_parts(grammar, done, [known[part] for part in parts])
    return known[node]


def _operands(grammar: Grammar, node: Node) -> list[Node]:
    kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
    if kind is Kind.ALT:
        return grammar.alternatives(node)
    if kind in (Kind.SEQ, Kind.BOTH):
        return [Node(a), Node(b)]
    return [Node(a)] if kind in (Kind.REPEAT, Kind.NEGATE) else []


def _nullable_by_parts(grammar: Grammar, node: Node, parts: list[bool]) -> bool:
    kind = grammar.kind(node)
    if kind is Kind.ALT:
        return any(parts)
    if kind is Kind.NEGATE:
        return not parts[0]
    if kind is Kind.REPEAT:
        return parts[0] or grammar.operands(node)[1] == 0
    return kind is Kind.EMPTY or (bool(parts) and all(parts))
