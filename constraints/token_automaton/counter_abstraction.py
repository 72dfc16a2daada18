"""Counter abstraction: one state that stands for all states which differ from it only in counts too large for any token
to use up.

Where those states have many copies of a repetition to come, this one has FOREVER. Its mask is theirs, and it goes where
they go, as long as no token can bring one of their counts to its end. How far away that is, each sequence keeps as a
number of bytes, its `room`: n copies to come, the shortest of which has z bytes, give n z - z + 1 bytes of room, and
every byte that is read takes one. So the automaton on the device has one state for all lengths of a string, and a
register for each sequence.

    state "up to 5000 more characters"   stands in   state "FOREVER more characters", room 5000

Only repetitions that have begun count. Lower bounds are treated like upper ones, except in the operands of an
intersection, where they say whether anything can be completed at all. Bags and multiples keep their counts.

The functions add what they find to `found`: ROOM, the least room; MORE, tokens for lower bounds that were given up;
NEEDED, tokens for the rest; PLAIN and CROSSED, how many counts were given up outside of intersections and inside.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ..automaton.closures import ENDLESS
from ..automaton.counted_tables import Table, is_table, table_node
from ..automaton.determinize import SEARCH, push_request, serve_requests
from ..automaton.nodes import NO_BODY, head_of, intern_node, push_work, repetition, sequence, wide
from ..automaton.states import framed, inner_of, intern_state, tail_of
from ..automaton.tables import DEAD, UNKNOWN, Fault, Tables, tables_at
from ..base.ids import NodeId, StateId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import entry, inner
from ..vocabulary.packed_records import vocab_at

FOREVER = ENDLESS - 1
MANY = 1 << 29  # copies: so many are FOREVER less what was read since
PLENTY = 1 << 30  # bytes of room where nothing ends


class Found(IntEnum):
    """The places of `found`, where findings are added up."""

    ROOM = 0  # the least of the counts that were given up
    MORE = 1  # tokens that their lower bounds need
    NEEDED = 2  # tokens that suffice for the rest
    PLAIN = 3  # how many counts were given up
    CROSSED = 4  # how many in operands of intersections


NUM_FOUND = len(Found)


@entry
def abstract_counts(
    arena_address: int, vocab_address: int, num_static: int, s: StateId
) -> tuple[StateId, int, int, int, int]:
    """(state, room, more, needed, reach) of the state `s`. The first is the state that stands for it.

    room: bytes that are left in the counts that were given up now, PLENTY when none were. more: tokens that their lower
    bounds need. needed: tokens that suffice to finish from the other state if its lower bounds need none. reach: the
    room that whoever is in the other state must have, 0 if it stands for itself alone. num_static: how many nodes the
    grammar has, none of which has begun.

    Products that were not searched before may raise FARTHEST, and `reach` with it: `reach` is final when the mask of
    the other state is known. The answer means nothing on a fault.
    """
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    found = np.zeros(NUM_FOUND, np.int64)
    found[Found.ROOM] = PLENTY
    abstract, token = wide(s), vocab.depth
    if m.states[s].frame == 0:
        abstract = abstract_state(m, wide(s), token, wide(num_static), found)
    else:
        inner_state, tail = inner_of(m, s), tail_of(m, s)
        abstract_inner = abstract_state(m, inner_state, token, wide(num_static), found)
        needed, more = found[Found.NEEDED], found[Found.MORE]
        found[Found.NEEDED] = found[Found.MORE] = 0
        abstract_tail = abstract_continuation(m, tail, token, True, wide(num_static), found)
        found[Found.NEEDED], found[Found.MORE] = needed + found[Found.NEEDED], more + found[Found.MORE]
        if abstract_inner != inner_state or abstract_tail != tail:
            abstract = framed(m, abstract_inner, abstract_tail)
    reach = 0
    if found[Found.PLAIN] + found[Found.CROSSED] > 0:
        reach = token + (m.n.farthest if found[Found.CROSSED] > 0 else 0)
    needed = found[Found.NEEDED] + (m.n.farthest if found[Found.CROSSED] > 0 else 0)
    return abstract, found[Found.ROOM], found[Found.MORE], min(needed, INFINITE - 1), reach


@inner
def abstract_state(m: Tables, s: StateId, token: int, num_static: int, found: NDArray[np.int64]) -> StateId:
    """The state `s`, which is no frame, without its distant counts. DEAD on a fault. NEEDED is that of the item that
    needs least, MORE that of the item that needs most."""
    start, length = m.states[s].start, m.states[s].length
    items, needed, more = np.empty(length, np.int64), INFINITE, 0
    for j in range(length):
        item = m.pool[start + j]
        found[Found.NEEDED] = found[Found.MORE] = 0
        items[j] = abstract_continuation(m, item, token, True, num_static, found)
        if m.nodes[head_of(m, item)].kind == Kind.PRODUCT and m.n.fault == Fault.NONE:
            items[j] = abstract_product(m, items[j], token, num_static, found)
        if m.n.fault != Fault.NONE:
            return DEAD
        needed, more = min(needed, found[Found.NEEDED]), max(more, found[Found.MORE])
    found[Found.NEEDED], found[Found.MORE] = needed, more
    return state_with_items(m, s, items, token)


@inner
def state_with_items(m: Tables, s: StateId, items: NDArray[np.int64], enough: int) -> StateId:
    """The state that has `items` in the places of those of `s`. Its `max_chars` is endless where `enough` bytes cannot use
    it up."""
    start, changed = m.states[s].start, False
    for j in range(items.size):
        changed = changed or items[j] != m.pool[start + j]
        m.items[j] = items[j]
    if not changed:
        return wide(s)
    max_chars = m.states[s].max_chars
    body = m.states[s].body_class
    max_chars = ENDLESS if body != NO_BODY and max_chars > enough else max_chars
    return intern_state(m, wide(items.size), body, max_chars, m.states[s].unlisted)


@inner
def abstract_product(m: Tables, item: NodeId, token: int, num_static: int, found: NDArray[np.int64]) -> NodeId:
    """An item that begins with an intersection, without the distant counts of its operands.

    What can be completed from there has a completion of at most FARTHEST bytes, for which the counts must have room as
    well.
    """
    product = head_of(m, item)
    if m.nodes[product].c != Kind.BOTH or m.n.inexact == 1:  # see `saturate_state`
        return item
    x, y = m.nodes[product].a, m.nodes[product].b
    enough = token + m.n.farthest
    abstract_x = abstract_operand(m, x, enough, num_static, found)
    abstract_y = abstract_operand(m, y, enough, num_static, found)
    if (abstract_x == x and abstract_y == y) or m.n.fault != Fault.NONE:
        return item
    abstract = intern_node(m, Kind.PRODUCT, abstract_x, abstract_y, Kind.BOTH)
    if m.n.fault == Fault.NONE and m.nodes[abstract].size == UNKNOWN:
        push_request(m, abstract, SEARCH)
        serve_requests(m)
    if m.n.fault != Fault.NONE or m.nodes[abstract].size >= INFINITE:  # its search was given up
        return item
    return abstract if product == item else sequence(m, abstract, m.nodes[item].b)


@inner
def abstract_operand(m: Tables, s: StateId, enough: int, num_static: int, found: NDArray[np.int64]) -> StateId:
    """The operand `s` of an intersection without those upper bounds that `enough` bytes do not reach."""
    if s == DEAD:
        return wide(s)
    inner_state = inner_of(m, s) if m.states[s].frame != 0 else wide(s)
    needed, more, plain = found[Found.NEEDED], found[Found.MORE], found[Found.PLAIN]
    start, length = m.states[inner_state].start, m.states[inner_state].length
    items = np.empty(length, np.int64)
    for j in range(length):
        items[j] = abstract_continuation(m, m.pool[start + j], enough, False, num_static, found)
        if m.n.fault != Fault.NONE:
            return wide(s)
    abstract = state_with_items(m, inner_state, items, enough)
    if inner_state != s:
        tail = tail_of(m, s)
        abstract_tail = abstract_continuation(m, tail, enough, False, num_static, found)
        abstract = framed(m, abstract, abstract_tail) if abstract != inner_state or abstract_tail != tail else wide(s)
    found[Found.CROSSED] += found[Found.PLAIN] - plain
    found[Found.NEEDED], found[Found.MORE], found[Found.PLAIN] = needed, more, plain
    return abstract


@inner
def abstract_continuation(
    m: Tables, continuation: NodeId, enough: int, lows: bool, num_static: int, found: NDArray[np.int64]
) -> NodeId:
    """A continuation without the counts that `enough` bytes do not bring to their ends; lower bounds are among them if
    `lows`.

    Adds what it finds to `found`.
    """
    node, depth = continuation, 0
    while m.nodes[node].kind == Kind.SEQ:
        depth = push_work(m, node, depth)
        if m.n.fault != Fault.NONE:
            return continuation
        node = m.nodes[node].b
    out = abstract_node(m, node, enough, lows, num_static, found)
    while depth > 0 and m.n.fault == Fault.NONE:
        depth -= 1
        node = m.work[depth]
        head, tail = m.nodes[node].a, m.nodes[node].b
        abstract = abstract_node(m, head, enough, lows, num_static, found)
        out = node if abstract == head and out == tail else sequence(m, abstract, out)
    return out


@inner
def abstract_node(
    m: Tables, node: NodeId, enough: int, lows: bool, num_static: int, found: NDArray[np.int64]
) -> NodeId:
    """`abstract_continuation` for one node of a continuation."""
    if is_table(m.nodes[node].kind):
        return abstract_table(m, node, enough, found)
    if m.nodes[node].kind != Kind.REPEAT or node < num_static:
        found[Found.NEEDED] = min(found[Found.NEEDED] + m.nodes[node].cost, INFINITE)
        return wide(node)
    body, low, high = m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
    size = m.nodes[body].size
    abstract_low, abstract_high, room = low, high, PLENTY
    if high >= MANY or high * size - size + 1 >= enough:
        abstract_high, room = FOREVER, (room if high >= MANY else high * size - size + 1)
    if low >= MANY or (lows and low * size - size + 1 >= enough):
        abstract_low, room = FOREVER, (room if low >= MANY else min(room, low * size - size + 1))
    abstract = (
        wide(node) if abstract_low == low
        and abstract_high == high else repetition(m, body, abstract_low, abstract_high)
    )
    cost = m.nodes[node].cost
    if abstract_low == FOREVER:
        found[Found.MORE] += 0 if low >= MANY else cost
    else:
        found[Found.NEEDED] += cost
    if abstract_high == FOREVER or abstract_low == FOREVER:
        found[Found.PLAIN] += 1
    found[Found.ROOM] = min(found[Found.ROOM], room)
    return abstract


@inner
def abstract_table(m: Tables, node: NodeId, enough: int, found: NDArray[np.int64]) -> NodeId:
    """`abstract_node` for a table: its count stands still as long as the distances from everywhere are the same."""
    found[Found.NEEDED] = min(found[Found.NEEDED] + m.nodes[node].cost, INFINITE)
    place, count = m.nodes[node].a, m.nodes[node].c
    table = m.pool + place
    low, alike = table[Table.LOW], table[Table.ALIKE]
    if m.nodes[node].kind == Kind.STANDING:
        found[Found.PLAIN] += 1
        return wide(node)
    if table[Table.STAYS] == 1 or count < low or alike - count < enough:
        return wide(node)
    found[Found.PLAIN] += 1
    found[Found.ROOM] = min(found[Found.ROOM], alike - count)
    return table_node(m, Kind.STANDING, place, m.nodes[node].b, alike)
