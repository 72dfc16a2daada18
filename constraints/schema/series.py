"""Items and members one after the other, under conditions on how many there are of each sort.

A *series* begins with *stages*, places that differ from one another (the items of a tuple, the declared names of an object), and
goes on with members of a few sorts in any order. Conditions count: each member counts in some of them, and each has bounds. What
is still wanted of every condition is all that the rest depends on, so a series costs one node per stage and distinct remainder;
without conditions that is two per stage, however many subsets of the stages may occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import ConstraintLimit
from ..expression import EMPTY, FAIL, Grammar, Node, Rule

Bounds = tuple[int, int | None]  # how many are still needed, and how many still allowed
Remainder = tuple[Bounds, ...]  # per condition
TOTAL = 0  # the condition in which every member counts
MAX_REMAINDERS = 20_000
_FREE: Bounds = (0, None)


class Sort(NamedTuple):
    """Members that may be written alike: their texts, the conditions they count in (besides the total), how many exist.

    `is_marked` says that the texts have marks for the memory of keys.
    """

    node: Node
    counts_in: frozenset[int] = frozenset()
    available: int | None = None
    is_marked: bool = False


class Stage(NamedTuple):
    """A place before the others: what may stand there, and whether it may be passed over or the series may end before it."""

    sorts: tuple[Sort, ...]
    may_skip: bool = False
    may_end: bool = False


class Place(NamedTuple):
    """Before a stage, or behind the last: what may follow a member, closing bracket included; what may follow a separator, or the
    opening bracket; whether the series may end here."""

    later: Node
    following: Node
    may_end: bool


@dataclass(slots=True)
class Series:
    """Builds the node of one series. `gap` stands behind a member, `end` at the end; `separated(node)` is what stands between two
    members and then `node`."""

    grammar: Grammar
    gap: Node
    separated: Callable[[Node], Node]
    end: Node = FAIL
    conditions: list[Bounds] = field(default_factory=lambda: [(0, None)])  # the first is the total
    stages: list[Stage] = field(default_factory=list)
    sorts: list[Sort] = field(default_factory=list)
    _loops: dict[Remainder, Node] = field(default_factory=dict)
    _rests: dict[Remainder, Node] = field(default_factory=dict)
    _members: dict[Node, Node] = field(default_factory=dict)  # each as one more, behind another one

    def node(self) -> Node:
        """What follows the opening bracket, closing one included; FAIL when no series meets the conditions."""
        self._merge_sorts()
        start = tuple(self.conditions)
        if start == (_FREE,):
            return self._free_node(start)
        reached = self._reached(start)
        places = {remainder: self._behind_stages(remainder) for remainder in reached[-1]}
        for stage, remainders in zip(reversed(self.stages), reversed(reached[:-1]), strict=True):
            behind, places = places, {}
            for remainder in remainders:
                options = [self._then(sort.node, behind[after].later) for sort, after in _steps(stage.sorts, remainder)]
                may_end = stage.may_end and _is_met(remainder)
                if stage.may_skip:
                    options.append(behind[remainder].following)
                    may_end |= behind[remainder].may_end
                places[remainder] = self._place(self.grammar.alt(*options), may_end)
        return self.grammar.alt(self.end if places[start].may_end else FAIL, places[start].following)

    def _free_node(self, start: Remainder) -> Node:
        """The same without conditions, where nothing that is left to wish for needs to be known."""
        seq, alt, gap = self.grammar.seq, self.grammar.alt, self.gap
        later, following, may_end = self._behind_stages(start)
        for stage in reversed(self.stages):
            options = [seq(sort.node, gap, later) for sort in stage.sorts]
            following = alt(*options, following if stage.may_skip else FAIL)
            may_end = stage.may_end or (stage.may_skip and may_end)
            later, following, may_end = self._place(following, may_end)
        return alt(self.end if may_end else FAIL, following)

    def condition(self, low: int, high: int | None) -> int:
        """A new condition; its number."""
        self.conditions.append((low, high))
        return len(self.conditions) - 1

    def bound_all(self, most: int) -> None:
        """At most so many members of the sorts, whichever."""
        index = self.condition(0, most)
        self.sorts = [sort._replace(counts_in=sort.counts_in | {index}) for sort in self.sorts]

    # -- stages -----------------------------------------------------------------------------------------------------

    def _reached(self, start: Remainder) -> list[dict[Remainder, None]]:
        """Before each stage, and behind the last, the remainders that can occur there."""
        reached: list[dict[Remainder, None]] = [{start: None}]
        count = 1
        for stage in self.stages:
            behind: dict[Remainder, None] = {}
            for remainder in reached[-1]:
                behind |= {after: None for _, after in _steps(stage.sorts, remainder)}
                if stage.may_skip:
                    behind[remainder] = None
            reached.append(behind)
            count += len(behind) - 1
            self._check(count)
        return reached

    def _place(self, following: Node, may_end: bool) -> Place:
        """Separators come before the choice of the member, so that one state stands for all of them."""
        later = self.grammar.alt(self.end if may_end else FAIL, self.separated(following))
        return Place(later, following, may_end)

    def _behind_stages(self, remainder: Remainder) -> Place:
        steps = [self._then(sort.node, self._rest(after)) for sort, after in _steps(self.sorts, remainder)]
        return Place(self._rest(remainder), self.grammar.alt(*steps), _is_met(remainder))

    def _then(self, member: Node, behind: Node) -> Node:
        return self.grammar.seq(member, self.gap, behind)

    def _further(self, member: Node) -> Node:
        """One more member, behind another one."""
        known = self._members.get(member)
        if known is None:
            known = self._members[member] = self.separated(self.grammar.seq(member, self.gap))
        return known

    # -- in any order -----------------------------------------------------------------------------------------------

    def _rest(self, remainder: Remainder) -> Node:
        """Members of the sorts behind some other member, and the end."""
        known = self._rests.get(remainder)
        if known is None:
            known = self._rests[remainder] = self.grammar.seq(self._any_order(remainder), self.end)
        return known

    def _any_order(self, remainder: Remainder) -> Node:
        """Any number of members of the sorts, each behind a comma, that meets the conditions."""
        if all(len(sort.counts_in) <= 1 for sort in self.sorts):
            return self._bag(remainder)
        return self._loop(remainder)

    def _bag(self, remainder: Remainder) -> Node:
        counted = {next(iter(sort.counts_in)) for sort in self.sorts if sort.counts_in}
        if any(low > 0 for i, (low, _) in enumerate(remainder) if i != TOTAL and i not in counted):
            return FAIL
        parts = []
        for sort in self.sorts:
            low, high = remainder[next(iter(sort.counts_in))] if sort.counts_in else (0, None)
            high = _least(high, sort.available)
            if high is not None and high < low:
                return FAIL
            parts.append((self._further(sort.node), low, high))
        return self.grammar.bag(parts, *remainder[TOTAL])

    def _loop(self, start: Remainder) -> Node:
        """Where a member counts in several conditions: a rule for each remainder."""
        grammar, loops = self.grammar, self._loops
        fresh: dict[Remainder, Rule] = {}

        def loop(remainder: Remainder) -> Node:
            known = loops.get(remainder)
            if known is None:
                fresh[remainder] = grammar.rule("members")
                known = loops[remainder] = grammar.call(fresh[remainder])
                self._check(len(loops))
            return known

        node = loop(start)
        while fresh:
            remainder, rule = fresh.popitem()
            options = [EMPTY] if _is_met(remainder) else []
            options += (grammar.seq(self._further(sort.node), loop(after)) for sort, after in _steps(self.sorts, remainder))
            grammar.define(rule, grammar.alt(*options))
        return node

    def _merge_sorts(self) -> None:
        """One sort per set of conditions; what exists of it in all."""
        by_conditions: dict[frozenset[int], list[Sort]] = {}
        for sort in self.sorts:
            if sort.node != FAIL and sort.available != 0:
                by_conditions.setdefault(sort.counts_in, []).append(sort)
        self.sorts = [
            Sort(self.grammar.alt(*(sort.node for sort in alike)), counts_in, _sum(sort.available for sort in alike))
            for counts_in, alike in by_conditions.items()
        ]

    def _check(self, count: int) -> None:
        if count > MAX_REMAINDERS:
            raise ConstraintLimit(
                f"{count} combinations of counts", limit="counts", value=MAX_REMAINDERS,
                instead="smaller bounds, or fewer keywords that count the same items or members",
            )  # fmt: skip


def _steps(sorts: Iterable[Sort], remainder: Remainder) -> list[tuple[Sort, Remainder]]:
    """The members that may come next, each with what remains behind it."""
    if len(remainder) == 1 and remainder[TOTAL] == _FREE:
        return [(sort, remainder) for sort in sorts if sort.node != FAIL]
    out = []
    for sort in sorts:
        after = list(remainder)
        for i in (TOTAL, *sort.counts_in):
            low, high = remainder[i]
            if high == 0:
                break
            after[i] = low - 1 if low else 0, None if high is None else high - 1
        else:
            if sort.node != FAIL:
                out.append((sort, tuple(after)))
    return out


def _is_met(remainder: Remainder) -> bool:
    return all(low == 0 for low, _ in remainder)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
