"""The members of an object under conditions, as the parts of walks (see automaton/member_walks.py).

Conditions that have no member in common are parts of their own, so what has to be remembered is the sum of what each has to. A part
is a decision diagram. Where members come in order, its nodes are those of the diagram; where they come in any order, or the diagram
is small in another order only, it is the family of the sets that may come. Where it would be too large, as much depends on one
member, the cases of this member are told apart: in any order by a family that asks what comes besides, else as alternatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from ....base.kinds import LAST
from ....grammar.expression import EMPTY, FAIL, Grammar, Node
from ....grammar.member_diagrams import Case, MemberDiagrams
from ..algebra.claims import Conj
from ..algebra.formulas import Formula, Has, Joined, Negated, all_of, connected, facts, names_of
from .diagrams import FALSE, MAX_NODES, MAX_WORK, TRUE, WHOLE_NODES, WHOLE_WORK, Diagrams, TooLarge
from .restrictions import Restrictions

MAX_TOGETHER = 200  # of one part
MAX_ALTERNATIVES = 400
_CASE_NODES, _CASE_WORK = 3_000, 200_000  # for a diagram in one case of a member, before another member is told apart
_HUB = 3  # mentions of a member whose cases may be told apart
_STAR, _STAR_SHARE = 8, 4  # mentions of one with that share of all: unless it comes first, what comes before would multiply
_SPLITS = 2  # members in turn whose cases are told apart
_IDLE = 8  # members of which nothing is asked behind the one that decides
_ASKED = 1_200_000  # nodes of a family that asks times cases that it is measured for: one mask, some ten milliseconds

_STEPS = 16  # that a node of a part is counted as
_CASES_OF_STEP = 8  # cases of a member that are compared in one

Parts = tuple[Node, ...]
Known = dict[tuple[int, int], Node]  # what was built, by a diagram and the next member
Option = tuple[Node, int]  # a member of a family, and one of the cases that it stands for
Rests = dict[tuple[Formula, ...], list[int]]  # the cases of a member by what is left of formulas in them; -1 is its absence


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
    """Builds the parts of some members, declared ones in their order first; `check` raises an error when time is over. If
    `are_placed`, they are given in another order, in which diagrams may be small: what `otherwise` tries."""

    def __init__(
        self, grammar: Grammar, build: MemberDiagrams, members: Sequence[Member], check: Callable[[], None],
        otherwise: ConditionalMembers | None = None, *, are_placed: bool = False,
    ) -> None:  # fmt: skip
        self._grammar, self._build, self._members = grammar, build, members
        self._otherwise, self._are_placed = otherwise, are_placed
        self._levels = {member.name: level for level, member in enumerate(members)}
        self._check = check
        self._diagrams = Diagrams(partial(_level_and_truths, members, self._levels), check)  # no cycle: it is freed at once
        self._ordered: Known = {}  # of one group, by the diagram and the next member
        self._texts: dict[tuple[int, ...], Node] = {}  # of a level in some of its cases
        self._groups_known: dict[tuple[tuple[Formula, ...], int], list[Parts]] = {}
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
        if self._otherwise is not None:
            self._otherwise.give_back()

    def free(self, names: Iterable[str]) -> Parts:
        """Members that nothing is asked of, each a part."""
        return self._free(frozenset(map(self._levels.__getitem__, names)))

    def _known_group(self, formulas: tuple[Formula, ...], splits: int) -> list[Parts]:
        key = formulas, splits
        if key not in self._groups_known:
            try:
                self._groups_known[key] = self._of_group(list(formulas), splits)
            except TooLarge:
                if splits < _SPLITS:
                    raise
                self._groups_known[key] = self._one_by_one(list(formulas))
        return self._groups_known[key]

    def _one_by_one(self, formulas: list[Formula]) -> list[Parts]:
        """The alternatives of formulas whose diagram is too large in the order of the members: in another order, or those of each
        part of one that says that any of some parts holds."""
        try:
            if self._otherwise is not None:
                return self._otherwise._of_group(formulas, 0)
        except TooLarge:
            pass
        options = [each for each in formulas if isinstance(each, Joined) and each.how == "any"]
        if not options:
            raise TooLarge
        longest = max(options, key=lambda each: len(each.parts))
        others = [each for each in formulas if each is not longest]
        names = frozenset[str]().union(*map(names_of, formulas))
        out: list[Parts] = []
        for part in longest.parts:
            idle = names - names_of(part).union(*map(names_of, others))
            free = self._free(frozenset(map(self._levels.__getitem__, idle)))
            out += [(*free, *parts) for parts in self.alternatives([part, *others], 0)]
            if len(out) > MAX_ALTERNATIVES:
                raise TooLarge
        return out

    def _of_group(self, formulas: list[Formula], splits: int) -> list[Parts]:
        """The alternatives of formulas that have members in common."""
        mentions = Counter(fact.name for formula in formulas for fact, _ in facts(formula))
        hub, times = mentions.most_common(1)[0] if mentions else ("", 0)
        may_split = splits > 0 and times >= _HUB
        levels = frozenset(self._levels[name] for name in mentions)
        if may_split and times > max(_STAR, mentions.total() // _STAR_SHARE):
            if not self._decides_first(self._levels[hub], levels):
                return self._by_cases(formulas, levels, self._levels[hub], splits - 1)
            if self._levels[hub] == min(levels):
                try:
                    return self._with_first(formulas, levels)
                except TooLarge:
                    pass
        try:
            with self._diagrams.limited(*_room(may_split, splits)):
                return self._whole(formulas, levels)
        except TooLarge:
            if not may_split:
                raise
            if self._otherwise is not None and splits == _SPLITS:
                try:
                    return self._otherwise._of_group(formulas, 0)
                except TooLarge:
                    pass
        return self._by_cases(formulas, levels, self._levels[hub], splits - 1)

    def _decides_first(self, hub: int, levels: frozenset[int]) -> bool:
        """Whether a member comes before nearly all others of some levels."""
        return self._members[hub].position < LAST and sum(level < hub for level in levels) <= _HUB

    def _whole(self, formulas: list[Formula], levels: frozenset[int]) -> list[Parts]:
        if len(levels) > MAX_TOGETHER:
            raise TooLarge
        self._ordered.clear()
        diagram = self._diagrams.all(map(self._diagrams.of, formulas))
        node = (self._in_any_order if self._are_placed else self._in_order)(diagram, tuple(sorted(levels)))
        return [] if node == FAIL else [() if node == EMPTY else (node,)]

    def _by_cases(self, formulas: list[Formula], levels: frozenset[int], level: int, splits: int) -> list[Parts]:
        """The alternatives where the cases of one member are told apart."""
        cases = self._rests(formulas, level)
        if _are_short(cases, len(levels)):
            return self._split(formulas, cases, level, splits)
        if not (self._are_placed or self._build.is_counted or any(self._members[each].position < LAST for each in levels)):
            try:
                return self._asked(cases, level, levels)
            except TooLarge:
                pass
        return self._split(formulas, cases, level, splits)

    def _rests(self, formulas: list[Formula], level: int) -> Rests:
        member = self._members[level]
        restrictions = Restrictions(member.name, member.truth)
        cases: Rests = {}
        for case in range(-1, len(member.texts)):
            self._diagrams.spend(len(formulas))
            rest = tuple([restrictions.of(each, case) for each in formulas])
            if False not in rest:
                cases.setdefault(rest, []).append(case)
        return cases

    def _with_first(self, formulas: list[Formula], levels: frozenset[int]) -> list[Parts]:
        """The part of formulas whose first member decides most: what is left of them falls apart in each of its cases."""
        first = min(levels)
        cases: list[Case] = []
        absent = FAIL
        with self._diagrams.limited(_CASE_NODES, _CASE_WORK):
            for rest, alike in self._rests(formulas, first).items():
                told = frozenset[str]().union(*map(names_of, rest))
                idle = levels - {first} - frozenset(map(self._levels.__getitem__, told))
                if len(idle) > _IDLE:
                    raise TooLarge
                found = self.alternatives(rest, 0)
                parts = (*self._free(idle), *found[0]) if found else (FAIL,)
                if len(found) > 1 or (alike[0] < 0 and len(parts) > 1):
                    raise TooLarge
                if alike[0] < 0:
                    absent = parts[0] if parts else EMPTY
                present = [case for case in alike if case >= 0]
                if present and found:
                    cases.append((self._text(first, present), parts))
        node = self._build.decision(self._members[first].position, cases, absent)
        return [] if node == FAIL else [() if node == EMPTY else (node,)]

    def _split(self, formulas: list[Formula], cases: Rests, level: int, splits: int) -> list[Parts]:
        """An alternative for each of the cases of one member, and for its absence."""
        names = frozenset[str]().union(*map(names_of, formulas)) - {self._members[level].name}
        out: list[Parts] = []
        for rest, alike in cases.items():
            own = self._single(level, [case for case in alike if case >= 0], -1 in alike)
            told = frozenset[str]().union(*map(names_of, rest))
            others = self._free(frozenset(map(self._levels.__getitem__, names - told)))
            out += [(*own, *others, *parts) for parts in self.alternatives(rest, splits)]
            if len(out) > MAX_ALTERNATIVES:
                raise TooLarge
        return out

    def _single(self, level: int, cases: list[int], may_lack: bool) -> Parts:
        """A member by itself, in some of its cases; no part where there are none."""
        if not cases:
            return ()
        return (self._one(level, self._text(level, cases), may_lack),)

    def _free(self, levels: frozenset[int]) -> Parts:
        """Members that nothing is asked of any more, each a part."""
        cases = {level: range(len(self._members[level].texts)) for level in sorted(levels)}
        return tuple(self._one(level, self._text(level, every), True) for level, every in cases.items() if every)

    def _one(self, level: int, text: Node, may_lack: bool) -> Node:
        return self._build.decision(self._members[level].position, [(text, ())], EMPTY if may_lack else FAIL)

    def _text(self, level: int, cases: Sequence[int]) -> Node:
        key = (level, *cases)
        known = self._texts.get(key)
        if known is None:
            member = self._members[level]
            is_whole = len(cases) == len(member.texts)
            text = member.whole if is_whole else self._grammar.alt(*[member.texts[case] for case in cases])
            known = self._texts[key] = self._build.member(text)
        return known

    # -- asked of members of other parts -----------------------------------------------------------------------------

    def _asked(self, cases: Rests, hub: int, levels: frozenset[int]) -> list[Parts]:
        """Members in any order, each a part, and a family that asks for each of the cases of one of them what comes besides."""
        with self._diagrams.limited(WHOLE_NODES, WHOLE_WORK):
            diagrams = [self._diagrams.all(map(self._diagrams.of, rest)) for rest in cases]
            nodes = self._diagrams.nodes_of(*diagrams)
            alike = self._cases_alike(nodes)
            alike[hub] = [[case for case in each if case >= 0] for each in cases.values()]
            options = {level: self._options(level, alike.get(level)) for level in sorted(levels)}
            if (len(nodes) + len(cases)) * sum(map(len, options.values())) > _ASKED:
                raise TooLarge
            with_cases = (level for level, told in options.items() if told and level != hub)
            places = {level: place for place, level in enumerate((hub, *with_cases))}
            known: dict[int, Node] = {FALSE: FAIL, TRUE: EMPTY}
            absent, present = FAIL, dict[Node, Node]()
            for diagram, told in zip(diagrams, cases.values(), strict=True):
                node = self._question(diagram, options, places, known)
                if told[0] < 0:
                    absent = node
                if told[-1] >= 0:
                    present[self._text(hub, [case for case in told if case >= 0])] = node
            if len(present) < sum(map(bool, alike[hub])):
                raise TooLarge  # cases with the same texts
        asked = self._build.choice(places[hub], present, absent)
        texts = [dict.fromkeys([text for text, _ in each]) for each in options.values() if each]
        parts = [self._build.decision(LAST, [(text, ()) for text in each], EMPTY) for each in texts]
        return [] if asked == FAIL else [(*parts, asked) if asked != EMPTY else tuple(parts)]

    def _options(self, level: int, alike: list[list[int]] | None) -> list[Option]:
        """The cases of a member that are told apart."""
        parted = [list(range(len(self._members[level].texts)))] if alike is None else alike
        return [(self._text(level, cases), cases[0]) for cases in parted if cases]

    def _question(
        self, diagram: int, options: Mapping[int, list[Option]], places: Mapping[int, int], known: dict[int, Node]
    ) -> Node:
        """A diagram as a family that asks; places: of the levels among those of the family."""
        node = known.get(diagram)
        if node is None:
            self._diagrams.spend(_STEPS)
            level = self._diagrams.level(diagram)
            absent, *present = self._diagrams.children(diagram, level, 0)
            left: dict[Node, int] = {}
            for text, case in options[level]:  # cases that are not exclusive may have the same text
                left[text] = self._diagrams.any([left[text], present[case]]) if text in left else present[case]
            asked = {text: self._question(below, options, places, known) for text, below in left.items()}
            otherwise = self._question(absent, options, places, known)
            node = known[diagram] = self._build.choice(places[level], asked, otherwise)
        return node

    # -- in order -----------------------------------------------------------------------------------------------------

    def _in_order(self, diagram: int, levels: tuple[int, ...], start: int = 0) -> Node:
        """The part of members that come in order, from the one at `start` on, and then of those that come in any."""
        if diagram == FALSE:
            return FAIL
        if start == len(levels):
            return EMPTY
        level = levels[start]
        if self._members[level].position == LAST:
            return self._in_any_order(diagram, levels[start:])
        known = self._ordered.get((diagram, start))
        if known is None:
            self._diagrams.spend(_STEPS)
            member = self._members[level]
            absent, *present = self._diagrams.children(diagram, level, 1 + len(member.texts))
            by_rest: dict[int, list[int]] = {}
            for case, rest in enumerate(present):
                if rest != FALSE:
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

    def _in_any_order(self, diagram: int, levels: tuple[int, ...]) -> Node:
        """The sets of members of some levels of which a diagram is true, as a family."""
        alike = self._cases_alike(self._diagrams.nodes_of(diagram))
        texts: list[list[Option]] = []
        for level in levels:
            parted = alike.get(level, [list(range(len(self._members[level].texts)))])
            texts.append([(self._in_place(level, cases), cases[0]) for cases in parted if cases][::-1])
        known: Known = {(FALSE, place): FAIL for place in range(len(levels) + 1)}
        known[TRUE, len(levels)] = EMPTY
        return self._family(diagram, 0, levels, texts, known)

    def _family(self, diagram: int, place: int, levels: tuple[int, ...], texts: list[list[Option]], known: Known) -> Node:
        """The sets of members of the levels from a place on. texts: of each level, last ones first, with a case that has each."""
        self._diagrams.spend(_STEPS)
        absent, *present = self._diagrams.children(diagram, levels[place], 1 + len(self._members[levels[place]].texts))
        left = {text: present[case] for text, case in texts[place]}
        if len(left) < len(texts[place]):  # cases that are not exclusive may have the same text
            left = {text: self._diagrams.any([present[case] for each, case in texts[place] if each == text]) for text in left}
        place += 1
        node = known.get((absent, place))
        if node is None:
            node = self._family(absent, place, levels, texts, known)
        for text, diagram_with in left.items():
            with_it = known.get((diagram_with, place))
            if with_it is None:
                with_it = self._family(diagram_with, place, levels, texts, known)
            node = self._build.family(text, with_it, node)
        known[diagram, place - 1] = node
        return node

    def _in_place(self, level: int, cases: Sequence[int]) -> Node:
        """A member of a family, in some cases."""
        text = self._text(level, cases)
        return self._build.placed(text, self._members[level].position) if self._are_placed else text

    def _cases_alike(self, nodes: Iterable[int]) -> dict[int, list[list[int]]]:
        """The cases of each level that some nodes depend on, those together that always lead to the same."""
        found: dict[int, list[list[int]]] = {}
        for below in nodes:
            level = self._diagrams.level(below)
            _, *children = self._diagrams.children(below, level, 0)
            self._diagrams.spend(1 + len(children) // _CASES_OF_STEP)
            parted: list[list[int]] = []
            for cases in found.get(level, [list(range(len(children)))]):
                by_child: dict[int, list[int]] = {}
                for case in cases:
                    by_child.setdefault(children[case], []).append(case)
                parted += by_child.values()
            found[level] = parted
        return found


def _are_short(cases: Rests, count: int) -> bool:
    """Whether in each of the cases of one of `count` members what is left is about members by themselves, most of which may not
    come: lists of the others are shorter than what would be asked about all."""
    parts = 0
    for rest in cases:
        told = all_of(rest)
        parts += count
        for each in told.parts if isinstance(told, Joined) and told.how == "all" else (told,):
            if len(names_of(each)) > 1:
                return False
            parts -= isinstance(each, Negated) and isinstance(each.part, Has) and not each.part.conj
    return 2 * parts <= count * len(cases) and parts <= _IDLE * len(cases) and len(cases) <= MAX_ALTERNATIVES


def _room(may_split: bool, splits: int) -> tuple[int, int]:
    """Nodes and steps for a diagram before it is given up."""
    if not may_split:
        return MAX_NODES, MAX_WORK
    return (WHOLE_NODES, WHOLE_WORK) if splits == _SPLITS else (_CASE_NODES, _CASE_WORK)


def _level_and_truths(members: Sequence[Member], levels: Mapping[str, int], fact: Has) -> tuple[int, Sequence[bool]]:
    """The level of a member, and whether a fact about it is true without it and in each of its cases."""
    level = levels[fact.name]
    member = members[level]
    return level, [member.truth(fact, case) for case in range(-1, len(member.texts))]
