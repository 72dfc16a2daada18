"""What keys and items that must be new may cost beyond the cheapest one.

A key or item that must be new may find its cheapest string used up (seen_values.py). The byte before it is charged for that:
`ample` of the key or item less its cost, when the mark of the byte knows that node, else one token. `ample` is a cost
at which there are as many strings as have to differ (`Grammar.most_different`), because a repetition may take more copies; a node
that has no such cost is charged `worst`, which no string of it exceeds, unless as many as have to differ do not. Unions of
members say by themselves whether the cheapest one may have been written before (`Supply`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.ids import NodeId
from ...base.kinds import INFINITE, NOT_PLANNED, CoverRow, Event, Kind, Supply
from ...numba_support.divisors import COUNTS, MultipleRow
from ...numba_support.jit import entry, inner
from ...numba_support.record_access import pointer
from ...numba_support.records import Words
from ..covers import row_of_cover, sort_of
from ..nodes import EMPTY, FAIL, plus, times, wide
from ..tables import Tables, tables_at
from .new_members import ample_of_lengths, ample_of_walk, ends_item, most_copies, worst_of_bag, worst_of_walk

_ENOUGH_ALIKE = 1 << 15  # strings: the product of two such numbers is one


@inner
def is_walk(kind: int) -> bool:
    """Whether a node is one of those that are followed member by member, or item by item."""
    return kind == Kind.DECISION or kind == Kind.FAMILY or kind == Kind.WALK or kind == Kind.COVER


@inner
def tokens_to_differ(different: int) -> int:
    """What so many strings cost more than the cheapest one, where nobody counts them: as if each token doubled their number."""
    tokens, strings = 1, 2
    while strings < different:
        tokens, strings = tokens + 1, 2 * strings
    return tokens


@inner
def surcharge(m: Tables, node: NodeId) -> int:
    """Tokens that a key or item which must be new may cost beyond its cheapest string."""
    if node == EMPTY:
        return 1
    cost = m.nodes[node].cost
    enough = m.ample[node] if m.ample[node] < INFINITE else m.worst[node]
    return max(enough - cost, 0) if enough < INFINITE else tokens_to_differ(m.n.different)


@inner
def is_white_space(m: Tables, node: NodeId) -> bool:
    """Whether a node is one character of JSON's white space between tokens. Strings have blanks, but no control characters."""
    if m.nodes[node].kind != Kind.CLASS:
        return False
    has_control = False
    for e in range(m.nodes[node].a, m.nodes[node].a + m.nodes[node].b):
        for byte in range(m.edge_low[e], m.edge_high[e] + 1):
            if byte != 0x20 and byte != 0x0A and byte != 0x0D and byte != 0x09:
                return False
            has_control = has_control or byte != 0x20
    return has_control


@inner
def count_alike(
    m: Tables, i: NodeId, alike: NDArray[np.int32], ends: NDArray[np.bool_], marked: NDArray[np.bool_], single: NDArray[np.bool_]
) -> int:
    """A number of different strings of a node which have one length, so that sequences of them differ, too, and cost no more than
    its cheapest; of more than _ENOUGH_ALIKE, that many. What comes behind a key that ends does not count. alike, ends, marked:
    what is known of its children."""
    kind, a, b, count = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b, 1
    if kind == Kind.BOTH or kind == Kind.NEGATE:
        count = wide(alike[i])  # counted before
    elif kind == Kind.CLASS:
        characters = wide(alike[i]) if alike[i] > 1 else 0  # counted in a pass before
        for e in range(a, a + b if characters == 0 else a):
            if m.edge_next[e] == EMPTY:
                for value in range(m.edge_low[e], m.edge_high[e] + 1):
                    characters += 1 if single[value] else 0
        count = max(characters, 1)
    elif kind == Kind.SEQ:
        count = wide(alike[a]) * (1 if ends[a] else alike[b])
    elif kind == Kind.ALT and m.nodes[i].c != Supply.SPARE:
        for j in range(a, a + b):
            option = m.lists[j]
            if m.nodes[option].cost <= m.nodes[i].cost:
                count = max(count, wide(alike[option]))
    elif kind == Kind.REPEAT and b > 0 and (b == 1 or m.nodes[a].copies_per_token == 1 and not marked[a]):
        for _ in range(min(b, _ENOUGH_ALIKE)):
            count = min(count * alike[a], _ENOUGH_ALIKE)
    elif kind == Kind.CALL:
        count = wide(alike[m.rules[a]])
    return min(count, _ENOUGH_ALIKE)


