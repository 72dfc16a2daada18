"""Lazy determinisation: from expressions to automaton states, one byte at a time.

What may still come after some text is a *continuation*: an expression node, a leaf followed by a tail. Tails are hash-consed, so
they are the stack of a pushdown automaton and the values of its counters in one. The *closure* of a continuation is the set of
continuations that begin with a leaf (or are finished) reachable without reading a byte, computed once. A *state* is an interned
sorted set of such items: the subset construction on partial derivatives (Antimirov 1996), made when first reached.

When many states differ only in a tail that all their items end with, because the same part of a grammar stands at many places, it
is derived once. A *frame* is a state that is written as another one, `inner`, that knows nothing of the tail, and the tail. It
goes where `inner` goes, until that is complete; its items are written out only when somebody asks.

A tail call pushes nothing (the empty tail is dropped), so right recursion stays finite. Nodes from which nothing can be
completed have infinite size and are never entered, so every state except DEAD can be completed.

Intersections and complements are leaves too: a PRODUCT of the states of their operands, which live in the same automaton. Whether a
product can still be completed is found by a best-first search, memoised along the path it finds.

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

import numpy as np

from .compiled import entry, inner, words_at
from .divisors import COUNTS, DIGIT, MODULUS, PLACES, POINT, ROW, fraction_size, is_divisible, whole_size
from .expression import NO_BOUND, NO_TOTAL, UNBOUNDED, Kind
from .tables import (
    DEAD,
    EPOCH,
    FAULT,
    FRAMED,
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
    REC,
    REQUESTS,
    SEARCH_EXHAUSTED,
    SEARCH_LIMIT,
    SEARCHED,
    STATE_BITS,
    STATE_MASK,
    STATES,
    STEPS,
    UNKNOWN,
    layout,
)

CLASS, LITERAL, SEQ, ALT = int(Kind.CLASS), int(Kind.LITERAL), int(Kind.SEQ), int(Kind.ALT)
REPEAT, CALL, BOTH, NEGATE, PRODUCT = (
    int(Kind.REPEAT), int(Kind.CALL), int(Kind.BOTH), int(Kind.NEGATE), int(Kind.PRODUCT))  # fmt: skip
BAG, TALLY, MULTIPLE = int(Kind.BAG), int(Kind.TALLY), int(Kind.MULTIPLE)
FAIL, EMPTY = 0, 1
NO_BODY = -1
MIN_BODY = 8  # shorter repetitions are measured as they are
ENDLESS = 1 << 30  # the radius of a body without bound
MANY_EXPANDED = 256
HEADER = 3  # words of a closure before its items
INNER, TAIL, FRAME_START, FRAME_LENGTH, FRAME_WORDS = range(5)  # of a frame in `pool`: its items, 0 of them when not written out
RANKS = 4096  # of products in a search; worse ones share the last
SEARCH = -1  # in a request, instead of a byte
SEARCHES = 4  # one step may visit so many times the products of one search: searches may need others, and begin anew

wide = np.int64  # what is read from int32 tables is widened, so that every function is compiled for one signature


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
        return wide(INFINITE)
    return min(wide(a) + wide(b), wide(INFINITE - 1))


@inner
def times(count, a):
    """`count` copies of a size."""
    if count == 0:
        return wide(0)
    if a >= INFINITE:
        return wide(INFINITE)
    return min(wide(count) * wide(a), wide(INFINITE - 1))


@inner
def strides(count, stride):
    """Tokens for `count` copies when one token can spell up to `stride` of them."""
    return (count + stride - 1) // stride


# -- nodes --------------------------------------------------------------------------------------------------------------


@inner
def intern_node(m, t, kind, a, b, c):
    """The node with these operands, made if new. Sets FULL_NODES and returns FAIL when there is no room."""
    mask = t.node_hash_size - 1
    slot = mix(kind, a, b, c) & mask
    while m[t.node_hash + slot] != 0:
        i = wide(m[t.node_hash + slot])
        if m[t.kind + REC * i] == kind and m[t.a + REC * i] == a and m[t.b + REC * i] == b and m[t.c + REC * i] == c:
            return i
        slot = (slot + 1) & mask
    i = wide(m[t.n + NODES])
    if i >= t.nodes_size or 2 * i >= t.node_hash_size:
        m[t.n + FAULT] = FULL_NODES
        return wide(FAIL)
    m[t.n + NODES] = i + 1
    m[t.node_hash + slot] = i
    record = t.nodes + REC * i
    for k in range(record, record + REC):
        m[k] = 0
    m[t.kind + REC * i], m[t.a + REC * i], m[t.b + REC * i], m[t.c + REC * i] = kind, a, b, c
    m[t.size + REC * i] = m[t.cost + REC * i] = UNKNOWN  # whoever made it finds them out; of a PRODUCT, `search`
    m[t.unit + REC * i], m[t.stride + REC * i] = NO_BODY, 1
    return i


@inner
def pair(m, t, head, tail):
    """A SEQ node."""
    node = intern_node(m, t, wide(SEQ), head, tail, wide(0))
    if m[t.size + REC * node] == UNKNOWN:
        m[t.size + REC * node] = plus(wide(m[t.size + REC * head]), wide(m[t.size + REC * tail]))
        apart = plus(wide(m[t.cost + REC * head]), wide(m[t.cost + REC * tail]))
        m[t.cost + REC * node] = min(apart, cost_of_one_more(m, t, head, tail))
    return node


@inner
def repetition(m, t, body, low, high):
    """A REPEAT node."""
    node = intern_node(m, t, wide(REPEAT), body, low, high)
    if m[t.size + REC * node] == UNKNOWN:
        m[t.size + REC * node] = times(low, wide(m[t.size + REC * body]))
        m[t.cost + REC * node] = times(strides(low, wide(m[t.stride + REC * body])), wide(m[t.cost + REC * body]))
    return node


@inner
def literal(m, t, start, length):
    """A LITERAL node."""
    node = intern_node(m, t, wide(LITERAL), start, length, wide(0))
    if m[t.size + REC * node] == UNKNOWN:
        m[t.size + REC * node], m[t.cost + REC * node] = length, m[t.text_cost + start]
    return node


@inner
def cost_of_one_more(m, t, head, rest):
    """The cost of characters and then `rest`, if that repeats the same ones: one token spells them together; else INFINITE.

    Otherwise a repetition would cost more once it is begun than before, and no token would bring its end nearer.
    """
    if m[t.kind + REC * head] != CLASS or m[t.unit + REC * head] == NO_BODY:
        return wide(INFINITE)
    again = wide(m[t.a + REC * rest]) if m[t.kind + REC * rest] == SEQ else wide(rest)
    if m[t.kind + REC * again] != REPEAT or m[t.unit + REC * m[t.a + REC * again]] != m[t.unit + REC * head]:
        return wide(INFINITE)
    behind_it = wide(m[t.cost + REC * m[t.b + REC * rest]]) if m[t.kind + REC * rest] == SEQ else wide(0)
    tokens = strides(1 + wide(m[t.b + REC * again]), wide(m[t.stride + REC * head]))
    return plus(times(tokens, wide(m[t.cost + REC * head])), behind_it)


@inner
def join(m, t, head, tail):
    """`head` then `tail`.

    A short sequence comes apart, so that one continuation has one spelling and states that mean the same are the same.
    """
    if tail == EMPTY or head == FAIL:
        return head
    if head == EMPTY or tail == FAIL:
        return tail
    if m[t.kind + REC * head] == SEQ:
        first, second = wide(m[t.a + REC * head]), wide(m[t.b + REC * head])
        if m[t.kind + REC * second] != SEQ:
            return pair(m, t, first, pair(m, t, second, tail))
    return pair(m, t, head, tail)


@inner
def fewer(m, t, node):
    """A repetition after one more copy of its body."""
    low, high = wide(m[t.b + REC * node]), wide(m[t.c + REC * node])
    if high == 1:
        return wide(EMPTY)
    return repetition(m, t, wide(m[t.a + REC * node]), max(low - 1, wide(0)), high if high < 0 else high - 1)


@inner
def rehash_nodes(m, t):
    """Fill `node_hash`, all zero, with the nodes that can be looked up."""
    mask = t.node_hash_size - 1
    for i in range(2, m[t.n + NODES]):
        k = m[t.kind + REC * i]
        if k == SEQ or k == REPEAT or k == LITERAL or k >= BAG:
            slot = mix(wide(k), wide(m[t.a + REC * i]), wide(m[t.b + REC * i]), wide(m[t.c + REC * i])) & mask
            while m[t.node_hash + slot] != 0:
                slot = (slot + 1) & mask
            m[t.node_hash + slot] = i


# -- bags ---------------------------------------------------------------------------------------------------------------


@inner
def upper(m, t, part):
    """How many members of a part a bag may still have; none when there is no finite member."""
    if m[t.size + REC * m[t.a + REC * part]] >= INFINITE:
        return wide(0)
    return wide(NO_BOUND) if m[t.c + REC * part] < 0 else wide(m[t.c + REC * part])


@inner
def bag_bounds(m, t, bag):
    """Sums of the parts' bounds."""
    least = most = wide(0)
    tally = wide(m[t.a + REC * bag])
    while tally != FAIL:
        part = wide(m[t.a + REC * tally])
        least, most = least + m[t.b + REC * part], most + upper(m, t, part)
        tally = wide(m[t.b + REC * tally])
    return least, most


