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
at which strings do not run out, because a long repetition may take one more copy; a node that has no such cost is
charged `worst`, the most that any string of it costs. Unions of members say by themselves whether the cheapest one may
have been written before (`Supply`).
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import INFINITE, CoverRow, Event, Kind, Supply
from ..numba_support.jit import entry, inner, words_at
from ..vocabulary.packed_vocabulary import NODE_WIDTH, Header, TrieRecord, child_of
from .covers import price_of_cover, row_of_cover, settle_plan, sort_of
from .member_walks import FIRST_CASE, MOST_COUNT, fill_counts, measure_decision, measure_walk, row_of
from .nodes import (
    EMPTY,
    digits_needed,
    least_sum,
    may_saturate,
    plus,
    times,
    tokens_for_copies,
    wide,
)
from .tables import REC, Counter, layout
from .word_complement import sizes_without_words

NO_BARGAIN = 1 << 24  # tokens beyond what any other way costs
MIN_BODY = 8  # shorter repetitions are measured as they are


@entry(text="const int32[:]", region_end="const int32[:]", cost="int32[:]")
def literal_costs(vocab_address, text, region_end, cost):
    """Fill cost[i] with the least number of tokens that spell text[i:region_end[i]], the rest of the literal that byte
    i is in (int32 arrays)."""
    vocab = words_at(vocab_address)
    trie = wide(vocab[Header.TRIE])
    nodes = wide(vocab[trie + TrieRecord.NODES])
    for i in range(text.size - 1, -1, -1):
        best, node, j, end = wide(INFINITE), wide(-1), wide(i), wide(region_end[i])
        while j < end:
            node = child_of(vocab, trie, node, wide(text[j]))
            if node < 0:
                break
            j += 1
            first = nodes + NODE_WIDTH * node + 3
            if vocab[first] != vocab[first + NODE_WIDTH]:
                best = min(best, plus(1, wide(0) if j == end else wide(cost[j])))
        cost[i] = best


