"""What members and counted items may cost where the object or array that they are in must be new (new_texts.py).

Two numbers of each node are found from those of its parts. `ample`: one part that comes has as many texts as have to differ, and
all others are their cheapest ones; so there are as many texts of the whole, and in whatever order members come they differ.
`worst`: no text costs more, or as many texts as have to differ do not. That is found for each set of members by itself: if some
member of it has enough texts, that member alone has to differ, and else all members are among few. So a member counts with the
lesser of its two numbers, and a part that is a choice of members with its `worst` alone: what it has enough of may be members that
the bounds of the object leave no room for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.ids import NodeId
from ...base.kinds import INFINITE, UNBOUNDED, CoverRow, Event, Kind
from ...numba_support.jit import inner
from ...numba_support.records import Words
from ..asked_members import most_asked
from ..covers import counters, first_planned, may_come, row_of_cover, sort_of
from ..families import asks
from ..nodes import EMPTY, FAIL, Measure, plus, times, wide
from ..tables import Tables
from ..walk_measures import FIRST_CASE, row_of, sum_of_list


@inner
def ends_item(m: Tables, i: NodeId) -> bool:
    """Whether a node is the comma behind an item that must be new."""
    return m.nodes[i].kind == Kind.CLASS and m.nodes[i].c == Event.ITEM_CLOSE


@inner
def ample_of_walk(m: Tables, i: NodeId, enough: Words) -> int:
    """What suffices where one part of a DECISION, FAMILY, WALK or COVER has the price that `enough` gives: int32 [nodes]."""
    kind = m.nodes[i].kind
    if kind == Kind.DECISION:
        return ample_of_decision(m, i, enough)
    if kind == Kind.FAMILY:
        return ample_of_family(m, i, enough)
    return ample_of_parts(m, i, enough) if kind == Kind.WALK else ample_of_cover(m, i, enough)


@inner
def ample_of_decision(m: Tables, i: NodeId, enough: Words) -> int:
    """`ample_of_walk` of a DECISION."""
    ample, cases = enough_of(enough, m.nodes[i].c), row_of(m, i) + FIRST_CASE
    for k in range(m.nodes[i].b):
        member, rest = NodeId(wide(cases[2 * k])), NodeId(wide(cases[2 * k + 1]))
        if m.nodes[member].size < INFINITE:
            ample = min(ample, plus(enough_of(enough, member), sum_of_list(m, rest, Measure.COST)))
            ample = min(ample, plus(m.nodes[member].cost, ample_of_list(m, rest, enough)))
    return ample


@inner
def ample_of_family(m: Tables, i: NodeId, enough: Words) -> int:
    """`ample_of_walk` of a FAMILY."""
    member, with_it, without = NodeId(m.nodes[i].a), NodeId(m.nodes[i].b), NodeId(m.nodes[i].c)
    ample = enough_of(enough, without)
    if with_it != FAIL:
        rest = 0 if with_it == EMPTY else m.nodes[with_it].cost
        ample = min(ample, plus(enough_of(enough, member), rest))
        ample = min(ample, plus(m.nodes[member].cost, enough_of(enough, with_it)))
    return ample


@inner
def enough_of(enough: Words, node: NodeId) -> int:
    """The number of a part, INFINITE where nothing comes."""
    return INFINITE if node <= EMPTY else wide(enough[node])


@inner
def ample_of_list(m: Tables, tally: NodeId, enough: Words) -> int:
    """`ample_of_walk` of a list of parts that all have to be met. Whichever text of one comes, what is asked behind it comes
    besides."""
    total, ample, place = sum_of_list(m, tally, Measure.COST), INFINITE, 0
    if total >= INFINITE:
        return INFINITE
    more = most_asked(m, tally)
    while tally != FAIL:
        part = NodeId(m.nodes[tally].a)
        if enough[part] < INFINITE and not asks(m, part):
            beside = plus(total - m.nodes[part].cost, wide(more[place]) if more.size > 0 else 0)
            ample = min(ample, plus(beside, wide(enough[part])))
        tally, place = NodeId(m.nodes[tally].b), place + 1
    return ample


@inner
def ample_of_parts(m: Tables, walk: NodeId, enough: Words) -> int:
    """`ample_of_walk` of a WALK. Where the number of members is bounded its cheapest way is not the sum of those of its parts."""
    bounds = NodeId(m.nodes[walk].b)
    if m.nodes[bounds].b > 0 or m.nodes[bounds].c >= 0:
        return INFINITE
    ample = ample_of_list(m, NodeId(m.nodes[walk].a), enough)
    return ample - m.nodes[m.nodes[bounds].a].cost if m.nodes[walk].c == 1 and ample < INFINITE else ample


@inner
def ample_of_cover(m: Tables, cover: NodeId, enough: Words) -> int:
    """`ample_of_walk` of a COVER: one item more, of a sort that may come any number of times; of the first items of a tuple, what
    suffices behind the planned one, whatever that has fulfilled."""
    row, high, ample = row_of_cover(m, cover), counters(m, cover, False), INFINITE
    if row[CoverRow.NEXT] != FAIL:
        planned = first_planned(m, row)
        if most_items(row, planned, high) >= 0:
            return INFINITE
        item = m.nodes[wide(sort_of(row, planned)[CoverRow.TEXT])].cost
        return plus(plus(m.nodes[wide(row[CoverRow.SEPARATOR])].cost, item), enough_of(enough, NodeId(wide(row[CoverRow.NEXT]))))
    for sort in range(row[CoverRow.SORTS]):
        if most_items(row, sort, high) < 0 and may_come(m, row, sort, high):
            ample = min(ample, wide(enough[wide(sort_of(row, sort)[CoverRow.TEXT])]))
    return plus(plus(m.nodes[cover].cost, m.nodes[wide(row[CoverRow.SEPARATOR])].cost), ample)


@inner
def ample_of_lengths(m: Tables, cover: NodeId, different: int) -> int:
    """What suffices where arrays of a COVER differ in their lengths: some items may come any number of times, and be alike."""
    row, high, ample = row_of_cover(m, cover), counters(m, cover, False), INFINITE
    separator = NodeId(wide(row[CoverRow.SEPARATOR]))
    if row[CoverRow.NEXT] != FAIL or ends_item(m, separator):
        return INFINITE  # a tuple's first items come once, or items must differ
    for sort in range(row[CoverRow.SORTS]):
        if most_items(row, sort, high) < 0 and may_come(m, row, sort, high):
            item = plus(m.nodes[separator].cost, m.nodes[wide(sort_of(row, sort)[CoverRow.TEXT])].cost)
            ample = min(ample, plus(m.nodes[cover].cost, times(different - 1, item)))
    return ample


# -- what no text exceeds -------------------------------------------------------------------------------------------------


@inner
def most_of(m: Tables, member: NodeId) -> int:
    """A cost that no text of a member or an item exceeds, or that as many as have to differ do not."""
    return min(wide(m.worst[member]), wide(m.ample[member]))


@inner
def worst_of(m: Tables, part: NodeId) -> int:
    """`worst` of a part that is a choice of members, 0 where nothing comes."""
    return 0 if part <= EMPTY else wide(m.worst[part])


@inner
def worst_of_walk(m: Tables, i: NodeId, different: int) -> int:
    """`worst` of a DECISION, FAMILY, WALK or COVER."""
    kind = m.nodes[i].kind
    if kind == Kind.DECISION:
        return worst_of_decision(m, i, different)
    if kind == Kind.FAMILY:
        return worst_of_family(m, i)
    if kind == Kind.WALK:
        return worst_of_list(m, NodeId(m.nodes[i].a), m.nodes[m.nodes[i].b].b, different)
    return worst_of_cover(m, i, different)


@inner
def worst_of_decision(m: Tables, i: NodeId, different: int) -> int:
    worst, cases = worst_of(m, m.nodes[i].c), row_of(m, i) + FIRST_CASE
    for k in range(m.nodes[i].b):
        member = NodeId(wide(cases[2 * k]))
        if m.nodes[member].size < INFINITE:
            worst = max(worst, plus(most_of(m, member), worst_of_list(m, NodeId(wide(cases[2 * k + 1])), 0, different)))
    return worst


@inner
def worst_of_family(m: Tables, i: NodeId) -> int:
    member, with_it, without = NodeId(m.nodes[i].a), NodeId(m.nodes[i].b), NodeId(m.nodes[i].c)
    worst = worst_of(m, without)
    if with_it != FAIL and m.nodes[member].size < INFINITE:
        worst = max(worst, plus(most_of(m, member), worst_of(m, with_it)))
    return worst


@inner
def worst_of_list(m: Tables, tally: NodeId, low: int, different: int) -> int:
    """`worst` of a list of parts, together of at least `low` members. ASKED members are members of the others."""
    worst = 0
    while tally != FAIL:
        part = NodeId(m.nodes[tally].a)
        if m.nodes[part].kind == Kind.REPEAT:
            worst = plus(worst, worst_of_members(m, part, low, different))
        elif not asks(m, part):
            worst = plus(worst, worst_of(m, part))
        tally = NodeId(m.nodes[tally].b)
    return worst


@inner
def worst_of_members(m: Tables, part: NodeId, low: int, different: int) -> int:
    """`worst` of a REPEAT of members, by itself or in what has at least `low` members. Of members with enough texts no more come
    than have to, and of others no more than there may be different ones."""
    member, high = NodeId(m.nodes[part].a), m.nodes[part].c
    if m.nodes[member].size >= INFINITE or high == 0:
        return 0
    least = max(m.nodes[part].b, low, 1)
    if m.ample[member] < INFINITE:
        count = least if high < 0 else min(least, high)
        return plus(times(count - 1, m.nodes[member].cost), wide(m.ample[member]))
    return times(most_copies(least, high, different), wide(m.worst[member]))


@inner
def most_copies(low: int, high: int, different: int) -> int:
    """So many copies, at least `low` of which come, of what has fewer texts than have to differ: with more of them they would be
    enough for all to differ in their number, or repeat where they must not. high: UNBOUNDED for any number."""
    count = low + different - 1
    return count if high < 0 else min(count, high)


@inner
def worst_of_cover(m: Tables, cover: NodeId, different: int) -> int:
    """`worst` of a COVER: as many items of each sort as its counters and the number of different ones allow. Of a
    tuple's first items one comes, and behind it what no text exceeds."""
    row, high, low = row_of_cover(m, cover), counters(m, cover, False), counters(m, cover, True)
    separator, worst, wanted = NodeId(wide(row[CoverRow.SEPARATOR])), 0, 0
    if row[CoverRow.NEXT] != FAIL:
        for sort in range(row[CoverRow.SORTS]):
            text = NodeId(wide(sort_of(row, sort)[CoverRow.TEXT]))
            if may_come(m, row, sort, high):
                worst = max(worst, plus(m.nodes[separator].cost, most_of(m, text)))
        return plus(worst, wide(m.worst[row[CoverRow.NEXT]]))
    for i in range(low.size):
        wanted = plus(wanted, wide(low[i]))
    for sort in range(row[CoverRow.SORTS]):
        text = NodeId(wide(sort_of(row, sort)[CoverRow.TEXT]))
        if may_come(m, row, sort, high):
            count = most_copies(wanted, most_items(row, sort, high), different)
            worst = plus(worst, times(count, plus(m.nodes[separator].cost, most_of(m, text))))
    return worst


@inner
def most_items(row: Words, sort: int, high: NDArray[np.int64]) -> int:
    """How many items of a sort may come by its counters, UNBOUNDED for any number."""
    at, most = sort_of(row, sort), UNBOUNDED
    counted = row + at[CoverRow.WHERE]
    for k in range(at[CoverRow.COUNT]):
        allowed = wide(high[counted[k]])
        if allowed >= 0 and (most < 0 or allowed < most):
            most = allowed
    return most


@inner
def worst_of_bag(m: Tables, bag: NodeId, different: int) -> int:
    """`worst` of a BAG."""
    worst, tally = 0, m.nodes[bag].a
    while tally != FAIL:
        part = m.nodes[tally].a
        text = NodeId(m.nodes[part].a)
        if m.nodes[text].size < INFINITE:
            high = most_copies(max(m.nodes[part].b, m.nodes[bag].b), m.nodes[part].c, different)
            worst = plus(worst, times(high, most_of(m, text)))
        tally = m.nodes[tally].b
    return worst
