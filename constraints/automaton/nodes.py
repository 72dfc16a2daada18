"""Nodes: the expressions that the automaton is made of, hash-consed, with the size and the cost of each.

The grammar's nodes are *static*: compilation copies them into the arena (assembly.py). While the automaton runs it
makes more, mostly sequences (a leaf and a tail) and repetitions with fewer copies to come. Equal nodes are one node, so
nodes are compared by number. Every node made here knows two things at once:

    size    bytes of its shortest string, INFINITE when it has none
    cost    a number of tokens that suffices to spell one of its strings, INFINITE when the vocabulary cannot

The second half of the file opens bags (members in any order) and multiples (digits of a divisible number; see
divisors.py): it puts what they may begin with, each with what is then left, on the work list `work`, from which
closures are made (closures.py).

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

import numpy as np

from ..base.kinds import INFINITE, NO_BOUND, NO_TOTAL, UNBOUNDED, Kind
from ..numba_support.divisors import (
    COUNTS,
    MULTIPLE_ROW_WORDS,
    MultipleRow,
    fraction_size,
    is_divisible,
    whole_size,
)
from ..numba_support.jit import inner
from .tables import (
    REC,
    UNKNOWN,
    Counter,
    Fault,
)

FAIL, EMPTY = 0, 1
NO_BODY = -1
SATURATED_COPIES, MAX_COPIES_BEGUN = (
    (1 << 31) - 1,
    1 << 20,
)  # more than anybody counts to; those that may have been begun, see counter_saturation.py
_SATURATION_BYTES = 32  # nearer ends are not looked for: only in vocabularies of short tokens would they be beyond reach

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
    """The sum of two sizes or costs. INFINITE plus anything is INFINITE; finite sums stay below it."""
    if a >= INFINITE or b >= INFINITE:
        return wide(INFINITE)
    return min(wide(a) + wide(b), wide(INFINITE - 1))


@inner
def times(count, a):
    """The size or cost of `count` copies of something of size or cost `a`."""
    if count == 0:
        return wide(0)
    if a >= INFINITE:
        return wide(INFINITE)
    return min(wide(count) * wide(a), wide(INFINITE - 1))


@inner
def tokens_for_copies(count, stride):
    """Tokens for `count` copies when one token can spell up to `copies_per_token` of them."""
    return (count + stride - 1) // stride


# -- nodes --------------------------------------------------------------------------------------------------------------


@inner
def intern_node(arena, tables, kind, a, b, c):
    """The node with this kind and these operands; it is made if there is none. Sets FULL_NODES and returns FAIL when
    there is no room. Sequences are made by `sequence`."""
    mask = tables.node_hash_size - 1
    slot = mix(kind, a, b, c) & mask
    while arena[tables.node_hash + slot] != 0:
        i = wide(arena[tables.node_hash + slot])
        if (
            arena[tables.kind + REC * i] == kind
            and arena[tables.a + REC * i] == a
            and arena[tables.b + REC * i] == b
            and arena[tables.c + REC * i] == c
        ):
            return i
        slot = (slot + 1) & mask
    if 2 * wide(arena[tables.n + Counter.NODES] - arena[tables.n + Counter.NUM_SEQUENCES]) >= tables.node_hash_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_NODES
        return wide(FAIL)
    return new_node(arena, tables, tables.node_hash + slot, kind, a, b, c)


@inner
def new_node(arena, tables, place, kind, a, b, c):
    """A new node; its number is written to `place`, a free slot of a hash table. Returns FAIL on a fault."""
    i = wide(arena[tables.n + Counter.NODES])
    if i >= tables.nodes_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_NODES
        return wide(FAIL)
    arena[tables.n + Counter.NODES] = i + 1
    arena[place] = i
    record = tables.nodes + REC * i
    for k in range(record, record + REC):
        arena[k] = 0
    arena[tables.kind + REC * i], arena[tables.a + REC * i], arena[tables.b + REC * i], arena[tables.c + REC * i] = kind, a, b, c
    arena[tables.size + REC * i] = arena[tables.cost + REC * i] = UNKNOWN  # whoever made it finds them out; of a PRODUCT, `search`
    arena[tables.body_class + REC * i], arena[tables.copies_per_token + REC * i] = NO_BODY, 1
    return i


@inner
def sequence(arena, tables, head, tail):
    """The SEQ node of `head` and `tail`, with its size and cost. `join` is for operands that may be empty."""
    is_static = head < arena[tables.n + Counter.NUM_STATIC] and tail < arena[tables.n + Counter.NUM_STATIC]
    node = (
        intern_node(arena, tables, wide(Kind.SEQ), head, tail, wide(0))
        if is_static
        else intern_sequence(arena, tables, head, tail)
    )
    if arena[tables.size + REC * node] == UNKNOWN:
        arena[tables.size + REC * node] = plus(wide(arena[tables.size + REC * head]), wide(arena[tables.size + REC * tail]))
        apart = plus(wide(arena[tables.cost + REC * head]), wide(arena[tables.cost + REC * tail]))
        arena[tables.cost + REC * node] = min(apart, cost_of_one_more(arena, tables, head, tail))
        arena[tables.may_saturate + REC * node] = arena[tables.may_saturate + REC * head] | arena[tables.may_saturate + REC * tail]
    return node


@inner
def intern_sequence(arena, tables, head, tail):
    """The SEQ node of two nodes at least one of which is not static; so the SEQ node is not static either. Such nodes
    have a hash table of their own. Sets FULL_SEQUENCES and returns FAIL when there is no room."""
    mask = tables.sequence_hash_size - 1
    slot = mix(wide(Kind.SEQ), head, tail, wide(0)) & mask
    while arena[tables.sequence_hash + slot] != 0:
        i = wide(arena[tables.sequence_hash + slot])
        if arena[tables.a + REC * i] == head and arena[tables.b + REC * i] == tail:
            return i
        slot = (slot + 1) & mask
    if 2 * wide(arena[tables.n + Counter.NUM_SEQUENCES]) >= tables.sequence_hash_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_SEQUENCES
        return wide(FAIL)
    i = new_node(arena, tables, tables.sequence_hash + slot, wide(Kind.SEQ), head, tail, wide(0))
    if i != FAIL:
        arena[tables.n + Counter.NUM_SEQUENCES] += 1
    return i


@inner
def repetition(arena, tables, body, low, high):
    """The REPEAT node of `low` to `high` copies of `body`, with its size and cost; high: UNBOUNDED when it has no end."""
    node = intern_node(arena, tables, wide(Kind.REPEAT), body, low, high)
    if arena[tables.size + REC * node] == UNKNOWN:
        arena[tables.size + REC * node] = times(low, wide(arena[tables.size + REC * body]))
        arena[tables.cost + REC * node] = times(
            tokens_for_copies(low, wide(arena[tables.copies_per_token + REC * body])),
            wide(arena[tables.cost + REC * body]),
        )
        arena[tables.may_saturate + REC * node] = may_saturate(arena, tables, node)
    return node


@inner
def may_saturate(arena, tables, node):
    """1 for a repetition whose end may be farther away than a token reaches, so that counter_saturation.py may replace it; else
    0."""
    body, high = wide(arena[tables.a + REC * node]), wide(arena[tables.c + REC * node])
    if arena[tables.body_class + REC * body] == NO_BODY:
        return wide(1) if high > 2 else wide(0)
    return wide(1) if high * wide(arena[tables.size + REC * body]) >= _SATURATION_BYTES else wide(0)


@inner
def literal(arena, tables, start, length):
    """The LITERAL node of `length` bytes of the table `text` from `start` on."""
    node = intern_node(arena, tables, wide(Kind.LITERAL), start, length, wide(0))
    if arena[tables.size + REC * node] == UNKNOWN:
        arena[tables.size + REC * node], arena[tables.cost + REC * node] = length, arena[tables.text_cost + start]
    return node


@inner
def cost_of_one_more(arena, tables, head, rest):
    """The cost of the character `head` and then `rest`, if `rest` goes on with a repetition of the same characters,
    because one token may spell several of them; else INFINITE.

    Without this a repetition would cost more after its first character than before it, and no token would bring its end
    nearer.
    """
    if arena[tables.kind + REC * head] != Kind.CLASS or arena[tables.body_class + REC * head] == NO_BODY:
        return wide(INFINITE)
    part, behind = (
        head_of(arena, tables, rest),
        wide(arena[tables.b + REC * rest]) if arena[tables.kind + REC * rest] == Kind.SEQ else wide(EMPTY),
    )
    if arena[tables.kind + REC * part] != Kind.EITHER:
        return cost_of_copies(arena, tables, head, rest, wide(EMPTY))
    cost = wide(INFINITE)
    while arena[tables.kind + REC * part] == Kind.EITHER:
        cost, part = (
            min(cost, cost_of_copies(arena, tables, head, wide(arena[tables.a + REC * part]), behind)),
            wide(arena[tables.b + REC * part]),
        )
    return min(cost, cost_of_copies(arena, tables, head, part, behind))


@inner
def cost_of_copies(arena, tables, head, rest, behind):
    """`cost_of_one_more` for a `rest` that begins with no union, and what comes `behind` it."""
    if rest == EMPTY:
        rest, behind = behind, wide(EMPTY)
    again = head_of(arena, tables, rest)
    if (
        arena[tables.kind + REC * again] != Kind.REPEAT
        or arena[tables.body_class + REC * arena[tables.a + REC * again]] != arena[tables.body_class + REC * head]
    ):
        return wide(INFINITE)
    behind_it = (
        wide(arena[tables.cost + REC * arena[tables.b + REC * rest]])
        if arena[tables.kind + REC * rest] == Kind.SEQ
        else wide(0)
    )
    tokens = tokens_for_copies(1 + wide(arena[tables.b + REC * again]), wide(arena[tables.copies_per_token + REC * head]))
    return plus(times(tokens, wide(arena[tables.cost + REC * head])), plus(behind_it, wide(arena[tables.cost + REC * behind])))


@inner
def join(arena, tables, head, tail):
    """The continuation `head` then `tail`, where either may be EMPTY or FAIL.

    A short sequence in `head` is taken apart, and repetitions in a row are added up, so that a continuation has one
    spelling only, and states that mean the same are the same.
    """
    if tail == EMPTY or head == FAIL:
        return head
    if head == EMPTY or tail == FAIL:
        return tail
    if arena[tables.kind + REC * head] == Kind.SEQ:
        first, second = wide(arena[tables.a + REC * head]), wide(arena[tables.b + REC * head])
        if arena[tables.kind + REC * second] != Kind.SEQ:
            return sequence(arena, tables, first, stacked(arena, tables, second, tail))
    return stacked(arena, tables, head, tail)


@inner
def stacked(arena, tables, head, tail):
    """The sequence of `head`, which is none itself, and `tail`. Where two repetitions of one body meet they are one,
    with the sums of their bounds: nested calls of a rule that is a repetition say no more than one of them."""
    if arena[tables.kind + REC * head] != Kind.REPEAT:
        return sequence(arena, tables, head, tail)
    following = head_of(arena, tables, tail)
    body = wide(arena[tables.a + REC * head])
    if (
        arena[tables.kind + REC * following] != Kind.REPEAT
        or arena[tables.a + REC * following] != body
        or arena[tables.body_class + REC * body] != NO_BODY
    ):
        return sequence(arena, tables, head, tail)
    low = wide(arena[tables.b + REC * head]) + wide(arena[tables.b + REC * following])
    high, more = wide(arena[tables.c + REC * head]), wide(arena[tables.c + REC * following])
    if max(low, max(high, more)) >= MAX_COPIES_BEGUN:
        return sequence(arena, tables, head, tail)
    both = repetition(arena, tables, body, low, wide(UNBOUNDED) if high < 0 or more < 0 else high + more)
    return sequence(arena, tables, both, wide(arena[tables.b + REC * tail])) if tail != following else both


@inner
def after_one_copy(arena, tables, node):
    """What is left of the repetition `node` after one more copy of its body."""
    body, low, high = wide(arena[tables.a + REC * node]), wide(arena[tables.b + REC * node]), wide(arena[tables.c + REC * node])
    if high == 1:
        return wide(EMPTY)
    if high > SATURATED_COPIES - MAX_COPIES_BEGUN:
        arena[tables.copies_begun + REC * body] = max(wide(arena[tables.copies_begun + REC * body]), SATURATED_COPIES - high + 1)
    return repetition(arena, tables, body, max(low - 1, wide(0)), high if high < 0 else high - 1)


@inner
def head_of(arena, tables, item):
    """The node that a continuation begins with."""
    return wide(arena[tables.a + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else item


@inner
def push_work(arena, tables, node, depth):
    """Put a node on the work list `work` at `depth`; returns the new depth."""
    if depth >= tables.work_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_WORK
        return depth
    arena[tables.work + depth] = node
    return depth + 1


@inner
def rehash_nodes(arena, tables, nodes, sequences):
    """Enter all nodes that are ever looked up into `node_hash` (if `nodes`) and `sequence_hash` (if `sequences`), which
    have to be all zero."""
    static = wide(arena[tables.n + Counter.NUM_STATIC])
    for i in range(2 if nodes else static, arena[tables.n + Counter.NODES]):
        k, a, b = wide(arena[tables.kind + REC * i]), wide(arena[tables.a + REC * i]), wide(arena[tables.b + REC * i])
        if k == Kind.SEQ and (a >= static or b >= static):
            if sequences:
                insert(arena, tables.sequence_hash, tables.sequence_hash_size, mix(k, a, b, wide(0)), i)
        elif nodes and (k == Kind.SEQ or k == Kind.REPEAT or k == Kind.LITERAL or k >= Kind.BAG):
            insert(arena, tables.node_hash, tables.node_hash_size, mix(k, a, b, wide(arena[tables.c + REC * i])), i)


@inner
def insert(arena, table, size, key, i):
    """Enter the number `i` under `key` in the open hash table of `size` entries at `table`."""
    slot = key & (size - 1)
    while arena[table + slot] != 0:
        slot = (slot + 1) & (size - 1)
    arena[table + slot] = i


# -- bags ---------------------------------------------------------------------------------------------------------------


@inner
def upper(arena, tables, part):
    """How many members of one part a bag may still have, NO_BOUND when there is no bound; 0 when no such member has a
    finite string."""
    if arena[tables.size + REC * arena[tables.a + REC * part]] >= INFINITE:
        return wide(0)
    return wide(NO_BOUND) if arena[tables.c + REC * part] < 0 else wide(arena[tables.c + REC * part])


@inner
def bag_bounds(arena, tables, bag):
    """(least, most): the sums of the bounds of a bag's parts."""
    least = most = wide(0)
    tally = wide(arena[tables.a + REC * bag])
    while tally != FAIL:
        part = wide(arena[tables.a + REC * tally])
        least, most = least + arena[tables.b + REC * part], most + upper(arena, tables, part)
        tally = wide(arena[tables.b + REC * tally])
    return least, most