@inner
def least_sum(m, t, bag, measures):
    """The least a bag takes by a measure of its members (t.size or t.cost): what every part needs, the rest of the cheapest."""
    total, missing = wide(0), wide(m[t.b + REC * bag])
    tally = wide(m[t.a + REC * bag])
    while tally != FAIL:
        part = wide(m[t.a + REC * tally])
        total, missing = plus(total, wide(m[measures + REC * part])), missing - m[t.b + REC * part]
        tally = wide(m[t.b + REC * tally])
    price = wide(-1)
    while missing > 0:
        dearer, room = wide(INFINITE), wide(0)  # the next price, and how many members are to be had for it
        tally = wide(m[t.a + REC * bag])
        while tally != FAIL:
            part = wide(m[t.a + REC * tally])
            each = wide(m[measures + REC * m[t.a + REC * part]])
            if price < each <= dearer:
                room = upper(m, t, part) - m[t.b + REC * part] + (room if each == dearer else 0)
                dearer = each
            tally = wide(m[t.b + REC * tally])
        if dearer >= INFINITE:
            return wide(INFINITE)
        total = plus(total, times(min(room, missing), dearer))
        price, missing = dearer, missing - room
    return total


@inner
def open_bag(m, t, bag, tail, depth):
    """Put on the work list what a bag may begin with, each with the bag that is left; its end too, if it may end here."""
    least, most = bag_bounds(m, t, bag)
    high = wide(NO_TOTAL) if m[t.c + REC * bag] < 0 else wide(m[t.c + REC * bag])
    if least == 0 and m[t.b + REC * bag] == 0:
        depth = later(m, t, tail, depth)
    tally = wide(m[t.a + REC * bag])
    while tally != FAIL and m[t.n + FAULT] == NO_FAULT:
        part = wide(m[t.a + REC * tally])
        if upper(m, t, part) > 0 and (m[t.b + REC * part] > 0 or high > least):
            rest = less(m, t, bag, tally, depth)
            depth = later(m, t, join(m, t, wide(m[t.a + REC * part]), join(m, t, rest, tail)), depth)
        tally = wide(m[t.b + REC * tally])
    return depth


