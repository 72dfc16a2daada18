"""What keys and items that must be new may cost, settled together with sizes and costs of all nodes: pass by pass, until nothing
changes. What rules cost that call themselves in such a key or item no pass finds out; it is told in between, rule by rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.ids import NodeId
from ...base.kinds import INFINITE, Kind
from ...numba_support.jit import entry, inner
from ..nodes import EMPTY, FAIL, wide
from ..tables import Tables, tables_at
from .new_texts import measure_ample, measure_recursion
from .reached_nodes import mark_new
from .shortest_completion import measure_once

MOST_RECURSIVE = 64  # rules in keys and items that must be new, that are searched for calls of themselves


@entry(alike="int32[:]", ends="bool[:]", marked="bool[:]", single="const bool[:]")
def settle_ample(
    arena_address: int, start: int, end: int, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_],
    marked: NDArray[np.bool_], single: NDArray[np.bool_],
) -> None:
    """`measure_ample` and `measure_shortest` of the nodes start..end, until nothing changes.

    different: keys or items that may have to differ from each other. alike: int32 [nodes], 0 at first, but for intersections and
    complements, whose strings have been counted (text_counts.py); ends, marked: bool [nodes], False at first.
    """
    m = tables_at(arena_address)
    m.n.different = different
    settle(m, start, end, different, alike, ends, marked, single)


@entry(alike="int32[:]", ends="bool[:]", marked="bool[:]", single="const bool[:]")
def settle_recursion(
    arena_address: int, start: int, end: int, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_],
    marked: NDArray[np.bool_], single: NDArray[np.bool_],
) -> None:
    """Find out what rules cost that call themselves in keys and items that must be new, and settle everything with it. Called
    behind `settle_ample`, with what that has left."""
    m = tables_at(arena_address)
    asked, is_new = np.zeros(num_called(m, start, end), np.uint8), np.zeros(end, np.uint8)
    if untold_rule(m, start, end, asked, is_new, True) < 0:  # mostly, and found out quickly
        return
    mark_new(m, start, end, is_new)
    for _ in range(MOST_RECURSIVE):
        rule = untold_rule(m, start, end, asked, is_new, False)
        if rule < 0:
            return
        asked[rule] = 1
        if measure_recursion(m, start, end, rule, different, ends):
            settle(m, start, end, different, alike, ends, marked, single)


@inner
def settle(
    m: Tables, start: int, end: int, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_], marked: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> None:
    alike[FAIL] = alike[EMPTY] = 1
    for number in range(start, end):
        alike[number] = max(alike[number], 1)
    changed = True
    while changed:
        changed = measure_ample(m, start, end, different, alike, ends, marked, single)
        changed = measure_once(m, start, end, single) or changed


@inner
def num_called(m: Tables, start: int, end: int) -> int:
    """One more than the greatest number of a rule that is called."""
    most = 0
    for number in range(start, end):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.CALL:
            most = max(most, m.nodes[i].a + 1)
    return most


@inner
def untold_rule(m: Tables, start: int, end: int, asked: NDArray[np.uint8], is_new: NDArray[np.uint8], anywhere: bool) -> int:
    """The first rule that was not asked for, is called in keys or items that must be new, and of which nothing tells yet what as
    many texts cost as have to differ; -1 if there is none. anywhere: wherever it is called."""
    first = -1
    for number in range(start, end):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.CALL and (anywhere or is_new[i] == 1) and m.nodes[i].cost < INFINITE:
            rule = wide(m.nodes[i].a)
            if min(m.ample[i], m.worst[i]) >= INFINITE and asked[rule] == 0 and (first < 0 or rule < first):
                first = rule
    return first
