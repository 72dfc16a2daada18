"""Fronts: stacks as a graph, for grammars in which one text leads to many of them.

A *front* says how a continuation may begin, as far as its stack goes: the parts that may be entered next, and for each of them
one tail, the union of all that may come behind it. Parts that may be empty are passed over, and none is entered:

    x? y? A, where A begins with x or y or ends      x, behind it y? A       y, behind it A       may end

A tail that was reached by passing over a part that may be empty says no more than the tail before it and is left out, so the
front of a deep stack is as short as the grammar. Fronts are to a set of stacks what the transitions of a deterministic
automaton are to a set of words (Büchi 1964: the stacks behind a text are a regular set), so one continuation contains
another one if all that the fronts of the other allow is allowed by its own, step by step (`contains`, a simulation as
Hopcroft and Karp 1971 have it). What is found out in a comparison is noted, and a state keeps only what nothing else contains.

A grammar is read in this way if the plain way was seen to grow with the text (runtime/growth.py), and if it has no parts but
characters, literals, sequences, alternatives, repetitions and calls (`GRAPH_KINDS`).

Functions that need a front which is not made return it, negative, and are called again: nothing here calls itself.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import BodyId, NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from ..numba_support.record_access import part
from ..numba_support.records import Record, Words
from ..numba_support.sets import sort_unique
from .closures import ENDLESS, HEAD, expand, reads_bytes
from .nodes import EMPTY, FAIL, NO_BODY, after_one_copy, head_of, join, mix, push_work, wide
from .tables import Fault, Tables
from .unions import either

GRAPH_KINDS = (Kind.FAIL, Kind.EMPTY, Kind.CLASS, Kind.LITERAL, Kind.SEQ, Kind.ALT, Kind.REPEAT, Kind.CALL)
YES, NO, UNSURE = 1, 0, 2  # of an answer; a negative one is a continuation whose front has to be made first
_MOST_PAIRS = 1 << 14  # of a comparison
_FACTS = 1 << 18  # pairs of continuations of which is noted whether one contains the other; what is lost is looked for again
_MOST_COMPARED = 64  # continuations of a union with which each of them is compared: the newest
_DEEPEST = 256  # fronts that wait for each other
_NOBODY = -1


class Front(Record):
    """How a continuation may begin. Its ways follow in `pool`."""

    accept: int  # 1 when it may be empty
    longest: int  # parts of its longest stack, ENDLESS without a bound
    length: int  # ways


class Way(Record):
    """A part that may be entered."""

    part: NodeId
    tail: NodeId  # all that may come behind it
    may_miss: int  # 1 when all of `tail` is also reached without the part


class Pair(Record):
    """What is compared: whether `larger` contains `smaller`."""

    larger: NodeId
    smaller: NodeId
    cause: int  # number of the pair that asked for it


class Slot(Record):
    """Of a hash table of pairs."""

    epoch: int  # of the comparison
    number: int


_FRONT_WORDS, _WAY_WORDS = Front.SIZE, Way.SIZE
_FACT_WORDS = 2 * _FACTS
_PAIR, _SLOT = Pair.SIZE, Slot.SIZE
_SLOTS = 2 * _MOST_PAIRS
_PAIR_WORDS = _PAIR * _MOST_PAIRS
FRONT_FACTS = _FACT_WORDS + _PAIR_WORDS + _SLOT * _SLOTS  # words of the table `contained`
front_at = part(Front)
way_at = part(Way)
pair_at = part(Pair)
slot_at = part(Slot)


@inner
def front_of(m: Tables, continuation: NodeId) -> Front:
    return front_at(m.pool + m.nodes[continuation].front)


@inner
def way_of(m: Tables, continuation: NodeId, number: int) -> Way:
    return way_at(m.pool + m.nodes[continuation].front + _FRONT_WORDS + _WAY_WORDS * number)


@inner
def tail_behind(m: Tables, continuation: NodeId, part: NodeId) -> NodeId:
    """What may come behind a part of the front of a continuation, FAIL where it does not begin with the part."""
    for k in range(front_of(m, continuation).length):
        way = way_of(m, continuation, k)
        if way.part == part:
            return way.tail
    return FAIL


# -- comparisons --------------------------------------------------------------------------------------------------------


@inner
def pair_of(m: Tables, number: int) -> Pair:
    return pair_at(m.contained + _FACT_WORDS + _PAIR * number)


@inner
def fact_at(m: Tables, larger: NodeId, smaller: NodeId) -> Words:
    return m.contained + 2 * (mix(larger, smaller, 0, 0) & (_FACTS - 1))


@inner
def note_fact(m: Tables, larger: NodeId, smaller: NodeId, answer: int) -> None:
    fact = fact_at(m, larger, smaller)
    fact[0], fact[1] = larger, (smaller if answer == YES else -smaller)


@inner
def glance(m: Tables, larger: NodeId, smaller: NodeId) -> int:
    """Whether a continuation contains another one, as far as it shows at first sight."""
    if larger == smaller:
        return YES
    if m.nodes[larger].size > m.nodes[smaller].size:
        return NO
    fact = fact_at(m, larger, smaller)
    if fact[0] == larger and abs(fact[1]) == smaller:
        return YES if fact[1] > 0 else NO
    if m.nodes[larger].front == 0:
        return -larger
    if m.nodes[smaller].front == 0:
        return -smaller
    ours, theirs = front_of(m, larger), front_of(m, smaller)
    if ours.longest < theirs.longest or ours.accept < theirs.accept or ours.length < theirs.length:
        return NO
    part = larger
    while m.nodes[part].kind == Kind.EITHER:
        if m.nodes[part].a == smaller or m.nodes[part].b == smaller:
            return YES
        part = m.nodes[part].b
    return UNSURE


@inner
def contains_stacks(m: Tables, larger: NodeId, smaller: NodeId) -> int:
    """Whether all stacks of `smaller` are stacks of `larger`; NO as well after too many pairs."""
    answer = glance(m, larger, smaller)
    if answer != UNSURE:
        return answer
    m.n.epoch += 1
    end = put(m, larger, smaller, _NOBODY, 0)
    at = 0
    while at < end:
        pair = pair_of(m, at)
        ours, theirs = wide(pair.larger), wide(pair.smaller)
        m.n.parts += 1
        is_union = m.nodes[theirs].kind == Kind.EITHER
        count = 2 if is_union else front_of(m, theirs).length
        for k in range(count):
            first, second = ours, theirs
            if is_union:
                second = wide(m.nodes[theirs].a if k == 0 else m.nodes[theirs].b)
            else:
                way = way_of(m, theirs, k)
                first, second = wide(tail_behind(m, ours, way.part)), wide(way.tail)
            answer = NO if first == FAIL else glance(m, first, second)
            if answer < 0:
                return answer
            if answer == NO:
                while at >= 0:
                    pair = pair_of(m, at)
                    note_fact(m, pair.larger, pair.smaller, NO)
                    at = wide(pair.cause)
                return NO
            if answer == UNSURE:
                if end == _MOST_PAIRS:
                    note_fact(m, larger, smaller, NO)
                    return NO
                end = put(m, first, second, at, end)
        at += 1
    for k in range(end):
        pair = pair_of(m, k)
        note_fact(m, pair.larger, pair.smaller, YES)
    return YES


@inner
def put(m: Tables, larger: NodeId, smaller: NodeId, cause: int, end: int) -> int:
    """Put a pair at the end of those of a comparison, unless it is among them; returns the new end."""
    slots = m.contained + _FACT_WORDS + _PAIR_WORDS
    slot = mix(larger, smaller, 0, 0) & (_SLOTS - 1)
    while True:
        place = slot_at(slots + _SLOT * slot)
        if place.epoch != m.n.epoch:
            break
        pair = pair_of(m, place.number)
        if pair.larger == larger and pair.smaller == smaller:
            return end
        slot = (slot + 1) & (_SLOTS - 1)
    place.epoch, place.number = m.n.epoch, end
    pair = pair_of(m, end)
    pair.larger, pair.smaller, pair.cause = larger, smaller, cause
    return end + 1


# -- unions -------------------------------------------------------------------------------------------------------------


@inner
def flatten(m: Tables, start: int, count: int) -> int:
    """Put the parts of unions among items[start : start + count] in their place, sorted and each once; returns their number."""
    k = 0
    while k < count:
        node = m.items[start + k]
        if m.nodes[node].kind != Kind.EITHER:
            k += 1
        elif start + count >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        else:
            m.items[start + k], m.items[start + count] = m.nodes[node].a, m.nodes[node].b
            count += 1
    m.n.parts += count
    return sort_unique(m.items + start, count) if count > 1 else count


@inner
def drop_contained(m: Tables, start: int, count: int, may_ask: int) -> int:
    """Drop those of items[start : start + count] that others of them contain; returns how many are left, or a front that has to be
    made first: then those dropped so far are FAIL. may_ask: 0 to take what is not known for NO."""
    items, left = m.items + start, 0
    for i in range(count):
        if items[i] == FAIL:
            continue
        m.n.parts += min(count, _MOST_COMPARED) >> 3
        for j in range(count - 1, max(count - _MOST_COMPARED, 0) - 1, -1):
            if j == i or items[j] == FAIL:
                continue
            answer = contains_stacks(m, items[j], items[i])
            if answer < 0 and may_ask == 1:
                return answer
            if answer == YES:
                items[i] = FAIL
                break
    for i in range(count):
        if items[i] != FAIL:
            items[left] = items[i]
            left += 1
    return left


@inner
def chain_of(m: Tables, start: int, count: int) -> NodeId:
    """The union of items[start : start + count], which are no unions. The oldest is the last, so that unions share it."""
    out = m.items[start]
    for k in range(1, count):
        if m.n.fault == Fault.NONE:
            out = either(m, m.items[start + k], out)
    return out


@inner
def union_of_two(m: Tables, left: NodeId, right: NodeId, scratch: int, may_ask: int) -> NodeId:
    """The union of two continuations, or a front that has to be made first."""
    if left == right:
        return left
    if scratch + 2 > m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return FAIL
    m.items[scratch], m.items[scratch + 1] = left, right
    count = flatten(m, scratch, 2)
    if m.n.fault != Fault.NONE:
        return FAIL
    count = drop_contained(m, scratch, count, may_ask)
    return NodeId(count) if count < 0 else chain_of(m, scratch, count)


@inner
def union_of_stacks(m: Tables, start: int, count: int) -> NodeId:
    """The union of the continuations items[start : start + count], which are overwritten. Uses `items` from there on."""
    count = flatten(m, start, count)
    left = -1
    while left < 0 and m.n.fault == Fault.NONE:
        left = drop_contained(m, start, count, 1)
        if left < 0:
            know_front(m, NodeId(-left), start + count)
    return chain_of(m, start, left) if m.n.fault == Fault.NONE else FAIL


# -- fronts -------------------------------------------------------------------------------------------------------------


@inner
def know_front(m: Tables, continuation: NodeId, scratch: int) -> None:
    """Make the front of a continuation, and first those that it asks for. Uses `items` from `scratch` on."""
    if scratch + _DEEPEST > m.items_size:
        m.n.fault = Fault.FULL_ITEMS
        return
    waiting, top, may_ask = m.items + scratch, 0, 1
    while m.nodes[continuation].front == 0 and m.n.fault == Fault.NONE:
        if top == 0:
            waiting[0], top = continuation, 1
        node = wide(waiting[top - 1])
        below, wanted = FAIL, FAIL
        if m.nodes[node].front == 0:
            wanted = below = wide(first_below(m, node))
            if below == FAIL:
                wanted, may_ask = NodeId(-make_front(m, node, scratch + _DEEPEST, may_ask)), 1  # a front that may not ask is made
        if wanted == FAIL:
            top -= 1
            continue
        k = top - 1
        while k >= 0 and waiting[k] != wanted:
            k -= 1
        if k >= 0:  # it waits itself for what has asked for it
            top, may_ask = k + 1, 0
        elif top < _DEEPEST:
            waiting[top] = wanted
            top += 1
        elif below != FAIL:
            waiting[0], top = wanted, 1
        else:
            may_ask = 0


@inner
def first_below(m: Tables, node: NodeId) -> NodeId:
    """A continuation whose front the front of `node` is made of, and which has none yet; FAIL when there is none."""
    kind = m.nodes[node].kind
    if kind == Kind.EITHER:
        if m.nodes[m.nodes[node].a].front == 0:
            return m.nodes[node].a
        return m.nodes[node].b if m.nodes[m.nodes[node].b].front == 0 else FAIL
    if node == EMPTY:
        return FAIL
    head, tail = head_of(m, node), (m.nodes[node].b if kind == Kind.SEQ else EMPTY)
    below = join(m, m.nodes[head].a, join(m, m.nodes[head].b, tail)) if m.nodes[head].kind == Kind.SEQ else tail
    return below if m.nodes[below].front == 0 else FAIL


@inner
def make_front(m: Tables, node: NodeId, scratch: int, may_ask: int) -> int:
    """Make the front of a continuation; those that `first_below` tells are made. Returns 0, or a front to be made first."""
    start = m.n.pool
    kind = m.nodes[node].kind
    front = front_at(m.pool + start)
    if start + _FRONT_WORDS > m.pool_size:
        m.n.fault = Fault.FULL_POOL
        return 0
    front.accept, front.longest, front.length = 0, 0, 0
    if node == EMPTY:
        front.accept = 1
    elif kind == Kind.EITHER:
        left, right = front_of(m, m.nodes[node].a), front_of(m, m.nodes[node].b)
        front.accept, front.longest = max(left.accept, right.accept), max(left.longest, right.longest)
        for k in range(left.length):
            way = way_of(m, m.nodes[node].a, k)
            add_way(m, start, way.part, way.tail, way.may_miss)
        wanted = add_ways(m, start, m.nodes[node].b, 0, scratch, may_ask)
        if wanted < 0:
            return wanted
    else:
        head, tail = head_of(m, node), (m.nodes[node].b if kind == Kind.SEQ else EMPTY)
        if m.nodes[head].kind == Kind.SEQ:
            below = join(m, m.nodes[head].a, join(m, m.nodes[head].b, tail))
            if m.n.fault == Fault.NONE:
                m.nodes[node].front = m.nodes[below].front
            return 0
        part, rest, copies, optional = head, tail, 1, (1 if m.nodes[head].size == 0 else 0)
        if m.nodes[head].kind == Kind.REPEAT:
            copies = ENDLESS if m.nodes[head].c < 0 else m.nodes[head].c
            part, rest = m.nodes[head].a, join(m, after_one_copy(m, head), tail)
            if m.n.fault != Fault.NONE:
                return 0
        front.longest = min(ENDLESS, copies + front_of(m, tail).longest)
        add_way(m, start, part, rest, optional)
        if optional == 1:
            front.accept = front_of(m, tail).accept
            wanted = add_ways(m, start, tail, 1, scratch, may_ask)
            if wanted < 0:
                return wanted
    if m.n.fault == Fault.NONE:
        m.n.pool = start + _FRONT_WORDS + _WAY_WORDS * front.length
        m.nodes[node].front = start
    return 0


@inner
def add_way(m: Tables, start: int, part: NodeId, tail: NodeId, may_miss: int) -> None:
    """Put a way at the end of the front that is being made at `start` of `pool`."""
    front = front_at(m.pool + start)
    at = start + _FRONT_WORDS + _WAY_WORDS * front.length
    if at + _WAY_WORDS > m.pool_size:
        m.n.fault = Fault.FULL_POOL
    elif m.nodes[part].size < INFINITE and m.nodes[tail].size < INFINITE:
        way = way_at(m.pool + at)
        way.part, way.tail, way.may_miss = part, tail, may_miss
        front.length += 1


@inner
def add_ways(m: Tables, start: int, continuation: NodeId, is_behind: int, scratch: int, may_ask: int) -> int:
    """Add the ways of a continuation to the front that is being made at `start` of `pool`. is_behind: 1 where it stands behind the
    first part of that front, and not beside it. Returns 0, or a front that has to be made first."""
    front = front_at(m.pool + start)
    count = front.length
    for k in range(front_of(m, continuation).length):
        way, known = way_of(m, continuation, k), -1
        for j in range(count):
            if way_at(m.pool + start + _FRONT_WORDS + _WAY_WORDS * j).part == way.part:
                known = j
        if known < 0:
            add_way(m, start, way.part, way.tail, way.may_miss)
        elif is_behind == 0 or way.may_miss == 0:
            ours = way_at(m.pool + start + _FRONT_WORDS + _WAY_WORDS * known)
            tail = union_of_two(m, wide(ours.tail), wide(way.tail), scratch, may_ask)
            if tail < 0 or m.n.fault != Fault.NONE:
                return tail
            ours.tail, ours.may_miss = tail, min(ours.may_miss, way.may_miss)
    return 0


# -- states -------------------------------------------------------------------------------------------------------------


@inner
def items_of_stacks(m: Tables, count: int) -> tuple[int, BodyId, int]:
    """Replace the continuations items[:count] by the items of the state in which any of them may come; returns (their number,
    the body class that it loops on, characters of it that may come)."""
    body, max_chars, end = NO_BODY, 0, 0
    stacks = union_of_stacks(m, 0, count)
    if m.n.fault == Fault.NONE:
        know_front(m, stacks, 0)
    if m.n.fault != Fault.NONE:
        return 0, body, max_chars
    for k in range(front_of(m, stacks).length):
        way = way_of(m, stacks, k)
        part, tail = wide(way.part), wide(way.tail)
        unit = m.nodes[part].body_class
        again = head_of(m, tail)
        if unit != NO_BODY and m.nodes[again].kind == Kind.REPEAT and m.nodes[again].a == part:
            copies = ENDLESS if m.nodes[again].c < 0 else 1 + m.nodes[again].c
            if copies > max_chars:
                body, max_chars = unit, copies
        end, unit, copies = enter(m, part, tail, end)
        if copies > max_chars:
            body, max_chars = unit, copies
        if m.n.fault != Fault.NONE:
            return 0, body, max_chars
    end = one_a_leaf(m, end)
    if front_of(m, stacks).accept == 1:
        if end >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return 0, body, max_chars
        m.items[end] = EMPTY
        end += 1
    return end, body, max_chars


@inner
def enter(m: Tables, part: NodeId, tail: NodeId, count: int) -> tuple[int, BodyId, int]:
    """Append what `part` then `tail` begins with to items[:count], as far as it is inside of the part; what begins behind it are
    other ways. Returns (their new number, body class that is repeated at the beginning, characters of it)."""
    m.n.epoch += 1
    epoch, body, max_chars = m.n.epoch, NO_BODY, 0
    m.nodes[tail].marked_in = epoch
    depth, expanded = expand(m, part, tail, 0, 0), 0
    while depth > 0 and m.n.fault == Fault.NONE:
        depth, expanded = depth - 1, expanded + 1
        w = m.work[depth]
        if w & HEAD:  # above its tail
            depth -= 1
            head, rest = w & ~HEAD, m.work[depth]
        else:
            if m.nodes[w].marked_in == epoch:
                continue
            m.nodes[w].marked_in = epoch
            head, rest = head_of(m, w), (m.nodes[w].b if m.nodes[w].kind == Kind.SEQ else EMPTY)
        if m.nodes[head].size >= INFINITE or m.nodes[rest].size >= INFINITE:
            continue
        m.n.parts += 1
        kind = m.nodes[head].kind
        if reads_bytes(kind):
            if count >= m.items_size:
                m.n.fault = Fault.FULL_ITEMS
                break
            m.items[count] = join(m, head, rest)
            count += 1
        elif kind == Kind.SEQ:
            depth = expand(m, m.nodes[head].a, join(m, m.nodes[head].b, rest), depth, expanded)
        elif kind == Kind.ALT:
            for j in range(m.nodes[head].a, m.nodes[head].a + m.nodes[head].b):
                depth = expand(m, m.lists[j], rest, depth, expanded)
        elif kind == Kind.CALL:
            unit = m.nodes[head].b
            if unit != FAIL and m.nodes[unit].body_class != NO_BODY:
                body, max_chars = m.nodes[unit].body_class, ENDLESS
            depth = expand(m, m.rules[m.nodes[head].a], rest, depth, expanded)
        elif kind == Kind.REPEAT:
            copies = ENDLESS if m.nodes[head].c < 0 else m.nodes[head].c
            if m.nodes[m.nodes[head].a].body_class != NO_BODY and copies > max_chars:
                body, max_chars = m.nodes[m.nodes[head].a].body_class, copies
            if m.nodes[head].b == 0:
                depth = push_work(m, rest, depth)
            depth = expand(m, m.nodes[head].a, join(m, after_one_copy(m, head), rest), depth, expanded)
        elif head == EMPTY:
            depth = push_work(m, rest, depth)
    return count, body, max_chars


@inner
def one_a_leaf(m: Tables, count: int) -> int:
    """Make one item of those in items[:count] that begin with the same leaf; returns how many are left. Characters of a body class
    have an item for each tail, since loop_context.py looks for the repetition directly behind them."""
    end = count  # of the items that are made
    for k in range(count):
        if m.items[k] == FAIL:
            continue
        leaf, found = wide(head_of(m, m.items[k])), 0
        for j in range(k, count):
            item = m.items[j]
            if item == FAIL or head_of(m, item) != leaf:
                continue
            if end + found >= m.items_size:
                m.n.fault = Fault.FULL_ITEMS
                return count
            m.items[end + found], m.items[j] = (m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY), FAIL
            found += 1
        tail = union_of_stacks(m, end, found)
        if m.n.fault != Fault.NONE:
            return count
        while m.nodes[leaf].body_class != NO_BODY and m.nodes[tail].kind == Kind.EITHER and end + 1 < m.items_size:
            m.items[end] = join(m, leaf, m.nodes[tail].a)
            end, tail = end + 1, wide(m.nodes[tail].b)
        if end >= m.items_size:
            m.n.fault = Fault.FULL_ITEMS
            return count
        m.items[end] = join(m, leaf, tail)
        end += 1
    for k in range(count, end):
        m.items[k - count] = m.items[k]
    return end - count
