"""The number of strings of an expression, and the strings themselves, up to a limit."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ..base.kinds import UNBOUNDED, Kind
from .expression import Grammar, Node
from .matcher import Position, Steps

MAX_POSITIONS: Final = 300  # looked at, unless told otherwise
MAX_LAYERS: Final = 400  # bytes of a string; an expression of longer ones counts as endless
_PLAIN: Final = (Kind.EMPTY, Kind.CLASS, Kind.LITERAL)  # with strings that are seen


def count_words(steps: Steps, node: Node, limit: int, positions: int = MAX_POSITIONS) -> int | None:
    """The number of distinct strings of `node`, `limit` for that many or more, None where so many positions do not tell: paths
    through its automaton are counted by length."""
    layer: Counter[Position] = Counter([steps.before(node)])
    total, looked_at = 0, 0
    while layer:
        total += sum(count for position, count in layer.items() if steps.is_accepting(position))
        if total >= limit:
            return limit
        looked_at += len(layer)
        if looked_at > positions:
            return None
        following: Counter[Position] = Counter()
        for position, count in layer.items():
            for low, high, after in steps.intervals(position):
                following[after] += count * (high - low + 1)
        layer = following
    return total


def shows_endless(grammar: Grammar, node: Node) -> bool:
    """Whether `node` has endlessly many strings, as far as can be seen without rules, intersections and complements."""
    found, work, seen = False, [node], {node}
    while work:
        part = work.pop()
        kind, (a, b, c) = grammar.kind(part), grammar.operands(part)
        below: list[Node] = []
        if kind is Kind.SEQ:
            below = [Node(a), Node(b)]
        elif kind is Kind.ALT:
            below = grammar.alternatives(part)
        elif kind is Kind.REPEAT:
            below, found = [Node(a)], found or c == UNBOUNDED  # a body is not empty
        elif kind not in _PLAIN:
            return False
        for each in below:
            if each not in seen:
                seen.add(each)
                work.append(each)
    return found


def list_words(steps: Steps, node: Node, limit: int) -> list[bytes] | None:
    """The strings of `node` where there are at most `limit`, else None."""
    layer: list[tuple[bytes, Position]] = [(b"", steps.before(node))]
    words: list[bytes] = []
    while layer:
        words += (prefix for prefix, position in layer if steps.is_accepting(position))
        following: list[tuple[bytes, Position]] = []
        for prefix, position in layer:
            for low, high, after in steps.intervals(position):
                if len(following) + high - low >= limit:
                    return None
                following += ((prefix + bytes([byte]), after) for byte in range(low, high + 1))
        if len(words) > limit or len(layer[0][0]) > MAX_LAYERS:
            return None
        layer = following
    return words