@inner
def less(m, t, bag, taken, depth):
    """A bag after one more member of the part at tally `taken`, with tight bounds: see `Grammar._tight_bag`.

    The work list from `depth` on holds the tallies meanwhile, because a list is made from its end.
    """
    least, most = bag_bounds(m, t, bag)
    part = wide(m[t.a + REC * taken])
    least, most = least - min(wide(m[t.b + REC * part]), wide(1)), most - (0 if m[t.c + REC * part] < 0 else 1)
    low = max(wide(m[t.b + REC * bag]) - 1, least)
    high = most if m[t.c + REC * bag] < 0 else min(wide(m[t.c + REC * bag]) - 1, most)
    slack = (high if high < NO_BOUND else wide(NO_TOTAL)) - least
    top, tally = depth, wide(m[t.a + REC * bag])
    while tally != FAIL:
        top = later(m, t, tally, top)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(FAIL)
        tally = wide(m[t.b + REC * tally])
    out, count, total_least, total_most, last = wide(FAIL), wide(0), wide(0), wide(0), wide(FAIL)
    while top > depth:
        top -= 1
        tally = wide(m[t.work + top])
        part = wide(m[t.a + REC * tally])
        a, b = wide(m[t.b + REC * part]), upper(m, t, part)
        if tally == taken:
            a, b = max(a - 1, wide(0)), b - (0 if b >= NO_BOUND else 1)
        a, b = max(a, low - (most - b)), min(b, a + slack)
        if b > 0:
            last = repetition(m, t, wide(m[t.a + REC * part]), a, b if b < NO_BOUND else wide(UNBOUNDED))
            out = intern_node(m, t, wide(TALLY), last, out, wide(0))
            count, total_least, total_most = count + 1, total_least + a, total_most + b
    if count < 2:
        return last if count == 1 else wide(EMPTY)
    low, high = (wide(0) if low <= total_least else low), (wide(UNBOUNDED) if high >= total_most else high)
    made = intern_node(m, t, wide(BAG), out, low, high)
    if m[t.size + REC * made] == UNKNOWN:
        m[t.size + REC * made], m[t.cost + REC * made] = least_sum(m, t, made, t.size), least_sum(m, t, made, t.cost)
    return made


# -- multiples ----------------------------------------------------------------------------------------------------------


