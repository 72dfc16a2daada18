"""How many strings an expression has, up to a limit."""

from __future__ import annotations

from collections import Counter

from .expression import Grammar, Node
from .matcher import Matcher
from .reference import Position

MAX_LAYERS = 400  # bytes of a string; an expression whose count grows so slowly counts as endless


def count_words(grammar: Grammar, node: Node, limit: int) -> int:
    """The number of distinct strings of `node`, at most `limit`: a count of paths by length through its automaton."""
    matcher = Matcher(grammar, node)
    layer: Counter[Position] = Counter([matcher.start])
    total = 0
    for _ in range(MAX_LAYERS):
        total += sum(count for position, count in layer.items() if matcher.is_accepting(position))
        if total >= limit:
            return limit
        following: Counter[Position] = Counter()
        for position, count in layer.items():
            for byte in range(256):
                after = matcher.step(position, byte)
                if after:
                    following[after] += count
        if not following:
            return total
        layer = following
    return limit
