"""Facts about the graph of expressions: what the root can reach, what is called first, what calls rules; and a walk of it, parts
first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .expression import EMPTY, Grammar, Kind, Node
from .stopwatch import look

BETWEEN_LOOKS: Final = (1 << 10) - 1  # nodes, of one less than a power of two: who walks all of them looks at the clock

# As numbers: many nodes are asked.
_LEAVES = frozenset(map(int, (Kind.CLASS, Kind.LITERAL)))
_ALT, _BAG, _CALL, _REPEAT, _SEQ = map(int, (Kind.ALT, Kind.BAG, Kind.CALL, Kind.REPEAT, Kind.SEQ))

_WALKS = frozenset(map(int, (Kind.WALK, Kind.DECISION, Kind.FAMILY, Kind.PLACED, Kind.COVER)))


def first_calls(grammar: Grammar, body: Node, empty: Sequence[bool] | NDArray[np.bool_]) -> list[int]:
    """Rules that may be called before the first byte of `body`."""
    rows = grammar.rows
    found: dict[int, None] = {}
    seen: set[int] = set()
    work: list[int] = [body]
    while work:
        node = work.pop()
        kind, first, second = rows[4 * node : 4 * node + 3]
        if kind in _LEAVES or node in seen:
            continue
        seen.add(node)
        if kind == _CALL:
            found[first] = None
        elif kind == _SEQ:
            work.append(first)
            if empty[first]:
                work.append(second)
        elif kind == _ALT:
            work.extend(grammar.alternatives(Node(node)))
        elif kind == _REPEAT:
            work.append(first)
        elif kind == _BAG:
            work.extend(part for part, _, _ in grammar.bag_parts(Node(node)))
        elif kind in _WALKS:
            work.extend(children(grammar, Node(node)))
    return list(found)


def reachable(grammar: Grammar, root: Node, known: Set[Node] = frozenset()) -> Iterator[Node]:
    """All nodes that take part in what `root` denotes, each once; without those in `known` and those that are reached
    through these only."""
    seen, work = {root}, [root]
    while work:
        node = work.pop()
        if len(seen) - len(work) & BETWEEN_LOOKS == 0:
            look()
        yield node
        fresh = [child for child in children(grammar, node) if child not in seen and child not in known]
        seen.update(fresh)
        work.extend(dict.fromkeys(fresh))


def children(grammar: Grammar, node: Node) -> list[Node]:
    """The nodes that a node is made of; of a call, the body of the rule."""
    kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
    if kind in (Kind.SEQ, Kind.BOTH):
        return [Node(a), Node(b)]
    if kind is Kind.FAMILY:
        return [Node(a), Node(b), Node(c)]
    if kind in (Kind.REPEAT, Kind.NEGATE, Kind.PLACED):
        return [Node(a)]
    if kind is Kind.UNLISTED:
        return [Node(b)]
    if kind is Kind.ALT:
        return grammar.alternatives(node)
    if kind is Kind.BAG:
        return [part for part, _, _ in grammar.bag_parts(node)]
    if kind is Kind.WALK:
        return [*grammar.listed_parts(Node(a)), Node(b)]
    if kind is Kind.DECISION:
        return grammar.parts_of_decision(node)
    if kind is Kind.COVER:
        return grammar.parts_of_cover(node)
    if kind is Kind.CALL:
        body = grammar.rule_bodies[a]
        return [] if body is None else [body]
    if kind is Kind.CLASS:
        return [Node(follow) for _, _, follow in grammar.class_edges(node) if follow != EMPTY]
    return []


def open_parts(grammar: Grammar, node: Node) -> list[Node]:
    """The parts of a node that may be taken apart: an alternative, a sequence or a repetition."""
    kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
    if kind is Kind.ALT:
        return grammar.alternatives(node)
    return [Node(a), Node(b)] if kind is Kind.SEQ else [Node(a)] if kind is Kind.REPEAT else []


def nodes_with_calls(grammar: Grammar) -> list[bool]:
    """[nodes] whether a call is below a node that may be taken apart."""
    found: list[bool] = []
    for node in map(Node, range(len(grammar))):
        if node & BETWEEN_LOOKS == 0:
            look()
        found.append(grammar.kind(node) is Kind.CALL or any(found[part] for part in open_parts(grammar, node)))
    return found


def rewrite_below(
    root: Node, parts: Callable[[Node], list[Node]], rebuilt: Callable[[Node], Node], done: dict[Node, Node]
) -> Node:
    """What becomes of `root` when all below it is rewritten, parts first. done: what has become of nodes so far."""
    work, steps = [root], 0
    while work:
        steps += 1
        if steps & BETWEEN_LOOKS == 0:
            look()
        node = work[-1]
        missing = [part for part in parts(node) if part not in done]
        if missing:
            work += missing
            continue
        work.pop()
        if node not in done:
            done[node] = rebuilt(node)
    return done[root]
