"""Many strings against expressions while a schema is being lowered, before there are tables: `Reference` with a memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from .expression import EMPTY, Grammar, Node
from .reference import Position, Reference, position_before


class Steps(Reference):
    """Steps through the expressions of a grammar; each is found once, for all that have parts in common."""

    def __init__(self, grammar: Grammar) -> None:
        super().__init__(grammar, EMPTY)
        self._edges: dict[Node, Sequence[tuple[int, int, int]]] = {}
        self._bounds: dict[Node, frozenset[int]] = {}
        self._first_bytes: dict[Position, list[int]] = {}
        self._known: dict[Position, dict[int, Position]] = {}
        self._intervals: dict[Position, list[tuple[int, int, Position]]] = {}

    def before(self, node: Node) -> Position:
        """Where a string of `node` begins."""
        return self._expand([position_before(node)])

    def intervals(self, position: Position) -> list[tuple[int, int, Position]]:
        """Where the bytes lead that lead anywhere: (first byte, last byte, position)."""
        known = self._intervals.get(position)
        if known is None:
            known = self._intervals[position] = list(self._find_intervals(position))
        return known

    def step(self, position: Position, byte: int) -> Position:
        """Where a byte leads, found for the first byte of those that lead to the same."""
        firsts = self.edges(position)
        first = firsts[bisect_right(firsts, byte) - 1]
        known = self._known.setdefault(position, {})
        after = known.get(first)
        if after is None:
            after = known[first] = super().step(position, first)
        return after

    def _find_intervals(self, position: Position) -> Iterator[tuple[int, int, Position]]:
        firsts = self.edges(position)
        for low, behind in zip(firsts, [*firsts[1:], 256], strict=True):
            after = self.step(position, low)
            if after:
                yield low, behind - 1, after

    def edges(self, position: Position) -> list[int]:
        """The same in ascending order."""
        known = self._first_bytes.get(position)
        if known is None:
            known = self._first_bytes[position] = sorted(super().edges(position))
        return known

    def _edges_of(self, node: Node) -> Sequence[tuple[int, int, int]]:
        known = self._edges.get(node)
        if known is None:
            known = self._edges[node] = self.grammar.class_edges(node)
        return known

    def _bounds_of(self, node: Node) -> Iterable[int]:
        known = self._bounds.get(node)
        if known is None:
            known = self._bounds[node] = frozenset(super()._bounds_of(node))
        return known


class Matcher:
    """Matches byte strings against a node."""

    def __init__(self, steps: Steps, node: Node) -> None:
        self._steps, self._start = steps, steps.before(node)

    def accepts(self, text: bytes) -> bool:
        """Whether `text` as a whole is in the language."""
        position = self._start
        for byte in text:
            position = self._steps.step(position, byte)
            if not position:
                return False
        return self._steps.is_accepting(position)
