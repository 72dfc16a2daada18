"""Shortest completions: the size and the cost of every static node, by passes over the grammar that are repeated until
rules settle.

`size` is the bytes of a node's shortest string, INFINITE when it has none: such a node is never entered. `cost` is a
number of tokens that suffices to spell some string of the node when each leaf is spelled by itself: a literal by its
shortest segmentation into tokens (dynamic programming over the trie), a character class by a token that is one such
character. Costs add up along a sequence, so some token always lowers the cost of a state by one: the first of the best
segmentation. Both are least fixpoints: they start at INFINITE, and each pass lets known values flow through one more
level of calls.

    '"' then any characters then '"'     size 2, cost 2 (an empty string, a token for each quote)

A key or item that must be new may find its cheapest string used up (seen_values.py). The byte before it is charged for that:
`ample` of the key or item less its cost, when the mark of the byte knows that node, else one token. `ample` is a cost
at which there are as many strings as have to differ (`Grammar.most_different`), because a repetition may take more copies; a node
that has no such cost is charged `worst`, the most that any string of it costs. Unions of members say by themselves whether the
cheapest one may have been written before (`Supply`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, CoverRow, Event, Kind, Supply
from ..numba_support.jit import entry, inner
from .covers import price_of_cover, row_of_cover, settle_plan, sort_of
from .families import least_of_family
from .member_walks import FIRST_CASE, MOST_COUNT, fill_counts, measure_decision, measure_walk, row_of
from .nodes import EMPTY, Measure, digits_needed, least_sum, may_saturate, plus, times, tokens_for_copies, wide
from .tables import Tables, tables_at
from .word_complement import sizes_without_words

NO_BARGAIN = 1 << 24  # tokens beyond what any other way costs
_ENOUGH_ALIKE = 1 << 15  # strings: the product of two such numbers is one


@entry(single="const bool[:]")
def measure_shortest(arena_address: int, start: int, end: int, single: NDArray[np.bool_]) -> bool:
    """Set size and cost of the nodes start..end (except products) from their children. Returns whether anything
    changed.

    single[byte]: whether some token is exactly that byte.
    """
    return measure_once(tables_at(arena_address), start, end, single)


@entry(single="const bool[:]")
def settle_shortest(arena_address: int, start: int, end: int, single: NDArray[np.bool_]) -> None:
    """`measure_shortest`, until nothing changes: until the sizes of rules have settled."""
    m = tables_at(arena_address)
    while measure_once(m, start, end, single):
        pass


@inner
def measure_once(m: Tables, start: int, end: int, single: NDArray[np.bool_]) -> bool:
    """One pass of `measure_shortest`."""
    changed = False
    for number in range(start, end):
        i = NodeId(number)
        kind, a, b = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b
        size, cost = m.nodes[i].size, m.nodes[i].cost
        if kind == Kind.CLASS:
            size = cost = INFINITE
            for e in range(a, a + b):
                follow = m.edge_next[e]
                size = min(size, plus(1, m.nodes[follow].size))
                for value in range(m.edge_low[e], m.edge_high[e] + 1):
                    if single[value]:
                        cost = min(cost, plus(1, m.nodes[follow].cost))
                        break
            if m.nodes[i].c == Event.NONE:
                cost = min(cost, m.nodes[i].cost)  # a token that is a whole character may have been found before
            elif m.nodes[i].c == Event.KEY_OPEN:
                cost = plus(cost, surcharge(m, m.edge_next[a]))
            elif m.nodes[i].c == Event.ITEM_CLOSE:
                cost = plus(cost, m.n.item_gap)
        elif kind == Kind.LITERAL:
            size, cost = b, m.text_cost[a]
        elif kind == Kind.SEQ:
            size, cost = plus(m.nodes[a].size, m.nodes[b].size), plus(m.nodes[a].cost, m.nodes[b].cost)
            m.nodes[i].may_saturate = m.nodes[a].may_saturate | m.nodes[b].may_saturate
        elif kind == Kind.ALT:
            size, cost, dearest = INFINITE, INFINITE, 0
            for j in range(a, a + b):
                option = m.lists[j]
                size, cost = min(size, m.nodes[option].size), min(cost, m.nodes[option].cost)
                if m.nodes[option].size < INFINITE:
                    dearest = max(dearest, m.nodes[option].cost)
            if m.nodes[i].c == Supply.SCARCE:
                cost = max(cost, dearest)
            elif m.nodes[i].c == Supply.SPARE:
                cost = plus(cost, NO_BARGAIN)
        elif kind == Kind.REPEAT:
            size = times(b, m.nodes[a].size)
            cost = times(tokens_for_copies(b, m.nodes[a].copies_per_token), m.nodes[a].cost)
            m.nodes[i].may_saturate = may_saturate(m, i)
        elif kind == Kind.CALL:
            size, cost = m.nodes[m.rules[a]].size, m.nodes[m.rules[a]].cost
        elif kind == Kind.BAG:
            size, cost = least_sum(m, i, Measure.SIZE), least_sum(m, i, Measure.COST)
        elif kind == Kind.DECISION:
            if row_of(m, i)[MOST_COUNT] >= 0:
                changed |= fill_counts(m, i, Measure.SIZE)
                changed |= fill_counts(m, i, Measure.COST)
            size, cost = measure_decision(m, i, Measure.SIZE), measure_decision(m, i, Measure.COST)
        elif kind == Kind.PLACED:
            size, cost = m.nodes[a].size, m.nodes[a].cost
        elif kind == Kind.FAMILY:
            size, cost = least_of_family(m, i, Measure.SIZE), least_of_family(m, i, Measure.COST)
        elif kind == Kind.WALK:
            size, cost = measure_walk(m, i, 0)
        elif kind == Kind.COVER:
            was_known = size < INFINITE
            size, cost = price_of_cover(m, i, Measure.SIZE), price_of_cover(m, i, Measure.COST)
            if size < INFINITE and not was_known:
                settle_plan(m, i)
        elif kind == Kind.MULTIPLE or kind == Kind.FRACTION:
            size, cost = digits_needed(m, i)
        elif kind == Kind.UNLISTED:
            size, cost = sizes_without_words(m, wide(a), wide(b))
        elif kind == Kind.BOTH or kind == Kind.NEGATE or kind == Kind.TALLY or kind == Kind.WORDS:
            continue
        changed = changed or size != m.nodes[i].size or cost != m.nodes[i].cost
        m.nodes[i].size, m.nodes[i].cost = size, cost
    return changed


@entry(depth="int32[:]")
def boolean_depths(arena_address: int, start: int, end: int, depth: NDArray[np.int32]) -> None:
    """Fill depth[node] (int32) for the nodes start..end: how many intersections and complements are inside one another
    there.

    Calls are not followed: there are none inside of intersections and complements.
    """
    m = tables_at(arena_address)
    for number in range(start, end):
        i = NodeId(number)
        kind, a, b = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b
        most = 0
        if kind == Kind.CLASS:
            for e in range(a, a + b):
                most = max(most, depth[m.edge_next[e]])
        elif kind == Kind.ALT:
            for j in range(a, a + b):
                most = max(most, depth[m.lists[j]])
        elif kind == Kind.SEQ or kind == Kind.BOTH or kind == Kind.TALLY:
            most = max(depth[a], depth[b])
        elif kind == Kind.REPEAT or kind == Kind.NEGATE or kind == Kind.BAG:
            most = max(most, depth[a])
        elif kind == Kind.UNLISTED:
            most = max(most, depth[b])
        depth[i] = most + 1 if kind == Kind.BOTH or kind == Kind.NEGATE else most


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
    if kind == Kind.CLASS:
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


@entry(alike="int32[:]", ends="bool[:]", single="const bool[:]")
def measure_ample(
    arena_address: int, start: int, end: int, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> bool:
    """Set `worst` and `ample` of the nodes start..end from their children. Returns whether anything changed; to be
    repeated, in turn with `measure_shortest`, until nothing does.

    different: keys or items that may have to differ from each other. alike: int32 [nodes], see `count_alike`; 1 at first.
    ends: bool [nodes], see `ends_key`; False at first. single: as in `measure_shortest`. The strings of intersections,
    complements and members are not counted, nor those of rules that call themselves, see `tokens_to_differ`.
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
        elif kind == Kind.BOTH or kind == Kind.NEGATE or kind == Kind.BAG or is_walk(kind):
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
    m.n.item_gap = gap


