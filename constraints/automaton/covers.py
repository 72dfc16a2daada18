"""Covers: items of several sorts in any order, under conditions each of which counts the items of some sorts.

A COVER has a list of TALLY nodes, one for each counter that still wants or bounds something, and a row of the list pool that says
which counters each sort of items is counted by:

    sorts, counters, place of the cores, separator, the COVER of the next row, what follows where nothing is wanted;
    then for each sort: text, times, place of its counters, their number, place of its watchers, their number;
    then the counters and watchers of all sorts, and the cores

An item is taken from all counters of its sort at a time. So memory is a list of numbers, where one state for each set of conditions
that are met would be their product. The first items of a tuple have rows of their own, each with the next one, behind its item.

What a cover takes at the least is a question of covering sets by the fewest, which no quick method answers. The *plan* is an
upper bound: the sorts that have `times` come first in the row, and each comes as often as its counter wants, or for ANY_TIMES as
often as any of its counters does, after those before it have come. The first of them that comes at all brings the end nearer by
its price, as the plan is the same behind it; and nothing is too many of a planned sort, as those have seen to that make covers
(`plan` in front_ends/json_schema/lowering/covers.py). So there are no dead ends. In a row with a next one the first planned sort
that has a text comes once, whatever is wanted.

Where the number of all items is bounded (that of counter 0, which counts each), the plan has the fewest items that there can be
(`fewest`, there as well), so that an item may come where the plan behind it has no more of them than may still come. What cannot be
planned one counter after the other are *cores*: a few counters, with a table of which sort comes next for each list of what they
want, read after a number of planned sorts. cores: their number, and that of the sorts; then for each: counters, size of the table,
pairs of a counter and what one item that it wants adds to the place in the table, and the table.

Where an item may fulfil any of many conditions, its sort has *watchers*: sorts that are only planned, each with one more counter,
its first. They are read beside the item (watched_items.py), and those that end with it are counted.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import ANY_TIMES, INFINITE, NOT_PLANNED, ONLY_PLANNED, UNBOUNDED, CoverRow, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from .nodes import FAIL, Measure, intern_node, join, measured, plus, push_work, repetition, times, wide
from .tables import DEAD, UNKNOWN, Fault, Tables
from .watched_items import watch_of


@inner
def row_of_cover(m: Tables, cover: NodeId) -> Words:
    """Where in the arena the row of a COVER begins."""
    return m.lists + m.nodes[cover].b


@inner
def sort_of(row: Words, sort: int) -> Words:
    """Where in the arena a sort is described."""
    return row + CoverRow.FIRST + CoverRow.OF_SORT * sort


@inner
def cover_behind_items(m: Tables, cover: NodeId) -> NodeId:
    """The COVER whose row says what comes behind an item of a COVER."""
    following = row_of_cover(m, cover)[CoverRow.NEXT]
    return cover if following == FAIL else NodeId(following)


@inner
def counters(m: Tables, cover: NodeId, lows: bool) -> NDArray[np.int64]:
    """What each counter of a COVER still wants, if `lows`, or how many it allows: int64 [counters]."""
    out = np.full(row_of_cover(m, cover)[CoverRow.COUNTERS], 0 if lows else UNBOUNDED, np.int64)
    tally = m.nodes[cover].a
    while tally != FAIL:
        part = m.nodes[tally].a
        out[m.nodes[tally].c] = m.nodes[part].b if lows else m.nodes[part].c
        tally = m.nodes[tally].b
    return out


@inner
def take_items(row: Words, sort: int, count: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> bool:
    """Take items of a sort from what its counters want and allow. Returns whether they allow as many."""
    at, are_allowed = sort_of(row, sort), True
    counted = row + at[CoverRow.WHERE]
    for k in range(at[CoverRow.COUNT]):
        low[counted[k]] = max(low[counted[k]] - count, 0)
        if high[counted[k]] >= 0:
            are_allowed = are_allowed and high[counted[k]] >= count
            high[counted[k]] = max(high[counted[k]] - count, 0)
    return are_allowed


@inner
def may_come(m: Tables, row: Words, sort: int, high: NDArray[np.int64]) -> bool:
    """Whether an item of a sort has a text, and no counter has enough of it."""
    at = sort_of(row, sort)
    counted = row + at[CoverRow.WHERE]
    for k in range(at[CoverRow.COUNT]):
        if high[counted[k]] == 0:
            return False
    return m.nodes[at[CoverRow.TEXT]].size < INFINITE


@inner
def wants_any(low: NDArray[np.int64]) -> bool:
    """Whether some counter still wants an item."""
    for i in range(low.size):
        if low[i] > 0:
            return True
    return False


@inner
def planned_times(row: Words, sort: int, low: NDArray[np.int64]) -> int:
    """How often a planned sort comes, by what is wanted."""
    at = sort_of(row, sort)
    counter = at[CoverRow.TIMES]
    if counter >= 0:
        return wide(low[counter])
    most = 0
    counted = row + at[CoverRow.WHERE]
    for k in range(at[CoverRow.COUNT]):
        most = max(most, wide(low[counted[k]]))
    return most if counter == ANY_TIMES else 0


@inner
def price_of_items(
    m: Tables, row: Words, sort: int, count: int, low: NDArray[np.int64], high: NDArray[np.int64], measures: int
) -> int:
    """What items of a sort take, each behind a separator; takes them from `low` and `high`. INFINITE where they may not come."""
    text = sort_of(row, sort)[CoverRow.TEXT]
    if m.nodes[text].size >= INFINITE or not take_items(row, sort, count, low, high):
        return INFINITE
    return times(count, plus(measured(m, row[CoverRow.SEPARATOR], measures), measured(m, text, measures)))


@inner
def price_of_plan(m: Tables, cover: NodeId, low: NDArray[np.int64], high: NDArray[np.int64], measures: int) -> int:
    """What the planned items take that bring `low` to nothing, each behind a separator; INFINITE where that is more of them than
    `high` allows. Overwrites both."""
    total, row = 0, row_of_cover(m, cover)
    while row[CoverRow.NEXT] != FAIL and wants_any(low):
        total = plus(total, price_of_items(m, row, first_planned(m, row), 1, low, high, measures))
        row = row_of_cover(m, NodeId(row[CoverRow.NEXT]))
    cores = row + row[CoverRow.CORES]
    for sort in range(row[CoverRow.SORTS] + 1):
        if row[CoverRow.CORES] != 0 and cores[1] == sort:
            total = plus(total, price_of_cores(m, row, low, high, measures))
        at = sort_of(row, sort)
        if sort == row[CoverRow.SORTS] or at[CoverRow.TIMES] == NOT_PLANNED or total >= INFINITE:
            continue
        count = planned_times(row, sort, low)
        if count > 0 and m.nodes[at[CoverRow.TEXT]].size < INFINITE:
            total = plus(total, price_of_items(m, row, sort, count, low, high, measures))
    return INFINITE if wants_any(low) else total


@inner
def first_planned(m: Tables, row: Words) -> int:
    """The first planned sort that has a text; the first one where none has."""
    for sort in range(row[CoverRow.SORTS]):
        at = sort_of(row, sort)
        if at[CoverRow.TIMES] != NOT_PLANNED and m.nodes[at[CoverRow.TEXT]].size < INFINITE:
            return sort
    return 0


@inner
def price_of_cores(m: Tables, row: Words, low: NDArray[np.int64], high: NDArray[np.int64], measures: int) -> int:
    """What the items take that the counters of all cores want; takes them from `low` and `high`."""
    cores, total = row + row[CoverRow.CORES], 0
    core = cores + 2
    for _ in range(cores[0]):
        num_counters, size = core[0], core[1]
        table = core + 2 + 2 * num_counters
        for _ in range(size):
            place = place_in_core(core, low)
            if 0 < place < size and total < INFINITE:
                total = plus(total, price_of_items(m, row, table[place], 1, low, high, measures))
            else:
                break
        core = table + size
    return total


@inner
def place_in_core(core: Words, low: NDArray[np.int64]) -> int:
    """The place in the table of a core for what its counters want."""
    place = 0
    for k in range(core[0]):
        place += low[core[2 + 2 * k]] * core[3 + 2 * k]
    return place


@inner
def price_of_cover(m: Tables, cover: NodeId, measures: int) -> int:
    """What a COVER takes by its plan."""
    row, low = row_of_cover(m, cover), counters(m, cover, True)
    is_wanted = wants_any(low)
    price = price_of_plan(m, cover, low, counters(m, cover, False), measures)
    if m.nodes[cover].c == 0 or price >= INFINITE:
        return price
    if is_wanted:
        return price - measured(m, row[CoverRow.SEPARATOR], measures)
    price, high = INFINITE, counters(m, cover, False)
    for sort in range(row[CoverRow.SORTS]):
        if may_come(m, row, sort, high):
            price = min(price, measured(m, sort_of(row, sort)[CoverRow.TEXT], measures))
    return price


@inner
def settle_plan(m: Tables, cover: NodeId) -> None:
    """Leave out of the plan the sorts of which no text is known yet: theirs may hold a cover that this one is part of."""
    row = row_of_cover(m, cover)
    for sort in range(row[CoverRow.SORTS]):
        at = sort_of(row, sort)
        if m.nodes[at[CoverRow.TEXT]].size >= INFINITE:
            at[CoverRow.TIMES] = NOT_PLANNED


@inner
def cover_of(m: Tables, tally: NodeId, row: int, must_follow: int) -> NodeId:
    """The COVER of a list of counters, with its size and cost."""
    node = intern_node(m, Kind.COVER, tally, row, must_follow)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        m.nodes[node].size = price_of_cover(m, node, Measure.SIZE)
        m.nodes[node].cost = price_of_cover(m, node, Measure.COST)
    return node


@inner
def open_cover(m: Tables, cover: NodeId, tail: NodeId, depth: int) -> int:
    """Put on the work list what a COVER may begin with, each followed by what is then left and `tail`. Returns the new depth."""
    row = row_of_cover(m, cover)
    if m.nodes[cover].c == 0:
        if m.nodes[cover].size == 0:
            depth = push_work(m, tail, depth)
        following = cover_of(m, m.nodes[cover].a, m.nodes[cover].b, 1)
        if m.nodes[following].size < INFINITE:
            separator = row[CoverRow.SEPARATOR]
            depth = push_work(m, join(m, separator, join(m, following, tail)), depth)
        return depth
    low, high = counters(m, cover, True), counters(m, cover, False)
    for sort in range(row[CoverRow.SORTS]):
        if sort_of(row, sort)[CoverRow.WATCHERS] == ONLY_PLANNED:
            continue
        if m.n.fault == Fault.NONE and may_come(m, row, sort, high):
            watch = watched_item(m, cover, row, sort, low, high)
            if watch != FAIL:
                depth = push_work(m, join(m, watch, tail), depth)
                continue
            taken = taken_item(m, cover, row, sort, low, high)
            text = sort_of(row, sort)[CoverRow.TEXT]
            depth = push_work(m, join(m, text, join(m, taken, tail)), depth)
    return depth


@inner
def watched_item(m: Tables, cover: NodeId, row: Words, sort: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> NodeId:
    """The WATCH of an item of a sort; FAIL where none of what may be watched is wanted."""
    at, others = sort_of(row, sort), FAIL
    watchers = row + at[CoverRow.WATCHERS]
    for k in range(2 * at[CoverRow.NUM_WATCHERS], 0, -2):
        planned, state = watchers[k], watchers[k + 1]
        if state != DEAD and low[own_counter(row, planned)] > 0:
            taken = taken_item(m, cover, row, planned, low, high)
            others = watch_of(m, Kind.WATCHED, state, others, taken)
    if others == FAIL:
        return FAIL
    taken = taken_item(m, cover, row, sort, low, high)
    return watch_of(m, Kind.WATCH, watchers[1], others, taken)


@inner
def own_counter(row: Words, planned: bool) -> int:
    """The counter of what a watcher watches for."""
    return row[sort_of(row, planned)[CoverRow.WHERE]]


@inner
def taken_item(m: Tables, cover: NodeId, row: Words, sort: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> NodeId:
    """The TAKEN node of an item of a sort, with its size and cost. low, high: what the counters of the COVER want and allow."""
    at = sort_of(row, sort)
    counted, is_counted = row + at[CoverRow.WHERE], False
    for k in range(at[CoverRow.COUNT]):
        is_counted = is_counted or low[counted[k]] > 0 or high[counted[k]] >= 0
    if not is_counted:
        sort = row[CoverRow.SORTS]
    node = intern_node(m, Kind.TAKEN, cover, sort, 0)
    if m.nodes[node].size == UNKNOWN and node != FAIL:
        left, allowed, following = low.copy(), high.copy(), cover_behind_items(m, cover)
        if is_counted:
            take_items(row, sort, 1, left, allowed)
        m.nodes[node].size = price_of_plan(m, following, left.copy(), allowed.copy(), Measure.SIZE)
        m.nodes[node].cost = price_of_plan(m, following, left, allowed, Measure.COST)
    return node


@inner
def cover_behind(m: Tables, taken: NodeId) -> NodeId:
    """What a TAKEN node of a COVER stands for."""
    cover = m.nodes[taken].a
    low, high = counters(m, cover, True), counters(m, cover, False)
    take_all(m, taken, low, high)
    return cover_left(m, cover, low, high)


@inner
def cover_behind_watch(m: Tables, watch: NodeId) -> NodeId:
    """What comes behind an item that ends here, of a WATCH."""
    taken, watched = m.nodes[watch].c, m.nodes[watch].b
    cover = m.nodes[taken].a
    row = row_of_cover(m, cover)
    low, high = counters(m, cover, True), counters(m, cover, False)
    take_all(m, taken, low, high)
    while watched != FAIL:
        if m.states[m.nodes[watched].a].accept == 1:
            counter = own_counter(row, m.nodes[m.nodes[watched].c].b)
            low[counter] = max(low[counter] - 1, 0)
        watched = m.nodes[watched].b
    return cover_left(m, cover, low, high)


@inner
def take_all(m: Tables, taken: NodeId, low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
    """Take the item of a TAKEN node from what counters want and allow."""
    row, sort = row_of_cover(m, m.nodes[taken].a), m.nodes[taken].b
    if sort < row[CoverRow.SORTS]:
        take_items(row, sort, 1, low, high)


@inner
def cover_left(m: Tables, cover: NodeId, low: NDArray[np.int64], high: NDArray[np.int64]) -> NodeId:
    """What comes behind an item of a COVER where its counters still want and allow so many."""
    following = cover_behind_items(m, cover)
    row = row_of_cover(m, following)
    tally, separator = FAIL, row[CoverRow.SEPARATOR]
    for i in range(low.size - 1, -1, -1):
        if low[i] > 0 or high[i] >= 0:
            part = repetition(m, separator, wide(low[i]), wide(high[i]))
            tally = intern_node(m, Kind.TALLY, part, tally, wide(i))
            if m.n.fault != Fault.NONE:
                return FAIL
    if tally == FAIL:
        return row[CoverRow.SETTLED]
    return cover_of(m, tally, m.nodes[following].b, 0)