@inner
def copies_to_differ(alike: int, different: int) -> int:
    """So many copies more than the fewest give that many different strings, when each copy is one of `alike`."""
    copies, strings, of_this_many = 0, 1, 1
    while strings < different:
        if alike == 1:
            return different - 1
        copies, of_this_many = copies + 1, of_this_many * alike
        strings += of_this_many
    return copies


@inner
def ends_key(m: Tables, i: NodeId, ends: NDArray[np.bool_]) -> bool:
    """Whether a key ends in a node that has not begun in it: what comes behind makes no key a new one. ends: the same of its
    children."""
    kind, a, b = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b
    if kind == Kind.CLASS:
        if m.nodes[i].c == Event.KEY_CLOSE or m.nodes[i].c == Event.KEY_OPEN:
            return m.nodes[i].c == Event.KEY_CLOSE
        for e in range(a, a + b):
            if ends[m.edge_next[e]]:
                return True
    elif kind == Kind.SEQ:
        return ends[a] or ends[b]
    elif kind == Kind.ALT:
        for j in range(a, a + b):
            if ends[m.lists[j]]:
                return True
    elif kind == Kind.CALL:
        return ends[m.rules[a]]
    return False


@inner
def ample_of_bag(m: Tables, bag: NodeId) -> int:
    """What suffices where one member differs alone: one that must come has another value, or one more comes where that many may."""
    ample, tally = INFINITE, m.nodes[bag].a
    while tally != FAIL:
        part = m.nodes[tally].a
        text = NodeId(m.nodes[part].a)
        if m.nodes[text].size < INFINITE and m.ample[text] < INFINITE and (m.nodes[part].b > 0 or m.nodes[bag].c < 0):
            instead = m.nodes[text].cost if m.nodes[part].b > 0 else 0
            ample = min(ample, plus(m.nodes[bag].cost, m.ample[text] - instead))
        tally = m.nodes[tally].b
    return ample


