"""Nodes: the expressions that the automaton is made of, hash-consed, with the size and the cost of each.

The grammar's nodes are *static*: compilation copies them into the arena (assembly.py). While the automaton runs it
makes more, mostly sequences (a leaf and a tail) and repetitions with fewer copies to come. Equal nodes are one node, so
nodes are compared by number. Every node made here knows two things at once:

    size    bytes of its shortest string, INFINITE when it has none
    cost    a number of tokens that suffices to spell one of its strings, INFINITE when the vocabulary cannot

The second half of the file opens bags (members in any order) and multiples (digits of a divisible number; see
divisors.py): it puts what they may begin with, each with what is then left, on the work list `work`, from which
closures are made (closures.py).

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..base.ids import BodyId, NodeId
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
from ..numba_support.records import Words
from .tables import UNKNOWN, Fault, Tables

FAIL, EMPTY = NodeId(0), NodeId(1)
NO_BODY = BodyId(-1)
NO_UNLISTED = FAIL  # instead of an UNLISTED node
SATURATED_COPIES, MAX_COPIES_BEGUN = (
    (1 << 31) - 1,
    1 << 20,
)  # more than anybody counts to; those that may have been begun, see counter_saturation.py
_SATURATION_BYTES = 32  # nearer ends are not looked for: only in vocabularies of short tokens would they be beyond reach

if TYPE_CHECKING:

    def wide(number: T) -> T: ...
else:
    wide = np.int64  # what is read from int32 arrays is widened, so that every function is compiled for one signature


T = TypeVar("T")


class Measure(IntEnum):
    """What of a node is added up."""

    SIZE = 0  # bytes
    COST = 1  # tokens


@inner
def measured(m: Tables, node: NodeId, measure: int) -> int:
    return m.nodes[node].size if measure == Measure.SIZE else m.nodes[node].cost


@inner
def mix(a: int, b: int, c: int, d: int) -> int:
    """A 32-bit hash of four words."""
    h = np.uint64(wide(a)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(wide(b))
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(wide(c))
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB) + np.uint64(wide(d))
    h = (h ^ (h >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h >> np.uint64(33))  # type: ignore[return-value]


@inner
def takes_too_much(m: Tables) -> bool:
    """Whether one byte of a text that is tried has taken so much by itself that it is given up; that is a fault then."""
    if m.n.most_parts == 0 or (m.n.parts <= m.n.most_parts and m.n.nodes <= m.n.most_nodes):
        return False
    m.n.fault = Fault.TOO_MANY_PARTS
    return True


@inner
def plus(a: int, b: int) -> int:
    """The sum of two sizes or costs. INFINITE plus anything is INFINITE; finite sums stay below it."""
    if a >= INFINITE or b >= INFINITE:
        return INFINITE
    return min(a + b, INFINITE - 1)


@inner
def times(count: int, a: int) -> int:
    """The size or cost of `count` copies of something of size or cost `a`."""
    if count == 0:
        return 0
    if a >= INFINITE:
        return INFINITE
    return min(count * a, INFINITE - 1)


@inner
def tokens_for_copies(count: int, stride: int) -> int:
    """Tokens for `count` copies when one token can spell up to `copies_per_token` of them."""
    return (count + stride - 1) // stride


# -- nodes --------------------------------------------------------------------------------------------------------------


@inner
def intern_node(m: Tables, kind: int, a: int, b: int, c: int) -> NodeId:
    """The node with this kind and these operands; it is made if there is none. Sets FULL_NODES and returns FAIL when
    there is no room. Sequences are made by `sequence`."""
    mask = m.node_hash_size - 1
    slot = mix(kind, a, b, c) & mask
    while m.node_hash[slot] != 0:
        i = m.node_hash[slot]
        if m.nodes[i].kind == kind and m.nodes[i].a == a and m.nodes[i].b == b and m.nodes[i].c == c:
            return i
        slot = (slot + 1) & mask
    if 2 * (m.n.nodes - m.n.num_sequences) >= m.node_hash_size:
        m.n.fault = Fault.FULL_NODES
        return FAIL
    return new_node(m, m.node_hash + slot, kind, a, b, c)


@inner
def new_node(m: Tables, place: Words, kind: int, a: int, b: int, c: int) -> NodeId:
    """A new node; its number is written to `place`, a free slot of a hash table. Returns FAIL on a fault."""
    i = NodeId(m.n.nodes)
    if i >= m.nodes_size:
        m.n.fault = Fault.FULL_NODES
        return FAIL
    m.n.nodes = i + 1
    place[0] = i
    node = m.nodes[i]
    node.kind, node.a, node.b, node.c = kind, a, b, c
    node.size = node.cost = UNKNOWN  # whoever made it finds them out; of a PRODUCT, `search`
    node.body_class, node.copies_per_token = NO_BODY, 1
    node.closure = node.front = node.marked_in = node.shared = node.may_saturate = node.searched_in = node.copies_begun = 0
    node.entry_product = node.first_candidate = node.next_candidate = FAIL
    return i


@inner
def sequence(m: Tables, head: NodeId, tail: NodeId) -> NodeId:
    """The SEQ node of `head` and `tail`, with its size and cost. `join` is for operands that may be empty."""
    is_static = head < m.n.num_static and tail < m.n.num_static
    node = intern_node(m, Kind.SEQ, head, tail, 0) if is_static else intern_sequence(m, head, tail)
    if m.nodes[node].size == UNKNOWN:
        m.nodes[node].size = plus(m.nodes[head].size, m.nodes[tail].size)
        apart = plus(m.nodes[head].cost, m.nodes[tail].cost)
        m.nodes[node].cost = min(apart, cost_of_one_more(m, head, tail))
        m.nodes[node].may_saturate = m.nodes[head].may_saturate | m.nodes[tail].may_saturate
    return node


@inner
def intern_sequence(m: Tables, head: NodeId, tail: NodeId) -> NodeId:
    """The SEQ node of two nodes at least one of which is not static; so the SEQ node is not static either. Such nodes
    have a hash table of their own. Sets FULL_SEQUENCES and returns FAIL when there is no room."""
    mask = m.sequence_hash_size - 1
    slot = mix(Kind.SEQ, head, tail, 0) & mask
    while m.sequence_hash[slot] != 0:
        i = m.sequence_hash[slot]
        if m.nodes[i].a == head and m.nodes[i].b == tail:
            return i
        slot = (slot + 1) & mask
    if 2 * m.n.num_sequences >= m.sequence_hash_size:
        m.n.fault = Fault.FULL_SEQUENCES
        return FAIL
    i = new_node(m, m.sequence_hash + slot, Kind.SEQ, head, tail, 0)
    if i != FAIL:
        m.n.num_sequences += 1
    return i


@inner
def repetition(m: Tables, body: NodeId, low: int, high: int) -> NodeId:
    """The REPEAT node of `low` to `high` copies of `body`, with its size and cost; high: UNBOUNDED when it has no end."""
    node = intern_node(m, Kind.REPEAT, body, low, high)
    if m.nodes[node].size == UNKNOWN:
        m.nodes[node].size = times(low, m.nodes[body].size)
        m.nodes[node].cost = times(tokens_for_copies(low, m.nodes[body].copies_per_token), m.nodes[body].cost)
        m.nodes[node].may_saturate = may_saturate(m, node)
    return node


@inner
def may_saturate(m: Tables, node: NodeId) -> int:
    """1 for a repetition whose end may be farther away than a token reaches, so that counter_saturation.py may replace it; else
    0."""
    body, high = m.nodes[node].a, m.nodes[node].c
    if m.nodes[body].body_class == NO_BODY:
        return 1 if high > 2 else 0
    return 1 if high * m.nodes[body].size >= _SATURATION_BYTES else 0


@inner
def literal(m: Tables, start: int, length: int) -> NodeId:
    """The LITERAL node of `length` bytes of the table `text` from `start` on."""
    node = intern_node(m, Kind.LITERAL, start, length, 0)
    if m.nodes[node].size == UNKNOWN:
        m.nodes[node].size, m.nodes[node].cost = length, m.text_cost[start]
    return node


@inner
def cost_of_one_more(m: Tables, head: NodeId, rest: NodeId) -> int:
    """The cost of the character `head` and then `rest`, if `rest` goes on with a repetition of the same characters,
    because one token may spell several of them; else INFINITE.

    Without this a repetition would cost more after its first character than before it, and no token would bring its end
    nearer.
    """
    if m.nodes[head].kind != Kind.CLASS or m.nodes[head].body_class == NO_BODY:
        return INFINITE
    part, behind = head_of(m, rest), (m.nodes[rest].b if m.nodes[rest].kind == Kind.SEQ else EMPTY)
    if m.nodes[part].kind != Kind.EITHER:
        return cost_of_copies(m, head, rest, EMPTY)
    cost = INFINITE
    while m.nodes[part].kind == Kind.EITHER:
        cost, part = min(cost, cost_of_copies(m, head, m.nodes[part].a, behind)), m.nodes[part].b
    return min(cost, cost_of_copies(m, head, part, behind))


@inner
def cost_of_copies(m: Tables, head: NodeId, rest: NodeId, behind: NodeId) -> int:
    """`cost_of_one_more` for a `rest` that begins with no union, and what comes `behind` it."""
    if rest == EMPTY:
        rest, behind = behind, EMPTY
    again = head_of(m, rest)
    if m.nodes[again].kind != Kind.REPEAT or m.nodes[m.nodes[again].a].body_class != m.nodes[head].body_class:
        return INFINITE
    behind_it = m.nodes[m.nodes[rest].b].cost if m.nodes[rest].kind == Kind.SEQ else 0
    tokens = tokens_for_copies(1 + m.nodes[again].b, m.nodes[head].copies_per_token)
    return plus(times(tokens, m.nodes[head].cost), plus(behind_it, m.nodes[behind].cost))


@inner
def join(m: Tables, head: NodeId, tail: NodeId) -> NodeId:
    """The continuation `head` then `tail`, where either may be EMPTY or FAIL.

    A short sequence in `head` is taken apart, and repetitions in a row are added up, so that a continuation has one
    spelling only, and states that mean the same are the same.
    """
    if tail == EMPTY or head == FAIL:
        return head
    if head == EMPTY or tail == FAIL:
        return tail
    if m.nodes[head].kind == Kind.SEQ:
        first, second = m.nodes[head].a, m.nodes[head].b
        if m.nodes[second].kind != Kind.SEQ:
            return sequence(m, first, stacked(m, second, tail))
    return stacked(m, head, tail)


@inner
def stacked(m: Tables, head: NodeId, tail: NodeId) -> NodeId:
    """The sequence of `head`, which is none itself, and `tail`. Where two repetitions of one body meet they are one,
    with the sums of their bounds: nested calls of a rule that is a repetition say no more than one of them."""
    if m.nodes[head].kind != Kind.REPEAT:
        return sequence(m, head, tail)
    following = head_of(m, tail)
    body = m.nodes[head].a
    if m.nodes[following].kind != Kind.REPEAT or m.nodes[following].a != body or m.nodes[body].body_class != NO_BODY:
        return sequence(m, head, tail)
    low = m.nodes[head].b + m.nodes[following].b
    high, more = m.nodes[head].c, m.nodes[following].c
    if max(low, max(high, more)) >= MAX_COPIES_BEGUN:
        return sequence(m, head, tail)
    both = repetition(m, body, low, UNBOUNDED if high < 0 or more < 0 else high + more)
    return sequence(m, both, m.nodes[tail].b) if tail != following else both


@inner
def after_one_copy(m: Tables, node: NodeId) -> NodeId:
    """What is left of the repetition `node` after one more copy of its body."""
    body, low, high = m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
    if high == 1:
        return EMPTY
    if high > SATURATED_COPIES - MAX_COPIES_BEGUN:
        m.nodes[body].copies_begun = max(m.nodes[body].copies_begun, SATURATED_COPIES - high + 1)
    return repetition(m, body, max(low - 1, 0), high if high < 0 else high - 1)


@inner
def head_of(m: Tables, item: NodeId) -> NodeId:
    """The node that a continuation begins with."""
    return m.nodes[item].a if m.nodes[item].kind == Kind.SEQ else item


@inner
def push_work(m: Tables, node: NodeId, depth: int) -> int:
    """Put a node on the work list `work` at `depth`; returns the new depth."""
    if depth >= m.work_size:
        m.n.fault = Fault.FULL_WORK
        return depth
    m.work[depth] = node
    return depth + 1


@inner
def rehash_nodes(m: Tables, nodes: bool, sequences: bool) -> None:
    """Enter all nodes that are ever looked up into `node_hash` (if `nodes`) and `sequence_hash` (if `sequences`), which
    have to be all zero."""
    static = m.n.num_static
    for number in range(2 if nodes else static, m.n.nodes):
        i = NodeId(number)
        k, a, b = m.nodes[i].kind, m.nodes[i].a, m.nodes[i].b
        if k == Kind.SEQ and (a >= static or b >= static):
            if sequences:
                insert(m.sequence_hash, m.sequence_hash_size, mix(k, a, b, 0), i)
        elif nodes and (k == Kind.SEQ or k == Kind.REPEAT or k == Kind.LITERAL or k >= Kind.BAG):
            insert(m.node_hash, m.node_hash_size, mix(k, a, b, m.nodes[i].c), i)


@inner
def insert(table: Words, size: int, key: int, i: int) -> None:
    """Enter the number `i` under `key` in the open hash table of `size` entries at `table`."""
    slot = key & (size - 1)
    while table[slot] != 0:
        slot = (slot + 1) & (size - 1)
    table[slot] = i


# -- bags ---------------------------------------------------------------------------------------------------------------


@inner
def upper(m: Tables, part: NodeId) -> int:
    """How many members of one part a bag may still have, NO_BOUND when there is no bound; 0 when no such member has a
    finite string."""
    if m.nodes[m.nodes[part].a].size >= INFINITE:
        return 0
    return NO_BOUND if m.nodes[part].c < 0 else m.nodes[part].c


@inner
def bag_bounds(m: Tables, bag: NodeId) -> tuple[int, int]:
    """(least, most): the sums of the bounds of a bag's parts."""
    least = most = 0
    tally = m.nodes[bag].a
    while tally != FAIL:
        part = m.nodes[tally].a
        least, most = least + m.nodes[part].b, most + upper(m, part)
        tally = m.nodes[tally].b
    return least, most


