"""Many strings against one expression while a schema is being lowered, before there are tables: `Reference` with a memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from .expression import Grammar, Node
from .reference import Position, Reference


class Matcher:
    """Matches byte strings against a node; every position and step is found once."""

    def __init__(self, grammar: Grammar, node: Node) -> None:
        self._reference = Reference(grammar, node)
        self.start = self._reference.start()
        self._edges: dict[Position, list[int]] = {}
        self._steps: dict[Position, dict[int, Position]] = {}
        self._intervals: dict[Position, list[tuple[int, int, Position]]] = {}

    def accepts(self, text: bytes) -> bool:
        position = self.start
        for byte in text:
            position = self._step(position, byte)
            if not position:
                return False
        return self.is_accepting(position)

    def is_accepting(self, position: Position) -> bool:
        return self._reference.is_accepting(position)

    def intervals(self, position: Position) -> list[tuple[int, int, Position]]:
        """Where the bytes lead that lead anywhere: (first byte, last byte, position)."""
        known = self._intervals.get(position)
        if known is None:
            known = self._intervals[position] = list(self._find_intervals(position))
        return known

    def _find_intervals(self, position: Position) -> Iterator[tuple[int, int, Position]]:
        edges = self._edges_of(position)
        for low, behind in zip(edges, [*edges[1:], 256], strict=True):
            after = self._step(position, low)
            if after:
                yield low, behind - 1, after

    def _step(self, position: Position, byte: int) -> Position:
        """Where a byte leads, found for the first byte of those that lead to the same."""
        edges = self._edges_of(position)
        first = edges[bisect_right(edges, byte) - 1]
        steps = self._steps.setdefault(position, {})
        known = steps.get(first)
        if known is None:
            known = steps[first] = self._reference.step(position, first)
        return known

    def _edges_of(self, position: Position) -> list[int]:
        known = self._edges.get(position)
        if known is None:
            known = self._edges[position] = sorted(self._reference.edges(position))
        return known
