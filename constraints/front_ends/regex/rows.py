"""Patterns that are a row of sets of characters, such as `^[a-z][a-z0-9-]*$`: their texts of some length, and all other texts.

Of any pattern both are intersections, which compiling computes as tables. Most patterns of names are rows, and of a row they are
expressions like others: a length bounds the one repetition of the row, and a text that does not match says at its first wrong
character that it does not.
"""

from __future__ import annotations

from typing import NamedTuple

from ...base.utf8 import ALL, Ranges, intersect, invert, normalize
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from .tree import CharSet, Concat, Place, Repeat, Tree, Unit, is_at

Copies = tuple[Ranges, int, int | None]  # characters of a set, and how many (None: no bound)


class Row(NamedTuple):
    """Characters of some sets in a row from the beginning of a text on; to its end, if `is_whole`."""

    parts: list[Copies]
    is_whole: bool


class _Texts(NamedTuple):
    """Texts by their first character: whether the empty one is among them, and what follows the characters of disjoint sets."""

    has_empty: bool
    by_first: list[tuple[Ranges, Node]]

    def beginning(self, chars: Ranges) -> _Texts:
        """The empty text, and those that begin with some characters."""
        common = [(intersect(first, chars), node) for first, node in self.by_first]
        return _Texts(self.has_empty, [(first, node) for first, node in common if first])


def row_of(tree: Tree) -> Row | None:
    """A pattern as a row; None of any other."""
    parts = _flat(tree)
    if not parts or not is_at(parts[0], Place.START):
        return None
    is_whole = is_at(parts[-1], Place.END)
    copies: list[Copies] = []
    for part in parts[1 : len(parts) - is_whole]:
        if isinstance(part, Repeat) and isinstance(part.body, CharSet):
            copies.append((part.body.ranges, part.low, part.high))
        elif isinstance(part, CharSet):
            copies.append((part.ranges, 1, 1))
        else:
            return None
    return Row(copies, is_whole)


def texts_of_length(grammar: Grammar, unit: Unit, row: Row, low: int, high: int | None) -> Node | None:
    """The texts of a row that have `low` to `high` characters; None where more than one of its parts says how long they are."""
    open_parts = [i for i, (_, least, most) in enumerate(row.parts) if least != most]
    if not row.is_whole or len(open_parts) != 1:
        return None
    others = sum(least for i, (_, least, _) in enumerate(row.parts) if i != open_parts[0])
    nodes: list[Node] = []
    for i, (chars, least, most) in enumerate(row.parts):
        if i == open_parts[0]:
            least = max(least, low - others)
            bounds = [each for each in (most, None if high is None else high - others) if each is not None]
            most = min(bounds) if bounds else None
            if most is not None and most < least:
                return FAIL
        nodes.append(grammar.repeat(unit(chars), least, most))
    return grammar.seq(*nodes)


def other_texts(grammar: Grammar, unit: Unit, row: Row) -> Node | None:
    """The texts that a row does not match; None where a character of one of its repetitions may be one behind it as well."""
    anything = grammar.repeat(unit(ALL))
    texts = _Texts(False, [(ALL, anything)] if row.is_whole else [])
    following: Ranges = ()  # characters with which what is behind a part begins
    for chars, low, high in row.parts[::-1]:
        if low != high and intersect(chars, following):
            return None
        texts = _behind_some(grammar, unit, chars, None if high is None else high - low, texts)
        texts = _behind_all(grammar, unit, chars, low, texts, anything)
        following = chars if low > 0 else normalize([*following, *chars])
    return _node(grammar, unit, texts)


def _behind_some(grammar: Grammar, unit: Unit, chars: Ranges, most: int | None, texts: _Texts) -> _Texts:
    """Any number of characters of a set, or `most` of them, then texts that begin with others; behind the most of them any of the
    texts."""
    if most == 0:
        return texts
    one, others = unit(chars), texts.beginning(invert(chars))
    then = _node(grammar, unit, others)
    if most is None:
        more = grammar.seq(grammar.repeat(one), then)
    else:
        alike = _Texts(False, texts.beginning(chars).by_first)
        all_of_them = grammar.seq(grammar.repeat(one, most - 1, most - 1), _node(grammar, unit, alike))
        more = grammar.alt(grammar.seq(grammar.repeat(one, 0, most - 1), then), all_of_them)
    return _Texts(others.has_empty, [(chars, more), *others.by_first])


def _behind_all(grammar: Grammar, unit: Unit, chars: Ranges, count: int, texts: _Texts, anything: Node) -> _Texts:
    """So many characters of a set, then some texts; and what has fewer of them."""
    if count == 0:
        return texts
    wrong = [(invert(chars), anything)]
    right = _node(grammar, unit, texts)
    if count > 1:
        fewer = grammar.seq(grammar.repeat(unit(chars), 0, count - 2), _node(grammar, unit, _Texts(True, wrong)))
        right = grammar.alt(fewer, grammar.seq(grammar.repeat(unit(chars), count - 1, count - 1), right))
    return _Texts(True, [(chars, right), *wrong])


def _node(grammar: Grammar, unit: Unit, texts: _Texts) -> Node:
    options = [grammar.seq(unit(first), node) for first, node in texts.by_first if first and node != FAIL]
    return grammar.alt(EMPTY if texts.has_empty else FAIL, *options)


def _flat(tree: Tree) -> list[Tree]:
    """What stands in a row, without groups."""
    found: list[Tree] = []
    work = [tree]
    while work:
        part = work.pop()
        if isinstance(part, Concat):
            work += reversed(part.parts)
        else:
            found.append(part)
    return found
