"""Transitions: from a state and a byte to the next state, found when the byte is first crossed (lazy determinisation).

This is the subset construction on partial derivatives (Antimirov 1996): every item of the state that reads the byte
goes on behind it, and the closures of what is left are the next state (`state_of_all`). The answer is written to `next`
for all neighbouring bytes with the same answer. A transition is the event of the byte (`Event`) and the next state in
one word.

    state { character then (character{0,1} then '"'),  '"' }
        on "b"   to the state { character then '"',  '"' }      written for all characters of one byte
        on '"'   to the state { EMPTY }, where the text may end

An intersection or complement is a leaf too. Most are tables, computed while compiling (counted_tables.py). Some are a PRODUCT
of the states of their operands, which live in the same automaton (intersections.py says which). Whether a product can be
completed is found by a best-first search, and remembered for all products on the path that it finds.

Products need transitions of their operands, which may hold products again. That is no recursion here: what has to be
known first is put on a stack of *requests*, which `serve_requests` serves until it is empty.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import INFINITE, CoverRow, Kind
from ..numba_support.jit import entry, inner, words_at
from .closures import append_closure
from .counted_tables import table_after
from .covers import row_of_cover, sort_of
from .nodes import (
    EMPTY,
    FAIL,
    head_of,
    intern_node,
    join,
    literal,
    rehash_nodes,
    wide,
)
from .states import Frame, framed, items_of, rehash_states, state_of, state_of_all
from .tables import (
    DEAD,
    FRAMED,
    REC,
    STATE_BITS,
    STATE_MASK,
    UNKNOWN,
    Counter,
    Fault,
    layout,
)
from .unions import append_parts
from .watched_items import alike_in_watch, watch_after
from .word_complement import without_words_after, words_after

RANKS = 4096  # of products in a search; worse ones share the last
SEARCH = -1  # in a request, instead of a byte
SEARCHES = 4  # one step may visit so many times the products of one search: searches may need others, and begin anew


# -- transitions --------------------------------------------------------------------------------------------------------


@inner
def step(arena, tables, s, byte):
    """The transition of the state `s` on a byte: read from the table, or found now. DEAD on a fault."""
    push_request(arena, tables, s, byte)
    serve_requests(arena, tables)
    return wide(DEAD) if arena[tables.n + Counter.FAULT] != Fault.NONE else wide(arena[tables.next + s * 256 + byte])


@inner
def push_request(arena, tables, what, byte):
    """Put a request on the stack: for a transition of the state `what`, or for a search from the product `what` (byte:
    SEARCH)."""
    top = wide(arena[tables.n + Counter.REQUESTS])
    if 2 * top + 2 > tables.requests_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_REQUESTS
        return
    arena[tables.requests + 2 * top], arena[tables.requests + 2 * top + 1] = what, byte
    arena[tables.n + Counter.REQUESTS] = top + 1


@inner
def serve_requests(arena, tables):
    """Serve the requests, the last one first, until none is left. One that cannot be served yet has put others on top
    of itself."""
    arena[tables.n + Counter.SEARCHED] = 0
    while arena[tables.n + Counter.REQUESTS] > 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        top = wide(arena[tables.n + Counter.REQUESTS]) - 1
        what, byte = wide(arena[tables.requests + 2 * top]), wide(arena[tables.requests + 2 * top + 1])
        served = search(arena, tables, what) if byte == SEARCH else derive(arena, tables, what, byte)
        if served:
            arena[tables.n + Counter.REQUESTS] = top
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        arena[tables.n + Counter.REQUESTS] = 0


@inner
def derive(arena, tables, s, byte):
    """Find the transition of the state `s` on a byte, and write it for all neighbouring bytes with the same answer.

    Returns False when something else has to be known first, which has been requested then, and on a fault.
    """
    if arena[tables.next + s * 256 + byte] != UNKNOWN:
        return True
    arena[tables.n + Counter.STEPS] += 1
    if arena[tables.state_length + REC * s] == FRAMED:
        return derive_frame(arena, tables, s, byte)
    start = wide(arena[tables.state_start + REC * s])
    end = start + wide(arena[tables.state_length + REC * s])
    if arena[tables.state_has_no_product + REC * s] == 0:
        for j in range(start, end):
            node = head_of(arena, tables, wide(arena[tables.pool + j]))
            if arena[tables.kind + REC * node] == Kind.PRODUCT and not product_after(arena, tables, node, byte) >= 0:
                return False
            if arena[tables.kind + REC * node] == Kind.WATCH and not know_watch(arena, tables, node, byte):
                return False
    low, high, event, count = wide(0), wide(255), wide(0), wide(0)  # count: of what may follow, in `items`
    for j in range(start, end):
        item = wide(arena[tables.pool + j])
        head, tail = (
            head_of(arena, tables, item),
            wide(arena[tables.b + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else wide(EMPTY),
        )
        kind, a, b, mark = wide(arena[tables.kind + REC * head]), low, high, wide(0)
        if kind == Kind.PRODUCT:
            follow = product_after(arena, tables, head, byte)
            low, high = same_answer(arena, tables, head, byte, low, high)
        elif kind == Kind.WATCH:
            follow = watch_after(arena, tables, head, byte)
            low, high = alike_in_watch(arena, tables, head, byte, low, high)
            mark = wide(arena[tables.next + 256 * wide(arena[tables.a + REC * head]) + byte]) >> STATE_BITS
        elif kind == Kind.TABLE:
            follow, a, b = table_after(arena, tables, head, byte)
        elif kind == Kind.UNLISTED:
            rest, a, b, mark = after_byte(arena, tables, wide(arena[tables.b + REC * head]), byte, count)
            words, first, last = words_after(arena, tables, wide(arena[tables.a + REC * head]), byte)
            follow = without_words_after(arena, tables, words, rest)
            a, b = max(a, first), min(b, last)
        else:
            follow, a, b, mark = leaf_after(arena, tables, head, byte)
        low, high, event = max(low, a), min(high, b), max(event, mark)
        if follow == FAIL:  # most items; a call takes longer than all of this
            continue
        target = join(arena, tables, follow, tail)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return False
        if arena[tables.size + REC * target] < INFINITE and (count == 0 or arena[tables.items + count - 1] != target):
            count = append_parts(arena, tables, target, count)
    target_state = state_of_all(arena, tables, count)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return False
    for value in range(low, high + 1):
        arena[tables.next + s * 256 + value] = (event << STATE_BITS) | target_state
    return True


@inner
def leaf_after(arena, tables, head, byte):
    """(follow, low, high, event) of a class or a literal: what follows the byte in it, FAIL where it does not read the
    byte; the interval of bytes with the same answer; the event of the byte."""
    low, high = wide(0), wide(255)
    if arena[tables.kind + REC * head] == Kind.LITERAL:
        text, length = wide(arena[tables.a + REC * head]), wide(arena[tables.b + REC * head])
        only = wide(arena[tables.text + text])
        if byte != only:
            return wide(FAIL), (low if byte < only else only + 1), (high if byte > only else only - 1), wide(0)
        return (literal(arena, tables, text + 1, length - 1) if length > 1 else wide(EMPTY)), only, only, wide(0)
    if arena[tables.kind + REC * head] == Kind.CLASS:
        for e in range(arena[tables.a + REC * head], arena[tables.a + REC * head] + arena[tables.b + REC * head]):
            a, b = wide(arena[tables.edge_low + e]), wide(arena[tables.edge_high + e])
            if b < byte:
                low = max(low, b + 1)
            elif a > byte:
                high = min(high, a - 1)
            else:
                return wide(arena[tables.edge_next + e]), max(low, a), min(high, b), wide(arena[tables.c + REC * head])
    return wide(FAIL), low, high, wide(0)


@inner
def after_byte(arena, tables, continuation, byte, count):
    """(rest, low, high, event) of a continuation that reads every byte in one way only: what follows the byte, FAIL
    where it does not read the byte; the interval of bytes with the same answer; the event of the byte. Uses `items`
    from `count` on as scratch."""
    low, high, event, rest = wide(0), wide(255), wide(0), wide(FAIL)
    for j in range(count, append_closure(arena, tables, continuation, count)):
        item = wide(arena[tables.items + j])
        follow, a, b, mark = leaf_after(arena, tables, head_of(arena, tables, item), byte)
        low, high = max(low, a), min(high, b)
        if follow != FAIL:
            event, rest = (
                mark,
                join(
                    arena,
                    tables,
                    follow,
                    wide(arena[tables.b + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else wide(EMPTY),
                ),
            )
    return rest, low, high, event


@inner
def derive_frame(arena, tables, s, byte):
    """`derive` for a frame, from the transitions of its inner state."""
    frame = tables.pool + wide(arena[tables.state_start + REC * s])
    row = tables.next + 256 * wide(arena[frame + Frame.INNER])
    answer = wide(arena[row + byte])
    if answer == UNKNOWN:
        push_request(arena, tables, wide(arena[frame + Frame.INNER]), byte)
        return False
    target = framed(arena, tables, answer & STATE_MASK, wide(arena[frame + Frame.TAIL]))
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return False
    low = high = byte
    while low > 0 and arena[row + low - 1] == answer:
        low -= 1
    while high < 255 and arena[row + high + 1] == answer:
        high += 1
    for value in range(low, high + 1):
        arena[tables.next + s * 256 + value] = (answer >> STATE_BITS << STATE_BITS) | target
    return True


@inner
def know_watch(arena, tables, node, byte):
    """Whether all transitions of a WATCH on a byte are known; those that are not are requested."""
    known = True
    while node != FAIL:
        s = wide(arena[tables.a + REC * node])
        if arena[tables.next + 256 * s + byte] == UNKNOWN:
            push_request(arena, tables, s, byte)
            known = False
        node = wide(arena[tables.b + REC * node])
    return known


# -- products -----------------------------------------------------------------------------------------------------------


@inner
def same_answer(arena, tables, node, byte, low, high):
    """(low, high) narrowed to the bytes around `byte` on which the operands of a product go where they go on `byte`."""
    x = tables.next + 256 * wide(arena[tables.a + REC * node])
    y = tables.next + 256 * wide(arena[tables.b + REC * node]) if arena[tables.c + REC * node] == Kind.BOTH else x
    a = b = byte
    while a > low and arena[x + a - 1] == arena[x + byte] and arena[y + a - 1] == arena[y + byte]:
        a -= 1
    while b < high and arena[x + b + 1] == arena[x + byte] and arena[y + b + 1] == arena[y + byte]:
        b += 1
    return a, b


@inner
def product_after(arena, tables, node, byte):
    """The product behind a byte, FAIL when it cannot be completed; -1 on a fault, and when something has to be known
    first, which has been requested then."""
    x, y = operands_after(arena, tables, node, byte)
    if x < 0 or y < 0:
        if x < 0:
            push_request(arena, tables, wide(arena[tables.a + REC * node]), byte)
        if y < 0:
            push_request(arena, tables, wide(arena[tables.b + REC * node]), byte)
        return wide(-1)
    return product_of(arena, tables, x, y, wide(arena[tables.c + REC * node]))


@inner
def operands_after(arena, tables, node, byte):
    """(x, y): the states of a product's operands behind a byte, -1 where that is not known yet."""
    x, y = wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node])
    if x != DEAD:
        x = wide(arena[tables.next + x * 256 + byte])
    if arena[tables.c + REC * node] == Kind.BOTH:
        y = wide(arena[tables.next + y * 256 + byte])
    return (x & STATE_MASK if x >= 0 else x), (y & STATE_MASK if y >= 0 else y)


