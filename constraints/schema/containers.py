"""Array and object shapes as grammar nodes: which items and members there may be at each place, as a series (see series.py)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product

from ..expression import EMPTY, FAIL, Event, Grammar, Node
from .claims import Claim, Conj, NameTest
from .keywords import instead_of
from .names import Names
from .policy import Policy
from .series import TOTAL, Bounds, Series, Sort, Stage
from .shapes import ArrayShape, Need, ObjectShape, negated
from .text import JsonText
from .values import string_text

MAX_SINGLE = 48  # names in any order that are counted one by one; more are counted together, and remembered as they come
Variant = tuple[Conj, frozenset[int]]  # what an item or member satisfies, and the conditions it counts in then


class Containers:
    """Builds the texts of arrays and objects.

    `node_of(conj)` gives the texts of a value, FAIL when there is none; `count_of(conj)` how many values there are, where that is
    few; `stand_together(conjs)` is told what may begin in one place.
    """

    def __init__(
        self, grammar: Grammar, text: JsonText, names: Names, policy: Policy, node_of: Callable[[Conj], Node],
        count_of: Callable[[Conj], int | None], stand_together: Callable[[list[Conj]], None],
        conjoin: Callable[[Iterable[Claim]], Conj], is_ordered: bool, explain: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._names, self._policy = grammar, text, names, policy
        self._node_of, self._count_of, self._conjoin = node_of, count_of, conjoin
        self._stand_together, self._is_ordered, self._explain = stand_together, is_ordered, explain
        self._comma, self._colon = text.comma, text.colon
        self._objects: dict[Hashable, Node] = {}  # by what they mean: different terms often come to the same

    def _separated(self, node: Node) -> Node:
        """A comma, and then a node."""
        return self._grammar.seq(self._comma, node)

    def _separated_unique(self, node: Node) -> Node:
        """The same behind an item that differs from all before it."""
        return self._grammar.mark(b",", Event.ITEM_CLOSE, self._grammar.seq(self._text.gap, node))

    def _further(self, member: Node) -> Node:
        """One more item or member, behind another one."""
        return self._grammar.seq(self._comma, member, self._text.gap)

    # -- arrays -----------------------------------------------------------------------------------------------------

    def array(self, shape: ArrayShape) -> Node:
        grammar, gap = self._grammar, self._text.gap
        self._refuse_about_items(shape)
        if shape.is_unique and not self._has_enough(shape):
            return FAIL
        series = Series(grammar, gap, self._separated_unique if shape.is_unique else self._separated)
        series.conditions = [(shape.low, shape.high), *_bounds(shape.needs)]
        series.end = grammar.mark(b"]", Event.ARRAY_CLOSE) if shape.is_unique else grammar.literal("]")
        length = shape.prefix_length if shape.high is None else min(shape.prefix_length, shape.high)
        for index in range(length):
            sorts = self._item_sorts(shape.item(index), shape.needs, [index in need.index for need in shape.needs])
            series.stages.append(Stage(sorts, may_end=True))
        if shape.high is None or shape.high > length:
            behind = [need.index.stop is None for need in shape.needs]
            series.sorts = list(self._item_sorts(shape.item(length), shape.needs, behind))
        opening = grammar.mark(b"[", Event.ARRAY_OPEN) if shape.is_unique else grammar.literal("[")
        return grammar.seq(opening, gap, series.node())

    def _item_sorts(self, item: Conj, needs: Sequence[Need], concerned: list[bool]) -> tuple[Sort, ...]:
        return tuple(Sort(self._node_of(conj), counts_in) for conj, counts_in in self._variants(item, needs, concerned))

    def _refuse_about_items(self, shape: ArrayShape) -> None:
        if shape.repeats is not None:
            raise shape.repeats.unsupported("uniqueItems", "its negation is not enforced", instead_of("uniqueItems"))

    def _has_enough(self, shape: ArrayShape) -> bool:
        """Whether as many different items exist as there must be. Refuses choices so few that one place may use up another's."""
        places = [shape.item(index) for index in range(min(shape.low, shape.prefix_length + 1))]
        counts = [self._count_of(item) for item in dict.fromkeys(places)]
        if len(counts) > 1 and any(count is not None and count < shape.low for count in counts):
            assert shape.unique is not None
            reason = "places with few values each, several of which must be filled"
            raise shape.unique.unsupported("uniqueItems", reason, instead_of("uniqueItems"))
        wanted = [shape.low] * len(counts)
        for need in shape.needs:
            counts.append(self._count_of(self._conjoin((*shape.item(shape.prefix_length), *need.conj))))
            wanted.append(need.low)
        return all(count is None or count >= low for count, low in zip(counts, wanted, strict=True))

    def _variants(self, value: Conj, needs: Sequence[Need], concerned: Iterable[bool]) -> list[Variant]:
        """The cases of an item or member: which of the needs that concern it it satisfies.

        A need without upper bound may leave an item uncounted, so its negation is not wanted; and it counts what it can.
        """
        if not needs:
            return [(value, frozenset())]
        indices = [i for i, concerns in enumerate(concerned, TOTAL + 1) if concerns]
        found: list[Variant] = []
        claimed = set(value)
        signs_of = [(True,) if claimed.issuperset(needs[i - TOTAL - 1].conj) else (True, False) for i in indices]
        for signs in product(*signs_of):
            claims = list(value)
            for i, sign in zip(indices, signs, strict=True):
                need = needs[i - TOTAL - 1]
                if sign:
                    claims += need.conj
                elif need.high is not None:
                    claims += negated(need.conj)
            found.append((self._conjoin(claims), frozenset(i for i, sign in zip(indices, signs, strict=True) if sign)))
        if len(found) > 1:
            self._stand_together([conj for conj, _ in found])
        return found

    def flat_arrays(self, arrays: Iterable[list[bytes]]) -> Node:
        """One of some arrays of scalars, given by the texts of these; first items as a tree."""
        grammar, gap, end = self._grammar, self._text.gap, self._grammar.literal("]")
        tails: dict[bytes, list[Node]] = {}
        for items in arrays:
            further = (self._further(grammar.literal(item)) for item in items[1:])
            tails.setdefault(items[0] if items else b"", []).append(grammar.seq(gap if items else EMPTY, *further, end))
        return grammar.seq(grammar.literal("["), gap, self._tree_of(tails))

    def flat_objects(self, objects: Iterable[dict[str, bytes]]) -> Node:
        """The same for objects, whose members come in any order."""
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

    # -- objects ----------------------------------------------------------------------------------------------------

    def object(self, shape: ObjectShape) -> Node:
        meaning = _meaning(shape)
        known = None if meaning is None else self._objects.get(meaning)
        if known is None:
            known = self._new_object(shape)
            if meaning is not None:
                self._objects[meaning] = known
        return known

    def _new_object(self, shape: ObjectShape) -> Node:
        grammar = self._grammar
        tests = shape.tests
        named = dict.fromkeys([*shape.named, *self._names.listed(tests)])
        in_order = dict.fromkeys(shape.declared) if self._is_ordered else {}
        series = Series(grammar, self._text.gap, self._separated, conditions=[(0, None), *_bounds(shape.needs)])
        series.stages = [self._stage(shape, name, tests) for name in in_order]
        others = [name for name in named if name not in in_order]
        count = self._add_others(shape, others, tests, list(named), series)
        series.conditions[TOTAL] = _total(shape, series, count)
        for name, stage in zip(in_order, series.stages, strict=True):
            if not stage.may_skip and all(sort.node == FAIL for sort in stage.sorts):
                self._explain(f"the required member {name!r} admits no value")
        is_remembered = any(sort.is_marked for sort in series.sorts)
        series.end = grammar.mark(b"}", Event.OBJECT_CLOSE) if is_remembered else grammar.literal("}")
        opening = grammar.mark(b"{", Event.OBJECT_OPEN) if is_remembered else grammar.literal("{")
        return grammar.seq(opening, self._text.gap, series.node())

    def _stage(self, shape: ObjectShape, name: str, tests: list[NameTest]) -> Stage:
        key = self._text.name(name)
        sorts = tuple(
            Sort(self._pair(key, self._node_of(conj)), counts_in) for conj, counts_in in self._named_variants(shape, name, tests)
        )
        return Stage(sorts, may_skip=name not in shape.required)

    def _named_variants(self, shape: ObjectShape, name: str, tests: list[NameTest]) -> list[Variant]:
        passed = self._names.passed(name, tests) if tests else frozenset()
        if not shape.needs:
            return [(shape.value(name, passed), frozenset())]
        concerned = [need.keys.admits(name, passed) for need in shape.needs]
        return self._variants(shape.value(name, passed), shape.needs, concerned)

    def _add_others(
        self, shape: ObjectShape, others: list[str], tests: list[NameTest], named: list[str], series: Series
    ) -> int | None:
        """Members in any order: those of given names, then those of all other names. Returns how many there can be in all."""
        count: int | None = sum(
            self._add_names(shape, [name for name in others if (name in shape.required) is required], tests, series, required)
            for required in (True, False)
        )
        for passed in self._names.classes(tests):
            value = shape.value(None, passed)
            if self._node_of(value) == FAIL:
                continue
            key, available = self._names.key(passed, tests, named)
            concerned = [need.keys.admits(None, passed) for need in shape.needs]
            sorts = [
                Sort(self._pair(key, self._node_of(conj)), counts_in, available, is_marked=True)
                for conj, counts_in in self._variants(value, shape.needs, concerned)
            ]
            series.sorts += [sort for sort in sorts if sort.node != FAIL]
            count = None if count is None or available is None else count + available
        if shape.needs and count is not None:
            series.bound_all(count)  # a name may be in several sorts, so their own bounds do not say it
        return count

    def _add_names(
        self, shape: ObjectShape, names: list[str], tests: list[NameTest], series: Series, required: bool
    ) -> int:
        """Members of given names, all required or all optional. Returns how many names can be written."""
        nodes: dict[str, list[tuple[Node, frozenset[int]]]] = {}
        for name in names:
            variants = ((self._node_of(conj), counts_in) for conj, counts_in in self._named_variants(shape, name, tests))
            nodes[name] = [(value, counts_in) for value, counts_in in variants if value != FAIL]
            if required and not nodes[name]:
                self._explain(f"the required member {name!r} admits no value")
        writable = {name: values for name, values in nodes.items() if values}
        if shape.needs or len(names) > MAX_SINGLE:
            self._add_trees(writable, len(names) if required else 0, series)
        else:
            for name, values in writable.items():
                index = series.condition(int(required), 1)
                key = self._text.name(name)
                series.sorts += [Sort(self._pair(key, value), frozenset([index])) for value, _ in values]
            for _ in range(len(names) - len(writable) if required else 0):
                series.condition(1, 1)  # which nothing meets
        return len(writable)

    def _add_trees(self, names: dict[str, list[tuple[Node, frozenset[int]]]], required: int, series: Series) -> None:
        """One sort per set of conditions that members count in. No key comes twice, so all have come when so many have."""
        also = frozenset([series.condition(required, required)]) if required else frozenset()
        by_conditions: dict[frozenset[int], dict[str, Node]] = {}
        for name, values in names.items():
            for value, counts_in in values:
                by_conditions.setdefault(counts_in | also, {})[name] = value
        for counts_in, alike in by_conditions.items():
            series.sorts.append(Sort(self._tree(alike), counts_in, len(alike), is_marked=True))

    def _tree(self, values: dict[str, Node]) -> Node:
        """Members of given names, marked so that none comes twice."""
        names: dict[Node, list[bytes]] = {}
        for name, value in values.items():
            names.setdefault(value, []).append(string_text(name)[1:-1].encode())
        grammar = self._grammar
        return grammar.alt(*(self._pair(grammar.key(grammar.words(alike)), value) for value, alike in names.items()))

    def _pair(self, key: Node, value: Node) -> Node:
        return self._grammar.seq(key, self._colon, value)


def _meaning(shape: ObjectShape) -> Hashable | None:
    """Equal for shapes of the same objects, written in the same order; None where patterns tell names apart."""
    if shape.tests:
        return None
    any_name = frozenset[NameTest]()
    members = tuple((name, name in shape.required, shape.value(name, any_name)) for name in shape.named)
    return len(shape.declared), members, shape.value(None, any_name), shape.low, shape.high, tuple(shape.needs)


def _bounds(needs: Iterable[Need]) -> list[Bounds]:
    return [(need.low, need.high) for need in needs]


def _total(shape: ObjectShape, series: Series, others: int | None) -> Bounds:
    """How many members there may be, where the names do not say so already."""
    least = sum(not stage.may_skip for stage in series.stages)
    most = None if others is None else len(series.stages) + others
    high = None if shape.high is None or (most is not None and most <= shape.high) else shape.high
    return (shape.low if shape.low > least else 0), high
