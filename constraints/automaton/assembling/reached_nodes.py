"""Which nodes take part in what a node denotes, and how deep intersections and complements are inside one another there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.ids import NodeId
from ...base.kinds import CoverRow, Event, Kind
from ...numba_support.jit import entry, inner
from ..covers import row_of_cover, sort_of
from ..nodes import wide
from ..tables import Tables, tables_at
from ..walk_measures import FIRST_CASE
from .new_members import ends_item


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


@entry(seen="uint8[:]")
def mark_new_texts(arena_address: int, start: int, end: int, seen: NDArray[np.uint8]) -> None:
    """Mark the nodes that take part in keys, and in items, which must be new. seen: uint8 [nodes], all 0."""
    mark_new(tables_at(arena_address), start, end, seen)


@inner
def mark_new(m: Tables, start: int, end: int, seen: NDArray[np.uint8]) -> None:
    found, count = np.empty(seen.size, np.int32), 0
    for number in range(start, end):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.CLASS and m.nodes[i].c == Event.KEY_OPEN:
            count = once(m.edge_next[m.nodes[i].a], seen, found, count)
        count = begin_items(m, i, seen, found, count)
    follow_reached(m, seen, found, count, True)


@inner
def begin_items(m: Tables, i: NodeId, seen: NDArray[np.uint8], found: NDArray[np.int32], count: int) -> int:
    """Append what follows the comma of items that must be new, if a node is one, or the items of a COVER with such commas; returns
    how many there are then."""
    if ends_item(m, i):
        return once(m.edge_next[m.nodes[i].a], seen, found, count)
    if m.nodes[i].kind == Kind.COVER:
        row = row_of_cover(m, i)
        if ends_item(m, NodeId(row[CoverRow.SEPARATOR])):
            for sort in range(row[CoverRow.SORTS]):
                count = once(wide(sort_of(row, sort)[CoverRow.TEXT]), seen, found, count)
    return count


@entry
def nests_items(arena_address: int, start: int, end: int) -> bool:
    """Whether items that must be new hold arrays of such items. (Of a tuple what follows a comma holds the further items, too.)"""
    m = tables_at(arena_address)
    seen, found, count = np.zeros(end, np.uint8), np.empty(end, np.int32), 0
    for number in range(start, end):
        count = begin_items(m, NodeId(number), seen, found, count)
    count = follow_reached(m, seen, found, count, False)
    for k in range(count):
        node = wide(found[k])
        if m.nodes[node].kind == Kind.CLASS and m.nodes[node].c == Event.ARRAY_OPEN:
            return True
    return False


@inner
def reached_from(m: Tables, root: NodeId, seen: NDArray[np.uint8]) -> NDArray[np.int32]:
    """The nodes that take part in what `root` denotes, each once; they are marked in `seen` (uint8), all 0."""
    found = np.empty(seen.size, np.int32)
    count = follow_reached(m, seen, found, once(root, seen, found, 0), False)
    return found[:count]


@inner
def follow_reached(m: Tables, seen: NDArray[np.uint8], found: NDArray[np.int32], num_found: int, ends_with_key: bool) -> int:
    """Add what takes part in the nodes that have been found; returns how many there are then. ends_with_key: of what is behind the
    end of a key nothing does."""
    at = 0
    while at < num_found:
        node = wide(found[at])
        at += 1
        kind, a, b = m.nodes[node].kind, m.nodes[node].a, m.nodes[node].b
        if kind == Kind.CLASS and ends_with_key and m.nodes[node].c == Event.KEY_CLOSE:
            pass
        elif kind == Kind.CLASS:
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
    return num_found


@inner
def once(node: NodeId, seen: NDArray[np.uint8], found: NDArray[np.int32], count: int) -> int:
    """Append a node to those found, unless it has been seen; returns how many there are."""
    if seen[node]:
        return count
    seen[node], found[count] = 1, node
    return count + 1