@inner
def digits_to_differ(m: Tables, number: NodeId, different: int) -> tuple[int, int]:
    """(ample, worst) of a MULTIPLE or FRACTION, a token for each digit. Behind any digits, of all numbers of so many more one in
    `modulus` is divisible."""
    step, to_come = m.lists + m.nodes[number].a, m.nodes[number].c
    modulus, places = step[MultipleRow.MODULUS], step[MultipleRow.PLACES]
    if m.nodes[number].kind == Kind.FRACTION:
        return INFINITE, to_come
    low, high = to_come // COUNTS, to_come % COUNTS
    numbers, digits = 1, 0
    while digits < low or (digits < high and numbers // modulus < different):
        if numbers // modulus < different:
            numbers *= 10
        digits += 1
    worst = high if places == 0 else high + 1 + places
    return (digits if numbers // modulus >= different else INFINITE), worst


@inner
def is_marked(m: Tables, i: NodeId, marked: NDArray[np.bool_]) -> bool:
    """Whether there may be keys or items that must be new in a node. marked: the same of its children."""
    kind, a, b = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b
    if kind == Kind.CLASS:
        if m.nodes[i].c == Event.KEY_OPEN or m.nodes[i].c == Event.ITEM_CLOSE:
            return True
        for e in range(a, a + b):
            if marked[m.edge_next[e]]:
                return True
    elif kind == Kind.SEQ:
        return marked[a] or marked[b]
    elif kind == Kind.ALT:
        for j in range(a, a + b):
            if marked[m.lists[j]]:
                return True
    elif kind == Kind.REPEAT or kind == Kind.PLACED:
        return marked[a]
    elif kind == Kind.CALL:
        return marked[m.rules[a]]
    return kind == Kind.BAG or is_walk(kind)


@inner
def ample_of_repeat(m: Tables, i: NodeId, alike: int, different: int, marked: bool) -> int:
    """Of a REPEAT: one of the fewest copies has enough texts, or there are more copies, if they may be alike or have enough texts.
    marked: whether there may be keys or items that must be new in a copy."""
    body, low, high, more = NodeId(m.nodes[i].a), m.nodes[i].b, m.nodes[i].c, copies_to_differ(alike, different)
    cost, enough = m.nodes[body].cost, wide(m.ample[body])
    ample = plus(times(max(low, 1) - 1, cost), enough)
    if (high < 0 or low + more <= high) and (not marked or enough < INFINITE):
        ample = min(ample, plus(m.nodes[i].cost, times(more, cost)))
    return ample


@inner
def worst_of_repeat(m: Tables, i: NodeId, different: int, marked: bool) -> int:
    """Of a REPEAT."""
    body, high = NodeId(m.nodes[i].a), m.nodes[i].c
    if marked and m.ample[body] >= INFINITE:
        high = most_copies(m.nodes[i].b, high, different)
    return times(high, wide(m.worst[body])) if high >= 0 else INFINITE


@inner
def measure_ample(
    m: Tables, start: int, end: int, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_], marked: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> bool:
    """Set `worst` and `ample` of the nodes start..end from their children. Returns whether anything changed; to be
    repeated, in turn with `measure_shortest`, until nothing does.

    different: keys or items that may have to differ from each other. alike: int32 [nodes], see `count_alike`; 1 at first.
    ends, marked: bool [nodes], see `ends_key` and `is_marked`; False at first. single: as in `measure_shortest`. The strings of
    intersections and complements have been counted (text_counts.py); what rules that call themselves cost is told before
    (`measure_recursion`).
    """
    changed = False
    for number in range(start, end):
        i = NodeId(number)
        kind, a, b = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b
        cost, worst, ample = m.nodes[i].cost, INFINITE, INFINITE
        if cost >= INFINITE:
            pass
        elif kind == Kind.CLASS:
            worst = 0
            for e in range(a, a + b):
                follow = m.edge_next[e]
                if m.nodes[follow].size < INFINITE:
                    worst, ample = max(worst, plus(1, m.worst[follow])), min(ample, plus(1, m.ample[follow]))
            if ends_item(m, i):  # no text is promised for less than its surcharge
                worst, ample = max(worst, cost), max(ample, cost)
        elif kind == Kind.LITERAL:
            worst = cost
        elif kind == Kind.SEQ:
            worst = plus(m.worst[a], m.nodes[b].cost if ends[a] else m.worst[b])
            ample = plus(m.ample[a], m.nodes[b].cost)
            if not ends[a]:
                ample = min(ample, plus(m.nodes[a].cost, m.ample[b]))
        elif kind == Kind.ALT:
            worst = 0
            for j in range(a, a + b):
                option = m.lists[j]
                if m.nodes[option].size < INFINITE:
                    worst, ample = max(worst, m.worst[option]), min(ample, m.ample[option])
        elif kind == Kind.REPEAT:
            if is_white_space(m, NodeId(a)):
                worst = cost  # whatever is there, the key or item is the same one
            else:
                worst = worst_of_repeat(m, i, different, marked[a])
                ample = ample_of_repeat(m, i, wide(alike[a]), different, marked[a])
        elif kind == Kind.CALL:
            worst, ample = m.worst[m.rules[a]], min(m.ample[m.rules[a]], m.ample[i])
        elif kind == Kind.BOTH or kind == Kind.NEGATE:
            worst, ample = m.worst[i], m.ample[i]
        elif kind == Kind.BAG:
            ample, worst = ample_of_bag(m, i), worst_of_bag(m, i, different)
        elif is_walk(kind):
            ample, worst = ample_of_walk(m, i, m.ample), worst_of_walk(m, i, different)
            if kind == Kind.COVER:
                ample = min(ample, ample_of_lengths(m, i, different))
        elif kind == Kind.PLACED:
            worst, ample = m.worst[a], m.ample[a]
        elif kind == Kind.UNLISTED:
            worst, ample = m.worst[b], plus(max(cost, m.ample[b]), 1)
        elif kind == Kind.MULTIPLE or kind == Kind.FRACTION:
            ample, worst = digits_to_differ(m, i, different)
        count = count_alike(m, i, alike, ends, marked, single) if cost < INFINITE else 1
        is_end, is_new = ends_key(m, i, ends), is_marked(m, i, marked)
        if count >= different:
            ample = min(ample, cost)
        changed = changed or worst != m.worst[i] or ample != m.ample[i] or count != alike[i]
        changed = changed or is_end != ends[i] or is_new != marked[i]
        alike[i], ends[i], marked[i] = count, is_end, is_new
        m.worst[i], m.ample[i] = worst, ample
    return changed


@inner
def gap_of_cover(m: Tables, cover: NodeId) -> int:
    """The surcharge of the planned items of a COVER, where these must differ."""
    row, gap = row_of_cover(m, cover), 0
    separator = row[CoverRow.SEPARATOR]
    if ends_item(m, NodeId(separator)):
        for sort in range(row[CoverRow.SORTS]):
            at = sort_of(row, sort)
            if at[CoverRow.TIMES] != NOT_PLANNED and m.nodes[at[CoverRow.TEXT]].size < INFINITE:
                gap = max(gap, surcharge(m, NodeId(at[CoverRow.TEXT])))
    return gap


@inner
def measure_recursion(m: Tables, start: int, end: int, rule: int, different: int, ends: NDArray[np.bool_]) -> bool:
    """Set `ample` of the calls of a rule that calls itself: each round makes a text longer, so as many rounds as have to differ are
    enough. Returns whether it does. ends: as `measure_ample` has left it.
    """
    reach = np.full(end, INFINITE, np.int32)  # of each node, tokens for a text with a call of the rule, without what is called
    changed = True
    while changed:
        changed = False
        for number in range(start, end):
            found = reach_of(m, NodeId(number), rule, ends, pointer(reach))
            changed = changed or found < reach[number]
            reach[number] = min(found, reach[number])
    body = m.rules[rule]
    if reach[body] >= INFINITE or m.nodes[body].cost >= INFINITE:
        return False
    for number in range(start, end):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.CALL and m.nodes[i].a == rule:
            enough = plus(m.nodes[body].cost, times(different - 1, max(reach[body], 1)))
            m.ample[i] = min(m.ample[i], enough)
    return True


@inner
def reach_of(m: Tables, i: NodeId, rule: int, ends: NDArray[np.bool_], reach: Words) -> int:
    """What a text of a node with a call of a rule takes, by that of its children. Behind the end of a key none is looked for."""
    kind, a, b, least = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b, INFINITE
    if kind == Kind.CLASS:
        for e in range(a, a + b):
            follow = m.edge_next[e]
            first = 1 if m.nodes[i].c == Event.NONE else m.nodes[i].cost - m.nodes[follow].cost  # with the surcharge
            least = min(least, plus(first, reach[follow]))
    elif kind == Kind.SEQ:
        least = plus(reach[a], m.nodes[b].cost)
        if not ends[a]:
            least = min(least, plus(m.nodes[a].cost, reach[b]))
    elif kind == Kind.ALT:
        for j in range(a, a + b):
            least = min(least, reach[m.lists[j]])
    elif kind == Kind.REPEAT and m.nodes[i].c != 0:
        least = plus(times(max(b, 1) - 1, m.nodes[a].cost), reach[a])
    elif kind == Kind.CALL:
        least = 0 if a == rule else reach[m.rules[a]]
    elif kind == Kind.PLACED:
        least = reach[a]
    elif is_walk(kind):
        least = ample_of_walk(m, i, reach)
    return least


@entry
def measure_gaps(arena_address: int, start: int, end: int, is_common: bool) -> bool:
    """Set the surcharges of items that must be new, `gap` of each CLASS before one, by what items cost now. Returns whether any
    changed. is_common: the greatest one is that of all, so that it can be told from any state at the beginning of an item."""
    m = tables_at(arena_address)
    gaps, most, changed = np.zeros(end, np.int32), 0, False
    for number in range(start, end):
        i = NodeId(number)
        if ends_item(m, i):
            gaps[i] = max(gaps[i], surcharge(m, m.edge_next[m.nodes[i].a]), 1)
        elif m.nodes[i].kind == Kind.COVER:
            separator = wide(row_of_cover(m, i)[CoverRow.SEPARATOR])
            gaps[separator] = max(gaps[separator], gap_of_cover(m, i))
    for number in range(start, end):
        most = max(most, gaps[number])
    for number in range(start, end):
        i = NodeId(number)
        if ends_item(m, i):
            gap = most if is_common else wide(gaps[i])
            changed = changed or gap != m.nodes[i].gap
            m.nodes[i].gap = gap
    m.n.item_gap = most
    return changed