@inner
def least_sum(arena, tables, bag, measures):
    """The least that a bag takes, in bytes (measures = `t.size`) or tokens (`t.cost`): every part as often as it must
    come, and the cheapest parts as often as members are missing."""
    total, missing = wide(0), wide(arena[tables.b + REC * bag])
    tally = wide(arena[tables.a + REC * bag])
    while tally != FAIL:
        part = wide(arena[tables.a + REC * tally])
        total, missing = plus(total, wide(arena[measures + REC * part])), missing - arena[tables.b + REC * part]
        tally = wide(arena[tables.b + REC * tally])
    price = wide(-1)
    while missing > 0:
        dearer, room = wide(INFINITE), wide(0)  # the next price, and how many members are to be had for it
        tally = wide(arena[tables.a + REC * bag])
        while tally != FAIL:
            part = wide(arena[tables.a + REC * tally])
            each = wide(arena[measures + REC * arena[tables.a + REC * part]])
            if price < each <= dearer:
                room = upper(arena, tables, part) - arena[tables.b + REC * part] + (room if each == dearer else 0)
                dearer = each
            tally = wide(arena[tables.b + REC * tally])
        if dearer >= INFINITE:
            return wide(INFINITE)
        total = plus(total, times(min(room, missing), dearer))
        price, missing = dearer, missing - room
    return total