@inner
def least_sum(m: Tables, bag: NodeId, measures: int) -> int:
    """The least that a bag takes, as one of `Measure`: every part as often as it must come, and the cheapest parts as often as
    members are missing."""
    total, missing = 0, m.nodes[bag].b
    tally = m.nodes[bag].a
    while tally != FAIL:
        part = m.nodes[tally].a
        total, missing = plus(total, measured(m, part, measures)), missing - m.nodes[part].b
        tally = m.nodes[tally].b
    price = -1
    while missing > 0:
        dearer, room = INFINITE, 0  # the next price, and how many members are to be had for it
        tally = m.nodes[bag].a
        while tally != FAIL:
            part = m.nodes[tally].a
            each = measured(m, m.nodes[part].a, measures)
            if price < each <= dearer:
                room = upper(m, part) - m.nodes[part].b + (room if each == dearer else 0)
                dearer = each
            tally = m.nodes[tally].b
        if dearer >= INFINITE:
            return INFINITE
        total = plus(total, times(min(room, missing), dearer))
        price, missing = dearer, missing - room
    return total


@inner
def open_bag(m: Tables, bag: NodeId, tail: NodeId, depth: int) -> int:
    """Put on the work list what a bag may begin with, each followed by the bag that is left and `tail`; `tail` itself,
    too, if the bag may end here. Returns the new depth."""
    least, most = bag_bounds(m, bag)
    high = NO_TOTAL if m.nodes[bag].c < 0 else m.nodes[bag].c
    if least == 0 and m.nodes[bag].b == 0:
        depth = push_work(m, tail, depth)
    tally = m.nodes[bag].a
    while tally != FAIL and m.n.fault == Fault.NONE:
        part = m.nodes[tally].a
        if upper(m, part) > 0 and (m.nodes[part].b > 0 or high > least):
            rest = bag_after_member(m, bag, tally, depth)
            depth = push_work(m, join(m, m.nodes[part].a, join(m, rest, tail)), depth)
        tally = m.nodes[tally].b
    return depth


