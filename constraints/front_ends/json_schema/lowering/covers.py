"""Covers: items of several sorts in any order, under conditions each of which counts the items of some sorts.

An item may count for many conditions at a time, so what is left to be met is a list of counters side by side, and not one state for
each set of conditions. How it is read is told in `automaton/covers.py`.

What is wanted must be in reach whatever has come before. So each counter that wants items has a sort of which nothing can be too
many but itself: of a sort that no bounded counter counts, any number may come; of one that its own counter alone bounds, as many as
are wanted. Such sorts are the *plan*: which of them come, and how often, to meet what is wanted.

Where the number of all items is bounded, the plan has to have the fewest items that there can be (`fewest`): a question of covering
sets, which is hard in general, and is not where of the sorts that a counter counts one is counted by all others that any of them
is: as intervals, chains, trees and sets without common items have it. What is left when such counters are taken one after the other
are *cores*, for which a table is filled for all that they may want.

Where the sorts are too many to be told apart, as each of many conditions may hold or not, one sort is all these items and is
*watched*: for each condition there is a sort that is only planned, and an item counts for those whose texts it is one of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ....base.kinds import ANY_TIMES, NOT_PLANNED, ONLY_PLANNED, UNBOUNDED, CoverRow, Kind
from ....grammar.stopwatch import look
from ....grammar.store import FAIL, Node, NodeStore

_NO_STATE = 0  # in place of a state that is known when the grammar is measured

Bounds = tuple[int, int | None]  # how many are wanted, and how many allowed


class CoverSort(NamedTuple):
    """Items that may be written alike, and the counters that count them; sorts that they may be of as well, each with one more
    counter, its first."""

    text: Node
    counters: tuple[int, ...]
    watched: tuple[CoverSort, ...] = ()


NO_COUNTS: Final[Mapping[CoverSort, int]] = MappingProxyType({})


class Planned(NamedTuple):
    """A sort, and the counter that says how often it comes: ANY_TIMES as often as one of its counters wants."""

    sort: CoverSort
    times: int


class Core(NamedTuple):
    """Counters, each with what one item that it wants adds to a place in the table, and which sort comes next at each place."""

    steps: tuple[tuple[int, int], ...]
    table: tuple[CoverSort, ...]


class Plan(NamedTuple):
    """What comes, in order; behind the first `before` of `planned` come those of the cores."""

    planned: tuple[Planned, ...]
    cores: tuple[Core, ...] = ()
    before: int = 0


def possible(sorts: Sequence[CoverSort], bounds: Sequence[Bounds]) -> list[CoverSort]:
    """The sorts of which some item may come: those that no counter counts which has enough."""
    full = {counter for counter, (_, high) in enumerate(bounds) if high == 0}
    return [sort for sort in sorts if full.isdisjoint(sort.counters)]


def plan(sorts: Sequence[CoverSort], bounds: Sequence[Bounds], counts: Mapping[CoverSort, int] = NO_COUNTS) -> Plan | None:
    """Sorts by which what is wanted can be met, however much of it is left; None where that cannot be said.

    In each step the sort that most of what is left wants; then the others, for where a text of a sort turns out not to exist.
    counts: how many items there are of the sorts that have few, where items must differ.
    """
    bounded = {i for i, (_, high) in enumerate(bounds) if high is not None}
    left = {i: low for i, (low, _) in enumerate(bounds) if low > 0}
    are_watched = any(sort.watched for sort in sorts)
    own: list[Planned] = []
    free: list[Planned] = []
    for sort in sorts:
        limiting = bounded.intersection(sort.counters)
        few = counts.get(sort)
        if few is not None and any(left.get(i, 0) > few for i in sort.counters):
            lasting = [i for i in sort.counters if 0 < left.get(i, 0) <= few]
            if not limiting and lasting and not are_watched:
                own.append(Planned(sort, lasting[0]))
        elif not limiting:
            free.append(Planned(sort, ANY_TIMES))
        elif len(limiting) == 1 and left.keys() & limiting:
            own.append(Planned(sort, limiting.pop()))
    reached = {each.times for each in own}.union(*(each.sort.counters for each in free))
    if not left.keys() <= reached:
        return None
    return Plan((*_greedy(own, left), *_greedy(free, left)))


def plan_of_place(sorts: Iterable[CoverSort], bounds: Sequence[Bounds]) -> Plan | None:
    """The plan of a place at which one item comes, which no bounded counter counts; None where there is none."""
    bounded = {i for i, (_, high) in enumerate(bounds) if high is not None}
    free = [Planned(sort, ANY_TIMES) for sort in sorts if bounded.isdisjoint(sort.counters)]
    return Plan(tuple(_greedy(free, {i: low for i, (low, _) in enumerate(bounds) if low > 0}))) if free else None


def settled_of(store: NodeStore, cover: Node) -> Node:
    """What stands for a cover where nothing is wanted any more."""
    return Node(store.lists[store.operands(cover)[1] + CoverRow.SETTLED])


def _greedy(options: list[Planned], left: dict[int, int]) -> list[Planned]:
    """The options, those first that lower most of what is left; takes what they come to from `left`."""
    out, others = [], dict.fromkeys(options)
    while others and left:
        best = max(others, key=lambda each: _lowered(each, left))
        counted = left.keys() & best.sort.counters
        times = left.get(best.times, 0) if best.times != ANY_TIMES else max((left[i] for i in counted), default=0)
        if times == 0:
            break
        del others[best]
        out.append(best)
        for i in counted:
            left[i] -= times
            if left[i] <= 0:
                del left[i]
    return [*out, *others]


def _lowered(option: Planned, left: dict[int, int]) -> int:
    """How many of the counters that still want items an option lowers."""
    return len(left.keys() & option.sort.counters) if option.times == ANY_TIMES or option.times in left else 0


def fewest(sorts: Sequence[CoverSort], bounds: Sequence[Bounds], most_steps: int) -> Plan | None:
    """The plan by which what is wanted is met with the fewest items, however much of it is left; None where other counters than the
    first have upper bounds, where nothing counts for one that wants items, or where tables would take more than `most_steps`.

    The first counter counts all items. A counter of whose sorts one is counted by all that any of them is, as far as is not planned
    yet, wants that sort: any other may be replaced by it.
    """
    wanted = {i: low for i, (low, _) in enumerate(bounds) if low > 0 and i > 0}
    if any(high is not None for _, high in bounds[1:]) or not sorts:
        return None
    masks: dict[int, CoverSort] = {}
    for sort in sorts:
        masks.setdefault(sum(1 << i for i in wanted.keys() & sort.counters), sort)
    if not wanted.keys() <= {i for sort in sorts for i in sort.counters}:
        return None
    planned, left, masks = _one_by_one(wanted, _largest(masks))
    cores: list[Core] = []
    for core in _apart(left, masks):
        size = math.prod(1 + wanted[i] for i in core)
        own = {mask: sort for mask, sort in masks.items() if any(mask >> i & 1 for i in core)}
        most_steps -= size * len(own)
        if most_steps < 0:
            return None
        cores.append(_core({i: wanted[i] for i in core}, own))
    fillers = [Planned(next(iter(masks.values()), sorts[0]), 0)] if bounds[0][0] > 0 else []
    return Plan((*planned, *fillers), tuple(cores), len(planned))


def _largest(masks: dict[int, CoverSort]) -> dict[int, CoverSort]:
    """The sets that are in no other one."""
    found: dict[int, CoverSort] = {}
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        look()
        if not any(mask & other == mask for other in found):
            found[mask] = masks[mask]
    return found


def _one_by_one(wanted: Mapping[int, int], masks: dict[int, CoverSort]) -> tuple[list[Planned], list[int], dict[int, CoverSort]]:
    """The counters for which one sort is the best, in the order in which they are planned; those left, and sorts by these."""
    planned: list[Planned] = []
    left, is_open = list(wanted), True
    while left and is_open:
        is_open, others = False, left
        left = []
        for counter in others:
            look()
            all_counted = 0
            for mask in masks:
                if mask >> counter & 1:
                    all_counted |= mask
            if all_counted not in masks:
                left.append(counter)
                continue
            planned.append(Planned(masks[all_counted], counter))
            is_open, without = True, dict[int, CoverSort]()
            for mask, sort in masks.items():
                without.setdefault(mask & ~(1 << counter), sort)
            masks = without
    return planned, left, masks


def _apart(left: list[int], masks: Iterable[int]) -> list[list[int]]:
    """The counters in groups that no sort joins."""
    groups: list[int] = []
    for mask in masks:
        others = [group for group in groups if not group & mask]
        for group in groups:
            mask |= group if group & mask else 0
        groups = [*others, mask] if mask else others
    return [[i for i in left if group >> i & 1] for group in groups]


def _core(wanted: Mapping[int, int], masks: Mapping[int, CoverSort]) -> Core:
    """The table of some counters: at each place the sort behind which the fewest items are left."""
    steps: list[tuple[int, int]] = []
    size = 1
    for counter, low in wanted.items():
        steps.append((counter, size))
        size *= 1 + low
    counted = [(sort, [(step, 1 + wanted[i]) for i, step in steps if mask >> i & 1]) for mask, sort in masks.items()]
    fewest_left, table = [0], [counted[0][0]]
    for place in range(1, size):
        look()
        best = size
        for sort, those in counted:
            behind = place
            for step, radix in those:
                if place // step % radix:
                    behind -= step
            if behind < place and fewest_left[behind] < best:
                best, chosen = fewest_left[behind], sort
        fewest_left.append(best + 1)
        table.append(chosen)
    return Core(tuple(steps), tuple(table))


def all_sorts(sorts: Iterable[CoverSort]) -> list[CoverSort]:
    """The sorts, and those that they are watched for."""
    return [each for sort in sorts for each in (sort, *sort.watched)]


def cover(
    store: NodeStore, sorts: Sequence[CoverSort], bounds: Sequence[Bounds], separator: Node, settled: Node, chosen: Plan,
    following: Node = FAIL,
) -> tuple[Node, Node]:  # fmt: skip
    """(items behind another one, at least one item without a separator before it) that meet the bounds of all counters.

    separator: between two items. settled: any number of items, each behind a separator, with which it goes on where nothing is
    wanted and nothing bounded. Something is, and `chosen` is a plan for it. The sorts are all `possible`. following: the first of
    the covers of the items that come behind one of these, where they are others; their bounds are the same.
    """
    seen, are_read = set[CoverSort](), set(sorts)
    told: list[tuple[CoverSort, int, bool]] = []  # times, and whether it is there to be read; a sort may be planned twice
    for each in (*chosen.planned, *(Planned(sort, NOT_PLANNED) for sort in all_sorts(sorts))):
        if each.times != NOT_PLANNED or each.sort not in seen:
            told.append((each.sort, each.times, each.sort in are_read and each.sort not in seen))
        seen.add(each.sort)
    numbers = {sort: i for i, (sort, _, _) in reversed(list(enumerate(told)))}
    row, behind = [len(told), len(bounds), 0, separator, following, settled], list[int]()
    end = CoverRow.FIRST + CoverRow.OF_SORT * len(told)
    for sort, times, is_read in told:
        row += [sort.text, times, end + len(behind), len(sort.counters)]
        behind += sort.counters
        watched = sort.watched if is_read else ()
        row += [end + len(behind), len(watched)] if watched else [0 if is_read else ONLY_PLANNED, 0]
        behind += [word for each in ((sort, *watched) if watched else ()) for word in (numbers[each], _NO_STATE)]
    row += behind
    if chosen.cores:
        row[CoverRow.CORES] = len(row)
        row += [len(chosen.cores), chosen.before]
        for core in chosen.cores:
            row += [len(core.steps), len(core.table), *(word for step in core.steps for word in step)]
            row += [numbers[sort] for sort in core.table]
    start = len(store.lists)
    store.lists.extend(row)
    tally = FAIL
    for counter, (low, high) in reversed(list(enumerate(bounds))):
        if low > 0 or high:
            part = store.intern((Kind.REPEAT, separator, low, UNBOUNDED if high is None else high))
            tally = store.intern((Kind.TALLY, part, tally, counter))
    further, first = (store.intern((Kind.COVER, tally, start, must_follow)) for must_follow in (0, 1))
    return further, first
