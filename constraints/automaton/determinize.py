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

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId, StateId
from ..base.kinds import INFINITE, CoverRow, Kind
from ..numba_support.jit import entry, inner
from .closures import append_closure
from .counted_tables import is_table, table_after
from .covers import row_of_cover, sort_of
from .nodes import (
    EMPTY,
    FAIL,
    head_of,
    intern_node,
    join,
    literal,
    plus,
    rehash_nodes,
    wide,
)
from .states import frame_of, framed, inner_of, items_of, plain_items, rehash_states, state_of, state_of_all
from .tables import DEAD, STATE_BITS, STATE_MASK, UNKNOWN, Fault, Tables, tables_at
from .unions import append_parts
from .watched_items import alike_in_watch, watch_after
from .word_complement import without_words_after, words_after

RANKS = 4096  # of products in a search; worse ones share the last
SEARCH = -1  # in a request, instead of a byte
NOT_KNOWN = NodeId(-1)  # instead of a product
BY_DISTANCE = 1024  # products that a search visits in the order of their distances; behind that it makes for any end
NEAR = 4  # a search that visits such a part of its limit is near to giving up
SEARCHES = 4  # one step may visit so many times the products of one search: searches may need others, and begin anew


# -- transitions --------------------------------------------------------------------------------------------------------


@inner
def step(m: Tables, s: StateId, byte: int) -> int:
    """The transition of the state `s` on a byte: read from the table, or found now. DEAD on a fault."""
    push_request(m, s, byte)
    serve_requests(m)
    return DEAD if m.n.fault != Fault.NONE else m.next[s * 256 + byte]


@inner
def push_request(m: Tables, what: int, byte: int) -> None:
    """Put a request on the stack: for a transition of the state `what`, or for a search from the product `what` (byte:
    SEARCH)."""
    top = m.n.requests
    if 2 * top + 2 > m.requests_size:
        m.n.fault = Fault.FULL_REQUESTS
        return
    m.requests[2 * top], m.requests[2 * top + 1] = what, byte
    m.n.requests = top + 1


@inner
def serve_requests(m: Tables) -> None:
    """Serve the requests, the last one first, until none is left. One that cannot be served yet has put others on top
    of itself."""
    m.n.searched = 0
    while m.n.requests > 0 and m.n.fault == Fault.NONE and not pauses(m):
        top = m.n.requests - 1
        what, byte = m.requests[2 * top], m.requests[2 * top + 1]
        served = search(m, what) if byte == SEARCH else derive(m, what, byte)
        if served:
            m.n.requests = top
    if m.n.fault != Fault.NONE:
        m.n.requests = 0


@inner
def pauses(m: Tables) -> bool:
    """Whether a call has found as many transitions as it may at once; that is a fault then. They are there when it is repeated,
    which so comes farther each time."""
    if m.n.pause == 0 or m.n.steps < m.n.pause:
        return False
    m.n.fault = Fault.PAUSED
    return True


@inner
def derive(m: Tables, s: StateId, byte: int) -> bool:
    """Find the transition of the state `s` on a byte, and write it for all neighbouring bytes with the same answer.

    Returns False when something else has to be known first, which has been requested then, and on a fault.
    """
    if m.next[s * 256 + byte] != UNKNOWN:
        return True
    if m.states[s].frame != 0:
        return derive_frame(m, s, byte)
    start = m.states[s].start
    end = start + m.states[s].length
    if m.states[s].has_no_product == 0:
        for j in range(start, end):
            node = head_of(m, m.pool[j])
            if m.nodes[node].kind == Kind.PRODUCT and product_after(m, node, byte) == NOT_KNOWN:
                return False
            if m.nodes[node].kind == Kind.WATCH and not know_watch(m, node, byte):
                return False
    low, high, event, count = 0, 255, 0, 0  # count: of what may follow, in `items`
    for j in range(start, end):
        item = m.pool[j]
        head, tail = head_of(m, item), (m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY)
        kind, a, b, mark = m.nodes[head].kind, low, high, 0
        if kind == Kind.PRODUCT:
            follow = product_after(m, head, byte)
            low, high = same_answer(m, head, byte, low, high)
        elif kind == Kind.WATCH:
            follow = watch_after(m, head, byte)
            low, high = alike_in_watch(m, head, byte, low, high)
            mark = m.next[256 * m.nodes[head].a + byte] >> STATE_BITS
        elif is_table(kind):
            follow, a, b = table_after(m, head, byte)
        elif kind == Kind.UNLISTED:
            rest, a, b, mark = after_byte(m, m.nodes[head].b, byte, count)
            words, first, last = words_after(m, m.nodes[head].a, byte)
            follow = without_words_after(m, words, rest)
            a, b = max(a, first), min(b, last)
        else:
            follow, a, b, mark = leaf_after(m, head, byte)
        low, high, event = max(low, a), min(high, b), max(event, mark)
        if follow == FAIL:  # most items; a call takes longer than all of this
            continue
        target = join(m, follow, tail)
        if m.n.fault != Fault.NONE:
            return False
        if m.nodes[target].size < INFINITE and (count == 0 or m.items[count - 1] != target):
            count = append_parts(m, target, count)
    target_state = state_of_all(m, count)
    if m.n.fault != Fault.NONE:
        return False
    for value in range(low, high + 1):
        m.next[s * 256 + value] = (event << STATE_BITS) | target_state
    m.n.steps += 1
    return True


