"""Lazy determinisation: a state, a byte, the next state.

This is the subset construction on partial derivatives (Antimirov 1996), made when a byte is first crossed: the items of a state
(states.py) that read the byte, each without it.

Intersections and complements are leaves too: a PRODUCT of the states of their operands, which live in the same automaton. Whether a
product can still be completed is found by a best-first search, memoised along the path it finds.

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

import numpy as np

from ..numba_support.jit import entry, inner, words_at
from .closures import gather
from .nodes import (
    BOTH,
    CLASS,
    EMPTY,
    FAIL,
    LITERAL,
    NEGATE,
    PRODUCT,
    SEQ,
    UNLISTED,
    intern_node,
    join,
    leaf,
    literal,
    rehash_nodes,
    wide,
)
from .states import INNER, TAIL, framed, items_of, rehash_states, state_of, state_of_all
from .tables import (
    DEAD,
    EPOCH,
    FARTHEST,
    FAULT,
    FRAMED,
    FULL_REQUESTS,
    INFINITE,
    NO_FAULT,
    REC,
    REQUESTS,
    SEARCH_EXHAUSTED,
    SEARCH_LIMIT,
    SEARCHED,
    STATE_BITS,
    STATE_MASK,
    STEPS,
    UNKNOWN,
    layout,
)
from .unions import spread
from .word_complement import without_words_after, words_after

RANKS = 4096  # of products in a search; worse ones share the last
SEARCH = -1  # in a request, instead of a byte
SEARCHES = 4  # one step may visit so many times the products of one search: searches may need others, and begin anew


# -- transitions --------------------------------------------------------------------------------------------------------


@inner
def step(m, t, s, byte):
    """The transition (event and state) of state `s` on a byte, from the table or found now. DEAD on a fault.

    A product needs transitions of its operands, and a search; those wait on an explicit stack of requests.
    """
    ask(m, t, s, byte)
    answer_all(m, t)
    return wide(DEAD) if m[t.n + FAULT] != NO_FAULT else wide(m[t.next + s * 256 + byte])


@inner
def ask(m, t, what, byte):
    top = wide(m[t.n + REQUESTS])
    if 2 * top + 2 > t.requests_size:
        m[t.n + FAULT] = FULL_REQUESTS
        return
    m[t.requests + 2 * top], m[t.requests + 2 * top + 1] = what, byte
    m[t.n + REQUESTS] = top + 1


@inner
def answer_all(m, t):
    """Serve the requests, last first, until none is left. A request that cannot be served yet has put others on top of itself."""
    m[t.n + SEARCHED] = 0
    while m[t.n + REQUESTS] > 0 and m[t.n + FAULT] == NO_FAULT:
        top = wide(m[t.n + REQUESTS]) - 1
        what, byte = wide(m[t.requests + 2 * top]), wide(m[t.requests + 2 * top + 1])
        served = search(m, t, what) if byte == SEARCH else derive(m, t, what, byte)
        if served:
            m[t.n + REQUESTS] = top
    if m[t.n + FAULT] != NO_FAULT:
        m[t.n + REQUESTS] = 0


@inner
def derive(m, t, s, byte):
    """Find the transition of state `s` on a byte and remember it for the widest interval with the same answer.

    Returns False when something else has to be known first; it has been asked for then. On a fault nothing is remembered.
    """
    if m[t.next + s * 256 + byte] != UNKNOWN:
        return True
    m[t.n + STEPS] += 1
    if m[t.state_length + REC * s] == FRAMED:
        return derive_frame(m, t, s, byte)
    start = wide(m[t.state_start + REC * s])
    end = start + wide(m[t.state_length + REC * s])
    if m[t.state_flat + REC * s] == 0:
        for j in range(start, end):
            node = leaf(m, t, wide(m[t.pool + j]))
            if m[t.kind + REC * node] == PRODUCT and not product_after(m, t, node, byte) >= 0:
                return False
    low, high, event, count = wide(0), wide(255), wide(0), wide(0)  # count: of what may follow, in `items`
    for j in range(start, end):
        item = wide(m[t.pool + j])
        head, tail = leaf(m, t, item), wide(m[t.b + REC * item]) if m[t.kind + REC * item] == SEQ else wide(EMPTY)
        kind, a, b, mark = wide(m[t.kind + REC * head]), low, high, wide(0)
        if kind == PRODUCT:
            follow = product_after(m, t, head, byte)
            low, high = same_answer(m, t, head, byte, low, high)
        elif kind == UNLISTED:
            rest, a, b, mark = after_byte(m, t, wide(m[t.b + REC * head]), byte, count)
            words, first, last = words_after(m, t, wide(m[t.a + REC * head]), byte)
            follow = without_words_after(m, t, words, rest)
            a, b = max(a, first), min(b, last)
        else:
            follow, a, b, mark = leaf_after(m, t, head, byte)
        low, high, event = max(low, a), min(high, b), max(event, mark)
        if follow == FAIL:  # most items; a call takes longer than all of this
            continue
        target = join(m, t, follow, tail)
        if m[t.n + FAULT] != NO_FAULT:
            return False
        if m[t.size + REC * target] < INFINITE and (count == 0 or m[t.items + count - 1] != target):
            count = spread(m, t, target, count)
    target_state = state_of_all(m, t, count)
    if m[t.n + FAULT] != NO_FAULT:
        return False
    for value in range(low, high + 1):
        m[t.next + s * 256 + value] = (event << STATE_BITS) | target_state
    return True


@inner
def leaf_after(m, t, head, byte):
    """(follow, low, high, event): what follows a byte in a class or a literal, FAIL where it reads none; the bytes around it with
    the same answer; the event."""
    low, high = wide(0), wide(255)
    if m[t.kind + REC * head] == LITERAL:
        text, length = wide(m[t.a + REC * head]), wide(m[t.b + REC * head])
        only = wide(m[t.text + text])
        if byte != only:
            return wide(FAIL), (low if byte < only else only + 1), (high if byte > only else only - 1), wide(0)
        return (literal(m, t, text + 1, length - 1) if length > 1 else wide(EMPTY)), only, only, wide(0)
    if m[t.kind + REC * head] == CLASS:
        for e in range(m[t.a + REC * head], m[t.a + REC * head] + m[t.b + REC * head]):
            a, b = wide(m[t.edge_low + e]), wide(m[t.edge_high + e])
            if b < byte:
                low = max(low, b + 1)
            elif a > byte:
                high = min(high, a - 1)
            else:
                return wide(m[t.edge_next + e]), max(low, a), min(high, b), wide(m[t.c + REC * head])
    return wide(FAIL), low, high, wide(0)


@inner
def after_byte(m, t, continuation, byte, count):
    """(rest, low, high, event): what follows a byte in a continuation that reads every byte in one way only, FAIL where it reads
    none; the bytes around it with the same answer; the event. Writes to `items` from `count` on."""
    low, high, event, rest = wide(0), wide(255), wide(0), wide(FAIL)
    for j in range(count, gather(m, t, continuation, count)):
        item = wide(m[t.items + j])
        follow, a, b, mark = leaf_after(m, t, leaf(m, t, item), byte)
        low, high = max(low, a), min(high, b)
        if follow != FAIL:
            event, rest = mark, join(m, t, follow, wide(m[t.b + REC * item]) if m[t.kind + REC * item] == SEQ else wide(EMPTY))
    return rest, low, high, event


@inner
def derive_frame(m, t, s, byte):
    """The same of a frame, from the transitions of its inner state."""
    frame = t.pool + wide(m[t.state_start + REC * s])
    row = t.next + 256 * wide(m[frame + INNER])
    answer = wide(m[row + byte])
    if answer == UNKNOWN:
        ask(m, t, wide(m[frame + INNER]), byte)
        return False
    target = framed(m, t, answer & STATE_MASK, wide(m[frame + TAIL]))
    if m[t.n + FAULT] != NO_FAULT:
        return False
    low = high = byte
    while low > 0 and m[row + low - 1] == answer:
        low -= 1
    while high < 255 and m[row + high + 1] == answer:
        high += 1
    for value in range(low, high + 1):
        m[t.next + s * 256 + value] = (answer >> STATE_BITS << STATE_BITS) | target
    return True


# -- products -----------------------------------------------------------------------------------------------------------


@inner
def same_answer(m, t, node, byte, low, high):
    """The bytes around a byte on which the operands of a product go the same ways, within low..high."""
    x = t.next + 256 * wide(m[t.a + REC * node])
    y = t.next + 256 * wide(m[t.b + REC * node]) if m[t.c + REC * node] == BOTH else x
    a = b = byte
    while a > low and m[x + a - 1] == m[x + byte] and m[y + a - 1] == m[y + byte]:
        a -= 1
    while b < high and m[x + b + 1] == m[x + byte] and m[y + b + 1] == m[y + byte]:
        b += 1
    return a, b


@inner
def product_after(m, t, node, byte):
    """A product after a byte, FAIL when it cannot be completed; -1 when something has been asked for first, or on a fault."""
    x, y = operands_after(m, t, node, byte)
    if x < 0 or y < 0:
        if x < 0:
            ask(m, t, wide(m[t.a + REC * node]), byte)
        if y < 0:
            ask(m, t, wide(m[t.b + REC * node]), byte)
        return wide(-1)
    return product_of(m, t, x, y, wide(m[t.c + REC * node]))


@inner
def operands_after(m, t, node, byte):
    """The states of a product's operands after a byte; -1 where that is not known yet."""
    x, y = wide(m[t.a + REC * node]), wide(m[t.b + REC * node])
    if x != DEAD:
        x = wide(m[t.next + x * 256 + byte])
    if m[t.c + REC * node] == BOTH:
        y = wide(m[t.next + y * 256 + byte])
    return (x & STATE_MASK if x >= 0 else x), (y & STATE_MASK if y >= 0 else y)


