"""Many strings matched against expressions while a schema is being lowered, before there are tables.

These are the derivatives of `reference.py`, with everything that is found kept, for all expressions that have parts in
common: parts, continuations and positions are numbers. Marks mean nothing here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .expression import EMPTY, Grammar, Kind, Node
from .reference import Continuation, Part, Unfolding
from .stopwatch import look

Position = int  # a set of continuations
_NOWHERE: Position = 0
_END: Final = 0  # the continuation with nothing to come
_PIECE: Final = 4096  # bytes of texts that are matched between two looks at the clock


class Steps(Unfolding[Position]):
    """Steps through the expressions of a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._continuations: list[tuple[Part, int]] = [((), _END)]  # the first part, and the number of what follows it
        self._numbers: dict[tuple[Part, int], int] = {}
        self._ways: dict[int, frozenset[int]] = {_END: frozenset([_END])}
        self._positions: list[frozenset[int]] = [frozenset()]
        self._position_numbers: dict[frozenset[int], Position] = {frozenset(): _NOWHERE}
        self._edges: dict[Node, Sequence[tuple[int, int, int]]] = {}
        self._bounds: dict[Part, frozenset[int]] = {}
        self._firsts: dict[Position, list[int]] = {}
        self._known: dict[tuple[Position, int], Position] = {}
        self._intervals: dict[Position, list[tuple[int, int, Position]]] = {}
        self._num_read = 0  # bytes since the last look at the clock

    def count(self, num_bytes: int) -> None:
        """Look at the clock once in so many bytes of texts that are matched."""
        self._num_read += num_bytes
        if self._num_read >= _PIECE:
            self._num_read = 0
            look()

    def before(self, node: Node) -> Position:
        return self._position(self._free_ways(self._joined((("node", node),), _END)))

    def is_accepting(self, position: Position) -> bool:
        return _END in self._positions[position]

    def intervals(self, position: Position) -> list[tuple[int, int, Position]]:
        """The bytes that lead somewhere, as (first byte, last byte, position)."""
        known = self._intervals.get(position)
        if known is None:
            known = self._intervals[position] = list(self._find_intervals(position))
        return known

    def _find_intervals(self, position: Position) -> Iterator[tuple[int, int, Position]]:
        look()
        firsts = self.edges(position)
        for low, behind in zip(firsts, [*firsts[1:], 256], strict=True):
            after = self.step(position, low)
            if after != _NOWHERE:
                yield low, behind - 1, after

    def step(self, position: Position, byte: int) -> Position:
        """The position behind a byte. It is found for the first of the bytes that lead to the same position."""
        firsts = self.edges(position)
        first = firsts[bisect_right(firsts, byte) - 1]
        after = self._known.get((position, first))
        if after is None:
            ways: set[int] = set()
            for number in self._positions[position]:
                part, rest = self._continuations[number]
                for crossed in self._crossed(part, first) if part else ():
                    ways |= self._free_ways(self._joined(crossed, rest))
            after = self._known[position, first] = self._position(frozenset(ways))
        return after

    def edges(self, position: Position) -> list[int]:
        """Bytes at which the answer of `step` may change, ascending: from one of them to before the next it is the same."""
        known = self._firsts.get(position)
        if known is None:
            parts = {part for number in self._positions[position] if (part := self._continuations[number][0])}
            bounds = frozenset([0]).union(*map(self._bounds_of, parts))
            known = self._firsts[position] = sorted(bounds - {256})
        return known

    def _position(self, ways: frozenset[int]) -> Position:
        number = self._position_numbers.setdefault(ways, len(self._positions))
        if number == len(self._positions):
            self._positions.append(ways)
        return number

    def _joined(self, parts: Continuation, rest: int) -> int:
        """The number of a continuation."""
        for part in reversed(parts):
            key = (part, rest)
            rest = self._numbers.setdefault(key, len(self._continuations))
            if rest == len(self._continuations):
                self._continuations.append(key)
        return rest

    def _free_ways(self, number: int) -> frozenset[int]:
        """The continuations that begin with a byte to be matched, or are finished, and are reached from one without
        reading."""
        known = self._ways.get(number)
        if known is not None:
            return known
        work, seen, out = [number], {number}, set()
        while work:
            at = work.pop()
            part, rest = self._continuations[at]
            if at == _END or self._is_leaf(part):
                out.add(at)
            for free in self._free(part) if part else ():
                behind = self._joined(free, rest)
                if behind not in seen:
                    seen.add(behind)
                    work.append(behind)
        known = self._ways[number] = frozenset(out)
        return known

    def _crossed(self, part: Part, byte: int) -> Iterable[Continuation]:
        """What is left of a part behind a byte."""
        if part[0] == "product":
            _, kind, operands = part
            stepped = tuple(self.step(operand, byte) for operand in operands)  # type: ignore[attr-defined]
            return [(("product", kind, stepped),)] if kind == Kind.NEGATE or _NOWHERE not in stepped else []
        if part[0] == "unlisted":
            _, words, inside = part
            left = tuple(word[1:] for word in words if word[:1] == bytes([byte]))  # type: ignore[attr-defined]
            crossed = self._crossed(inside[0], byte)  # type: ignore[index]
            return [(("unlisted", left, inner + inside[1:]),) for inner in crossed]  # type: ignore[index]
        node = Node(part[1])  # type: ignore[arg-type]
        if self.grammar.kind(node) is Kind.LITERAL:
            text, index = self.grammar.literal_bytes(node), part[2] if len(part) > 2 else 0
            assert isinstance(index, int)
            return [(("node", node, index + 1),) if index + 1 < len(text) else ()] if text[index] == byte else []
        return [
            () if follow == EMPTY else (("node", follow),) for low, high, follow in self._edges_of(node) if low <= byte <= high
        ]

    def _bounds_of(self, part: Part) -> frozenset[int]:
        known = self._bounds.get(part)
        if known is None:
            known = self._bounds[part] = frozenset(self._find_bounds(part))
        return known

    def _find_bounds(self, part: Part) -> Iterator[int]:
        if part[0] == "product":
            for operand in part[2]:  # type: ignore[attr-defined]
                yield from self.edges(operand)
        elif part[0] == "unlisted":
            _, words, inside = part
            yield from (bound for word in words for byte in word[:1] for bound in (byte, byte + 1))  # type: ignore[attr-defined]
            yield from self._bounds_of(inside[0])  # type: ignore[index]
        elif self.grammar.kind(node := Node(part[1])) is Kind.LITERAL:  # type: ignore[arg-type]
            byte = self.grammar.literal_bytes(node)[part[2] if len(part) > 2 else 0]  # type: ignore[call-overload]
            yield from (byte, byte + 1)
        else:
            yield from (bound for low, high, _ in self._edges_of(node) for bound in (low, high + 1))

    def _edges_of(self, node: Node) -> Sequence[tuple[int, int, int]]:
        known = self._edges.get(node)
        if known is None:
            known = self._edges[node] = self.grammar.class_edges(node)
        return known


class Matcher:
    """Matches byte strings against a node."""

    def __init__(self, steps: Steps, node: Node) -> None:
        self._steps, self._start = steps, steps.before(node)

    def accepts(self, text: bytes) -> bool:
        """Whether `text` as a whole is in the language."""
        position = self._start
        for begin in range(0, len(text), _PIECE):
            piece = text[begin : begin + _PIECE]
            self._steps.count(len(piece))
            for byte in piece:
                position = self._steps.step(position, byte)
                if position == _NOWHERE:
                    return False
        return self._steps.is_accepting(position)
