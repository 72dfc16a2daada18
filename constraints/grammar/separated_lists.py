"""Chains and loops: parts in a row with a separator between two, of which the bodies of objects and arrays are made.

A *chain* has parts that differ, some of which may be left out; a *loop* has one part, any number of times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..base.kinds import UNBOUNDED, Kind
from .stopwatch import look
from .store import EMPTY, FAIL, Node

if TYPE_CHECKING:
    from .expression import Grammar

_ALT: Final = int(Kind.ALT)  # reading a member is slow
_LITERAL: Final = int(Kind.LITERAL)
_REPEAT: Final = int(Kind.REPEAT)
_SEQ: Final = int(Kind.SEQ)
_MANY: Final = 64  # parts of a chain, for which the clock is looked at; whoever makes short ones looks himself


def loop(grammar: Grammar, part: Node, gap: Node, separator: Node, end: Node) -> tuple[Node, Node]:
    """(rest, whole) of a loop of `part`, which is neither empty nor FAIL, with `gap` behind each copy, `separator`
    between two, and `end` behind the last. rest: what may follow one copy; whole: a copy with all that may follow it."""
    known = grammar.loops.get((part, gap, separator, end))
    if known is None:
        if _LITERAL in (grammar.rows[4 * part], grammar.rows[4 * gap]):  # neighbouring literals become one
            rest = grammar.seq(grammar.repeat(grammar.seq(separator, part, gap)), end)
            known = rest, grammar.seq(part, gap, rest)
        else:
            new = grammar.intern
            further = new((_SEQ, separator, part if gap == EMPTY else new((_SEQ, part, gap, 0)), 0))
            rest = new((_SEQ, new((_REPEAT, further, 0, UNBOUNDED)), end, 0))
            known = rest, new((_SEQ, part, rest if gap == EMPTY else new((_SEQ, gap, rest, 0)), 0))
        grammar.loops[part, gap, separator, end] = known
    return known


def chain(
    grammar: Grammar, links: Iterable[tuple[Node, bool]], gap: Node, separator: Node, end: Node, later: Node, following: Node
) -> Node:
    """Parts in order, with a gap behind each, a separator between two, and `end` behind the last.

    links: the parts, last one first, each with whether it is needed; the others may be left out. later: what follows all of
    them, `end` included; following: what may stand there behind a separator, FAIL for nothing.
    """
    parts = [link for link in links if link[0] != FAIL or link[1]]
    if len(parts) > _MANY:
        look()
    rows = grammar.rows
    if later == FAIL or (FAIL, True) in parts or _LITERAL in [rows[4 * node] for node in (gap, *dict(parts))]:
        return _joined_chain(grammar, parts, gap, separator, end, later, following)
    return _spaced_chain(grammar, parts, gap, separator, end, later, following)


def _joined_chain(
    grammar: Grammar, parts: list[tuple[Node, bool]], gap: Node, separator: Node, end: Node, later: Node, following: Node
) -> Node:
    """`chain` whose neighbouring literals are joined, and whose parts may be FAIL."""
    may_end = True
    for part, is_needed in parts:
        first = grammar.seq(part, gap, later)
        following = first if is_needed else grammar.alt(first, following)
        may_end = may_end and not is_needed
        later = grammar.alt(end if may_end else FAIL, grammar.seq(separator, following))
    return grammar.alt(end if may_end else FAIL, following)


def _spaced_chain(
    grammar: Grammar, parts: list[tuple[Node, bool]], gap: Node, separator: Node, end: Node, later: int, following: int
) -> Node:
    """`chain` where no literals are to be joined and no part is FAIL.

    Objects of many members are made of little else, so rows are written without looking for equal ones. What is
    remembered is how chains end.
    """
    ends, lists = grammar.chain_ends.setdefault((gap, separator, end), {}), grammar.lists
    rows: list[int] = []
    new, may_end = len(grammar), True
    for part, is_needed in parts:
        place = part, is_needed, later, following
        known = None if rows else ends.get(place)  # what follows a new node is new
        if known is not None:
            later, following, may_end = known
            continue
        if gap != EMPTY:
            rows += _SEQ, gap, later, 0
            later = new
            new += 1
        rows += _SEQ, part, later, 0
        new += 1
        if is_needed or following == FAIL:
            following = new - 1
        else:
            rows += _ALT, len(lists), 2, 0
            lists.extend((new - 1, following))
            following = new
            new += 1
        may_end = may_end and not is_needed
        rows += _SEQ, separator, following, 0
        later = new
        new += 1
        if may_end:
            rows += _ALT, len(lists), 2, 0
            lists.extend((end, later))
            later = new
            new += 1
        ends[place] = later, following, may_end
    grammar.rows.fromlist(rows)
    if len(parts) > _MANY:
        look()
    return grammar.alt(end if may_end else FAIL, Node(following))
