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

from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import entry, inner, words_at
from ..vocabulary.packed_vocabulary import Header
from .closures import ENDLESS
from .counted_tables import Table, table_node
from .determinize import SEARCH, push_request, serve_requests
from .nodes import NO_BODY, head_of, intern_node, push_work, repetition, sequence, wide
from .states import Frame, framed, intern_state
from .tables import DEAD, FRAMED, REC, UNKNOWN, Counter, Fault, layout

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
def abstract_counts(arena_address, vocab_address, num_static, s):
    """(state, room, more, needed, reach) of the state `s`. The first is the state that stands for it.

    room: bytes that are left in the counts that were given up now, PLENTY when none were. more: tokens that their lower
    bounds need. needed: tokens that suffice to finish from the other state if its lower bounds need none. reach: the
    room that whoever is in the other state must have, 0 if it stands for itself alone. num_static: how many nodes the
    grammar has, none of which has begun.

    Products that were not searched before may raise FARTHEST, and `reach` with it: `reach` is final when the mask of
    the other state is known. The answer means nothing on a fault.
    """
    arena, vocab = words_at(arena_address), words_at(vocab_address)
    tables = layout(arena)
    found = np.zeros(NUM_FOUND, np.int64)
    found[Found.ROOM] = PLENTY
    abstract, token = wide(s), wide(vocab[Header.DEPTH])
    if arena[tables.state_length + REC * s] != FRAMED:
        abstract = abstract_state(arena, tables, wide(s), token, wide(num_static), found)
    else:
        frame = tables.pool + wide(arena[tables.state_start + REC * s])
        inner_state, tail = wide(arena[frame + Frame.INNER]), wide(arena[frame + Frame.TAIL])
        abstract_inner = abstract_state(arena, tables, inner_state, token, wide(num_static), found)
        needed, more = found[Found.NEEDED], found[Found.MORE]
        found[Found.NEEDED] = found[Found.MORE] = 0
        abstract_tail = abstract_continuation(arena, tables, tail, token, True, wide(num_static), found)
        found[Found.NEEDED], found[Found.MORE] = needed + found[Found.NEEDED], more + found[Found.MORE]
        if abstract_inner != inner_state or abstract_tail != tail:
            abstract = framed(arena, tables, abstract_inner, abstract_tail)
    reach = wide(0)
    if found[Found.PLAIN] + found[Found.CROSSED] > 0:
        reach = token + (wide(arena[tables.n + Counter.FARTHEST]) if found[Found.CROSSED] > 0 else 0)
    needed = found[Found.NEEDED] + (wide(arena[tables.n + Counter.FARTHEST]) if found[Found.CROSSED] > 0 else 0)
    return abstract, found[Found.ROOM], found[Found.MORE], min(needed, wide(INFINITE - 1)), reach


@inner
def abstract_state(arena, tables, s, token, num_static, found):
    """The state `s`, which is no frame, without its distant counts. DEAD on a fault. NEEDED is that of the item that
    needs least, MORE that of the item that needs most."""
    start, length = wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    items, needed, more = np.empty(length, np.int64), wide(INFINITE), wide(0)
    for j in range(length):
        item = wide(arena[tables.pool + start + j])
        found[Found.NEEDED] = found[Found.MORE] = 0
        items[j] = abstract_continuation(arena, tables, item, token, True, num_static, found)
        if (
            arena[tables.kind + REC * head_of(arena, tables, item)] == Kind.PRODUCT
            and arena[tables.n + Counter.FAULT] == Fault.NONE
        ):
            items[j] = abstract_product(arena, tables, items[j], token, num_static, found)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(DEAD)
        needed, more = min(needed, found[Found.NEEDED]), max(more, found[Found.MORE])
    found[Found.NEEDED], found[Found.MORE] = needed, more
    return state_with_items(arena, tables, s, items, token)


@inner
def state_with_items(arena, tables, s, items, enough):
    """The state that has `items` in the places of those of `s`. Its `max_chars` is endless where `enough` bytes cannot use
    it up."""
    start, changed = wide(arena[tables.state_start + REC * s]), False
    for j in range(items.size):
        changed = changed or items[j] != arena[tables.pool + start + j]
        arena[tables.items + j] = items[j]
    if not changed:
        return wide(s)
    max_chars = wide(arena[tables.state_max_chars + REC * s])
    body = wide(arena[tables.state_body_class + REC * s])
    max_chars = wide(ENDLESS) if body != NO_BODY and max_chars > enough else max_chars
    return intern_state(arena, tables, wide(items.size), body, max_chars)


@inner
def abstract_product(arena, tables, item, token, num_static, found):
    """An item that begins with an intersection, without the distant counts of its operands.

    What can be completed from there has a completion of at most FARTHEST bytes, for which the counts must have room as
    well.
    """
    product = head_of(arena, tables, item)
    if arena[tables.c + REC * product] != Kind.BOTH:
        return wide(item)
    x, y = wide(arena[tables.a + REC * product]), wide(arena[tables.b + REC * product])
    enough = token + wide(arena[tables.n + Counter.FARTHEST])
    abstract_x = abstract_operand(arena, tables, x, enough, num_static, found)
    abstract_y = abstract_operand(arena, tables, y, enough, num_static, found)
    if (abstract_x == x and abstract_y == y) or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(item)
    abstract = intern_node(arena, tables, wide(Kind.PRODUCT), abstract_x, abstract_y, wide(Kind.BOTH))
    if arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.size + REC * abstract] == UNKNOWN:
        push_request(arena, tables, abstract, wide(SEARCH))
        serve_requests(arena, tables)
    if arena[tables.n + Counter.FAULT] != Fault.NONE or arena[tables.size + REC * abstract] >= INFINITE:  # its search was given up
        return wide(item)
    return abstract if product == item else sequence(arena, tables, abstract, wide(arena[tables.b + REC * item]))