@inner
def bag_after_member(m: Tables, bag: NodeId, taken: NodeId, depth: int) -> NodeId:
    """The bag that is left after one more member of the part at tally `taken`, with tight bounds (see
    `Grammar._tight_bag`).

    From `depth` on the work list holds the tallies meanwhile, because a list of them is made from its end.
    """
    least, most = bag_bounds(m, bag)
    part = m.nodes[taken].a
    least, most = least - min(m.nodes[part].b, 1), most - (0 if m.nodes[part].c < 0 else 1)
    low = max(m.nodes[bag].b - 1, least)
    high = most if m.nodes[bag].c < 0 else min(m.nodes[bag].c - 1, most)
    slack = (high if high < NO_BOUND else NO_TOTAL) - least
    top, tally = depth, m.nodes[bag].a
    while tally != FAIL:
        top = push_work(m, tally, top)
        if m.n.fault != Fault.NONE:
            return FAIL
        tally = m.nodes[tally].b
    out, count, total_least, total_most, last = FAIL, 0, 0, 0, FAIL
    while top > depth:
        top -= 1
        tally = m.work[top]
        part = m.nodes[tally].a
        a, b = m.nodes[part].b, upper(m, part)
        if tally == taken:
            a, b = max(a - 1, 0), b - (0 if b >= NO_BOUND else 1)
        a, b = max(a, low - (most - b)), min(b, a + slack)
        if b > 0:
            last = repetition(m, m.nodes[part].a, a, b if b < NO_BOUND else UNBOUNDED)
            out = intern_node(m, Kind.TALLY, last, out, 0)
            count, total_least, total_most = count + 1, total_least + a, total_most + b
    if count < 2:
        return last if count == 1 else EMPTY
    low, high = (0 if low <= total_least else low), (UNBOUNDED if high >= total_most else high)
    made = intern_node(m, Kind.BAG, out, low, high)
    if m.nodes[made].size == UNKNOWN:
        m.nodes[made].size, m.nodes[made].cost = least_sum(m, made, Measure.SIZE), least_sum(m, made, Measure.COST)
    return made


