"""The number of strings of an expression, and the strings themselves, up to a limit."""

from __future__ import annotations

from collections import Counter
from typing import Final

from .expression import Node
from .matcher import Position, Steps

MAX_POSITIONS: Final = 300  # looked at, unless told otherwise; beyond them an expression counts as endless
MAX_LAYERS: Final = 400  # bytes of a string; an expression whose count grows so slowly counts as endless


def count_words(steps: Steps, node: Node, limit: int, positions: int = MAX_POSITIONS) -> int:
    """The number of distinct strings of `node`, at most `limit`, which counts as endless."""
    count, are_all = words_found(steps, node, limit, positions)
    return count if are_all else limit


def words_found(steps: Steps, node: Node, limit: int, positions: int = MAX_POSITIONS) -> tuple[int, bool]:
    """(how many distinct strings of `node` are found, whether these are all): paths through its automaton are counted by length,
    until there are `limit`."""
    layer: Counter[Position] = Counter([steps.before(node)])
    total, looked_at = 0, 0
    for _ in range(MAX_LAYERS):
        total += sum(count for position, count in layer.items() if steps.is_accepting(position))
        looked_at += len(layer)
        if total >= limit or looked_at > positions:
            break
        following: Counter[Position] = Counter()
        for position, count in layer.items():
            for low, high, after in steps.intervals(position):
                following[after] += count * (high - low + 1)
        if not following:
            return total, True
        layer = following
    return min(total, limit), False


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
