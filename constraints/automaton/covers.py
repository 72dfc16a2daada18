"""Covers: items of several sorts in any order, under conditions each of which counts the items of some sorts.

A COVER has a list of TALLY nodes, one for each counter that still wants or bounds something, and a row of the list pool that says
which counters each sort of items is counted by:

    sorts, counters, separator, what follows where nothing is wanted;
    then for each sort: text, times, place of its counters, their number, place of its watchers, their number;
    then the counters and watchers of all sorts

An item is taken from all counters of its sort at a time. So memory is a list of numbers, where one state for each set of conditions
that are met would be their product.

What a cover takes at the least is a question of covering sets by the fewest, which no quick method answers. The *plan* is an
upper bound: the sorts that have `times` come first in the row, and each comes as often as its counter wants, or for ANY_TIMES as
often as any of its counters does, after those before it have come. The first of them that comes at all brings the end nearer by
its price, as the plan is the same behind it; and nothing is too many of a planned sort, as those have seen to that make covers
(`plan` in front_ends/json_schema/lowering/covers.py). So there are no dead ends.

Where an item may fulfil any of many conditions, its sort has *watchers*: sorts that are only planned, each with one more counter,
its first. They are read beside the item (watched_items.py), and those that end with it are counted.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import ANY_TIMES, INFINITE, NOT_PLANNED, ONLY_PLANNED, UNBOUNDED, CoverRow, Kind
from ..numba_support.jit import inner
from .nodes import FAIL, intern_node, join, plus, push_work, repetition, times, wide
from .tables import DEAD, REC, UNKNOWN, Counter, Fault
from .watched_items import watch_of


@inner
def row_of_cover(arena, tables, cover):
    """Where in the arena the row of a COVER begins."""
    return tables.lists + wide(arena[tables.b + REC * cover])


@inner
def sort_of(row, sort):
    """Where in the arena a sort is described."""
    return row + CoverRow.FIRST + CoverRow.OF_SORT * sort


@inner
def counters(arena, tables, cover, lows):
    """What each counter of a COVER still wants, if `lows`, or how many it allows: int64 [counters]."""
    out = np.full(wide(arena[row_of_cover(arena, tables, cover) + CoverRow.COUNTERS]), 0 if lows else UNBOUNDED, np.int64)
    tally = wide(arena[tables.a + REC * cover])
    while tally != FAIL:
        part = wide(arena[tables.a + REC * tally])
        out[arena[tables.c + REC * tally]] = arena[tables.b + REC * part] if lows else arena[tables.c + REC * part]
        tally = wide(arena[tables.b + REC * tally])
    return out


@inner
def take_items(arena, row, sort, count, low):
    """Take items of a sort from what its counters want."""
    at = sort_of(row, sort)
    first = row + wide(arena[at + CoverRow.WHERE])
    for k in range(first, first + wide(arena[at + CoverRow.COUNT])):
        low[arena[k]] = max(low[arena[k]] - count, wide(0))


@inner
def may_come(arena, tables, row, sort, high):
    """Whether an item of a sort has a text, and no counter has enough of it."""
    at = sort_of(row, sort)
    first = row + wide(arena[at + CoverRow.WHERE])
    for k in range(first, first + wide(arena[at + CoverRow.COUNT])):
        if high[arena[k]] == 0:
            return False
    return arena[tables.size + REC * arena[at + CoverRow.TEXT]] < INFINITE


@inner
def wants_any(low):
    """Whether some counter still wants an item."""
    for i in range(low.size):
        if low[i] > 0:
            return True
    return False


@inner
def planned_times(arena, row, sort, low):
    """How often a planned sort comes, by what is wanted."""
    at = sort_of(row, sort)
    counter = wide(arena[at + CoverRow.TIMES])
    if counter >= 0:
        return wide(low[counter])
    most = wide(0)
    first = row + wide(arena[at + CoverRow.WHERE])
    for k in range(first, first + wide(arena[at + CoverRow.COUNT])):
        most = max(most, wide(low[arena[k]]))
    return most if counter == ANY_TIMES else wide(0)


@inner
def price_of_plan(arena, tables, row, low, measures):
    """What the planned items take that bring `low` to nothing, each behind a separator. Overwrites `low`."""
    total, separator = wide(0), wide(arena[measures + REC * arena[row + CoverRow.SEPARATOR]])
    for sort in range(wide(arena[row + CoverRow.SORTS])):
        at = sort_of(row, sort)
        if arena[at + CoverRow.TIMES] == NOT_PLANNED:
            continue
        count, text = planned_times(arena, row, wide(sort), low), wide(arena[at + CoverRow.TEXT])
        if count > 0 and arena[tables.size + REC * text] < INFINITE:
            total = plus(total, times(count, plus(separator, wide(arena[measures + REC * text]))))
            take_items(arena, row, wide(sort), count, low)
    return wide(INFINITE) if wants_any(low) else total


@inner
def price_of_cover(arena, tables, cover, measures):
    """What a COVER takes by its plan."""
    row, low = row_of_cover(arena, tables, cover), counters(arena, tables, cover, True)
    is_wanted = wants_any(low)
    price = price_of_plan(arena, tables, row, low, measures)
    if arena[tables.c + REC * cover] == 0 or price >= INFINITE:
        return price
    if is_wanted:
        return price - wide(arena[measures + REC * arena[row + CoverRow.SEPARATOR]])
    price, high = wide(INFINITE), counters(arena, tables, cover, False)
    for sort in range(wide(arena[row + CoverRow.SORTS])):
        if may_come(arena, tables, row, wide(sort), high):
            price = min(price, wide(arena[measures + REC * arena[sort_of(row, sort) + CoverRow.TEXT]]))
    return price


@inner
def settle_plan(arena, tables, cover):
    """Leave out of the plan the sorts of which no text is known yet: theirs may hold a cover that this one is part of."""
    row = row_of_cover(arena, tables, cover)
    for sort in range(wide(arena[row + CoverRow.SORTS])):
        at = sort_of(row, sort)
        if arena[tables.size + REC * arena[at + CoverRow.TEXT]] >= INFINITE:
            arena[at + CoverRow.TIMES] = NOT_PLANNED


@inner
def cover_of(arena, tables, tally, row, must_follow):
    """The COVER of a list of counters, with its size and cost."""
    node = intern_node(arena, tables, wide(Kind.COVER), tally, row, must_follow)
    if arena[tables.size + REC * node] == UNKNOWN and node != FAIL:
        arena[tables.size + REC * node] = price_of_cover(arena, tables, node, tables.size)
        arena[tables.cost + REC * node] = price_of_cover(arena, tables, node, tables.cost)
    return node


@inner
def open_cover(arena, tables, cover, tail, depth):
    """Put on the work list what a COVER may begin with, each followed by what is then left and `tail`. Returns the new depth."""
    row = row_of_cover(arena, tables, cover)
    if arena[tables.c + REC * cover] == 0:
        if arena[tables.size + REC * cover] == 0:
            depth = push_work(arena, tables, tail, depth)
        following = cover_of(arena, tables, wide(arena[tables.a + REC * cover]), wide(arena[tables.b + REC * cover]), wide(1))
        if arena[tables.size + REC * following] < INFINITE:
            separator = wide(arena[row + CoverRow.SEPARATOR])
            depth = push_work(arena, tables, join(arena, tables, separator, join(arena, tables, following, tail)), depth)
        return depth
    low, high = counters(arena, tables, cover, True), counters(arena, tables, cover, False)
    for sort in range(wide(arena[row + CoverRow.SORTS])):
        if arena[sort_of(row, sort) + CoverRow.WATCHERS] == ONLY_PLANNED:
            continue
        if arena[tables.n + Counter.FAULT] == Fault.NONE and may_come(arena, tables, row, wide(sort), high):
            watch = watched_item(arena, tables, cover, row, wide(sort), low, high)
            if watch != FAIL:
                depth = push_work(arena, tables, join(arena, tables, watch, tail), depth)
                continue
            taken = taken_item(arena, tables, cover, row, wide(sort), low, high)
            text = wide(arena[sort_of(row, sort) + CoverRow.TEXT])
            depth = push_work(arena, tables, join(arena, tables, text, join(arena, tables, taken, tail)), depth)
    return depth


@inner
def watched_item(arena, tables, cover, row, sort, low, high):
    """The WATCH of an item of a sort; FAIL where none of what may be watched is wanted."""
    at, others = sort_of(row, sort), wide(FAIL)
    first = row + wide(arena[at + CoverRow.WATCHERS])
    for pair in range(first + 2 * wide(arena[at + CoverRow.NUM_WATCHERS]), first, -2):
        planned, state = wide(arena[pair]), wide(arena[pair + 1])
        if state != DEAD and low[own_counter(arena, row, planned)] > 0:
            taken = taken_item(arena, tables, cover, row, planned, low, high)
            others = watch_of(arena, tables, wide(Kind.WATCHED), state, others, taken)
    if others == FAIL:
        return wide(FAIL)
    taken = taken_item(arena, tables, cover, row, sort, low, high)
    return watch_of(arena, tables, wide(Kind.WATCH), wide(arena[first + 1]), others, taken)


@inner
def own_counter(arena, row, planned):
    """The counter of what a watcher watches for."""
    return wide(arena[row + wide(arena[sort_of(row, planned) + CoverRow.WHERE])])


@inner
def taken_item(arena, tables, cover, row, sort, low, high):
    """The TAKEN node of an item of a sort, with its size and cost. low, high: what the counters of the COVER want and allow."""
    at = sort_of(row, sort)
    first, is_counted = row + wide(arena[at + CoverRow.WHERE]), False
    for k in range(first, first + wide(arena[at + CoverRow.COUNT])):
        is_counted = is_counted or low[arena[k]] > 0 or high[arena[k]] >= 0
    if not is_counted:
        sort = wide(arena[row + CoverRow.SORTS])
    node = intern_node(arena, tables, wide(Kind.TAKEN), cover, sort, wide(0))
    if arena[tables.size + REC * node] == UNKNOWN and node != FAIL:
        left = low.copy()
        if is_counted:
            take_items(arena, row, sort, wide(1), left)
        arena[tables.size + REC * node] = price_of_plan(arena, tables, row, left.copy(), tables.size)
        arena[tables.cost + REC * node] = price_of_plan(arena, tables, row, left, tables.cost)
    return node


@inner
def cover_behind(arena, tables, taken):
    """What a TAKEN node of a COVER stands for."""
    cover = wide(arena[tables.a + REC * taken])
    low, high = counters(arena, tables, cover, True), counters(arena, tables, cover, False)
    take_all(arena, tables, taken, low, high)
    return cover_left(arena, tables, cover, low, high)


@inner
def cover_behind_watch(arena, tables, watch):
    """What comes behind an item that ends here, of a WATCH."""
    taken, watched = wide(arena[tables.c + REC * watch]), wide(arena[tables.b + REC * watch])
    cover = wide(arena[tables.a + REC * taken])
    row = row_of_cover(arena, tables, cover)
    low, high = counters(arena, tables, cover, True), counters(arena, tables, cover, False)
    take_all(arena, tables, taken, low, high)
    while watched != FAIL:
        if arena[tables.state_accept + REC * arena[tables.a + REC * watched]] == 1:
            counter = own_counter(arena, row, wide(arena[tables.b + REC * arena[tables.c + REC * watched]]))
            low[counter] = max(low[counter] - 1, wide(0))
        watched = wide(arena[tables.b + REC * watched])
    return cover_left(arena, tables, cover, low, high)


@inner
def take_all(arena, tables, taken, low, high):
    """Take the item of a TAKEN node from what counters want and allow."""
    row, sort = row_of_cover(arena, tables, wide(arena[tables.a + REC * taken])), wide(arena[tables.b + REC * taken])
    if sort < arena[row + CoverRow.SORTS]:
        take_items(arena, row, sort, wide(1), low)
        at = sort_of(row, sort)
        first = row + wide(arena[at + CoverRow.WHERE])
        for k in range(first, first + wide(arena[at + CoverRow.COUNT])):
            if high[arena[k]] > 0:
                high[arena[k]] -= 1


@inner
def cover_left(arena, tables, cover, low, high):
    """What comes where the counters of a COVER still want and allow so many."""
    row = row_of_cover(arena, tables, cover)
    tally, separator = wide(FAIL), wide(arena[row + CoverRow.SEPARATOR])
    for i in range(low.size - 1, -1, -1):
        if low[i] > 0 or high[i] >= 0:
            part = repetition(arena, tables, separator, wide(low[i]), wide(high[i]))
            tally = intern_node(arena, tables, wide(Kind.TALLY), part, tally, wide(i))
            if arena[tables.n + Counter.FAULT] != Fault.NONE:
                return wide(FAIL)
    if tally == FAIL:
        return wide(arena[row + CoverRow.SETTLED])
    return cover_of(arena, tables, tally, wide(arena[tables.b + REC * cover]), wide(0))