# -- multiples ----------------------------------------------------------------------------------------------------------


@inner
def digits_needed(m: Tables, node: NodeId) -> tuple[int, int]:
    """(size, cost) of a MULTIPLE or a FRACTION."""
    step, remainder, to_come = m.lists + m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
    modulus, places, dearest = step[MultipleRow.MODULUS], step[MultipleRow.PLACES], 0
    if m.nodes[node].kind == Kind.FRACTION:
        size = wide(fraction_size(modulus, remainder, to_come))
    else:
        size = wide(whole_size(modulus, places, remainder, to_come // COUNTS, to_come % COUNTS))
    for k in range(MultipleRow.POINT, MULTIPLE_ROW_WORDS):
        dearest = max(dearest, m.nodes[step[k]].cost)
    return size, (size if dearest <= 1 or size == 0 else INFINITE)


@inner
def open_multiple(m: Tables, node: NodeId, tail: NodeId, depth: int) -> int:
    """Put on the work list the digits, or the point, that a MULTIPLE may begin with, each followed by what is left of
    it and `tail`; `tail` itself, too, if the number may end here. Returns the new depth."""
    step = m.lists + m.nodes[node].a
    remainder, low, high = m.nodes[node].b, m.nodes[node].c // COUNTS, m.nodes[node].c % COUNTS
    modulus, places = step[MultipleRow.MODULUS], step[MultipleRow.PLACES]
    if low == 0:
        if is_divisible(modulus, remainder, places):
            depth = push_work(m, tail, depth)
        if places > 0:
            fraction = digits_to_come(m, Kind.FRACTION, node, remainder, places)
            depth = push_work(m, digit_then(m, step[MultipleRow.POINT], fraction, tail), depth)
    if high == 0:
        return depth
    for digit in range(10):
        after = (10 * remainder + digit) % modulus
        rest = digits_to_come(m, Kind.MULTIPLE, node, after, max(low - 1, 0) * COUNTS + high - 1)
        depth = push_work(m, digit_then(m, step[MultipleRow.DIGIT + digit], rest, tail), depth)
    return depth


@inner
def open_fraction(m: Tables, node: NodeId, tail: NodeId, depth: int) -> int:
    """`open_multiple` for a FRACTION, whose last digit is not 0."""
    step = m.lists + m.nodes[node].a
    modulus, left = step[MultipleRow.MODULUS], m.nodes[node].c - 1  # left: behind the digit to be read now
    for digit in range(10):
        after, text = (10 * m.nodes[node].b + digit) % modulus, step[MultipleRow.DIGIT + digit]
        if digit > 0 and is_divisible(modulus, after, left):
            depth = push_work(m, join(m, text, tail), depth)
        if left > 0:
            rest = digits_to_come(m, Kind.FRACTION, node, after, left)
            depth = push_work(m, digit_then(m, text, rest, tail), depth)
    return depth


@inner
def digits_to_come(m: Tables, kind: int, node: NodeId, remainder: int, to_come: int) -> NodeId:
    """The MULTIPLE or FRACTION with the step of `node`, with its size and cost."""
    made = intern_node(m, kind, m.nodes[node].a, remainder, to_come)
    if m.nodes[made].size == UNKNOWN:
        m.nodes[made].size, m.nodes[made].cost = digits_needed(m, made)
    return made


@inner
def digit_then(m: Tables, text: NodeId, rest: NodeId, tail: NodeId) -> NodeId:
    """The continuation of `text`, the digits `rest`, and `tail`; FAIL when it cannot be completed."""
    return FAIL if m.nodes[rest].size >= INFINITE else join(m, text, join(m, rest, tail))