@inner
def leaf_after(m: Tables, head: NodeId, byte: int) -> tuple[NodeId, int, int, int]:
    """(follow, low, high, event) of a class or a literal: what follows the byte in it, FAIL where it does not read the
    byte; the interval of bytes with the same answer; the event of the byte."""
    low, high = 0, 255
    if m.nodes[head].kind == Kind.LITERAL:
        text, length = m.nodes[head].a, m.nodes[head].b
        only = m.text[text]
        if byte != only:
            return FAIL, (low if byte < only else only + 1), (high if byte > only else only - 1), 0
        return (literal(m, text + 1, length - 1) if length > 1 else EMPTY), only, only, 0
    if m.nodes[head].kind == Kind.CLASS:
        for e in range(m.nodes[head].a, m.nodes[head].a + m.nodes[head].b):
            a, b = m.edge_low[e], m.edge_high[e]
            if b < byte:
                low = max(low, b + 1)
            elif a > byte:
                high = min(high, a - 1)
            else:
                return m.edge_next[e], max(low, a), min(high, b), m.nodes[head].c
    return FAIL, low, high, 0


@inner
def after_byte(m: Tables, continuation: NodeId, byte: int, count: int) -> tuple[NodeId, int, int, int]:
    """(rest, low, high, event) of a continuation that reads every byte in one way only: what follows the byte, FAIL
    where it does not read the byte; the interval of bytes with the same answer; the event of the byte. Uses `items`
    from `count` on as scratch."""
    low, high, event, rest = 0, 255, 0, FAIL
    for j in range(count, append_closure(m, continuation, count)):
        item = m.items[j]
        follow, a, b, mark = leaf_after(m, head_of(m, item), byte)
        low, high = max(low, a), min(high, b)
        if follow != FAIL:
            event, rest = mark, join(m, follow, m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY)
    return rest, low, high, event


@inner
def derive_frame(m: Tables, s: StateId, byte: int) -> bool:
    """`derive` for a frame, from the transitions of its inner state."""
    frame = frame_of(m, s)
    row = m.next + 256 * frame.inner
    answer = row[byte]
    if answer == UNKNOWN:
        push_request(m, frame.inner, byte)
        return False
    target = framed(m, answer & STATE_MASK, frame.tail)
    if m.n.fault != Fault.NONE:
        return False
    low = high = byte
    while low > 0 and row[low - 1] == answer:
        low -= 1
    while high < 255 and row[high + 1] == answer:
        high += 1
    for value in range(low, high + 1):
        m.next[s * 256 + value] = answer & ~STATE_MASK | target
    m.n.steps += 1
    return True


@inner
def know_watch(m: Tables, node: NodeId, byte: int) -> bool:
    """Whether all transitions of a WATCH on a byte are known; those that are not are requested."""
    known = True
    while node != FAIL:
        s = m.nodes[node].a
        if m.next[256 * s + byte] == UNKNOWN:
            push_request(m, s, byte)
            known = False
        node = m.nodes[node].b
    return known


# -- products -----------------------------------------------------------------------------------------------------------


@inner
def same_answer(m: Tables, node: NodeId, byte: int, low: int, high: int) -> tuple[int, int]:
    """(low, high) narrowed to the bytes around `byte` on which the operands of a product go where they go on `byte`."""
    x = m.next + 256 * m.nodes[node].a
    y = m.next + 256 * m.nodes[node].b if m.nodes[node].c == Kind.BOTH else x
    a = b = byte
    while a > low and x[a - 1] == x[byte] and y[a - 1] == y[byte]:
        a -= 1
    while b < high and x[b + 1] == x[byte] and y[b + 1] == y[byte]:
        b += 1
    return a, b


@inner
def product_after(m: Tables, node: NodeId, byte: int) -> NodeId:
    """The product behind a byte, FAIL when it cannot be completed; NOT_KNOWN on a fault, and when something has to be known
    first, which has been requested then."""
    x, y = operands_after(m, node, byte)
    if x < 0 or y < 0:
        if x < 0:
            push_request(m, m.nodes[node].a, byte)
        if y < 0:
            push_request(m, m.nodes[node].b, byte)
        return NOT_KNOWN
    return product_of(m, x, y, m.nodes[node].c)


