"""The surroundings of a position in a text: anchors, word edges and lookarounds as operations on continuations.

A continuation is the node of what may follow up to the end of the whole text, for each case of what stands to the left
(`Left`): nothing, or a character of one of the cells into which the sets that a pattern looks back at divide all
characters, and what has been read of longer lookbehinds (`lookbehind.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...base.utf8 import ALL, Ranges, intersect, invert, normalize
from ...grammar.expression import EMPTY, FAIL, Grammar, Kind, Node
from .charsets import NEWLINE
from .lookbehind import Cases
from .tree import Anchor, Lookbehind, Place, Unit

Left = int  # the index of a case
START: Left = 0  # the case that nothing stands before a position
Continuation = tuple[Node, ...]  # [cases]


class Surroundings:
    """Operations on the continuations of one pattern; `word` is what `\\w` means to its word edges, `behind` are the sets of
    its lookbehinds."""

    def __init__(self, grammar: Grammar, unit: Unit, word: Ranges, behind: list[Ranges], lookbehinds: list[Lookbehind]) -> None:
        self.grammar, self.unit, self.word = grammar, unit, word
        self.anything = grammar.repeat(unit(ALL))
        # The same to a complement, of which nothing is left then; of all texts it would still have those that are no texts,
        # and a search would look for one of them in vain.
        self.any_bytes = grammar.repeat(grammar.bytes_in([(0x00, 0xFF)]))
        self.cases = Cases(grammar, unit, [NEWLINE, word, *behind], lookbehinds)
        self._cells: list[Ranges] = [case.last for case in self.cases.all]  # the last character; none for START

    def placed(self, anchor: Anchor, left: Left, then: Node) -> Node:
        """The part of `then` before which an anchor holds."""
        place = anchor.place
        if place in (Place.START, Place.LINE_START):
            holds = left == START or (place is Place.LINE_START and self._is_in(left, NEWLINE))
            return then if holds else FAIL
        if place in (Place.AFTER, Place.START_OR_AFTER):
            return (
                then if self._is_in(left, anchor.chars) or (left == START and place is Place.START_OR_AFTER) else FAIL
            )
        if place is Place.END:
            return self.intersection(then, EMPTY)
        if place is Place.END_OR_LAST_NEWLINE:
            return self.intersection(then, self.grammar.optional(self.unit(NEWLINE)))
        if place is Place.LINE_END:
            return self.intersection(then, self._begins_with(NEWLINE, or_empty=True))
        return self._at_word_edge(place, left, then)

    def behind(self, lookbehind: Lookbehind, left: Left, then: Node) -> Node:
        """`then`, where a lookbehind holds."""
        return then if self.cases.holds(left, lookbehind) else FAIL

    def groups(self, then: Continuation) -> list[tuple[frozenset[Left], Node]]:
        """The cases in groups behind which a text goes on alike, each group with the text."""
        found: dict[Node, set[Left]] = {}
        for left, node in enumerate(then):
            found.setdefault(node, set()).add(left)
        return [(frozenset(lefts), node) for node, lefts in found.items()]

    def _is_in(self, left: Left, chars: Ranges) -> bool:
        return bool(intersect(self._cells[left], chars))

    def _at_word_edge(self, place: Place, left: Left, then: Node) -> Node:
        wants_word = self._is_in(left, self.word) != (place is Place.WORD_EDGE)
        if wants_word:
            return self.intersection(then, self._begins_with(self.word, or_empty=False))
        is_text_needed = place is Place.NOT_WORD_EDGE_OF_TEXT and left == START
        return self.intersection(then, self._begins_with(invert(self.word), or_empty=not is_text_needed))

    def _begins_with(self, chars: Ranges, or_empty: bool) -> Node:
        begun = self.grammar.seq(self.unit(chars), self.anything)
        return self.grammar.optional(begun) if or_empty else begun

    def is_anything(self, node: Node) -> bool:
        """Whether a node stands for every text."""
        return node in (self.anything, self.any_bytes)

    def intersection(self, first: Node, second: Node) -> Node:
        """The texts in both. The machine gets an intersection only where nothing simpler says it."""
        if self.is_anything(first) or self.is_anything(second):
            return second if self.is_anything(first) else first
        if EMPTY in (first, second):
            return EMPTY if is_nullable(self.grammar, first) and is_nullable(self.grammar, second) else FAIL
        return self.grammar.both(first, second)

    def difference(self, whole: Node, part: Node) -> Node:
        """The texts in `whole` and not in `part`. The machine gets a difference only where nothing simpler says it."""
        if self.is_anything(part):
            return FAIL
        if whole == EMPTY:
            return FAIL if is_nullable(self.grammar, part) else EMPTY
        return self.grammar.without(whole, part)

    def same(self, node: Node) -> Continuation:
        """The continuation that is `node` whatever stands to the left."""
        return (node,) * len(self._cells)

    def by_left(self, choose: Callable[[Left], Node]) -> Continuation:
        """A continuation from its entries."""
        return tuple(map(choose, range(len(self._cells))))

    def union(self, first: Continuation, second: Continuation) -> Continuation:
        """The continuation that goes on as either of two."""
        return self.by_left(lambda left: self.grammar.alt(first[left], second[left]))

    def lefts(self, then: Continuation) -> list[tuple[Left, Ranges]]:
        """The last characters after which `then` is one and the same, as one case each with the set of them."""
        merged: dict[Node, tuple[Left, Ranges]] = {}
        for left, chars in list(enumerate(self._cells))[1:]:
            case, known = merged.get(then[left], (left, ()))
            merged[then[left]] = (case, normalize([*known, *chars]))
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