@entry(single="const bool[:]")
def measure_shortest(arena_address, start, end, single):
    """Set size and cost of the nodes start..end (except products) from their children. Returns whether anything
    changed.

    single[byte]: whether some token is exactly that byte.
    """
    arena = words_at(arena_address)
    tables = layout(arena)
    changed = False
    for i in range(start, end):
        kind, a, b = arena[tables.kind + REC * i], arena[tables.a + REC * i], arena[tables.b + REC * i]
        size, cost = arena[tables.size + REC * i], arena[tables.cost + REC * i]
        if kind == Kind.CLASS:
            size = cost = INFINITE
            for e in range(a, a + b):
                follow = arena[tables.edge_next + e]
                size = min(size, plus(1, arena[tables.size + REC * follow]))
                for value in range(arena[tables.edge_low + e], arena[tables.edge_high + e] + 1):
                    if single[value]:
                        cost = min(cost, plus(1, arena[tables.cost + REC * follow]))
                        break
            if arena[tables.c + REC * i] == Event.NONE:
                cost = min(cost, wide(arena[tables.cost + REC * i]))  # a token that is a whole character may have been found before
            elif arena[tables.c + REC * i] == Event.KEY_OPEN:
                cost = plus(cost, surcharge(arena, tables, wide(arena[tables.edge_next + a])))
            elif arena[tables.c + REC * i] == Event.ITEM_CLOSE:
                cost = plus(cost, wide(arena[tables.n + Counter.ITEM_GAP]))
        elif kind == Kind.LITERAL:
            size, cost = b, arena[tables.text_cost + a]
        elif kind == Kind.SEQ:
            size, cost = (
                plus(arena[tables.size + REC * a], arena[tables.size + REC * b]),
                plus(arena[tables.cost + REC * a], arena[tables.cost + REC * b]),
            )
            arena[tables.may_saturate + REC * i] = arena[tables.may_saturate + REC * a] | arena[tables.may_saturate + REC * b]
        elif kind == Kind.ALT:
            size, cost, dearest = wide(INFINITE), wide(INFINITE), wide(0)
            for j in range(a, a + b):
                option = arena[tables.lists + j]
                size, cost = min(size, wide(arena[tables.size + REC * option])), min(cost, wide(arena[tables.cost + REC * option]))
                if arena[tables.size + REC * option] < INFINITE:
                    dearest = max(dearest, wide(arena[tables.cost + REC * option]))
            if arena[tables.c + REC * i] == Supply.SCARCE:
                cost = max(cost, dearest)
            elif arena[tables.c + REC * i] == Supply.SPARE:
                cost = plus(cost, NO_BARGAIN)
        elif kind == Kind.REPEAT:
            size, cost = (
                times(b, arena[tables.size + REC * a]),
                times(tokens_for_copies(b, arena[tables.copies_per_token + REC * a]), arena[tables.cost + REC * a]),
            )
            arena[tables.may_saturate + REC * i] = may_saturate(arena, tables, wide(i))
        elif kind == Kind.CALL:
            size, cost = arena[tables.size + REC * arena[tables.rules + a]], arena[tables.cost + REC * arena[tables.rules + a]]
        elif kind == Kind.BAG:
            size, cost = least_sum(arena, tables, wide(i), tables.size), least_sum(arena, tables, wide(i), tables.cost)
        elif kind == Kind.DECISION:
            if arena[row_of(arena, tables, wide(i)) + MOST_COUNT] >= 0:
                changed |= fill_counts(arena, tables, wide(i), tables.size)
                changed |= fill_counts(arena, tables, wide(i), tables.cost)
            size, cost = (
                measure_decision(arena, tables, wide(i), tables.size),
                measure_decision(arena, tables, wide(i), tables.cost),
            )
        elif kind == Kind.WALK:
            size, cost = measure_walk(arena, tables, wide(i), wide(0))
        elif kind == Kind.COVER:
            was_known = size < INFINITE
            size, cost = price_of_cover(arena, tables, wide(i), tables.size), price_of_cover(arena, tables, wide(i), tables.cost)
            if size < INFINITE and not was_known:
                settle_plan(arena, tables, wide(i))
        elif kind == Kind.MULTIPLE:
            size, cost = digits_needed(arena, tables, wide(i))
        elif kind == Kind.UNLISTED:
            size, cost = sizes_without_words(arena, tables, wide(a), wide(b))
        elif kind == Kind.BOTH or kind == Kind.NEGATE or kind == Kind.TALLY or kind == Kind.WORDS:
            continue
        changed = changed or size != arena[tables.size + REC * i] or cost != arena[tables.cost + REC * i]
        arena[tables.size + REC * i], arena[tables.cost + REC * i] = size, cost
    return changed


@entry(depth="int32[:]")
def boolean_depths(arena_address, start, end, depth):
    """Fill depth[node] (int32) for the nodes start..end: how many intersections and complements are inside one another
    there.

    Calls are not followed: there are none inside of intersections and complements.
    """
    arena = words_at(arena_address)
    tables = layout(arena)
    for i in range(start, end):
        kind, a, b = arena[tables.kind + REC * i], arena[tables.a + REC * i], arena[tables.b + REC * i]
        most = 0
        if kind == Kind.CLASS:
            for e in range(a, a + b):
                most = max(most, depth[arena[tables.edge_next + e]])
        elif kind == Kind.ALT:
            for j in range(a, a + b):
                most = max(most, depth[arena[tables.lists + j]])
        elif kind == Kind.SEQ or kind == Kind.BOTH or kind == Kind.TALLY:
            most = max(depth[a], depth[b])
        elif kind == Kind.REPEAT or kind == Kind.NEGATE or kind == Kind.BAG:
            most = max(most, depth[a])
        elif kind == Kind.UNLISTED:
            most = max(most, depth[b])
        depth[i] = most + 1 if kind == Kind.BOTH or kind == Kind.NEGATE else most


@inner
def is_walk(kind):
    """Whether a node is one of those that are followed member by member, or item by item."""
    return kind == Kind.DECISION or kind == Kind.WALK or kind == Kind.COVER