@inner
def product_of(arena, tables, x, y, op):
    """The product of the states `x` and `y` (of `x` alone when `op` is NEGATE), FAIL when it cannot be completed; -1 on
    a fault, and when its search has been requested."""
    if op == Kind.BOTH and (x == DEAD or y == DEAD):
        return wide(FAIL)
    node = intern_node(arena, tables, wide(Kind.PRODUCT), x, y, op)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(-1)
    if arena[tables.size + REC * node] == UNKNOWN:
        push_request(arena, tables, node, wide(SEARCH))
        return wide(-1)
    return wide(FAIL) if arena[tables.size + REC * node] >= INFINITE else node


@inner
def product_accepts(arena, tables, node):
    """Whether the text may end in a product."""
    if arena[tables.c + REC * node] == Kind.NEGATE:
        return arena[tables.a + REC * node] == DEAD or arena[tables.state_accept + REC * arena[tables.a + REC * node]] == 0
    return (
        arena[tables.state_accept + REC * arena[tables.a + REC * node]] == 1
        and arena[tables.state_accept + REC * arena[tables.b + REC * node]] == 1
    )


@inner
def search(arena, tables, origin):
    """Find a short completion of the product `origin`, in bytes, by a best-first search. Returns False when transitions
    of operands that hold products themselves have to be known first; the search begins anew then.

    Sets the size and cost of `origin` and of all products on the path that it finds; without a path, of everything
    visited, to INFINITE. Products are visited in the order of the distance so far plus the greater of what their
    operands cost by themselves. When half of the limit is used up, of the latter alone: where there are too many ways
    to the shortest completion, any will do.

    A search that visits too many products is a limit while a grammar is compiled. Later there is a way on beside `origin`, the one
    that an earlier search has found, so `origin` is left out, as if it had no completion.
    """
    if product_accepts(arena, tables, origin):
        arena[tables.size + REC * origin] = arena[tables.cost + REC * origin] = 0
        return True
    limit = wide(arena[tables.n + Counter.SEARCH_LIMIT])
    nodes = np.empty(limit + 1, np.int32)
    parent = np.empty(limit + 1, np.int32)
    level = np.empty(limit + 1, np.int32)
    link = np.empty(limit + 1, np.int32)  # the next of the same rank
    first = np.full(RANKS, -1, np.int32)  # by rank
    arena[tables.n + Counter.EPOCH] += 1
    epoch = wide(arena[tables.n + Counter.EPOCH])
    nodes[0], parent[0], level[0], link[0] = origin, -1, 0, -1
    first[0], lowest, end = 0, wide(0), wide(1)
    arena[tables.entry_product + REC * origin] = epoch  # of a product, `entry_product` is the last search that visited it
    while lowest < RANKS:
        i = wide(first[lowest])
        if i < 0:
            lowest += 1
            continue
        first[lowest] = link[i]
        node = wide(nodes[i])
        rest = wide(0) if product_accepts(arena, tables, node) else wide(arena[tables.size + REC * node])
        if rest >= INFINITE:
            continue
        if rest >= 0:
            keep_path(arena, tables, nodes, parent, i, rest)
            return True
        if not know_operands(arena, tables, node):
            return False
        previous = wide(UNKNOWN)
        for byte in range(256):
            x, y = operands_after(arena, tables, node, wide(byte))
            if arena[tables.c + REC * node] == Kind.BOTH and (x == DEAD or y == DEAD):
                continue
            successor = intern_node(arena, tables, wide(Kind.PRODUCT), x, y, wide(arena[tables.c + REC * node]))
            if end >= limit or arena[tables.n + Counter.SEARCHED] >= SEARCHES * limit:
                if arena[tables.n + Counter.GIVES_UP]:
                    arena[tables.size + REC * origin] = arena[tables.cost + REC * origin] = INFINITE
                    return True
                arena[tables.n + Counter.FAULT] = Fault.SEARCH_EXHAUSTED
            if arena[tables.n + Counter.FAULT] != Fault.NONE:
                return False
            if successor != previous and arena[tables.entry_product + REC * successor] != epoch:
                arena[tables.entry_product + REC * successor] = epoch
                alone = (
                    max(arena[tables.state_cost + REC * x], arena[tables.state_cost + REC * y])
                    if arena[tables.c + REC * node] == Kind.BOTH
                    else 0
                )
                rank = min(alone + (level[i] + 1 if 2 * end < limit else 0), RANKS - 1)
                nodes[end], parent[end], level[end], link[end] = successor, i, level[i] + 1, first[rank]
                first[rank], lowest = end, min(lowest, wide(rank))
                end += 1
                arena[tables.n + Counter.SEARCHED] += 1
            previous = successor
    for j in range(end):
        arena[tables.size + REC * nodes[j]] = arena[tables.cost + REC * nodes[j]] = INFINITE
    return True


