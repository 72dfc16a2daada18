"""Patterns and intervals of numbers that were lowered before, kept so that other grammars copy them in a tenth of the
time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from .expression import Event, Grammar, Kind, Node, Step

_MAX_NODES: Final = 2_000  # of one expression
_MAX_KEPT: Final = 50_000  # of all that are kept (about 150 bytes a node)
# As numbers: reading a member is slow
_LEAVES: Final = frozenset(map(int, (Kind.FAIL, Kind.EMPTY, Kind.LITERAL)))
_CLASS: Final = int(Kind.CLASS)
_LITERAL: Final = int(Kind.LITERAL)
_SEQ: Final = int(Kind.SEQ)
_ALT: Final = int(Kind.ALT)
_REPEAT: Final = int(Kind.REPEAT)
_BOTH: Final = int(Kind.BOTH)
_NEGATE: Final = int(Kind.NEGATE)
_NO_EVENT: Final = int(Event.NONE)


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
            return grammar.made_by(steps)
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
    return tuple(_steps(grammar, root)) or None


def _steps(grammar: Grammar, root: Node) -> list[Step]:
    """The steps that make a node, parts first; none for a node that is large, or no regular expression."""
    nodes = _reached(grammar, root)
    number: dict[int, int] = {node: i for i, node in enumerate(nodes)}
    steps: list[Step] = []
    for node in nodes:
        kind, a, b, c = grammar.row(node)
        if node in grammar.units:
            steps.append((_CLASS, 0, 0, grammar.units[node]))
        elif kind == _CLASS:
            edges = [(low, high, number[follow]) for low, high, follow in grammar.class_edges(node)]
            steps.append((_CLASS, 0, 1, tuple(edges)))
        elif kind == _LITERAL:
            steps.append((_LITERAL, 0, 0, grammar.literal_bytes(node)))
        elif kind == _ALT:
            steps.append((_ALT, 0, 0, tuple([number[option] for option in grammar.alternatives(node)])))
        elif kind in (_SEQ, _BOTH):
            steps.append((kind, number[a], number[b], None))
        elif kind == _NEGATE:
            steps.append((kind, number[a], 0, None))
        elif kind == _REPEAT:
            steps.append((kind, number[a], b, c))
        else:
            steps.append((kind, 0, 0, None))
    return steps


def _reached(grammar: Grammar, root: Node) -> list[Node]:
    """The nodes that a node is made of, parts first; none where they are many, or no regular expressions."""
    seen, work = {root}, [root]
    while work:
        node = work.pop()
        if len(seen) > _MAX_NODES:
            return []
        if node in grammar.units:  # what is said of characters says it of their bytes
            continue
        kind, a, b, c = grammar.row(node)
        parts: list[Node]
        if kind in (_SEQ, _BOTH):
            parts = [Node(a), Node(b)]
        elif kind == _ALT and c == 0:
            parts = grammar.alternatives(node)
        elif kind in (_REPEAT, _NEGATE):
            parts = [Node(a)]
        elif kind == _CLASS and c == _NO_EVENT:
            parts = [Node(follow) for _, _, follow in grammar.class_edges(node)]
        elif kind in _LEAVES:
            continue
        else:
            return []
        for part in parts:
            if part not in seen:
                seen.add(part)
                work.append(part)
    return sorted(seen)  # children are made before parents
