"""Repetitions whose ends are farther away than a token reaches: such states share the mask of one in which they have no end.

With a limit on the length of a string every character leads to another state, and so it does in an intersection, where each of
those states would be walked for itself. But most are far from their limit.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.determinize import SEARCH, answer_all, ask, step
from ..automaton.nodes import (
    BOTH,
    FAIL,
    FAR_COPIES,
    MOST_BEGUN,
    NO_BODY,
    PRODUCT,
    REPEAT,
    SEQ,
    intern_node,
    leaf,
    pair,
    repetition,
    wide,
)
from ..automaton.states import INNER, TAIL, framed, intern_state, items_of
from ..automaton.tables import DEAD, FARTHEST, FAULT, FRAMED, NO_FAULT, REC, STATE_MASK, UNKNOWN
from ..base.kinds import UNBOUNDED
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import DEPTH, REACH, first_ascii

_MAX_ITEMS, _MAX_HEADS = 16, 8  # items of a state; heads of an item before a repetition


@inner
def far_state(m, t, v, tables, s):
    """The state with endless repetitions of the body class instead of those of a state, if only tokens of the class itself are long
    enough to tell them apart; DEAD when there is none, or on a fault. tables: of the class.

    No token that leaves the class has more than REACH characters, unless a control character ends it, which the state must not
    allow behind any character of its body.
    """
    body, reach = wide(m[t.state_body + REC * s]), wide(v[tables + REACH])
    if m[t.state_radius + REC * s] >= ENDLESS or m[t.state_radius + REC * s] <= reach or not ends_at_controls(m, t, v, tables, s):
        return wide(DEAD)
    start, length = items_of(m, t, s)
    if length > _MAX_ITEMS or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    changed = False
    for j in range(length):
        item = wide(m[t.pool + start + j])
        other = without_end(m, t, item, body, reach)
        if other == FAIL or m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        changed = changed or other != item
        m[t.items + j] = other
    return intern_state(m, t, length, body, wide(ENDLESS)) if changed else wide(DEAD)


@inner
def without_end(m, t, item, body, reach):
    """A continuation with an endless repetition of the body class instead of its first one, or one that has far too many to come
    if it must not end within reach; FAIL when a bound is not beyond reach."""
    node, depth = item, wide(0)
    while m[t.kind + REC * node] == SEQ and depth < _MAX_HEADS:
        head = wide(m[t.a + REC * node])
        if m[t.kind + REC * head] == REPEAT and m[t.unit + REC * m[t.a + REC * head]] == body:
            high = wide(m[t.c + REC * head])
            if high < 0:
                return item
            low = wide(m[t.b + REC * head])
            if 0 < low <= reach or high < reach:
                return wide(FAIL)
            if low > 0:
                head = repetition(m, t, wide(m[t.a + REC * head]), wide(ENDLESS - 1), wide(ENDLESS - 1))
            else:
                head = repetition(m, t, wide(m[t.a + REC * head]), wide(0), wide(UNBOUNDED))
            out = pair(m, t, head, wide(m[t.b + REC * node]))
            while depth > 0 and m[t.n + FAULT] == NO_FAULT:
                depth -= 1
                out = pair(m, t, wide(m[t.work + depth]), out)
            return out
        m[t.work + depth] = head
        node, depth = wide(m[t.b + REC * node]), depth + 1
    return item


@inner
def ends_at_controls(m, t, v, tables, s):
    """Whether no control character may come behind a character of a class from a state. False on a fault."""
    first = first_ascii(v, tables)
    if first == 0x80:
        return False
    after = m[t.next + s * 256 + first]
    if after == UNKNOWN:
        after = step(m, t, wide(s), first)
    row = t.next + (after & STATE_MASK) * 256
    for control in range(0x20):
        if m[row + control] != DEAD:
            return False
    return after & STATE_MASK != DEAD


@inner
def endless_state(m, t, v, s):
    """The state with others instead of the repetitions of a state, or before the tail of a frame, that end farther away than any
    token reaches; itself when there are none; DEAD on a fault.

    Within a token both go the same ways, so their masks are the same. In the operands of an intersection the repetitions have to
    end farther away than a token and any completion found so far can reach: what can be completed from `s` can be from the other
    state, which allows more, and what can be from there has a completion of at most FARTHEST bytes, for which `s` has room. There
    the masks are the same unless the walk from the other state raises FARTHEST.

    Instead of characters of a class, which walks pass without looking at each, stand endlessly many. How many copies of anything
    else a token can begin, such as words, nobody knows beforehand: instead of the copies left of them stand FAR_COPIES, and the
    repetitions with fewer that the walk has made tell how many it began at most (`begun`). So again the masks are the same unless
    the walk raises that too far.
    """
    if m[t.state_length + REC * s] != FRAMED:
        return with_endless_items(m, t, v, s)
    frame = t.pool + wide(m[t.state_start + REC * s])
    inner_state, tail = wide(m[frame + INNER]), wide(m[frame + TAIL])
    far = with_endless_items(m, t, v, inner_state)
    return wide(s) if far == inner_state else framed(m, t, far, tail)


@inner
def with_endless_items(m, t, v, s):
    """The same of a state that is no frame, or is not looked into."""
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    if length < 0 or length > _MAX_ITEMS:
        return wide(s)
    items, token, radius = np.empty(_MAX_ITEMS, np.int64), wide(v[DEPTH]), wide(m[t.state_radius + REC * s])
    for j in range(length):
        item = wide(m[t.pool + start + j])
        if m[t.kind + REC * leaf(m, t, item)] == PRODUCT:
            items[j] = far_product(m, t, item, token + m[t.n + FARTHEST])
        else:
            items[j] = without_ends(m, t, item, token, True)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
    for j in range(length):
        m[t.items + j] = items[j]
    body = wide(m[t.state_body + REC * s])
    return intern_state(m, t, length, body, wide(ENDLESS) if body != NO_BODY and radius > token else radius)


@inner
def far_product(m, t, item, enough):
    """An item that begins with an intersection, with endless repetitions in its operands for those of which `enough` bytes can be
    read."""
    product = leaf(m, t, item)
    if m[t.c + REC * product] != BOTH:
        return wide(item)
    x, y = wide(m[t.a + REC * product]), wide(m[t.b + REC * product])
    far_x, far_y = far_operand(m, t, x, enough), far_operand(m, t, y, enough)
    if (far_x == x and far_y == y) or m[t.n + FAULT] != NO_FAULT:
        return wide(item)
    far = intern_node(m, t, wide(PRODUCT), far_x, far_y, wide(BOTH))
    if m[t.size + REC * far] == UNKNOWN and m[t.n + FAULT] == NO_FAULT:
        ask(m, t, far, wide(SEARCH))
        answer_all(m, t)
    if m[t.n + FAULT] != NO_FAULT:
        return wide(item)
    return far if product == item else pair(m, t, far, wide(m[t.b + REC * item]))


@inner
def far_operand(m, t, s, enough):
    """The same of an operand."""
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    if length < 0 or length > _MAX_ITEMS:  # a frame, or too many
        return wide(s)
    for j in range(length):
        m[t.items + j] = without_ends(m, t, wide(m[t.pool + start + j]), enough, False)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(s)
    return intern_state(m, t, length, wide(m[t.state_body + REC * s]), wide(m[t.state_radius + REC * s]))


@inner
def without_ends(m, t, continuation, enough, is_flat):
    """The same of a continuation. is_flat: it is in no intersection, so that no completion of it is looked for."""
    if m[t.far + REC * continuation] == 0:
        return wide(continuation)
    node, depth, has_far_end = wide(continuation), wide(0), False
    while m[t.kind + REC * node] == SEQ and depth < _MAX_HEADS:
        m[t.work + depth] = m[t.a + REC * node]
        has_far_end = has_far_end or without_end_of(m, t, wide(m[t.a + REC * node]), enough, is_flat) != m[t.a + REC * node]
        node, depth = wide(m[t.b + REC * node]), depth + 1
    if not has_far_end and without_end_of(m, t, node, enough, is_flat) == node:
        return wide(continuation)
    out = without_end_of(m, t, node, enough, is_flat)
    while depth > 0 and m[t.n + FAULT] == NO_FAULT:
        depth -= 1
        out = pair(m, t, without_end_of(m, t, wide(m[t.work + depth]), enough, is_flat), out)
    return out


@inner
def without_end_of(m, t, node, enough, is_flat):
    """The same of a node."""
    if m[t.kind + REC * node] != REPEAT:
        return wide(node)
    body, low, high = wide(m[t.a + REC * node]), wide(m[t.b + REC * node]), wide(m[t.c + REC * node])
    if m[t.unit + REC * body] != NO_BODY:  # no copy has fewer bytes than the shortest
        is_far = high * m[t.size + REC * body] >= enough
        return repetition(m, t, body, low, wide(UNBOUNDED)) if is_far else wide(node)
    begun = wide(m[t.begun + REC * body])
    if m[t.size + REC * body] == 0 or begun >= MOST_BEGUN or 0 <= high < max(begun, wide(1)) + 2:
        return wide(node)
    if is_flat and low >= max(begun, wide(1)) + 2:
        return repetition(m, t, body, wide(FAR_COPIES), wide(FAR_COPIES))
    return repetition(m, t, body, low, wide(FAR_COPIES)) if high >= 0 else wide(node)
