"""Patterns and intervals of numbers that were lowered before, kept so that other grammars copy them in a tenth of the
time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

from .expression import EMPTY, FAIL, Event, Grammar, Kind, Node
from .recursion import children

_MAX_NODES: Final = 2_000  # of one expression
_MAX_KEPT: Final = 50_000  # of all that are kept (about 150 bytes a node)
_BINARY: Final = (Kind.SEQ, Kind.BOTH)
_UNARY: Final = (Kind.NEGATE, Kind.REPEAT)
Step = tuple[Kind, Any, Any, Any]  # operands are steps by their number


class LoweringCache:
    """The most recently used expressions without rules and marks, as steps that make them in any grammar. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, list[Step] | None] = OrderedDict()  # None: asked for once; no steps: cannot be kept
        self._size = 0

    def node(self, grammar: Grammar, key: Hashable, lower: Callable[[], Node], *, may_be_rare: bool = False) -> Node:
        """The node that `lower` makes for a key in `grammar`. A key means the same in every grammar.

        may_be_rare: keep steps only from the second time on, because most such keys are never asked for again.
        """
        with self._lock:
            is_known, steps = key in self._kept, self._kept.get(key)
            if is_known:
                self._kept.move_to_end(key)
        if steps:
            return _made(grammar, steps)
        node = lower()
        if may_be_rare and not is_known:
            self._keep(key, None)
        elif steps is None:
            self._keep(key, _steps(grammar, node))
        return node

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _keep(self, key: Hashable, steps: list[Step] | None) -> None:
        with self._lock:
            if key in self._kept:
                self._size -= _room(self._kept[key])
            self._kept[key] = steps
            self._size += _room(steps)
            while self._size > _MAX_KEPT:
                self._size -= _room(self._kept.popitem(last=False)[1])


def _room(steps: list[Step] | None) -> int:
    return max(1, len(steps or ()))


LOWERING_CACHE: Final = LoweringCache()  # of the process


def shape_of(grammar: Grammar, root: Node) -> Hashable | None:
    """How a node is built, equal for equal ones of all grammars; None for one that is large, or no regular expression."""
    steps = _steps(grammar, root)
    return tuple((kind, tuple(a) if isinstance(a, list) else a, b, c) for kind, a, b, c in steps) or None


def _steps(grammar: Grammar, root: Node) -> list[Step]:
    """The steps that make a node, parts first; none for a node that is large, or no regular expression."""
    seen, work = {root}, [root]
    while work:
        node = work.pop()
        if len(seen) > _MAX_NODES or grammar.kind(node) not in _KEPT:
            return []
        if node not in grammar.units:  # what is said of characters says it of their bytes
            fresh = {part for part in children(grammar, node) if part not in seen}
            work += fresh
            seen |= fresh
    nodes = sorted(seen)  # children are made before parents
    number = {node: i for i, node in enumerate(nodes)}
    steps: list[Step] = []
    for node in nodes:
        kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
        if node in grammar.units:
            steps.append((Kind.CLASS, grammar.units[node], None, True))
        elif kind is Kind.CLASS:
            if c != Event.NONE:
                return []
            edges = tuple((low, high, number.get(Node(follow))) for low, high, follow in grammar.class_edges(node))
            steps.append((kind, edges, None, False))
        elif kind is Kind.LITERAL:
            steps.append((kind, grammar.literal_bytes(node), None, None))
        elif kind is Kind.ALT:
            steps.append((kind, [number[option] for option in grammar.alternatives(node)], None, None))
        elif kind in _BINARY:
            steps.append((kind, number[Node(a)], number[Node(b)], 0))
        elif kind in _UNARY:
            steps.append((kind, number[Node(a)], b, c))
        else:
            steps.append((kind, None, None, None))
    return steps


_KEPT: Final = frozenset({Kind.FAIL, Kind.EMPTY, Kind.CLASS, Kind.LITERAL, Kind.SEQ, Kind.ALT, Kind.REPEAT, Kind.BOTH, Kind.NEGATE})


def _made(grammar: Grammar, steps: list[Step]) -> Node:
    """The node that the steps make in a grammar."""
    made: list[Node] = []
    for kind, a, b, c in steps:
        if kind is Kind.SEQ:
            node = grammar.again(kind, made[a], made[b])
        elif kind is Kind.ALT:
            node = grammar.alt(*[made[option] for option in a])
        elif kind is Kind.LITERAL:
            node = grammar.literal(a)
        elif kind is Kind.CLASS and c:
            node = grammar.chars(a)
        elif kind is Kind.CLASS:
            node = grammar.edges_to((low, high, EMPTY if follow is None else made[follow]) for low, high, follow in a)
        elif kind is Kind.REPEAT:
            node = grammar.again(kind, made[a], b, c)
        elif kind is Kind.BOTH:
            node = grammar.both(made[a], made[b])
        elif kind is Kind.NEGATE:
            node = grammar.negate(made[a])
        else:
            node = FAIL if kind is Kind.FAIL else EMPTY
        made.append(node)
    return made[-1]