@inner
def keep_path(arena, tables, nodes, parent, i, rest):
    """Write the distances of the products on the path that a search has found; `rest` is that of the last one, number
    `i`."""
    while i >= 0:
        arena[tables.size + REC * nodes[i]] = arena[tables.cost + REC * nodes[i]] = rest
        arena[tables.n + Counter.FARTHEST] = max(wide(arena[tables.n + Counter.FARTHEST]), rest)
        i, rest = wide(parent[i]), rest + 1


@inner
def know_operands(arena, tables, node):
    """Make all transitions of a product's operands known. Returns False when they had to be requested, and on a fault."""
    known = True
    for side in range(2 if arena[tables.c + REC * node] == Kind.BOTH else 1):
        s = wide(arena[tables.b + REC * node]) if side == 1 else wide(arena[tables.a + REC * node])
        if s == DEAD:
            continue
        for byte in range(256):
            if arena[tables.next + s * 256 + byte] == UNKNOWN:
                if arena[tables.state_has_no_product + REC * s] == 0 or not derive(arena, tables, s, wide(byte)):
                    push_request(arena, tables, s, wide(byte))
                    known = False
            if arena[tables.n + Counter.FAULT] != Fault.NONE:
                return False
    return known


# -- entry points -------------------------------------------------------------------------------------------------------


