"""Lazy determinisation: from expressions to automaton states, one byte at a time.

What may still come after some text is a *continuation*: an expression node, a leaf followed by a tail. Tails are hash-consed, so
they are the stack of a pushdown automaton and the values of its counters in one. The *closure* of a continuation is the set of
continuations that begin with a leaf (or are finished) reachable without reading a byte, computed once. A *state* is an interned
sorted set of such items: the subset construction on partial derivatives (Antimirov 1996), made when first reached.

A tail call pushes nothing (the empty tail is dropped), so right recursion stays finite. Nodes from which nothing can be
completed have infinite size and are never entered, so every state except DEAD can be completed.

Intersections and complements are leaves too: a PRODUCT of the states of their operands, which live in the same automaton. Whether a
product can still be completed is found by a breadth-first search, memoised along the path it finds.

All functions here are compiled and take `t`, the `Tables`; see tables.py for faults.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from .expression import Kind
from .tables import (
    DEAD,
    EPOCH,
    FAULT,
    FULL_ITEMS,
    FULL_NODES,
    FULL_POOL,
    FULL_REQUESTS,
    FULL_STATES,
    FULL_WORK,
    INFINITE,
    NO_FAULT,
    NODES,
    POOL,
    REQUESTS,
    SEARCH_EXHAUSTED,
    SEARCH_LIMIT,
    STATE_BITS,
    STATE_MASK,
    STATES,
    STEPS,
    UNKNOWN,
    open_tables,
)

CLASS, LITERAL, SEQ, ALT = int(Kind.CLASS), int(Kind.LITERAL), int(Kind.SEQ), int(Kind.ALT)
REPEAT, CALL, BOTH, NEGATE, PRODUCT = (
    int(Kind.REPEAT), int(Kind.CALL), int(Kind.BOTH), int(Kind.NEGATE), int(Kind.PRODUCT))  # fmt: skip
FAIL, EMPTY = 0, 1
NO_BODY = -1
ENDLESS = 1 << 30  # the radius of a body without bound
HEADER = 4  # words of a closure before its items
SEARCH = -1  # in a request, instead of a byte

I = np.int64  # what is read from int32 tables is widened, so that every function is compiled for one signature
inner = nb.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # compiled into the entry points, which alone are cached on disk


@inner
def mix(a, b, c, d):
    """A 32-bit hash of four words."""
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(c)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB) + np.uint64(d)
    h = (h ^ (h >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h >> np.uint64(33))


@inner
def plus(a, b):
    """Sum of two sizes; INFINITE absorbs, finite sums saturate below it."""
    if a >= INFINITE or b >= INFINITE:
        return I(INFINITE)
    return min(I(a) + I(b), I(INFINITE - 1))


@inner
def times(count, a):
    """`count` copies of a size."""
    if count == 0:
        return I(0)
    if a >= INFINITE:
        return I(INFINITE)
    return min(I(count) * I(a), I(INFINITE - 1))


# -- nodes --------------------------------------------------------------------------------------------------------------


@inner
def intern_node(t, kind, a, b, c):
    """The node with these operands, made if new. Sets FULL_NODES and returns FAIL when there is no room."""
    mask = t.node_hash.size - 1
    slot = mix(kind, a, b, c) & mask
    while t.node_hash[slot] != 0:
        i = I(t.node_hash[slot])
        if t.kind[i] == kind and t.a[i] == a and t.b[i] == b and t.c[i] == c:
            return i
        slot = (slot + 1) & mask
    i = I(t.n[NODES])
    if i >= t.kind.size:
        t.n[FAULT] = FULL_NODES
        return I(FAIL)
    t.n[NODES] = i + 1
    t.node_hash[slot] = i
    t.kind[i], t.a[i], t.b[i], t.c[i] = kind, a, b, c
    t.unit[i] = NO_BODY
    t.closure[i] = t.stamp[i] = t.enter[i] = 0
    if kind == SEQ:
        t.size[i], t.cost[i] = plus(I(t.size[a]), I(t.size[b])), plus(I(t.cost[a]), I(t.cost[b]))
    elif kind == REPEAT:
        t.size[i], t.cost[i] = times(b, I(t.size[a])), times(b, I(t.cost[a]))
    elif kind == LITERAL:
        t.size[i], t.cost[i] = b, t.text_cost[a]
    else:
        t.size[i] = t.cost[i] = UNKNOWN  # of a PRODUCT, `search` finds them out
    return i


@inner
def join(t, head, tail):
    """`head` then `tail`."""
    if tail == EMPTY or head == FAIL:
        return head
    if head == EMPTY or tail == FAIL:
        return tail
    return intern_node(t, I(SEQ), head, tail, I(0))


@inner
def fewer(t, node):
    """A repetition after one more copy of its body."""
    low, high = I(t.b[node]), I(t.c[node])
    if high == 1:
        return I(EMPTY)
    return intern_node(t, I(REPEAT), I(t.a[node]), max(low - 1, I(0)), high if high < 0 else high - 1)


@inner
def rehash_nodes(t):
    """Fill `node_hash` anew with the nodes that can be looked up."""
    t.node_hash[:] = 0
    mask = t.node_hash.size - 1
    for i in range(2, t.n[NODES]):
        k = t.kind[i]
        if k == SEQ or k == REPEAT or k == LITERAL or k >= PRODUCT:
            slot = mix(I(k), I(t.a[i]), I(t.b[i]), I(t.c[i])) & mask
            while t.node_hash[slot] != 0:
                slot = (slot + 1) & mask
            t.node_hash[slot] = i


# -- closures -----------------------------------------------------------------------------------------------------------


@inner
def close(t, continuation):
    """Make the closure of a continuation: pool[closure] = length, body class, radius, settled, then the items.

    `settled` says that the repetition of the body may end here, so what follows it stands among the items.
    """
    t.n[EPOCH] += 1
    epoch = I(t.n[EPOCH])
    start = I(t.n[POOL])
    count, body, radius, settled = I(0), I(NO_BODY), I(0), I(0)
    t.work[0] = continuation
    depth = I(1)
    while depth > 0:
        depth -= 1
        w = I(t.work[depth])
        if t.stamp[w] == epoch or t.size[w] >= INFINITE:
            continue
        t.stamp[w] = epoch
        head, tail = w, I(EMPTY)
        if t.kind[w] == SEQ:
            head, tail = I(t.a[w]), I(t.b[w])
        kind = I(t.kind[head])
        if start + HEADER + count >= t.pool.size:
            t.n[FAULT] = FULL_POOL
        elif kind == CLASS or kind == LITERAL or w == EMPTY:
            t.pool[start + HEADER + count] = w
            count += 1
        elif kind == PRODUCT:
            t.pool[start + HEADER + count] = w
            count += 1
            if t.size[head] == 0:
                depth = later(t, tail, depth)
        elif kind == SEQ:
            depth = later(t, join(t, I(t.a[head]), join(t, I(t.b[head]), tail)), depth)
        elif kind == ALT:
            for j in range(I(t.a[head]), I(t.a[head]) + I(t.b[head])):
                depth = later(t, join(t, I(t.lists[j]), tail), depth)
        elif kind == CALL:
            depth = later(t, join(t, I(t.rules[t.a[head]]), tail), depth)
        elif kind == REPEAT:
            high = I(ENDLESS) if t.c[head] < 0 else I(t.c[head])
            if t.unit[t.a[head]] != NO_BODY and high > radius:
                body, radius, settled = I(t.unit[t.a[head]]), high, I(1 if t.b[head] == 0 else 0)
            if t.b[head] == 0:
                depth = later(t, tail, depth)
            depth = later(t, join(t, I(t.a[head]), join(t, fewer(t, head), tail)), depth)
        elif kind == BOTH or kind == NEGATE:
            depth = later(t, join(t, I(t.enter[head]), tail), depth)
        elif head == EMPTY:
            depth = later(t, tail, depth)
        if t.n[FAULT] != NO_FAULT:
            return
    t.pool[start], t.pool[start + 1], t.pool[start + 2], t.pool[start + 3] = count, body, radius, settled
    t.n[POOL] = start + HEADER + count
    t.closure[continuation] = start


@inner
def later(t, node, depth):
    """Put a node on the work list."""
    if depth >= t.work.size:
        t.n[FAULT] = FULL_WORK
        return depth
    t.work[depth] = node
    return depth + 1


@inner
def gather(t, continuation, count):
    """Append the closure of a continuation to the items of the state being made; returns their number."""
    if t.closure[continuation] == 0:
        close(t, continuation)
        if t.n[FAULT] != NO_FAULT:
            return count
    start = I(t.closure[continuation])
    length = I(t.pool[start])
    if count + length > t.items.size:
        t.n[FAULT] = FULL_ITEMS
        return count
    t.items[count : count + length] = t.pool[start + HEADER : start + HEADER + length]
    return count + length


# -- states -------------------------------------------------------------------------------------------------------------


@inner
def state_hash(items):
    h = I(items.size)
    for item in items:
        h = mix(h, I(item), I(0), I(0))
    return h


@inner
def intern_state(t, count, body, radius, settled):
    """The state whose items stand in items[:count], in any order and with repetitions."""
    if count == 0:
        return I(DEAD)
    t.items[:count].sort()
    unique = I(1)
    for j in range(1, count):
        if t.items[j] != t.items[unique - 1]:
            t.items[unique] = t.items[j]
            unique += 1
    items = t.items[:unique]
    mask = t.state_hash.size - 1
    slot = state_hash(items) & mask
    while t.state_hash[slot] != 0:
        s = I(t.state_hash[slot])
        if t.state_length[s] == unique and np.array_equal(t.pool[t.state_start[s] : t.state_start[s] + unique], items):
            return s
        slot = (slot + 1) & mask
    s, start = I(t.n[STATES]), I(t.n[POOL])
    if s >= t.state_start.size:
        t.n[FAULT] = FULL_STATES
        return I(DEAD)
    if start + unique > t.pool.size:
        t.n[FAULT] = FULL_POOL
        return I(DEAD)
    t.n[STATES], t.n[POOL] = s + 1, start + unique
    t.state_hash[slot] = s
    t.pool[start : start + unique] = items
    t.state_start[s], t.state_length[s] = start, unique
    describe(t, s, body, radius, settled)
    return s


@inner
def leaf(t, item):
    """The node an item begins with."""
    return I(t.a[item]) if t.kind[item] == SEQ else item


@inner
def describe(t, s, body, radius, settled):
    """Fill in what follows from the items of a new state; its transitions are unknown, or DEAD for bytes no item takes."""
    start, length = I(t.state_start[s]), I(t.state_length[s])
    accept, cost, flat = I(0), I(INFINITE), I(1)
    row = t.next[s * 256 : s * 256 + 256]
    row[:] = DEAD
    for j in range(start, start + length):
        item = I(t.pool[j])
        if item == EMPTY:
            accept, cost = I(1), I(0)
            continue
        cost = min(cost, I(t.cost[item]))
        node = leaf(t, item)
        mark_live(t, node, row)
        if t.kind[node] == PRODUCT:
            flat = I(0)
    t.state_accept[s], t.state_cost[s], t.state_flat[s], t.state_row[s] = accept, cost, flat, 0
    t.state_body[s], t.state_radius[s] = body, radius
    t.state_alone[s] = 1 if settled == 1 and is_alone(t, s, body) else 0


@inner
def mark_live(t, node, row):
    """Mark the bytes that a leaf may take as UNKNOWN."""
    if t.kind[node] == LITERAL:
        row[t.text[t.a[node]]] = UNKNOWN
    elif t.kind[node] == CLASS:
        for e in range(t.a[node], t.a[node] + t.b[node]):
            row[t.edge_low[e] : t.edge_high[e] + 1] = UNKNOWN
    else:
        x, y = I(t.a[node]) * 256, I(t.b[node]) * 256
        for byte in range(256):
            if t.c[node] == NEGATE or (t.next[x + byte] != DEAD and t.next[y + byte] != DEAD):
                row[byte] = UNKNOWN


@inner
def is_alone(t, s, body):
    """Whether characters of the body class can only be read by the one repetition of it in the state.

    Then the tokens made of such characters are exactly those of at most `radius` characters.
    """
    own = I(-1)
    start, length = I(t.state_start[s]), I(t.state_length[s])
    for j in range(start, start + length):
        node = leaf(t, I(t.pool[j]))
        if t.unit[node] == body and t.kind[node] == CLASS:
            if own >= 0:
                return False
            own = node
    if own < 0:
        return False
    for j in range(start, start + length):
        node = leaf(t, I(t.pool[j]))
        if node != own and node != EMPTY and overlaps(t, own, node):
            return False
    return True


@inner
def overlaps(t, own, node):
    """Whether a class and another leaf can begin with the same byte."""
    for e in range(t.a[own], t.a[own] + t.b[own]):
        low, high = t.edge_low[e], t.edge_high[e]
        if t.kind[node] == LITERAL:
            if low <= t.text[t.a[node]] <= high:
                return True
        elif t.kind[node] == CLASS:
            for f in range(t.a[node], t.a[node] + t.b[node]):
                if t.edge_low[f] <= high and low <= t.edge_high[f]:
                    return True
        else:
            return True
    return False


@inner
def rehash_states(t):
    """Fill `state_hash` anew."""
    t.state_hash[:] = 0
    mask = t.state_hash.size - 1
    for s in range(1, t.n[STATES]):
        slot = state_hash(t.pool[t.state_start[s] : t.state_start[s] + t.state_length[s]]) & mask
        while t.state_hash[slot] != 0:
            slot = (slot + 1) & mask
        t.state_hash[slot] = s


@inner
def state_of(t, continuation):
    """The state before any byte of a continuation."""
    count = gather(t, continuation, I(0))
    if t.n[FAULT] != NO_FAULT:
        return I(DEAD)
    start = I(t.closure[continuation])
    return intern_state(t, count, I(t.pool[start + 1]), I(t.pool[start + 2]), I(t.pool[start + 3]))


# -- transitions --------------------------------------------------------------------------------------------------------


@inner
def step(t, s, byte):
    """The transition (event and state) of state `s` on a byte, from the table or found now. DEAD on a fault.

    A product needs transitions of its operands, and a search; those wait on an explicit stack of requests.
    """
    ask(t, s, byte)
    answer_all(t)
    return DEAD if t.n[FAULT] != NO_FAULT else I(t.next[s * 256 + byte])


@inner
def ask(t, what, byte):
    top = I(t.n[REQUESTS])
    if 2 * top + 2 > t.requests.size:
        t.n[FAULT] = FULL_REQUESTS
        return
    t.requests[2 * top], t.requests[2 * top + 1] = what, byte
    t.n[REQUESTS] = top + 1


@inner
def answer_all(t):
    """Serve the requests, last first, until none is left. A request that cannot be served yet has put others on top of itself."""
    while t.n[REQUESTS] > 0 and t.n[FAULT] == NO_FAULT:
        top = I(t.n[REQUESTS]) - 1
        what, byte = I(t.requests[2 * top]), I(t.requests[2 * top + 1])
        served = search(t, what) if byte == SEARCH else derive(t, what, byte)
        if served:
            t.n[REQUESTS] = top
    if t.n[FAULT] != NO_FAULT:
        t.n[REQUESTS] = 0


@inner
def derive(t, s, byte):
    """Find the transition of state `s` on a byte and remember it for the widest interval with the same answer.

    Returns False when something else has to be known first; it has been asked for then. On a fault nothing is remembered.
    """
    if t.next[s * 256 + byte] != UNKNOWN:
        return True
    t.n[STEPS] += 1
    start = I(t.state_start[s])
    end = start + I(t.state_length[s])
    if t.state_flat[s] == 0:
        for j in range(start, end):
            node = leaf(t, I(t.pool[j]))
            if t.kind[node] == PRODUCT and not product_after(t, node, byte) >= 0:
                return False
    low, high = I(0), I(255)
    count, event, body, radius, settled = I(0), I(0), I(NO_BODY), I(0), I(0)
    for j in range(start, end):
        item = I(t.pool[j])
        head, tail = item, I(EMPTY)
        if t.kind[item] == SEQ:
            head, tail = I(t.a[item]), I(t.b[item])
        kind = I(t.kind[head])
        first, last = I(0), I(0)
        if kind == CLASS:
            first, last = I(t.a[head]), I(t.a[head]) + I(t.b[head])
        elif kind == LITERAL or kind == PRODUCT:
            last = I(1)
        for e in range(first, last):
            if kind == CLASS:
                a, b = I(t.edge_low[e]), I(t.edge_high[e])
            elif kind == LITERAL:
                a = b = I(t.text[t.a[head]])
            else:
                a = b = low = high = byte
            if b < byte:
                low = max(low, b + 1)
                continue
            if a > byte:
                high = min(high, a - 1)
                continue
            low, high = max(low, a), min(high, b)
            follow = I(EMPTY)
            if kind == CLASS:
                follow = I(t.edge_next[e])
                event = max(event, I(t.c[head]))
            elif kind == LITERAL:
                if t.b[head] > 1:
                    follow = intern_node(t, I(LITERAL), I(t.a[head]) + 1, I(t.b[head]) - 1, I(0))
            else:
                follow = product_after(t, head, byte)
            target = join(t, follow, tail)
            if t.n[FAULT] != NO_FAULT:
                return False
            if t.size[target] >= INFINITE:
                continue
            count = gather(t, target, count)
            if t.n[FAULT] != NO_FAULT:
                return False
            closure = I(t.closure[target])
            if t.pool[closure + 2] > radius:
                body, radius, settled = I(t.pool[closure + 1]), I(t.pool[closure + 2]), I(t.pool[closure + 3])
    target_state = intern_state(t, count, body, radius, settled)
    if t.n[FAULT] != NO_FAULT:
        return False
    t.next[s * 256 + low : s * 256 + high + 1] = (event << STATE_BITS) | target_state
    return True


# -- products -----------------------------------------------------------------------------------------------------------


@inner
def product_after(t, node, byte):
    """A product after a byte, FAIL when it cannot be completed; -1 when something has been asked for first, or on a fault."""
    x, y = operands_after(t, node, byte)
    if x < 0 or y < 0:
        if x < 0:
            ask(t, I(t.a[node]), byte)
        if y < 0:
            ask(t, I(t.b[node]), byte)
        return I(-1)
    return product_of(t, x, y, I(t.c[node]))


@inner
def operands_after(t, node, byte):
    """The states of a product's operands after a byte; -1 where that is not known yet."""
    x, y = I(t.a[node]), I(t.b[node])
    if x != DEAD:
        x = I(t.next[x * 256 + byte])
    if t.c[node] == BOTH:
        y = I(t.next[y * 256 + byte])
    return (x & STATE_MASK if x >= 0 else x), (y & STATE_MASK if y >= 0 else y)