@inner
def operands_after(m: Tables, node: NodeId, byte: int) -> tuple[StateId, StateId]:
    """(x, y): the states of a product's operands behind a byte, -1 where that is not known yet."""
    x, y = m.nodes[node].a, m.nodes[node].b
    if x != DEAD:
        x = m.next[x * 256 + byte]
    if m.nodes[node].c == Kind.BOTH:
        y = m.next[y * 256 + byte]
    return (x & STATE_MASK if x >= 0 else x), (y & STATE_MASK if y >= 0 else y)


@inner
def product_of(m: Tables, x: StateId, y: StateId, op: int) -> NodeId:
    """The product of the states `x` and `y` (of `x` alone when `op` is NEGATE), FAIL when it cannot be completed; NOT_KNOWN
    on a fault, and when its search has been requested."""
    if op == Kind.BOTH and (x == DEAD or y == DEAD):
        return FAIL
    node = intern_node(m, Kind.PRODUCT, x, y, op)
    if m.n.fault != Fault.NONE:
        return NOT_KNOWN
    if m.nodes[node].size == UNKNOWN:
        push_request(m, node, SEARCH)
        return NOT_KNOWN
    return FAIL if m.nodes[node].size >= INFINITE else node


@inner
def product_accepts(m: Tables, node: NodeId) -> bool:
    """Whether the text may end in a product."""
    if m.nodes[node].c == Kind.NEGATE:
        return m.nodes[node].a == DEAD or m.states[m.nodes[node].a].accept == 0
    return m.states[m.nodes[node].a].accept == 1 and m.states[m.nodes[node].b].accept == 1


