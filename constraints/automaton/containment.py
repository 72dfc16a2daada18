"""Containment: continuations that say no more than another one beside them, and are left out.

In an ambiguous grammar one text leads to many stacks. Most differ only in frames that may be empty: after n letters
`S = "a" S? S?` has stacks of 0 to n frames `S?`, and the deepest can finish as all the others can. `contains` finds that
by the shapes of two continuations, without looking at their strings:

    A contains A                     A | B contains what A or B contain
    F A contains A                   if F may be empty
    X{a,b} A contains X{c,d} B       if a <= c, d <= b, and A contains B
    X* A contains X B                if X* A contains B

    A contains B | C                 if A contains B, and C

Stacks grow by a frame at a time, so their unions are compared when the unions below them have been: what was found of unions is
noted in the table `contained`, and a comparison ends there.

What it does not see in a few steps it denies, so states may keep more than they need, and never lose a string. A part
that marks the end of a segment is empty too, but parsers ask for it: such a frame is not passed over.

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..numba_support.record_access import part
from ..numba_support.records import Record, Words, bits, several
from .counted_tables import is_table
from .nodes import EMPTY, FAIL, NO_BODY, head_of, join, mix, repetition
from .tables import Fault, Tables

_MOST_STEPS = 24  # of one comparison
_MOST_COMPARED = 96  # pairs in one set
_FEW = 16  # continuations that are all compared with each other
_MOST_UNIONS = 4  # comparisons with unions, inside of one another
_PAIRS = 4 * _MOST_STEPS + 2  # words: every step puts two pairs at most at the end
CONTAINED = 4096  # words of the table of comparisons of unions


class Comparison(Record):
    """One that is under way, in `work`."""

    pairs: Words = several(_PAIRS)  # (larger, smaller) of what is left to compare; one of them has to hold
    at: int  # of the pair that comes next
    end: int  # of the pairs
    larger: NodeId
    smaller: NodeId
    others: NodeId  # the parts of the union that come next, or EMPTY


class Noted(Record):
    """The answer to a comparison that was made."""

    larger: NodeId
    smaller: NodeId = bits(31)
    holds: int = bits(1, above=31)


_WORDS, _NOTED = Comparison.SIZE, Noted.SIZE
_SCRATCH = _MOST_UNIONS * _WORDS
comparison_at, noted_at = part(Comparison), part(Noted)


@inner
def without_contained(m: Tables, items: Words, count: int, scratch: int) -> int:
    """Drop those of the continuations items[:count] that others of them contain; returns how many are left. Where there are more
    than a few, only those are compared that begin with the same part. Uses `work` from `scratch` on."""
    heads = m.work + scratch + _SCRATCH  # read together: every one is compared with nearly all others
    if count < 2 or m.n.calls == 0 or scratch + _SCRATCH + count > m.work_size:
        return count
    shared, compared, left = mark_shared(m, items, count, True), 0, 0
    if shared == 0 and count > _FEW:
        return count
    for i in range(count):
        heads[i] = head_of(m, items[i])
    for i in range(count):
        item, first, is_contained = items[i], heads[i], False
        if count <= _FEW or m.nodes[first].marked_in == shared:
            for j in range(count):
                if j == i or heads[j] == FAIL or count > _FEW and heads[j] != first:
                    continue
                compared += 1
                if compared > _MOST_COMPARED:
                    break
                other = items[j]
                if is_worth_comparing(m, other, item) and contains(m, other, item, scratch) and (j < i or other != item):
                    is_contained = True
                    break
        if compared > _MOST_COMPARED:
            break
        if is_contained:
            items[i], heads[i] = FAIL, FAIL
    for i in range(count):
        if items[i] != FAIL:
            items[left] = items[i]
            left += 1
    return left


@inner
def mark_shared(m: Tables, items: Words, count: int, with_characters: bool) -> int:
    """Mark the parts with which several of the continuations items[:count] begin; those that are characters of a body class
    only if `with_characters`. Returns the epoch that is in their field `marked_in`, 0 if there is no such part."""
    m.n.epoch += 3
    shared, found = m.n.epoch - 1, 0
    for i in range(count):
        head = head_of(m, items[i])
        if head == EMPTY or m.nodes[head].body_class != NO_BODY and not with_characters:
            continue
        if m.nodes[head].marked_in >= shared - 1:
            m.nodes[head].marked_in = found = shared
        else:
            m.nodes[head].marked_in = shared - 1
    return found


@inner
def contains(m: Tables, larger: NodeId, smaller: NodeId, scratch: int) -> bool:
    """Whether the shape of `larger` shows that it has all strings of `smaller`. Pairs of rests are compared breadth first,
    as either way on may be endless; one of them has to hold. Of a pair with a union all parts have to hold: that is a comparison
    inside of the comparison, which lies behind it in `work`."""
    if is_noted(m, larger, smaller, 0):
        return False
    level, left = 0, _MOST_STEPS
    begin(m, comparison_at(m.work + scratch), larger, smaller)
    while True:
        here = comparison_at(m.work + scratch + _WORDS * level)
        at, end = here.at, here.end
        if at == end or left == 0 or m.n.fault != Fault.NONE:
            if level == 0 or at != end:
                note(m, larger, smaller, 0)
                return False
            level -= 1
            continue
        left -= 1
        a, b = here.pairs[at], here.pairs[at + 1]
        here.at = at + 2
        holds = a == b or is_noted(m, a, b, 1)
        if not holds and m.nodes[b].kind == Kind.EITHER and may_contain(m, a, b):
            if level + 1 < _MOST_UNIONS:
                level += 1
                begin(m, comparison_at(m.work + scratch + _WORDS * level), a, b)
                continue
        elif not holds and may_contain(m, a, b):
            if b == EMPTY:  # all that is left is as short
                holds = True
            else:
                here.end = put_rests(m, here.pairs, a, b, end)
        while holds:
            if here.others != EMPTY:
                go_on(m, here, here.others)
                break
            if m.nodes[here.smaller].kind == Kind.EITHER:
                note(m, here.larger, here.smaller, 1)
            if level == 0:
                return True
            level -= 1
            here = comparison_at(m.work + scratch + _WORDS * level)


@inner
def is_worth_comparing(m: Tables, larger: NodeId, smaller: NodeId) -> bool:
    """Whether `contains` takes a first step, so that it may say yes: most continuations begin with something else."""
    if larger == smaller or m.nodes[larger].kind == Kind.EITHER or m.nodes[smaller].kind == Kind.EITHER:
        return True
    if not may_contain(m, larger, smaller):
        return False
    head = m.nodes[head_of(m, larger)]
    return smaller == EMPTY or head_of(m, larger) == head_of(m, smaller) or head.size == 0 or head.kind == Kind.REPEAT


@inner
def begin(m: Tables, here: Comparison, larger: NodeId, smaller: NodeId) -> None:
    """Begin a comparison: of a union, with its first part."""
    here.larger, here.smaller = larger, smaller
    go_on(m, here, smaller)


@inner
def go_on(m: Tables, here: Comparison, rest: NodeId) -> None:
    """Go on with the first of the parts that are left."""
    is_union = m.nodes[rest].kind == Kind.EITHER
    here.pairs[0], here.pairs[1] = here.larger, (m.nodes[rest].a if is_union else rest)
    here.others = m.nodes[rest].b if is_union else EMPTY
    here.at, here.end = 0, 2


@inner
def may_contain(m: Tables, larger: NodeId, smaller: NodeId) -> bool:
    """Whether it is worth looking: the end of a product, table or watch is an item of its own, and a size may not be known yet."""
    kind = m.nodes[head_of(m, larger)].kind
    is_boolean = kind == Kind.PRODUCT or is_table(kind) or kind == Kind.WATCH
    return not is_boolean and m.nodes[larger].size <= m.nodes[smaller].size


@inner
def put_rests(m: Tables, pairs: Words, a: NodeId, b: NodeId, end: int) -> int:
    """Put the pairs at the end of which one has to hold so that `a` contains `b`, which is no union; returns the new end."""
    if m.nodes[a].kind == Kind.EITHER:
        end = put_pair(pairs, m.nodes[a].a, b, end)
        return put_pair(pairs, m.nodes[a].b, b, end)
    head, first = head_of(m, a), head_of(m, b)
    behind = m.nodes[a].b if head != a else EMPTY
    rest = m.nodes[b].b if first != b else EMPTY
    if may_be_passed(m, head):
        end = put_pair(pairs, behind, b, end)
    if head == first or is_wider(m, head, first):
        end = put_pair(pairs, behind, rest, end)
    elif is_optional(m, head):
        body, high = m.nodes[head].a, m.nodes[head].c
        if body == first:
            end = put_pair(pairs, without_copies(m, head, behind, 1), rest, end)
        elif high >= 0 and is_optional(m, first) and m.nodes[first].a == body:
            most = m.nodes[first].c
            copies = high if most < 0 else min(high, most)
            a = without_copies(m, head, behind, copies)
            end = put_pair(pairs, a, without_copies(m, first, rest, copies), end)
    return end


@inner
def noted(m: Tables, larger: NodeId, smaller: NodeId) -> Noted:
    """Where it is noted whether a continuation contains another one."""
    return noted_at(m.contained + _NOTED * (mix(larger, smaller, 0, 0) % (CONTAINED // _NOTED)))


@inner
def is_noted(m: Tables, larger: NodeId, smaller: NodeId, holds: int) -> bool:
    """Whether it is known that a continuation contains another one, or that it does not."""
    found = noted(m, larger, smaller)
    return found.larger == larger and found.smaller == smaller and found.holds == holds and larger != FAIL


@inner
def note(m: Tables, larger: NodeId, smaller: NodeId, holds: int) -> None:
    """Note whether a continuation contains another one. What was noted in the same place is forgotten."""
    made = noted(m, larger, smaller)
    made.larger, made.smaller, made.holds = larger, smaller, holds


@inner
def put_pair(pairs: Words, larger: NodeId, smaller: NodeId, end: int) -> int:
    """Put a pair at the end of those to compare, unless it is among them; returns the new end."""
    for i in range(0, end, 2):
        if pairs[i] == larger and pairs[i + 1] == smaller:
            return end
    pairs[end], pairs[end + 1] = larger, smaller
    return end + 2


@inner
def is_wider(m: Tables, head: NodeId, other: NodeId) -> bool:
    """Whether two repetitions have the same body, and the bounds of the first enclose those of the other."""
    if m.nodes[head].kind != Kind.REPEAT or m.nodes[other].kind != Kind.REPEAT:
        return False
    if m.nodes[head].a != m.nodes[other].a:
        return False
    high, most = m.nodes[head].c, m.nodes[other].c
    return m.nodes[head].b <= m.nodes[other].b and (high < 0 or 0 <= most <= high)


@inner
def is_optional(m: Tables, head: NodeId) -> bool:
    """Whether a part is a repetition that may have any number of copies up to a bound, or without one."""
    return m.nodes[head].kind == Kind.REPEAT and m.nodes[head].b == 0


@inner
def without_copies(m: Tables, head: NodeId, rest: NodeId, copies: int) -> NodeId:
    """What is left of an optional repetition and its rest behind the most that so many copies can be."""
    high = m.nodes[head].c
    if high == copies:
        return rest
    left = repetition(m, m.nodes[head].a, 0, high if high < 0 else high - copies)
    return join(m, left, rest)


@inner
def may_be_passed(m: Tables, head: NodeId) -> bool:
    """Whether a part may be empty, and does not mark the end of a segment."""
    if head == EMPTY or m.nodes[head].size != 0:
        return False
    kind = m.nodes[head].kind
    is_end = kind == Kind.CALL and m.rules[m.nodes[head].a] == EMPTY
    return kind != Kind.PRODUCT and not is_table(kind) and not is_end
