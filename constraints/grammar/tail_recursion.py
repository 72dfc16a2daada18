"""Rules that call themselves only as the last thing: `A = x A | y` is `x* y`, which is regular."""

from __future__ import annotations

from .expression import EMPTY, Grammar, Kind, Node, Rule
from .recursion import children


def as_repetition(grammar: Grammar, rule: Rule, body: Node) -> Node | None:
    """`body` without its calls of `rule`, or None where one of them is not the last thing. Other rules do not call this one."""
    call = grammar.call(rule)
    older = range(call)  # made before the call, so without it
    seen, fresh = {body}, [body]
    while fresh:
        below = {child for node in fresh if node != call for child in children(grammar, node) if child not in older}
        fresh = list(below - seen)
        seen |= below
    holds: set[Node] = set()
    for node in sorted(seen):
        if node == call or any(child in holds for child in children(grammar, node)):
            holds.add(node)
    again: list[Node] = []
    last: list[Node] = []
    work = [(body, EMPTY)]
    while work:
        node, before = work.pop()
        kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
        if node == call:
            again.append(before)
        elif node not in holds:
            last.append(grammar.seq(before, node))
        elif kind is Kind.ALT:
            work.extend((option, before) for option in reversed(grammar.alternatives(node)))
        elif kind is Kind.SEQ and a not in holds:
            work.append((Node(b), grammar.seq(before, Node(a))))
        else:
            return None
    return grammar.seq(grammar.repeat(grammar.alt(*again)), grammar.alt(*last))