@inner
def product_of(t, x, y, op):
    """The product of two states (of one when `op` is NEGATE), FAIL when it cannot be completed; -1 as `product_after`."""
    if op == BOTH and (x == DEAD or y == DEAD):
        return I(FAIL)
    node = intern_node(t, I(PRODUCT), x, y, op)
    if t.n[FAULT] != NO_FAULT:
        return I(-1)
    if t.size[node] == UNKNOWN:
        ask(t, node, I(SEARCH))
        return I(-1)
    return I(FAIL) if t.size[node] >= INFINITE else node


@inner
def product_accepts(t, node):
    if t.c[node] == NEGATE:
        return t.a[node] == DEAD or t.state_accept[t.a[node]] == 0
    return t.state_accept[t.a[node]] == 1 and t.state_accept[t.b[node]] == 1


@inner
def search(t, origin):
    """Breadth-first search for the shortest completion of a product, in bytes.

    Sets the size of `origin` and of what lies on the path found; if there is none, of everything visited. Returns False when
    transitions of operands that hold products themselves have to be known first; the search is then begun anew.
    """
    limit = I(t.n[SEARCH_LIMIT])
    queue = np.empty(limit + 1, np.int32)
    parent = np.empty(limit + 1, np.int32)
    level = np.empty(limit + 1, np.int32)
    t.n[EPOCH] += 1
    epoch = I(t.n[EPOCH])
    queue[0], parent[0], level[0] = origin, -1, 0
    t.enter[origin] = epoch  # of a product, `enter` is the last search that visited it
    end, best, best_at = I(1), I(INFINITE), I(-1)
    i = I(0)
    while i < end and level[i] < best:
        node = I(queue[i])
        rest = I(0) if product_accepts(t, node) else I(t.size[node])
        if rest >= 0:  # the distance from here is known
            if level[i] + rest < best:
                best, best_at = level[i] + rest, i
            i += 1
            continue
        if not know_operands(t, node):
            return False
        previous = I(UNKNOWN)
        for byte in range(256):
            x, y = operands_after(t, node, I(byte))
            if t.c[node] == BOTH and (x == DEAD or y == DEAD):
                continue
            successor = intern_node(t, I(PRODUCT), x, y, I(t.c[node]))
            if end >= limit:
                t.n[FAULT] = SEARCH_EXHAUSTED
            if t.n[FAULT] != NO_FAULT:
                return False
            if successor != previous and t.enter[successor] != epoch:
                t.enter[successor] = epoch
                queue[end], parent[end], level[end] = successor, i, level[i] + 1
                end += 1
            previous = successor
        i += 1
    if best_at < 0:
        for j in range(end):
            t.size[queue[j]] = t.cost[queue[j]] = INFINITE
        return True
    j = best_at
    while j >= 0:
        t.size[queue[j]] = t.cost[queue[j]] = best - level[j]
        j = I(parent[j])
    return True