@inner
def surcharge(arena, tables, node):
    """Tokens that a key or item which must be new may cost beyond its cheapest string."""
    if node == EMPTY:
        return wide(1)
    cost = wide(arena[tables.cost + REC * node])
    enough = wide(arena[tables.ample + node]) if arena[tables.ample + node] < INFINITE else wide(arena[tables.worst + node])
    return max(enough - cost, wide(0)) if enough < INFINITE else wide(1)


@entry
def measure_ample(arena_address, start, end):
    """Set `worst` and `ample` of the nodes start..end from their children. Returns whether anything changed; to be
    repeated, in turn with `measure_shortest`, until nothing does.

    Intersections and complements are taken to be ample at one token more.
    """
    arena = words_at(arena_address)
    tables = layout(arena)
    changed = False
    for i in range(start, end):
        kind, a, b = arena[tables.kind + REC * i], arena[tables.a + REC * i], arena[tables.b + REC * i]
        cost, worst, ample = wide(arena[tables.cost + REC * i]), wide(INFINITE), wide(INFINITE)
        if cost >= INFINITE:
            pass
        elif kind == Kind.CLASS:
            worst = wide(0)
            for e in range(a, a + b):
                follow = arena[tables.edge_next + e]
                if arena[tables.size + REC * follow] < INFINITE:
                    worst, ample = (
                        max(worst, plus(1, arena[tables.worst + follow])),
                        min(ample, plus(1, arena[tables.ample + follow])),
                    )
        elif kind == Kind.LITERAL:
            worst = cost
        elif kind == Kind.SEQ:
            worst = plus(arena[tables.worst + a], arena[tables.worst + b])
            ample = min(
                plus(arena[tables.ample + a], arena[tables.cost + REC * b]),
                plus(arena[tables.cost + REC * a], arena[tables.ample + b]),
            )
        elif kind == Kind.ALT:
            worst = wide(0)
            for j in range(a, a + b):
                option = arena[tables.lists + j]
                if arena[tables.size + REC * option] < INFINITE:
                    worst, ample = max(worst, wide(arena[tables.worst + option])), min(ample, wide(arena[tables.ample + option]))
        elif kind == Kind.REPEAT:
            high = arena[tables.c + REC * i]
            if high < 0 or high >= MIN_BODY:
                ample = plus(cost, arena[tables.cost + REC * a])
            else:
                worst = times(high, arena[tables.worst + a])
                ample = plus(times(max(b, 1) - 1, arena[tables.cost + REC * a]), arena[tables.ample + a])
        elif kind == Kind.CALL:
            worst, ample = wide(arena[tables.worst + arena[tables.rules + a]]), wide(arena[tables.ample + arena[tables.rules + a]])
        elif kind == Kind.BOTH or kind == Kind.NEGATE or kind == Kind.BAG or is_walk(kind):
            ample = plus(cost, wide(1))
        elif kind == Kind.UNLISTED:
            ample = plus(max(cost, wide(arena[tables.ample + b])), wide(1))
        changed = changed or worst != arena[tables.worst + i] or ample != arena[tables.ample + i]
        arena[tables.worst + i], arena[tables.ample + i] = worst, ample
    return changed


@entry
def measure_item_gap(arena_address, start, end):
    """Set n[ITEM_GAP], the surcharge of an item. It is the same for all items, so that it can be told from any state at
    the beginning of one."""
    arena = words_at(arena_address)
    tables = layout(arena)
    gap = wide(0)
    for i in range(start, end):
        if arena[tables.kind + REC * i] == Kind.CLASS and arena[tables.c + REC * i] == Event.ITEM_CLOSE:
            gap = max(gap, surcharge(arena, tables, wide(arena[tables.edge_next + arena[tables.a + REC * i]])), wide(1))
    arena[tables.n + Counter.ITEM_GAP] = gap