@inner
def open_bag(arena, tables, bag, tail, depth):
    """Put on the work list what a bag may begin with, each followed by the bag that is left and `tail`; `tail` itself,
    too, if the bag may end here. Returns the new depth."""
    least, most = bag_bounds(arena, tables, bag)
    high = wide(NO_TOTAL) if arena[tables.c + REC * bag] < 0 else wide(arena[tables.c + REC * bag])
    if least == 0 and arena[tables.b + REC * bag] == 0:
        depth = push_work(arena, tables, tail, depth)
    tally = wide(arena[tables.a + REC * bag])
    while tally != FAIL and arena[tables.n + Counter.FAULT] == Fault.NONE:
        part = wide(arena[tables.a + REC * tally])
        if upper(arena, tables, part) > 0 and (arena[tables.b + REC * part] > 0 or high > least):
            rest = bag_after_member(arena, tables, bag, tally, depth)
            depth = push_work(
                arena,
                tables,
                join(arena, tables, wide(arena[tables.a + REC * part]), join(arena, tables, rest, tail)),
                depth,
            )
        tally = wide(arena[tables.b + REC * tally])
    return depth


@inner
def bag_after_member(arena, tables, bag, taken, depth):
    """The bag that is left after one more member of the part at tally `taken`, with tight bounds (see
    `Grammar._tight_bag`).

    From `depth` on the work list holds the tallies meanwhile, because a list of them is made from its end.
    """
    least, most = bag_bounds(arena, tables, bag)
    part = wide(arena[tables.a + REC * taken])
    least, most = least - min(wide(arena[tables.b + REC * part]), wide(1)), most - (0 if arena[tables.c + REC * part] < 0 else 1)
    low = max(wide(arena[tables.b + REC * bag]) - 1, least)
    high = most if arena[tables.c + REC * bag] < 0 else min(wide(arena[tables.c + REC * bag]) - 1, most)
    slack = (high if high < NO_BOUND else wide(NO_TOTAL)) - least
    top, tally = depth, wide(arena[tables.a + REC * bag])
    while tally != FAIL:
        top = push_work(arena, tables, tally, top)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(FAIL)
        tally = wide(arena[tables.b + REC * tally])
    out, count, total_least, total_most, last = wide(FAIL), wide(0), wide(0), wide(0), wide(FAIL)
    while top > depth:
        top -= 1
        tally = wide(arena[tables.work + top])
        part = wide(arena[tables.a + REC * tally])
        a, b = wide(arena[tables.b + REC * part]), upper(arena, tables, part)
        if tally == taken:
            a, b = max(a - 1, wide(0)), b - (0 if b >= NO_BOUND else 1)
        a, b = max(a, low - (most - b)), min(b, a + slack)
        if b > 0:
            last = repetition(arena, tables, wide(arena[tables.a + REC * part]), a, b if b < NO_BOUND else wide(UNBOUNDED))
            out = intern_node(arena, tables, wide(Kind.TALLY), last, out, wide(0))
            count, total_least, total_most = count + 1, total_least + a, total_most + b
    if count < 2:
        return last if count == 1 else wide(EMPTY)
    low, high = (wide(0) if low <= total_least else low), (wide(UNBOUNDED) if high >= total_most else high)
    made = intern_node(arena, tables, wide(Kind.BAG), out, low, high)
    if arena[tables.size + REC * made] == UNKNOWN:
        arena[tables.size + REC * made], arena[tables.cost + REC * made] = (
            least_sum(arena, tables, made, tables.size),
            least_sum(arena, tables, made, tables.cost),
        )
    return made


