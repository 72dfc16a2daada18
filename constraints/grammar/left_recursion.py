"""Left recursion rewritten into repetition: the same language, in a form that reads a byte before it calls itself again.

A rule that can call itself before reading anything would never be expanded to an end. The rules that begin with each other
form left-linear equations: with B⁺ the strings of B that are not empty,

    A⁺ = B⁺ r  for every way in which A begins with B and goes on with r, or a string of n_A that begins otherwise

which has the solution (Arden 1961)

    A⁺ = n_B path(B, A)
    path(B, A) = r path(C, A) for every way in which C begins with B and goes on with r; or nothing, if B = A

with recursion on the right. Empty strings are kept apart (A = A⁺ or empty), so rules that may be empty in front of a call are
no special case. For one rule alone, path(A, A) is `r*`; where r ends with A itself, as in E = E "+" E | n, the repetition needs
n only, `n ("+" n)*`, and ambiguity is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..base.errors import ConstraintLimit
from .components import components, is_recursive
from .emptiness import shows_empty
from .expression import EMPTY, FAIL, UNBOUNDED, Grammar, Kind, Node, Rule
from .recursion import BETWEEN_LOOKS, children, first_calls, reachable
from .source import Limits
from .stopwatch import Stopwatch, look

_MADE_OF_OTHERS: Final = frozenset({Kind.SEQ, Kind.BOTH, Kind.ALT, Kind.REPEAT, Kind.CALL})  # and may be empty as these are


def without_left_recursion(grammar: Grammar, root: Node, limits: Limits) -> None:
    """Give every rule that calls itself before reading a byte an equal body that does not.

    Bodies of rules that `root` does not reach are not looked at. Raises `ConstraintLimit`.
    """
    if not grammar.has_calls:
        return
    rewriting = _Rewriting(grammar, limits)
    if rewriting.groups:
        rewriting.rewrite(root)


def nullable_nodes(grammar: Grammar) -> list[bool]:
    """bool [nodes]: whether a node contains the empty string (the least fixpoint over rules)."""
    empty = [False] * len(grammar)
    for node in map(Node, range(len(grammar))):
        if node & BETWEEN_LOOKS == 0:
            look()
        empty[node] = _contains_empty(grammar, node, empty)
    calls = [node for node in map(Node, range(len(grammar))) if not empty[node] and grammar.kind(node) is Kind.CALL]
    found = [call for call in calls if _contains_empty(grammar, call, empty)]  # of rules that come behind
    if found:
        _spread(grammar, empty, found)
    return empty


def _spread(grammar: Grammar, empty: list[bool], found: list[Node]) -> None:
    """To all that some nodes, which are found to be empty, make empty as well: each node once."""
    users: dict[Node, list[Node]] = {}  # of nodes that are not known to be empty: those that are made of them
    for node in map(Node, range(len(grammar))):
        if node & BETWEEN_LOOKS == 0:
            look()
        if not empty[node] and grammar.kind(node) in _MADE_OF_OTHERS:
            for part in children(grammar, node):
                if not empty[part]:
                    users.setdefault(part, []).append(node)
    while found:
        node = found.pop()
        empty[node] = True
        found += [user for user in users.pop(node, ()) if not empty[user] and _contains_empty(grammar, user, empty)]


def _contains_empty(grammar: Grammar, node: Node, empty: Sequence[bool]) -> bool:
    """Whether a node contains the empty string, from what is known of its parts, which come before it except through
    calls."""
    kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
    if kind in (Kind.SEQ, Kind.BOTH):
        return empty[a] and empty[b]
    if kind is Kind.ALT:
        return any(empty[option] for option in grammar.alternatives(node))
    if kind is Kind.REPEAT:
        return b == 0 or empty[a]
    if kind is Kind.NEGATE:
        return not empty[a]
    if kind is Kind.CALL:
        body = grammar.rule_bodies[a]
        return body is not None and body < len(empty) and empty[body]
    return shows_empty(grammar, node)


class _Rewriting:
    """One grammar being rewritten. `groups`: for each left-recursive rule, the rules that it begins with and that begin
    with it."""

    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self.grammar, self.limits, self._empty = grammar, limits, nullable_nodes(grammar)
        self._stopwatch = Stopwatch(limits, "rewriting left recursion")
        self.bodies = list(grammar.rule_bodies)  # as written
        self.groups: dict[int, list[int]] = {}
        calls = {
            str(rule): list(map(str, [] if body is None else first_calls(grammar, body, self._empty)))
            for rule, body in enumerate(self.bodies)
        }
        for names in components(calls):
            if is_recursive(names, calls):
                group = list(map(int, names))
                self.groups.update((rule, group) for rule in group)
        self._filled: dict[int, Rule] = {}  # by rule: a rule for its strings that are not empty
        self._paths: dict[tuple[int, int], Rule] = {}
        self._ways: dict[int, tuple[dict[int, list[Node]], Node]] = {}
        self._callers: dict[int, dict[int, list[tuple[int, Node]]]] = {}  # by the first rule of a group
        self._filled_nodes: dict[Node, Node] = {}
        self._unfinished: list[tuple[Rule, int, int | None]] = []  # a path's rule with its ends, or a filled rule

    def rewrite(self, root: Node) -> None:
        """Rewrites what `root` reaches; left-recursive rules out of reach become empty sets."""
        grammar = self.grammar
        grammar.rule_bodies = [FAIL if rule in self.groups else body for rule, body in enumerate(self.bodies)]
        rewritten: set[int] = set()
        seen: set[Node] = set()
        work = [root]
        while work:
            start = work.pop()
            for node in list(reachable(grammar, start, seen)) if start not in seen else ():
                seen.add(node)
                rule = grammar.operands(node)[0] if grammar.kind(node) is Kind.CALL else -1
                if rule in self.groups and rule not in rewritten:
                    rewritten.add(rule)
                    filled = grammar.call(self._filled_rule(rule))
                    may_be_empty = self._is_empty(self._body(rule))
                    grammar.define(Rule(rule), grammar.alt(filled, EMPTY) if may_be_empty else filled)
                    work.append(filled)
            work += self._finished()

    def _finished(self) -> list[Node]:
        """Gives all rules made so far their bodies, and returns these."""
        bodies = []
        while self._unfinished:
            self._stopwatch.check()
            rule, first, last = self._unfinished.pop()
            bodies.append(self._filled_body(first) if last is None else self._path_body(first, last))
            self.grammar.define(rule, bodies[-1])
            if len(self.grammar) > self.limits.nodes:
                raise ConstraintLimit("left recursion, rewritten", limit="nodes", value=self.limits.nodes)
        return bodies

    # -- the equations ----------------------------------------------------------------------------------------------

    def _filled_rule(self, rule: int) -> Rule:
        """A rule for the strings of a rule that are not empty."""
        if rule not in self._filled:
            self._filled[rule] = self.grammar.rule(self.grammar.rule_names[rule])
            self._unfinished.append((self._filled[rule], rule, None))
        return self._filled[rule]

    def _filled_body(self, rule: int) -> Node:
        if rule not in self.groups:
            return self._filled_node(self._body(rule))
        if len(self.groups[rule]) == 1:
            ways, own = self._ways_of(rule)
            again = [self._filled_node(self._looped(way, rule, own)) for way in ways[rule]]
            return self.grammar.seq(own, self.grammar.repeat(self.grammar.alt(*again)))
        starts = [(self._ways_of(other)[1], other) for other in self.groups[rule]]
        return self.grammar.alt(
            *(self.grammar.seq(own, self._path(other, rule)) for own, other in starts if own != FAIL)
        )

    def _path(self, first: int, last: int) -> Node:
        """What may follow a string of `first` so that the whole is a string of `last`."""
        if (first, last) not in self._paths:
            self._paths[first, last] = self.grammar.rule(self.grammar.rule_names[last])
            self._unfinished.append((self._paths[first, last], first, last))
        return self.grammar.call(self._paths[first, last])

    def _path_body(self, first: int, last: int) -> Node:
        same = {first: None}  # rules that a string of `first` is a string of as it stands
        options: list[Node] = []
        callers = self._callers_of(self.groups[last])
        for rule in (found := [first]):
            self._stopwatch.check()
            for caller, way in callers.get(rule, ()):
                if self._is_empty(way) and caller not in same:
                    same[caller] = None
                    found.append(caller)
                filled = self._filled_node(way)
                if filled != FAIL:
                    options.append(self.grammar.seq(filled, self._path(caller, last)))
        return self.grammar.alt(*options, *([EMPTY] if last in same else []))

    def _looped(self, way: Node, rule: int, own: Node) -> Node:
        """`way`, with `own` instead of the rule where it ends with a call of it: the loop around it does the rest."""
        spine = [way]
        while self.grammar.kind(spine[-1]) is Kind.SEQ:
            spine.append(Node(self.grammar.operands(spine[-1])[1]))
        last = spine.pop()
        if self.grammar.kind(last) is not Kind.CALL or self.grammar.operands(last)[0] != rule:
            return way
        end = self.grammar.alt(own, EMPTY) if self._is_empty(last) else own
        return self.grammar.seq(*(Node(self.grammar.operands(node)[0]) for node in spine), end)

    # -- how nodes begin --------------------------------------------------------------------------------------------

    def _body(self, rule: int) -> Node:
        body = self.bodies[rule]
        assert body is not None
        return body

    def _is_empty(self, node: Node) -> bool:
        """Whether a node contains the empty string. Nodes made here call only rules that do not."""
        for made in range(len(self._empty), node + 1):
            self._empty.append(_contains_empty(self.grammar, Node(made), self._empty))
        return self._empty[node]

    def _ways_of(self, rule: int) -> tuple[dict[int, list[Node]], Node]:
        if rule not in self._ways:
            self._ways[rule] = self._beginnings(self._body(rule), self.groups[rule])
        return self._ways[rule]

    def _callers_of(self, group: list[int]) -> dict[int, list[tuple[int, Node]]]:
        """Of each rule of a group, the rules that may begin with it, and what follows it there."""
        callers = self._callers.get(group[0])
        if callers is None:
            callers = self._callers[group[0]] = {}
            for caller in group:
                for rule, ways in self._ways_of(caller)[0].items():
                    callers.setdefault(rule, []).extend([(caller, way) for way in ways])
        return callers

    def _filled_node(self, node: Node) -> Node:
        """The strings of a node that are not empty."""
        if not self._is_empty(node):
            return node
        filled = self._filled_nodes.get(node)
        if filled is None:
            filled = self._filled_nodes[node] = self._beginnings(node, ())[1]
        return filled

    def _beginnings(self, node: Node, group: Sequence[int]) -> tuple[dict[int, list[Node]], Node]:
        """What follows each rule of `group` that `node` may begin with, and its other strings that are not empty."""
        grammar = self.grammar
        ways: dict[int, list[Node]] = {}
        own: list[Node] = []
        members, seen = set(group), set[tuple[Node, Node]]()
        work = [(node, EMPTY)]
        while work:
            at = work.pop()
            if at in seen:
                continue
            seen.add(at)
            head, rest = at
            kind, (a, b, c) = grammar.kind(head), grammar.operands(head)
            if kind is Kind.SEQ:
                if self._is_empty(Node(a)):
                    work.append((Node(b), rest))
                work.append((Node(a), grammar.seq(Node(b), rest)))
            elif kind is Kind.ALT:
                work.extend((option, rest) for option in reversed(grammar.alternatives(head)))
            elif kind is Kind.REPEAT:
                again = grammar.repeat(Node(a), max(b - 1, 0), None if c == UNBOUNDED else c - 1)
                work.append((Node(a), grammar.seq(again, rest)))
            elif kind is Kind.CALL and a in members:
                ways.setdefault(a, []).append(rest)
            elif kind is Kind.CALL and (a in self.groups or self._is_empty(head)):
                own.append(grammar.seq(grammar.call(self._filled_rule(a)), rest))
            elif kind is not Kind.EMPTY:
                own.append(grammar.seq(self._without_empty(head), rest))
        return ways, grammar.alt(*own)

    def _without_empty(self, leaf: Node) -> Node:
        if not self._is_empty(leaf):
            return leaf
        return self.grammar.both(leaf, self.grammar.repeat(self.grammar.bytes_in([(0, 255)]), 1))