@entry(nodes="bool", sequences="bool", states="bool")
def rehash(arena_address, nodes, sequences, states):
    """Fill the hash tables that are empty, as the flags say: `node_hash`, `sequence_hash`, `state_hash`."""
    arena = words_at(arena_address)
    tables = layout(arena)
    if nodes or sequences:
        rehash_nodes(arena, tables, nodes, sequences)
    if states:
        rehash_states(arena, tables)


@entry
def enter_product(arena_address, node):
    """Prepare a BOTH or NEGATE node: set its `entry_product` to the product of its operands' start states, FAIL if that has no
    completion, and its size and cost."""
    arena = words_at(arena_address)
    tables = layout(arena)
    op = wide(arena[tables.kind + REC * node])
    x = state_of(arena, tables, wide(arena[tables.a + REC * node]))
    y = state_of(arena, tables, wide(arena[tables.b + REC * node])) if op == Kind.BOTH else wide(0)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return
    product = product_of(arena, tables, x, y, op)
    serve_requests(arena, tables)
    if arena[tables.n + Counter.FAULT] == Fault.NONE:
        product = product_of(arena, tables, x, y, op)
        arena[tables.entry_product + REC * node] = product
        arena[tables.size + REC * node], arena[tables.cost + REC * node] = (
            arena[tables.size + REC * product],
            arena[tables.cost + REC * product],
        )


@entry
def enter_watched(arena_address, cover):
    """Write the states with which watched items of a COVER begin."""
    arena = words_at(arena_address)
    tables = layout(arena)
    row = row_of_cover(arena, tables, wide(cover))
    for sort in range(wide(arena[row + CoverRow.SORTS])):
        first = row + wide(arena[sort_of(row, sort) + CoverRow.WATCHERS])
        if first <= row:
            continue
        for pair in range(first, first + 2 * wide(arena[sort_of(row, sort) + CoverRow.NUM_WATCHERS]) + 2, 2):
            state = state_of(arena, tables, wide(arena[sort_of(row, wide(arena[pair])) + CoverRow.TEXT]))
            if arena[tables.n + Counter.FAULT] != Fault.NONE:
                return
            arena[pair + 1] = state


@entry
def start_state(arena_address, root):
    """The state before any text of the node `root`."""
    arena = words_at(arena_address)
    tables = layout(arena)
    return state_of(arena, tables, wide(root))


@entry
def find_items(arena_address, s):
    """(start in `pool`, number) of the items of a state."""
    arena = words_at(arena_address)
    return items_of(arena, layout(arena), wide(s))
