"""Lazy terminals beside others: a text that could go on as another terminal stops where a lazy one is complete.

`start: (head call)* tail` with `head[lazy]: TEXT "<tool>"` and `tail: TEXT` means that no `<tool>` stands in the tail, although
TEXT alone would take it: where head and tail may both begin, reading stops at the first `<tool>`, and it was the head. So a grammar
with lazy terminals is read as an automaton whose letters are lexemes. Its states, sets of what may follow, say which terminals
may begin together; in each, the texts of a terminal are those that hold no complete text of a lazy one at their beginning. The
states become rules of their own. Where no lazy terminal stands beside another one that it could end, the rules stay as written.
"""

from __future__ import annotations

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import ALL
from ...grammar.capture_marks import Lexeme, LexemeState
from ...grammar.emptiness import shows_empty
from ...grammar.expression import EMPTY, FAIL, UNBOUNDED, Grammar, Kind, Node, Rule
from ...grammar.left_recursion import without_left_recursion
from ...grammar.recursion import reachable
from ...grammar.source import Limits
from ...grammar.stopwatch import Stopwatch

_STATES = 2000  # sets of continuations; a recursive rule around a lazy terminal has more than any number


class Lexemes:
    """The lexemes of a grammar that has lazy ones; each is a rule, so that it stays a letter of its own in expressions."""

    def __init__(self, grammar: Grammar, limits: Limits, skip: Node) -> None:
        self.grammar, self.limits, self.skip = grammar, limits, skip
        self.of_rule: dict[int, Lexeme] = {}
        self._rules: dict[Lexeme, Rule] = {}
        self._firsts: dict[Node, frozenset[int]] = {}
        self._some = grammar.repeat(grammar.chars(ALL), 1)
        self._any = grammar.repeat(grammar.chars(ALL))

    def add(self, node: Node, lazy: bool, opaque: bool = False) -> Node:
        """A call that stands for a lexeme and what is ignored behind it."""
        grammar = self.grammar
        if lazy:  # the shortest texts: none of them begins with another one
            node = grammar.without(node, grammar.seq(node, self._some))
        lexeme = Lexeme(node, lazy, opaque)
        if node == EMPTY:
            return EMPTY
        if lexeme not in self._rules:
            rule = self._rules[lexeme] = grammar.rule("lexeme")
            grammar.define(rule, grammar.seq(node, self.skip))
            self.of_rule[rule] = lexeme
        return grammar.call(self._rules[lexeme])

    def separated(self, root: Node) -> Node:
        """The language of `root`, in which lazy lexemes end what they stand beside. Raises `UnsupportedKeyword`."""
        without_left_recursion(self.grammar, root, self.limits)
        states = self._states(root)
        if states is None:
            return root
        rules = [self.grammar.rule("lexemes") for _ in states]
        for rule, state in zip(rules, states, strict=True):
            options = [EMPTY] if state.may_end else []
            for cut, after in state.following.values():
                options.append(self.grammar.seq(cut, self.skip, self.grammar.call(rules[after])))
            self.grammar.define(rule, self.grammar.alt(*options))
        return self.grammar.call(rules[0])

    def states_beside(self, root: Node) -> list[LexemeState] | None:
        """The states that `separated` makes rules of, with the rules left as they are; None where there are none."""
        bodies = list(self.grammar.rule_bodies)
        without_left_recursion(self.grammar, root, self.limits)
        states = self._states(root)
        self.grammar.rule_bodies[: len(bodies)] = bodies
        return states

    def _states(self, root: Node) -> list[LexemeState] | None:
        """The automaton over lexemes, its start first; None where no lazy lexeme ends another one."""
        if not self._can_conflict():
            return None
        sets = [frozenset([root])]
        numbers = {sets[0]: 0}
        found: list[LexemeState] = []
        conflict = False
        stopwatch = Stopwatch(self.limits, "lazy terminals beside others")
        while len(found) < len(sets):
            stopwatch.check()
            following, may_end = self._following(sets[len(found)])
            state = LexemeState({}, may_end)
            for lexeme, tails in following.items():
                cut = self._cut(lexeme, [other for other in following if other.lazy])
                conflict |= cut != lexeme.node
                behind = frozenset(tails)
                if behind not in numbers:
                    numbers[behind] = len(sets)
                    sets.append(behind)
                state.following[lexeme] = cut, numbers[behind]
            if len(sets) > _STATES:
                raise _refused("lazy terminals beside others in rules that call themselves, or in high counts")
            found.append(state)
        return found if conflict else None

    def _can_conflict(self) -> bool:
        """Whether a lazy lexeme and another one may begin with the same byte, wherever the two stand."""
        firsts = [(lexeme, self._first_bytes(lexeme.node)) for lexeme in self.of_rule.values()]
        return any(
            lexeme.lazy and lexeme != other and not begin.isdisjoint(begin_of_other)
            for lexeme, begin in firsts
            for other, begin_of_other in firsts
        )

    def _following(self, state: frozenset[Node]) -> tuple[dict[Lexeme, set[Node]], bool]:
        """The lexemes that may come next, each with what may follow it, and whether the text may end."""
        grammar = self.grammar
        found: dict[Lexeme, set[Node]] = {}
        may_end = False
        seen: set[tuple[Node, Node]] = set()
        work = [(node, EMPTY) for node in sorted(state, reverse=True)]
        while work:
            at = work.pop()
            if at in seen:
                continue
            seen.add(at)
            if len(seen) > 50 * _STATES:
                raise _refused("lazy terminals beside others in rules that call themselves, or in high counts")
            head, tail = at
            kind, (a, b, c) = grammar.kind(head), grammar.operands(head)
            if head == EMPTY:
                if tail == EMPTY:
                    may_end = True
                else:
                    work.append((tail, EMPTY))
            elif kind is Kind.SEQ:
                work.append((Node(a), grammar.seq(Node(b), tail)))
            elif kind is Kind.ALT:
                work.extend((option, tail) for option in reversed(grammar.alternatives(head)))
            elif kind is Kind.REPEAT:
                again = grammar.repeat(Node(a), max(b - 1, 0), None if c == UNBOUNDED else c - 1)
                if b == 0:
                    work.append((EMPTY, tail))
                work.append((Node(a), grammar.seq(again, tail)))
            elif kind is Kind.CALL and a in self.of_rule:
                found.setdefault(self.of_rule[a], set()).add(tail)
            elif kind is Kind.CALL and self._is_apart(Node(head)):
                found.setdefault(Lexeme(head, lazy=False, opaque=True), set()).add(tail)
            elif kind is Kind.CALL:
                body = grammar.rule_bodies[a]
                assert body is not None
                work.append((body, tail))
            elif head != FAIL:
                raise _refused("lazy terminals beside rules that begin with themselves")
        return found, may_end

    def _is_apart(self, call: Node) -> bool:
        """Whether a rule calls itself and has no lazy lexeme in it: it stays as it is."""
        below = set(reachable(self.grammar, call))
        rules = {self.grammar.operands(node)[0] for node in below if self.grammar.kind(node) is Kind.CALL}
        if any(self.of_rule[rule].lazy for rule in rules if rule in self.of_rule):
            return False
        body = self.grammar.rule_bodies[self.grammar.operands(call)[0]]
        assert body is not None
        return call in set(reachable(self.grammar, body))

    def _cut(self, lexeme: Lexeme, lazy: list[Lexeme]) -> Node:
        """The texts of a lexeme that do not go on where a lazy one was complete."""
        others = [other.node for other in lazy if other != lexeme and self._may_meet(other, lexeme)]
        if not others:
            return lexeme.node
        if lexeme.opaque:
            raise _refused(
                "a lazy terminal where %json, or a rule that calls itself, may begin with the same character"
            )
        behind = self._some if lexeme.lazy else self._any
        node = lexeme.node
        for other in others:  # each by itself, as which of them are complete by now would be kept of all together
            node = self.grammar.without(node, self.grammar.seq(other, behind))
        return node

    def _may_meet(self, first: Lexeme, second: Lexeme) -> bool:
        return not self._first_bytes(first.node).isdisjoint(self._first_bytes(second.node))

    def _first_bytes(self, start: Node) -> frozenset[int]:
        """The bytes that a text may begin with, perhaps with some more."""
        known = self._firsts.get(start)
        if known is None:
            known = self._firsts[start] = self._found_first_bytes(start)
        return known

    def _found_first_bytes(self, start: Node) -> frozenset[int]:
        grammar, found = self.grammar, set[int]()
        seen: set[Node] = set()
        work = [start]
        while work:
            node = work.pop()
            if node in seen:
                continue
            seen.add(node)
            kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
            if kind is Kind.CLASS:
                for low, high, _follow in grammar.class_edges(node):
                    found.update(range(low, high + 1))
            elif kind is Kind.LITERAL:
                found.add(grammar.literal_bytes(node)[0])
            elif kind is Kind.SEQ:
                work += [Node(a), Node(b)] if self._may_be_empty(Node(a)) else [Node(a)]
            elif kind is Kind.ALT:
                work.extend(grammar.alternatives(node))
            elif kind in (Kind.REPEAT, Kind.BOTH):
                work.append(Node(a))
            elif kind is Kind.CALL:
                body = grammar.rule_bodies[a]
                assert body is not None
                work.append(body)
            elif kind not in (Kind.EMPTY, Kind.FAIL):
                return frozenset(range(256))
        return frozenset(found)

    def _may_be_empty(self, node: Node) -> bool:
        return self.grammar.kind(node) in (Kind.CALL, Kind.BOTH, Kind.NEGATE) or shows_empty(self.grammar, node)


def _refused(reason: str) -> UnsupportedKeyword:
    return UnsupportedKeyword(reason, keyword="lazy", instead="the lazy terminal where no other one may begin")
