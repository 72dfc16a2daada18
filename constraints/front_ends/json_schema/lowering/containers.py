"""Array shapes as grammar nodes: which items there may be at each place, as a series (see series.py); listed containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ....base.errors import ConstraintLimit, UnsupportedKeyword
from ....grammar.expression import EMPTY, FAIL, Event, Grammar, Node
from ..algebra.claims import Claim, Conj, Index, negated
from ..algebra.clauses import Need
from ..algebra.shapes import ArrayShape
from ..strings.text import JsonText
from .series import Bounds, Series, Sort, Stage
from .value_numbers import most_values
from .variants import CasesOf, Variant, Watches, Where


class Few(NamedTuple):
    """A case of few items, and the condition that counts how many of them are left."""

    variant: Variant
    condition: int

    def counting(self, conj: Conj) -> Variant:
        """Items of this case, of which one fewer is left behind each."""
        effect = self.variant.effect
        return Variant(conj, effect._replace(counts_in=effect.counts_in | {self.condition}))


class Containers:
    """Builds the texts of arrays, and of listed containers.

    `node_of(conj)` gives the texts of a value, FAIL when there is none; `count_of(conj)` how many values there are, where that is
    few; `stand_together(conjs)` is told what may begin in one place; `lacks_values(claims)` proves that no value satisfies them,
    `are_apart(conjs)` that none satisfies two of them; `cases_of` tells cases of values apart; `refuse(error)` raises an error,
    or collects it; `check` raises one when what lowering may take is used up.
    """

    def __init__(
        self, grammar: Grammar, text: JsonText, node_of: Callable[[Conj], Node], count_of: Callable[[Conj], int | None],
        stand_together: Callable[[list[Conj]], None], conjoin: Callable[[Iterable[Claim]], Conj],
        lacks_values: Callable[[list[Claim]], bool], are_apart: Callable[[list[Conj]], bool],
        cases_of: CasesOf, refuse: Callable[[UnsupportedKeyword], None], check: Callable[[], None],
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._node_of, self._count_of = grammar, text, node_of, count_of
        self._stand_together, self._conjoin, self._lacks_values = stand_together, conjoin, lacks_values
        self._are_apart, self._cases_of, self._refuse, self._check = are_apart, cases_of, refuse, check
        self._comma, self._colon = text.comma, text.colon

    def _separated_unique(self, node: Node) -> Node:
        """A comma, and then a node, behind an item that differs from all before it."""
        return self._grammar.mark(b",", Event.ITEM_CLOSE, self._grammar.seq(self._text.gap, node))

    def _further(self, member: Node) -> Node:
        """One more item or member, behind another one."""
        return self._grammar.seq(self._comma, member, self._text.gap)

    # -- arrays -----------------------------------------------------------------------------------------------------

    def array(self, shape: ArrayShape) -> Node:
        self._refuse_about_items(shape)
        if shape.is_unique and not self._has_enough(shape):
            return FAIL
        if len(shape.needs) > 1 and shape.high is None and (shape.is_unique or shape.prefix_length > 0):
            try:
                return self._array(shape, may_watch=True)
            except ConstraintLimit as error:
                if error.limit != "alternatives":
                    raise
        return self._array(shape, may_watch=False)

    def _array(self, shape: ArrayShape, *, may_watch: bool) -> Node:
        """The texts of arrays of a shape. may_watch: also items in places of their own, and those that must differ, may be watched,
        instead of told apart, for which it has to be certain that what is wanted can be had behind them."""
        series = self._series(shape, may_watch=may_watch)
        if series.may_run_out:
            series = self._series(shape, are_counted=True)
        grammar = self._grammar
        opening = grammar.mark(b"[", Event.ARRAY_OPEN) if shape.is_unique else grammar.literal("[")
        items = series.node()
        path = next((need.conj[0].path for need in shape.needs if need.conj), "#")
        grammar.claims |= {node: (path, ("contains",)) for node in series.covers if node not in grammar.claims}
        return grammar.seq(opening, self._text.gap, items)

    def _series(self, shape: ArrayShape, *, may_watch: bool = False, are_counted: bool = False) -> Series:
        """The items of an array. are_counted: all cases are told apart, and of those of few items each counts how many are left."""
        grammar, gap = self._grammar, self._text.gap
        watches = Watches(
            shape.needs, (), self._conjoin, self._lacks_values, self._are_apart, self._cases_of, tells_all=are_counted
        )
        marked = self._separated_unique if shape.is_unique else None
        series = Series(grammar, gap, self._comma, self._check, marked, num_needs=len(shape.needs), are_items=True)
        series.conditions = [(shape.low, shape.high), *bounds_of(shape.needs)]
        series.end = grammar.mark(b"]", Event.ARRAY_CLOSE) if shape.is_unique else grammar.literal("]")
        length = shape.prefix_length if shape.high is None else min(shape.prefix_length, shape.high)
        behind, few = list[Variant](), list[Few]()  # of the items behind all places
        if shape.high is None or shape.high > length:
            may_watch_behind = may_watch or (not shape.is_unique and shape.high is None and not are_counted)
            behind, series.plain = self._cases(watches, shape.item(length), _is_meant_behind, may_watch=may_watch_behind)
            if are_counted:
                behind, few = self._counted(series, behind)
        for index in range(length):
            variants, plain = self._cases(watches, shape.item(index), partial(_is_meant, index), may_watch=may_watch)
            variants = [part for each in variants for part in self._told_of(few, each)]
            series.stages.append(Stage(tuple(self._sorts(series, variants)), may_end=True, plain=tuple(plain)))
        series.sorts = self._sorts(series, behind)
        return series

    def _cases(
        self, watches: Watches, item: Conj, is_meant: Callable[[Where], bool], *, may_watch: bool
    ) -> tuple[list[Variant], list[Sort]]:
        """The cases of an item; and the item where they need not be told apart any more, if that may be."""
        variants = watches.variants(item, is_meant, may_watch=may_watch)
        if len(variants) > 1:
            self._stand_together([item, *(each.conj for each in variants)])
        return variants, [Sort(self._node_of(item))] if len(variants) > 1 and watches.may_settle else []

    def _sorts(self, series: Series, variants: Iterable[Variant]) -> list[Sort]:
        return [Sort(self._item(series, each.conj), each.effect, watched=self._watched(series, each)) for each in variants]

    def _item(self, series: Series, item: Conj) -> Node:
        """The texts of an item; where items must differ, it is noted how many there are."""
        node = self._node_of(item)
        if series.may_have_few and (count := self._count_of(item)) is not None:
            series.counts[node] = count
        return node

    def _counted(self, series: Series, variants: Iterable[Variant]) -> tuple[list[Variant], list[Few]]:
        """Cases of which those of fewer items than may be wanted count how many are left; and these as they were."""
        counted: list[Variant] = []
        few: list[Few] = []
        for each in variants:
            count = self._count_of(each.conj)
            if count is not None and count < series.most_wanted(each.effect):
                few.append(Few(each, series.capacity_while_wanted(count, each.effect)))
                each = few[-1].counting(each.conj)
            counted.append(each)
        return counted, few

    def _told_of(self, few: Iterable[Few], variant: Variant) -> list[Variant]:
        """A case of a place before, by whether its items are some of the few behind all places, which are one fewer then."""
        same = [each for each in few if each.variant.effect == variant.effect]
        if not same:
            return [variant]
        claims = same[0].variant.conj
        both = self._conjoin([*variant.conj, *claims])
        number = self._count_of(both)
        if number == 0:
            return [variant]
        among = same[0].counting(both)
        if number == self._count_of(variant.conj):
            return [among]
        return [among, variant._replace(conj=self._conjoin([*variant.conj, *negated(claims)]))]

    def _watched(self, series: Series, variant: Variant) -> tuple[tuple[int, Node], ...]:
        """The texts of the items that count in each condition a case is watched for; without those that have none."""
        told = ((i, self._item(series, self._conjoin([*variant.conj, *conj]))) for i, conj in variant.watched)
        return tuple((i, node) for i, node in told if node != FAIL)

    def _refuse_about_items(self, shape: ArrayShape) -> None:
        if shape.repeats is not None:
            self._refuse(shape.repeats.unsupported("uniqueItems", "its negation is not enforced"))

    def _has_enough(self, shape: ArrayShape) -> bool:
        """Whether as many different items exist as there must be. Refuses choices so few that one place may use up another's."""
        places = [shape.item(index) for index in range(min(shape.low, shape.prefix_length + 1))] if shape.low > 1 else []
        counts = [self._number_of(item, shape) for item in dict.fromkeys(places)]
        are_few = any(count is not None and count < shape.low for count in counts)
        if are_few and len(counts) > 1:
            self._refuse(_too_few(shape))
            return True
        return not are_few and all(self._has_enough_for(need, shape) for need in shape.needs)

    def _number_of(self, item: Conj, shape: ArrayShape) -> int | None:
        """How many different items may stand at a place, None where they may be as many as there must be."""
        if (count := self._count_of(item)) is not None or shape.needs:
            return count
        number = most_values(self._grammar, self._node_of(item), shape.low)
        return number if number < shape.low else None

    def _has_enough_for(self, need: Need, shape: ArrayShape) -> bool:
        """Whether as many different items exist as must satisfy something: one at each place before all are alike, and those."""
        *single, alike = (
            self._count_of(self._conjoin((*shape.item(index), *need.conj))) if index in need.index else 0
            for index in range(shape.prefix_length + 1)
        )
        if alike is None or alike >= need.low:
            return True
        places = sum(count != 0 for count in single)
        if places and need.low > 1 and places + alike >= need.low:
            self._refuse(_too_few(shape))
        return places + alike >= need.low

    def flat_arrays(self, arrays: Iterable[list[bytes]]) -> Node:
        """The texts of some arrays of scalars, given by the texts of these; first items form a tree."""
        grammar, gap, end = self._grammar, self._text.gap, self._grammar.literal("]")
        tails: dict[bytes, list[Node]] = {}
        for items in arrays:
            further = (self._further(grammar.literal(item)) for item in items[1:])
            tails.setdefault(items[0] if items else b"", []).append(grammar.seq(gap if items else EMPTY, *further, end))
        return grammar.seq(grammar.literal("["), gap, self._tree_of(tails))

    def flat_objects(self, objects: Iterable[dict[str, bytes]]) -> Node:
        """The texts of some objects of scalars, given by the texts of these; first members, in any order, form a tree."""
        grammar, gap, end = self._grammar, self._text.gap, self._grammar.literal("}")
        by_name: dict[str, dict[bytes, list[Node]]] = {}
        is_empty = False
        for members in objects:
            is_empty |= not members
            pairs = [self._pair(self._text.name(name), grammar.literal(text)) for name, text in members.items()]
            further = [(self._further(pair), 1, 1) for pair in pairs]
            for i, (name, text) in enumerate(members.items()):
                rest = grammar.seq(gap, grammar.bag(further[:i] + further[i + 1 :]), end)
                by_name.setdefault(name, {}).setdefault(text, []).append(rest)
        firsts = (self._pair(self._text.name(name), self._tree_of(tails)) for name, tails in by_name.items())
        return grammar.seq(grammar.literal("{"), gap, grammar.alt(*firsts, end if is_empty else FAIL))

    def _tree_of(self, tails: dict[bytes, list[Node]]) -> Node:
        return self._grammar.branches({text: self._grammar.alt(*options) for text, options in tails.items()})

    def _pair(self, key: Node, value: Node) -> Node:
        return self._grammar.seq(key, self._colon, value)


def _too_few(shape: ArrayShape) -> UnsupportedKeyword:
    assert shape.unique is not None
    reason = "places with few values each, several of which must be filled"
    return shape.unique.unsupported("uniqueItems", reason)


def bounds_of(needs: Iterable[Need]) -> list[Bounds]:
    return [(need.low, need.high) for need in needs]


def _is_meant(index: int, where: Where) -> bool:
    return isinstance(where, Index) and index in where


def _is_meant_behind(where: Where) -> bool:
    """Whether a condition is about all items from some place on."""
    return isinstance(where, Index) and where.stop is None
