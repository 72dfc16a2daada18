"""How many values the texts of a node are at the most, where nobody can list them: texts are counted by their parts.

    {"a": 1 or 2, "b": true}, each of them or not       (1 + 2) * (1 + 1) = 6 objects

Texts that differ in white space, or in the order of members, count once; those that differ otherwise count as different values,
though they may not be (1 and 1.0). So the number is too large rather than too small. What cannot be counted counts as endless.

Members whose orders are written out, as those of few names of a pattern are, would count once for each order. So where there seem
to be enough values, texts are written down until there are as many different ones, or no more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ....base.kinds import UNBOUNDED, Kind
from ....grammar.expression import EMPTY, FAIL, Grammar, Node
from ....grammar.recursion import reachable

MOST_NODES: Final = 3000  # that are looked at
MOST_COUNTED: Final = 64  # members of an object, where their number is bounded
MOST_WRITTEN: Final = 200  # nodes whose texts are written down
MOST_COPIES: Final = 2  # of a repetition in them
MOST_TEXTS: Final = 1000  # of them
_WHITE_SPACE: Final = frozenset(b" \t\n\r")

Numbers = list[int]  # of sets of members, by how many members they have


def most_values(grammar: Grammar, root: Node, enough: int) -> int:
    """An upper bound of the number of values that `root` has texts of; `enough` for that many or more."""
    nodes = list(islice(reachable(grammar, root), MOST_NODES + 1))
    if len(nodes) > MOST_NODES:
        return enough
    counting = _Counting(grammar, enough)
    for node in sorted(nodes):
        counting.add(node)
    number = counting.number(root)
    if number == enough and len(nodes) <= MOST_WRITTEN and all(_is_written(grammar, node) for node in nodes):
        return _Writing(grammar).number(root, enough)
    return number


def _is_written(grammar: Grammar, node: Node) -> bool:
    """Whether texts of a node can be written down, if those of its parts can: choices and sequences, with few copies."""
    kind = grammar.kind(node)
    if kind is Kind.REPEAT:
        body, low, high = grammar.operands(node)
        return (low == 0 and is_white_space(grammar, Node(body))) or 0 <= high <= MOST_COPIES
    return node <= EMPTY or kind in (Kind.LITERAL, Kind.CLASS, Kind.SEQ, Kind.ALT)


def is_white_space(grammar: Grammar, node: Node) -> bool:
    """Whether a node is white space between values: in a string there are no control characters."""
    if grammar.kind(node) is not Kind.CLASS:
        return False
    edges = grammar.class_edges(node)
    is_blank = all(follow == EMPTY and _WHITE_SPACE.issuperset(range(low, high + 1)) for low, high, follow in edges)
    return is_blank and any(low < 0x20 for low, _, _ in edges)


class _Writing:
    """Texts of nodes that are written down."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def number(self, root: Node, enough: int) -> int:
        """How many values the texts of a node are: `enough` where there are as many, or too many texts."""
        values: set[str] = set()
        for number, text in enumerate(self._texts(root)):
            values.add(json.dumps(json.loads(text), sort_keys=True))
            if len(values) == enough or number == MOST_TEXTS:
                return enough
        return len(values)

    def _texts(self, node: Node) -> Iterator[bytes]:
        grammar, kind = self._grammar, self._grammar.kind(node)
        if node <= EMPTY:
            yield from [b""] if node == EMPTY else []
        elif kind is Kind.LITERAL:
            yield grammar.literal_bytes(node)
        elif kind is Kind.CLASS:
            for low, high, follow in grammar.class_edges(node):
                for byte in range(low, high + 1):
                    yield from (bytes([byte]) + rest for rest in self._texts(Node(follow)))
        elif kind is Kind.ALT:
            for option in grammar.alternatives(node):
                yield from self._texts(option)
        elif kind is Kind.SEQ:
            yield from self._in_a_row([Node(part) for part in grammar.operands(node)[:2]])
        else:
            body, low, high = grammar.operands(node)
            for copies in range(low, (low if is_white_space(grammar, Node(body)) else high) + 1):
                yield from self._in_a_row([Node(body)] * copies)

    def _in_a_row(self, nodes: list[Node]) -> Iterator[bytes]:
        if not nodes:
            yield b""
            return
        for text in self._texts(nodes[0]):
            yield from (text + rest for rest in self._in_a_row(nodes[1:]))


