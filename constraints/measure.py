"""Shortest completions of static nodes: one pass over the grammar, repeated until rules settle.

`size` is the length in bytes of a node's shortest string, INFINITE when it has none (the node is unproductive and is never
entered). `cost` is a number of tokens that suffices to spell some string of the node, counting each leaf on its own: literals by
their shortest segmentation into tokens (dynamic programming over the trie), a character class by a token that is one such
character. Costs add up along a sequence, so some token always lowers the cost of a state by one: the first of the best
segmentation. Both are least fixpoints; starting from INFINITE, each pass lets known values flow through one more level of calls.
"""

from __future__ import annotations

import numpy as np

from .compiled import entry
from .derive import (
    ALT,
    BAG,
    BOTH,
    CALL,
    CLASS,
    LITERAL,
    MULTIPLE,
    NEGATE,
    REPEAT,
    SEQ,
    TALLY,
    digits_needed,
    least_sum,
    plus,
    strides,
    times,
    wide,
)
from .expression import Event
from .tables import INFINITE, layout

KEY_OPEN = int(Event.KEY_OPEN)


@entry
def literal_costs(text, region_end, byte, depth, skip, first, cost):
    """cost[i] = least number of tokens that spell text[i:end of its literal]; region_end[i] is that end (int32 arrays)."""
    for i in range(text.size - 1, -1, -1):
        best = INFINITE
        node, j, end = 0, i, region_end[i]
        limit = byte.size
        while j < end and node < limit:
            while node < limit and byte[node] != text[j]:
                node = skip[node]
            if node >= limit:
                break
            j += 1
            if first[node] != first[node + 1]:
                best = min(best, plus(1, 0 if j == end else cost[j]))
            limit = skip[node]
            node += 1
        cost[i] = best


@entry
def measure(arena, start, end, single):
    """Set size and cost of nodes start..end (except products) from their children; single[byte] = 1 where a token is that byte.

    Returns whether anything changed.
    """
    m, t = arena, layout(arena)
    changed = False
    for i in range(start, end):
        kind, a, b = m[t.kind + i], m[t.a + i], m[t.b + i]
        size, cost = m[t.size + i], m[t.cost + i]
        if kind == CLASS:
            size = cost = INFINITE
            for e in range(a, a + b):
                follow = m[t.edge_next + e]
                size = min(size, plus(1, m[t.size + follow]))
                for value in range(m[t.edge_low + e], m[t.edge_high + e] + 1):
                    if single[value]:
                        cost = min(cost, plus(1, m[t.cost + follow]))
                        break
            cost = min(cost, wide(m[t.cost + i]))  # a token that is a whole character may have been found before
            if m[t.c + i] == KEY_OPEN:
                cost = plus(cost, wide(1))  # the key may have to differ from one seen before: see memory.py
        elif kind == LITERAL:
            size, cost = b, m[t.text_cost + a]
        elif kind == SEQ:
            size, cost = plus(m[t.size + a], m[t.size + b]), plus(m[t.cost + a], m[t.cost + b])
        elif kind == ALT:
            size = cost = INFINITE
            for j in range(a, a + b):
                size, cost = min(size, m[t.size + m[t.lists + j]]), min(cost, m[t.cost + m[t.lists + j]])
        elif kind == REPEAT:
            size, cost = times(b, m[t.size + a]), times(strides(b, m[t.stride + a]), m[t.cost + a])
        elif kind == CALL:
            size, cost = m[t.size + m[t.rules + a]], m[t.cost + m[t.rules + a]]
        elif kind == BAG:
            size, cost = least_sum(m, t, wide(i), t.size), least_sum(m, t, wide(i), t.cost)
        elif kind == MULTIPLE:
            size, cost = digits_needed(m, t, wide(i))
        elif kind == BOTH or kind == NEGATE or kind == TALLY:
            continue
        changed = changed or size != m[t.size + i] or cost != m[t.cost + i]
        m[t.size + i], m[t.cost + i] = size, cost
    return changed


@entry
def whole_character(arena, node, byte, depth, skip, first):
    """Whether some token is exactly one string of a CLASS node (a character)."""
    m, t = arena, layout(arena)
    automaton = np.zeros(8, np.int32)
    automaton[0] = node
    i = 0
    while i < byte.size:
        at = automaton[depth[i] - 1]
        follow = -1
        for e in range(m[t.a + at], m[t.a + at] + m[t.b + at]):
            if m[t.edge_low + e] <= byte[i] <= m[t.edge_high + e]:
                follow = m[t.edge_next + e]
        if follow == 1 and first[i] != first[i + 1]:
            return True
        if follow <= 1 or depth[i] >= 6:
            i = skip[i]
        else:
            automaton[depth[i]] = follow
            i += 1
    return False