@entry(byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]")
def whole_character(
    arena_address: int, node: NodeId, byte: NDArray[np.uint8], depth: NDArray[np.int32], skip: NDArray[np.int32],
    first: NDArray[np.int32],
) -> bool:
    """Whether some token is exactly one string of a CLASS node (a character)."""
    m = tables_at(arena_address)
    automaton = np.zeros(8, np.int32)
    automaton[0] = node
    i = 0
    while i < byte.size:
        at = automaton[depth[i] - 1]
        follow = -1
        for e in range(m.nodes[at].a, m.nodes[at].a + m.nodes[at].b):
            if m.edge_low[e] <= byte[i] <= m.edge_high[e]:
                follow = m.edge_next[e]
        if follow == 1 and first[i] != first[i + 1]:
            return True
        if follow <= 1 or depth[i] >= 6:
            i = skip[i]
        else:
            automaton[depth[i]] = follow
            i += 1
    return False


@entry
def reaches_event(arena_address: int, root: NodeId, events: int) -> bool:
    """Whether some node that takes part in what `root` denotes carries one of some events. events: a bit 1 << event for
    each."""
    m = tables_at(arena_address)
    seen = np.zeros(m.n.nodes, np.uint8)
    found = reached_from(m, wide(root), seen)
    for k in range(found.size):
        node = NodeId(int(found[k]))
        if m.nodes[node].kind == Kind.CLASS and (events >> m.nodes[node].c) & 1:
            return True
    return False


