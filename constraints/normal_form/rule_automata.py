"""The rules of a grammar as minimal automata over bytes and calls.

A state is what may be left of a rule, as a set of residuals: sequences of parts, found by partial derivatives (Antimirov 1996),
with calls as symbols. Repetitions count down, so `x{0,3}` has a state for each number that is left. States that no sequence of
symbols tells apart are one (Moore 1956), and so are calls of rules whose starts are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ..base.kinds import UNBOUNDED
from ..grammar.emptiness import shows_empty
from ..grammar.expression import Grammar, Kind, Node, Rule
from ..grammar.recursion import reachable
from ..grammar.stopwatch import look

MOST_STATES = 2_000  # before equal ones are made one
_MOST_RESIDUALS = 20_000  # in all states, and steps of them
_MOST_COMPARED = 60_000  # states, in all rounds of telling them apart: chains take as many rounds as they are long


class TooLarge(Exception):
    """What was begun is left: it takes more than it is worth."""


class Part(NamedTuple):
    """A part of a residual."""

    node: Node
    low: int  # copies of a REPEAT that must come; bytes of a LITERAL that are read
    high: int  # copies that may come, UNBOUNDED without a bound


Residual = tuple[Part, ...]
Symbol = int  # a byte class, or `~state`: a call of the rule that begins there


class RuleAutomata(NamedTuple):
    """Automata that call each other. Nothing leads to a state behind which no text can be completed."""

    start: int
    steps: list[frozenset[tuple[Symbol, int]]]  # of each state
    nullable: list[bool]  # whether the empty text is one of a state's
    byte_classes: list[tuple[int, int]]  # the first and the last byte


def rule_automata(grammar: Grammar, root: Node) -> RuleAutomata:
    """The automata of all rules that `root` reaches. grammar: of classes, literals, sequences, alternatives, repetitions and calls.
    Raises `TooLarge`."""
    return _Determinizing(grammar, root).minimal()


class _Determinizing:
    def __init__(self, grammar: Grammar, root: Node) -> None:
        self._grammar = grammar
        self._byte_classes = _byte_classes(grammar, root)
        self._class_of = {byte: k for k, (low, high) in enumerate(self._byte_classes) for byte in range(low, high + 1)}
        self._numbers: dict[frozenset[Residual], int] = {}
        self._residuals: list[frozenset[Residual]] = []
        self._steps_of_part: dict[Part, frozenset[tuple[Symbol, Residual]]] = {}
        self._starts: dict[Rule, int] = {}  # of rules that are called
        self._steps: list[dict[Symbol, int]] = []  # with `~rule` for calls
        self._room = _MOST_RESIDUALS
        self._number(root)
        while len(self._steps) < len(self._residuals):
            self._steps.append(self._derived(self._residuals[len(self._steps)]))
            look()

    def minimal(self) -> RuleAutomata:
        nullable = self._nullable()
        self._drop_endless(nullable)
        blocks = [int(empty) for empty in nullable]
        room = _MOST_COMPARED
        while True:
            room -= len(blocks)
            if room < 0:
                raise TooLarge
            look()
            rows = [(blocks[state], self._step_of_blocks(state, blocks)) for state in range(len(blocks))]
            numbers: dict[tuple[int, frozenset[tuple[Symbol, int]]], int] = {}
            refined = [numbers.setdefault(row, len(numbers)) for row in rows]
            if len(numbers) == len(set(blocks)):
                break
            blocks = refined
        kept = dict(zip(refined, range(len(refined)), strict=True))  # one state of each block
        steps = [self._step_of_blocks(kept[block], refined) for block in range(len(kept))]
        return RuleAutomata(refined[0], steps, [nullable[kept[block]] for block in range(len(kept))], self._byte_classes)

    def _step_of_blocks(self, state: int, blocks: list[int]) -> frozenset[tuple[Symbol, int]]:
        return frozenset((self._called(symbol, blocks), blocks[after]) for symbol, after in self._steps[state].items())

    def _called(self, symbol: Symbol, blocks: list[int]) -> Symbol:
        return symbol if symbol >= 0 else ~blocks[self._starts[Rule(~symbol)]]

    def _number(self, node: Node) -> int:
        return self._number_of(frozenset([_residual(self._grammar, node)]))

    def _number_of(self, residuals: frozenset[Residual]) -> int:
        number = self._numbers.setdefault(residuals, len(self._residuals))
        if number == len(self._residuals):
            if number == MOST_STATES:
                raise TooLarge
            self._residuals.append(residuals)
        return number

    def _derived(self, residuals: frozenset[Residual]) -> dict[Symbol, int]:
        after: dict[Symbol, set[Residual]] = {}
        for residual in residuals:
            for symbol, rest in self._steps_of(residual):
                after.setdefault(symbol, set()).add(rest)
                self._room -= 1
                if self._room < 0:
                    raise TooLarge
        for symbol in after:
            if symbol < 0 and Rule(~symbol) not in self._starts:
                body = self._grammar.rule_bodies[~symbol]
                assert body is not None
                self._starts[Rule(~symbol)] = self._number(body)
        return {symbol: self._number_of(frozenset(rests)) for symbol, rests in after.items()}

    def _steps_of(self, residual: Residual) -> Iterator[tuple[Symbol, Residual]]:
        for k, part in enumerate(residual):
            behind = residual[k + 1 :]
            for symbol, rest in self._steps_of_one(part):
                yield symbol, rest + behind
            if not self._shows_empty(part):
                return

    def _steps_of_one(self, part: Part) -> frozenset[tuple[Symbol, Residual]]:
        known = self._steps_of_part.get(part)
        if known is None:
            known = self._steps_of_part[part] = frozenset(self._found(part))
        return known

    def _found(self, part: Part) -> Iterator[tuple[Symbol, Residual]]:
        grammar, node = self._grammar, part.node
        kind = grammar.kind(node)
        if kind is Kind.CLASS:
            for low, high, then in grammar.class_edges(node):
                for byte_class in range(self._class_of[low], self._class_of[high] + 1):
                    yield byte_class, _residual(grammar, Node(then))
        elif kind is Kind.LITERAL:
            text = grammar.literal_bytes(node)
            left = part.low + 1 < len(text)
            yield self._class_of[text[part.low]], ((part._replace(low=part.low + 1),) if left else ())
        elif kind is Kind.CALL:
            yield ~grammar.operands(node)[0], ()
        elif kind is Kind.ALT:
            for option in grammar.alternatives(node):
                yield from self._steps_of(_residual(grammar, option))
        elif kind is Kind.REPEAT:
            more = () if part.high == 1 else (Part(node, max(part.low - 1, 0), part.high if part.high < 0 else part.high - 1),)
            body = _residual(grammar, Node(grammar.operands(node)[0]))
            yield from ((symbol, rest + more) for symbol, rest in self._steps_of(body))

    def _shows_empty(self, part: Part) -> bool:
        if self._grammar.kind(part.node) is Kind.REPEAT and part.low == 0:
            return True
        return shows_empty(self._grammar, part.node)

    def _nullable(self) -> list[bool]:
        found = [any(all(map(self._shows_empty, residual)) for residual in state) for state in self._residuals]
        return self._least(found, by_bytes=False)

    def _drop_endless(self, nullable: list[bool]) -> None:
        """Leave out what leads to states without a text, and calls of rules without one."""
        ends = self._least(list(nullable), by_bytes=True)
        for state, steps in enumerate(self._steps):
            kept = {symbol for symbol, after in steps.items() if ends[after] and self._begins(symbol, ends, by_bytes=True)}
            self._steps[state] = {symbol: after for symbol, after in steps.items() if symbol in kept}

    def _least(self, found: list[bool], *, by_bytes: bool) -> list[bool]:
        """The states in `found`, and those from which one of them is reached by calls of rules that begin in one, and by bytes."""
        changed = True
        while changed:
            changed = False
            for state, steps in enumerate(self._steps):
                if found[state]:
                    continue
                if any(found[after] and self._begins(symbol, found, by_bytes=by_bytes) for symbol, after in steps.items()):
                    found[state] = changed = True
        return found

    def _begins(self, symbol: Symbol, found: list[bool], *, by_bytes: bool) -> bool:
        """What holds of a byte, and of a call if it holds of the start of its rule."""
        return by_bytes if symbol >= 0 else found[self._starts[Rule(~symbol)]]


def _residual(grammar: Grammar, node: Node) -> Residual:
    """A node as a sequence of its parts."""
    parts: list[Part] = []
    work = [node]
    while work:
        node = work.pop()
        kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
        if kind is Kind.SEQ:
            work += (Node(b), Node(a))
        elif kind is Kind.REPEAT:
            parts.append(Part(node, b, c))
        elif kind is not Kind.EMPTY:
            parts.append(Part(node, 0, UNBOUNDED))
    return tuple(parts)


def _byte_classes(grammar: Grammar, root: Node) -> list[tuple[int, int]]:
    """Ranges of bytes that no class and no literal takes apart."""
    cuts = {0, 256}
    for node in reachable(grammar, root):
        if grammar.kind(node) is Kind.CLASS:
            cuts.update(cut for low, high, _ in grammar.class_edges(node) for cut in (low, high + 1))
        elif grammar.kind(node) is Kind.LITERAL:
            cuts.update(cut for byte in grammar.literal_bytes(node) for cut in (byte, byte + 1))
    edges = sorted(cuts)
    return [(low, high - 1) for low, high in pairwise(edges)]