@inner
def know_operands(t, node):
    """Make all transitions of a product's operands known; False when they were asked for, or on a fault."""
    known = True
    for side in range(2 if t.c[node] == BOTH else 1):
        s = I(t.b[node]) if side == 1 else I(t.a[node])
        if s == DEAD:
            continue
        for byte in range(256):
            if t.next[s * 256 + byte] == UNKNOWN:
                if t.state_flat[s] == 1:
                    derive(t, s, I(byte))
                else:
                    ask(t, s, I(byte))
                    known = False
            if t.n[FAULT] != NO_FAULT:
                return False
    return known


# -- entry points -------------------------------------------------------------------------------------------------------


@nb.njit(cache=True)
def rehash(arena):
    t = open_tables(arena)
    rehash_nodes(t)
    rehash_states(t)


@nb.njit(cache=True)
def enter_node(arena, node):
    """Prepare an operand: its start state."""
    t = open_tables(arena)
    t.enter[node] = state_of(t, I(node))


@nb.njit(cache=True)
def enter_product(arena, node):
    """Prepare BOTH or NEGATE: the product of its operands' start states, or FAIL; sets its size and cost."""
    t = open_tables(arena)
    x, op = I(t.enter[t.a[node]]), I(t.kind[node])
    y = I(t.enter[t.b[node]]) if op == BOTH else I(0)
    product = product_of(t, x, y, op)
    answer_all(t)
    if t.n[FAULT] == NO_FAULT:
        product = product_of(t, x, y, op)
        t.enter[node] = product
        t.size[node], t.cost[node] = t.size[product], t.cost[product]


@nb.njit(cache=True)
def start_state(arena, root):
    t = open_tables(arena)
    return state_of(t, I(root))