@inner
def digits_needed(m, t, node):
    """Size and cost of a MULTIPLE."""
    step, remainder, to_come = t.lists + m[t.a + REC * node], wide(m[t.b + REC * node]), wide(m[t.c + REC * node])
    modulus, places, dearest = wide(m[step + MODULUS]), wide(m[step + PLACES]), wide(0)
    if to_come < 0:
        size = wide(fraction_size(modulus, remainder, -to_come))
    else:
        size = wide(whole_size(modulus, places, remainder, to_come // COUNTS, to_come % COUNTS))
    for j in range(step + POINT, step + ROW):
        dearest = max(dearest, wide(m[t.cost + REC * m[j]]))
    return size, (size if dearest <= 1 or size == 0 else wide(INFINITE))


@inner
def open_multiple(m, t, node, tail, depth):
    """Put on the work list what digits, or a point, a MULTIPLE may begin with; its end too, if it may end here."""
    step, remainder, to_come = t.lists + m[t.a + REC * node], wide(m[t.b + REC * node]), wide(m[t.c + REC * node])
    modulus, places = wide(m[step + MODULUS]), wide(m[step + PLACES])
    low, high, left = to_come // COUNTS, to_come % COUNTS, -to_come - 1  # left: behind the digit to be read now
    if to_come >= 0 and low == 0:
        if is_divisible(modulus, remainder, places):
            depth = later(m, t, tail, depth)
        if places > 0:
            depth = later(m, t, digit_then(m, t, wide(m[step + POINT]), node, remainder, -places, tail), depth)
    if to_come >= 0 and high == 0:
        return depth
    following = max(low - 1, wide(0)) * COUNTS + high - 1 if to_come >= 0 else -left
    for digit in range(10):
        after, text = (10 * remainder + digit) % modulus, wide(m[step + DIGIT + digit])
        if to_come < 0 and digit > 0 and is_divisible(modulus, after, left):
            depth = later(m, t, join(m, t, text, tail), depth)
        if to_come >= 0 or left > 0:
            depth = later(m, t, digit_then(m, t, text, node, after, following, tail), depth)
    return depth


@inner
def digit_then(m, t, text, node, remainder, to_come, tail):
    """`text`, what is left of a MULTIPLE after it, `tail`; FAIL when that cannot be completed."""
    rest = intern_node(m, t, wide(MULTIPLE), wide(m[t.a + REC * node]), remainder, to_come)
    if m[t.size + REC * rest] == UNKNOWN:
        m[t.size + REC * rest], m[t.cost + REC * rest] = digits_needed(m, t, rest)
    return wide(FAIL) if m[t.size + REC * rest] >= INFINITE else join(m, t, text, join(m, t, rest, tail))


# -- closures -----------------------------------------------------------------------------------------------------------


@inner
def close(m, t, continuation):
    """Make the closure of a continuation: pool[closure] = length, body class, radius, then the items."""
    m[t.n + EPOCH] += 1
    epoch = wide(m[t.n + EPOCH])
    start = wide(m[t.n + POOL])
    count, body, radius = wide(0), wide(NO_BODY), wide(0)
    m[t.work + 0] = continuation
    depth, expanded = wide(1), wide(0)
    while depth > 0:
        depth, expanded = depth - 1, expanded + 1
        w = wide(m[t.work + depth])
        if w < 0:  # a head, above its tail
            depth -= 1
            head, tail = -w, wide(m[t.work + depth])
            if m[t.size + REC * head] >= INFINITE or m[t.size + REC * tail] >= INFINITE:
                continue
        else:
            if m[t.stamp + REC * w] == epoch or m[t.size + REC * w] >= INFINITE:
                continue
            m[t.stamp + REC * w] = epoch
            head, tail = w, wide(EMPTY)
            if m[t.kind + REC * w] == SEQ:
                head, tail = wide(m[t.a + REC * w]), wide(m[t.b + REC * w])
        kind = wide(m[t.kind + REC * head])
        if start + HEADER + count >= t.pool_size:
            m[t.n + FAULT] = FULL_POOL
        elif kind == CLASS or kind == LITERAL or kind == PRODUCT or (head == EMPTY and tail == EMPTY):
            m[t.pool + start + HEADER + count] = join(m, t, head, tail)
            count += 1
            if kind == PRODUCT and m[t.size + REC * head] == 0:
                depth = later(m, t, tail, depth)
        elif kind == SEQ:
            depth = expand(m, t, wide(m[t.a + REC * head]), join(m, t, wide(m[t.b + REC * head]), tail), depth, expanded)
        elif kind == ALT:
            for j in range(wide(m[t.a + REC * head]), wide(m[t.a + REC * head]) + wide(m[t.b + REC * head])):
                depth = expand(m, t, wide(m[t.lists + j]), tail, depth, expanded)
        elif kind == CALL:
            depth = expand(m, t, wide(m[t.rules + m[t.a + REC * head]]), tail, depth, expanded)
        elif kind == REPEAT:
            high = wide(ENDLESS) if m[t.c + REC * head] < 0 else wide(m[t.c + REC * head])
            if m[t.unit + REC * m[t.a + REC * head]] != NO_BODY and high > radius:
                body, radius = wide(m[t.unit + REC * m[t.a + REC * head]]), high
            if m[t.b + REC * head] == 0:
                depth = later(m, t, tail, depth)
            depth = expand(m, t, wide(m[t.a + REC * head]), join(m, t, fewer(m, t, head), tail), depth, expanded)
        elif kind == BAG:
            depth = open_bag(m, t, head, tail, depth)
        elif kind == MULTIPLE:
            depth = open_multiple(m, t, head, tail, depth)
        elif kind == BOTH or kind == NEGATE:
            depth = expand(m, t, wide(m[t.enter + REC * head]), tail, depth, expanded)
        elif head == EMPTY:
            depth = later(m, t, tail, depth)
        if m[t.n + FAULT] != NO_FAULT:
            return
    m[t.pool + start], m[t.pool + start + 1], m[t.pool + start + 2] = count, body, radius
    m[t.n + POOL] = start + HEADER + count
    m[t.closure + REC * continuation] = start


@inner
def later(m, t, node, depth):
    """Put a node on the work list."""
    if depth >= t.work_size:
        m[t.n + FAULT] = FULL_WORK
        return depth
    m[t.work + depth] = node
    return depth + 1


@inner
def expand(m, t, head, tail, depth, expanded):
    """Put `head` followed by `tail` on the work list.

    As a pair, because most heads are never needed as nodes with this tail. After MANY_EXPANDED steps of a closure nodes are made:
    they are stamped, so that parts shared by many alternatives are looked at once. (What reads nothing always passes through a
    tail, which is a node, so no pair comes back for ever.)
    """
    if expanded > MANY_EXPANDED or head == FAIL:
        return later(m, t, join(m, t, head, tail), depth)
    return later(m, t, -head, later(m, t, tail, depth))


@inner
def gather(m, t, continuation, count):
    """Append the closure of a continuation to the items of the state being made; returns their number."""
    if m[t.kind + REC * leaf(m, t, continuation)] == LITERAL:  # its own closure
        if count >= t.items_size:
            m[t.n + FAULT] = FULL_ITEMS
            return count
        m[t.items + count] = continuation
        return count + 1
    if m[t.closure + REC * continuation] == 0:
        close(m, t, continuation)
        if m[t.n + FAULT] != NO_FAULT:
            return count
    start = wide(m[t.closure + REC * continuation])
    length = wide(m[t.pool + start])
    if count + length > t.items_size:
        m[t.n + FAULT] = FULL_ITEMS
        return count
    for j in range(length):
        m[t.items + count + j] = m[t.pool + start + HEADER + j]
    return count + length


# -- states -------------------------------------------------------------------------------------------------------------


@inner
def state_key(m, start, count):
    """A hash of the items of a state."""
    h = wide(count)
    for j in range(start, start + count):
        h = mix(h, wide(m[j]), wide(0), wide(0))
    return h


@inner
def sort_unique(m, start, count):
    """Sort m[start : start + count] (Shell 1959), drop repetitions, return how many are left."""
    gap = wide(1)
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, start + count):
            value, j = m[i], i
            while j >= start + gap and m[j - gap] > value:
                m[j] = m[j - gap]
                j -= gap
            m[j] = value
        gap //= 3
    unique = wide(1)
    for i in range(start + 1, start + count):
        if m[i] != m[start + unique - 1]:
            m[start + unique] = m[i]
            unique += 1
    return unique


@inner
def is_equal(m, left, right, count):
    for j in range(count):
        if m[left + j] != m[right + j]:
            return False
    return True


@inner
def intern_state(m, t, count, body, radius):
    """The state whose items stand in items[:count], in any order and with repetitions."""
    if count == 0:
        return wide(DEAD)
    unique = sort_unique(m, t.items, count)
    mask = t.state_hash_size - 1
    key = state_key(m, t.items, unique)
    slot = key & mask
    while m[t.state_hash + slot] != 0:
        s = wide(m[t.state_hash + slot])
        if m[t.state_key + REC * s] == key and m[t.state_length + REC * s] == unique:
            if is_equal(m, t.pool + m[t.state_start + REC * s], t.items, unique):
                return s
        slot = (slot + 1) & mask
    s = new_state(m, t, slot, key, unique, unique)
    if m[t.n + FAULT] == NO_FAULT:
        for j in range(unique):
            m[t.pool + m[t.state_start + REC * s] + j] = m[t.items + j]
        describe(m, t, s, body, radius)
    return s


@inner
def new_state(m, t, slot, key, length, words):
    """A state with room for so many words in `pool`, entered at a slot of the hash table. DEAD on a fault."""
    s, start = wide(m[t.n + STATES]), wide(m[t.n + POOL])
    if s >= t.states_size or 2 * s >= t.state_hash_size:
        m[t.n + FAULT] = FULL_STATES
    elif start + words > t.pool_size:
        m[t.n + FAULT] = FULL_POOL
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    m[t.n + STATES], m[t.n + POOL] = s + 1, start + words
    m[t.state_hash + slot] = s
    m[t.state_start + REC * s], m[t.state_length + REC * s], m[t.state_key + REC * s] = start, length, key
    m[t.state_after + REC * s] = m[t.state_alone + REC * s] = UNKNOWN
    m[t.state_row + REC * s] = m[t.state_events + REC * s] = m[t.state_ends + REC * s] = m[t.state_run + REC * s] = 0
    return s


@inner
def leaf(m, t, item):
    """The node an item begins with."""
    return wide(m[t.a + REC * item]) if m[t.kind + REC * item] == SEQ else item


@inner
def describe(m, t, s, body, radius):
    """Fill in what follows from the items of a new state; its transitions are unknown, or DEAD for bytes no item takes."""
    start, length = wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    accept, cost, flat = wide(0), wide(INFINITE), wide(1)
    row = t.next + s * 256
    for byte in range(256):
        m[row + byte] = DEAD
    m[t.state_left + REC * s] = 0
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if item == EMPTY:
            accept, cost = wide(1), wide(0)
            continue
        cost = min(cost, wide(m[t.cost + REC * item]))
        node = leaf(m, t, item)
        mark_live(m, t, node, row)
        if m[t.kind + REC * node] == PRODUCT:
            flat = wide(0)
        elif m[t.kind + REC * node] == LITERAL and length == 1:
            m[t.state_text + REC * s], m[t.state_left + REC * s] = m[t.a + REC * node], m[t.b + REC * node]
    m[t.state_accept + REC * s], m[t.state_cost + REC * s], m[t.state_flat + REC * s] = accept, cost, flat
    m[t.state_body + REC * s], m[t.state_radius + REC * s] = body, radius


@inner
def mark_live(m, t, node, row):
    """Mark the bytes that a leaf may take as UNKNOWN. row: where the transitions are."""
    if m[t.kind + REC * node] == LITERAL:
        m[row + m[t.text + m[t.a + REC * node]]] = UNKNOWN
    elif m[t.kind + REC * node] == CLASS:
        for e in range(m[t.a + REC * node], m[t.a + REC * node] + m[t.b + REC * node]):
            for byte in range(m[t.edge_low + e], m[t.edge_high + e] + 1):
                m[row + byte] = UNKNOWN
    else:
        x, y = wide(m[t.a + REC * node]) * 256, wide(m[t.b + REC * node]) * 256
        for byte in range(256):
            if m[t.c + REC * node] == NEGATE or (m[t.next + x + byte] != DEAD and m[t.next + y + byte] != DEAD):
                m[row + byte] = UNKNOWN


@inner
def rehash_states(m, t):
    """Fill `state_hash`, all zero."""
    mask = t.state_hash_size - 1
    for s in range(1, m[t.n + STATES]):
        slot = m[t.state_key + REC * s] & mask
        while m[t.state_hash + slot] != 0:
            slot = (slot + 1) & mask
        m[t.state_hash + slot] = s


@inner
def state_of(m, t, continuation):
    """The state before any byte of a continuation."""
    head = shared_head(m, t, continuation)
    if head == FAIL or m[t.n + FAULT] != NO_FAULT:
        return unframed_state_of(m, t, continuation)
    tail, inner_state = wide(m[t.b + REC * m[t.b + REC * continuation]]), unframed_state_of(m, t, head)
    return wide(DEAD) if m[t.n + FAULT] != NO_FAULT else intern_frame(m, t, inner_state, tail)


@inner
def unframed_state_of(m, t, continuation):
    count = gather(m, t, continuation, wide(0))
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    start = wide(m[t.closure + REC * continuation])
    if start == 0:
        return intern_state(m, t, count, wide(NO_BODY), wide(0))
    return intern_state(m, t, count, wide(m[t.pool + start + 1]), wide(m[t.pool + start + 2]))


@inner
def after_text(m, t, s, count):
    """The state after so many bytes of the only literal of a state (see `state_text`), without states for those before.

    DEAD on a fault.
    """
    is_all = count == m[t.state_left + REC * s]
    if is_all and m[t.state_after + REC * s] != UNKNOWN:
        return wide(m[t.state_after + REC * s])
    if m[t.state_length + REC * s] == FRAMED:
        frame = t.pool + wide(m[t.state_start + REC * s])
        after = framed(m, t, unframed_after_text(m, t, wide(m[frame + INNER]), count), wide(m[frame + TAIL]))
    else:
        after = unframed_after_text(m, t, s, count)
    if is_all and m[t.n + FAULT] == NO_FAULT:
        m[t.state_after + REC * s] = after
    return after


@inner
def unframed_after_text(m, t, s, count):
    item, left = wide(m[t.pool + m[t.state_start + REC * s]]), wide(m[t.state_left + REC * s]) - count
    tail = wide(m[t.b + REC * item]) if m[t.kind + REC * item] == SEQ else wide(EMPTY)
    if left > 0:
        tail = join(m, t, literal(m, t, m[t.state_text + REC * s] + count, left), tail)
    return wide(DEAD) if m[t.n + FAULT] != NO_FAULT else state_of(m, t, tail)


# -- frames -------------------------------------------------------------------------------------------------------------


@inner
def shared_head(m, t, continuation):
    """A lead-in (white space, or a colon and white space) with what follows, which a continuation begins with, if that stands at
    several places, is never empty, and something comes behind it; FAIL when there is no such part.

    Other parts may be entered half read by states that are no frames, and states that mean the same would not be the same. Levels
    of precedence, which call one another, would be frames at each level.
    """
    if m[t.kind + REC * continuation] != SEQ:
        return wide(FAIL)
    first, rest = wide(m[t.a + REC * continuation]), wide(m[t.b + REC * continuation])
    if m[t.kind + REC * rest] != SEQ or not ends_with_characters(m, t, first):
        return wide(FAIL)
    second = wide(m[t.a + REC * rest])
    if m[t.shared + REC * second] == 0 or m[t.size + REC * second] == 0:
        return wide(FAIL)
    return pair(m, t, first, second)


@inner
def ends_with_characters(m, t, node):
    """Whether a node is, or ends with, a repetition of characters of a class that may be empty, such as white space."""
    while m[t.kind + REC * node] == SEQ:
        node = wide(m[t.b + REC * node])
    return m[t.kind + REC * node] == REPEAT and m[t.b + REC * node] == 0 and m[t.unit + REC * m[t.a + REC * node]] != NO_BODY


@inner
def intern_frame(m, t, inner_state, tail):
    """The state `inner_state`, which is not complete, with `tail` behind all its items. DEAD on a fault."""
    if m[t.state_length + REC * inner_state] == FRAMED:
        frame = t.pool + wide(m[t.state_start + REC * inner_state])
        inner_state = wide(m[frame + INNER])
        tail = append(m, t, wide(m[frame + TAIL]), tail)
    if m[t.n + FAULT] != NO_FAULT or inner_state == DEAD or m[t.size + REC * tail] >= INFINITE:
        return wide(DEAD)
    mask = t.state_hash_size - 1
    key = mix(inner_state, tail, wide(0), wide(FRAMED))
    slot = key & mask
    while m[t.state_hash + slot] != 0:
        s = wide(m[t.state_hash + slot])
        if m[t.state_key + REC * s] == key and m[t.state_length + REC * s] == FRAMED:
            frame = t.pool + wide(m[t.state_start + REC * s])
            if m[frame + INNER] == inner_state and m[frame + TAIL] == tail:
                return s
        slot = (slot + 1) & mask
    s = new_state(m, t, slot, key, wide(FRAMED), wide(FRAME_WORDS))
    if m[t.n + FAULT] == NO_FAULT:
        describe_frame(m, t, s, inner_state, tail)
    return s


@inner
def inner_of(m, t, s):
    """The inner state of a frame."""
    return wide(m[t.pool + m[t.state_start + REC * s] + INNER])


@inner
def have_one_tail(m, t, s, other):
    """Whether two states are frames with the same tail."""
    if m[t.state_length + REC * s] != FRAMED or m[t.state_length + REC * other] != FRAMED:
        return False
    return m[t.pool + m[t.state_start + REC * s] + TAIL] == m[t.pool + m[t.state_start + REC * other] + TAIL]


@inner
def describe_frame(m, t, s, inner_state, tail):
    """Fill in a frame, and what follows from its inner state: transitions are unknown where that may go on."""
    frame, other = t.pool + wide(m[t.state_start + REC * s]), REC * inner_state
    m[frame + INNER], m[frame + TAIL], m[frame + FRAME_START], m[frame + FRAME_LENGTH] = inner_state, tail, 0, 0
    m[t.state_accept + REC * s], m[t.state_flat + REC * s] = 0, m[t.state_flat + other]
    m[t.state_cost + REC * s] = plus(wide(m[t.state_cost + other]), wide(m[t.cost + REC * tail]))
    m[t.state_text + REC * s], m[t.state_left + REC * s] = m[t.state_text + other], m[t.state_left + other]
    m[t.state_body + REC * s], m[t.state_radius + REC * s] = m[t.state_body + other], m[t.state_radius + other]
    row, inner_row = t.next + s * 256, t.next + inner_state * 256
    for byte in range(256):
        m[row + byte] = DEAD if m[inner_row + byte] == DEAD else UNKNOWN


@inner
def framed(m, t, inner_state, tail):
    """A state with a tail behind all its items; where it is complete the tail begins. DEAD on a fault."""
    if inner_state == DEAD or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    if m[t.state_accept + REC * inner_state] == 0:
        return intern_frame(m, t, inner_state, tail)
    if m[t.state_length + REC * inner_state] == 1:
        return state_of(m, t, tail)
    count = append_to_items(m, t, inner_state, tail)
    if m[t.n + FAULT] == NO_FAULT:
        count = gather(m, t, tail, count)
    if m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    body, radius = wide(m[t.state_body + REC * inner_state]), wide(m[t.state_radius + REC * inner_state])
    closure = wide(m[t.closure + REC * tail])
    if closure != 0 and m[t.pool + closure + 2] > radius:
        body, radius = wide(m[t.pool + closure + 1]), wide(m[t.pool + closure + 2])
    return intern_state(m, t, count, body, radius)


@inner
def append_to_items(m, t, s, tail):
    """Write the items of a state that is no frame, each with a tail behind it, to `items`; returns how many can be completed."""
    start, count = wide(m[t.state_start + REC * s]), wide(0)
    for j in range(start, start + wide(m[t.state_length + REC * s])):
        item = wide(m[t.pool + j])
        if item == EMPTY:
            continue
        longer = append(m, t, item, tail)
        if m[t.n + FAULT] == NO_FAULT and count >= t.items_size:
            m[t.n + FAULT] = FULL_ITEMS
        if m[t.n + FAULT] != NO_FAULT:
            return count
        if m[t.size + REC * longer] < INFINITE:
            m[t.items + count] = longer
            count += 1
    return count


@inner
def append(m, t, continuation, tail):
    """A continuation, then a tail: the last of the former is joined with it."""
    depth = wide(0)
    while m[t.kind + REC * continuation] == SEQ:
        depth = later(m, t, wide(m[t.a + REC * continuation]), depth)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(FAIL)
        continuation = wide(m[t.b + REC * continuation])
    out = join(m, t, continuation, tail)
    while depth > 0 and m[t.n + FAULT] == NO_FAULT:
        depth -= 1
        out = pair(m, t, wide(m[t.work + depth]), out)
    return out


@inner
def items_of(m, t, s):
    """(start in `pool`, number) of the items of a state, sorted; those of a frame are written out. (0, 0) on a fault."""
    if m[t.state_length + REC * s] != FRAMED:
        return wide(m[t.state_start + REC * s]), wide(m[t.state_length + REC * s])
    frame = t.pool + wide(m[t.state_start + REC * s])
    if m[frame + FRAME_LENGTH] == 0:
        count = append_to_items(m, t, wide(m[frame + INNER]), wide(m[frame + TAIL]))
        start = wide(m[t.n + POOL])
        if m[t.n + FAULT] == NO_FAULT and start + count > t.pool_size:
            m[t.n + FAULT] = FULL_POOL
        if m[t.n + FAULT] != NO_FAULT:
            return wide(0), wide(0)
        count = sort_unique(m, t.items, count)
        for j in range(count):
            m[t.pool + start + j] = m[t.items + j]
        m[t.n + POOL] = start + count
        m[frame + FRAME_START], m[frame + FRAME_LENGTH] = start, count
    return wide(m[frame + FRAME_START]), wide(m[frame + FRAME_LENGTH])


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
    low, high = wide(0), wide(255)
    count, event, body, radius, only = wide(0), wide(0), wide(NO_BODY), wide(0), wide(FAIL)
    for j in range(start, end):
        item = wide(m[t.pool + j])
        head, tail = item, wide(EMPTY)
        if m[t.kind + REC * item] == SEQ:
            head, tail = wide(m[t.a + REC * item]), wide(m[t.b + REC * item])
        kind = wide(m[t.kind + REC * head])
        first, last = wide(0), wide(0)
        if kind == CLASS:
            first, last = wide(m[t.a + REC * head]), wide(m[t.a + REC * head]) + wide(m[t.b + REC * head])
        elif kind == LITERAL or kind == PRODUCT:
            last = wide(1)
        for e in range(first, last):
            if kind == CLASS:
                a, b = wide(m[t.edge_low + e]), wide(m[t.edge_high + e])
            elif kind == LITERAL:
                a = b = wide(m[t.text + m[t.a + REC * head]])
            else:
                a = b = byte
                x = t.next + 256 * wide(m[t.a + REC * head])
                y = t.next + 256 * wide(m[t.b + REC * head]) if m[t.c + REC * head] == BOTH else wide(-1)
                while a > low and is_same(m, x, y, byte, a - 1):
                    a -= 1
                while b < high and is_same(m, x, y, byte, b + 1):
                    b += 1
            if b < byte:
                low = max(low, b + 1)
                continue
            if a > byte:
                high = min(high, a - 1)
                continue
            low, high = max(low, a), min(high, b)
            follow = wide(EMPTY)
            if kind == CLASS:
                follow = wide(m[t.edge_next + e])
                event = max(event, wide(m[t.c + REC * head]))
            elif kind == LITERAL:
                if m[t.b + REC * head] > 1:
                    follow = literal(m, t, wide(m[t.a + REC * head]) + 1, wide(m[t.b + REC * head]) - 1)
            else:
                follow = product_after(m, t, head, byte)
            target = join(m, t, follow, tail)
            if m[t.n + FAULT] != NO_FAULT:
                return False
            if m[t.size + REC * target] >= INFINITE:
                continue
            if target == only:
                continue
            if only == FAIL and count == 0:
                only = target  # the only one so far, not gathered yet
                continue
            for k in range(2):
                after = only if k == 0 else target
                if after == FAIL:
                    continue
                count = gather(m, t, after, count)
                if m[t.n + FAULT] != NO_FAULT:
                    return False
                closure = wide(m[t.closure + REC * after])
                if closure != 0 and m[t.pool + closure + 2] > radius:
                    body, radius = wide(m[t.pool + closure + 1]), wide(m[t.pool + closure + 2])
            only = wide(FAIL)
    target_state = state_of(m, t, only) if only != FAIL else intern_state(m, t, count, body, radius)
    if m[t.n + FAULT] != NO_FAULT:
        return False
    for value in range(low, high + 1):
        m[t.next + s * 256 + value] = (event << STATE_BITS) | target_state
    return True


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
def is_same(m, x, y, byte, other):
    """Whether the operands of a product go the same ways on two bytes, the first of which is known. x, y: their transitions."""
    return m[x + byte] == m[x + other] and (y < 0 or m[y + byte] == m[y + other])


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

    What comes first is least distance so far plus the greater of what the operands cost by themselves. Sets the size of `origin`
    and of what lies on the path found; if there is none, of everything visited. Returns False when transitions of operands that
    hold products themselves have to be known first; the search is then begun anew.
    """
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
                rank = min(level[i] + 1 + alone, RANKS - 1)
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
def rehash(arena):
    m = words_at(arena)
    t = layout(m)
    rehash_nodes(m, t)
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
