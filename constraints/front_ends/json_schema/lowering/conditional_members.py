"""The members of an object under conditions, as the parts of walks (see automaton/member_walks.py).

Conditions that have no member in common are parts of their own, so what has to be remembered is the sum of what each has to. A part
is a decision diagram. Where members come in order, its nodes are those of the diagram; where they come in any order, each node is
what is left to be met behind some members, and falls apart again where that has become independent. Where one diagram would be too
large, as much depends on one member, the cases of this member are taken as alternatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from typing import NamedTuple

from ....grammar.expression import EMPTY, FAIL, Grammar, Node
from ....grammar.member_diagrams import LAST, Case, MemberDiagrams
from ..algebra.claims import Conj, Fact, Formula, Has
from ..algebra.formulas import connected, facts, given, names_of
from .diagrams import FALSE, MAX_NODES, MAX_WORK, TRUE, Diagrams, TooLarge, Way

MAX_STATES = 4_000  # ways to go on with the members of one part in any order
MAX_TOGETHER = 200  # of one part
MAX_ALTERNATIVES = 400
_FIRST_NODES, _FIRST_WORK = 3_000, 200_000  # for a diagram, before alternatives are tried
_HUB = 3  # mentions of a member whose cases may be told apart
_STAR, _STAR_SHARE = 8, 4  # mentions of one with that share of all: unless it comes first, what comes before would multiply
_FEW_LEVELS = 12  # of which no more than thousands of sets may come
_FEW_NODES, _FEW_WORK = 2_000, 40_000  # for members in any order, where there are few ways
_SPLITS = 2  # members in turn whose cases are told apart

_STEPS = 16  # that a node of a part is counted as

Parts = tuple[Node, ...]
Index = dict[int, list[int]]  # diagrams by the levels that they depend on


class Member(NamedTuple):
    """A member that has conditions: its place, its texts by case, and which conjunctions its value satisfies in each case."""

    name: str
    position: int
    texts: tuple[Node, ...]
    truths: tuple[dict[Conj, bool], ...]
    whole: Node  # its texts in all cases together

    def truth(self, fact: Has, case: int) -> bool:
        """Whether a fact about it holds in a case; -1: without it."""
        return case >= 0 and (not fact.conj or self.truths[case][fact.conj])


class ConditionalMembers:
    """Builds the parts of some members, declared ones in their order first. `together(names)` are the texts of members of several
    names, None where these are no names; `check` raises an error when time is over."""

    def __init__(
        self, grammar: Grammar, build: MemberDiagrams, members: Sequence[Member], together: Callable[[list[str]], Node | None],
        check: Callable[[], None],
    ) -> None:  # fmt: skip
        self._grammar, self._build, self._members, self._together = grammar, build, members, together
        self.is_remembered = False  # whether some are counted together, so that none may come twice
        self._levels = {member.name: level for level, member in enumerate(members)}
        self._check = check
        self._diagrams = Diagrams(partial(_level_and_truths, members, self._levels), check)  # no cycle: it is freed at once
        self._ordered: dict[tuple[int, int], Node] = {}  # of one group, by the diagram and the next member
        self._unordered: dict[tuple[frozenset[int], frozenset[int]], Node] = {}
        self._left: dict[tuple[frozenset[int], frozenset[int]], Parts | None] = {}
        self._known_certain: dict[tuple[int, int], Node] = {}
        self._groups_known: dict[tuple[tuple[Formula, ...], int], list[Parts]] = {}
        self._states = 0
        for level in reversed(range(len(members))):  # made before what may stand before them in lists, and last ones first
            if members[level].position == LAST and members[level].texts:
                text = self._text(level, range(len(members[level].texts)))
                self._one(level, text, False)
                self._one(level, text, True)

    def alternatives(self, formulas: Iterable[Formula], splits: int = _SPLITS) -> list[Parts]:
        """Lists of parts, one of which is met where all formulas hold."""
        each = [self._known_group(tuple(group), splits) for group in connected(formulas)]
        count = 1
        for options in each:
            count *= len(options)
        if count > MAX_ALTERNATIVES:
            raise TooLarge
        return [tuple(part for parts in choice for part in parts) for choice in product(*each)]

    def give_back(self) -> None:
        """All alternatives have been asked for."""
        self._diagrams.give_back()

    def free(self, names: Iterable[str]) -> Parts:
        """Members that nothing is asked of, each a part."""
        return self._free(frozenset(map(self._levels.__getitem__, names)))

    def _known_group(self, formulas: tuple[Formula, ...], splits: int) -> list[Parts]:
        key = formulas, splits
        if key not in self._groups_known:
            self._groups_known[key] = self._of_group(list(formulas), splits)
        return self._groups_known[key]

    def _of_group(self, formulas: list[Formula], splits: int) -> list[Parts]:
        """The alternatives of formulas that have members in common."""
        mentions = Counter(fact.name for formula in formulas for fact, _ in facts(formula))
        hub, times = mentions.most_common(1)[0] if mentions else ("", 0)
        may_split = splits > 0 and times >= _HUB
        levels = frozenset(self._levels[name] for name in mentions)
        if may_split and times > max(_STAR, mentions.total() // _STAR_SHARE) and not self._decides_first(self._levels[hub], levels):
            return self._split(formulas, self._levels[hub], splits - 1)
        try:
            with self._diagrams.limited(*((_FIRST_NODES, _FIRST_WORK) if may_split else (MAX_NODES, MAX_WORK))):
                self._states = 0
                return self._whole(formulas, levels)
        except TooLarge:
            if not may_split:
                raise
        return self._split(formulas, self._levels[hub], splits - 1)

    def _decides_first(self, hub: int, levels: frozenset[int]) -> bool:
        """Whether a member comes before nearly all others of some levels."""
        return self._members[hub].position < LAST and sum(level < hub for level in levels) <= _HUB

    def _whole(self, formulas: list[Formula], levels: frozenset[int]) -> list[Parts]:
        if len(levels) > MAX_TOGETHER:
            raise TooLarge
        diagrams = [self._diagrams.of(formula) for formula in formulas]
        if all(self._members[level].position == LAST for level in levels):
            return self._whole_in_any_order(diagrams, levels)
        self._ordered.clear()
        node = self._in_order(self._diagrams.all(diagrams), tuple(sorted(levels)))
        return [] if node == FAIL else [() if node == EMPTY else (node,)]

    def _whole_in_any_order(self, diagrams: list[int], levels: frozenset[int]) -> list[Parts]:
        """The alternatives where members come in any order: one, or where what comes may be any set of many and yet there is one
        number, or few ways, that are right, those."""
        found = self._counts_or_ways(diagrams, levels) if len(levels) > _FEW_LEVELS else None
        if isinstance(found, list):
            return found
        try:
            with self._diagrams.limited(*((_FEW_NODES, _FEW_WORK) if found else (MAX_NODES, MAX_WORK))):
                left = self._left_in_any_order(frozenset(), frozenset(diagrams), levels, {})
                return [] if left is None else [left]
        except TooLarge:
            if found is None:
                raise
        return [self._way(way, levels) for way in found]

    def _counts_or_ways(self, diagrams: list[int], levels: frozenset[int]) -> list[Parts] | tuple[Way, ...] | None:
        """The alternatives, if all that matters is how many members come; else the ways through one diagram, if these are few."""
        try:
            with self._diagrams.limited(_FIRST_NODES, _FIRST_WORK):
                whole = self._diagrams.all(diagrams)
                truths = self._diagrams.by_count(whole, lambda level: len(self._members[level].texts))
                ways = self._diagrams.ways(whole, MAX_ALTERNATIVES) if truths is None else None
        except TooLarge:
            return None
        counted = sorted(self._diagrams.support(whole))
        text = self._together([self._members[level].name for level in counted]) if truths is not None else None
        if truths is None or text is None:
            return None if ways is None else tuple(ways)
        self.is_remembered = True
        member, free = self._build.member(text), self._free(levels.difference(counted))
        return [(self._build.counted(member, low, high), *free) for low, high in _runs(truths)]

    def _way(self, way: Way, levels: frozenset[int]) -> Parts:
        """The parts of one way through a diagram."""
        cases = ((level, [child - 1 for child in through if child], 0 in through) for level, through in way)
        parts = [part for case in cases for part in self._single(*case)]
        return (*parts, *self._free(levels.difference(level for level, _ in way)))

    def _split(self, formulas: list[Formula], level: int, splits: int) -> list[Parts]:
        """An alternative for each case of one member, and for its absence."""
        member = self._members[level]
        asked = [(each, [fact for fact, _ in facts(each) if fact.name == member.name]) for each in formulas]
        known: dict[tuple[int, tuple[bool, ...]], Formula] = {}  # what is left of a formula, by what is true of the member
        cases: dict[tuple[Formula, ...], list[int]] = {}
        for case in range(-1, len(member.texts)):
            self._diagrams.spend(len(formulas))
            rest = tuple(self._given(number, *each, member, case, known) for number, each in enumerate(asked))
            if False not in rest:
                cases.setdefault(rest, []).append(case)
        names = frozenset[str]().union(*map(names_of, formulas)) - {member.name}
        out: list[Parts] = []
        for rest, alike in cases.items():
            own = self._single(level, [case for case in alike if case >= 0], -1 in alike)
            told = frozenset[str]().union(*map(names_of, rest))
            others = self._free(frozenset(map(self._levels.__getitem__, names - told)))
            out += [(*own, *others, *parts) for parts in self.alternatives(rest, splits)]
            if len(out) > MAX_ALTERNATIVES:
                raise TooLarge
        return out

    def _given(
        self, number: int, formula: Formula, asked: list[Has], member: Member, case: int,
        known: dict[tuple[int, tuple[bool, ...]], Formula],
    ) -> Formula:  # fmt: skip
        """What is left of a formula in one case of a member, of which it asks some facts."""
        truths = tuple(member.truth(fact, case) for fact in asked)
        if (number, truths) not in known:
            told: dict[Fact, bool] = dict(zip(asked, truths, strict=True))
            known[number, truths] = given(formula, told.get)
        return known[number, truths]

    def _single(self, level: int, cases: list[int], may_lack: bool) -> Parts:
        """A member by itself, in some of its cases; no part where there are none."""
        if not cases:
            return ()
        return (self._one(level, self._text(level, cases), may_lack),)

    def _certain(self, level: int, child: int) -> Node:
        """A member that has to come, in one case."""
        known = self._known_certain.get((level, child))
        if known is None:
            known = self._known_certain[level, child] = self._one(level, self._text(level, [child - 1]), False)
        return known

    def _free(self, levels: frozenset[int]) -> Parts:
        """Members that nothing is asked of any more, each a part."""
        cases = {level: range(len(self._members[level].texts)) for level in sorted(levels)}
        return tuple(self._one(level, self._text(level, every), True) for level, every in cases.items() if every)

    def _one(self, level: int, text: Node, may_lack: bool) -> Node:
        return self._build.decision(self._members[level].position, [(text, ())], EMPTY if may_lack else FAIL)

    def _text(self, level: int, cases: Sequence[int]) -> Node:
        member = self._members[level]
        is_whole = len(cases) == len(member.texts)
        return self._build.member(member.whole if is_whole else self._grammar.alt(*(member.texts[case] for case in cases)))

    # -- in order -----------------------------------------------------------------------------------------------------

    def _in_order(self, diagram: int, levels: tuple[int, ...], start: int = 0) -> Node:
        """The part of members that come in order, from the one at `start` on, and then of those that come in any."""
        if diagram == FALSE:
            return FAIL
        if start == len(levels):
            return EMPTY
        level = levels[start]
        if self._members[level].position == LAST:
            return self._node_in_any_order(frozenset((diagram,)) - {TRUE}, frozenset(levels[start:]))
        known = self._ordered.get((diagram, start))
        if known is None:
            self._diagrams.spend(_STEPS)
            member = self._members[level]
            absent, *present = self._diagrams.children(diagram, level, 1 + len(member.texts))
            by_rest: dict[int, list[int]] = {}
            for case, rest in enumerate(present):
                by_rest.setdefault(rest, []).append(case)
            cases: list[Case] = []
            for rest, alike in by_rest.items():
                node = self._in_order(rest, levels, start + 1)
                if node != FAIL:
                    cases.append((self._text(level, alike), () if node == EMPTY else (node,)))
            known = self._build.decision(member.position, cases, self._in_order(absent, levels, start + 1))
            self._ordered[diagram, start] = known
        return known

    # -- in any order -------------------------------------------------------------------------------------------------

    def _left_in_any_order(
        self, others: frozenset[int], changed: frozenset[int], levels: frozenset[int], index: Index
    ) -> Parts | None:
        """The parts of what is left to be met, of which each has members of its own; None where it cannot be met.

        others: diagrams that settle nothing by themselves, and more of which `index` has; changed: the other ones.
        """
        key = (others | changed, levels)
        if key not in self._left:
            self._left[key] = self._new_left(others, changed - {TRUE}, levels, index)
        return self._left[key]

    def _new_left(
        self, others: frozenset[int], changed: frozenset[int], levels: frozenset[int], index: Index
    ) -> Parts | None:
        self._diagrams.spend(len(others) + len(changed) + len(levels))
        diagrams, settled = self._settled(others, changed, index)
        if FALSE in diagrams:
            return None
        parts = [self._certain(level, child) for level, child in settled.items() if child]
        free = levels.difference(settled)
        for group in self._groups(diagrams):
            support = frozenset[int]().union(*map(self._diagrams.support, group))
            node = self._node_in_any_order(group, support)
            if node == FAIL:
                return None
            parts += [] if node == EMPTY else [node]
            free -= support
        return (*parts, *self._free(free))

    def _settled(self, others: frozenset[int], changed: frozenset[int], index: Index) -> tuple[frozenset[int], dict[int, int]]:
        """What is left of diagrams where some members can only come in one case, or not at all, and the child of each of these."""
        settled: dict[int, int] = {}
        support = self._diagrams.support
        pending = [each for each in changed if len(support(each)) == 1]
        if not pending:
            return others | changed, settled
        left = {*others, *changed}
        fresh = self._index(changed)
        while pending:
            diagram = pending.pop()
            (level,) = support(diagram)
            children = self._diagrams.children(diagram, level, 0)
            if diagram not in left or children.count(TRUE) != 1:
                continue
            settled[level] = child = children.index(TRUE)
            for each in [each for each in {*index.get(level, ()), *fresh.pop(level, ())} if each in left]:
                rest = self._diagrams.given(each, level, child)
                left.remove(each)
                if rest != TRUE and rest not in left:
                    left.add(rest)
                    for other in support(rest):
                        fresh.setdefault(other, []).append(rest)
                    pending += [rest] if len(support(rest)) == 1 else []
        return frozenset(left), settled

    def _index(self, diagrams: Iterable[int]) -> Index:
        """The diagrams that depend on each level."""
        index: Index = {}
        for each in diagrams:
            for level in self._diagrams.support(each):
                index.setdefault(level, []).append(each)
        return index

    def _groups(self, diagrams: frozenset[int]) -> list[frozenset[int]]:
        """The diagrams in groups of which no two depend on the same member."""
        above: dict[int, int] = {}  # another member of the same group, nearer to the one that stands for it

        def first(level: int) -> int:
            while (other := above.setdefault(level, level)) != level:
                above[level] = level = above[other]
            return level

        members = {diagram: [*self._diagrams.support(diagram)] for diagram in sorted(diagrams)}
        for one, *others in members.values():
            for level in others:
                above[first(level)] = first(one)
        groups: dict[int, list[int]] = {}
        for diagram, (one, *_) in members.items():
            groups.setdefault(first(one), []).append(diagram)
        return list(map(frozenset, groups.values()))

    def _node_in_any_order(self, diagrams: frozenset[int], levels: frozenset[int]) -> Node:
        """One part for all members of some levels."""
        if len(levels) == 1:
            return self._single_left(diagrams, next(iter(levels)))
        known = self._unordered.get((diagrams, levels))
        if known is None:
            known = self._unordered[diagrams, levels] = self._new_node(diagrams, levels)
        return known

    def _single_left(self, diagrams: frozenset[int], level: int) -> Node:
        count = 1 + len(self._members[level].texts)
        absent, *present = [
            all(self._diagrams.children(each, level, count)[child] == TRUE for each in diagrams) for child in range(count)
        ]
        cases = [case for case, holds in enumerate(present) if holds]
        if not cases:
            return EMPTY if absent else FAIL
        return self._one(level, self._text(level, cases), absent)

    def _new_node(self, diagrams: frozenset[int], levels: frozenset[int]) -> Node:
        self._states += 1
        if self._states > MAX_STATES:
            raise TooLarge
        node = EMPTY if self._may_end(diagrams) else FAIL
        index = self._index(diagrams)
        for level in sorted(levels, reverse=True):
            touched = index.get(level, [])
            others = diagrams.difference(touched)
            by_rest: dict[frozenset[int], list[int]] = {}
            for case in range(len(self._members[level].texts)):
                self._diagrams.spend(len(diagrams))
                rest = frozenset(self._diagrams.given(each, level, 1 + case) for each in touched)
                by_rest.setdefault(rest, []).append(case)
            cases: list[Case] = []
            for rest, alike in by_rest.items():
                left = self._left_in_any_order(others, rest, levels - {level}, index)
                if left is not None:
                    cases.append((self._text(level, alike), left))
            node = self._build.decision(LAST, cases, node)
        return node

    def _may_end(self, diagrams: frozenset[int]) -> bool:
        """Whether all hold without any more members."""
        return all(self._diagrams.without_members(each) for each in diagrams)


def _level_and_truths(members: Sequence[Member], levels: Mapping[str, int], fact: Has) -> tuple[int, Sequence[bool]]:
    """The level of a member, and whether a fact about it is true without it and in each of its cases."""
    level = levels[fact.name]
    member = members[level]
    return level, [member.truth(fact, case) for case in range(-1, len(member.texts))]


def _runs(truths: list[bool]) -> Iterator[tuple[int, int]]:
    """The first and last index of each row of what is true."""
    start = 0
    for holds, alike in groupby(truths):
        end = start + len(list(alike))
        if holds:
            yield start, end - 1
        start = end
