"""Closures: the ways in which a continuation may begin.

A *continuation* is an expression for all that may still come: a leaf, followed by a tail (states.py). Its *closure* is
the set of continuations that begin with a leaf, or are finished, and are reached from it without reading a byte: calls
are entered, alternatives are spread out, repetitions are begun or ended. A closure is made once and kept in `pool`.

    rule "x"* "y"    its closure: { "x" then ("x"* "y"),  "y" }

A closure also says what its state will loop on: the *body class*, the class of characters that a repetition at the
beginning reads, and `max_chars`, the most characters of the class that may still come. A call that says of its rule that any
characters of a class may come is such a repetition, though each of them may lead elsewhere.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..numba_support.sets import sort_unique
from .containment import without_contained
from .counted_tables import is_table
from .covers import cover_behind, cover_behind_watch, open_cover
from .member_walks import left_behind, open_walk
from .nodes import (
    EMPTY,
    FAIL,
    NO_BODY,
    NO_UNLISTED,
    after_one_copy,
    head_of,
    join,
    open_bag,
    open_fraction,
    open_multiple,
    push_work,
    takes_too_much,
)
from .tables import CLOSURE_WORDS, Closure, Fault, Tables, closure_at
from .unions import merge

ENDLESS = 1 << 30  # the radius of a body without bound
MANY_EXPANDED = 256
HEAD = 1 << 30  # the bit of a node on the work list that stands above its tail


@inner
def make_closure(m: Tables, continuation: NodeId, scratch: int) -> None:
    """Make the closure of a continuation, a `Closure` and its items behind it. Uses `items` from `scratch` on, and `work`. On a
    fault nothing is kept."""
    if takes_too_much(m):
        return
    m.n.epoch += 1
    epoch = m.n.epoch
    start = m.n.pool
    first = start + CLOSURE_WORDS  # of its items
    count, body, max_chars, unlisted, has_known = 0, NO_BODY, 0, NO_UNLISTED, False
    m.work[0] = continuation
    depth, expanded = 1, 0
    while depth > 0:
        depth, expanded = depth - 1, expanded + 1
        w = m.work[depth]
        if w & HEAD:  # above its tail
            depth -= 1
            head, tail = w & ~HEAD, m.work[depth]
            if m.nodes[head].size >= INFINITE or m.nodes[tail].size >= INFINITE:
                continue
        else:
            if m.nodes[w].marked_in == epoch or m.nodes[w].size >= INFINITE:
                continue
            m.nodes[w].marked_in = epoch
            if m.nodes[w].closure != 0 and w >= m.n.num_static:  # a stack that began here before, which may be deep
                known, items = closure_of(m, w), closure_items(m, w)
                if first + count + known.length > m.pool_size:
                    m.n.fault = Fault.FULL_POOL
                    return
                for j in range(known.length):
                    m.pool[first + count + j] = items[j]
                count, has_known = count + known.length, True
                if known.max_chars > max_chars:
                    body, max_chars = known.body_class, known.max_chars
                continue
            head, tail = w, EMPTY
            if m.nodes[w].kind == Kind.SEQ:
                head, tail = m.nodes[w].a, m.nodes[w].b
        kind = m.nodes[head].kind
        if expanded == 1 and kind == Kind.UNLISTED:
            unlisted = head
        if first + count >= m.pool_size:
            m.n.fault = Fault.FULL_POOL
        elif reads_bytes(kind) or (head == EMPTY and tail == EMPTY):
            m.pool[first + count] = join(m, head, tail)
            count += 1
            if (kind == Kind.PRODUCT or is_table(kind)) and m.nodes[head].size == 0:
                depth = push_work(m, tail, depth)
            elif kind == Kind.WATCH and m.states[m.nodes[head].a].accept == 1:
                depth = expand(m, cover_behind_watch(m, head), tail, depth, expanded)
        elif kind == Kind.SEQ:
            depth = expand(m, m.nodes[head].a, join(m, m.nodes[head].b, tail), depth, expanded)
        elif kind == Kind.ALT:
            for j in range(m.nodes[head].a, m.nodes[head].a + m.nodes[head].b):
                depth = expand(m, m.lists[j], tail, depth, expanded)
        elif kind == Kind.EITHER:
            depth = push_work(m, join(m, m.nodes[head].b, tail), depth)
            depth = push_work(m, join(m, m.nodes[head].a, tail), depth)
        elif kind == Kind.CALL:
            unit = m.nodes[head].b
            if unit != FAIL and m.nodes[unit].body_class != NO_BODY:
                body, max_chars = m.nodes[unit].body_class, ENDLESS
            depth = expand(m, m.rules[m.nodes[head].a], tail, depth, expanded)
        elif kind == Kind.REPEAT:
            high = ENDLESS if m.nodes[head].c < 0 else m.nodes[head].c
            if m.nodes[m.nodes[head].a].body_class != NO_BODY and high > max_chars:
                body, max_chars = m.nodes[m.nodes[head].a].body_class, high
            if m.nodes[head].b == 0:
                depth = push_work(m, tail, depth)
            depth = expand(m, m.nodes[head].a, join(m, after_one_copy(m, head), tail), depth, expanded)
        elif kind == Kind.BAG:
            depth = open_bag(m, head, tail, depth)
        elif kind == Kind.WALK:
            depth = open_walk(m, head, tail, depth)
        elif kind == Kind.COVER:
            depth = open_cover(m, head, tail, depth)
        elif kind == Kind.TAKEN:
            is_item = m.nodes[m.nodes[head].a].kind == Kind.COVER
            left = cover_behind(m, head) if is_item else left_behind(m, head, depth)
            depth = expand(m, left, tail, depth, expanded)
        elif kind == Kind.MULTIPLE:
            depth = open_multiple(m, head, tail, depth)
        elif kind == Kind.FRACTION:
            depth = open_fraction(m, head, tail, depth)
        elif kind == Kind.BOTH or kind == Kind.NEGATE:
            depth = expand(m, m.nodes[head].entry_product, tail, depth, expanded)
        elif head == EMPTY:
            depth = push_work(m, tail, depth)
        if m.n.fault != Fault.NONE:
            return
    if has_known:
        count = sort_unique(m.pool + first, count)
    count = without_contained(m, m.pool + first, count, 0)
    if count > 1 and m.n.calls != 0:
        count = merged(m, m.pool + first, count, scratch)
    if m.n.fault != Fault.NONE:
        return
    m.n.pool = first + count
    m.nodes[continuation].closure = start
    closure = closure_of(m, continuation)
    closure.length, closure.body_class, closure.max_chars = count, body, max_chars
    closure.unlisted = unlisted if body == NO_BODY else NO_UNLISTED


@inner
def closure_of(m: Tables, continuation: NodeId) -> Closure:
    """The closure of a continuation whose closure is made."""
    return closure_at(m.pool + m.nodes[continuation].closure)


@inner
def closure_items(m: Tables, continuation: NodeId) -> Words:
    """The items of the closure of a continuation."""
    return m.pool + m.nodes[continuation].closure + CLOSURE_WORDS


@inner
def merged(m: Tables, found: Words, count: int, scratch: int) -> int:
    """Make one item of those in found[:count] that begin with the same leaf; returns how many are left. Uses `items` from
    `scratch` on."""
    if scratch + count > m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return count
    for j in range(count):
        m.items[scratch + j] = found[j]
    count = merge(m, scratch, count)
    for j in range(count):
        found[j] = m.items[scratch + j]
    return count


@inner
def make_closures(m: Tables, continuation: NodeId, scratch: int) -> None:
    """Make the closure of a continuation, and first those of all that it may come to without reading a byte and that the
    automaton has made itself: stacks that are deep, of which the next closures are made. Uses `items` from `scratch` on."""
    m.items[scratch] = continuation
    top = scratch + 1
    while top > scratch and m.n.fault == Fault.NONE:
        node = m.items[top - 1]
        below = top
        if m.n.calls != 0 and node >= m.n.num_static:
            if m.nodes[node].kind == Kind.EITHER:
                part = node
                while m.nodes[part].kind == Kind.EITHER:
                    below = push_open(m, m.nodes[part].a, below)
                    part = m.nodes[part].b
                below = push_open(m, part, below)
            elif m.nodes[node].kind == Kind.SEQ and m.nodes[m.nodes[node].a].size == 0:
                below = push_open(m, m.nodes[node].b, below)
        if below > top:
            top = below
            continue
        top -= 1
        if m.nodes[node].closure == 0:
            make_closure(m, node, top)


@inner
def push_open(m: Tables, node: NodeId, top: int) -> int:
    """Put a node on the stack items[:top] if its closure is still to be made; returns the new top."""
    if node < m.n.num_static or m.nodes[node].closure != 0 or m.nodes[head_of(m, node)].kind == Kind.LITERAL:
        return top
    if top + 1 >= m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return top
    m.items[top] = node
    return top + 1


@inner
def reads_bytes(kind: int) -> bool:
    """Whether nodes of a kind are leaves, which read bytes themselves."""
    is_boolean = kind == Kind.PRODUCT or is_table(kind)
    return kind == Kind.CLASS or kind == Kind.LITERAL or kind == Kind.UNLISTED or is_boolean or kind == Kind.WATCH


@inner
def expand(m: Tables, head: NodeId, tail: NodeId, depth: int, expanded: int) -> int:
    """Put the continuation `head` then `tail` on the work list, as two entries; returns the new depth.

    Two entries, because most heads are never needed as a node with this tail. After MANY_EXPANDED steps of a closure
    nodes are made after all: nodes are stamped, so that parts shared by many alternatives are looked at once. (What
    reads nothing always passes through a tail, which is a node, so no pair of entries comes back for ever.)
    """
    if expanded > MANY_EXPANDED or head == FAIL:
        return push_work(m, join(m, head, tail), depth)
    return push_work(m, NodeId(head | HEAD), push_work(m, tail, depth))


@inner
def append_closure(m: Tables, continuation: NodeId, count: int) -> int:
    """Append the items of the closure of a continuation to items[:count], where a new state is put together. Returns
    their new number."""
    if m.nodes[head_of(m, continuation)].kind == Kind.LITERAL:  # its own closure
        if count >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        m.items[count] = continuation
        return count + 1
    if m.nodes[continuation].closure == 0:
        if count >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        make_closures(m, continuation, count)
        if m.n.fault == Fault.NONE:
            make_body_closures(m, continuation, count)
        if m.n.fault != Fault.NONE:
            m.nodes[continuation].closure = 0
            return count
    length, items = closure_of(m, continuation).length, closure_items(m, continuation)
    if count + length > m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return count
    for j in range(length):
        m.items[count + j] = items[j]
    return count + length


@inner
def make_body_closures(m: Tables, continuation: NodeId, scratch: int) -> None:
    """Make the closures of the bodies of all UNLISTED nodes in a closure: they tell which bytes a state may read."""
    items = closure_items(m, continuation)
    for j in range(closure_of(m, continuation).length):
        node = head_of(m, items[j])
        if m.nodes[node].kind == Kind.UNLISTED:
            body = m.nodes[node].b
            if m.nodes[body].closure == 0 and m.nodes[head_of(m, body)].kind != Kind.LITERAL:
                make_closure(m, body, scratch)