@entry(seen="uint8[:]")
def mark_reached(arena_address: int, root: NodeId, seen: NDArray[np.uint8]) -> None:
    """Mark the nodes that take part in what `root` denotes. seen: uint8 [nodes], all 0."""
    m = tables_at(arena_address)
    reached_from(m, root, seen)


@inner
def reached_from(m: Tables, root: NodeId, seen: NDArray[np.uint8]) -> NDArray[np.int32]:
    """The nodes that take part in what `root` denotes, each once; they are marked in `seen` (uint8), all 0."""
    found, num_found, at = np.empty(seen.size, np.int32), 0, 0
    num_found = once(root, seen, found, num_found)
    while at < num_found:
        node = wide(found[at])
        at += 1
        kind, a, b = m.nodes[node].kind, m.nodes[node].a, m.nodes[node].b
        if kind == Kind.CLASS:
            for e in range(a, a + b):
                num_found = once(m.edge_next[e], seen, found, num_found)
        elif kind == Kind.ALT:
            for j in range(a, a + b):
                num_found = once(m.lists[j], seen, found, num_found)
        elif kind == Kind.CALL:
            num_found = once(m.rules[a], seen, found, num_found)
        elif kind == Kind.SEQ or kind == Kind.BOTH or kind == Kind.TALLY:
            num_found = once(b, seen, found, once(a, seen, found, num_found))
        elif kind == Kind.UNLISTED:
            num_found = once(b, seen, found, num_found)
        elif kind == Kind.WALK:
            num_found = once(b, seen, found, once(a, seen, found, num_found))
        elif kind == Kind.COVER:
            num_found = once(a, seen, found, num_found)
            row = row_of_cover(m, node)
            for k in range(CoverRow.SEPARATOR, CoverRow.SETTLED + 1):
                num_found = once(row[k], seen, found, num_found)
            for sort in range(row[CoverRow.SORTS]):
                num_found = once(wide(sort_of(row, sort)[CoverRow.TEXT]), seen, found, num_found)
        elif kind == Kind.DECISION:
            num_found = once(m.nodes[node].c, seen, found, num_found)
            for j in range(a + FIRST_CASE, a + FIRST_CASE + 2 * b):
                num_found = once(m.lists[j], seen, found, num_found)
        elif kind == Kind.FAMILY:
            num_found = once(m.nodes[node].c, seen, found, once(b, seen, found, once(a, seen, found, num_found)))
        elif kind == Kind.REPEAT or kind == Kind.NEGATE or kind == Kind.BAG or kind == Kind.PLACED:
            num_found = once(a, seen, found, num_found)
    return found[:num_found]


@inner
def once(node: NodeId, seen: NDArray[np.uint8], found: NDArray[np.int32], count: int) -> int:
    """Append a node to those found, unless it has been seen; returns how many there are."""
    if seen[node]:
        return count
    seen[node], found[count] = 1, node
    return count + 1
