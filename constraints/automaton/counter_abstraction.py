"""Counts that are far from their ends: states that differ in nothing else have one state that stands for all of them.

It has FOREVER copies to come where they have many: its mask is theirs, and it goes where they go, as long as no token can bring
one of their counts to its end. How far away that is goes with whoever is in such a state as a number of bytes, `room`: a counter
with n copies to come, the shortest of which has z bytes, has room for n z - z + 1 bytes, less one for every byte that is read. So
the automaton on the device has one state for all lengths of a string, and a register for each sequence.

Only repetitions that have begun count. Lower bounds are treated like upper ones, but not in the operands of an intersection, where
they say whether anything can be completed at all. Bags and multiples keep their counts.
"""

from __future__ import annotations

import numpy as np

from ..numba_support.jit import entry, inner, words_at
from ..vocabulary.packed_vocabulary import DEPTH
from .closures import ENDLESS
from .determinize import SEARCH, answer_all, ask
from .nodes import BOTH, NO_BODY, PRODUCT, REPEAT, SEQ, intern_node, later, leaf, pair, repetition, wide
from .states import INNER, TAIL, framed, intern_state
from .tables import DEAD, FARTHEST, FAULT, FRAMED, INFINITE, NO_FAULT, REC, UNKNOWN, layout

FOREVER = ENDLESS - 1
MANY = 1 << 29  # copies: so many are FOREVER less what was read since
PLENTY = 1 << 30  # bytes of room where nothing ends
ROOM, MORE, NEEDED, PLAIN, CROSSED = range(5)  # in `found`


@entry
def without_counts(arena, atlas, num_static, s):
    """(state, room, more, needed, reach) of a state: the one that stands for it and those that differ in distant counts alone.

    room: bytes that are left in the counts that were given up now, PLENTY when there were none. more: tokens that their lower
    bounds need. needed: tokens that suffice to finish from the other state if its lower bounds need none. reach: the room that
    whoever is in the other state must have, 0 if it stands for itself alone. num_static: nodes of the grammar, none of which has
    begun.

    Products that were not searched before may raise FARTHEST, and `reach` with it: it is what it is when the mask of the other
    state is known. Meaningless on a fault.
    """
    m, v = words_at(arena), words_at(atlas)
    t = layout(m)
    found = np.zeros(5, np.int64)
    found[ROOM] = PLENTY
    far, token = wide(s), wide(v[DEPTH])
    if m[t.state_length + REC * s] != FRAMED:
        far = state_without(m, t, wide(s), token, wide(num_static), found)
    else:
        frame = t.pool + wide(m[t.state_start + REC * s])
        inner_state, tail = wide(m[frame + INNER]), wide(m[frame + TAIL])
        far_inner = state_without(m, t, inner_state, token, wide(num_static), found)
        needed, more = found[NEEDED], found[MORE]
        found[NEEDED] = found[MORE] = 0
        far_tail = continuation_without(m, t, tail, token, True, wide(num_static), found)
        found[NEEDED], found[MORE] = needed + found[NEEDED], more + found[MORE]
        if far_inner != inner_state or far_tail != tail:
            far = framed(m, t, far_inner, far_tail)
    reach = wide(0)
    if found[PLAIN] + found[CROSSED] > 0:
        reach = token + (wide(m[t.n + FARTHEST]) if found[CROSSED] > 0 else 0)
    needed = found[NEEDED] + (wide(m[t.n + FARTHEST]) if found[CROSSED] > 0 else 0)
    return far, found[ROOM], found[MORE], min(needed, wide(INFINITE - 1)), reach


@inner
def state_without(m, t, s, token, num_static, found):
    """A state that is no frame without its distant counts. NEEDED is that of the item that needs least, MORE of the one that needs
    most."""
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    items, needed, more = np.empty(length, np.int64), wide(INFINITE), wide(0)
    for j in range(length):
        item = wide(m[t.pool + start + j])
        found[NEEDED] = found[MORE] = 0
        items[j] = continuation_without(m, t, item, token, True, num_static, found)
        if m[t.kind + REC * leaf(m, t, item)] == PRODUCT and m[t.n + FAULT] == NO_FAULT:
            items[j] = product_without(m, t, items[j], token, num_static, found)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        needed, more = min(needed, found[NEEDED]), max(more, found[MORE])
    found[NEEDED], found[MORE] = needed, more
    return state_with(m, t, s, items, token)


@inner
def state_with(m, t, s, items, enough):
    """A state with other items in the places of its own, which no `enough` bytes can tell from it."""
    start, changed = wide(m[t.state_start + REC * s]), False
    for j in range(items.size):
        changed = changed or items[j] != m[t.pool + start + j]
        m[t.items + j] = items[j]
    if not changed:
        return wide(s)
    radius = wide(m[t.state_radius + REC * s])
    body = wide(m[t.state_body + REC * s])
    radius = wide(ENDLESS) if body != NO_BODY and radius > enough else radius
    return intern_state(m, t, wide(items.size), body, radius)


