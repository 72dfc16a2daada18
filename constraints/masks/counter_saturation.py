"""Counter saturation for masks: a repetition that ends farther away than a token reaches is taken to be endless.

With a limit on the length of a string every character leads to another state, and every such state would be walked for
its mask. But most are far from their limit, and their masks are those of one state without the limit, or with one so
large that it is never reached.

    "up to 4990 more characters", "up to 4989 more", ...    have the mask of "any number of characters"

`saturate_class` does this for a state inside a body class, `saturate_state` for all others, also inside intersections, and
intersections inside of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.counted_tables import is_table, standing_still
from ..automaton.determinize import SEARCH, push_request, serve_requests, step
from ..automaton.nodes import (
    FAIL,
    MAX_COPIES_BEGUN,
    NO_BODY,
    NO_UNLISTED,
    SATURATED_COPIES,
    head_of,
    intern_node,
    repetition,
    sequence,
)
from ..automaton.states import framed, inner_of, intern_state, items_of, tail_of
from ..automaton.tables import DEAD, STATE_MASK, UNKNOWN, Fault, Tables
from ..base.ids import BodyId, NodeId, StateId
from ..base.kinds import INFINITE, UNBOUNDED, Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_records import ClassTables, first_ascii

_MAX_ITEMS, _MAX_HEADS = 16, 8  # items of a state; heads of an item before a repetition
_DEEPEST = 3  # intersections inside each other


@inner
def saturate_class(m: Tables, tables: ClassTables, s: StateId) -> StateId:
    """The state in which the repetitions of the body class of `s` are endless, if only tokens made of the class are
    long enough to tell the two apart; DEAD when there is none, and on a fault. tables: those of the class.

    A token that leaves the class has at most `longest_outside` characters, unless a control character ends it; so no control
    character may be allowed behind a character of the body.
    """
    body, longest_outside = m.states[s].body_class, tables.longest_outside
    if (
        m.states[s].max_chars >= ENDLESS
        or m.states[s].max_chars <= longest_outside
        or not ends_at_controls(m, tables, s)
    ):
        return DEAD
    start, length = items_of(m, s)
    if length > _MAX_ITEMS or m.n.fault != Fault.NONE:
        return DEAD
    changed = False
    for j in range(length):
        item = m.pool[start + j]
        other = saturate_class_item(m, item, body, longest_outside)
        if other == FAIL or m.n.fault != Fault.NONE:
            return DEAD
        changed = changed or other != item
        m.items[j] = other
    return intern_state(m, length, body, ENDLESS, NO_UNLISTED) if changed else DEAD


@inner
def saturate_class_item(m: Tables, item: NodeId, body: BodyId, longest_outside: int) -> NodeId:
    """A continuation whose first repetition of the body class is endless, or has far too many copies to come if there
    is a lower bound beyond reach. FAIL when a bound is within reach."""
    node, depth = item, 0
    while m.nodes[node].kind == Kind.SEQ and depth < _MAX_HEADS:
        head = m.nodes[node].a
        if m.nodes[head].kind == Kind.REPEAT and m.nodes[m.nodes[head].a].body_class == body:
            high = m.nodes[head].c
            if high < 0:
                return item
            low = m.nodes[head].b
            if 0 < low <= longest_outside or high < longest_outside:
                return FAIL
            if low > 0:
                head = repetition(m, m.nodes[head].a, ENDLESS - 1, ENDLESS - 1)
            else:
                head = repetition(m, m.nodes[head].a, 0, UNBOUNDED)
            out = sequence(m, head, m.nodes[node].b)
            while depth > 0 and m.n.fault == Fault.NONE:
                depth -= 1
                out = sequence(m, m.work[depth], out)
            return out
        m.work[depth] = head
        node, depth = m.nodes[node].b, depth + 1
    return item


@inner
def ends_at_controls(m: Tables, tables: ClassTables, s: StateId) -> bool:
    """Whether no control character may come behind a character of the body class in a state. False on a fault."""
    first = first_ascii(tables)
    if first == 0x80:
        return False
    after = m.next[s * 256 + first]
    if after == UNKNOWN:
        after = step(m, s, first)
    row = m.next + (after & STATE_MASK) * 256
    for control in range(0x20):
        if row[control] != DEAD:
            return False
    return after & STATE_MASK != DEAD


@inner
def saturate_state(m: Tables, s: StateId, token: int) -> StateId:
    """The state in which the repetitions of `s` that end farther away than a token of `token` bytes reaches have no end; `s`
    itself when it has none; DEAD on a fault. Of a frame, those of its inner state.

    Within a token both states go the same ways, so their masks are the same. In the operands of an intersection a
    repetition must end farther away than a token and any completion found so far: what can be completed from `s` can be
    completed from the other state, which allows more; and what can be completed from there has a completion of at most
    FARTHEST bytes, for which `s` has room. So the masks are the same unless the walk from the other state raises
    FARTHEST.

    Characters of a class are made endlessly many, because walks pass them without looking at each. How many copies of
    anything else, such as words, a token can begin nobody knows beforehand: SATURATED_COPIES stand instead of the copies that
    are left, and the repetitions with fewer copies that the walk has made tell how many it has begun at most (`copies_begun`).
    So again the masks are the same unless the walk raises that too far.

    Where completions may be left out that are there (`Counters.inexact`), one of them may be found from the other state and not
    from `s`. So intersections stay as they are then, and a mask is what the transitions say that a token takes.
    """
    if m.states[s].frame == 0:
        return saturate_items(m, s, token)
    inner_state = inner_of(m, s)
    saturated = saturate_items(m, inner_state, token)
    return s if saturated == inner_state else framed(m, saturated, tail_of(m, s))


@inner
def saturate_flat_operand(m: Tables, s: StateId, enough: int) -> StateId:
    """The operand `s` of an intersection with those repetitions made endless of which `enough` bytes can be read, but for those in
    its own intersections."""
    start, length = m.states[s].start, m.states[s].length
    if m.states[s].frame != 0 or length > _MAX_ITEMS:
        return s
    for j in range(length):
        m.items[j] = saturate_continuation(m, m.pool[start + j], enough, False)
        if m.n.fault != Fault.NONE:
            return s
    return intern_state(m, length, m.states[s].body_class, m.states[s].max_chars, m.states[s].unlisted)


def _saturate_operand(saturate_product: Any) -> Any:
    """A function of loops: `saturate_flat_operand`, and its own intersections with it."""

    @inner
    def saturate_operand(m: Tables, s: StateId, enough: int) -> StateId:
        start, length = m.states[s].start, m.states[s].length
        if m.states[s].frame != 0 or length > _MAX_ITEMS or m.states[s].has_no_product == 1:
            return saturate_flat_operand(m, s, enough)
        items = np.empty(_MAX_ITEMS, np.int64)
        for j in range(length):
            item = m.pool[start + j]
            if m.nodes[head_of(m, item)].kind == Kind.PRODUCT:
                items[j] = saturate_product(m, item, enough)
            else:
                items[j] = saturate_continuation(m, item, enough, False)
            if m.n.fault != Fault.NONE:
                return s
        for j in range(length):
            m.items[j] = items[j]
        return intern_state(m, length, m.states[s].body_class, m.states[s].max_chars, m.states[s].unlisted)

    return saturate_operand


def _saturate_product(saturate_operand: Any) -> Any:
    """A function of loops: an item that begins with an intersection, with those repetitions in its operands made endless of which
    `enough` bytes can be read."""

    @inner
    def saturate_product(m: Tables, item: NodeId, enough: int) -> NodeId:
        product = head_of(m, item)
        if m.nodes[product].c != Kind.BOTH or m.n.inexact == 1:
            return item
        x, y = m.nodes[product].a, m.nodes[product].b
        saturated_x, saturated_y = saturate_operand(m, x, enough), saturate_operand(m, y, enough)
        if saturated_x == x and saturated_y == y or m.n.fault != Fault.NONE:
            return item
        saturated = intern_node(m, Kind.PRODUCT, saturated_x, saturated_y, Kind.BOTH)
        if m.nodes[saturated].size == UNKNOWN and m.n.fault == Fault.NONE:
            push_request(m, saturated, SEARCH)
            serve_requests(m)
        if m.n.fault != Fault.NONE or m.nodes[saturated].size >= INFINITE:  # search given up
            return item
        return saturated if product == item else sequence(m, saturated, m.nodes[item].b)

    return saturate_product


def _nested(depth: int) -> Any:
    """`saturate_product` for intersections of intersections, so many inside each other."""
    operand = saturate_flat_operand if depth == 1 else _saturate_operand(_nested(depth - 1))
    return _saturate_product(operand)


saturate_product = _nested(_DEEPEST)


@inner
def saturate_items(m: Tables, s: StateId, token: int) -> StateId:
    """`saturate_state` of a state that is no frame; a frame is returned as it is."""
    start, length = m.states[s].start, m.states[s].length
    if m.states[s].frame != 0 or length > _MAX_ITEMS:
        return s
    items, max_chars = np.empty(_MAX_ITEMS, np.int64), m.states[s].max_chars
    for j in range(length):
        item = m.pool[start + j]
        if m.nodes[head_of(m, item)].kind == Kind.PRODUCT:
            items[j] = saturate_product(m, item, token + m.n.farthest)
        else:
            items[j] = saturate_continuation(m, item, token, True)
        if m.n.fault != Fault.NONE:
            return DEAD
    for j in range(length):
        m.items[j] = items[j]
    body = m.states[s].body_class
    max_chars = ENDLESS if body != NO_BODY and max_chars > token else max_chars
    return intern_state(m, length, body, max_chars, m.states[s].unlisted)


@inner
def saturate_continuation(m: Tables, continuation: NodeId, enough: int, is_flat: bool) -> NodeId:
    """A continuation with those repetitions made endless of which `enough` bytes can be read.

    is_flat: it is in no intersection, so that no completion of it has to be found; then lower bounds count too.
    """
    if m.nodes[continuation].may_saturate == 0:
        return continuation
    node, depth, has_far_end = continuation, 0, False
    while m.nodes[node].kind == Kind.SEQ and depth < _MAX_HEADS:
        m.work[depth] = m.nodes[node].a
        has_far_end = has_far_end or saturate_node(m, m.nodes[node].a, enough, is_flat) != m.nodes[node].a
        node, depth = m.nodes[node].b, depth + 1
    if not has_far_end and saturate_node(m, node, enough, is_flat) == node:
        return continuation
    out = saturate_node(m, node, enough, is_flat)
    while depth > 0 and m.n.fault == Fault.NONE:
        depth -= 1
        out = sequence(m, saturate_node(m, m.work[depth], enough, is_flat), out)
    return out


@inner
def saturate_node(m: Tables, node: NodeId, enough: int, is_flat: bool) -> NodeId:
    """`saturate_continuation` for one node of a continuation."""
    if is_table(m.nodes[node].kind):
        return standing_still(m, node, enough)
    if m.nodes[node].kind != Kind.REPEAT:
        return node
    body, low, high = m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
    if m.nodes[body].body_class != NO_BODY:  # no copy has fewer bytes than the shortest
        is_beyond_reach = high * m.nodes[body].size >= enough
        return repetition(m, body, low, UNBOUNDED) if is_beyond_reach else node
    body = body if is_flat else saturate_body(m, body, enough)
    copies_begun = m.nodes[body].copies_begun
    if m.nodes[body].size == 0 or copies_begun >= MAX_COPIES_BEGUN or 0 <= high < max(copies_begun, 1) + 2:
        return node if body == m.nodes[node].a else repetition(m, body, low, high)
    if is_flat and low >= max(copies_begun, 1) + 2:
        return repetition(m, body, SATURATED_COPIES, SATURATED_COPIES)
    return repetition(m, body, low, SATURATED_COPIES if high >= 0 else high)


@inner
def saturate_body(m: Tables, body: NodeId, enough: int) -> NodeId:
    """What is repeated, with the repetition of a class with which it begins made endless if `enough` bytes of that can be read: a
    label and a dot, for example, of which a token begins several."""
    head = head_of(m, body)
    if m.nodes[body].kind != Kind.SEQ or m.nodes[head].kind != Kind.REPEAT or m.nodes[head].c < 0:
        return body
    unit = m.nodes[head].a
    if m.nodes[unit].body_class == NO_BODY or m.nodes[head].c * m.nodes[unit].size < enough:
        return body
    return sequence(m, repetition(m, unit, m.nodes[head].b, UNBOUNDED), m.nodes[body].b)