class _Counting:
    """The numbers of nodes, each behind those of its parts; no number is greater than `enough`."""

    def __init__(self, grammar: Grammar, enough: int) -> None:
        self._grammar, self._enough = grammar, enough
        self._numbers: dict[Node, int] = {EMPTY: 1, FAIL: 0}
        self._sets: dict[Node, Numbers] = {EMPTY: [1], FAIL: []}

    def number(self, node: Node) -> int:
        """The number of texts; of a rule that is not known yet, `enough`."""
        return self._numbers.get(node, self._enough)

    def add(self, node: Node) -> None:
        """Find the number of a node."""
        kind = self._grammar.kind(node)
        if kind is Kind.FAMILY or kind is Kind.DECISION:
            self._sets[node] = self._sets_of(node, kind)
        elif node > EMPTY:
            self._numbers[node] = min(self._number_of(node, kind), self._enough)

    def _number_of(self, node: Node, kind: Kind) -> int:
        grammar, (a, b, c) = self._grammar, self._grammar.operands(node)
        if kind is Kind.LITERAL:
            return 1
        if kind is Kind.CLASS:
            return sum((high - low + 1) * self.number(Node(follow)) for low, high, follow in grammar.class_edges(node))
        if kind is Kind.SEQ:
            return self.number(Node(a)) * self.number(Node(b))
        if kind is Kind.ALT:
            return sum(map(self.number, grammar.alternatives(node)))
        if kind is Kind.REPEAT:
            return self._repeated(Node(a), b, c)
        if kind is Kind.PLACED:
            return self.number(Node(a))
        if kind is Kind.UNLISTED:
            return self.number(Node(b))
        if kind is Kind.BOTH:
            return min(self.number(Node(a)), self.number(Node(b)))
        if kind is Kind.CALL:
            body = grammar.rule_bodies[a]
            return self._enough if body is None else self.number(body)
        if kind is Kind.BAG:
            return self._members([self._counted(*part) for part in grammar.bag_parts(node)], b, c)
        if kind is Kind.WALK:
            _, low, high = grammar.operands(Node(b))
            return self._members([self._part(part) for part in grammar.listed_parts(Node(a))], max(low, c), high)
        return self._enough

    def _repeated(self, body: Node, low: int, high: int) -> int:
        number = self.number(body)
        if number == 0 and low > 0:
            return 0
        if number == 0 or is_white_space(self._grammar, body):
            return 1
        if high == UNBOUNDED or high - low >= self._enough or (number > 1 and high >= self._enough.bit_length()):
            return self._enough
        return high - low + 1 if number == 1 else sum(number**copies for copies in range(low, high + 1))

    # -- members ------------------------------------------------------------------------------------------------------

    def _members(self, parts: list[Numbers], low: int, high: int) -> int:
        """Sets of `low` to `high` members that meet all parts."""
        sets: Numbers = [1]
        for part in parts:
            sets = self._product(sets, part)
        end = len(sets) if high == UNBOUNDED else high + 1
        return sum(sets[low:end]) if len(sets) <= MOST_COUNTED else self._enough

    def _part(self, part: Node) -> Numbers:
        if self._grammar.kind(part) is Kind.REPEAT:
            member, low, high = self._grammar.operands(part)
            return self._counted(Node(member), low, high)
        return self._sets.get(part, [self._enough] * (MOST_COUNTED + 1))

    def _counted(self, member: Node, low: int, high: int) -> Numbers:
        """Sets of `low` to `high` members, each of which is one of so many."""
        number = self.number(member)
        most = MOST_COUNTED if high == UNBOUNDED else min(high, MOST_COUNTED)
        if number < self._enough:
            counts = range(min(most, number) + 1)
            return [min(math.comb(number, count), self._enough) if count >= low else 0 for count in counts]
        return [int(count == 0) or self._enough if count >= low else 0 for count in range(most + 1)]

    def _sets_of(self, node: Node, kind: Kind) -> Numbers:
        a, b, c = self._grammar.operands(node)
        if kind is Kind.FAMILY:
            return self._either(self._part(Node(c)), self._with_member(Node(a), self._part(Node(b))))
        sets = self._part(Node(c))
        for member, left in self._grammar.cases_of(node)[1]:
            behind: Numbers = [1]
            for part in left:
                behind = self._product(behind, self._part(part))
            sets = self._either(sets, self._with_member(member, behind))
        return sets

    def _with_member(self, member: Node, sets: Numbers) -> Numbers:
        number = self.number(member)
        return [0, *[min(number * each, self._enough) for each in sets]]

    def _either(self, one: Numbers, other: Numbers) -> Numbers:
        if len(one) < len(other):
            one, other = other, one
        both = one.copy()
        for count, each in enumerate(other):
            both[count] = min(both[count] + each, self._enough)
        return both

    def _product(self, one: Numbers, other: Numbers) -> Numbers:
        """Sets of members of two parts, cut behind MOST_COUNTED members."""
        if not one or not other:
            return []
        out = [0] * min(len(one) + len(other) - 1, MOST_COUNTED + 1)
        for i, left in enumerate(one):
            if left:
                for j, right in enumerate(other[: len(out) - i]):
                    out[i + j] = min(out[i + j] + left * right, self._enough)
        return out
