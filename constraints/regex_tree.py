"""What a regular expression means, whatever dialect it was written in.

Sets of characters are explicit, so flags, classes and case are gone. Quantifiers are neither lazy nor greedy: the set of
matching strings does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from .utf8 import Ranges

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
    """The empty string at a place; `word` is what `\\w` means, for word edges."""

    place: Place
    word: Ranges = ()


@dataclass(frozen=True, slots=True, eq=False)
class Lookahead:
    """The empty string where what follows begins with `body`, or does not if `negative`."""

    body: Tree
    negative: bool


Tree = CharSet | Concat | Alternate | Repeat | Anchor | Lookahead


def children(tree: Tree) -> tuple[Tree, ...]:
    """The direct parts of a tree."""
    if isinstance(tree, Concat):
        return tree.parts
    if isinstance(tree, Alternate):
        return tree.options
    return (tree.body,) if isinstance(tree, Repeat | Lookahead) else ()


def fold(tree: Tree, combine: Callable[[Tree, list[Result]], Result]) -> dict[int, Result]:
    """`combine(tree, results of its children)` for the tree and everything in it, by `id`; not recursive."""
    order, work = [], [tree]
    while work:
        order.append(work.pop())
        work.extend(children(order[-1]))
    results: dict[int, Result] = {}
    for part in reversed(order):
        if id(part) not in results:
            results[id(part)] = combine(part, [results[id(child)] for child in children(part)])
    return results


def assertions(tree: Tree) -> list[Tree]:
    """All anchors and lookaheads in a tree."""
    work: list[Tree] = [tree]
    found: list[Tree] = []
    while work:
        part = work.pop()
        work.extend(children(part))
        if isinstance(part, Anchor | Lookahead):
            found.append(part)
    return found


def never_at_an_end(tree: Tree) -> Tree:
    """The same tree for a text that has something on either side: its anchors never hold."""

    def rebuilt(part: Tree, parts: list[Tree]) -> Tree:
        if isinstance(part, Concat):
            return Concat(tuple(parts))
        if isinstance(part, Alternate):
            return Alternate(tuple(parts))
        if isinstance(part, Repeat):
            return Repeat(parts[0], part.low, part.high)
        return CharSet(()) if isinstance(part, Anchor) else part

    return fold(tree, rebuilt)[id(tree)]
