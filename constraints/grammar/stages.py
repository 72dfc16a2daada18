"""A grammar cut at the rules that have a budget of tokens: stages, one behind the other.

A stage is a part without such rules, or one of them. What may follow it is found as the derivative of a regular expression is:
whatever is left of the root behind the stage is an expression again, and equal ones are one. So the rules with a budget may stand
in sequences, alternatives and repetitions, and a rule may call itself behind them; where it calls itself around them there is
no end to what may be left, which is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..base.errors import UnsupportedKeyword
from .expression import EMPTY, FAIL, UNBOUNDED, Grammar, Kind, Node
from .left_recursion import without_left_recursion
from .merged_repetitions import untangled
from .recursion import children, reachable
from .source import Limits


class Budget(NamedTuple):
    """The most tokens that a part may take. `is_whole`: exactly one token, of which no byte belongs to another part."""

    max_tokens: int
    is_whole: bool = False


ONE_TOKEN = Budget(1, is_whole=True)
Budgets = dict[Node, Budget]  # by the call of a rule
_STAGES = 200
_STEPS = 50_000


class Stage(NamedTuple):
    """One part. `budget`: None without one; `following`: the numbers of the stages behind it; `may_end`: whether the
    text may end behind it."""

    node: Node
    budget: Budget | None
    following: tuple[int, ...]
    may_end: bool


class Stages(NamedTuple):
    """The parts of a grammar, and those with which a text begins."""

    all: tuple[Stage, ...]
    first: tuple[int, ...]

    def as_lists(self) -> list[Any]:
        """The stages as JSON can hold them: all but their expressions."""
        return [list(self.first), [[one.budget and list(one.budget), list(one.following), one.may_end] for one in self.all]]

    @classmethod
    def of_lists(cls, value: list[Any], num_stages: int) -> Stages:
        """The stages that `as_lists` has described. Raises ValueError and TypeError for any other value."""
        first, rows = value
        numbers = [number for row in [first, *(following for _, following, _ in rows)] for number in row]
        budgets = [None if budget is None else Budget(*budget) for budget, _, _ in rows]
        counts = [budget.max_tokens for budget in budgets if budget is not None]
        are_integers = all(type(number) is int for number in [*numbers, *counts])
        are_flags = all(type(budget.is_whole) is bool for budget in budgets if budget is not None)
        are_known = len(rows) == num_stages and set(numbers) <= set(range(num_stages))
        if not (are_integers and are_flags and are_known) or min(counts, default=1) < 1:
            raise ValueError("stages that do not fit together")
        stages = [
            Stage(FAIL, budget, tuple(following), bool(may_end))
            for budget, (_, following, may_end) in zip(budgets, rows, strict=True)
        ]
        return cls(tuple(stages), tuple(first))


class HasStages(Protocol):
    """A source that can be cut."""

    def stages(self, grammar: Grammar, limits: Limits) -> Stages: ...


@dataclass(frozen=True, slots=True)
class StageOf:
    """One stage of a source, as a source."""

    source: HasStages
    number: int

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The texts of the stage."""
        return untangled(grammar, self.source.stages(grammar, limits).all[self.number].node, limits)


def budgeted_root(grammar: Grammar, root: Node, budgets: Budgets, limits: Limits) -> Node:
    """`root` without left recursion. Raises `UnsupportedKeyword` where that would lose budgets."""
    bodies = list(grammar.rule_bodies)
    without_left_recursion(grammar, root, limits)
    if bodies != grammar.rule_bodies:
        refuse_budgets(budgets, "in a grammar with left recursion")
    return root


def refuse_budgets(budgets: Budgets, where: str = "inside of another source, which counts no tokens") -> None:
    """Raises `UnsupportedKeyword` if there are any."""
    if budgets:
        raise _refused(where, budgets)


def stages_of(grammar: Grammar, root: Node, budgets: Budgets) -> Stages:
    """The stages of what `root` describes. Raises `UnsupportedKeyword`."""
    return _Cutting(grammar, root, budgets).stages(root)


