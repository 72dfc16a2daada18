"""Counter saturation for masks: a repetition that ends farther away than a token reaches is taken to be endless.

With a limit on the length of a string every character leads to another state, and every such state would be walked for
its mask. But most are far from their limit, and their masks are those of one state without the limit, or with one so
large that it is never reached.

    "up to 4990 more characters", "up to 4989 more", ...    have the mask of "any number of characters"

`saturate_class` does this for a state inside a body class, `saturate_state` for all others, also inside intersections.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.counted_tables import standing_still
from ..automaton.determinize import SEARCH, push_request, serve_requests, step
from ..automaton.nodes import (
    FAIL,
    MAX_COPIES_BEGUN,
    NO_BODY,
    SATURATED_COPIES,
    head_of,
    intern_node,
    repetition,
    sequence,
    wide,
)
from ..automaton.states import Frame, framed, intern_state, items_of
from ..automaton.tables import DEAD, FRAMED, REC, STATE_MASK, UNKNOWN, Counter, Fault
from ..base.kinds import INFINITE, UNBOUNDED, Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import ClassRecord, Header, first_ascii

_MAX_ITEMS, _MAX_HEADS = 16, 8  # items of a state; heads of an item before a repetition


@inner
def saturate_class(arena, tables, vocab, class_tables, s):
    """The state in which the repetitions of the body class of `s` are endless, if only tokens made of the class are
    long enough to tell the two apart; DEAD when there is none, and on a fault. tables: those of the class in the packed vocabulary.

    A token that leaves the class has at most LONGEST_OUTSIDE characters, unless a control character ends it; so no control
    character may be allowed behind a character of the body.
    """
    body, longest_outside = wide(arena[tables.state_body_class + REC * s]), wide(vocab[class_tables + ClassRecord.LONGEST_OUTSIDE])
    if (
        arena[tables.state_max_chars + REC * s] >= ENDLESS
        or arena[tables.state_max_chars + REC * s] <= longest_outside
        or not ends_at_controls(arena, tables, vocab, class_tables, s)
    ):
        return wide(DEAD)
    start, length = items_of(arena, tables, s)
    if length > _MAX_ITEMS or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    changed = False
    for j in range(length):
        item = wide(arena[tables.pool + start + j])
        other = saturate_class_item(arena, tables, item, body, longest_outside)
        if other == FAIL or arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(DEAD)
        changed = changed or other != item
        arena[tables.items + j] = other
    return intern_state(arena, tables, length, body, wide(ENDLESS)) if changed else wide(DEAD)


@inner
def saturate_class_item(arena, tables, item, body, longest_outside):
    """A continuation whose first repetition of the body class is endless, or has far too many copies to come if there
    is a lower bound beyond reach. FAIL when a bound is within reach."""
    node, depth = item, wide(0)
    while arena[tables.kind + REC * node] == Kind.SEQ and depth < _MAX_HEADS:
        head = wide(arena[tables.a + REC * node])
        if arena[tables.kind + REC * head] == Kind.REPEAT and arena[tables.body_class + REC * arena[tables.a + REC * head]] == body:
            high = wide(arena[tables.c + REC * head])
            if high < 0:
                return item
            low = wide(arena[tables.b + REC * head])
            if 0 < low <= longest_outside or high < longest_outside:
                return wide(FAIL)
            if low > 0:
                head = repetition(arena, tables, wide(arena[tables.a + REC * head]), wide(ENDLESS - 1), wide(ENDLESS - 1))
            else:
                head = repetition(arena, tables, wide(arena[tables.a + REC * head]), wide(0), wide(UNBOUNDED))
            out = sequence(arena, tables, head, wide(arena[tables.b + REC * node]))
            while depth > 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
                depth -= 1
                out = sequence(arena, tables, wide(arena[tables.work + depth]), out)
            return out
        arena[tables.work + depth] = head
        node, depth = wide(arena[tables.b + REC * node]), depth + 1
    return item


@inner
def ends_at_controls(arena, tables, vocab, class_tables, s):
    """Whether no control character may come behind a character of the body class in a state. False on a fault."""
    first = first_ascii(vocab, class_tables)
    if first == 0x80:
        return False
    after = arena[tables.next + s * 256 + first]
    if after == UNKNOWN:
        after = step(arena, tables, wide(s), first)
    row = tables.next + (after & STATE_MASK) * 256
    for control in range(0x20):
        if arena[row + control] != DEAD:
            return False
    return after & STATE_MASK != DEAD


@inner
def saturate_state(arena, tables, vocab, s):
    """The state in which the repetitions of `s` that end farther away than any token reaches have no end; `s` itself
    when it has none; DEAD on a fault. Of a frame, those of its inner state.

    Within a token both states go the same ways, so their masks are the same. In the operands of an intersection a
    repetition must end farther away than a token and any completion found so far: what can be completed from `s` can be
    completed from the other state, which allows more; and what can be completed from there has a completion of at most
    FARTHEST bytes, for which `s` has room. So the masks are the same unless the walk from the other state raises
    FARTHEST.

    Characters of a class are made endlessly many, because walks pass them without looking at each. How many copies of
    anything else, such as words, a token can begin nobody knows beforehand: SATURATED_COPIES stand instead of the copies that
    are left, and the repetitions with fewer copies that the walk has made tell how many it has begun at most (`copies_begun`).
    So again the masks are the same unless the walk raises that too far.
    """
    if arena[tables.state_length + REC * s] != FRAMED:
        return saturate_items(arena, tables, vocab, s)
    frame = tables.pool + wide(arena[tables.state_start + REC * s])
    inner_state, tail = wide(arena[frame + Frame.INNER]), wide(arena[frame + Frame.TAIL])
    saturated = saturate_items(arena, tables, vocab, inner_state)
    return wide(s) if saturated == inner_state else framed(arena, tables, saturated, tail)


@inner
def saturate_items(arena, tables, vocab, s):
    """`saturate_state` of a state that is no frame; a frame is returned as it is."""
    start, length = wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    if length < 0 or length > _MAX_ITEMS:
        return wide(s)
    items, token, max_chars = (
        np.empty(_MAX_ITEMS, np.int64),
        wide(vocab[Header.DEPTH]),
        wide(arena[tables.state_max_chars + REC * s]),
    )
    for j in range(length):
        item = wide(arena[tables.pool + start + j])
        if arena[tables.kind + REC * head_of(arena, tables, item)] == Kind.PRODUCT:
            items[j] = saturate_product(arena, tables, item, token + arena[tables.n + Counter.FARTHEST])
        else:
            items[j] = saturate_continuation(arena, tables, item, token, True)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(DEAD)
    for j in range(length):
        arena[tables.items + j] = items[j]
    body = wide(arena[tables.state_body_class + REC * s])
    return intern_state(arena, tables, length, body, wide(ENDLESS) if body != NO_BODY and max_chars > token else max_chars)


@inner
def saturate_product(arena, tables, item, enough):
    """An item that begins with an intersection, with those repetitions in its operands made endless of which `enough`
    bytes can be read."""
    product = head_of(arena, tables, item)
    if arena[tables.c + REC * product] != Kind.BOTH:
        return wide(item)
    x, y = wide(arena[tables.a + REC * product]), wide(arena[tables.b + REC * product])
    saturated_x, saturated_y = saturate_operand(arena, tables, x, enough), saturate_operand(arena, tables, y, enough)
    if (saturated_x == x and saturated_y == y) or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(item)
    saturated = intern_node(arena, tables, wide(Kind.PRODUCT), saturated_x, saturated_y, wide(Kind.BOTH))
    if arena[tables.size + REC * saturated] == UNKNOWN and arena[tables.n + Counter.FAULT] == Fault.NONE:
        push_request(arena, tables, saturated, wide(SEARCH))
        serve_requests(arena, tables)
    if arena[tables.n + Counter.FAULT] != Fault.NONE or arena[tables.size + REC * saturated] >= INFINITE:  # search given up
        return wide(item)
    return saturated if product == item else sequence(arena, tables, saturated, wide(arena[tables.b + REC * item]))


@inner
def saturate_operand(arena, tables, s, enough):
    """The operand `s` of an intersection with those repetitions made endless of which `enough` bytes can be read."""
    start, length = wide(arena[tables.state_start + REC * s]), wide(arena[tables.state_length + REC * s])
    if length < 0 or length > _MAX_ITEMS:  # a frame, or too many
        return wide(s)
    for j in range(length):
        arena[tables.items + j] = saturate_continuation(arena, tables, wide(arena[tables.pool + start + j]), enough, False)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(s)
    return intern_state(
        arena,
        tables,
        length,
        wide(arena[tables.state_body_class + REC * s]),
        wide(arena[tables.state_max_chars + REC * s]),
    )


@inner
def saturate_continuation(arena, tables, continuation, enough, is_flat):
    """A continuation with those repetitions made endless of which `enough` bytes can be read.

    is_flat: it is in no intersection, so that no completion of it has to be found; then lower bounds count too.
    """
    if arena[tables.may_saturate + REC * continuation] == 0:
        return wide(continuation)
    node, depth, has_far_end = wide(continuation), wide(0), False
    while arena[tables.kind + REC * node] == Kind.SEQ and depth < _MAX_HEADS:
        arena[tables.work + depth] = arena[tables.a + REC * node]
        has_far_end = (
            has_far_end
            or saturate_node(arena, tables, wide(arena[tables.a + REC * node]), enough, is_flat)
            != arena[tables.a + REC * node]
        )
        node, depth = wide(arena[tables.b + REC * node]), depth + 1
    if not has_far_end and saturate_node(arena, tables, node, enough, is_flat) == node:
        return wide(continuation)
    out = saturate_node(arena, tables, node, enough, is_flat)
    while depth > 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        depth -= 1
        out = sequence(arena, tables, saturate_node(arena, tables, wide(arena[tables.work + depth]), enough, is_flat), out)
    return out


@inner
def saturate_node(arena, tables, node, enough, is_flat):
    """`saturate_continuation` for one node of a continuation."""
    if arena[tables.kind + REC * node] == Kind.TABLE:
        return standing_still(arena, tables, node, enough)
    if arena[tables.kind + REC * node] != Kind.REPEAT:
        return wide(node)
    body, low, high = wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node]), wide(arena[tables.c + REC * node])
    if arena[tables.body_class + REC * body] != NO_BODY:  # no copy has fewer bytes than the shortest
        is_beyond_reach = high * arena[tables.size + REC * body] >= enough
        return repetition(arena, tables, body, low, wide(UNBOUNDED)) if is_beyond_reach else wide(node)
    copies_begun = wide(arena[tables.copies_begun + REC * body])
    if arena[tables.size + REC * body] == 0 or copies_begun >= MAX_COPIES_BEGUN or 0 <= high < max(copies_begun, wide(1)) + 2:
        return wide(node)
    if is_flat and low >= max(copies_begun, wide(1)) + 2:
        return repetition(arena, tables, body, wide(SATURATED_COPIES), wide(SATURATED_COPIES))
    return repetition(arena, tables, body, low, wide(SATURATED_COPIES)) if high >= 0 else wide(node)
