"""Nodes of the automaton: expressions that are hash-consed while it runs, and what they cost.

Most are sequences of a leaf and a tail, and repetitions with fewer copies to come; bags and multiples (see expression.py) open into
what they may begin with, each with what is then left. A work list lies in the tables, for these and for closures (states.py).

All functions here are compiled. `m` and `t` are the tables and their layout, see tables.py, also for faults.
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import NO_BOUND, NO_TOTAL, UNBOUNDED, Kind
from ..numba_support.divisors import COUNTS, DIGIT, MODULUS, PLACES, POINT, ROW, fraction_size, is_divisible, whole_size
from ..numba_support.jit import inner
from .tables import (
    FAULT,
    FULL_NODES,
    FULL_PAIRS,
    FULL_WORK,
    INFINITE,
    NO_FAULT,
    NODES,
    NUM_PAIRS,
    NUM_STATIC,
    REC,
    UNKNOWN,
)

CLASS, LITERAL, SEQ, ALT = int(Kind.CLASS), int(Kind.LITERAL), int(Kind.SEQ), int(Kind.ALT)
REPEAT, CALL, BOTH, NEGATE, PRODUCT = (
    int(Kind.REPEAT), int(Kind.CALL), int(Kind.BOTH), int(Kind.NEGATE), int(Kind.PRODUCT))  # fmt: skip
BAG, TALLY, MULTIPLE = int(Kind.BAG), int(Kind.TALLY), int(Kind.MULTIPLE)
WORDS, UNLISTED, EITHER = int(Kind.WORDS), int(Kind.UNLISTED), int(Kind.EITHER)
FAIL, EMPTY = 0, 1
NO_BODY = -1
FAR_COPIES, MOST_BEGUN = (1 << 31) - 1, 1 << 20  # more than anybody counts to; those that may have been begun, see counter_saturation.py
_FAR_BYTES = 32  # nearer ends are not looked for: only in vocabularies of short tokens would they be beyond reach

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
    """The node with these operands, made if new. Sets FULL_NODES and returns FAIL when there is no room. For pairs see `pair`."""
    mask = t.node_hash_size - 1
    slot = mix(kind, a, b, c) & mask
    while m[t.node_hash + slot] != 0:
        i = wide(m[t.node_hash + slot])
        if m[t.kind + REC * i] == kind and m[t.a + REC * i] == a and m[t.b + REC * i] == b and m[t.c + REC * i] == c:
            return i
        slot = (slot + 1) & mask
    if 2 * wide(m[t.n + NODES] - m[t.n + NUM_PAIRS]) >= t.node_hash_size:
        m[t.n + FAULT] = FULL_NODES
        return wide(FAIL)
    return new_node(m, t, t.node_hash + slot, kind, a, b, c)


@inner
def new_node(m, t, place, kind, a, b, c):
    """A new node, entered in a hash table at a place."""
    i = wide(m[t.n + NODES])
    if i >= t.nodes_size:
        m[t.n + FAULT] = FULL_NODES
        return wide(FAIL)
    m[t.n + NODES] = i + 1
    m[place] = i
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
    is_static = head < m[t.n + NUM_STATIC] and tail < m[t.n + NUM_STATIC]
    node = intern_node(m, t, wide(SEQ), head, tail, wide(0)) if is_static else intern_pair(m, t, head, tail)
    if m[t.size + REC * node] == UNKNOWN:
        m[t.size + REC * node] = plus(wide(m[t.size + REC * head]), wide(m[t.size + REC * tail]))
        apart = plus(wide(m[t.cost + REC * head]), wide(m[t.cost + REC * tail]))
        m[t.cost + REC * node] = min(apart, cost_of_one_more(m, t, head, tail))
        m[t.far + REC * node] = m[t.far + REC * head] | m[t.far + REC * tail]
    return node


@inner
def intern_pair(m, t, head, tail):
    """A SEQ node one part of which is not in the grammar, so that it cannot be either. Sets FULL_PAIRS when there is no room."""
    mask = t.pair_hash_size - 1
    slot = mix(wide(SEQ), head, tail, wide(0)) & mask
    while m[t.pair_hash + slot] != 0:
        i = wide(m[t.pair_hash + slot])
        if m[t.a + REC * i] == head and m[t.b + REC * i] == tail:
            return i
        slot = (slot + 1) & mask
    if 2 * wide(m[t.n + NUM_PAIRS]) >= t.pair_hash_size:
        m[t.n + FAULT] = FULL_PAIRS
        return wide(FAIL)
    i = new_node(m, t, t.pair_hash + slot, wide(SEQ), head, tail, wide(0))
    if i != FAIL:
        m[t.n + NUM_PAIRS] += 1
    return i


@inner
def repetition(m, t, body, low, high):
    """A REPEAT node."""
    node = intern_node(m, t, wide(REPEAT), body, low, high)
    if m[t.size + REC * node] == UNKNOWN:
        m[t.size + REC * node] = times(low, wide(m[t.size + REC * body]))
        m[t.cost + REC * node] = times(strides(low, wide(m[t.stride + REC * body])), wide(m[t.cost + REC * body]))
        m[t.far + REC * node] = may_end_far(m, t, node)
    return node


@inner
def may_end_far(m, t, node):
    """1 for a repetition that may end so far away that counter_saturation.py replaces it, else 0."""
    body, high = wide(m[t.a + REC * node]), wide(m[t.c + REC * node])
    if m[t.unit + REC * body] == NO_BODY:
        return wide(1) if high > 2 else wide(0)
    return wide(1) if high * wide(m[t.size + REC * body]) >= _FAR_BYTES else wide(0)


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
    part, behind = leaf(m, t, rest), wide(m[t.b + REC * rest]) if m[t.kind + REC * rest] == SEQ else wide(EMPTY)
    if m[t.kind + REC * part] != EITHER:
        return cost_of_copies(m, t, head, rest, wide(EMPTY))
    cost = wide(INFINITE)
    while m[t.kind + REC * part] == EITHER:
        cost, part = min(cost, cost_of_copies(m, t, head, wide(m[t.a + REC * part]), behind)), wide(m[t.b + REC * part])
    return min(cost, cost_of_copies(m, t, head, part, behind))


@inner
def cost_of_copies(m, t, head, rest, behind):
    """The same of `rest`, which begins with no union, and what comes behind it."""
    if rest == EMPTY:
        rest, behind = behind, wide(EMPTY)
    again = leaf(m, t, rest)
    if m[t.kind + REC * again] != REPEAT or m[t.unit + REC * m[t.a + REC * again]] != m[t.unit + REC * head]:
        return wide(INFINITE)
    behind_it = wide(m[t.cost + REC * m[t.b + REC * rest]]) if m[t.kind + REC * rest] == SEQ else wide(0)
    tokens = strides(1 + wide(m[t.b + REC * again]), wide(m[t.stride + REC * head]))
    return plus(times(tokens, wide(m[t.cost + REC * head])), plus(behind_it, wide(m[t.cost + REC * behind])))


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
    body, low, high = wide(m[t.a + REC * node]), wide(m[t.b + REC * node]), wide(m[t.c + REC * node])
    if high == 1:
        return wide(EMPTY)
    if high > FAR_COPIES - MOST_BEGUN:
        m[t.begun + REC * body] = max(wide(m[t.begun + REC * body]), FAR_COPIES - high + 1)
    return repetition(m, t, body, max(low - 1, wide(0)), high if high < 0 else high - 1)


@inner
def leaf(m, t, item):
    """The node an item begins with."""
    return wide(m[t.a + REC * item]) if m[t.kind + REC * item] == SEQ else item


@inner
def later(m, t, node, depth):
    """Put a node on the work list."""
    if depth >= t.work_size:
        m[t.n + FAULT] = FULL_WORK
        return depth
    m[t.work + depth] = node
    return depth + 1


@inner
def rehash_nodes(m, t, nodes, pairs):
    """Fill `node_hash`, `pair_hash`, if they are all zero, with the nodes that can be looked up."""
    static = wide(m[t.n + NUM_STATIC])
    for i in range(2 if nodes else static, m[t.n + NODES]):
        k, a, b = wide(m[t.kind + REC * i]), wide(m[t.a + REC * i]), wide(m[t.b + REC * i])
        if k == SEQ and (a >= static or b >= static):
            if pairs:
                enter(m, t.pair_hash, t.pair_hash_size, mix(k, a, b, wide(0)), i)
        elif nodes and (k == SEQ or k == REPEAT or k == LITERAL or k >= BAG):
            enter(m, t.node_hash, t.node_hash_size, mix(k, a, b, wide(m[t.c + REC * i])), i)


@inner
def enter(m, table, size, key, i):
    """Enter a number in an open hash table."""
    slot = key & (size - 1)
    while m[table + slot] != 0:
        slot = (slot + 1) & (size - 1)
    m[table + slot] = i


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
