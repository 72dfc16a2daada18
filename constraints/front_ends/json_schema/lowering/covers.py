"""Covers: items of several sorts in any order, under conditions each of which counts the items of some sorts.

An item may count for many conditions at a time, so what is left to be met is a list of counters side by side, and not one state for
each set of conditions. How it is read is told in `automaton/covers.py`.

What is wanted must be in reach whatever has come before. So each counter that wants items has a sort of which nothing can be too
many but itself: of a sort that no bounded counter counts, any number may come; of one that its own counter alone bounds, as many as
are wanted. Such sorts are the *plan*: which of them come, and how often, to meet what is wanted.

Where the sorts are too many to be told apart, as each of many conditions may hold or not, one sort is all these items and is
*watched*: for each condition there is a sort that is only planned, and an item counts for those whose texts it is one of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....base.kinds import ANY_TIMES, NOT_PLANNED, ONLY_PLANNED, UNBOUNDED, CoverRow, Kind
from ....grammar.store import FAIL, Node, NodeStore

_NO_STATE = 0  # in place of a state that is known when the grammar is measured

Bounds = tuple[int, int | None]  # how many are wanted, and how many allowed


class CoverSort(NamedTuple):
    """Items that may be written alike, and the counters that count them; sorts that they may be of as well, each with one more
    counter, its first."""

    text: Node
    counters: tuple[int, ...]
    watched: tuple[CoverSort, ...] = ()


class Planned(NamedTuple):
    """A sort, and the counter that says how often it comes: ANY_TIMES as often as one of its counters wants."""

    sort: CoverSort
    times: int


def possible(sorts: Sequence[CoverSort], bounds: Sequence[Bounds]) -> list[CoverSort]:
    """The sorts of which some item may come: those that no counter counts which has enough."""
    full = {counter for counter, (_, high) in enumerate(bounds) if high == 0}
    return [sort for sort in sorts if full.isdisjoint(sort.counters)]


def plan(sorts: Sequence[CoverSort], bounds: Sequence[Bounds]) -> list[Planned] | None:
    """Sorts by which what is wanted can be met, however much of it is left; None where that cannot be said.

    In each step the sort that most of what is left wants; then the others, for where a text of a sort turns out not to exist.
    """
    bounded = {i for i, (_, high) in enumerate(bounds) if high is not None}
    left = {i: low for i, (low, _) in enumerate(bounds) if low > 0}
    own: list[Planned] = []
    free: list[Planned] = []
    for sort in sorts:
        limiting = bounded.intersection(sort.counters)
        if not limiting:
            free.append(Planned(sort, ANY_TIMES))
        elif len(limiting) == 1 and left.keys() & limiting:
            own.append(Planned(sort, limiting.pop()))
    reached = {each.times for each in own}.union(*(each.sort.counters for each in free))
    if not left.keys() <= reached:
        return None
    return [*_greedy(own, left), *_greedy(free, left)]


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


def all_sorts(sorts: Iterable[CoverSort]) -> list[CoverSort]:
    """The sorts, and those that they are watched for."""
    return [each for sort in sorts for each in (sort, *sort.watched)]


def cover(
    store: NodeStore, sorts: Sequence[CoverSort], bounds: Sequence[Bounds], separator: Node, settled: Node,
    planned: Sequence[Planned],
) -> tuple[Node, Node]:  # fmt: skip
    """(items behind another one, at least one item without a separator before it) that meet the bounds of all counters.

    separator: between two items. settled: any number of items, each behind a separator, with which it goes on where nothing is
    wanted and nothing bounded. Something is, and `planned` is a plan for it. The sorts are all `possible`.
    """
    times = {each.sort: each.times for each in planned}
    told = list(dict.fromkeys([*times, *all_sorts(sorts)]))
    numbers, are_read = {sort: i for i, sort in enumerate(told)}, set(sorts)
    row, behind = [len(told), len(bounds), separator, settled], list[int]()
    end = CoverRow.FIRST + CoverRow.OF_SORT * len(told)
    for sort in told:
        row += [sort.text, times.get(sort, NOT_PLANNED), end + len(behind), len(sort.counters)]
        behind += sort.counters
        row += [0 if sort in are_read else ONLY_PLANNED, 0] if not sort.watched else [end + len(behind), len(sort.watched)]
        behind += [word for each in ((sort, *sort.watched) if sort.watched else ()) for word in (numbers[each], _NO_STATE)]
    row += behind
    start = len(store.lists)
    store.lists.extend(row)
    tally = FAIL
    for counter, (low, high) in reversed(list(enumerate(bounds))):
        if low > 0 or high:
            part = store.intern((Kind.REPEAT, separator, low, UNBOUNDED if high is None else high))
            tally = store.intern((Kind.TALLY, part, tally, counter))
    further, first = (store.intern((Kind.COVER, tally, start, must_follow)) for must_follow in (0, 1))
    return further, first
