"""Object shapes as grammar nodes: which members there may be at each place, as a series (see series.py).

Declared names come first, in their order, each with a stage of its own. Members of other names come in any order: those that some
condition singles out, and classes of all the rest by the tests on names that they pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ....grammar.expression import FAIL, Event, Grammar, Node
from ..algebra.claims import Claim, Conj, Keys, NameTest
from ..algebra.clauses import FEW_CLAUSES, Clause, Need, formula_of
from ..algebra.formulas import Formula, Has, any_of
from ..algebra.names import Names
from ..algebra.shapes import ObjectShape
from ..documents.values import string_text
from ..strings.text import JsonText
from .conditional_objects import MAX_SINGLE, ConditionalObjects
from .containers import bounds_of
from .diagrams import TooLarge
from .other_members import OtherMembers, Others
from .series import TOTAL, Bounds, Effect, Series, Sort, Stage
from .variants import NO_EFFECT, CasesOf, Watches, Where

MAX_FOLLOWED: Final = 8  # states of some clauses behind members in any order
MAX_APART: Final = 256  # ways in which required members may come, by their cases, that are told apart
MAX_OPTIONS: Final = 16  # of a clause, that are told apart where they might be a diagram
MAX_CLAUSES: Final = 16  # that are followed one by one where they have no small diagram
MAX_WITNESSES: Final = 7  # kinds of members of other names that meet different needs beside conditions


class _Member(NamedTuple):
    """The values of a member: in all, and by case."""

    name: str
    value: Conj
    cases: dict[Effect, Node]


class Objects:
    """Builds the texts of objects.

    `node_of(conj)` gives the texts of a value, FAIL when there is none; `stand_together(conjs)` is told what may begin in one
    place; `lacks_values(claims)` proves that no value satisfies them, `are_apart(conjs)` that none satisfies two of them;
    `cases_of` tells cases of values apart; `values_of(conj)` lists values where a conjunction is a list of them; `explain` takes
    reasons why there is no object; `check` raises an error when time is over.
    """

    def __init__(
        self, grammar: Grammar, text: JsonText, names: Names, node_of: Callable[[Conj], Node],
        stand_together: Callable[[list[Conj]], None], conjoin: Callable[[Iterable[Claim]], Conj],
        lacks_values: Callable[[list[Claim]], bool], are_apart: Callable[[list[Conj]], bool],
        cases_of: CasesOf, values_of: Callable[[Conj], Mapping[str, Any] | None], is_ordered: bool,
        explain: Callable[[str], None], check: Callable[[], None],
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._names, self._node_of = grammar, text, names, node_of
        self._stand_together, self._conjoin, self._lacks_values = stand_together, conjoin, lacks_values
        self._are_apart, self._is_ordered, self._explain, self._check = are_apart, is_ordered, explain, check
        self._cases_of = cases_of
        self._conditionals = ConditionalObjects(
            grammar, text, node_of, stand_together, conjoin, lacks_values, cases_of, values_of, explain, check, self._tree
        )  # fmt: skip
        self._other_members = OtherMembers(grammar, text, names, node_of)
        self._known: dict[Hashable, Node] = {}  # by what they mean: different terms often come to the same

    def forget(self) -> None:
        """Forget all nodes: some values turned out not to exist, so everything is built anew."""
        self._known.clear()

    def object(self, shape: ObjectShape) -> Node:
        meaning = _meaning(shape)
        known = None if meaning is None else self._known.get(meaning)
        if known is None:
            known = self._new_object(shape)
            if meaning is not None:
                self._known[meaning] = known
        return known

    def told_apart(self, shape: ObjectShape) -> Clause:
        """The clause whose options are better taken one by one; none, where following all clauses side by side is cheap.

        What members in any order have made impossible multiplies, and so does how many are left where there are only so many.
        """
        if not shape.clauses:
            return ()
        names = shape.named.keys() - (shape.declared if self._is_ordered else ())
        absences = [sum(option.high == 0 and option.keys.single in names for option in clause) for clause in shape.clauses]
        remainders, ways = 2 ** sum(absences), math.prod(map(len, shape.clauses))
        if len(names) * remainders > MAX_FOLLOWED and self._node_of(shape.value(None, frozenset())) == FAIL:
            num_required = len(shape.required.keys() & names)
            remainders *= (num_required + 1) * (len(names) - num_required + 1)
        widest = max(range(len(absences)), key=absences.__getitem__)
        return shape.clauses[widest] if remainders > max(MAX_FOLLOWED, ways) else ()

    def _new_object(self, shape: ObjectShape) -> Node:
        grammar = self._grammar
        tests = shape.tests
        named = dict.fromkeys([*shape.named, *self._names.listed(tests)])
        in_order = dict.fromkeys(shape.declared) if self._is_ordered else {}
        watches = Watches(shape.needs, shape.clauses, self._conjoin, self._lacks_values, self._are_apart, self._cases_of)
        series = Series(
            grammar, self._text.gap, self._text.comma, self._check, conditions=[(0, None), *bounds_of(shape.needs)],
            num_needs=len(shape.needs), clauses=watches.clauses, absences=watches.absences,
        )  # fmt: skip
        series.stages = [self._stage(shape, name, tests, watches) for name in in_order]
        members = [self._member(shape, name, tests, watches) for name in named if name not in in_order]
        missing = [name for name, stage in zip(in_order, series.stages, strict=True) if not (stage.may_skip or stage.sorts)]
        missing += [member.name for member in members if member.name in shape.required and not member.cases]
        if missing:
            self._explain(f"the required member {missing[0]!r} admits no value")
            return FAIL
        others = self._others(shape, tests, named, watches)
        count = self._add_in_any_order(shape, members, others, series, watches)
        series.conditions[TOTAL] = _total(shape, series, count)
        return self._whole(series)

    def conditional(self, shape: ObjectShape) -> Node | None:
        """The texts of objects under conditions on single members, where these are to be followed as decision diagrams.

        None where there are other conditions too, and where there are so few that they need not be, or clauses that had better not.
        """
        if not (shape.conditions or len(shape.clauses) > FEW_CLAUSES or len(self.told_apart(shape)) > MAX_OPTIONS):
            return None
        is_closed = not shape.tests and self._node_of(shape.value(None, frozenset())) == FAIL
        names = list(shape.named) if is_closed else None
        formulas = [*shape.conditions, *(formula_of(clause, names) for clause in shape.clauses)]
        told = [formula for formula in formulas if formula is not None]
        if len(told) < len(formulas):
            return None
        try:
            return self._conditional(shape, told)
        except TooLarge:
            if shape.conditions or len(shape.clauses) > MAX_CLAUSES:
                raise
            return None

    def _conditional(self, shape: ObjectShape, formulas: list[Formula]) -> Node | None:
        tests = shape.tests
        named = dict.fromkeys([*shape.named, *self._names.listed(tests)])
        passed = {name: self._passed(name, tests) for name in named}
        values = {name: shape.value(name, passed[name]) for name in named}
        watches = Watches(shape.needs, (), self._conjoin, self._lacks_values, self._are_apart, self._cases_of)
        others = self._others(shape, tests, named, watches)
        witnesses = _witnesses(shape.needs, others, named)
        if witnesses is None:
            return None
        for number, need in enumerate(shape.needs, TOTAL + 1):
            of_names = [Has(name, need.conj) for name in named if need.keys.admits(name, passed[name])]
            formulas = [*formulas, any_of([*of_names, *(Has(name, ()) for name, told in witnesses if number in told.counts_in)])]
        texts = {name: self._grammar.alt(*(each.texts.get(told, FAIL) for each in others)) for name, told in witnesses}
        in_order = list(dict.fromkeys(shape.declared)) if self._is_ordered else []
        counted = [(each.whole, each.available) for each in others]
        return self._conditionals.node(shape, formulas, values, in_order, counted, texts)

    def in_any_order(self, values: dict[str, Node], required: frozenset[str], other: Node) -> Node:
        """The texts of objects with members of given names, FAIL for those that there are not, and of others, where these are."""
        series = Series(self._grammar, self._text.gap, self._text.comma, self._check)
        members = [_Member(name, (), {NO_EFFECT: value}) for name, value in values.items() if value != FAIL]
        self._add_names([member for member in members if member.name in required], True, series)
        self._add_names([member for member in members if member.name not in required], False, series)
        key, available = self._names.key(frozenset(), [], list(values)) if other != FAIL else (FAIL, None)
        if key != FAIL:
            series.sorts.append(Sort(self._pair(key, other), NO_EFFECT, available, is_marked=True))
        return self._whole(series)

    def _whole(self, series: Series) -> Node:
        """The texts of objects, for the series of their members."""
        grammar, is_remembered = self._grammar, any(sort.is_marked for sort in series.sorts)
        series.end = grammar.mark(b"}", Event.OBJECT_CLOSE) if is_remembered else grammar.literal("}")
        opening = grammar.mark(b"{", Event.OBJECT_OPEN) if is_remembered else grammar.literal("{")
        return grammar.seq(opening, self._text.gap, series.node())

    # -- one member ---------------------------------------------------------------------------------------------------

    def _stage(self, shape: ObjectShape, name: str, tests: list[NameTest], watches: Watches) -> Stage:
        member = partial(self._text.member, name)
        if not watches:
            node = self._node_of(shape.value(name, self._passed(name, tests)))
            return Stage(() if node == FAIL else (Sort(member(node)),), name not in shape.required)
        _, value, cases = self._member(shape, name, tests, watches)
        sorts = tuple(Sort(member(node), effect) for effect, node in cases.items())
        plain = (Sort(member(self._node_of(value))),) if len(cases) > 1 and watches.may_settle else ()
        return Stage(sorts, name not in shape.required, skipped=watches.without(name), plain=plain)

    def _member(self, shape: ObjectShape, name: str, tests: list[NameTest], watches: Watches) -> _Member:
        passed = self._passed(name, tests)
        value = shape.value(name, passed)
        return _Member(name, value, self._cases(value, watches, partial(_is_meant, name, passed), name))

    def _passed(self, name: str, tests: list[NameTest]) -> frozenset[NameTest]:
        return self._names.passed(name, tests) if tests else frozenset()

    def _cases(
        self, value: Conj, watches: Watches, is_meant: Callable[[Where], bool], name: str | None = None
    ) -> dict[Effect, Node]:
        if not watches:
            return {} if (node := self._node_of(value)) == FAIL else {NO_EFFECT: node}
        variants = watches.variants(value, is_meant, name)
        if len(variants) > 1:
            self._stand_together([value, *(each.conj for each in variants)])
        nodes: dict[Effect, list[Node]] = {}
        for conj, effect, _ in variants:
            if (node := self._node_of(conj)) != FAIL:
                nodes.setdefault(effect, []).append(node)
        return {effect: self._grammar.alt(*alike) for effect, alike in nodes.items()}

    def _pair(self, key: Node, value: Node) -> Node:
        return self._grammar.seq(key, self._text.colon, value)

    # -- members in any order -----------------------------------------------------------------------------------------

    def _add_in_any_order(
        self, shape: ObjectShape, members: list[_Member], classes: list[Others], series: Series, watches: Watches
    ) -> int | None:
        """Members of given names, required ones first, and of all others. Returns how many of them there can be."""
        required = [member for member in members if member.name in shape.required]
        optional = [member for member in members if member.cases and member.name not in shape.required]
        limits = [each.available for each in classes]
        others = None if None in limits else sum(limit or 0 for limit in limits)
        if watches:
            self._add_watched(required, optional, classes, series, watches)
        else:
            self._add_names(required, True, series)
            self._add_names(optional, False, series)
            is_counted = others is not None and (shape.low > 0 or shape.high is not None)
            effect = Effect(frozenset([series.condition(0, others)])) if is_counted else NO_EFFECT  # how many names are left
            for each in classes:
                series.sorts += [Sort(text, effect, each.available, is_marked=True) for text in each.texts.values()]
        return None if others is None else sum(bool(member.cases) for member in members) + others

    def _add_names(self, members: list[_Member], is_required: bool, series: Series) -> None:
        """The sorts of members where nothing is watched: a condition for each member, or one sort for many."""
        nodes = {member.name: node for member in members for node in member.cases.values()}
        low = len(members) if is_required else 0
        if len(members) > MAX_SINGLE:
            counts_in = frozenset([series.condition(low, len(members))])
            series.sorts.append(Sort(self._tree(nodes), Effect(counts_in), len(nodes), is_marked=True))
            return
        for name, node in nodes.items():
            index = series.condition(int(is_required), 1)
            series.sorts.append(Sort(self._text.member(name, node), Effect(frozenset([index]))))

    def _add_watched(
        self, required: list[_Member], optional: list[_Member], classes: list[Others], series: Series, watches: Watches
    ) -> None:
        """By case, one sort for all names with the same cases. No key comes twice, so all have come when so many have. What may
        become impossible is counted by itself: else some of it would seem to be left when all others have come. So is what can
        be had for ever, unless that is too many ways to come along: what is counted with others is not had for certain."""
        always = _always_possible(classes, watches)
        groups = _alike(optional)
        free = [group for group in groups if _is_possible(group[0].cases, watches)]
        numbers = [*map(len, free), *(each.available for each in classes if _is_possible(each.texts, watches))]
        limit = None if None in numbers else sum(number or 0 for number in numbers)
        are_apart = limit is not None and math.prod(1 + (number or 0) for number in numbers) <= MAX_APART
        at_most = frozenset([] if limit is None or are_apart else [series.condition(0, limit)])

        def counted_in(cases: Iterable[Effect], available: int | None) -> frozenset[int]:
            """The condition that says how many of some optional members are left, if those run out that can be had for ever."""
            if limit is None or (_is_possible(cases, watches) and not are_apart):
                return at_most
            return frozenset() if available is None else frozenset([series.condition(0, available)])

        named = [(counted_in(group[0].cases, len(group)), [group]) for group in groups]
        for counts_in, alike in (*_counted_apart(_alike(required), series, watches), *named):
            for group in alike:
                texts = {effect: {member.name: member.cases[effect] for member in group} for effect in group[0].cases}
                nodes = {effect: (self._tree(each), self._tree(each, is_spare=True)) for effect, each in texts.items()}
                series.sorts += _by_case(nodes, len(group), counts_in, always, series)
            if watches.may_settle:
                values = {member.name: self._node_of(member.value) for group in alike for member in group}
                series.plain.append(Sort(self._tree(values), Effect(counts_in), len(values), is_marked=True))
        for each in classes:
            nodes = {effect: (text, each.spare[effect]) for effect, text in each.texts.items()}
            counts_in = counted_in(each.texts, each.available)
            series.sorts += _by_case(nodes, each.available, counts_in, always, series)
            if watches.may_settle:
                series.plain.append(Sort(each.whole, Effect(counts_in), each.available, is_marked=True))

    def _tree(self, values: dict[str, Node], is_spare: bool = False) -> Node:
        """Members of given names, marked so that none comes twice."""
        names: dict[Node, list[bytes]] = {}
        for name, value in values.items():
            names.setdefault(value, []).append(string_text(name)[1:-1].encode())
        grammar = self._grammar
        keys = {value: grammar.key(grammar.words(alike)) for value, alike in names.items()}
        pairs = (self._pair(grammar.spared(key) if is_spare else key, value) for value, key in keys.items())
        return grammar.scarce(*pairs)

    def _others(self, shape: ObjectShape, tests: list[NameTest], named: Iterable[str], watches: Watches) -> list[Others]:
        """Members of all other names."""
        return self._other_members.of(
            shape, tests, named, lambda value, passed: self._cases(value, watches, partial(_is_meant, None, passed))
        )


def _witnesses(needs: list[Need], others: list[Others], named: Iterable[str]) -> list[tuple[str, Effect]] | None:
    """The cases of members of other names in which these count in some needs, each with a name that no member has. None where there
    are many, where a need is more than one member, and where the names of such members may run out."""
    effects = dict.fromkeys(effect for each in others for effect in each.texts if effect.counts_in)
    run_out = any(each.available is not None and any(effect.counts_in for effect in each.texts) for each in others)
    if run_out or len(effects) > MAX_WITNESSES or any((need.low, need.high) != (1, None) for need in needs):
        return None
    prefix = "-" * (1 + max(map(len, named), default=0))
    return [(f"{prefix}{number}", effect) for number, effect in enumerate(effects)]


def _is_meant(name: str | None, passed: frozenset[NameTest], where: Where) -> bool:
    return isinstance(where, Keys) and where.admits(name, passed)


def _alike(members: list[_Member]) -> list[list[_Member]]:
    """Members in groups of those with the same cases."""
    groups: dict[frozenset[Effect], list[_Member]] = {}
    for member in members:
        groups.setdefault(frozenset(member.cases), []).append(member)
    return list(groups.values())


def _counted_apart(
    groups: list[list[_Member]], series: Series, watches: Watches
) -> list[tuple[frozenset[int], list[list[_Member]]]]:
    """Groups of required members by the conditions that say how many must come.

    A condition of its own for each group says how many of it are left. Where that would be too many ways to come along, those
    that can be had whatever came before share one: as no key comes twice, all have come when so many have. What may become
    impossible is always counted by itself, or others would seem to come in its place.
    """
    alone: list[list[list[_Member]]] = []
    together: list[list[_Member]] = []
    ways = 1
    for group in sorted(groups, key=lambda group: (_is_possible(group[0].cases, watches), len(group))):
        ways *= len(group) + 1
        if ways <= MAX_APART or not _is_possible(group[0].cases, watches):
            alone.append([group])
        else:
            together.append(group)
    counts = [(sum(map(len, each)), each) for each in [*alone, together] if each]
    return [(frozenset([series.condition(count, count)]), each) for count, each in counts]


def _is_possible(cases: Iterable[Effect], watches: Watches) -> bool:
    """Whether members can be had in one of some cases, whatever came before."""
    return any(not effect.breaks and watches.bounded.isdisjoint(effect.counts_in) for effect in cases)


def _always_possible(classes: list[Others], watches: Watches) -> Effect:
    """The effects of classes without end, which can be had for as long as one more member may come."""
    cases = [effect for each in classes if each.available is None for effect in each.texts]
    free = [effect for effect in cases if not effect.breaks and watches.bounded.isdisjoint(effect.counts_in)]
    none: frozenset[int] = frozenset()
    counts_in, makes = none.union(*(effect.counts_in for effect in free)), none.union(*(effect.makes for effect in free))
    others = [clause for clause in watches.clauses if clause.isdisjoint(makes)]
    return Effect(counts_in, none.union(*watches.clauses).difference(*others))


def _by_case(
    nodes: dict[Effect, tuple[Node, Node]], available: int | None, counts_in: frozenset[int], always: Effect, series: Series
) -> list[Sort]:
    """Sorts of members that there are so many of in all, whichever case each is; `nodes` as they are, and spared."""
    if available is not None and _may_run_out(nodes, available, always):
        counts_in |= {series.capacity(available)}
    return [
        Sort(node, effect._replace(counts_in=effect.counts_in | counts_in), available, True, is_certain=False, spare=spare)
        for effect, (node, spare) in nodes.items()
    ]


def _may_run_out(cases: Iterable[Effect], count: int, always: Effect) -> bool:
    """Whether it matters how many of some members are left: if one of their cases does what no other member may do later."""
    told = {Effect(each.counts_in - always.counts_in, each.makes - always.makes, each.breaks - always.makes) for each in cases}
    if count == 1 and len({(each.counts_in, each.makes | each.breaks) for each in told}) == 1:
        return False  # whichever comes, it decides all that the member is asked about
    return len(told) > 1


def _meaning(shape: ObjectShape) -> Hashable | None:
    """A key that is equal for shapes of the same objects, written in the same order; None where patterns tell names apart."""
    if shape.tests:
        return None
    any_name = frozenset[NameTest]()
    members = tuple((name, name in shape.required, shape.value(name, any_name)) for name in shape.named)
    bounds = (shape.low, shape.high, tuple(shape.needs), tuple(shape.clauses), tuple(shape.conditions))
    return len(shape.declared), members, shape.value(None, any_name), bounds


def _total(shape: ObjectShape, series: Series, others: int | None) -> Bounds:
    """How many members there may be, where the names do not say so already."""
    least = sum(not stage.may_skip for stage in series.stages)
    most = None if others is None else len(series.stages) + others
    high = None if shape.high is None or (most is not None and most <= shape.high) else shape.high
    return (shape.low if shape.low > least else 0), high
