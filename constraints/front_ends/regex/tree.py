"""The meaning of a regular expression, whatever dialect it was written in: a tree.

Sets of characters are explicit, so flags, classes and case are gone. Quantifiers are neither lazy nor greedy: the set
of matching strings does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, TypeVar

from ...base.utf8 import Ranges, intersect
from ...grammar.expression import Node
from ...grammar.stopwatch import look

Unit = Callable[[Ranges], Node]  # one character of a set
Result = TypeVar("Result")


class Place(Enum):
    """A position in the text that an anchor asks for."""

    START = auto()
    LINE_START = auto()  # START, or after a newline
    END = auto()
    END_OR_LAST_NEWLINE = auto()  # END, or before a newline at the end: Python's "$"
    LINE_END = auto()  # END, or before a newline
    WORD_EDGE = auto()
    NOT_WORD_EDGE = auto()
    NOT_WORD_EDGE_OF_TEXT = auto()  # NOT_WORD_EDGE, and the whole text is not empty
    AFTER = auto()  # after a character of a set: a lookbehind
    START_OR_AFTER = auto()


@dataclass(frozen=True, slots=True, eq=False)
class CharSet:
    """One character out of `ranges`."""

    ranges: Ranges


@dataclass(frozen=True, slots=True, eq=False)
class Concat:
    """All parts, one after the other; no part: the empty string."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alternate:
    """One of the options."""

    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """`low` to `high` (None = any number of) copies of `body`."""

    body: Tree
    low: int
    high: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """The empty string at a place; `chars` is what `\\w` means, for word edges, or the set of a lookbehind."""

    place: Place
    chars: Ranges = ()


@dataclass(frozen=True, slots=True, eq=False)
class Lookahead:
    """The empty string where what follows begins with `body`, or does not if `negative`."""

    body: Tree
    negative: bool


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """The texts that all parts match; assertions in a part see the text of that part alone."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Complement:
    """Every text that `body` does not match as a whole."""

    body: Tree


class SequenceBehind(NamedTuple):
    """A sequence of sets: one character of each stands before a position, behind the beginning of the text if
    `at_start`."""

    sets: tuple[Ranges, ...]
    at_start: bool


@dataclass(frozen=True, slots=True, eq=False)
class Lookbehind:
    """The empty string where what stands before it ends with one of `sequences`, or does not if `negative`."""

    sequences: tuple[SequenceBehind, ...]
    negative: bool


Tree = CharSet | Concat | Alternate | Repeat | Anchor | Lookahead | Lookbehind | Both | Complement


def children(tree: Tree) -> tuple[Tree, ...]:
    """The direct parts of a tree."""
    if isinstance(tree, _OF_SEVERAL):
        return tree.options if isinstance(tree, Alternate) else tree.parts
    return (tree.body,) if isinstance(tree, _OF_ONE) else ()


_MANY = 1000  # parts, after which the clock is looked at
_OF_SEVERAL, _OF_ONE, _LEAVES = (Concat, Alternate, Both), (Repeat, Lookahead, Complement), {CharSet, Anchor, Lookbehind}


def fold(tree: Tree, combine: Callable[[Tree, list[Result]], Result]) -> dict[Tree, Result]:
    """`combine(tree, results of its children)` for everything in a tree, each object once; the whole comes last."""
    results: dict[Tree, Result] = {}
    work = [tree]
    while work:
        part = work[-1]
        below = children(part)
        if len(below) > _MANY:
            look()
        for child in below:
            if child not in results:
                if type(child) in _LEAVES:  # most are: not worth a turn
                    results[child] = combine(child, [])
                else:
                    work.append(child)
        if work[-1] is part:
            work.pop()
            if part not in results:
                results[part] = combine(part, [results[child] for child in below])
    return results


def assertions(tree: Tree) -> list[Tree]:
    """All anchors and lookarounds in a tree."""
    found: list[Tree] = []

    def note(part: Tree, _: list[None]) -> None:
        if isinstance(part, Anchor | Lookahead | Lookbehind):
            found.append(part)

    fold(tree, note)
    return found


def is_at(tree: Tree, place: Place) -> bool:
    """Whether a tree is the anchor of a place."""
    return isinstance(tree, Anchor) and tree.place is place


def shared(tree: Tree) -> Tree:
    """An equal tree in which equal parts are one object, so that a fold meets each of them once."""
    known: dict[tuple[object, ...], Tree] = {}

    def interned(part: Tree, parts: list[Tree]) -> Tree:
        rebuilt = with_children(part, parts)
        own = (
            ()
            if isinstance(part, Concat | Alternate | Both)
            else tuple(getattr(part, name) for name in part.__slots__ if name != "body")
        )
        return known.setdefault((type(part), own, *parts), rebuilt)

    return fold(tree, interned)[tree]


def with_children(tree: Tree, parts: Sequence[Tree]) -> Tree:
    """A tree like the given one with other children."""
    if isinstance(tree, Concat | Both):
        return type(tree)(tuple(parts))
    if isinstance(tree, Complement):
        return Complement(parts[0])
    if isinstance(tree, Alternate):
        return Alternate(tuple(parts))
    if isinstance(tree, Repeat):
        return Repeat(parts[0], tree.low, tree.high)
    return Lookahead(parts[0], tree.negative) if isinstance(tree, Lookahead) else tree


def within(tree: Tree, allowed: Ranges) -> Tree:
    """A tree of the same form whose characters are all out of a set."""

    def rebuilt(part: Tree, parts: list[Tree]) -> Tree:
        return CharSet(intersect(part.ranges, allowed)) if isinstance(part, CharSet) else with_children(part, parts)

    return fold(tree, rebuilt)[tree]


def never_at_an_end(tree: Tree) -> Tree:
    """A tree of the same form for a text that has something on either side: its anchors never hold."""

    def rebuilt(part: Tree, parts: list[Tree]) -> Tree:
        return (
            CharSet(())
            if isinstance(part, Anchor)
            else part
            if isinstance(part, Lookahead)
            else with_children(part, parts)
        )

    return fold(tree, rebuilt)[tree]