class _Cutting:
    def __init__(self, grammar: Grammar, root: Node, budgets: Budgets) -> None:
        self.grammar, self.budgets = grammar, budgets
        self._cut = holding(grammar, root, budgets)
        for call in budgets:
            if any(self._cut.get(part) for part in children(grammar, call)):
                raise _refused("inside of another one", budgets)
        self._steps = 0

    def stages(self, root: Node) -> Stages:
        numbers: dict[tuple[Node, Node], int] = {}  # by part and what is left behind it
        found: list[Stage] = []
        first, may_be_empty = self._next(root, numbers)
        while len(found) < len(numbers):
            node, tail = list(numbers)[len(found)]
            following, may_end = self._next(tail, numbers)
            found.append(Stage(node, self.budgets.get(node), following, may_end))
        if may_be_empty:
            first += (len(found),)
            found.append(Stage(EMPTY, None, (), True))
        return Stages(tuple(found), first)

    def _next(self, rest: Node, numbers: dict[tuple[Node, Node], int]) -> tuple[tuple[int, ...], bool]:
        """The stages with which a text may go on, and whether it may end here."""
        grammar = self.grammar
        found: dict[int, None] = {}
        may_end = False
        seen: set[tuple[Node, Node]] = set()
        work = [(rest, EMPTY)]
        while work:
            at = head, tail = work.pop()
            if at in seen:
                continue
            seen.add(at)
            self._steps += 1
            if self._steps > _STEPS or len(numbers) > _STAGES:
                raise _refused("inside of rules that call themselves around it, or under high counts", self.budgets)
            kind, (a, b, c) = grammar.kind(head), grammar.operands(head)
            if head == EMPTY and tail == EMPTY:
                may_end = True
            elif head == EMPTY:
                work.append((tail, EMPTY))
            elif head in self.budgets or not self._is_cut(head):
                if head not in self.budgets:
                    head, tail = self._gathered(head, tail)
                if head != FAIL:
                    found[numbers.setdefault((head, tail), len(numbers))] = None
            elif kind is Kind.SEQ:
                work.append((Node(a), grammar.seq(Node(b), tail)))
            elif kind is Kind.ALT:
                options = grammar.alternatives(head)
                work.append((grammar.alt(*(option for option in options if not self._is_cut(option))), tail))
                work += [(option, tail) for option in options if self._is_cut(option)]
            elif kind is Kind.REPEAT:
                if b == 0:
                    work.append((EMPTY, tail))
                again = grammar.repeat(Node(a), max(b - 1, 0), None if c == UNBOUNDED else c - 1)
                work.append((Node(a), grammar.seq(again, tail)))
            elif kind is Kind.CALL:
                work += [(body, tail) for body in children(grammar, head)]
            else:
                raise _refused("inside of a part that may be empty or is combined with others", self.budgets)
        return tuple(found), may_end

    def _gathered(self, head: Node, tail: Node) -> tuple[Node, Node]:
        """The largest part without a budget that begins with `head`, and what is behind it."""
        grammar = self.grammar
        while tail != EMPTY:
            if not self._is_cut(tail):
                return grammar.seq(head, tail), EMPTY
            first, rest = grammar.operands(tail)[:2]
            if grammar.kind(tail) is not Kind.SEQ or self._is_cut(Node(first)):
                break
            head, tail = grammar.seq(head, Node(first)), Node(rest)
        return head, tail

    def _is_cut(self, start: Node) -> bool:
        """Whether some budget is part of an expression."""
        work = [start]
        while work:
            node = work[-1]
            parts = children(self.grammar, node)  # calls have been judged
            missing = [part for part in parts if part not in self._cut]
            if missing and node not in self._cut:
                work += missing
                continue
            work.pop()
            self._cut.setdefault(node, any(self._cut[part] for part in parts))
        return self._cut[start]


def holding(grammar: Grammar, root: Node, calls: Iterable[Node]) -> dict[Node, bool]:
    """For every node below `root`, whether one of `calls` is part of it."""
    parents: dict[Node, list[Node]] = {}
    judged = dict.fromkeys(reachable(grammar, root), False)
    for node in judged:
        for part in children(grammar, node):
            parents.setdefault(part, []).append(node)
    work = [call for call in calls if call in judged]
    while work:
        node = work.pop()
        if not judged[node]:
            judged[node] = True
            work += parents.get(node, [])
    return judged


def _refused(where: str, budgets: Budgets) -> UnsupportedKeyword:
    """The error for budgets that are refused, in the words of the author: rules with a budget, or terminals that are a
    token."""
    if all(budget.is_whole for budget in budgets.values()):
        return UnsupportedKeyword(f"a terminal that is a token {where}", keyword="<token>", instead="its text, or a special token")
    reason, instead = f"a rule with a budget of tokens {where}", "max_tokens of the request, or a number of characters"
    return UnsupportedKeyword(reason, keyword="max_tokens", instead=instead)
