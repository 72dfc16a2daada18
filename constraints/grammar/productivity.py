"""Rules without any text: every text of such a rule would have to contain a text of another one."""

from __future__ import annotations

from collections.abc import Iterable

from ..base.kinds import UNBOUNDED, Kind
from .store import Node, NodeStore, Rule


def barren_rules(store: NodeStore) -> set[Rule]:
    """The rules without a text, as far as can be seen without looking into intersections and complements.

    The least fixpoint: a rule has a text once one is found that needs no rule but those that have one. Rules are tried last one
    first, as inner ones are made after those around them, then the other way round, and so on; alternatives only until one of them
    has a text.
    """
    has_text: dict[Node, bool] = {}
    fertile: set[int] = set()
    left = [Rule(rule) for rule, body in enumerate(store.rule_bodies) if body is not None]
    while left:
        before = len(fertile)
        left.reverse()
        for rule in left:
            body = store.rule_bodies[rule]
            if body is not None and _has_text(store, body, has_text, fertile):
                fertile.add(rule)
        if len(fertile) == before:
            break
        left = [rule for rule in left if rule not in fertile]
        has_text = {node: True for node, verdict in has_text.items() if verdict}  # what has none may have one by now
    return set(left)


def _has_text(store: NodeStore, node: Node, known: dict[Node, bool], fertile: set[int]) -> bool:
    work = [node]
    while work:
        found = known[work[-1]] if work[-1] in known else _verdict(store, work[-1], known, fertile)
        if isinstance(found, bool):
            known[work.pop()] = found
        else:
            work.append(found[0])
    return known[node]


def _verdict(store: NodeStore, node: Node, known: dict[Node, bool], fertile: set[int]) -> bool | list[Node]:
    """Whether a node has a text, or parts of it of which one has to be known first."""
    kind, (a, b, c) = store.kind(node), store.operands(node)
    if kind is Kind.CALL:
        return a in fertile
    if kind is Kind.SEQ:
        return _all((Node(a), Node(b)), known)
    if kind is Kind.ALT:
        return _any(store.alternatives(node), known)
    if kind is Kind.CLASS:
        return _any([Node(follow) for _, _, follow in store.class_edges(node)], known)
    if kind is Kind.REPEAT:
        return b == 0 or _all((Node(a),), known)
    if kind is Kind.PLACED:
        return _all((Node(a),), known)
    if kind is Kind.UNLISTED:
        return _all((Node(b),), known)
    if kind is Kind.BAG:
        return _bag(store, node, known)
    if kind is Kind.WALK:
        return _all(store.listed_parts(Node(a)), known)
    if kind is Kind.DECISION:
        return _decision(store, node, known)
    if kind is Kind.FAMILY:
        return _either([Node(c)], [Node(a), Node(b)], known=known)
    if kind is Kind.COVER:
        return _cover(store, node, known)
    return kind is not Kind.FAIL


def _decision(store: NodeStore, node: Node, known: dict[Node, bool]) -> bool | list[Node]:
    """Whether the rest can be had without the member, or one of its cases with what is left behind it."""
    cases = ([member, *left] for member, left in store.cases_of(node)[1])
    return _either([Node(store.operands(node)[2])], *cases, known=known)


def _either(*ways: list[Node], known: dict[Node, bool]) -> bool | list[Node]:
    """Whether all nodes of one of some lists have texts."""
    unknown: list[Node] = []
    for parts in ways:
        found = _all(parts, known)
        if found is True:
            return True
        unknown += found or []
    return unknown or False


def _bag(store: NodeStore, node: Node, known: dict[Node, bool]) -> bool | list[Node]:
    """Whether what a bag needs can be had, and enough of the rest."""
    parts = store.bag_parts(node)
    needs = _all([body for body, low, _ in parts if low > 0], known)
    if needs is not True:
        return needs
    unknown = [body for body, _, _ in parts if body not in known]
    if unknown:
        return unknown
    highs = [high for body, _, high in parts if known[body]]
    return UNBOUNDED in highs or sum(highs) >= store.operands(node)[1]


def _cover(store: NodeStore, node: Node, known: dict[Node, bool]) -> bool | list[Node]:
    """Whether items can be had that meet what each counter wants, as planned sorts do (covers.py); or any item."""
    wanted, sorts, unknown = store.wanted_of(node), store.sorts_of(node), list[Node]()
    if (following := store.next_cover(node)) != node and any(low for low, _ in wanted.values()):
        first = _any([text for text, _ in sorts], known)
        return _all([following], known) if first is True else first
    bounded = {counter for counter, (_, high) in wanted.items() if high != UNBOUNDED}
    bounded -= {0} if all(0 in counted for _, counted in sorts) else set()  # the plan has as few items as there can be
    for counter, (low, _) in wanted.items():
        if low > 0:
            texts = [text for text, counted in sorts if counter in counted and bounded.intersection(counted) <= {counter}]
            found = _any(texts, known)
            if found is False:
                return False
            unknown += found if isinstance(found, list) else []
    must_follow = store.operands(node)[2] == 1 and not any(low for low, _ in wanted.values())
    any_item = _any([text for text, _ in sorts], known) if must_follow else True
    return unknown or any_item


def _all(parts: Iterable[Node], known: dict[Node, bool]) -> bool | list[Node]:
    if any(known.get(part) is False for part in parts):
        return False
    return [part for part in parts if part not in known] or True


def _any(parts: Iterable[Node], known: dict[Node, bool]) -> bool | list[Node]:
    if any(known.get(part, False) for part in parts):
        return True
    return [part for part in parts if part not in known] or False
