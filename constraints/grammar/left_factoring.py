"""Left factoring: alternatives that begin with the same rule become one that calls it once.

Every call of a rule that is begun at one place with another continuation is a stack of its own, and they double with each level
of nesting: after n letters `S = "a" S "x" | "a" S "y"` has 2**n stacks, and so has a grammar of expressions in which an assignment
may begin with what a condition begins with. `S = "a" S ("x" | "y")` has one. What rules begin with is looked for along the rules
they call first:

    C a | C b           = C (a | b)
    (C a)? C b          = C (a C b | b)
    (C a)* C b          = C (a C)* b

The language stays the same. Alternatives whose common beginning lies behind different alternatives of rules are left as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .expression import EMPTY, UNBOUNDED, Grammar, Kind, Node, Rule
from .recursion import nodes_with_calls, open_parts, reachable, rewrite_below
from .source import Limits
from .stopwatch import Stopwatch

_LONGEST_CHAIN = 64  # rules, each called first by the one before
_DEEPEST = 24  # alternatives inside alternatives that are made
_MOST_OPENED = 4  # alternatives of a rule that is put in its place
_SPARE_NODES = 1 << 14  # that may be made, beside four times as many as there were

Chain = dict[Node, Node]  # what a node can be said to begin with, the longest beginning first, and what follows each


def left_factored(grammar: Grammar, root: Node, limits: Limits) -> Node:
    """`root` with its alternatives factored; rules that it reaches get factored bodies. Raises `ConstraintLimit`."""
    if not grammar.has_calls:
        return root
    factoring = _Factoring(grammar, limits)
    return factoring.rewrite(root)


class _Factoring:
    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self._grammar, self._stopwatch = grammar, Stopwatch(limits, "factoring a grammar")
        self._most_nodes = 4 * len(grammar) + _SPARE_NODES
        self._bodies = list(grammar.rule_bodies)  # as written
        self._chains: dict[Node, Chain] = {}
        self._rewritten: dict[Node, Node] = {}
        self._calls = nodes_with_calls(grammar)

    def rewrite(self, root: Node) -> Node:
        grammar = self._grammar
        rules = {grammar.operands(node)[0] for node in list(reachable(grammar, root)) if grammar.kind(node) is Kind.CALL}
        for rule in sorted(rules):
            body = self._bodies[rule]
            if body is not None:
                grammar.define(Rule(rule), self._factored_below(body))
        return self._factored_below(root)

    def _factored_below(self, root: Node) -> Node:
        """A node with all alternatives below it factored, parts first."""
        return rewrite_below(root, self._open_parts, self._rebuilt, self._rewritten)

    def _open_parts(self, node: Node) -> list[Node]:
        return open_parts(self._grammar, node) if node < len(self._calls) and self._calls[node] else []

    def _rebuilt(self, node: Node) -> Node:
        self._stopwatch.check()
        grammar, done = self._grammar, self._rewritten
        if not self._open_parts(node) or len(grammar) > self._most_nodes:
            return node
        kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
        if kind is Kind.ALT:
            made = self._union([done[option] for option in grammar.alternatives(node)], _DEEPEST)
        elif kind is Kind.REPEAT:
            made = grammar.repeat(done[Node(a)], b, None if c == UNBOUNDED else c)
        else:
            made = self._sequence(done[Node(a)], done[Node(b)])
        if node in grammar.labels:
            grammar.label(made, grammar.labels[node])
        return made

    # -- the three laws -------------------------------------------------------------------------------------------------

    def _sequence(self, head: Node, rest: Node) -> Node:
        grammar = self._grammar
        a, low, high = grammar.operands(head)
        if grammar.kind(head) is Kind.REPEAT and low == 0 and high in (1, UNBOUNDED):
            own, following = self._chain(Node(a)), self._chain(rest)
            common = next((start for start in own if start in following), None)
            if common is not None and high == 1:
                return self._union([grammar.seq(Node(a), rest), rest], _DEEPEST)
            if common is not None:
                again = grammar.repeat(grammar.seq(own[common], common))
                return grammar.seq(common, again, following[common])
        return grammar.seq(head, rest)

    def _union(self, options: Sequence[Node], depth: int) -> Node:
        """The union of some nodes, those with a common beginning as one."""
        grammar = self._grammar
        if depth == 0 or len(grammar) > self._most_nodes:
            return grammar.alt(*options)
        groups = _grouped([self._chain(option) for option in self._opened(options)])
        return grammar.alt(*(self._joined(group, depth) for group in groups))

    def _joined(self, group: list[Chain], depth: int) -> Node:
        """One node for alternatives with a common beginning."""
        if len(group) == 1:
            return self._whole(group[0])
        prefix, rests = list[Node](), group
        while len(prefix) < _LONGEST_CHAIN:
            common = next((start for start in rests[0] if all(start in chain for chain in rests)), None)
            if common is None:
                break
            prefix.append(common)
            followers = list(dict.fromkeys(chain[common] for chain in rests))
            rests = [self._chain(follower) for follower in followers]
            if len(followers) == 1 or EMPTY in followers:
                break
        return self._grammar.seq(*prefix, self._union(list(map(self._whole, rests)), depth - 1))

    def _whole(self, chain: Chain) -> Node:
        """The node that a chain was made of."""
        return self._grammar.seq(*next(iter(chain.items()), (EMPTY, EMPTY)))

    def _opened(self, options: Sequence[Node]) -> list[Node]:
        """The options, some of them taken apart: one that begins with something optional, or with a rule of a few
        alternatives, becomes several where one of these begins as another option does."""
        out = dict[Node, None]()
        count = Counter(start for option in dict.fromkeys(options) for start in self._chain(option))
        for option in options:
            own, parts = self._chain(option), self._alternatives_of(option)
            is_shared = any(count[start] > (start in own) for part in parts for start in self._chain(part))
            out |= dict.fromkeys(parts if is_shared else [option])
        return list(out)

    def _alternatives_of(self, option: Node) -> list[Node]:
        grammar = self._grammar
        if option == EMPTY:
            return []
        start, rest = list(self._chain(option).items())[-1]
        kind, (a, low, high) = grammar.kind(start), grammar.operands(start)
        if kind is Kind.REPEAT and low == 0:
            again = grammar.repeat(Node(a), 0, None if high == UNBOUNDED else high - 1)
            return [grammar.seq(Node(a), again, rest), rest]
        body = self._bodies[a] if kind is Kind.CALL else start
        if body is None or grammar.kind(body) is not Kind.ALT or len(grammar.alternatives(body)) > _MOST_OPENED:
            return []
        return [grammar.seq(part, rest) for part in grammar.alternatives(body)]

    # -- how nodes begin ------------------------------------------------------------------------------------------------

    def _chain(self, node: Node) -> Chain:
        """What a node begins with, by itself and along the rules that are called first."""
        if node not in self._chains:
            self._stopwatch.check()
            self._chains[node] = self._new_chain(node)
        return self._chains[node]

    def _new_chain(self, node: Node) -> Chain:
        grammar, chain, rest = self._grammar, Chain(), EMPTY
        while node != EMPTY and len(chain) < _LONGEST_CHAIN:
            kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
            if kind is Kind.SEQ:
                node, rest = Node(a), grammar.seq(Node(b), rest)
                continue
            if node in chain:
                break
            chain[node] = rest
            body = self._bodies[a] if kind is Kind.CALL else None
            if body is not None:
                node = body
            elif kind is Kind.REPEAT and b > 0:
                node, rest = Node(a), grammar.seq(grammar.repeat(Node(a), b - 1, None if c == UNBOUNDED else c - 1), rest)
            else:
                break
        return chain


def _grouped(chains: Iterable[Chain]) -> list[list[Chain]]:
    """Chains in groups; the members of a group have a beginning in common."""
    groups: list[tuple[list[Chain], set[Node]]] = []
    group_of: dict[Node, int] = {}  # the last one with this beginning
    for chain in chains:
        found = next((group_of[start] for start in chain if start in group_of and start in groups[group_of[start]][1]), None)
        if found is None:
            group_of.update(dict.fromkeys(chain, len(groups)))
            groups.append(([chain], set(chain)))
        else:
            groups[found][0].append(chain)
            groups[found][1].intersection_update(chain)
    return [members for members, _ in groups]
