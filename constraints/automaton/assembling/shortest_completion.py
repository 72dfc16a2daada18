"""Shortest completions: the size and the cost of every static node, by passes over the grammar that are repeated until
rules settle.

`size` is the bytes of a node's shortest string, INFINITE when it has none: such a node is never entered. `cost` is a
number of tokens that suffices to spell some string of the node when each leaf is spelled by itself: a literal by its
shortest segmentation into tokens (dynamic programming over the trie), a character class by a token that is one such
character. Costs add up along a sequence, so some token always lowers the cost of a state by one: the first of the best
segmentation. Both are least fixpoints: they start at INFINITE, and each pass lets known values flow through one more
level of calls.

    '"' then any characters then '"'     size 2, cost 2 (an empty string, a token for each quote)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.ids import NodeId
from ...base.kinds import INFINITE, Event, Kind, Supply
from ...numba_support.jit import entry, inner
from ..covers import price_of_cover, settle_plan
from ..families import least_of_family
from ..nodes import Measure, digits_needed, least_sum, may_saturate, plus, times, tokens_for_copies, wide
from ..tables import Tables, tables_at
from ..walk_measures import MOST_COUNT, fill_counts, measure_decision, measure_walk, row_of
from ..word_complement import sizes_without_words
from .new_texts import surcharge

NO_BARGAIN = 1 << 24  # tokens beyond what any other way costs


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
                cost = plus(cost, m.nodes[i].gap)
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