@inner
def search(m: Tables, origin: NodeId) -> bool:
    """Find a short completion of the product `origin`, in bytes, by a best-first search. Returns False when transitions
    of operands that hold products themselves have to be known first; the search begins anew then.

    Sets the size and cost of `origin` and of all products on the path that it finds; without a path, of everything
    visited, to INFINITE. Products are visited in the order of the distance so far plus the greater of what their
    operands cost by themselves. When half of the limit is used up, of the latter alone: where there are too many ways to the
    shortest completion, any will do. While texts are read that is so where BY_DISTANCE of them were visited, and then those
    come first whose operands are nearest to ends of their own, in bytes: each byte on a way there brings one of them nearer, so
    mostly that goes straight to an end, where tokens of many bytes tell nothing apart. What has no end that is found without that
    is refused while compiling: it would take too much memory.

    A search that visits too many products is a limit while a grammar is compiled. Later there is a way on beside `origin`, the one
    that an earlier search has found, so `origin` is left out, as if it had no completion. `inexact` says to all masks that searches
    come near to that, long before one does.
    """
    if product_accepts(m, origin):
        m.nodes[origin].size = m.nodes[origin].cost = 0
        return True
    limit = m.n.search_limit
    nodes = np.empty(limit + 1, np.int32)
    parent = np.empty(limit + 1, np.int32)
    level = np.empty(limit + 1, np.int32)
    link = np.empty(limit + 1, np.int32)  # the next of the same rank
    first = np.full(RANKS, -1, np.int32)  # by rank
    m.n.epoch += 1
    epoch = m.n.epoch
    nodes[0], parent[0], level[0], link[0] = origin, -1, 0, -1
    first[0], lowest, end = 0, 0, 1
    m.nodes[origin].searched_in = epoch
    while lowest < RANKS:
        i = wide(first[lowest])
        if i < 0:
            lowest += 1
            continue
        first[lowest] = link[i]
        node = wide(nodes[i])
        rest = 0 if product_accepts(m, node) else m.nodes[node].size
        if rest >= INFINITE:
            continue
        if rest >= 0:
            keep_path(m, nodes, parent, i, rest)
            return True
        if pauses(m) or not know_operands(m, node):
            return False
        before_x = before_y = UNKNOWN  # of the byte before
        for byte in range(256):
            x, y = operands_after(m, node, wide(byte))
            if x == before_x and y == before_y or m.nodes[node].c == Kind.BOTH and (x == DEAD or y == DEAD):
                continue
            before_x, before_y = x, y
            successor = intern_node(m, Kind.PRODUCT, x, y, m.nodes[node].c)
            if end >= limit or m.n.searched >= SEARCHES * limit:
                if m.n.gives_up:
                    m.nodes[origin].size = m.nodes[origin].cost = INFINITE
                    return True
                m.n.fault = Fault.SEARCH_EXHAUSTED
            if m.n.fault != Fault.NONE:
                return False
            if m.nodes[successor].searched_in != epoch:
                m.nodes[successor].searched_in = epoch
                is_both = m.nodes[node].c == Kind.BOTH
                if m.n.gives_up == 0 or end < BY_DISTANCE:
                    alone = max(m.states[x].cost, m.states[y].cost) if is_both else 0
                    rank = alone + (level[i] + 1 if 2 * end < limit else 0)
                else:
                    rank = size_of(m, x) + size_of(m, y) if is_both else 0
                rank = min(rank, RANKS - 1)
                nodes[end], parent[end], level[end], link[end] = successor, i, level[i] + 1, first[rank]
                first[rank], lowest = end, min(lowest, wide(rank))
                end += 1
                m.n.searched += 1
                if NEAR * max(end, m.n.searched // SEARCHES) > limit:
                    m.n.inexact = 1
    for j in range(end):
        m.nodes[nodes[j]].size = m.nodes[nodes[j]].cost = INFINITE
    return True


@inner
def size_of(m: Tables, s: StateId) -> int:
    """Bytes of the shortest text behind a state, if its parts were by themselves."""
    tail = m.nodes[frame_of(m, s).tail].size if m.states[s].frame != 0 else 0
    start, length = plain_items(m, s)
    size = INFINITE
    for j in range(start, start + length):
        size = min(size, m.nodes[m.pool[j]].size)
    return plus(size, tail)


@inner
def keep_path(m: Tables, nodes: NDArray[np.int32], parent: NDArray[np.int32], i: int, rest: int) -> None:
    """Write the distances of the products on the path that a search has found; `rest` is that of the last one, number
    `i`."""
    while i >= 0:
        m.nodes[nodes[i]].size = m.nodes[nodes[i]].cost = rest
        m.n.farthest = max(m.n.farthest, rest)
        i, rest = wide(parent[i]), rest + 1


@inner
def know_operands(m: Tables, node: NodeId) -> bool:
    """Make all transitions of a product's operands known. Returns False when they had to be requested, and on a fault. Those of
    operands without products are found at once: a search that began anew for each of them would visit more where less is known
    before, and so depend on what was read before."""
    known = True
    for side in range(2 if m.nodes[node].c == Kind.BOTH else 1):
        s = m.nodes[node].b if side == 1 else m.nodes[node].a
        if s == DEAD:
            continue
        for byte in range(256):
            if m.next[s * 256 + byte] == UNKNOWN:
                if m.states[s].has_no_product == 0:
                    push_request(m, s, byte)
                    known = False
                else:
                    if m.states[s].frame != 0:
                        derive(m, inner_of(m, s), byte)
                    derive(m, s, byte)
            if m.n.fault != Fault.NONE:
                return False
    return known


# -- entry points -------------------------------------------------------------------------------------------------------


@entry(nodes="bool", sequences="bool", states="bool")
def rehash(arena_address: int, nodes: bool, sequences: bool, states: bool) -> None:
    """Fill the hash tables that are empty, as the flags say: `node_hash`, `sequence_hash`, `state_hash`."""
    m = tables_at(arena_address)
    if nodes or sequences:
        rehash_nodes(m, nodes, sequences)
    if states:
        rehash_states(m)


@entry
def enter_product(arena_address: int, node: NodeId) -> None:
    """Prepare a BOTH or NEGATE node: set its `entry_product` to the product of its operands' start states, FAIL if that has no
    completion, and its size and cost."""
    m = tables_at(arena_address)
    op = m.nodes[node].kind
    x = state_of(m, m.nodes[node].a)
    y = state_of(m, m.nodes[node].b) if op == Kind.BOTH else DEAD
    if m.n.fault != Fault.NONE:
        return
    product = product_of(m, x, y, op)
    serve_requests(m)
    if m.n.fault == Fault.NONE:
        product = product_of(m, x, y, op)
        m.nodes[node].entry_product = product
        m.nodes[node].size, m.nodes[node].cost = m.nodes[product].size, m.nodes[product].cost


@entry
def enter_watched(arena_address: int, cover: NodeId) -> None:
    """Write the states with which watched items of a COVER begin."""
    m = tables_at(arena_address)
    row = row_of_cover(m, wide(cover))
    for sort in range(row[CoverRow.SORTS]):
        at = sort_of(row, sort)
        if at[CoverRow.WATCHERS] <= 0:
            continue
        watchers = row + at[CoverRow.WATCHERS]
        for k in range(0, 2 * at[CoverRow.NUM_WATCHERS] + 2, 2):
            state = state_of(m, sort_of(row, watchers[k])[CoverRow.TEXT])
            if m.n.fault != Fault.NONE:
                return
            watchers[k + 1] = state


@entry
def start_state(arena_address: int, root: NodeId) -> StateId:
    """The state before any text of the node `root`."""
    m = tables_at(arena_address)
    return state_of(m, root)


@entry
def find_items(arena_address: int, s: StateId) -> tuple[int, int]:
    """(start in `pool`, number) of the items of a state."""
    m = tables_at(arena_address)
    return items_of(m, s)
