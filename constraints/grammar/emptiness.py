"""Whether an expression contains the empty string, and which parts of it do."""

from __future__ import annotations

from typing import Final

from ..base.kinds import Kind
from ..numba_support.divisors import COUNTS
from .store import Node, NodeStore

_SEQ: Final = int(Kind.SEQ)  # reading a member is slow
_READ: Final = (int(Kind.CLASS), int(Kind.LITERAL))


def shows_empty(store: NodeStore, node: Node) -> bool:
    """Whether `node` contains the empty string as far as can be seen without rules, intersections and complements."""
    known, rows = store.empties, store.rows
    if rows[4 * node] == _SEQ and rows[4 * rows[4 * node + 1]] in _READ:  # most of them
        return False
    work = [node]
    while work:
        found = known[work[-1]] if work[-1] in known else _verdict(store, work[-1])
        if isinstance(found, bool):
            known[work.pop()] = found
        else:
            work.extend(found)
    return known[node]


def _verdict(store: NodeStore, node: Node) -> bool | list[Node]:
    """Whether a node shows that it may be empty, or the parts of it that have to be known first."""
    known, kind, (a, b, _) = store.empties, store.kind(node), store.operands(node)
    if kind is Kind.ALT:
        options = store.alternatives(node)
        return any(known.get(option, False) for option in options) or [x for x in options if x not in known] or False
    if kind is Kind.SEQ or (kind is Kind.REPEAT and b > 0):
        parts = [Node(a), Node(b)] if kind is Kind.SEQ else [Node(a)]
        first = next((part for part in parts if not known.get(part, False)), None)  # that is not known to be empty
        return True if first is None else first not in known and [first]
    return kind is Kind.REPEAT or _leaf_shows_empty(store, node, kind)


def _leaf_shows_empty(store: NodeStore, node: Node, kind: Kind) -> bool:
    _, b, c = store.operands(node)
    if kind is Kind.BAG:
        return b == 0 and all(low == 0 for _, low, _ in store.bag_parts(node))
    if kind is Kind.COVER:
        return c == 0 and all(low == 0 for low, _ in store.wanted_of(node).values())
    if kind is Kind.MULTIPLE:
        modulus, places = store.step_of(node)[:2]
        return c < COUNTS and b * 10**places % modulus == 0
    return kind is Kind.EMPTY


def parts_without_empty(store: NodeStore, node: Node) -> list[Node]:
    """The parts of a node whose strings that are not empty make up its own."""
    if not shows_empty(store, node):
        return []
    kind, (a, b, _) = store.kind(node), store.operands(node)
    return store.alternatives(node) if kind is Kind.ALT else [Node(a), Node(b)] if kind is Kind.SEQ else []