@inner
def abstract_operand(arena, tables, s, enough, num_static, found):
    """The operand `s` of an intersection without those upper bounds that `enough` bytes do not reach."""
    if s == DEAD:
        return wide(s)
    inner_state = wide(s)
    if arena[tables.state_length + REC * s] == FRAMED:
        inner_state = wide(arena[tables.pool + wide(arena[tables.state_start + REC * s]) + Frame.INNER])
    needed, more, plain = found[Found.NEEDED], found[Found.MORE], found[Found.PLAIN]
    start, length = wide(arena[tables.state_start + REC * inner_state]), wide(arena[tables.state_length + REC * inner_state])
    items = np.empty(length, np.int64)
    for j in range(length):
        items[j] = abstract_continuation(arena, tables, wide(arena[tables.pool + start + j]), enough, False, num_static, found)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(s)
    abstract = state_with_items(arena, tables, inner_state, items, enough)
    if inner_state != s:
        tail = wide(arena[tables.pool + wide(arena[tables.state_start + REC * s]) + Frame.TAIL])
        abstract_tail = abstract_continuation(arena, tables, tail, enough, False, num_static, found)
        abstract = framed(arena, tables, abstract, abstract_tail) if abstract != inner_state or abstract_tail != tail else wide(s)
    found[Found.CROSSED] += found[Found.PLAIN] - plain
    found[Found.NEEDED], found[Found.MORE], found[Found.PLAIN] = needed, more, plain
    return abstract


@inner
def abstract_continuation(arena, tables, continuation, enough, lows, num_static, found):
    """A continuation without the counts that `enough` bytes do not bring to their ends; lower bounds are among them if
    `lows`.

    Adds what it finds to `found`.
    """
    node, depth = wide(continuation), wide(0)
    while arena[tables.kind + REC * node] == Kind.SEQ:
        depth = push_work(arena, tables, node, depth)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(continuation)
        node = wide(arena[tables.b + REC * node])
    out = abstract_node(arena, tables, node, enough, lows, num_static, found)
    while depth > 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        depth -= 1
        node = wide(arena[tables.work + depth])
        head, tail = wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node])
        abstract = abstract_node(arena, tables, head, enough, lows, num_static, found)
        out = node if abstract == head and out == tail else sequence(arena, tables, abstract, out)
    return out


@inner
def abstract_node(arena, tables, node, enough, lows, num_static, found):
    """`abstract_continuation` for one node of a continuation."""
    if arena[tables.kind + REC * node] == Kind.TABLE:
        return abstract_table(arena, tables, node, enough, found)
    if arena[tables.kind + REC * node] != Kind.REPEAT or node < num_static:
        found[Found.NEEDED] = min(found[Found.NEEDED] + arena[tables.cost + REC * node], wide(INFINITE))
        return wide(node)
    body, low, high = wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node]), wide(arena[tables.c + REC * node])
    size = wide(arena[tables.size + REC * body])
    abstract_low, abstract_high, room = low, high, wide(PLENTY)
    if high >= MANY or high * size - size + 1 >= enough:
        abstract_high, room = wide(FOREVER), room if high >= MANY else high * size - size + 1
    if low >= MANY or (lows and low * size - size + 1 >= enough):
        abstract_low, room = wide(FOREVER), room if low >= MANY else min(room, low * size - size + 1)
    abstract = (
        wide(node)
        if abstract_low == low and abstract_high == high
        else repetition(arena, tables, body, abstract_low, abstract_high)
    )
    cost = wide(arena[tables.cost + REC * node])
    if abstract_low == FOREVER:
        found[Found.MORE] += 0 if low >= MANY else cost
    else:
        found[Found.NEEDED] += cost
    if abstract_high == FOREVER or abstract_low == FOREVER:
        found[Found.PLAIN] += 1
    found[Found.ROOM] = min(found[Found.ROOM], room)
    return abstract


@inner
def abstract_table(arena, tables, node, enough, found):
    """`abstract_node` for a TABLE: its count stands still as long as the distances from everywhere are the same."""
    found[Found.NEEDED] = min(found[Found.NEEDED] + arena[tables.cost + REC * node], wide(INFINITE))
    place, count = wide(arena[tables.a + REC * node]), wide(arena[tables.c + REC * node])
    table = tables.pool + place
    low, alike = wide(arena[table + Table.LOW]), wide(arena[table + Table.ALIKE])
    if count < 0:
        found[Found.PLAIN] += 1
        return wide(node)
    if arena[table + Table.STAYS] == 1 or count < low or alike - count < enough:
        return wide(node)
    found[Found.PLAIN] += 1
    found[Found.ROOM] = min(found[Found.ROOM], alike - count)
    return table_node(arena, tables, place, wide(arena[tables.b + REC * node]), -1 - alike)
