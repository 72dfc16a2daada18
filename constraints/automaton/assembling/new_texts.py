"""What keys and items that must be new may cost beyond the cheapest one.

A key or item that must be new may find its cheapest string used up (seen_values.py). The byte before it is charged for that:
`ample` of the key or item less its cost, when the mark of the byte knows that node, else one token. `ample` is a cost
at which there are as many strings as have to differ (`Grammar.most_different`), because a repetition may take more copies; a node
that has no such cost is charged `worst`, the most that any string of it costs. Unions of members say by themselves whether the
cheapest one may have been written before (`Supply`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.ids import NodeId
from ...base.kinds import INFINITE, NOT_PLANNED, CoverRow, Event, Kind, Supply
from ...numba_support.jit import entry, inner
from ..covers import row_of_cover, sort_of
from ..nodes import EMPTY, FAIL, plus, times, upper, wide
from ..tables import Tables, tables_at

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
def count_alike(m: Tables, i: NodeId, alike: NDArray[np.int32], ends: NDArray[np.bool_], single: NDArray[np.bool_]) -> int:
    """A number of different strings of a node which have one length, so that sequences of them differ, too, and cost no more than
    its cheapest; of more than _ENOUGH_ALIKE, that many. What comes behind a key that ends does not count. alike, ends: what is
    known of its children."""
    kind, a, b, count = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b, 1
    if kind == Kind.BOTH or kind == Kind.NEGATE:
        count = wide(alike[i])  # counted before
    elif kind == Kind.CLASS:
        characters = 0
        for e in range(a, a + b):
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
    elif kind == Kind.REPEAT and b > 0 and (b == 1 or m.nodes[a].copies_per_token == 1):
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
def worst_of_bag(m: Tables, bag: NodeId) -> int:
    """What the most of all members cost that may come."""
    worst, tally = 0, m.nodes[bag].a
    while tally != FAIL:
        part = m.nodes[tally].a
        text = NodeId(m.nodes[part].a)
        if m.nodes[text].size < INFINITE:
            worst = plus(worst, times(upper(m, part), m.worst[text]) if m.nodes[part].c >= 0 else INFINITE)
        tally = m.nodes[tally].b
    return worst


@entry(alike="int32[:]", ends="bool[:]", single="const bool[:]")
def measure_ample(
    arena_address: int, start: int, end: int, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> bool:
    """Set `worst` and `ample` of the nodes start..end from their children. Returns whether anything changed; to be
    repeated, in turn with `measure_shortest`, until nothing does.

    different: keys or items that may have to differ from each other. alike: int32 [nodes], see `count_alike`; 1 at first.
    ends: bool [nodes], see `ends_key`; False at first. single: as in `measure_shortest`. The strings of intersections and
    complements have been counted (text_counts.py). Those of members under conditions are not, nor those of rules that call
    themselves, see `tokens_to_differ`.
    """
    m = tables_at(arena_address)
    guess = tokens_to_differ(different)
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
            high, more = m.nodes[i].c, copies_to_differ(wide(alike[a]), different)
            if is_white_space(m, NodeId(a)):
                worst = cost  # whatever is there, the key or item is the same one
            else:
                worst = times(high, m.worst[a]) if high >= 0 else INFINITE
                ample = plus(times(max(b, 1) - 1, m.nodes[a].cost), m.ample[a])
                if high < 0 or b + more <= high:
                    ample = min(ample, plus(cost, times(more, m.nodes[a].cost)))
        elif kind == Kind.CALL:
            worst, ample = m.worst[m.rules[a]], m.ample[m.rules[a]]
        elif kind == Kind.BOTH or kind == Kind.NEGATE:
            worst, ample = m.worst[i], m.ample[i]
        elif kind == Kind.BAG:
            ample, worst = ample_of_bag(m, i), worst_of_bag(m, i)
        elif is_walk(kind):
            ample = plus(cost, guess)
        elif kind == Kind.UNLISTED:
            ample = plus(max(cost, m.ample[b]), 1)
        count = count_alike(m, i, alike, ends, single) if cost < INFINITE else 1
        is_end = ends_key(m, i, ends)
        if count >= different:
            ample = min(ample, cost)
        changed = changed or worst != m.worst[i] or ample != m.ample[i] or count != alike[i] or is_end != ends[i]
        alike[i], ends[i] = count, is_end
        m.worst[i], m.ample[i] = worst, ample
    return changed


@inner
def gap_of_cover(m: Tables, cover: NodeId) -> int:
    """The surcharge of the planned items of a COVER, where these must differ."""
    row, gap = row_of_cover(m, cover), 0
    separator = row[CoverRow.SEPARATOR]
    if m.nodes[separator].kind == Kind.CLASS and m.nodes[separator].c == Event.ITEM_CLOSE:
        for sort in range(row[CoverRow.SORTS]):
            at = sort_of(row, sort)
            if at[CoverRow.TIMES] != NOT_PLANNED and m.nodes[at[CoverRow.TEXT]].size < INFINITE:
                gap = max(gap, surcharge(m, NodeId(at[CoverRow.TEXT])))
    return gap


@entry
def measure_item_gap(arena_address: int, start: int, end: int) -> None:
    """Set n[ITEM_GAP], the surcharge of an item. It is the same for all items, so that it can be told from any state at
    the beginning of one."""
    m = tables_at(arena_address)
    gap = 0
    for number in range(start, end):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.CLASS and m.nodes[i].c == Event.ITEM_CLOSE:
            gap = max(gap, surcharge(m, m.edge_next[m.nodes[i].a]), 1)
        elif m.nodes[i].kind == Kind.COVER:
            gap = max(gap, gap_of_cover(m, i))
    m.n.item_gap = gap