@entry(byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]")
def whole_character(arena_address, node, byte, depth, skip, first):
    """Whether some token is exactly one string of a CLASS node (a character)."""
    arena = words_at(arena_address)
    tables = layout(arena)
    automaton = np.zeros(8, np.int32)
    automaton[0] = node
    i = 0
    while i < byte.size:
        at = automaton[depth[i] - 1]
        follow = -1
        for e in range(arena[tables.a + REC * at], arena[tables.a + REC * at] + arena[tables.b + REC * at]):
            if arena[tables.edge_low + e] <= byte[i] <= arena[tables.edge_high + e]:
                follow = arena[tables.edge_next + e]
        if follow == 1 and first[i] != first[i + 1]:
            return True
        if follow <= 1 or depth[i] >= 6:
            i = skip[i]
        else:
            automaton[depth[i]] = follow
            i += 1
    return False


@entry
def reaches_event(arena_address, root, events):
    """Whether some node that takes part in what `root` denotes carries one of some events. events: a bit 1 << event for
    each."""
    arena = words_at(arena_address)
    tables = layout(arena)
    seen = np.zeros(wide(arena[tables.n + Counter.NODES]), np.uint8)
    found = reached_from(arena, tables, wide(root), seen)
    for k in range(found.size):
        node = wide(found[k])
        if arena[tables.kind + REC * node] == Kind.CLASS and events >> arena[tables.c + REC * node] & 1:
            return True
    return False


@entry(seen="uint8[:]")
def mark_reached(arena_address, root, seen):
    """Mark the nodes that take part in what `root` denotes. seen: uint8 [nodes], all 0."""
    arena = words_at(arena_address)
    reached_from(arena, layout(arena), wide(root), seen)


@inner
def reached_from(arena, tables, root, seen):
    """The nodes that take part in what `root` denotes, each once; they are marked in `seen` (uint8), all 0."""
    found, num_found, at = np.empty(seen.size, np.int32), wide(0), wide(0)
    num_found = once(root, seen, found, num_found)
    while at < num_found:
        node = wide(found[at])
        at += 1
        kind, a, b = arena[tables.kind + REC * node], wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node])
        if kind == Kind.CLASS:
            for e in range(a, a + b):
                num_found = once(wide(arena[tables.edge_next + e]), seen, found, num_found)
        elif kind == Kind.ALT:
            for j in range(a, a + b):
                num_found = once(wide(arena[tables.lists + j]), seen, found, num_found)
        elif kind == Kind.CALL:
            num_found = once(wide(arena[tables.rules + a]), seen, found, num_found)
        elif kind == Kind.SEQ or kind == Kind.BOTH or kind == Kind.TALLY:
            num_found = once(b, seen, found, once(a, seen, found, num_found))
        elif kind == Kind.UNLISTED:
            num_found = once(b, seen, found, num_found)
        elif kind == Kind.WALK:
            num_found = once(b, seen, found, once(a, seen, found, num_found))
        elif kind == Kind.COVER:
            num_found = once(a, seen, found, num_found)
            row = row_of_cover(arena, tables, node)
            for k in range(CoverRow.SEPARATOR, CoverRow.SETTLED + 1):
                num_found = once(wide(arena[row + k]), seen, found, num_found)
            for sort in range(wide(arena[row + CoverRow.SORTS])):
                num_found = once(wide(arena[sort_of(row, sort) + CoverRow.TEXT]), seen, found, num_found)
        elif kind == Kind.DECISION:
            num_found = once(wide(arena[tables.c + REC * node]), seen, found, num_found)
            for j in range(a + FIRST_CASE, a + FIRST_CASE + 2 * b):
                num_found = once(wide(arena[tables.lists + j]), seen, found, num_found)
        elif kind == Kind.REPEAT or kind == Kind.NEGATE or kind == Kind.BAG:
            num_found = once(a, seen, found, num_found)
    return found[:num_found]


@inner
def once(node, seen, found, count):
    """Append a node to those found, unless it has been seen; returns how many there are."""
    if seen[node]:
        return count
    seen[node], found[count] = 1, node
    return count + 1