@inner
def product_of(m, t, x, y, op):
    """The product of two states (of one when `op` is NEGATE), FAIL when it cannot be completed; -1 as `product_after`."""
    if op == BOTH and (x == DEAD or y == DEAD):
        return wide(FAIL)
    node = intern_node(m, t, wide(PRODUCT), x, y, op)
    if m[t.n + FAULT] != NO_FAULT:
        return wide(-1)
    if m[t.size + REC * node] == UNKNOWN:
        ask(m, t, node, wide(SEARCH))
        return wide(-1)
    return wide(FAIL) if m[t.size + REC * node] >= INFINITE else node


@inner
def product_accepts(m, t, node):
    if m[t.c + REC * node] == NEGATE:
        return m[t.a + REC * node] == DEAD or m[t.state_accept + REC * m[t.a + REC * node]] == 0
    return m[t.state_accept + REC * m[t.a + REC * node]] == 1 and m[t.state_accept + REC * m[t.b + REC * node]] == 1


@inner
def search(m, t, origin):
    """Best-first search for a short completion of a product, in bytes.

    What comes first is least distance so far plus the greater of what the operands cost by themselves, and that alone when half of
    the limit is used up: any completion will do then, where there are too many ways to the shortest. Sets the size of `origin` and
    of what lies on the path found; if there is none, of everything visited. Returns False when transitions of operands that
    hold products themselves have to be known first; the search is then begun anew.
    """
    if product_accepts(m, t, origin):
        m[t.size + REC * origin] = m[t.cost + REC * origin] = 0
        return True
    limit = wide(m[t.n + SEARCH_LIMIT])
    nodes = np.empty(limit + 1, np.int32)
    parent = np.empty(limit + 1, np.int32)
    level = np.empty(limit + 1, np.int32)
    link = np.empty(limit + 1, np.int32)  # the next of the same rank
    first = np.full(RANKS, -1, np.int32)  # by rank
    m[t.n + EPOCH] += 1
    epoch = wide(m[t.n + EPOCH])
    nodes[0], parent[0], level[0], link[0] = origin, -1, 0, -1
    first[0], lowest, end = 0, wide(0), wide(1)
    m[t.enter + REC * origin] = epoch  # of a product, `enter` is the last search that visited it
    while lowest < RANKS:
        i = wide(first[lowest])
        if i < 0:
            lowest += 1
            continue
        first[lowest] = link[i]
        node = wide(nodes[i])
        rest = wide(0) if product_accepts(m, t, node) else wide(m[t.size + REC * node])
        if rest >= INFINITE:
            continue
        if rest >= 0:
            keep_path(m, t, nodes, parent, i, rest)
            return True
        if not know_operands(m, t, node):
            return False
        previous = wide(UNKNOWN)
        for byte in range(256):
            x, y = operands_after(m, t, node, wide(byte))
            if m[t.c + REC * node] == BOTH and (x == DEAD or y == DEAD):
                continue
            successor = intern_node(m, t, wide(PRODUCT), x, y, wide(m[t.c + REC * node]))
            if end >= limit or m[t.n + SEARCHED] >= SEARCHES * limit:
                m[t.n + FAULT] = SEARCH_EXHAUSTED
            if m[t.n + FAULT] != NO_FAULT:
                return False
            if successor != previous and m[t.enter + REC * successor] != epoch:
                m[t.enter + REC * successor] = epoch
                alone = max(m[t.state_cost + REC * x], m[t.state_cost + REC * y]) if m[t.c + REC * node] == BOTH else 0
                rank = min(alone + (level[i] + 1 if 2 * end < limit else 0), RANKS - 1)
                nodes[end], parent[end], level[end], link[end] = successor, i, level[i] + 1, first[rank]
                first[rank], lowest = end, min(lowest, wide(rank))
                end += 1
                m[t.n + SEARCHED] += 1
            previous = successor
    for j in range(end):
        m[t.size + REC * nodes[j]] = m[t.cost + REC * nodes[j]] = INFINITE
    return True