@inner
def product_without(m, t, item, token, num_static, found):
    """An item that begins with an intersection, without the distant counts of its operands. What can be completed from there has a
    completion of at most FARTHEST bytes, for which the counts have to have room."""
    product = leaf(m, t, item)
    if m[t.c + REC * product] != BOTH:
        return wide(item)
    x, y = wide(m[t.a + REC * product]), wide(m[t.b + REC * product])
    enough = token + wide(m[t.n + FARTHEST])
    far_x = operand_without(m, t, x, enough, num_static, found)
    far_y = operand_without(m, t, y, enough, num_static, found)
    if (far_x == x and far_y == y) or m[t.n + FAULT] != NO_FAULT:
        return wide(item)
    far = intern_node(m, t, wide(PRODUCT), far_x, far_y, wide(BOTH))
    if m[t.n + FAULT] == NO_FAULT and m[t.size + REC * far] == UNKNOWN:
        ask(m, t, far, wide(SEARCH))
        answer_all(m, t)
    if m[t.n + FAULT] != NO_FAULT:
        return wide(item)
    return far if product == item else pair(m, t, far, wide(m[t.b + REC * item]))


@inner
def operand_without(m, t, s, enough, num_static, found):
    """A state without the upper bounds that are farther away than that."""
    if s == DEAD:
        return wide(s)
    inner_state = wide(s)
    if m[t.state_length + REC * s] == FRAMED:
        inner_state = wide(m[t.pool + wide(m[t.state_start + REC * s]) + INNER])
    needed, more, plain = found[NEEDED], found[MORE], found[PLAIN]
    start, length = wide(m[t.state_start + REC * inner_state]), wide(m[t.state_length + REC * inner_state])
    items = np.empty(length, np.int64)
    for j in range(length):
        items[j] = continuation_without(m, t, wide(m[t.pool + start + j]), enough, False, num_static, found)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(s)
    far = state_with(m, t, inner_state, items, enough)
    if inner_state != s:
        tail = wide(m[t.pool + wide(m[t.state_start + REC * s]) + TAIL])
        far_tail = continuation_without(m, t, tail, enough, False, num_static, found)
        far = framed(m, t, far, far_tail) if far != inner_state or far_tail != tail else wide(s)
    found[CROSSED] += found[PLAIN] - plain
    found[NEEDED], found[MORE], found[PLAIN] = needed, more, plain
    return far


@inner
def continuation_without(m, t, continuation, enough, lows, num_static, found):
    """A continuation without the counts, `lows`: lower bounds among them, that no `enough` bytes bring to their ends.

    Adds what it finds to `found`.
    """
    node, depth = wide(continuation), wide(0)
    while m[t.kind + REC * node] == SEQ:
        depth = later(m, t, node, depth)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(continuation)
        node = wide(m[t.b + REC * node])
    out = node_without(m, t, node, enough, lows, num_static, found)
    while depth > 0 and m[t.n + FAULT] == NO_FAULT:
        depth -= 1
        node = wide(m[t.work + depth])
        head, tail = wide(m[t.a + REC * node]), wide(m[t.b + REC * node])
        far = node_without(m, t, head, enough, lows, num_static, found)
        out = node if far == head and out == tail else pair(m, t, far, out)
    return out


@inner
def node_without(m, t, node, enough, lows, num_static, found):
    """The same of a node of a continuation."""
    if m[t.kind + REC * node] != REPEAT or node < num_static:
        found[NEEDED] = min(found[NEEDED] + m[t.cost + REC * node], wide(INFINITE))
        return wide(node)
    body, low, high = wide(m[t.a + REC * node]), wide(m[t.b + REC * node]), wide(m[t.c + REC * node])
    size = wide(m[t.size + REC * body])
    far_low, far_high, room = low, high, wide(PLENTY)
    if high >= MANY or high * size - size + 1 >= enough:
        far_high, room = wide(FOREVER), room if high >= MANY else high * size - size + 1
    if low >= MANY or (lows and low * size - size + 1 >= enough):
        far_low, room = wide(FOREVER), room if low >= MANY else min(room, low * size - size + 1)
    far = wide(node) if far_low == low and far_high == high else repetition(m, t, body, far_low, far_high)
    cost = wide(m[t.cost + REC * node])
    if far_low == FOREVER:
        found[MORE] += 0 if low >= MANY else cost
    else:
        found[NEEDED] += cost
    if far_high == FOREVER or far_low == FOREVER:
        found[PLAIN] += 1
    found[ROOM] = min(found[ROOM], room)
    return far
