"""Repetitions in a row made one, through rules: what stacks of an ambiguous grammar are made of.

A rule that is a repetition of something that calls it, `S = ("a" | "a" S?)*`, may be left in the middle and begun again as often
as there are letters: after n of them a stack may hold one to n copies of it, and all say the same, because `X* X*` is `X*`. That
is seen where calls are written as the repetitions they stand for, with a rule for the part that is repeated:

    S = X*                      calls of S are  P*  with the rule  P = X
    S = X | ""                  calls of S are  P?
    X? of an X that may be empty            is  X
    X{a,b} X{c,d}                           is  X{a+c,b+d}

The automaton adds up repetitions that meet on its stacks by the last law (`join` in automaton/nodes.py). The language stays the
same.
"""

from __future__ import annotations

from .expression import EMPTY, UNBOUNDED, Grammar, Kind, Node, Rule
from .left_factoring import left_factored
from .left_recursion import nullable_nodes
from .recursion import nodes_with_calls, open_parts, reachable, rewrite_below
from .source import Limits
from .stopwatch import look

_MOST_COPIES = 1 << 20  # that two repetitions in a row are written with
REPEATED_RULE = "repeated"  # name of the rules that are made here
Bounds = tuple[int, int | None]


def untangled(grammar: Grammar, root: Node, limits: Limits) -> Node:
    """`root` left-factored, then with repetitions in a row made one; rules that it reaches get such bodies too. Raises
    `ConstraintLimit`."""
    root = left_factored(grammar, root, limits)
    return _Merging(grammar).rewrite(root) if grammar.has_calls else root


class _Merging:
    def __init__(self, grammar: Grammar) -> None:
        self._grammar, self._empty = grammar, nullable_nodes(grammar)
        self._bodies = list(grammar.rule_bodies)  # as written
        self._with_calls = nodes_with_calls(grammar)
        self._rewritten: dict[Node, Node] = {}
        self._parts: dict[Node, Rule] = {}  # by what is repeated: the rule for it

    def rewrite(self, root: Node) -> Node:
        calls = [node for node in reachable(self._grammar, root) if self._grammar.kind(node) is Kind.CALL]
        for call in calls:
            rule = self._grammar.operands(call)[0]
            body = self._bodies[rule]
            if body is not None:
                self._grammar.define(Rule(rule), self._rewritten_below(body))
        root = self._rewritten_below(root)
        parts: list[Node] = []
        while len(parts) < len(self._parts):  # rewriting one may find others
            parts = list(self._parts)
            for part in parts:
                self._grammar.define(self._parts[part], self._rewritten_below(part))
        return root

    def _rewritten_below(self, root: Node) -> Node:
        return rewrite_below(root, self._open_parts, self._rebuilt, self._rewritten)

    def _open_parts(self, node: Node) -> list[Node]:
        return open_parts(self._grammar, node) if self._with_calls[node] else []

    def _rebuilt(self, node: Node) -> Node:
        look()
        grammar, done = self._grammar, self._rewritten
        if not self._with_calls[node]:
            return node
        kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
        if kind is Kind.CALL:
            made = self._called(node)
        elif kind is Kind.ALT:
            options = [done[option] for option in grammar.alternatives(node)]
            others = [option for option in options if option != EMPTY]
            made = grammar.alt(*others) if others == options else grammar.optional(grammar.alt(*others))
        elif kind is Kind.REPEAT and (b, c) == (0, 1) and self._empty[a]:
            made = done[Node(a)]
        elif kind is Kind.REPEAT:
            made = grammar.repeat(done[Node(a)], b, None if c == UNBOUNDED else c)
        else:
            made = self._sequence(done[Node(a)], done[Node(b)])
        if node in grammar.labels:
            grammar.label(made, grammar.labels[node])
        return made

    def _sequence(self, head: Node, rest: Node) -> Node:
        """`head` then `rest`, two repetitions of one body as one."""
        grammar = self._grammar
        following, behind = rest, EMPTY
        if grammar.kind(rest) is Kind.SEQ:
            following, behind = map(Node, grammar.operands(rest)[:2])
        if grammar.kind(head) is grammar.kind(following) is Kind.REPEAT:
            body, low, high = grammar.operands(head)
            same, least, most = grammar.operands(following)
            if body == same and max(low + least, high + most) <= _MOST_COPIES:
                highest = None if UNBOUNDED in (high, most) else high + most
                return grammar.seq(grammar.repeat(Node(body), low + least, highest), behind)
        return grammar.seq(head, rest)

    def _called(self, call: Node) -> Node:
        """What a call is written as: the repetition that its rule is, or itself."""
        grammar, seen, node = self._grammar, set[Node](), call
        while grammar.kind(node) is Kind.CALL and node not in seen:
            seen.add(node)
            body = self._bodies[grammar.operands(node)[0]]
            if body is None:
                return call
            repetition = self._as_repetition(body)
            if repetition is not None:
                part, (low, high) = repetition
                return grammar.repeat(self._part_called(part), low, high)
            node = body
        return call

    def _as_repetition(self, body: Node) -> tuple[Node, Bounds] | None:
        """What a node repeats, and how often; None where it is no repetition."""
        grammar = self._grammar
        kind, (a, b, c) = grammar.kind(body), grammar.operands(body)
        if kind is Kind.REPEAT:
            return Node(a), (b, None if c == UNBOUNDED else c)
        if kind is Kind.ALT and EMPTY in grammar.alternatives(body):
            options = [option for option in grammar.alternatives(body) if option != EMPTY]
            return self._noted(grammar.alt(*options), options), (0, 1)
        return None

    def _noted(self, node: Node, parts: list[Node]) -> Node:
        """A node that has been made of nodes that were there before."""
        for made in range(len(self._with_calls), len(self._grammar)):
            self._with_calls.append(made == node and any(self._with_calls[part] for part in parts))
            self._empty.append(made == node and any(self._empty[part] for part in parts))
        return node

    def _part_called(self, part: Node) -> Node:
        """What is repeated: a call of a rule for it, or itself where it calls none or is a call."""
        grammar = self._grammar
        if not self._with_calls[part] or grammar.kind(part) is Kind.CALL:
            return part
        if part not in self._parts:
            self._parts[part] = grammar.rule(REPEATED_RULE)
        return grammar.call(self._parts[part])
