"""Items and members one after the other, under conditions on how many there are of each sort.

A *series* begins with *stages*, places that differ from one another (the items of a tuple, the declared names of an object), and
goes on with members of a few sorts in any order. Conditions count: each member counts in some of them, and each has bounds. Of
every *clause* one option has to hold, and each member makes some options true and others impossible. What is still wanted of the
conditions and clauses is all that the rest depends on, so a series costs one node per stage and distinct remainder; without any
that is two per stage, however many subsets of the stages may occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ....base.errors import ConstraintLimit
from ....base.kinds import NO_BOUND
from ....grammar.expression import EMPTY, FAIL, Grammar, Node
from ....grammar.separated_lists import chain
from ....grammar.stopwatch import hold
from ....grammar.unordered_members import bags_less
from ..algebra.partitions import MOST_TOLD_APART, too_many
from .covers import CoverSort, Plan, all_sorts, cover, fewest, plan, plan_of_place, possible, settled_of

Bounds = tuple[int, int | None]  # how many are still needed, and how many still allowed
Clauses = frozenset[frozenset[int]]  # options by number, of each set one
TOTAL: Final = 0  # the condition in which every member counts
MAX_REMAINDERS: Final = 20_000
MAX_STEPS: Final = 200_000  # members behind remainders, a second or less
_CLAUSES_OF_STEP: Final = 8  # open clauses that take as long as a step without any
_CLAUSE_BYTES: Final = 72  # of a clause in a remainder, beside objects
_FREE: Bounds = (0, None)
_FEW_REMAINDERS: Final = 64  # that are told apart rather than counted side by side, as the least they take is found exactly
_FEW_STEPS: Final = 10_000  # the same where the number of members is bounded, times the sorts


class Remainder(NamedTuple):
    """The counts that are still wanted of each condition, and the clauses that are still open."""

    bounds: tuple[Bounds, ...]
    clauses: Clauses = frozenset()


class Effect(NamedTuple):
    """The changes that a member makes: it counts in conditions (besides the total), makes options true and others impossible."""

    counts_in: frozenset[int] = frozenset()
    makes: frozenset[int] = frozenset()
    breaks: frozenset[int] = frozenset()


class Sort(NamedTuple):
    """Members that may be written alike: their texts, what they change, how many exist.

    `is_marked` says that the texts have marks for the memory of keys; `is_certain`, that there is one left wherever what is wanted
    admits one. `spare` are the same texts for where it is not, and something else is: nothing is promised of their keys. `watched`
    are conditions that its members may count in besides, each with the texts of those that do.
    """

    node: Node
    effect: Effect = Effect()
    available: int | None = None
    is_marked: bool = False
    is_certain: bool = True
    spare: Node = FAIL
    watched: tuple[tuple[int, Node], ...] = ()


Steps = list[tuple[Sort, Remainder]]  # members that may come next, each with what is wanted behind it


class Stage(NamedTuple):
    """A place before the others: what may stand there, and whether it may be passed over (with an effect, too) or the series may
    end before it. `plain` are the sorts where nothing is wanted any more that tells them apart."""

    sorts: tuple[Sort, ...]
    may_skip: bool = False
    may_end: bool = False
    skipped: Effect = Effect()
    plain: tuple[Sort, ...] = ()


class Place(NamedTuple):
    """Before a stage, or behind the last: what may follow a member, closing bracket included; what may follow a separator, or the
    opening bracket; whether the series may end here."""

    later: Node
    following: Node
    may_end: bool


@dataclass(slots=True)
class Series:
    """Builds the node of one series. `gap` stands behind a member, `end` at the end, `separator` between two members;
    `marked(node)` is what stands there instead, with `node` behind it, where items are remembered. `check` raises an error when
    what lowering may take is used up; it is called for every remainder that is looked at.

    The first condition is the total, the next `num_needs` tell sorts apart, as clauses do: where nothing of these is wanted any
    more, `plain` are the sorts. `absences` are the options that hold unless a member makes them impossible.
    """

    grammar: Grammar
    gap: Node
    separator: Node
    check: Callable[[], None]
    marked: Callable[[Node], Node] | None = None
    end: Node = FAIL
    conditions: list[Bounds] = field(default_factory=lambda: [_FREE])
    num_needs: int = 0
    clauses: Clauses = frozenset()
    absences: frozenset[int] = frozenset()
    stages: list[Stage] = field(default_factory=list)
    sorts: list[Sort] = field(default_factory=list)
    plain: list[Sort] = field(default_factory=list)
    are_items: bool = False  # whose texts never run out but where they must differ, and then by `counts`
    counts: dict[Node, int] = field(default_factory=dict)  # of sorts of few texts, where members must differ
    _counting: list[Sort] = field(default_factory=list)  # the sorts where no clause is open
    _capacities: list[int] = field(default_factory=list)  # conditions that say how many members of some sorts exist
    _while_wanted: dict[int, tuple[int, ...]] = field(default_factory=dict)  # capacities, and conditions for which they matter
    _certain: set[Remainder] = field(default_factory=set)  # of which the end is reached by sorts that are certain
    _loops: dict[Remainder, Node] = field(default_factory=dict)
    _rests: dict[Remainder, Node] = field(default_factory=dict)
    _covers: dict[Remainder, tuple[Node, Node] | None] = field(default_factory=dict)
    _of_stages: list[tuple[Node, Node]] = field(default_factory=list)
    _kept: dict[Remainder, Remainder] = field(default_factory=dict)
    _num_steps: int = 0
    _held: int = 0  # bytes
    _members: dict[Node, Node] = field(default_factory=dict)  # each as one more, behind another one

    def node(self) -> Node:
        """The texts behind the opening bracket, with the closing one; FAIL when no series meets the conditions."""
        try:
            return self._node()
        finally:
            hold(-self._held)

    def _merge(self) -> None:
        counting = [sort._replace(effect=Effect(sort.effect.counts_in)) for sort in self.sorts] if self.clauses else self.sorts
        self._counting, self.sorts, self.plain = map(self._merged, (counting, self.sorts, self.plain))

    def _node(self) -> Node:
        self._merge()
        start = Remainder(tuple(self.conditions), self.clauses)
        if (covers := self._covers_of_stages(start)) is not None:
            return self.grammar.alt(self.end if self._is_met(start) else FAIL, self.grammar.seq(covers[1], self.end))
        if any(sort.watched for stage in self.stages for sort in stage.sorts):
            raise too_many(self.num_needs, MOST_TOLD_APART)
        if start == Remainder((_FREE,)) and self.marked is None and not any(stage.may_end for stage in self.stages):
            return self._free_node(start)
        reached = self._reached(start)
        places = {remainder: self._behind_stages(remainder) for remainder in reached[-1]}
        certain = {remainder for remainder in places if remainder in self._certain or self._covers.get(remainder) is not None}
        for number in range(len(self.stages) - 1, -1, -1):
            stage, behind, places = self.stages[number], places, {}
            certain.update(remainder for remainder, place in behind.items() if place.may_end)
            certain_behind, certain = certain, set()
            for remainder in reached[number]:
                self.check()
                steps = self._stage_steps(stage, remainder)
                lasting = self._lasting_in(certain_behind, remainder, steps, number) if self.counts else []
                if lasting:
                    certain.add(remainder)
                rests = {after: behind[after].later for _, after in steps}
                options = self._told(steps, lasting, rests, is_further=False)
                may_end = stage.may_end and self._is_met(remainder)
                skipped = self._skipped(stage, remainder)
                if skipped is not None:
                    options.append(behind[skipped].following)
                    may_end |= behind[skipped].may_end
                following = self.grammar.alt(*options)
                if self.marked is None:
                    places[remainder] = self._place(following, may_end)
                else:  # each item behind a comma of its own, so that it is known what the item may cost
                    further = self._told(steps, lasting, rests, is_further=True)
                    places[remainder] = Place(self.grammar.alt(self.end if may_end else FAIL, *further), following, may_end)
        return self.grammar.alt(self.end if places[start].may_end else FAIL, places[start].following)

    def _free_node(self, start: Remainder) -> Node:
        """The texts behind the opening bracket where there are no conditions, so that no remainder has to be known."""
        grammar, behind = self.grammar, self._behind_stages(start)
        links = [(grammar.alt(*(sort.node for sort in stage.sorts)), not stage.may_skip) for stage in reversed(self.stages)]
        return chain(grammar, links, self.gap, self.separator, self.end, behind.later, behind.following)

    def condition(self, low: int, high: int | None) -> int:
        """Add a condition and return its number."""
        self.conditions.append((low, high))
        return len(self.conditions) - 1

    def capacity(self, count: int) -> int:
        """Add the condition that so many members of some sorts exist in all, and return its number."""
        self._capacities.append(self.condition(0, count))
        return self._capacities[-1]

    def capacity_while_wanted(self, count: int, effect: Effect) -> int:
        """`capacity` of members with an effect, where it does not matter how many are left when none of them is wanted any more."""
        number = self.capacity(count)
        self._while_wanted[number] = self._wanting(effect)
        return number

    @property
    def may_have_few(self) -> bool:
        """Whether it matters that sorts have few texts: members must differ, and may be of several sorts."""
        return self.marked is not None and (self.num_needs > 1 or any(high is not None for _, high in self.conditions[TOTAL + 1 :]))

    def most_wanted(self, effect: Effect) -> int:
        """The most members with an effect that may be wanted: a condition that wants one has counted all that have come."""
        return max([self.conditions[i][0] for i in self._wanting(effect)], default=0)

    def _wanting(self, effect: Effect) -> tuple[int, ...]:
        """The conditions for which a member with an effect may have to come."""
        is_bounded = any(high is not None for _, high in self.conditions[TOTAL + 1 : TOTAL + 1 + self.num_needs])
        return (TOTAL, *effect.counts_in) if is_bounded else (*effect.counts_in,)  # else any member will do for the total

    @property
    def may_run_out(self) -> bool:
        """Whether members of some sort may all have come while one is wanted, and there may not be others in place of it, as
        something has an upper bound. Where conditions are counted side by side that is seen to (covers.py)."""
        if all(high is None for _, high in self.conditions):
            return False
        few = [sort for sort in self.sorts if sort.node in self.counts]
        if all(self.counts[sort.node] >= self.most_wanted(sort.effect) for sort in few):
            return False
        start = Remainder(tuple(self.conditions))
        self._merge()
        return self._covers_of_stages(start) is None and (bool(self.stages) or self._cover(start) is None)

    @property
    def covers(self) -> list[Node]:
        """The nodes in which conditions are counted side by side."""
        return [node for both in (*self._covers.values(), *self._of_stages) if both is not None for node in both if node != FAIL]

    # -- what is wanted ---------------------------------------------------------------------------------------------

    def _after(self, remainder: Remainder, counts_in: Sequence[int], effect: Effect) -> Remainder | None:
        """The remainder behind a member; None where the member may not stand."""
        bounds, clauses = remainder
        if counts_in and bounds != (_FREE,):
            left = list(bounds)
            for i in counts_in:
                low, high = left[i]
                if high == 0:
                    return None
                left[i] = low - 1 if low else 0, None if high is None else high - 1
            bounds = tuple(left)
        if clauses:
            self.check()
            clauses = frozenset(clause - effect.breaks for clause in clauses if clause.isdisjoint(effect.makes))
            if frozenset() in clauses:
                return None
            clauses = frozenset(clause for clause in clauses if not any(other < clause for other in clauses))
        after = Remainder(bounds, clauses)
        if self._capacities and self._is_settled(after):
            after = Remainder(tuple(_FREE if i in self._capacities else each for i, each in enumerate(bounds)))
        elif self._while_wanted:
            done = {i for i, those in self._while_wanted.items() if sum([bounds[each][0] for each in those]) == 0}
            after = Remainder(tuple(_FREE if i in done else each for i, each in enumerate(bounds)), clauses)
        return self._same(after)

    def _same(self, remainder: Remainder) -> Remainder:
        """The remainder that is kept of those that are equal."""
        known = self._kept.get(remainder)
        if known is None:
            known = self._kept[remainder] = remainder
            num_bytes = _CLAUSE_BYTES * len(remainder.clauses)
            hold(num_bytes)
            self._held += num_bytes
        return known

    def _steps(self, sorts: Iterable[Sort], remainder: Remainder) -> Steps:
        """The members that may come next, each with what is wanted behind it."""
        self.check()
        possible = [sort for sort in sorts if sort.node != FAIL]
        self._num_steps += len(possible) * (1 + len(remainder.clauses) // _CLAUSES_OF_STEP)
        if self._num_steps > MAX_STEPS:
            raise _too_many(f"{self._num_steps} ways to go on with items or members", MAX_STEPS)
        steps = ((sort, self._after(remainder, (TOTAL, *sort.effect.counts_in), sort.effect)) for sort in possible)
        return [(sort, after) for sort, after in steps if after is not None]

    def _stage_steps(self, stage: Stage, remainder: Remainder) -> Steps:
        return self._steps(stage.plain if stage.plain and self._is_settled(remainder) else stage.sorts, remainder)

    def _skipped(self, stage: Stage, remainder: Remainder) -> Remainder | None:
        return self._after(remainder, (), stage.skipped) if stage.may_skip else None

    def _is_settled(self, remainder: Remainder) -> bool:
        """Whether nothing is wanted that tells sorts apart."""
        return not remainder.clauses and all(each == _FREE for each in remainder.bounds[TOTAL + 1 : TOTAL + 1 + self.num_needs])

    def _is_met(self, remainder: Remainder) -> bool:
        return all(low == 0 for low, _ in remainder.bounds) and not any(map(self.absences.isdisjoint, remainder.clauses))

    # -- stages -----------------------------------------------------------------------------------------------------

    def _reached(self, start: Remainder) -> list[dict[Remainder, None]]:
        """Before each stage, and behind the last, the remainders that can occur there."""
        reached: list[dict[Remainder, None]] = [{start: None}]
        count = 1
        for stage in self.stages:
            behind: dict[Remainder, None] = {}
            for remainder in reached[-1]:
                behind |= {after: None for _, after in self._stage_steps(stage, remainder)}
                skipped = self._skipped(stage, remainder)
                if skipped is not None:
                    behind[skipped] = None
            reached.append(behind)
            count += len(behind) - 1
            self._check(count)
        return reached

    def _place(self, following: Node, may_end: bool) -> Place:
        """The place of a stage. Separators come before the choice of the member, so that one state stands for all of them."""
        later = self.grammar.alt(self.end if may_end else FAIL, self._separated(following))
        return Place(later, following, may_end)

    def _separated(self, node: Node) -> Node:
        return self.grammar.seq(self.separator, node) if self.marked is None else self.marked(node)

    def _behind_stages(self, remainder: Remainder) -> Place:
        if (covers := self._cover(remainder)) is not None:
            return Place(self._rest(remainder), self.grammar.seq(covers[1], self.end), self._is_met(remainder))
        options = self._firsts_of_bag(remainder) if self._is_free_bag(remainder) else self._firsts(remainder)
        return Place(self._rest(remainder), self.grammar.alt(*options), self._is_met(remainder))

    def _firsts(self, remainder: Remainder) -> list[Node]:
        """The members that may come first, each with all behind it."""
        steps = self._steps(self._sorts_at(remainder), remainder)
        self._any_order(remainder)  # finds out what can be had for certain
        return self._options(remainder, steps, {after: self._rest(after) for _, after in steps}, is_further=False)

    def _firsts_of_bag(self, remainder: Remainder) -> list[Node]:
        """The members that may come first, where a bag is left behind each."""
        rests = bags_less(self.grammar, self._parts(remainder) or [])
        pairs = zip(self._sorts_at(remainder), rests, strict=False)  # no rests where the conditions cannot be met
        return [self._then(sort.node, self.grammar.seq(rest, self.end)) for sort, rest in pairs]

    def _then(self, member: Node, behind: Node) -> Node:
        return self.grammar.seq(member, self.gap, behind)

    def _further(self, member: Node) -> Node:
        """One more member, behind another one."""
        known = self._members.get(member)
        if known is None:
            known = self._members[member] = self._separated(self.grammar.seq(member, self.gap))
        return known

    # -- in any order -----------------------------------------------------------------------------------------------

    def _rest(self, remainder: Remainder) -> Node:
        """The texts of members of the sorts behind some other member, and the end."""
        known = self._rests.get(remainder)
        if known is None:
            known = self._rests[remainder] = self.grammar.seq(self._any_order(remainder), self.end)
        return known

    def _sorts_at(self, remainder: Remainder) -> list[Sort]:
        if self.plain and self._is_settled(remainder):
            return self.plain
        return self.sorts if remainder.clauses else self._counting

    def _any_order(self, remainder: Remainder) -> Node:
        """Any number of members of the sorts, each behind a comma, that meets the conditions."""
        if remainder not in self._loops:
            if self._is_bag(remainder):
                self._note_bag(remainder)
            elif (covers := self._cover(remainder)) is not None:
                self._loops[remainder] = covers[0]
            elif self._is_watched(remainder):
                raise too_many(sum(len(sort.watched) for sort in self.sorts), MOST_TOLD_APART)
            else:
                self._loop(remainder)
        return self._loops[remainder]

    def _is_bag(self, remainder: Remainder) -> bool:
        """Whether each member counts in one condition at the most, and no clause is open."""
        if remainder.clauses or self._is_watched(remainder):
            return False
        return all(len(sort.effect.counts_in) <= 1 for sort in self._sorts_at(remainder))

    def _is_watched(self, remainder: Remainder) -> bool:
        """Whether something is wanted that members are watched for."""
        return any(remainder.bounds[i][0] > 0 for sort in self.sorts for i, _ in sort.watched)

    def _cover(self, remainder: Remainder) -> tuple[Node, Node] | None:
        """The members behind another one, and the first ones, where conditions are counted side by side; None where these are few,
        or such that it might turn out that they cannot be met."""
        if remainder not in self._covers:
            self._covers[remainder] = self._new_cover(remainder)
        return self._covers[remainder]

    def _new_cover(self, remainder: Remainder, *, is_behind_stages: bool = False) -> tuple[Node, Node] | None:
        bounds, sorts = remainder.bounds, [sort for sort in self._sorts_at(remainder) if sort.node != FAIL]
        are_few = self._are_few(bounds, len(sorts)) and not self._is_watched(remainder)
        if not is_behind_stages and (are_few or self._is_bag(remainder)):
            return None
        if remainder.clauses or self._capacities or any(sort.available is not None or not sort.is_certain for sort in sorts):
            return None
        every = [self._cover_sort(sort, bounds) for sort in sorts]
        counted = possible(every, bounds)
        wanted = {i for i, (low, _) in enumerate(bounds) if low > 0}
        if not wanted <= {i for sort in all_sorts(counted) for i in sort.counters}:
            return FAIL, FAIL
        planned = self._plan(sorts, every, bounds)
        if planned is None:
            return None
        is_plain = bool(self.plain) and counted == every
        texts = [self._then(sort.node, EMPTY) for sort in self.plain] if is_plain else [sort.text for sort in counted]
        settled = self.grammar.repeat(self._separated(self.grammar.alt(*texts)))
        return cover(self.grammar, counted, bounds, self._separated(EMPTY), settled, planned)

    def _are_few(self, bounds: Sequence[Bounds], num_sorts: int) -> bool:
        """Whether what may be wanted is so little that it is told apart."""
        count = math.prod(1 + (low if high is None else high) for low, high in bounds)
        return count <= _FEW_REMAINDERS if bounds[TOTAL][1] is None else count * num_sorts <= _FEW_STEPS

    def _plan(self, sorts: Sequence[Sort], every: Sequence[CoverSort], bounds: Sequence[Bounds]) -> Plan | None:
        """A plan by which all that is wanted can be had behind the stages. every: the sorts as a cover has them."""
        counted = possible(every, bounds)
        counts: dict[CoverSort, int] = {}
        for sort, told in zip(sorts, every, strict=True):
            nodes = [sort.node, *(node for i, node in sort.watched if bounds[i][0] > 0)]
            pairs = zip((told, *told.watched), nodes, strict=True)
            counts |= {own: self.counts[node] for own, node in pairs if node in self.counts}
        if counts and list(bounds) != self.conditions:
            return None  # some of the few may stand in places before
        if bounds[TOTAL][1] is None:
            return plan(all_sorts(counted), bounds, counts)
        most_wanted = max(low for low, _ in bounds)
        if not self.are_items or any(sort.watched for sort in sorts) or any(count < most_wanted for count in counts.values()):
            return None
        return fewest(counted, bounds, MAX_STEPS)

    def _covers_of_stages(self, start: Remainder) -> tuple[Node, Node] | None:
        """The members behind another one, and the first ones, where stages are places of a cover; None where remainders are few, or
        the stages such that it is not certain that what is wanted can be had behind them."""
        bounds, is_watched = start.bounds, any(sort.watched for stage in self.stages for sort in stage.sorts)
        if not self.stages or bounds[TOTAL][1] is not None or (self._are_few(bounds, 1) and not is_watched):
            return None
        if not all(stage.may_end and not stage.may_skip for stage in self.stages):
            return None
        covers = self._new_cover(start, is_behind_stages=True)
        for stage in reversed(self.stages):
            if covers is not None and covers[0] != FAIL:
                covers = self._cover_of_stage(stage, bounds, covers[0])
        return None if covers is None or covers[0] == FAIL else covers

    def _cover_of_stage(self, stage: Stage, bounds: Sequence[Bounds], following: Node) -> tuple[Node, Node] | None:
        """The members from a stage on, behind another one, and the first ones; `following` are those behind it."""
        sorts = [sort for sort in stage.sorts if sort.node != FAIL]
        every = [self._cover_sort(sort, bounds) for sort in sorts]
        counted = possible(every, bounds)
        lasting = [each for sort, each in zip(sorts, every, strict=True) if sort.node not in self.counts]
        planned = plan_of_place(possible(lasting, bounds), bounds)
        if planned is None:
            return None
        is_plain = bool(stage.plain) and counted == every
        texts = [self._then(sort.node, EMPTY) for sort in stage.plain] if is_plain else [each.text for each in counted]
        further = self.grammar.seq(self.grammar.alt(*texts), settled_of(self.grammar, following))
        settled = self.grammar.optional(self._separated(further))
        self._of_stages.append(covers := cover(self.grammar, counted, bounds, self._separated(EMPTY), settled, planned, following))
        return covers

    def _cover_sort(self, sort: Sort, bounds: Sequence[Bounds]) -> CoverSort:
        text, counters = self._then(sort.node, EMPTY), (TOTAL, *sorted(sort.effect.counts_in))
        wanted = ((i, self._then(node, EMPTY)) for i, node in sort.watched if bounds[i][0] > 0)
        return CoverSort(text, counters, tuple(CoverSort(node, (i, *counters)) for i, node in wanted))

    def _is_free_bag(self, remainder: Remainder) -> bool:
        """Whether it is one in which only the sorts have bounds, the same ones to the end, and can be had while these allow it."""
        if remainder.bounds[TOTAL] != _FREE or self._capacities or (self.plain and not self._is_settled(remainder)):
            return False
        return self._is_bag(remainder) and all(sort.is_certain for sort in self._sorts_at(remainder))

    def _note_bag(self, remainder: Remainder) -> None:
        node = self._loops[remainder] = self._bag(remainder)
        if node != FAIL:
            self._certain.add(remainder)

    def _bag(self, remainder: Remainder) -> Node:
        parts = self._parts(remainder)
        return FAIL if parts is None else self.grammar.bag(parts, *remainder.bounds[TOTAL])

    def _parts(self, remainder: Remainder) -> list[tuple[Node, int, int | None]] | None:
        """Each sort as one more member, and how many of it there may be; None where the conditions cannot be met."""
        sorts, bounds = self._sorts_at(remainder), remainder.bounds
        counted = {next(iter(sort.effect.counts_in)) for sort in sorts if sort.effect.counts_in}
        if any(low > 0 for i, (low, _) in enumerate(bounds) if i != TOTAL and i not in counted):
            return None
        parts = []
        for sort in sorts:
            low, high = bounds[next(iter(sort.effect.counts_in))] if sort.effect.counts_in else _FREE
            high = _least(high, sort.available)
            if high is not None and high < low:
                return None
            parts.append((self._further(sort.node), low, high))
        return parts

    def _loop(self, start: Remainder) -> None:
        """A node for a remainder and those behind it: a rule for each that is no bag."""
        grammar, loops = self.grammar, self._loops
        steps: dict[Remainder, Steps] = {}
        pending = [start]
        while pending:
            self.check()
            remainder = pending.pop()
            if remainder in loops or remainder in steps:
                continue
            if self._is_bag(remainder):
                self._note_bag(remainder)
                continue
            steps[remainder] = self._steps(self._sorts_at(remainder), remainder)
            self._check(len(loops) + len(steps))
            pending += (after for _, after in steps[remainder])
        alive = self._productive(steps, [each for each, node in loops.items() if node != FAIL], lambda sort: True)
        if self.counts:
            self._certain |= self._with_few(steps)
        else:
            self._certain |= self._productive(steps, self._certain, lambda sort: sort.is_certain)
        rules = {remainder: grammar.rule("members") for remainder in steps if remainder in alive}
        loops |= {remainder: grammar.call(rules[remainder]) if remainder in rules else FAIL for remainder in steps}
        for remainder, rule in rules.items():
            options = self._options(remainder, steps[remainder], loops, is_further=True)
            grammar.define(rule, grammar.alt(EMPTY if self._is_met(remainder) else FAIL, *options))

    def _options(self, remainder: Remainder, steps: Steps, rests: Mapping[Remainder, Node], *, is_further: bool) -> list[Node]:
        """The members that may come next, with all behind them (`rests`), and behind a separator if `is_further`; told apart by
        whether one can be had for certain."""
        if remainder not in self._certain or self.counts:
            lasting = self._lasting_in(self._certain, remainder, steps) if remainder in self._certain else []
            return self._told(steps, lasting, rests, is_further=is_further)
        told = ((sort if sort.is_certain else sort._replace(node=sort.spare), after) for sort, after in steps)
        options = ((self._option(sort.node, rests[after], is_further=is_further), after) for sort, after in told)
        return [node if after in self._certain else self.grammar.spare(node) for node, after in options if node != FAIL]

    def _option(self, member: Node, rest: Node, *, is_further: bool) -> Node:
        return self.grammar.seq(self._further(member), rest) if is_further else self._then(member, rest)

    def _productive(
        self, steps: dict[Remainder, Steps], known: Iterable[Remainder], is_taken: Callable[[Sort], bool]
    ) -> set[Remainder]:
        """The remainders from which sorts of some kind lead to where all is met, or to one of those known."""
        before: dict[Remainder, list[Remainder]] = {}
        for remainder, behind in steps.items():
            for sort, after in behind:
                if is_taken(sort):
                    before.setdefault(after, []).append(remainder)
        pending = [*(each for each in steps if self._is_met(each)), *known]
        found = set(pending)
        while pending:
            fresh = [each for each in before.get(pending.pop(), ()) if each not in found]
            found.update(fresh)
            pending += dict.fromkeys(fresh)
        return found

    # -- items of few texts -------------------------------------------------------------------------------------------

    def _with_few(self, steps: dict[Remainder, Steps]) -> set[Remainder]:
        """The remainders from which what is left for certain leads to where all is met, or to one that is known to be such."""
        found = {*self._certain, *filter(self._is_met, steps)}
        for remainder in sorted(steps, key=_wanted):  # behind each member no more is wanted than before it
            if remainder not in found and self._lasting_in(found, remainder, steps[remainder]):
                found.add(remainder)
        return found

    def _lasting_in(self, certain: Container[Remainder], remainder: Remainder, steps: Steps, before: int = NO_BOUND) -> list[Steps]:
        """What may come next for certain, and leads to what is `certain`: of each of these lists one item is left. Items of few
        texts are left if there are more of them than have come; no more than `before` items have."""
        self.check()
        steps = [(sort, after) for sort, after in steps if after in certain]
        single = [(sort, after) for sort, after in steps if self._is_left(sort, remainder, before)]
        out, told = [[each] for each in single], {sort.node for sort, _ in single}
        for i, (wanted, _) in enumerate(remainder.bounds):
            one_of = [(sort, after) for sort, after in steps if i == TOTAL or i in sort.effect.counts_in]
            come = min(self.conditions[i][0] - wanted, before)
            number = sum([self.counts.get(sort.node, NO_BOUND) for sort, _ in one_of])
            if wanted > 0 and number > come and told.isdisjoint([sort.node for sort, _ in one_of]):
                out.append(one_of)
                told.update(sort.node for sort, _ in one_of)
        return out

    def _is_left(self, sort: Sort, remainder: Remainder, before: int) -> bool:
        """Whether fewer items of a sort have come than there are. A counter that is not done has counted all that have."""
        count = self.counts.get(sort.node)
        if count is None:
            return True
        for i in (TOTAL, *sort.effect.counts_in):
            (low, high), (wanted, allowed) = self.conditions[i], remainder.bounds[i]
            if wanted > 0:
                before = min(before, low - wanted)
            elif high is not None and allowed is not None:
                before = min(before, high - allowed)
        return before < count

    def _told(self, steps: Steps, lasting: list[Steps], rests: Mapping[Remainder, Node], *, is_further: bool) -> list[Node]:
        """The members that may come next, each with what is behind it. Where some do for certain (`_lasting_in`) none of the others
        is counted on, and of those of which one is left it may be the dearest."""
        grammar = self.grammar
        if not lasting:
            return [self._option(sort.node, rests[after], is_further=is_further) for sort, after in steps]
        certain = {sort.node for one_of in lasting for sort, _ in one_of}
        spare = [(sort, after) for sort, after in steps if sort.node not in certain]
        grammar.mixed_arrays |= bool(spare) or len(lasting) < len(certain)  # so that behind a comma it is looked for what is left
        options = [self._option(grammar.spare(sort.node), rests[after], is_further=is_further) for sort, after in spare]
        for one_of in lasting:
            if len(one_of) == 1:
                options.append(self._option(one_of[0][0].node, rests[one_of[0][1]], is_further=is_further))
            else:
                node = grammar.scarce(*(self._then(sort.node, rests[after]) for sort, after in one_of))
                options.append(self._separated(node) if is_further else node)
        return options

    def _merged(self, sorts: list[Sort]) -> list[Sort]:
        """The sorts with one for each effect, and how many members of it exist in all."""
        by_effect: dict[Effect, list[Sort]] = {}
        for sort in sorts:
            if sort.node != FAIL and sort.available != 0 and not sort.watched:
                by_effect.setdefault(sort.effect, []).append(sort)
        return [*map(self._union, by_effect.values()), *(sort for sort in sorts if sort.watched and sort.node != FAIL)]

    def _union(self, sorts: list[Sort]) -> Sort:
        """One sort in place of several with the same effect."""
        if len(sorts) == 1 and sorts[0].available is None:
            return Sort(sorts[0].node, sorts[0].effect, spare=sorts[0].spare or sorts[0].node)
        may_be_used_up = any(sort.is_marked and sort.available is not None for sort in sorts)
        unite = self.grammar.scarce if may_be_used_up else self.grammar.alt
        node, available, effect = unite(*(sort.node for sort in sorts)), _sum(sort.available for sort in sorts), sorts[0].effect
        own_conditions = [i for i in effect.counts_in if i > self.num_needs]
        counted = (self.conditions[i][1] == available for i in own_conditions)
        is_certain = available is None or all(sort.is_certain for sort in sorts) or any(counted)
        spare = self.grammar.alt(*(sort.spare or sort.node for sort in sorts))
        if (count := _sum(self.counts.get(sort.node) for sort in sorts)) is not None:
            self.counts[node] = count
        return Sort(node, effect, available, is_certain=is_certain, spare=spare)

    def _check(self, count: int) -> None:
        if count > MAX_REMAINDERS:
            raise _too_many(f"{count} combinations of counts", MAX_REMAINDERS)


def _too_many(what: str, most: int) -> ConstraintLimit:
    return ConstraintLimit(
        what, limit="counts", value=most, instead="smaller bounds, or fewer keywords that count the same items or members"
    )


def _wanted(remainder: Remainder) -> int:
    return sum([low for low, _ in remainder.bounds])


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