# -- multiples ----------------------------------------------------------------------------------------------------------


@inner
def digits_needed(arena, tables, node):
    """(size, cost) of a MULTIPLE."""
    step, remainder, to_come = (
        tables.lists + arena[tables.a + REC * node],
        wide(arena[tables.b + REC * node]),
        wide(arena[tables.c + REC * node]),
    )
    modulus, places, dearest = wide(arena[step + MultipleRow.MODULUS]), wide(arena[step + MultipleRow.PLACES]), wide(0)
    if to_come < 0:
        size = wide(fraction_size(modulus, remainder, -to_come))
    else:
        size = wide(whole_size(modulus, places, remainder, to_come // COUNTS, to_come % COUNTS))
    for j in range(step + MultipleRow.POINT, step + MULTIPLE_ROW_WORDS):
        dearest = max(dearest, wide(arena[tables.cost + REC * arena[j]]))
    return size, (size if dearest <= 1 or size == 0 else wide(INFINITE))


@inner
def open_multiple(arena, tables, node, tail, depth):
    """Put on the work list the digits, or the point, that a MULTIPLE may begin with, each followed by what is left of
    it and `tail`; `tail` itself, too, if the number may end here. Returns the new depth."""
    step = tables.lists + arena[tables.a + REC * node]
    remainder, to_come = wide(arena[tables.b + REC * node]), wide(arena[tables.c + REC * node])
    modulus, places = wide(arena[step + MultipleRow.MODULUS]), wide(arena[step + MultipleRow.PLACES])
    low, high, left = to_come // COUNTS, to_come % COUNTS, -to_come - 1  # left: behind the digit to be read now
    if to_come >= 0 and low == 0:
        if is_divisible(modulus, remainder, places):
            depth = push_work(arena, tables, tail, depth)
        if places > 0:
            depth = push_work(
                arena,
                tables,
                digit_then(arena, tables, wide(arena[step + MultipleRow.POINT]), node, remainder, -places, tail),
                depth,
            )
    if to_come >= 0 and high == 0:
        return depth
    following = max(low - 1, wide(0)) * COUNTS + high - 1 if to_come >= 0 else -left
    for digit in range(10):
        after, text = (10 * remainder + digit) % modulus, wide(arena[step + MultipleRow.DIGIT + digit])
        if to_come < 0 and digit > 0 and is_divisible(modulus, after, left):
            depth = push_work(arena, tables, join(arena, tables, text, tail), depth)
        if to_come >= 0 or left > 0:
            depth = push_work(arena, tables, digit_then(arena, tables, text, node, after, following, tail), depth)
    return depth


@inner
def digit_then(arena, tables, text, node, remainder, to_come, tail):
    """The continuation of `text`, what is left of a MULTIPLE behind it, and `tail`; FAIL when it cannot be completed."""
    rest = intern_node(arena, tables, wide(Kind.MULTIPLE), wide(arena[tables.a + REC * node]), remainder, to_come)
    if arena[tables.size + REC * rest] == UNKNOWN:
        arena[tables.size + REC * rest], arena[tables.cost + REC * rest] = digits_needed(arena, tables, rest)
    return wide(FAIL) if arena[tables.size + REC * rest] >= INFINITE else join(arena, tables, text, join(arena, tables, rest, tail))