@inner
def keep_path(m, t, nodes, parent, i, rest):
    """Note the distances along the path that a search has found; `rest` is that of its last product."""
    while i >= 0:
        m[t.size + REC * nodes[i]] = m[t.cost + REC * nodes[i]] = rest
        m[t.n + FARTHEST] = max(wide(m[t.n + FARTHEST]), rest)
        i, rest = wide(parent[i]), rest + 1


@inner
def know_operands(m, t, node):
    """Make all transitions of a product's operands known; False when they were asked for, or on a fault."""
    known = True
    for side in range(2 if m[t.c + REC * node] == BOTH else 1):
        s = wide(m[t.b + REC * node]) if side == 1 else wide(m[t.a + REC * node])
        if s == DEAD:
            continue
        for byte in range(256):
            if m[t.next + s * 256 + byte] == UNKNOWN:
                if m[t.state_flat + REC * s] == 0 or not derive(m, t, s, wide(byte)):
                    ask(m, t, s, wide(byte))
                    known = False
            if m[t.n + FAULT] != NO_FAULT:
                return False
    return known


# -- entry points -------------------------------------------------------------------------------------------------------


@entry
def rehash(arena, nodes, pairs, states):
    """Fill those of the hash tables that are empty."""
    m = words_at(arena)
    t = layout(m)
    if nodes or pairs:
        rehash_nodes(m, t, nodes, pairs)
    if states:
        rehash_states(m, t)


@entry
def enter_product(arena, node):
    """Prepare BOTH or NEGATE: the product of its operands' start states, or FAIL; sets its size and cost."""
    m = words_at(arena)
    t = layout(m)
    op = wide(m[t.kind + REC * node])
    x = state_of(m, t, wide(m[t.a + REC * node]))
    y = state_of(m, t, wide(m[t.b + REC * node])) if op == BOTH else wide(0)
    if m[t.n + FAULT] != NO_FAULT:
        return
    product = product_of(m, t, x, y, op)
    answer_all(m, t)
    if m[t.n + FAULT] == NO_FAULT:
        product = product_of(m, t, x, y, op)
        m[t.enter + REC * node] = product
        m[t.size + REC * node], m[t.cost + REC * node] = m[t.size + REC * product], m[t.cost + REC * product]


@entry
def start_state(arena, root):
    m = words_at(arena)
    t = layout(m)
    return state_of(m, t, wide(root))


@entry
def find_items(arena, s):
    """(start in `pool`, number) of the items of a state."""
    m = words_at(arena)
    return items_of(m, layout(m), wide(s))
